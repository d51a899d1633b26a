"""The state of one subscription. With the subscription's mutex held, but for flush and dirty; see the pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memmove, memset

from pulsarx import errors
from pulsarx._core.ack_bits cimport (
    AckBits, ack_bits_add, ack_bits_clamp, ack_bits_count, ack_bits_free, ack_bits_has, ack_bits_hole_count,
    ack_bits_init, ack_bits_memory_size, ack_bits_next_unacknowledged, ack_bits_through,
)
from pulsarx._core.atomic cimport atomic_fence, atomic_load_u32, atomic_store_u32
from pulsarx._core.byte_reader cimport ByteReader, byte_reader_left, byte_reader_start, byte_reader_varint
from pulsarx._core.byte_writer cimport ByteWriter, byte_writer_start, byte_writer_varint, varint_size
from pulsarx._core.cursor_record cimport (
    CURSOR_BEFORE, CURSOR_MESSAGE_END, CURSOR_RUN, CURSOR_RUN_MAX, CURSOR_SECTION_DUE, CURSOR_SECTION_LEDGERS,
    CURSOR_SECTION_REDELIVERY, CURSOR_THROUGH, CursorRecord, CursorTail, cursor_ledger_decode, cursor_ledger_encode,
    cursor_ledger_size, cursor_tail_append, cursor_tail_extends, cursor_tail_has_room, cursor_tail_read,
)
from pulsarx._core.invariant cimport invariant
from pulsarx._core.status cimport (
    STATUS_CLOSED, STATUS_CORRUPT, STATUS_DUPLICATE, STATUS_END, STATUS_FOLD, STATUS_NO_MEMORY, STATUS_OK,
    STATUS_OUT_OF_RANGE,
)
from pulsarx._pycore.cursor_store cimport CursorStore
from pulsarx._pycore.raise_status cimport raise_status


cdef class AckTracker:
    """Which messages a subscription has acknowledged; one thread at a time, except flush and dirty.

    store: None for a subscription that leaves nothing behind. fold, reset, close and delete wait for the disk and
    release the GIL in between: whoever locks the subscription's mutex must not keep the GIL while it waits for it.
    After opening, tell it the ledgers of the topic: forget_ledgers(first), then add_ledger and seal_ledger for each.
    """

    def __init__(self, store: CursorStore | None = None) -> None:
        if self.store is not None or self.c_ledgers != NULL:
            raise RuntimeError("an AckTracker is initialised once")
        self.sections = {}
        self.store = store
        if store is not None:
            self.c_tail = &store.c_tail
            self.load()

    def __dealloc__(self) -> None:
        self.free_ledgers()

    cdef void free_ledgers(self) noexcept nogil:
        cdef uint64_t at
        for at in range(self.c_ledger_count):
            ack_bits_free(&self.c_ledgers[at].bits)
        free(self.c_ledgers)
        self.c_ledgers = NULL
        self.c_last = NULL
        self.c_ledger_count = 0
        self.c_ledger_capacity = 0

    # Acknowledging.

    cdef int acknowledge(self, uint64_t ledger_id, uint64_t first_message, uint64_t count,
                         uint64_t* newly) noexcept nogil:
        cdef LedgerAcks* ledger = self.c_last
        cdef CursorTail* tail = self.c_tail
        cdef int status
        newly[0] = 0
        if ledger_id < self.c_acknowledged_below:
            return STATUS_CLOSED if self.c_closed else STATUS_DUPLICATE
        if ledger == NULL or ledger.ledger_id != ledger_id:
            ledger = self.find(ledger_id)
            if ledger == NULL:
                return STATUS_CLOSED if self.c_closed else STATUS_OUT_OF_RANGE
            self.c_last = ledger
        if tail == NULL:
            return ack_bits_add(&ledger.bits, first_message, count, ledger.message_count, newly)
        if count > CURSOR_RUN_MAX:
            return STATUS_OUT_OF_RANGE
        if not cursor_tail_has_room(tail, ledger_id):
            if not cursor_tail_extends(tail, CURSOR_RUN, ledger_id, first_message, count):
                return STATUS_FOLD
        status = ack_bits_add(&ledger.bits, first_message, count, ledger.message_count, newly)
        if status:
            return status
        status = cursor_tail_append(tail, CURSOR_RUN, ledger_id, first_message, count)
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
        if ledger_id < self.c_acknowledged_below:
            return STATUS_DUPLICATE
        ledger = self.find(ledger_id)
        if ledger == NULL or message_end > ledger.message_count:
            return STATUS_OUT_OF_RANGE
        if ledger_id == self.c_acknowledged_below or ledger == self.c_ledgers:
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
        status = self.apply(&record)
        invariant(status == STATUS_OK or status == STATUS_DUPLICATE)
        return STATUS_OK

    cdef int apply(self, const CursorRecord* record) noexcept nogil:
        """Do what a record says. A ledger that is not known yet is added."""
        cdef LedgerAcks* ledger
        cdef uint64_t newly = 0
        if record.ledger_id < self.c_acknowledged_below:
            return STATUS_DUPLICATE
        ledger = self.insert(record.ledger_id)
        if ledger == NULL:
            return STATUS_NO_MEMORY
        if record.kind == CURSOR_RUN:
            return ack_bits_add(&ledger.bits, record.first, record.count, ledger.message_count, &newly)
        self.c_acknowledged_below = record.ledger_id
        if record.kind == CURSOR_THROUGH:
            ack_bits_through(&ledger.bits, record.first + record.count, &newly)
        while ledger > self.c_ledgers:
            ledger -= 1
            if ledger.bits.beyond == 0 and (not ledger.sealed or ledger.bits.contiguous == ledger.message_count):
                continue
            if ledger.sealed:
                ack_bits_through(&ledger.bits, ledger.message_count, &newly)
            else:
                ledger.bits.contiguous += ledger.bits.beyond
                ack_bits_clamp(&ledger.bits, ledger.bits.contiguous)
        return STATUS_OK

    # Asking.

    cdef bint is_acknowledged(self, uint64_t ledger_id, uint64_t message) noexcept nogil:
        cdef LedgerAcks* ledger = self.c_last
        if ledger_id < self.c_acknowledged_below:
            return True
        if ledger == NULL or ledger.ledger_id != ledger_id:
            ledger = self.find(ledger_id)
        return ledger != NULL and ack_bits_has(&ledger.bits, message)

    cdef uint64_t next_unacknowledged(self, uint64_t ledger_id, uint64_t message, uint64_t end) noexcept nogil:
        cdef LedgerAcks* ledger = self.c_last
        if ledger_id < self.c_acknowledged_below:
            return end
        if ledger == NULL or ledger.ledger_id != ledger_id:
            ledger = self.find(ledger_id)
        if ledger == NULL:
            return message if message < end else end
        return ack_bits_next_unacknowledged(&ledger.bits, message, end)

    cdef void mark_delete_position(self, uint64_t* ledger_id, uint64_t* message) noexcept nogil:
        cdef uint64_t at = self.position_of(self.c_acknowledged_below)
        cdef LedgerAcks* ledger = NULL
        while at < self.c_ledger_count:
            ledger = &self.c_ledgers[at]
            if not ledger.sealed or ledger.bits.contiguous < ledger.message_count:
                break
            at += 1
            # Only with a ledger behind it: the position of a topic that is all acknowledged stays in its last ledger.
            if at < self.c_ledger_count:
                self.c_acknowledged_below = self.c_ledgers[at].ledger_id
        if ledger == NULL:
            ledger_id[0] = self.c_acknowledged_below
            message[0] = 0
            return
        ledger_id[0] = ledger.ledger_id
        message[0] = ledger.bits.contiguous

    # The ledgers.

    cdef uint64_t position_of(self, uint64_t ledger_id) noexcept nogil:
        """How many ledgers have a smaller id."""
        cdef uint64_t low = 0
        cdef uint64_t high = self.c_ledger_count
        cdef uint64_t middle
        while low < high:
            middle = (low + high) >> 1
            if self.c_ledgers[middle].ledger_id < ledger_id:
                low = middle + 1
            else:
                high = middle
        return low

    cdef LedgerAcks* find(self, uint64_t ledger_id) noexcept nogil:
        cdef uint64_t at
        if self.c_closed:
            return NULL
        at = self.position_of(ledger_id)
        if at < self.c_ledger_count and self.c_ledgers[at].ledger_id == ledger_id:
            return &self.c_ledgers[at]
        return NULL

    cdef LedgerAcks* insert(self, uint64_t ledger_id) noexcept nogil:
        """The ledger, added as an open one if it is not known; NULL: out of memory."""
        cdef uint64_t at = self.position_of(ledger_id)
        cdef uint64_t capacity
        cdef LedgerAcks* grown
        if at < self.c_ledger_count and self.c_ledgers[at].ledger_id == ledger_id:
            return &self.c_ledgers[at]
        if self.c_ledger_count == self.c_ledger_capacity:
            capacity = 2 * self.c_ledger_capacity if self.c_ledger_capacity else 2
            grown = <LedgerAcks*>realloc(self.c_ledgers, capacity * sizeof(LedgerAcks))
            if grown == NULL:
                return NULL
            self.c_ledgers = grown
            self.c_ledger_capacity = capacity
        self.c_last = NULL
        memmove(&self.c_ledgers[at + 1], &self.c_ledgers[at], (self.c_ledger_count - at) * sizeof(LedgerAcks))
        memset(&self.c_ledgers[at], 0, sizeof(LedgerAcks))
        self.c_ledgers[at].ledger_id = ledger_id
        self.c_ledgers[at].message_count = CURSOR_MESSAGE_END
        ack_bits_init(&self.c_ledgers[at].bits)
        self.c_ledger_count += 1
        return &self.c_ledgers[at]

    cdef int check_open(self) except -1:
        if self.c_closed:
            raise errors.AlreadyClosed("the subscription's state is closed")
        return 0

    def add_ledger(self, ledger_id: int) -> None:
        """A ledger of the topic, open until it is sealed. Adding one that is known changes nothing."""
        self.check_open()
        if self.insert(ledger_id) == NULL:
            raise MemoryError(f"add ledger {ledger_id}: out of memory")

    def seal_ledger(self, ledger_id: int, message_count: int) -> None:
        """The ledger holds message_count messages for good; acknowledgements of others are forgotten."""
        cdef LedgerAcks* ledger = self.found(ledger_id)
        cdef uint64_t newly = 0
        ledger.message_count = message_count
        ledger.sealed = 1
        ack_bits_clamp(&ledger.bits, message_count)
        if ledger.ledger_id < self.c_acknowledged_below:
            ack_bits_through(&ledger.bits, message_count, &newly)

    def forget_ledgers(self, below_ledger_id: int) -> None:
        """The topic has no ledger below this one any more: whatever is below counts as acknowledged."""
        cdef uint64_t below = below_ledger_id
        cdef uint64_t count, at
        self.check_open()
        count = self.position_of(below)
        for at in range(count):
            ack_bits_free(&self.c_ledgers[at].bits)
        memmove(self.c_ledgers, &self.c_ledgers[count], (self.c_ledger_count - count) * sizeof(LedgerAcks))
        self.c_ledger_count -= count
        self.c_last = NULL
        if below > self.c_acknowledged_below:
            self.c_acknowledged_below = below

    cdef LedgerAcks* found(self, object ledger_id) except NULL:
        cdef LedgerAcks* ledger
        self.check_open()
        ledger = self.find(ledger_id)
        if ledger == NULL:
            raise errors.NotAllowedError(f"ledger {ledger_id} is none of the topic's")
        return ledger

    def mark_delete(self) -> tuple[int, int]:
        """(ledger id, ordinal) of the first unacknowledged message; behind the last message when there is none."""
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        self.check_open()
        self.mark_delete_position(&ledger_id, &message)
        return ledger_id, message

    def acknowledged_count(self, ledger_id: int) -> int:
        """Acknowledged messages of a ledger. Of a wholly acknowledged one that is not sealed: those known by number."""
        return ack_bits_count(&self.found(ledger_id).bits)

    def hole_count(self) -> int:
        """Runs of unacknowledged messages with an acknowledged one above them in the same ledger."""
        cdef uint64_t total = 0
        cdef uint64_t at
        self.check_open()
        for at in range(self.c_ledger_count):
            total += ack_bits_hole_count(&self.c_ledgers[at].bits)
        return total

    def memory_size(self) -> int:
        """Bytes allocated for this state."""
        cdef uint64_t total = self.c_ledger_capacity * sizeof(LedgerAcks)
        cdef uint64_t at
        for at in range(self.c_ledger_count):
            total += ack_bits_memory_size(&self.c_ledgers[at].bits)
        return total

    @property
    def ledger_ids(self) -> list[int]:
        """The ledgers it knows, ascending."""
        return [self.c_ledgers[at].ledger_id for at in range(self.c_ledger_count)]

    # The same for Python callers.

    def acknowledge_messages(self, ledger_id: int, first_message: int, count: int = 1) -> int:
        """Acknowledge a run, folding when needed; answers how many messages were not acknowledged before."""
        cdef uint64_t newly = 0
        cdef int status = self.acknowledge(ledger_id, first_message, count, &newly)
        if status == STATUS_FOLD:
            self.fold()
            status = self.acknowledge(ledger_id, first_message, count, &newly)
        if status != STATUS_DUPLICATE:
            raise_status(status, 0, f"acknowledge {count} messages from {first_message} of ledger {ledger_id}")
        return newly

    def acknowledge_messages_through(self, ledger_id: int, message_end: int) -> bool:
        """Acknowledge cumulatively, folding when needed; False: all of it was acknowledged before."""
        cdef int status = self.acknowledge_through(ledger_id, message_end)
        if status == STATUS_FOLD:
            self.fold()
            status = self.acknowledge_through(ledger_id, message_end)
        if status == STATUS_DUPLICATE:
            return False
        raise_status(status, 0, f"acknowledge everything below message {message_end} of ledger {ledger_id}")
        return True

    def is_message_acknowledged(self, ledger_id: int, message: int) -> bool:
        self.check_open()
        return self.is_acknowledged(ledger_id, message)

    def next_unacknowledged_message(self, ledger_id: int, message: int, end: int) -> int:
        self.check_open()
        return self.next_unacknowledged(ledger_id, message, end)

    # What is kept.

    def reset(self, ledger_id: int, message: int) -> None:
        """Seek: everything before is acknowledged, everything from there on is not. Durable when it returns.

        After an error nothing changed, except when only flushing the directory failed: then a power cut may undo it.
        """
        cdef LedgerAcks* ledger = self.found(ledger_id)
        cdef AckTracker before = AckTracker.__new__(AckTracker)
        cdef uint64_t generation, at
        if <uint64_t>message > ledger.message_count:
            raise errors.NotAllowedError(
                f"seek to message {message} of ledger {ledger_id}: it holds {ledger.message_count}")
        before.copy_from(self)
        generation = self.store.generation if self.store is not None else 0
        self.c_acknowledged_below = ledger_id
        for at in range(self.c_ledger_count):
            ledger = &self.c_ledgers[at]
            if ledger.ledger_id >= <uint64_t>ledger_id:
                ack_bits_free(&ledger.bits)
                ledger.bits.contiguous = message if ledger.ledger_id == <uint64_t>ledger_id else 0
            elif ledger.sealed:
                ack_bits_free(&ledger.bits)
                ledger.bits.contiguous = ledger.message_count
        try:
            self.fold()
        except BaseException:
            if self.store is not None and self.store.generation == generation:
                self.swap_with(before)
            raise

    cdef int copy_from(self, AckTracker other) except -1:
        """Take the state of the other by way of a snapshot; no store."""
        cdef uint64_t at
        cdef LedgerAcks* ledger
        self.sections = {}
        self.load_ledgers(other.ledgers_section())
        for at in range(other.c_ledger_count):
            ledger = self.insert(other.c_ledgers[at].ledger_id)
            if ledger == NULL:
                raise MemoryError("seek: out of memory; nothing was changed")
            ledger.message_count = other.c_ledgers[at].message_count
            ledger.sealed = other.c_ledgers[at].sealed
            if ledger.ledger_id < other.c_acknowledged_below:
                ledger.bits.contiguous = ack_bits_count(&other.c_ledgers[at].bits)
        return 0

    cdef void swap_with(self, AckTracker other) noexcept:
        self.c_ledgers, other.c_ledgers = other.c_ledgers, self.c_ledgers
        self.c_ledger_count, other.c_ledger_count = other.c_ledger_count, self.c_ledger_count
        self.c_ledger_capacity, other.c_ledger_capacity = other.c_ledger_capacity, self.c_ledger_capacity
        self.c_acknowledged_below = other.c_acknowledged_below
        self.c_last = NULL

    def fold(self) -> None:
        """Write the whole state as a new generation with an empty tail. Durable when it returns.

        After an error nothing changed: acknowledging answers FOLD until a fold succeeds.
        """
        self.check_open()
        if self.store is None:
            return
        self.store.write_generation(self.snapshot(), self.base_ledger_id())
        atomic_store_u32(&self.c_dirty, 0)

    cdef uint64_t base_ledger_id(self) noexcept nogil:
        cdef uint64_t at = self.position_of(self.c_acknowledged_below)
        return self.c_ledgers[at].ledger_id if at < self.c_ledger_count else self.c_acknowledged_below

    def flush(self) -> None:
        """Put all acknowledgements so far on the device. Any thread, without the mutex; nothing to do after close.

        LedgerPoisonedError, after an earlier error: the device may lack some until a fold succeeds; a kill loses none.
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
        """What was found damaged on opening, one sentence each."""
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
        atomic_store_u32(&self.c_dirty, 0)
        self.free_ledgers()

    # Snapshots.

    cdef bytes ledgers_section(self):
        cdef uint64_t first = self.position_of(self.c_acknowledged_below)
        cdef uint64_t size = varint_size(self.c_acknowledged_below) + varint_size(self.c_ledger_count - first)
        cdef uint64_t before = self.c_acknowledged_below
        cdef uint64_t at
        cdef ByteWriter writer
        cdef bytes section
        for at in range(first, self.c_ledger_count):
            size += cursor_ledger_size(self.c_ledgers[at].ledger_id - before, &self.c_ledgers[at].bits)
            before = self.c_ledgers[at].ledger_id
        section = PyBytes_FromStringAndSize(NULL, size)
        byte_writer_start(&writer, <uint8_t*>PyBytes_AS_STRING(section), size)
        byte_writer_varint(&writer, self.c_acknowledged_below)
        byte_writer_varint(&writer, self.c_ledger_count - first)
        before = self.c_acknowledged_below
        for at in range(first, self.c_ledger_count):
            cursor_ledger_encode(self.c_ledgers[at].ledger_id - before, &self.c_ledgers[at].bits, &writer)
            before = self.c_ledgers[at].ledger_id
        invariant(writer.at == writer.end)
        return section

    cdef bytes snapshot(self):
        parts = []
        for tag, section in sorted({**self.sections, CURSOR_SECTION_LEDGERS: self.ledgers_section()}.items()):
            parts += (int(tag).to_bytes(8, "little"), len(section).to_bytes(8, "little"), section)
        return b"".join(parts)

    cdef int load(self) except -1:
        """Open the store and become what it holds."""
        cdef bytes snapshot = self.store.load()
        if snapshot is None:
            self.fold()
            return 0
        at = 0
        while at < len(snapshot):
            tag = int.from_bytes(snapshot[at:at + 8], "little")
            size = int.from_bytes(snapshot[at + 8:at + 16], "little")
            if at + 16 + size > len(snapshot):
                raise_status(STATUS_CORRUPT, 0, f"read the snapshot of cursor file {self.store.path}")
            section = snapshot[at + 16:at + 16 + size]
            if tag == CURSOR_SECTION_LEDGERS:
                self.load_ledgers(section)
            elif tag == CURSOR_SECTION_REDELIVERY or tag == CURSOR_SECTION_DUE:
                self.sections[tag] = section
            else:
                raise errors.NewerFormatError(
                    f"cursor file {self.store.path} holds a section {tag} of a newer version; upgrade PulsarX to open it")
            at += 16 + size
        return self.load_tail()

    cdef int load_ledgers(self, bytes section) except -1:
        cdef ByteReader reader
        cdef uint64_t count = 0
        cdef uint64_t ledger_id
        cdef int status
        byte_reader_start(&reader, <const uint8_t*>PyBytes_AS_STRING(section), len(section))
        status = byte_reader_varint(&reader, &self.c_acknowledged_below)
        if status == STATUS_OK:
            status = byte_reader_varint(&reader, &count)
        ledger_id = self.c_acknowledged_below
        while status == STATUS_OK and count:
            status = self.load_ledger(&reader, &ledger_id)
            count -= 1
        if status == STATUS_OK and byte_reader_left(&reader):
            status = STATUS_CORRUPT
        where = self.store.path if self.store is not None else "in memory"
        raise_status(status, 0, f"read the snapshot of cursor file {where}")
        return 0

    cdef int load_ledger(self, ByteReader* reader, uint64_t* ledger_id) noexcept nogil:
        cdef AckBits bits
        cdef LedgerAcks* ledger
        cdef uint64_t delta = 0
        cdef int status
        ack_bits_init(&bits)
        status = cursor_ledger_decode(reader, &delta, &bits)
        if status == STATUS_OK:
            ledger_id[0] += delta
            ledger = self.insert(ledger_id[0])
            if ledger != NULL:
                ack_bits_free(&ledger.bits)
                ledger.bits = bits
                return STATUS_OK
            status = STATUS_NO_MEMORY
        ack_bits_free(&bits)
        return status

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
                    status = self.apply(&record)
                    if status == STATUS_NO_MEMORY:
                        break
        if status == STATUS_NO_MEMORY:
            raise_status(status, 0, f"read the acknowledgements of cursor file {self.store.path}")
        self.store.damaged_count = damaged
        if damaged:
            self.store.note_damage(f"Cursor file {self.store.path} has {damaged} damaged records: the acknowledgements"
                                   " they held are delivered again.")
        return 0
