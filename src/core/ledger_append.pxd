"""Appends to one ledger file. Any thread may call; the ledger's mutexes order them.

  state      holds                                      left by
  OPEN       appends accepted                           a failed write, flush_failed, seal, close
  FENCED     a write failed: no more appends, what      seal, close
             is published stays good and flushable
  POISONED   a flush failed: end on disk unknown        close
  SEALED     index and footer written; read only        close
  CLOSED     no file                                    -
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.atomic cimport pthread_mutex_t
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.published_end cimport PublishedEnd
from pulsarx._core.wait_event cimport WaitEvent

cdef enum LedgerState:
    LEDGER_OPEN = 1
    LEDGER_FENCED = 2
    LEDGER_POISONED = 3
    LEDGER_SEALED = 4
    LEDGER_CLOSED = 5

cdef struct LedgerAppend:
    pthread_mutex_t append_mutex      # guards everything up to the flush part
    int fd
    int error                         # errno of the last failure
    uint32_t state                    # LedgerState; atomic
    uint32_t seed                     # of the frame checksums: from the file's uuid
    uint64_t end                      # written bytes; atomic
    uint64_t entry_count              # written; atomic
    uint64_t message_count
    uint64_t prepared_end             # bytes of the file that are allocated (durable space: zeroed
                                      # and flushed)
    uint64_t entry_count_max          # roll-over limits
    uint64_t size_max
    int64_t first_publish_ms
    int64_t last_publish_ms
    uint32_t publish_on_flush         # durability sync: readers see only what is flushed
    uint32_t zero_space               # durability sync, interval: prepared space is written with
                                      # zeros and flushed
    PublishedEnd* published           # borrowed slot; never NULL while open
    WaitEvent* topic_event            # borrowed; woken with every publish; may be NULL
    pthread_mutex_t flush_mutex       # guards the flush part; leader and followers
    uint32_t flushing
    uint64_t durable_end              # atomic
    uint64_t durable_count            # entries; atomic
    uint64_t durable_messages
    WaitEvent flush_event
    void* index                       # private: LedgerIndex of what was appended
    void* preparer                    # private

cdef int ledger_append_entry(LedgerAppend* self, EntryFrame* frame, uint8_t* entry,
                             uint64_t* offset) noexcept nogil
"""Store one entry of frame.entry_size bytes, with one write.

The ENTRY_FRAME_SIZE bytes before entry and the 8 behind it are overwritten (frame, padding).
frame in: entry_size, message_count, publish_time_ms, deliver_at_ms, sticky_hash, flags. Out:
entry_id, first_message.
Published at once unless publish_on_flush. Durable after ledger_append_flush, not before.
LEDGER_FULL: a limit is reached, nothing was written (an empty ledger takes any entry). NO_SPACE:
nothing was written.
IO: the write failed, the ledger is FENCED. POISONED, CLOSED.
Source: BookKeeper LedgerStorage.addEntry.
"""

cdef int ledger_append_flush(LedgerAppend* self, uint64_t entry_count) noexcept nogil
"""Return when the first entry_count entries are on the device. Leader and followers: one flush
serves all who wait.

A failed flush poisons the ledger; from then on this answers POISONED for whatever was not durable
before.
"""
