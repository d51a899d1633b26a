"""Records which messages of a topic's ledgers are acknowledged. One thread at a time; see the
pxd."""

from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memmove, memset

from pulsarx._core.ack_bits cimport (
    AckBits, ack_bits_add, ack_bits_clamp, ack_bits_count, ack_bits_free, ack_bits_init,
    ack_bits_through,
)
from pulsarx._core.byte_reader cimport (
    ByteReader, byte_reader_left, byte_reader_start, byte_reader_varint,
)
from pulsarx._core.byte_writer cimport (
    ByteWriter, byte_writer_start, byte_writer_varint, varint_size,
)
from pulsarx._core.cursor_record cimport (
    CURSOR_MASK, CURSOR_MESSAGE_END, CURSOR_REDELIVERED, CURSOR_RUN, CURSOR_THROUGH, CursorRecord,
    cursor_ledger_decode, cursor_ledger_encode, cursor_ledger_size,
)
from pulsarx._core.invariant cimport invariant
from pulsarx._core.status cimport (
    STATUS_CORRUPT, STATUS_DUPLICATE, STATUS_NO_MEMORY, STATUS_OK, STATUS_OUT_OF_RANGE,
)


cdef void cursor_state_init(CursorState* self) noexcept nogil:
    memset(self, 0, sizeof(CursorState))


cdef void cursor_state_free(CursorState* self) noexcept nogil:
    cdef uint64_t at
    for at in range(self.ledger_count):
        ack_bits_free(&self.ledgers[at].bits)
    free(self.ledgers)
    cursor_state_init(self)


cdef uint64_t position_of(const CursorState* self, uint64_t ledger_id) noexcept nogil:
    """How many ledgers have a smaller id."""
    cdef uint64_t low = 0
    cdef uint64_t high = self.ledger_count
    cdef uint64_t middle
    while low < high:
        middle = (low + high) >> 1
        if self.ledgers[middle].ledger_id < ledger_id:
            low = middle + 1
        else:
            high = middle
    return low


cdef LedgerAcks* cursor_state_search(CursorState* self, uint64_t ledger_id) noexcept nogil:
    cdef uint64_t at = position_of(self, ledger_id)
    if at < self.ledger_count and self.ledgers[at].ledger_id == ledger_id:
        self.last = &self.ledgers[at]
        return self.last
    return NULL


cdef LedgerAcks* cursor_state_add(CursorState* self, uint64_t ledger_id) noexcept nogil:
    cdef uint64_t at = position_of(self, ledger_id)
    cdef uint64_t capacity
    cdef LedgerAcks* grown
    if at < self.ledger_count and self.ledgers[at].ledger_id == ledger_id:
        return &self.ledgers[at]
    if self.ledger_count == self.ledger_capacity:
        capacity = 2 * self.ledger_capacity if self.ledger_capacity else 2
        grown = <LedgerAcks*>realloc(self.ledgers, capacity * sizeof(LedgerAcks))
        if grown == NULL:
            return NULL
        self.ledgers = grown
        self.ledger_capacity = capacity
    self.last = NULL
    memmove(&self.ledgers[at + 1], &self.ledgers[at], (self.ledger_count - at) * sizeof(LedgerAcks))
    memset(&self.ledgers[at], 0, sizeof(LedgerAcks))
    self.ledgers[at].ledger_id = ledger_id
    self.ledgers[at].message_count = CURSOR_MESSAGE_END
    self.ledger_count += 1
    return &self.ledgers[at]


cdef void cursor_state_seal(CursorState* self, LedgerAcks* ledger,
                            uint64_t message_count) noexcept nogil:
    cdef uint64_t newly = 0
    ledger.message_count = message_count
    ledger.sealed = 1
    ack_bits_clamp(&ledger.bits, message_count)
    if ledger.ledger_id < self.acknowledged_below:
        ack_bits_through(&ledger.bits, message_count, &newly)


cdef void cursor_state_forget(CursorState* self, uint64_t below_ledger_id) noexcept nogil:
    cdef uint64_t count = position_of(self, below_ledger_id)
    cdef uint64_t at
    for at in range(count):
        ack_bits_free(&self.ledgers[at].bits)
    if count:
        memmove(self.ledgers, &self.ledgers[count],
                (self.ledger_count - count) * sizeof(LedgerAcks))
    self.ledger_count -= count
    self.last = NULL
    if below_ledger_id > self.acknowledged_below:
        self.acknowledged_below = below_ledger_id


cdef void cursor_state_forget_unused(CursorState* self, uint64_t above_ledger_id) noexcept nogil:
    cdef LedgerAcks* ledger
    while self.ledger_count > 0:
        ledger = &self.ledgers[self.ledger_count - 1]
        if ledger.ledger_id <= above_ledger_id or ack_bits_count(&ledger.bits):
            break
        ack_bits_free(&ledger.bits)
        self.ledger_count -= 1
        self.last = NULL


cdef int apply_mask(LedgerAcks* ledger, const CursorRecord* record) noexcept nogil:
    cdef uint64_t newly = 0
    cdef uint64_t bit
    cdef int status = STATUS_OK
    for bit in range(32):
        if record.count >> bit & 1:
            status = ack_bits_add(&ledger.bits, record.first + bit, 1, ledger.message_count, &newly)
            if status == STATUS_NO_MEMORY or status == STATUS_OUT_OF_RANGE:
                return status
    return STATUS_OK


cdef void finish_ledger(LedgerAcks* ledger) noexcept nogil:
    """All messages of the ledger are acknowledged: nothing but their number is of interest."""
    cdef uint64_t newly = 0
    if ledger.sealed:
        ack_bits_through(&ledger.bits, ledger.message_count, &newly)
    elif ledger.bits.beyond:
        ack_bits_clamp(&ledger.bits, ledger.bits.contiguous)


cdef int cursor_state_apply(CursorState* self, const CursorRecord* record) noexcept nogil:
    cdef LedgerAcks* ledger
    cdef uint64_t newly = 0
    cdef uint64_t at
    if record.ledger_id < self.acknowledged_below:
        return STATUS_DUPLICATE
    if record.kind == CURSOR_REDELIVERED:
        return STATUS_OK
    ledger = cursor_state_add(self, record.ledger_id)
    if ledger == NULL:
        return STATUS_NO_MEMORY
    if record.kind == CURSOR_MASK:
        return apply_mask(ledger, record)
    if record.kind == CURSOR_RUN:
        return ack_bits_add(&ledger.bits, record.first, record.count, ledger.message_count, &newly)
    if record.kind == CURSOR_THROUGH:
        ack_bits_through(&ledger.bits, record.first + record.count, &newly)
    at = position_of(self, self.acknowledged_below)
    while self.ledgers[at].ledger_id < record.ledger_id:
        finish_ledger(&self.ledgers[at])
        at += 1
    self.acknowledged_below = record.ledger_id
    return STATUS_OK


cdef void cursor_state_reset(CursorState* self, uint64_t ledger_id,
                             uint64_t message) noexcept nogil:
    cdef uint64_t at
    cdef LedgerAcks* ledger
    for at in range(self.ledger_count):
        ledger = &self.ledgers[at]
        if ledger.ledger_id < ledger_id:
            finish_ledger(ledger)
            continue
        ack_bits_free(&ledger.bits)
        if ledger.ledger_id == ledger_id:
            ledger.bits.contiguous = message
    self.acknowledged_below = ledger_id


cdef void cursor_state_mark_delete(CursorState* self, uint64_t* ledger_id,
                                   uint64_t* message) noexcept nogil:
    cdef uint64_t at = position_of(self, self.acknowledged_below)
    cdef LedgerAcks* ledger = NULL
    while at < self.ledger_count:
        ledger = &self.ledgers[at]
        if not ledger.sealed or ledger.bits.contiguous < ledger.message_count:
            break
        at += 1
        # Only with a ledger behind it: where all is acknowledged the position stays in the last
        # ledger.
        if at < self.ledger_count:
            self.acknowledged_below = self.ledgers[at].ledger_id
    if ledger == NULL:
        ledger_id[0] = self.acknowledged_below
        message[0] = 0
        return
    ledger_id[0] = ledger.ledger_id
    message[0] = ledger.bits.contiguous


cdef uint64_t cursor_state_base(const CursorState* self) noexcept nogil:
    cdef uint64_t at = position_of(self, self.acknowledged_below)
    return self.ledgers[at].ledger_id if at < self.ledger_count else self.acknowledged_below


cdef uint64_t cursor_state_size(const CursorState* self) noexcept nogil:
    cdef uint64_t first = position_of(self, self.acknowledged_below)
    cdef uint64_t size = varint_size(self.ledger_count - first)
    cdef uint64_t before = self.acknowledged_below
    cdef uint64_t at
    size += varint_size(self.acknowledged_below)
    for at in range(first, self.ledger_count):
        size += cursor_ledger_size(self.ledgers[at].ledger_id - before, &self.ledgers[at].bits)
        before = self.ledgers[at].ledger_id
    return size


cdef void cursor_state_encode(const CursorState* self, uint8_t* room, uint64_t size) noexcept nogil:
    cdef uint64_t first = position_of(self, self.acknowledged_below)
    cdef uint64_t before = self.acknowledged_below
    cdef uint64_t at
    cdef ByteWriter writer
    byte_writer_start(&writer, room, size)
    byte_writer_varint(&writer, self.acknowledged_below)
    byte_writer_varint(&writer, self.ledger_count - first)
    for at in range(first, self.ledger_count):
        cursor_ledger_encode(self.ledgers[at].ledger_id - before, &self.ledgers[at].bits, &writer)
        before = self.ledgers[at].ledger_id
    invariant(writer.at == writer.end)


cdef int decode_ledger(CursorState* self, ByteReader* reader, uint64_t* ledger_id) noexcept nogil:
    cdef AckBits bits
    cdef LedgerAcks* ledger
    cdef uint64_t delta = 0
    cdef int status
    ack_bits_init(&bits)
    status = cursor_ledger_decode(reader, &delta, &bits)
    if status == STATUS_OK:
        ledger_id[0] += delta
        ledger = cursor_state_add(self, ledger_id[0])
        if ledger != NULL:
            ack_bits_free(&ledger.bits)
            ledger.bits = bits
            return STATUS_OK
        status = STATUS_NO_MEMORY
    ack_bits_free(&bits)
    return status


cdef int cursor_state_decode(CursorState* self, const uint8_t* data, uint64_t size) noexcept nogil:
    cdef ByteReader reader
    cdef uint64_t count = 0
    cdef uint64_t ledger_id
    cdef int status
    byte_reader_start(&reader, data, size)
    status = byte_reader_varint(&reader, &self.acknowledged_below)
    if status == STATUS_OK:
        status = byte_reader_varint(&reader, &count)
    ledger_id = self.acknowledged_below
    while status == STATUS_OK and count:
        status = decode_ledger(self, &reader, &ledger_id)
        count -= 1
    if status == STATUS_OK and byte_reader_left(&reader):
        return STATUS_CORRUPT
    return status
