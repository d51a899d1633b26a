"""Redelivery counts and due times of a cursor. One thread at a time; the contract is in the pxd."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, qsort, realloc
from libc.string cimport memset

from pulsarx._core.byte_reader cimport byte_reader_left, byte_reader_start, byte_reader_varint
from pulsarx._core.byte_writer cimport ByteWriter, byte_writer_start, byte_writer_varint
from pulsarx._core.cursor_record cimport (
    CURSOR_MESSAGE_END, CURSOR_REDELIVERED, CURSOR_REDELIVERIES_MAX, CURSOR_SECTION_DUE,
    CURSOR_SECTION_REDELIVERY, CursorRecord, CursorTail, cursor_tail_read,
)
from pulsarx._core.invariant cimport invariant
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_END, STATUS_NO_MEMORY, STATUS_OK

cdef enum:
    MESSAGE_SIZE_MAX = 31       # three varints: the end of a ledger, the ordinal and the value
    LEDGER_SIZE_MAX = 11
    FIRST_CAPACITY = 256

# A record of the tail: messages [first, end) were redelivered `count` times, if no later slot says
# otherwise.
cdef struct Redelivered:
    uint64_t ledger_id
    uint64_t first
    uint64_t end
    uint64_t slot
    uint64_t count

# Walks the records of the tail message by message. Those that hold the current message are in the
# heap, the latest slot on top; some that ended before it may still lie below the top.
cdef struct TailWalk:
    Redelivered* runs           # owned, ascending by (ledger id, first)
    uint64_t run_count
    uint64_t next_run           # runs from here on have not begun
    uint64_t* heap              # owned: indexes of runs
    uint64_t heap_size
    uint64_t ledger_id
    uint64_t message


# Writing.

cdef void section_writer_start(SectionWriter* self, uint32_t tag) noexcept nogil:
    memset(self, 0, sizeof(SectionWriter))
    self.tag = tag


cdef void section_writer_free(SectionWriter* self) noexcept nogil:
    free(self.data)
    section_writer_start(self, self.tag)


cdef int reserve(SectionWriter* self) noexcept nogil:
    cdef uint64_t capacity
    cdef uint8_t* grown
    if self.capacity - self.size >= MESSAGE_SIZE_MAX + LEDGER_SIZE_MAX:
        return STATUS_OK
    capacity = 2 * self.capacity if self.capacity else FIRST_CAPACITY
    grown = <uint8_t*>realloc(self.data, capacity)
    if grown == NULL:
        return STATUS_NO_MEMORY
    self.data = grown
    self.capacity = capacity
    return STATUS_OK


cdef inline uint64_t zigzag(uint64_t difference) noexcept nogil:
    """Small for a small difference of either sign, which two's complement is not."""
    return difference << 1 ^ (0 - (difference >> 63))


cdef inline uint64_t unzigzag(uint64_t value) noexcept nogil:
    return value >> 1 ^ (0 - (value & 1))


cdef int section_writer_add(SectionWriter* self, uint64_t ledger_id, uint64_t message,
                            uint64_t value) noexcept nogil:
    cdef ByteWriter writer
    cdef int status = reserve(self)
    if status:
        return status
    byte_writer_start(&writer, self.data + self.size, self.capacity - self.size)
    if not self.in_ledger or ledger_id != self.ledger_id:
        invariant(not self.in_ledger or ledger_id > self.ledger_id)
        if self.in_ledger:
            byte_writer_varint(&writer, 0)
        byte_writer_varint(&writer, ledger_id - self.ledger_id)
        self.ledger_id = ledger_id
        self.next_message = 0
        self.in_ledger = 1
    invariant(message >= self.next_message and message < <uint64_t>CURSOR_MESSAGE_END)
    byte_writer_varint(&writer, message - self.next_message + 1)
    self.next_message = message + 1
    if self.tag == CURSOR_SECTION_DUE:
        byte_writer_varint(&writer, zigzag(value - self.last_value))
        self.last_value = value
    else:
        invariant(value != 0)
        if value > CURSOR_REDELIVERIES_MAX:
            value = CURSOR_REDELIVERIES_MAX
        byte_writer_varint(&writer, value)
    self.size = <uint64_t>(writer.at - self.data)
    return STATUS_OK


cdef int section_writer_end(SectionWriter* self) noexcept nogil:
    cdef int status
    if not self.in_ledger:
        return STATUS_OK
    status = reserve(self)
    if status:
        return status
    self.data[self.size] = 0
    self.size += 1
    self.in_ledger = 0
    return STATUS_OK


# Reading.

cdef void section_reader_start(SectionReader* self, uint32_t tag, const uint8_t* data,
                               uint64_t size) noexcept nogil:
    memset(self, 0, sizeof(SectionReader))
    byte_reader_start(&self.bytes, data, size)
    self.tag = tag


cdef int next_ledger(SectionReader* self) noexcept nogil:
    cdef uint64_t delta = 0
    cdef int status = byte_reader_varint(&self.bytes, &delta)
    if status:
        return status
    if self.ledgers_seen and (delta == 0 or delta > <uint64_t>-1 - self.ledger_id):
        return STATUS_CORRUPT
    self.ledger_id += delta
    self.ledgers_seen = 1
    self.in_ledger = 1
    self.next_message = 0
    return STATUS_OK


cdef int read_value(SectionReader* self, uint64_t* value) noexcept nogil:
    cdef uint64_t told = 0
    cdef int status = byte_reader_varint(&self.bytes, &told)
    if status:
        return status
    if self.tag == CURSOR_SECTION_DUE:
        self.last_value += unzigzag(told)
        value[0] = self.last_value
        return STATUS_OK
    value[0] = told
    return STATUS_CORRUPT if told == 0 or told > CURSOR_REDELIVERIES_MAX else STATUS_OK


cdef int section_reader_next(SectionReader* self, RestoredMessage* found) noexcept nogil:
    cdef uint64_t step = 0
    cdef uint64_t value = 0
    cdef int status
    while True:
        if not self.in_ledger:
            if byte_reader_left(&self.bytes) == 0:
                return STATUS_END
            status = next_ledger(self)
            if status:
                return status
        status = byte_reader_varint(&self.bytes, &step)
        if status:
            return status
        if step:
            break
        if self.next_message == 0:
            return STATUS_CORRUPT       # a ledger without a message is never written
        self.in_ledger = 0
    if step > <uint64_t>CURSOR_MESSAGE_END - self.next_message:
        return STATUS_CORRUPT
    status = read_value(self, &value)
    if status:
        return status
    self.next_message += step
    found.ledger_id = self.ledger_id
    found.message = self.next_message - 1
    found.value = value
    return STATUS_OK


cdef int section_check(uint32_t tag, const uint8_t* data, uint64_t size) noexcept nogil:
    cdef SectionReader reader
    cdef RestoredMessage found
    cdef int status = STATUS_OK
    section_reader_start(&reader, tag, data, size)
    while status == STATUS_OK:
        status = section_reader_next(&reader, &found)
    return STATUS_OK if status == STATUS_END else status


cdef void restored_messages_free(RestoredMessages* self) noexcept nogil:
    free(self.messages)
    memset(self, 0, sizeof(RestoredMessages))


cdef int put(RestoredMessages* self, const RestoredMessage* message) noexcept nogil:
    cdef uint64_t capacity
    cdef RestoredMessage* grown
    if self.count == self.capacity:
        capacity = 2 * self.capacity if self.capacity else FIRST_CAPACITY
        grown = <RestoredMessage*>realloc(self.messages, capacity * sizeof(RestoredMessage))
        if grown == NULL:
            return STATUS_NO_MEMORY
        self.messages = grown
        self.capacity = capacity
    self.messages[self.count] = message[0]
    self.count += 1
    return STATUS_OK


cdef int section_decode(uint32_t tag, const uint8_t* data, uint64_t size,
                        RestoredMessages* found) noexcept nogil:
    cdef SectionReader reader
    cdef RestoredMessage message
    cdef int status = STATUS_OK
    section_reader_start(&reader, tag, data, size)
    while status == STATUS_OK:
        status = section_reader_next(&reader, &message)
        if status == STATUS_OK:
            status = put(found, &message)
    return STATUS_OK if status == STATUS_END else status


# The tail over the section.

cdef int compare_runs(const void* one, const void* other) noexcept nogil:
    cdef const Redelivered* a = <const Redelivered*>one
    cdef const Redelivered* b = <const Redelivered*>other
    if a.ledger_id != b.ledger_id:
        return -1 if a.ledger_id < b.ledger_id else 1
    if a.first != b.first:
        return -1 if a.first < b.first else 1
    return 0


cdef int tail_walk_start(TailWalk* self, CursorTail* tail) noexcept nogil:
    cdef CursorRecord record
    cdef uint64_t wanted = 0
    cdef uint64_t slot
    cdef Redelivered* run
    memset(self, 0, sizeof(TailWalk))
    if tail == NULL:
        return STATUS_OK
    for slot in range(tail.used):
        if cursor_tail_read(tail, slot, &record) == STATUS_OK:
            wanted += record.kind == CURSOR_REDELIVERED
    if wanted == 0:
        return STATUS_OK
    self.runs = <Redelivered*>malloc(wanted * sizeof(Redelivered))
    self.heap = <uint64_t*>malloc(wanted * sizeof(uint64_t))
    if self.runs == NULL or self.heap == NULL:
        return STATUS_NO_MEMORY
    for slot in range(tail.used):
        if cursor_tail_read(tail, slot, &record) != STATUS_OK or (
                record.kind != CURSOR_REDELIVERED or self.run_count == wanted):
            continue
        run = &self.runs[self.run_count]
        run.ledger_id = record.ledger_id
        run.first = record.first
        run.end = record.first + record.count
        run.slot = slot
        run.count = record.redelivery_count
        self.run_count += 1
    qsort(self.runs, self.run_count, sizeof(Redelivered), compare_runs)
    return STATUS_OK


cdef void tail_walk_free(TailWalk* self) noexcept nogil:
    free(self.runs)
    free(self.heap)
    memset(self, 0, sizeof(TailWalk))


cdef void push_run(TailWalk* self, uint64_t index) noexcept nogil:
    cdef uint64_t at = self.heap_size
    cdef uint64_t above
    self.heap_size += 1
    while at:
        above = (at - 1) >> 1
        if self.runs[self.heap[above]].slot > self.runs[index].slot:
            break
        self.heap[at] = self.heap[above]
        at = above
    self.heap[at] = index


cdef void pop_run(TailWalk* self) noexcept nogil:
    cdef uint64_t at = 0
    cdef uint64_t below, moved
    self.heap_size -= 1
    moved = self.heap[self.heap_size]
    while True:
        below = 2 * at + 1
        if below >= self.heap_size:
            break
        if below + 1 < self.heap_size and (
                self.runs[self.heap[below + 1]].slot > self.runs[self.heap[below]].slot):
            below += 1
        if self.runs[self.heap[below]].slot < self.runs[moved].slot:
            break
        self.heap[at] = self.heap[below]
        at = below
    self.heap[at] = moved


cdef bint tail_walk_next(TailWalk* self, RestoredMessage* found) noexcept nogil:
    """The next message with a record, ascending; False: there is none."""
    while self.heap_size and self.runs[self.heap[0]].end <= self.message:
        pop_run(self)
    if self.heap_size == 0:
        if self.next_run == self.run_count:
            return False
        self.ledger_id = self.runs[self.next_run].ledger_id
        self.message = self.runs[self.next_run].first
    while self.next_run < self.run_count and (
            self.runs[self.next_run].ledger_id == self.ledger_id
            and self.runs[self.next_run].first == self.message):
        push_run(self, self.next_run)
        self.next_run += 1
    found.ledger_id = self.ledger_id
    found.message = self.message
    found.value = self.runs[self.heap[0]].count
    self.message += 1
    return True


cdef inline bint is_before(const RestoredMessage* one, const RestoredMessage* other) noexcept nogil:
    if one.ledger_id != other.ledger_id:
        return one.ledger_id < other.ledger_id
    return one.message < other.message


cdef int overlay(SectionReader* reader, TailWalk* walk, RestoredMessages* found) noexcept nogil:
    cdef RestoredMessage kept, recorded
    cdef int status
    cdef int kept_status = section_reader_next(reader, &kept)
    cdef bint is_recorded = tail_walk_next(walk, &recorded)
    while kept_status == STATUS_OK or (kept_status == STATUS_END and is_recorded):
        if kept_status == STATUS_OK and (not is_recorded or is_before(&kept, &recorded)):
            status = put(found, &kept)
            kept_status = section_reader_next(reader, &kept)
        else:
            if kept_status == STATUS_OK and not is_before(&recorded, &kept):
                kept_status = section_reader_next(reader, &kept)
            status = put(found, &recorded)
            is_recorded = tail_walk_next(walk, &recorded)
        if status:
            return status
    return STATUS_OK if kept_status == STATUS_END else kept_status


cdef int redeliveries_decode(const uint8_t* data, uint64_t size, CursorTail* tail,
                             RestoredMessages* found) noexcept nogil:
    cdef SectionReader reader
    cdef TailWalk walk
    cdef int status = tail_walk_start(&walk, tail)
    section_reader_start(&reader, CURSOR_SECTION_REDELIVERY, data, size)
    if status == STATUS_OK:
        status = overlay(&reader, &walk, found)
    tail_walk_free(&walk)
    return status
