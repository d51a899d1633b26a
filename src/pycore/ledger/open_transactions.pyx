# cython: language_level=3
"""Body of open_transactions.pxd."""

from libc.stdint cimport UINT64_MAX, int64_t, uint64_t
from libc.stdlib cimport free, malloc, realloc

from pulsarx import errors
from pulsarx._core.atomic cimport atomic_load_u64
from pulsarx._core.entry_frame cimport ENTRY_TRANSACTION, EntryFrame, entry_frame_span
from pulsarx._core.ledger_append cimport LedgerHold, ledger_append_switch
from pulsarx._core.ledger_read cimport LedgerRead, ledger_read_frame
from pulsarx._core.limits cimport LEDGER_HEADER_SIZE
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.ground.latch cimport Latch
from pulsarx._pycore.ground.mutex cimport mutex_init, mutex_lock, mutex_unlock
from pulsarx._pycore.ledger.ledger_file cimport LedgerFile
from pulsarx._pycore.ledger.ledger_recovery cimport entry_transaction
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter


cdef class TransactionCore:
    """See the pxd."""

    def __cinit__(self) -> None:
        self.is_open = True
        self.topics = {}
        self.senders = {}
        self.under_way = {}

    cdef int require_taking(self) except -1:
        if not self.is_open and not self.is_finishing:
            self.refuse()
        return 0

    cdef int refuse(self) except -1:
        raise errors.InvalidTxnStatusError(
            detail=f"transaction {self} has ended, or is about to{self.how_it_ended()}")

    cdef int begin_send(self, object producer) except -1:
        if not self.is_open:
            self.refuse()
        return self.begin_later(producer)

    cdef int begin_later(self, object producer) except -1:
        self.under_way[producer] = self.under_way.get(producer, 0) + 1
        return 0

    cdef int end_send(self, object producer) except -1:
        count = self.under_way.get(producer, 0)
        if count > 1:
            self.under_way[producer] = count - 1
        else:
            self.under_way.pop(producer, None)
            if not self.under_way:
                self.wake_waiting()
        return 0

    def wait_for_sends(self) -> None:
        """Return when no send is under way, or it has ended."""
        while self.under_way and not self.is_ended:
            if self.quiet is None:
                self.quiet = Latch()
            quiet = self.quiet
            if self.under_way and not self.is_ended:
                quiet.wait()

    def tell_quiet(self, notify) -> None:
        """Call once when wait_for_sends would return.

        Args:
            notify: notify() is called, in whatever thread.
        """
        if self.quiet is None:
            self.quiet = Latch()
        self.quiet.tell(notify)
        if not self.under_way or self.is_ended:
            self.wake_waiting()

    def wake_waiting(self) -> None:
        """Its end need not wait any longer: no send is under way, or it has ended."""
        quiet, self.quiet = self.quiet, None
        if quiet is not None:
            quiet.set()

    cdef int entered(self, object sender, int64_t published) except -1:
        known = self.senders.get(sender)
        if known is None or known[1] != published:
            self.senders[sender] = published, published
        return 0

    cdef int left(self, object sender, int64_t published) except -1:
        self.senders[sender] = self.senders[sender][0], published
        return 0

    cdef int64_t before(self, object sender, int64_t published) except? -1:
        known = self.senders.get(sender)
        return published if known is None or known[1] != published else known[0]

    def how_it_ended(self) -> str:
        """The text that an error has behind that."""
        return ""

    def require_of(self, runtime) -> None:
        """NotAllowedError: it is not of the folder that this is the runtime of."""
        raise NotImplementedError

    cpdef object fail(self, object error):
        """Have it aborted at its end, as a send or an acknowledgement in it failed.

        Args:
            error: The failure.
        """
        if self.failure is None:
            self.failure = error


cdef TransactionCore transaction_of(object given):
    if not isinstance(given, TransactionCore):
        raise TypeError(
            f"transaction must be what Client.new_transaction returned, or None, and not "
            f"{type(given).__name__}: {errors.shown(given)}")
    return given


cdef class TransactionPart:
    def __dealloc__(self) -> None:
        free(self.ranges)

    cdef int reserve(self) except -1:
        cdef size_t capacity = max(<size_t>4, self.capacity * 2)
        cdef void* grown
        if self.count == self.capacity:
            grown = realloc(self.ranges, capacity * sizeof(MessageRange))
            if grown == NULL:
                raise MemoryError("note a message of a transaction: out of memory")
            self.ranges = <MessageRange*>grown
            self.capacity = capacity
        return 0


cdef class OpenTransactions:
    """Holds those of one topic of this process. Any thread may call."""

    def __cinit__(self, LedgerTail tail not None) -> None:
        mutex_init(&self.mutex)
        self.tail = tail
        self.parts = {}

    cdef int enter(self, TransactionCore transaction) except -1:
        cdef TransactionPart part
        mutex_lock(&self.mutex)
        try:
            # First: who ends it looks at the topics behind the flag.
            transaction.topics[self] = True
            if transaction.is_ended:
                raise errors.InvalidTxnStatusError(
                    detail=f"a message of transaction {transaction} came to be stored when that "
                    "had ended")
            part = self.parts.get(transaction)
            if part is None:
                part = TransactionPart.__new__(TransactionPart)
                part.reserve()
                self.parts[transaction] = part
            part.reserve()
        except BaseException:
            mutex_unlock(&self.mutex)
            raise
        return 0

    cdef void note(self, TransactionCore transaction, LedgerWriter writer, uint64_t offset,
                   const EntryFrame* frame) noexcept:
        cdef TransactionPart part = <TransactionPart>self.parts[transaction]
        cdef uint64_t end = frame.first_message + frame.message_count
        cdef MessageRange* last
        if part.first_writer is None:
            part.first_writer = writer
            part.first_offset = offset
            part.first_entry = frame.entry_id
            part.first_message = frame.first_message
        if part.count:
            last = &part.ranges[part.count - 1]
            if last.ledger_id == writer.ledger_id and last.end == frame.first_message:
                last.end = end
                return
        part.ranges[part.count].ledger_id = writer.ledger_id
        part.ranges[part.count].first = frame.first_message
        part.ranges[part.count].end = end
        part.count += 1

    cdef int leave(self, TransactionCore transaction) except -1:
        cdef TransactionPart part = self.parts[transaction]
        if part.first_writer is None:            # nothing was stored
            del self.parts[transaction]
        mutex_unlock(&self.mutex)
        return 0

    def take_up(self, LedgerWriter writer not None, LedgerFile file not None,
                dict transactions not None) -> None:
        """Note the messages that a reopened ledger has of these, by their numbers. Ledgers are
        taken up in the order of their ids; readers see nothing of them before `show`."""
        cdef TransactionCore transaction
        cdef LedgerRead read = file.c_read
        cdef EntryFrame frame
        cdef uint64_t at = LEDGER_HEADER_SIZE
        cdef uint64_t end = writer.end
        cdef uint64_t number = 0
        self.tail.hold_reopened(writer)
        while at < end and ledger_read_frame(&read, at, end, &frame) == STATUS_OK:
            if frame.flags & ENTRY_TRANSACTION and entry_transaction(read.base + at, &frame,
                                                                     &number):
                transaction = transactions.get(number)
                if transaction is not None:
                    self.enter(transaction)
                    self.note(transaction, writer, at, &frame)
                    self.leave(transaction)
            at += entry_frame_span(frame.entry_size)

    def show(self) -> None:
        """Let readers see what no open transaction holds back."""
        mutex_lock(&self.mutex)
        try:
            switch_all([self], None, False)
        finally:
            mutex_unlock(&self.mutex)

    def messages(self, TransactionCore transaction not None) -> list[list[int]]:
        """(ledger id, first message, message behind the last) of its messages here, ascending; of a
        transaction that is not open any more."""
        cdef TransactionPart part
        cdef size_t at
        mutex_lock(&self.mutex)                  # an append that is going on has joined it
        try:
            part = self.parts.get(transaction)
            if part is None:
                return []
            return [[part.ranges[at].ledger_id, part.ranges[at].first, part.ranges[at].end]
                    for at in range(part.count)]
        finally:
            mutex_unlock(&self.mutex)

    @property
    def ledgers(self) -> object:
        """The managed ledger of the topic."""
        return self.tail.managed_ledger

    def oldest(self) -> TransactionCore | None:
        """The transaction that readers wait for."""
        mutex_lock(&self.mutex)
        try:
            return next(iter(self.parts), None)
        finally:
            mutex_unlock(&self.mutex)

    def __len__(self) -> int:
        return len(self.parts)

    def written(self) -> list[list[int]]:
        """How far ledgers are written, and may be confirmed, that readers do not see all of: id,
        end, entries and messages of each."""
        cdef LedgerWriter writer
        mutex_lock(&self.mutex)
        try:
            return [
                [writer.ledger_id, writer.durable_end if writer.c_ledger.publish_on_flush
                 else writer.end, writer.entry_count, writer.message_count]
                for writer in self.tail.held_writers()]
        finally:
            mutex_unlock(&self.mutex)

    def start(self, TransactionCore transaction not None) -> tuple[int, int] | None:
        """(ledger id, entry id) of its first message here; None: it has none."""
        cdef TransactionPart part
        mutex_lock(&self.mutex)
        try:
            part = self.parts.get(transaction)
            if part is None or part.first_writer is None:
                return None
            return part.first_writer.ledger_id, part.first_entry
        finally:
            mutex_unlock(&self.mutex)

    def held_messages(self) -> int:
        """Messages that are stored and that readers do not see, as transactions are open."""
        cdef LedgerWriter writer
        cdef uint64_t seen
        cdef uint64_t found = 0
        mutex_lock(&self.mutex)
        try:
            for writer in self.tail.held_writers():
                seen = writer.c_ledger.visible_messages
                found += max(atomic_load_u64(&writer.c_ledger.message_count), seen) - seen
            return found
        finally:
            mutex_unlock(&self.mutex)

    def held_size(self) -> int:
        """Bytes of those messages, in their ledgers."""
        cdef LedgerWriter writer
        cdef uint64_t end
        cdef uint64_t found = 0
        mutex_lock(&self.mutex)
        try:
            for writer in self.tail.held_writers():
                end = atomic_load_u64(&writer.c_ledger.visible_end)
                found += max(<uint64_t>writer.end, end) - end
            return found
        finally:
            mutex_unlock(&self.mutex)

    cdef list without(self, TransactionCore transaction, bint committed):
        """Tell what readers may see when this transaction has ended: (writer, end, entries,
        messages) of each ledger of which that is more than now. The mutex is held."""
        cdef TransactionPart first
        cdef LedgerWriter writer
        if self.parts.pop(transaction, None) is not None:
            self.committed_count += committed
            self.aborted_count += not committed
        first = next(iter(self.parts.values()), None)
        found = []
        for writer in self.tail.held_writers():
            if first is None or writer.ledger_id < first.first_writer.ledger_id:
                found.append((writer, UINT64_MAX, 0, 0))
            elif writer.ledger_id == first.first_writer.ledger_id and (
                    atomic_load_u64(&writer.c_ledger.held_end) != first.first_offset):
                found.append((writer, first.first_offset, first.first_entry, first.first_message))
        return found


def release(TransactionCore transaction not None, bint committed) -> None:
    """The transaction has ended: let readers see on in all topics it had messages in, at one
    moment. One thread at a time for each folder. Where memory runs out it may be called again."""
    cdef OpenTransactions each
    topics = sorted(transaction.topics, key=id)
    for each in topics:
        mutex_lock(&each.mutex)
    try:
        # All of it comes with the first turn. The next ones are for ledgers that publishers went on
        # to meanwhile, which are held as what was in front of them was.
        while switch_all(topics, transaction, committed):
            pass
    finally:
        for each in topics:
            mutex_unlock(&each.mutex)
    for each in topics:
        each.tail.wake()


cdef bint switch_all(list topics, TransactionCore transaction, bint committed) except -1:
    """Whether readers see another part of a ledger."""
    cdef OpenTransactions each
    cdef LedgerWriter writer
    cdef LedgerHold* holds
    cdef uint64_t* switching = NULL
    cdef uint64_t count = 0
    held = []
    for each in topics:
        held += each.without(transaction, committed)
    if not held:
        return False
    held.sort(key=ledger_id_of)
    holds = <LedgerHold*>malloc(len(held) * sizeof(LedgerHold))
    if holds == NULL:
        raise MemoryError(f"end {transaction}: out of memory")
    for writer, end, entries, messages in held:
        holds[count].ledger = &writer.c_ledger
        holds[count].end = end
        holds[count].entry_count = entries
        holds[count].message_count = messages
        switching = writer.slots.c_switching()
        count += 1
    with nogil:
        ledger_append_switch(holds, count, switching)
    free(holds)
    return True


def ledger_id_of(tuple held) -> int:
    cdef LedgerWriter writer = held[0]
    return writer.ledger_id
