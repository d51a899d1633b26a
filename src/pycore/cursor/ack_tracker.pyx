"""The state of one subscription. With its mutex held, but for flush and dirty; see the pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.ack_bits cimport (
    ack_bits_add, ack_bits_count, ack_bits_count_below, ack_bits_group, ack_bits_has,
    ack_bits_hole_count, ack_bits_memory_size, ack_bits_next_unacknowledged,
)
from pulsarx._core.atomic cimport atomic_fence, atomic_load_u32, atomic_store_u32
from pulsarx._core.cursor_record cimport (
    CURSOR_BEFORE, CURSOR_REDELIVERIES_MAX, CURSOR_RUN, CURSOR_RUN_MAX, CURSOR_SECTION_LEDGERS,
    CURSOR_THROUGH, CursorRecord, CursorTail, cursor_tail_append, cursor_tail_extends,
    cursor_tail_has_room, cursor_tail_read, cursor_tail_redelivered, cursor_tail_scatter,
)
from pulsarx._core.cursor_sections cimport RestoredMessage
from pulsarx._core.cursor_state cimport (
    CursorState, LedgerAcks, cursor_state_add, cursor_state_apply, cursor_state_base,
    cursor_state_decode, cursor_state_encode, cursor_state_find, cursor_state_forget,
    cursor_state_forget_unused, cursor_state_free, cursor_state_init, cursor_state_mark_delete,
    cursor_state_reset, cursor_state_seal, cursor_state_size,
)
from pulsarx._core.invariant cimport invariant
from pulsarx._core.status cimport (
    STATUS_CLOSED, STATUS_CORRUPT, STATUS_DUPLICATE, STATUS_END, STATUS_FOLD, STATUS_NO_MEMORY,
    STATUS_OK, STATUS_OUT_OF_RANGE,
)
from pulsarx._pycore.cursor.cursor_store cimport CursorStore
from pulsarx._pycore.cursor.kept_sections cimport KeptSections, join_sections
from pulsarx._pycore.ground.raise_status cimport raise_status


cdef class AckTracker:
    """Records which messages a subscription has acknowledged; one thread, except for flush and
    dirty. store: None for a subscription that leaves nothing behind. fold, reset, close and delete
    wait for the disk and release the GIL in between: a thread that locks the subscription's mutex
    must not keep the GIL while it waits for it. After opening: forget_ledgers(first), then
    add_ledger and seal_ledger for each of the topic.
    """

    def __init__(self, store: CursorStore | None = None) -> None:
        if self.store is not None or self.c_state.ledgers != NULL:
            raise RuntimeError("an AckTracker is initialised once")
        self.kept = KeptSections()
        self.kept.c_state = &self.c_state
        self.store = store
        if store is not None:
            self.kept.c_tail = self.c_tail = &store.c_tail
            self.load()

    def __dealloc__(self) -> None:
        cursor_state_free(&self.c_state)

    # Acknowledging.

    cdef int acknowledge(self, uint64_t ledger_id, uint64_t first_message, uint64_t count,
                         uint64_t* newly) noexcept nogil:
        cdef LedgerAcks* ledger
        cdef CursorTail* tail = self.c_tail
        cdef int status
        newly[0] = 0
        if ledger_id < self.c_state.acknowledged_below:
            return STATUS_CLOSED if self.c_closed else STATUS_DUPLICATE
        ledger = cursor_state_find(&self.c_state, ledger_id)
        if ledger == NULL:
            return STATUS_CLOSED if self.c_closed else STATUS_OUT_OF_RANGE
        if tail == NULL:
            return ack_bits_add(&ledger.bits, first_message, count, ledger.message_count, newly)
        if count > CURSOR_RUN_MAX:
            return STATUS_OUT_OF_RANGE
        if first_message == ledger.bits.contiguous and ledger.bits.beyond == 0:
            if cursor_tail_extends(tail, CURSOR_RUN, ledger_id, first_message, count):
                status = ack_bits_add(&ledger.bits, first_message, count, ledger.message_count,
                                      newly)
                if status:
                    return status
                cursor_tail_append(tail, CURSOR_RUN, ledger_id, first_message, count)
                atomic_store_u32(&self.c_dirty, 1)
                return STATUS_OK
        return self.acknowledge_slow(ledger, first_message, count, newly)

    cdef int acknowledge_slow(self, LedgerAcks* ledger, uint64_t first_message, uint64_t count,
                              uint64_t* newly) noexcept nogil:
        """Acknowledge and record what does not continue the last record."""
        cdef CursorTail* tail = self.c_tail
        cdef bint in_order = first_message == ledger.bits.contiguous and ledger.bits.beyond == 0
        cdef int status
        # Without room this may fold although a record could be extended; the other way round would
        # lose `newly`.
        if not cursor_tail_has_room(tail, ledger.ledger_id):
            return STATUS_FOLD
        status = ack_bits_add(&ledger.bits, first_message, count, ledger.message_count, newly)
        if status:
            return status
        status = STATUS_END
        if not cursor_tail_extends(tail, CURSOR_RUN, ledger.ledger_id, first_message, count):
            status = cursor_tail_scatter(tail, ledger.ledger_id, first_message, count,
                                         ack_bits_group(&ledger.bits, first_message >> 5), in_order)
        if status == STATUS_END:
            status = cursor_tail_append(tail, CURSOR_RUN, ledger.ledger_id, first_message, count)
        invariant(status == STATUS_OK)
        # Stored every time: a flush that clears the flag must not miss a record made just before.
        atomic_store_u32(&self.c_dirty, 1)
        return STATUS_OK

    cdef int acknowledge_through(self, uint64_t ledger_id, uint64_t message_end) noexcept nogil:
        cdef LedgerAcks* ledger
        cdef CursorRecord record
        cdef int status
        if self.c_closed:
            return STATUS_CLOSED
        if ledger_id < self.c_state.acknowledged_below:
            return STATUS_DUPLICATE
        ledger = cursor_state_find(&self.c_state, ledger_id)
        if ledger == NULL or message_end > ledger.message_count:
            return STATUS_OUT_OF_RANGE
        if ledger_id == self.c_state.acknowledged_below or ledger == self.c_state.ledgers:
            if message_end <= ledger.bits.contiguous:
                return STATUS_DUPLICATE
        record.kind = CURSOR_THROUGH if message_end else CURSOR_BEFORE
        record.ledger_id = ledger_id
        record.first = message_end - 1 if message_end else 0
        record.count = 1
        if self.c_tail != NULL:
            status = cursor_tail_append(self.c_tail, record.kind, ledger_id, record.first, 1)
            if status:
                return status
            atomic_store_u32(&self.c_dirty, 1)
        status = cursor_state_apply(&self.c_state, &record)
        invariant(status == STATUS_OK or status == STATUS_DUPLICATE)
        return STATUS_OK

    cdef int record_redelivery(self, uint64_t ledger_id, uint64_t message,
                               uint32_t count) noexcept nogil:
        cdef LedgerAcks* ledger
        cdef int status
        if self.c_closed:
            return STATUS_CLOSED
        if ledger_id < self.c_state.acknowledged_below:
            return STATUS_DUPLICATE
        ledger = cursor_state_find(&self.c_state, ledger_id)
        if ledger == NULL or message >= ledger.message_count or count == 0:
            return STATUS_OUT_OF_RANGE
        if ack_bits_has(&ledger.bits, message):
            return STATUS_DUPLICATE
        if self.c_tail == NULL:
            return STATUS_OK
        if count > CURSOR_REDELIVERIES_MAX:
            count = CURSOR_REDELIVERIES_MAX
        status = cursor_tail_redelivered(self.c_tail, ledger_id, message, count)
        if status == STATUS_OK:
            atomic_store_u32(&self.c_dirty, 1)
        return status

    # Asking.

    cdef bint is_acknowledged(self, uint64_t ledger_id, uint64_t message) noexcept nogil:
        cdef LedgerAcks* ledger
        if ledger_id < self.c_state.acknowledged_below:
            return True
        ledger = cursor_state_find(&self.c_state, ledger_id)
        return ledger != NULL and ack_bits_has(&ledger.bits, message)

    cdef uint64_t next_unacknowledged(self, uint64_t ledger_id, uint64_t message,
                                      uint64_t end) noexcept nogil:
        cdef LedgerAcks* ledger
        if ledger_id < self.c_state.acknowledged_below:
            return end
        ledger = cursor_state_find(&self.c_state, ledger_id)
        if ledger == NULL:
            return message if message < end else end
        return ack_bits_next_unacknowledged(&ledger.bits, message, end)

    cdef void mark_delete_position(self, uint64_t* ledger_id, uint64_t* message) noexcept nogil:
        cursor_state_mark_delete(&self.c_state, ledger_id, message)

    # The ledgers.

    cdef int check_open(self) except -1:
        if self.c_closed:
            raise errors.AlreadyClosed(detail="the subscription's state is closed")
        return 0

    def add_ledger(self, ledger_id: int) -> None:
        """A ledger of the topic, open until it is sealed. Adding a known one changes nothing."""
        self.check_open()
        if cursor_state_add(&self.c_state, ledger_id) == NULL:
            raise MemoryError(f"add ledger {ledger_id}: out of memory")

    def seal_ledger(self, ledger_id: int, message_count: int) -> int:
        """The ledger holds message_count messages for good; acknowledgements above are dropped.
        How many that were."""
        cdef LedgerAcks* ledger = self.found(ledger_id)
        cdef uint64_t before = ack_bits_count(&ledger.bits)
        cursor_state_seal(&self.c_state, ledger, message_count)
        return before - min(before, ack_bits_count(&ledger.bits))

    def seal_gone(self, ledger_id: int, message_count: int) -> None:
        """The topic has the ledger no more, or never had it. As seal_ledger where nothing was known
        of it; else a consumer may hold messages that it had, and acknowledge them yet."""
        cdef LedgerAcks* ledger = self.found(ledger_id)
        if not ledger.sealed:
            cursor_state_seal(&self.c_state, ledger, message_count)

    def forget_ledgers(self, below_ledger_id: int) -> None:
        """The topic has no ledger below this one: whatever is below counts as acknowledged."""
        self.check_open()
        cursor_state_forget(&self.c_state, below_ledger_id)

    def forget_unused(self, above_ledger_id: int) -> None:
        """The topic has no ledger above this one, and nobody expects one: those that were prepared
        and are gone are none of its ledgers. One of which something is acknowledged stays."""
        self.check_open()
        cursor_state_forget_unused(&self.c_state, above_ledger_id)

    cdef LedgerAcks* found(self, object ledger_id) except NULL:
        cdef LedgerAcks* ledger
        self.check_open()
        ledger = cursor_state_find(&self.c_state, ledger_id)
        if ledger == NULL:
            raise errors.NotAllowedError(detail=f"ledger {ledger_id} is none of the topic's")
        return ledger

    def mark_delete(self) -> tuple[int, int]:
        """(ledger id, ordinal) of the first unacknowledged message; else behind the last one."""
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        self.check_open()
        self.mark_delete_position(&ledger_id, &message)
        return ledger_id, message

    def acknowledged_count(self, ledger_id: int) -> int:
        """Acknowledged messages of a ledger.

        For an open ledger acknowledged as a whole, only messages acknowledged individually count.
        """
        return ack_bits_count(&self.found(ledger_id).bits)

    def unacknowledged_end(self, ledger_id: int, count: int, end: int) -> int:
        """The lowest ordinal with so many unacknowledged messages of its ledger before it. Negative
        where there are fewer in front of end: -1 - how many there are."""
        cdef LedgerAcks* ledger = self.found(ledger_id)
        cdef uint64_t wanted = count
        cdef uint64_t low = 0
        cdef uint64_t high = end
        cdef uint64_t middle
        cdef int64_t there
        if ledger_id < self.c_state.acknowledged_below:
            return -1
        there = high - ack_bits_count_below(&ledger.bits, high)
        if there < <int64_t>wanted:
            return -1 - there
        while low < high:
            middle = low + (high - low) // 2
            if middle - ack_bits_count_below(&ledger.bits, middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def hole_count(self) -> int:
        """Runs of unacknowledged messages with an acknowledged one above, in the same ledger."""
        cdef uint64_t total = 0
        cdef uint64_t at
        self.check_open()
        for at in range(self.c_state.ledger_count):
            total += ack_bits_hole_count(&self.c_state.ledgers[at].bits)
        return total

    def memory_size(self) -> int:
        """Bytes allocated for this state; the mapped tail of the file is the page cache's."""
        cdef uint64_t total = self.c_state.ledger_capacity * sizeof(LedgerAcks)
        cdef uint64_t at
        for at in range(self.c_state.ledger_count):
            total += ack_bits_memory_size(&self.c_state.ledgers[at].bits)
        return total

    @property
    def ledger_ids(self) -> list[int]:
        """The ledgers it knows, ascending."""
        return [self.c_state.ledgers[at].ledger_id for at in range(self.c_state.ledger_count)]

    # The same for Python callers.

    def acknowledge_messages(self, ledger_id: int, first_message: int, count: int = 1) -> int:
        """Acknowledge a run, folding when needed; answers how many were not before."""
        cdef uint64_t newly = 0
        cdef int status = self.acknowledge(ledger_id, first_message, count, &newly)
        if status == STATUS_FOLD:
            self.fold()
            status = self.acknowledge(ledger_id, first_message, count, &newly)
        if status != STATUS_DUPLICATE:
            raise_status(status, 0,
                         f"acknowledge {count} messages from {first_message} of ledger {ledger_id}")
        return newly

    def acknowledge_messages_through(self, ledger_id: int, message_end: int) -> bool:
        """Acknowledge cumulatively, folding when needed; False: all of it was before."""
        cdef int status = self.acknowledge_through(ledger_id, message_end)
        if status == STATUS_FOLD:
            self.fold()
            status = self.acknowledge_through(ledger_id, message_end)
        if status == STATUS_DUPLICATE:
            return False
        raise_status(status, 0,
                     f"acknowledge everything below message {message_end} of ledger {ledger_id}")
        return True

    def record_message_redelivery(self, ledger_id: int, message: int, count: int) -> None:
        """Keep how often a message was redelivered, folding when needed."""
        cdef int status = self.record_redelivery(ledger_id, message, count)
        if status == STATUS_FOLD:
            self.fold()
            status = self.record_redelivery(ledger_id, message, count)
        if status != STATUS_DUPLICATE:
            raise_status(status, 0, f"count redeliveries of {message} of ledger {ledger_id}")

    def is_message_acknowledged(self, ledger_id: int, message: int) -> bool:
        self.check_open()
        return self.is_acknowledged(ledger_id, message)

    def next_unacknowledged_message(self, ledger_id: int, message: int, end: int) -> int:
        self.check_open()
        return self.next_unacknowledged(ledger_id, message, end)

    # What is kept.

    def reset(self, ledger_id: int, message: int) -> None:
        """Seek: everything before is acknowledged, everything from there on is not, and no
        redelivery count or due time is kept. Durable when it returns.

        After an error nothing changed, except when only flushing the directory failed: then a power
        cut may undo it.
        """
        cdef LedgerAcks* ledger = self.found(ledger_id)
        cdef CursorState changed
        cdef uint64_t generation
        if <uint64_t>message > ledger.message_count:
            raise errors.NotAllowedError(
                detail=f"seek to message {message} of ledger {ledger_id}: it holds "
                f"{ledger.message_count}")
        cursor_state_init(&changed)
        self.copy_ledgers(&changed)
        cursor_state_reset(&changed, ledger_id, message)
        generation = self.store.generation if self.store is not None else 0
        self.c_state, changed = changed, self.c_state
        try:
            self.write({})
        except BaseException:
            if self.store is None or self.store.generation == generation:
                self.c_state, changed = changed, self.c_state
            raise
        finally:
            cursor_state_free(&changed)

    cdef int copy_ledgers(self, CursorState* target) except -1:
        """The same ledgers with their numbers of messages, which is all a reset needs."""
        cdef LedgerAcks* ledger
        cdef uint64_t at
        for at in range(self.c_state.ledger_count):
            ledger = cursor_state_add(target, self.c_state.ledgers[at].ledger_id)
            if ledger == NULL:
                cursor_state_free(target)
                raise MemoryError("seek: out of memory; nothing was changed")
            ledger.message_count = self.c_state.ledgers[at].message_count
            ledger.sealed = self.c_state.ledgers[at].sealed
            ledger.bits.contiguous = ack_bits_count(&self.c_state.ledgers[at].bits)
        return 0

    def fold(self) -> None:
        """Write the whole state as a new generation with an empty tail. Durable when it returns.

        After an error nothing changed: acknowledging answers FOLD until a fold succeeds.
        """
        self.check_open()
        if self.store is not None:
            self.write(self.kept.current(self.sections_source))

    cdef int write(self, dict sections) except -1:
        """Go on with these sections, written as a new generation if there is a store."""
        cdef uint64_t before
        if self.store is None:
            return self.kept.adopt(sections, self.sections_source)
        before = self.store.generation
        try:
            self.store.write_generation(
                join_sections({**sections, CURSOR_SECTION_LEDGERS: self.ledgers_section()}),
                cursor_state_base(&self.c_state))
        finally:
            if self.store.generation != before:
                self.kept.adopt(sections, self.sections_source)
        atomic_store_u32(&self.c_dirty, 0)
        return 0

    def redelivery_counts(self) -> list[tuple[int, int, int]]:
        """(ledger id, ordinal, redeliveries) as loaded and recorded, until they are taken over.

        Only messages that the topic holds and that are not acknowledged, ascending.
        """
        self.check_open()
        return self.kept.counts()

    def due_times(self) -> list[tuple[int, int, int]]:
        """(ledger id, ordinal, due_ms) as loaded. See redelivery_counts."""
        self.check_open()
        return self.kept.due_times()

    def set_section(self, tag: int, content: bytes) -> None:
        """Keep this under a CursorSectionTag in the next snapshot; durable after fold."""
        self.kept.sections[tag] = content

    cdef int take_restored(self, RestoredMessage** counts, size_t* counted,
                           RestoredMessage** due, size_t* due_count) except -1:
        self.check_open()
        return self.kept.take(self.sections_source, counts, counted, due, due_count)

    def flush(self) -> None:
        """Put all acknowledgements so far on the device. Any thread, without the mutex; nothing to
        do after close.

        LedgerPoisonedError, after an earlier error: the device may lack some until a fold succeeds;
        a kill loses none.
        """
        if self.c_closed or self.store is None:
            return
        atomic_store_u32(&self.c_dirty, 0)
        # Before the records are looked at: one made after this sets the flag again.
        atomic_fence()
        try:
            self.store.flush()
        except BaseException:
            atomic_store_u32(&self.c_dirty, 1)
            raise

    @property
    def is_kept(self) -> bool:
        """Whether there is a file: some acknowledgement or position was kept."""
        return self.store is not None and self.store.generation != 0

    @property
    def dirty(self) -> bool:
        """Whether something was acknowledged since the last flush. Any thread."""
        return atomic_load_u32(&self.c_dirty) != 0

    @property
    def closed(self) -> bool:
        return self.c_closed != 0

    @property
    def damage(self) -> tuple[str, ...]:
        """The damage found on opening, one sentence each."""
        return self.store.damage if self.store is not None else ()

    def close(self) -> None:
        """Flush and let go of the file. May be called twice."""
        if self.c_closed:
            return
        try:
            if self.dirty:
                self.flush()
        finally:
            self.end()
            if self.store is not None:
                self.store.close()

    def rest(self) -> None:
        """Hold no memory for the file until the next acknowledgement, which costs a page fault."""
        if self.store is not None:
            self.store.rest()

    def abandon(self) -> None:
        """In a forked child: closed, without a look at the file, which is the parent's."""
        if self.store is not None:
            self.store.abandon()
        self.end()

    def delete(self) -> None:
        """Close and remove what is kept."""
        self.end()
        if self.store is not None:
            self.store.delete()

    cdef void end(self) noexcept:
        self.c_closed = 1
        self.sections_source = None     # which often holds this tracker
        atomic_store_u32(&self.c_dirty, 0)
        cursor_state_free(&self.c_state)

    # Snapshots.

    cdef bytes ledgers_section(self):
        cdef uint64_t size = cursor_state_size(&self.c_state)
        cdef bytes section = PyBytes_FromStringAndSize(NULL, size)
        cursor_state_encode(&self.c_state, <uint8_t*>PyBytes_AS_STRING(section), size)
        return section

    cdef int load(self) except -1:
        """Open the store and become what it holds."""
        cdef bytes ledgers
        cdef bytes snapshot = self.store.load()
        if snapshot is None:
            # No file holds (any more). The caller knows where the subscription begins and writes
            # the first one, so that a crash before leaves it as new as it was.
            return 0
        ledgers = self.kept.load(snapshot, self.store.path)
        if ledgers is not None:
            self.load_ledgers(ledgers)
        return self.load_tail()

    cdef int load_ledgers(self, bytes section) except -1:
        cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(section)
        cdef int status = cursor_state_decode(&self.c_state, data, len(section))
        return raise_status(status, 0, f"read the snapshot of cursor file {self.store.path}")

    cdef int load_tail(self) except -1:
        cdef CursorTail* tail = self.c_tail
        cdef CursorRecord record
        cdef uint64_t damaged = 0
        cdef uint64_t slot
        cdef int status = STATUS_OK
        with nogil:
            for slot in range(tail.capacity):
                status = cursor_tail_read(tail, slot, &record)
                if status == STATUS_CORRUPT:
                    damaged += 1
                elif status == STATUS_OK:
                    status = cursor_state_apply(&self.c_state, &record)
                    if status == STATUS_NO_MEMORY:
                        break
        if status == STATUS_NO_MEMORY:
            raise_status(status, 0, f"read the acknowledgements of cursor file {self.store.path}")
        self.store.damaged_count = damaged
        if damaged:
            self.store.note_damage(
                f"Cursor file {self.store.path} has {damaged} damaged records:"
                " the acknowledgements they held are delivered again.")
        return 0
