# cython: language_level=3
"""Body of transacted_acks.pxd."""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.message_runs cimport MessageRuns, message_runs_append
from pulsarx._core.pending_acks cimport (
    PENDING_HELD, PENDING_NONE, PendingAck, PendingAcks, pending_acks_add, pending_acks_find,
    pending_acks_free, pending_acks_init, pending_acks_next, pending_acks_next_absent,
    pending_acks_remove,
)
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.cursor.ack_tracker cimport AckTracker


cdef inline bint is_before(uint64_t ledger_id, uint64_t message, uint64_t other_ledger,
                           uint64_t other) noexcept:
    return ledger_id < other_ledger or (ledger_id == other_ledger and message < other)


cdef class TransactionAcks:
    """See the pxd."""


cdef class TransactedAcks:
    """See the pxd."""

    def __cinit__(self):
        pending_acks_init(&self.c_messages)
        self.by_id = {}
        self.slots = []

    def __dealloc__(self):
        pending_acks_free(&self.c_messages)

    cdef uint64_t next_untaken(self, AckTracker tracker, uint64_t ledger_id, uint64_t message,
                               uint64_t end) noexcept:
        cdef uint64_t absent
        while message < end:
            message = tracker.next_unacknowledged(ledger_id, message, end)
            if message >= end:
                return end
            if self.through is not None and ledger_id <= self.through.through_ledger:
                if ledger_id < self.through.through_ledger:
                    return end
                if message < self.through.through_end:
                    message = self.through.through_end
                    continue
            if self.c_messages.count == 0:
                return message
            absent = pending_acks_next_absent(&self.c_messages, ledger_id, message, end)
            if absent == message:
                return message
            message = absent
        return end

    # Transactions ---------------------------------------------------------------------------------

    cdef TransactionAcks find(self, object transaction):
        return self.by_id.get(id(transaction))

    cdef TransactionAcks join(self, object transaction):
        cdef TransactionAcks mine = self.find(transaction)
        cdef uint32_t slot = 0
        if mine is not None:
            return mine
        mine = TransactionAcks.__new__(TransactionAcks)
        mine.transaction = transaction
        while slot < len(self.slots) and self.slots[slot] is not None:
            slot += 1
        if slot == len(self.slots):
            self.slots.append(None)
        mine.slot = slot
        self.by_id[id(transaction)] = mine
        self.slots[slot] = mine
        return mine

    cdef int forget(self, TransactionAcks mine) noexcept:
        cdef uint64_t ledger_id = mine.first_ledger
        cdef uint64_t message = mine.first_message
        cdef PendingAck* ack
        mine.is_sealed = True
        if self.through is mine:
            self.through = None
        while mine.count:
            ack = pending_acks_next(&self.c_messages, &ledger_id, &message)
            if ack == NULL:
                break
            if ack.tag == mine.slot:
                pending_acks_remove(&self.c_messages, ledger_id, message)
                mine.count -= 1
            message += 1
        if self.find(mine.transaction) is mine:
            del self.by_id[id(mine.transaction)]
            self.slots[mine.slot] = None
        return 0

    cdef int release(self, TransactionAcks mine, uint64_t ledger_id, uint64_t message) noexcept:
        cdef PendingAck* ack = pending_acks_find(&self.c_messages, ledger_id, message)
        if ack != NULL and ack.tag == mine.slot:
            pending_acks_remove(&self.c_messages, ledger_id, message)
            mine.count -= 1
        return 0

    # Acknowledging --------------------------------------------------------------------------------

    cdef tuple add(self, TransactionAcks mine, AckTracker tracker, list runs):
        cdef uint64_t ledger_id
        cdef uint64_t first
        cdef uint64_t count
        cdef uint64_t message
        cdef list done = []              # (ledger id, first, end) that were noted
        cdef PendingAck* ack
        cdef bint is_whole = False
        cdef TransactionAcks holder
        cdef TransactionAcks wall = None     # another that acknowledges cumulatively
        if self.through is not None and self.through is not mine and (
                self.has_through(self.through, tracker)):
            wall = self.through
        try:
            for ledger_id, first, count in runs:
                message = first
                done.append([ledger_id, first, first])
                while message < first + count:
                    if tracker.is_acknowledged(ledger_id, message):
                        return ledger_id, message, None
                    if wall is not None and is_before(ledger_id, message, wall.through_ledger,
                                                      wall.through_end):
                        return ledger_id, message, wall.transaction
                    ack = pending_acks_add(&self.c_messages, ledger_id, message)
                    if ack == NULL:
                        raise MemoryError(
                            "acknowledge messages in a transaction: out of memory")
                    if ack.state != PENDING_NONE:
                        holder = self.slots[ack.tag]
                        return ledger_id, message, holder.transaction
                    ack.state = PENDING_HELD
                    ack.tag = mine.slot
                    if mine.count == 0 or is_before(ledger_id, message, mine.first_ledger,
                                                    mine.first_message):
                        mine.first_ledger = ledger_id
                        mine.first_message = message
                    mine.count += 1
                    message += 1
                    done[len(done) - 1][2] = message
            is_whole = True
            return None
        finally:
            if not is_whole:
                for ledger_id, first, count in done:
                    for message in range(first, count):
                        self.release(mine, ledger_id, message)

    cdef tuple add_through(self, TransactionAcks mine, AckTracker tracker, uint64_t ledger_id,
                           uint64_t end):
        cdef uint64_t at_ledger = 0
        cdef uint64_t at = 0
        cdef PendingAck* ack
        cdef TransactionAcks holder
        tracker.mark_delete_position(&at_ledger, &at)
        if not is_before(at_ledger, at, ledger_id, end):
            return ledger_id, end - 1, None
        if self.through is not None and not self.has_through(self.through, tracker):
            self.through.through_ledger = 0
            self.through = None
        if self.through is not None and (self.through is not mine or not is_before(
                mine.through_ledger, mine.through_end, ledger_id, end)):
            return ledger_id, end - 1, self.through.transaction
        while self.c_messages.count > mine.count:
            ack = pending_acks_next(&self.c_messages, &at_ledger, &at)
            if ack == NULL or not is_before(at_ledger, at, ledger_id, end):
                break
            if ack.tag != mine.slot and not tracker.is_acknowledged(at_ledger, at):
                holder = self.slots[ack.tag]
                return at_ledger, at, holder.transaction
            at += 1
        mine.through_ledger = ledger_id
        mine.through_end = end
        self.through = mine
        return None

    cdef bint has_through(self, TransactionAcks mine, AckTracker tracker) noexcept:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        if mine.through_ledger == 0:
            return False
        tracker.mark_delete_position(&ledger_id, &message)
        return ledger_id < mine.through_ledger or (
            ledger_id == mine.through_ledger and message < mine.through_end)

    cdef int drop_acknowledged(self, AckTracker tracker) noexcept:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef PendingAck* ack
        if self.through is not None and not self.has_through(self.through, tracker):
            self.through.through_ledger = 0
            self.through = None
        while True:
            ack = pending_acks_next(&self.c_messages, &ledger_id, &message)
            if ack == NULL:
                return 0
            if tracker.is_acknowledged(ledger_id, message):
                (<TransactionAcks>self.slots[ack.tag]).count -= 1
                pending_acks_remove(&self.c_messages, ledger_id, message)
            message += 1

    # Asking ---------------------------------------------------------------------------------------

    cdef int runs_of(self, TransactionAcks mine, AckTracker tracker,
                     MessageRuns* runs) except -1:
        cdef uint64_t ledger_id = mine.first_ledger
        cdef uint64_t message = mine.first_message
        cdef uint64_t left = mine.count
        cdef PendingAck* ack
        while left:
            ack = pending_acks_next(&self.c_messages, &ledger_id, &message)
            if ack == NULL:
                break
            if ack.tag == mine.slot:
                left -= 1
                if not tracker.is_acknowledged(ledger_id, message) and message_runs_append(
                        runs, ledger_id, message, message + 1) != STATUS_OK:
                    raise MemoryError("end a transaction at a subscription: out of memory")
            message += 1
        return 0
