"""What is known of single messages of one subscription that are neither acknowledged nor unread.

The law of a subscription that shares messages: below its read position every message that is not
acknowledged is here, in exactly one state. A message that is not here and lies at or above the
read position was never delivered. One thread at a time (the subscription's mutex).

  state     the message                                            tag holds          left by
  QUEUED    is in a consumer's receiver queue                      its slice's tag    receive, recall
  HELD      was received by the application                        timer or NONE      ack, nack, timeout
  NACKED    waits for its redelivery time                          timer              due, leave
  DELAYED   waits for its deliver-at time                          timer              due
  DUE       goes out as soon as somebody may take it               -                  dispatch
  DEAD      is on its way to the dead letter topic                 -                  ack, failure
  COUNTED   is unread; only its redelivery count is known          -                  dispatch
An acknowledgement leaves every state.

Pages of 64 messages; a ledger's pages lie in a directory that begins at the first one in use.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef enum PendingState:
    PENDING_NONE = 0
    PENDING_QUEUED = 1
    PENDING_HELD = 2
    PENDING_NACKED = 3
    PENDING_DELAYED = 4
    PENDING_DUE = 5
    PENDING_DEAD = 6
    PENDING_COUNTED = 7

cdef enum PendingLimits:
    PENDING_PAGE = 64                   # messages
    PENDING_NOBODY = 65535              # no consumer
    PENDING_COUNT_MAX = 65535           # redeliveries counted

cdef struct PendingAck:                 # 16 bytes
    uint32_t tag
    uint32_t key_hash                   # of the sticky key
    uint16_t consumer                   # index in the dispatcher, or PENDING_NOBODY
    uint16_t redelivery_count
    uint8_t state                       # PendingState
    uint8_t flags                       # the dispatcher's
    uint16_t unused

cdef struct PendingPage:
    uint64_t used                       # a bit a message: it is here
    uint64_t due                        # a bit a message: it is here and DUE
    PendingAck acks[64]

cdef struct PendingLedger:
    uint64_t ledger_id
    PendingPage** pages                 # owned; NULL entries hold nothing
    uint64_t first_page                 # pages[0] holds messages from 64 * first_page on
    uint64_t page_count
    uint64_t page_capacity
    uint64_t count                      # messages here
    uint64_t due_count

cdef struct PendingAcks:
    PendingLedger* ledgers              # owned, ascending by ledger id; only those with messages
    uint64_t ledger_count
    uint64_t ledger_capacity
    PendingLedger* last                 # found last, inside ledgers; NULL: none
    PendingPage* free_page              # one kept back, so that a steady flow allocates nothing
    uint64_t count                      # of all ledgers
    uint64_t due_count

cdef void pending_acks_init(PendingAcks* self) noexcept nogil
cdef void pending_acks_free(PendingAcks* self) noexcept nogil

cdef PendingAck* pending_acks_find(PendingAcks* self, uint64_t ledger_id,
                                   uint64_t message) noexcept nogil
"""NULL: it is not here. Valid until a message of its page is removed."""

cdef PendingAck* pending_acks_add(PendingAcks* self, uint64_t ledger_id,
                                  uint64_t message) noexcept nogil
"""The message, added with state NONE and everything else 0 (consumer NOBODY) if it was not here;
the caller gives it a state at once. NULL: out of memory; nothing changed."""

cdef void pending_acks_set_state(PendingAcks* self, uint64_t ledger_id, uint64_t message,
                                 PendingAck* ack, uint8_t state) noexcept nogil
"""Change the state of a message that is here; the only way in and out of DUE."""

cdef void pending_acks_remove(PendingAcks* self, uint64_t ledger_id,
                              uint64_t message) noexcept nogil
"""Forget the message; nothing when it is not here."""

cdef void pending_acks_clear(PendingAcks* self) noexcept nogil

cdef PendingAck* pending_acks_next(PendingAcks* self, uint64_t* ledger_id,
                                   uint64_t* message) noexcept nogil
"""The first message here at or behind (ledger_id, message), which move to it; NULL: none."""

cdef PendingAck* pending_acks_next_due(PendingAcks* self, uint64_t* ledger_id,
                                       uint64_t* message) noexcept nogil
"""As next, of those that are DUE."""

cdef uint64_t pending_acks_next_absent(PendingAcks* self, uint64_t ledger_id, uint64_t message,
                                       uint64_t end) noexcept nogil
"""The first message of [message, end) that is not here or only COUNTED, else end."""

cdef uint64_t pending_acks_memory_size(const PendingAcks* self) noexcept nogil
