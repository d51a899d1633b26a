"""Keeps the state of each message of a subscription that is neither acknowledged nor unread.

The law of a subscription that shares messages: below its read position every message that is not
acknowledged is here, in exactly one state. A message that is not here and lies at or above the
read position was never delivered. One thread at a time (the subscription's mutex).

  state     the message                                      tag holds           left by
  QUEUED    is in a consumer's receiver queue                its slice's tag     receive, recall
  HELD      was received by the application                  timer or NONE       ack, nack, timeout
  NACKED    waits for its redelivery time                    timer               due, leave
  DELAYED   waits for its deliver-at time                    timer               due
  DUE       goes out as soon as a consumer may take it       -                   dispatch
  DEAD      is on its way to the dead letter topic           -                   ack, failure
  COUNTED   is unread; only its redelivery count is known    -                   dispatch
An acknowledgement leaves every state.

Messages lie in pages of 64, those in blocks of 64 pages, those of a ledger in an array that spans
from the first to the last in use: 8 bytes for 4096 messages in between. A page that holds nothing
more goes when another is looked for, a block with its last page, a ledger with its last block.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

cdef enum PendingState:
    PENDING_NONE = 0
    PENDING_QUEUED = 1
    PENDING_HELD = 2
    PENDING_NACKED = 3
    PENDING_DELAYED = 4
    PENDING_DUE = 5
    PENDING_DEAD = 6
    PENDING_COUNTED = 7

cdef enum PendingFlags:
    PENDING_RESTORED = 1                # read back from the cursor: its key_hash is not known
    PENDING_GIVEN = 2                   # it was in a receiver queue before

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
    uint8_t flags                       # PendingFlags
    uint16_t key_hint                   # the user's: where it may find what it knows of the key

cdef struct PendingPage:
    uint64_t ledger_id
    uint64_t number                     # holds the messages from 64 * number on
    uint64_t used                       # a bit a message: it is here
    uint64_t due                        # a bit a message: it is here and DUE
    uint64_t counted                    # a bit a message: it is here and COUNTED
    PendingAck acks[64]                 # PENDING_PAGE

cdef struct PendingBlock:
    uint64_t used                       # a bit a page: it is not NULL
    uint64_t due                        # a bit a page: it holds a message that is DUE
    PendingPage* pages[64]              # owned

cdef struct PendingLedger:
    uint64_t ledger_id
    PendingBlock** blocks               # owned; NULL entries hold nothing
    uint64_t first_block                # blocks[0] holds messages from 4096 * first_block on
    uint64_t front                      # blocks before are NULL
    uint64_t end                        # blocks from here on are NULL
    uint64_t block_capacity
    uint64_t block_count                # blocks that are not NULL

cdef struct PendingAcks:
    PendingLedger* ledgers              # owned, ascending by ledger id; only those with pages
    uint64_t ledger_count
    uint64_t ledger_capacity
    PendingLedger* last                 # found last, inside ledgers; NULL: none
    PendingPage* page                   # used last, the only one that may be empty; NULL: none
    PendingPage* free_page              # one kept back, so that a steady flow allocates nothing
    uint64_t count                      # of all ledgers
    uint64_t due_count

cdef void pending_acks_init(PendingAcks* self) noexcept nogil
cdef void pending_acks_free(PendingAcks* self) noexcept nogil

cdef PendingPage* pending_acks_seek_page(PendingAcks* self, uint64_t ledger_id,
                                         uint64_t message) noexcept nogil
cdef PendingPage* pending_acks_make_page(PendingAcks* self, uint64_t ledger_id,
                                         uint64_t message) noexcept nogil
cdef void pending_acks_mark(PendingAcks* self, PendingPage* page, uint64_t message,
                            uint8_t state) noexcept nogil

cdef inline PendingPage* pending_acks_page(PendingAcks* self, uint64_t ledger_id,
                                           uint64_t message) noexcept nogil:
    """The page of the message, to be looked at only; NULL: nothing of it is here."""
    cdef PendingPage* page = self.page
    if page != NULL and page.number == message >> 6 and page.ledger_id == ledger_id:
        return page
    return pending_acks_seek_page(self, ledger_id, message)

cdef inline PendingAck* pending_acks_find(PendingAcks* self, uint64_t ledger_id,
                                          uint64_t message) noexcept nogil:
    """NULL: it is not here. Valid until a message of its page is removed."""
    cdef PendingPage* page = pending_acks_page(self, ledger_id, message)
    if page == NULL or not (page.used >> (message & 63)) & 1:
        return NULL
    return &page.acks[message & 63]

cdef inline PendingAck* pending_acks_add(PendingAcks* self, uint64_t ledger_id,
                                         uint64_t message) noexcept nogil:
    """The message, added with state NONE and everything else 0 (consumer NOBODY) if it was not
    here; the caller gives it a state at once. NULL: out of memory; nothing changed."""
    cdef PendingPage* page = pending_acks_page(self, ledger_id, message)
    cdef PendingAck* ack
    if page == NULL:
        page = pending_acks_make_page(self, ledger_id, message)
        if page == NULL:
            return NULL
    ack = &page.acks[message & 63]
    if not (page.used >> (message & 63)) & 1:
        page.used |= <uint64_t>1 << (message & 63)
        self.count += 1
        memset(ack, 0, sizeof(PendingAck))
        ack.consumer = PENDING_NOBODY
    return ack

cdef PendingAck* pending_acks_add_run(PendingAcks* self, uint64_t ledger_id, uint64_t first,
                                      uint64_t count, uint64_t* added) noexcept nogil
"""Like add, for messages that follow each other: answers the first of an array of `added`, at most
count (1 up) and at most to the end of a page, so call again for the rest. Those that were here keep
what they hold. NULL: out of memory; nothing changed."""

cdef inline void pending_acks_set_state(PendingAcks* self, uint64_t ledger_id, uint64_t message,
                                        PendingAck* ack, uint8_t state) noexcept nogil:
    """Change the state of a message that is here; the only way in and out of DUE and COUNTED.
    Between other states writing ack.state is the same."""
    if (((<uint32_t>1 << ack.state) | (<uint32_t>1 << state))
            & ((1 << PENDING_DUE) | (1 << PENDING_COUNTED))):
        pending_acks_mark(self, pending_acks_page(self, ledger_id, message), message, state)
    ack.state = state

cdef inline void pending_acks_remove(PendingAcks* self, uint64_t ledger_id,
                                     uint64_t message) noexcept nogil:
    """Forget the message; nothing when it is not here."""
    cdef PendingPage* page = pending_acks_page(self, ledger_id, message)
    cdef uint64_t bit = <uint64_t>1 << (message & 63)
    if page == NULL or not page.used & bit:
        return
    if (page.due | page.counted) & bit:
        pending_acks_mark(self, page, message, PENDING_NONE)
    page.used &= ~bit
    self.count -= 1

cdef uint64_t pending_acks_remove_run(PendingAcks* self, uint64_t ledger_id, uint64_t first,
                                      uint64_t count) noexcept nogil
"""Forget count messages from first on; answers how many of them were here."""

cdef void pending_acks_clear(PendingAcks* self) noexcept nogil
"""Forget all messages; gives all memory back."""

cdef PendingAck* pending_acks_next(PendingAcks* self, uint64_t* ledger_id,
                                   uint64_t* message) noexcept nogil
"""The first message here at or behind (ledger_id, message), which move to it; NULL: none."""

cdef PendingAck* pending_acks_next_due(PendingAcks* self, uint64_t* ledger_id,
                                       uint64_t* message) noexcept nogil
"""Like next, for messages that are DUE."""

cdef uint64_t pending_acks_next_absent(PendingAcks* self, uint64_t ledger_id, uint64_t message,
                                       uint64_t end) noexcept nogil
"""The first message of [message, end) that is not here or only COUNTED, else end."""

cdef uint64_t pending_acks_memory_size(const PendingAcks* self) noexcept nogil
