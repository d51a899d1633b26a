"""The 64-byte slot in which the end of an open ledger is published. One writer; any process may
read.

  offset  size  field           meaning
       0     8  ledger_id       whose end this is; 0: the slot is free
       8     8  epoch           of the owner that wrote it; another epoch: not to be trusted
      16     8  end             bytes of the file that may be read
      24     8  entry_count     below end
      32     8  message_count   below end
      40     8  event, waiters  WaitEvent: moves at each publish a reader waits for
      48     8  state           1 open, 3 ended (full, and `end` is its last: the ledger prepared
                                behind it takes the entries), 2 sealed (look the ledger up in the
                                catalogue), 0 free
      56     8  left_ledger_id  of a slot that a dead owner left: whose end, entry_count and
                                message_count these are, until that ledger is recovered; else 0
"""

from libc.stdint cimport uint64_t

from pulsarx._core.wait_event cimport WaitEvent

cdef enum PublishedState:
    PUBLISHED_FREE = 0
    PUBLISHED_OPEN = 1
    PUBLISHED_SEALED = 2
    PUBLISHED_ENDED = 3

cdef struct PublishedEnd:
    uint64_t ledger_id
    uint64_t epoch
    uint64_t end
    uint64_t entry_count
    uint64_t message_count
    WaitEvent event
    uint64_t state
    uint64_t left_ledger_id
