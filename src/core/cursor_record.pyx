"""Header, snapshot and tail of a cursor file. One thread at a time; the layout is in
FORMAT.md.

Little endian throughout, as the processors this runs on.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from pulsarx._core.ack_bits cimport (
    ACK_RUN_CLEAR, ACK_RUN_END, ACK_RUN_MIXED, ACK_RUN_SET, AckBits, ack_bits_add, ack_bits_has,
    ack_bits_next_run,
    ack_bits_put_word,
)
from pulsarx._core.atomic cimport atomic_load_u64, atomic_store_u64
from pulsarx._core.byte_reader cimport ByteReader, byte_reader_take, byte_reader_varint
from pulsarx._core.byte_writer cimport (
    ByteWriter, byte_writer_bytes, byte_writer_varint, varint_size,
)
from pulsarx._core.crc32c cimport crc32c, crc32c_u64
from pulsarx._core.invariant cimport invariant
from pulsarx._core.limits cimport CURSOR_HEADER_SIZE
from pulsarx._core.status cimport (
    STATUS_CORRUPT, STATUS_DUPLICATE, STATUS_END, STATUS_FOLD, STATUS_FOREIGN, STATUS_OK,
    STATUS_TRUNCATED,
    STATUS_UNBORN, STATUS_UNSUPPORTED,
)

cdef extern from *:
    """
    #define CURSOR_MAGIC "PXCURSOR"
    #define CURSOR_VERSION 1u
    typedef struct {
        uint8_t magic[8];
        uint32_t version, checksum;
        uint8_t identity[16];
        uint64_t generation, base_ledger_id, snapshot_size, tail_offset, tail_size;
        uint32_t snapshot_checksum, slot_size;
    } CursorHeaderBytes;
    _Static_assert(sizeof(CursorHeaderBytes) == 80, "the header is laid out without padding");
    """
    const char* CURSOR_MAGIC
    const uint32_t CURSOR_VERSION
    ctypedef struct CursorHeaderBytes:
        uint8_t magic[8]
        uint32_t version
        uint32_t checksum
        uint8_t identity[16]
        uint64_t generation
        uint64_t base_ledger_id
        uint64_t snapshot_size
        uint64_t tail_offset
        uint64_t tail_size
        uint32_t snapshot_checksum
        uint32_t slot_size


cdef uint32_t header_checksum(const uint8_t* data) noexcept nogil:
    """Over the whole block but the checksum itself, in this and every later version."""
    return crc32c(crc32c(0, data, 12), data + 16, CURSOR_HEADER_SIZE - 16)


cdef void cursor_header_encode(const CursorHeader* header, const uint8_t* label,
                               size_t label_size, uint8_t* room) noexcept nogil:
    cdef CursorHeaderBytes packed
    invariant(label_size <= CURSOR_LABEL_SIZE)
    memset(&packed, 0, sizeof(packed))
    memcpy(packed.magic, CURSOR_MAGIC, 8)
    packed.version = CURSOR_VERSION
    memcpy(packed.identity, header.identity, CURSOR_IDENTITY_SIZE)
    packed.generation = header.generation
    packed.base_ledger_id = header.base_ledger_id
    packed.snapshot_size = header.snapshot_size
    packed.tail_offset = header.tail_offset
    packed.tail_size = header.tail_size
    packed.snapshot_checksum = header.snapshot_checksum
    packed.slot_size = CURSOR_SLOT_SIZE
    memset(room, 0, CURSOR_HEADER_SIZE)
    memcpy(room, &packed, sizeof(packed))
    if label_size:
        memcpy(room + CURSOR_LABEL_OFFSET, label, label_size)
    packed.checksum = header_checksum(room)
    memcpy(room, &packed, sizeof(packed))


cdef bint is_blank(const uint8_t* data) noexcept nogil:
    cdef size_t at
    for at in range(CURSOR_HEADER_SIZE):
        if data[at]:
            return False
    return True


cdef int cursor_header_decode(const uint8_t* data, uint64_t file_size,
                              CursorHeader* header) noexcept nogil:
    cdef CursorHeaderBytes packed
    if file_size < CURSOR_HEADER_SIZE:
        return STATUS_TRUNCATED
    memcpy(&packed, data, sizeof(packed))
    if memcmp(packed.magic, CURSOR_MAGIC, 8) != 0:
        return STATUS_UNBORN if is_blank(data) else STATUS_FOREIGN
    if packed.checksum != header_checksum(data):
        return STATUS_CORRUPT
    if packed.version != CURSOR_VERSION:
        return STATUS_UNSUPPORTED
    if packed.slot_size != CURSOR_SLOT_SIZE or packed.tail_size > CURSOR_TAIL_SIZE_MAX:
        return STATUS_CORRUPT
    if packed.tail_size % CURSOR_BLOCK_SIZE or packed.tail_offset % CURSOR_BLOCK_SIZE:
        return STATUS_CORRUPT
    if packed.tail_offset < CURSOR_HEADER_SIZE:
        return STATUS_CORRUPT
    if packed.snapshot_size > packed.tail_offset - CURSOR_HEADER_SIZE:
        return STATUS_CORRUPT
    if packed.snapshot_size > file_size - CURSOR_HEADER_SIZE:
        return STATUS_TRUNCATED
    memcpy(header.identity, packed.identity, CURSOR_IDENTITY_SIZE)
    header.generation = packed.generation
    header.base_ledger_id = packed.base_ledger_id
    header.snapshot_size = packed.snapshot_size
    header.tail_offset = packed.tail_offset
    header.tail_size = packed.tail_size
    header.snapshot_checksum = packed.snapshot_checksum
    return STATUS_OK


cdef uint32_t cursor_seed(const CursorHeader* header) noexcept nogil:
    return crc32c_u64(crc32c(0, header.identity, CURSOR_IDENTITY_SIZE), header.generation)


cdef void cursor_tail_start(CursorTail* self, const CursorHeader* header, uint64_t* slots,
                            uint64_t slot_count) noexcept nogil:
    memset(self, 0, sizeof(CursorTail))
    self.slots = slots
    self.capacity = slot_count
    if slot_count & (slot_count - 1) == 0 and slot_count:
        self.home_mask = slot_count - 1
    self.base_ledger_id = header.base_ledger_id
    self.seed = cursor_seed(header)


cdef inline uint64_t checked_count(uint32_t checksum, uint64_t count, uint64_t slot) noexcept nogil:
    """Word 1: the count, and the checksum of word 0, the count and the slot."""
    return count | <uint64_t>crc32c_u64(checksum, count | slot << 32) << 32


cdef int cursor_tail_read(CursorTail* self, uint64_t slot, CursorRecord* record) noexcept nogil:
    cdef uint64_t word1 = atomic_load_u64(self.slots + 2 * slot + 1)
    cdef uint64_t word0 = self.slots[2 * slot]
    cdef uint64_t count = <uint32_t>word1
    cdef uint64_t first = word0 & (<uint64_t>CURSOR_MESSAGE_END - 1)
    cdef uint64_t redeliveries = 0
    cdef uint32_t kind = <uint32_t>(word0 >> 61)
    if word1 == 0:
        return STATUS_END
    invariant(slot < self.capacity)
    # A damaged slot is not written again either: it stays to be reported.
    if slot >= self.used and (kind != CURSOR_MASK or slot == self.used):
        self.used = slot + 1
    if word1 != checked_count(crc32c_u64(self.seed, word0), count, slot):
        return STATUS_CORRUPT
    if kind < CURSOR_RUN or kind > CURSOR_REDELIVERED or count == 0:
        return STATUS_CORRUPT
    if kind == CURSOR_REDELIVERED:
        redeliveries = count & CURSOR_REDELIVERIES_MAX
        count = (count >> 16) + 1
        if redeliveries == 0:
            return STATUS_CORRUPT
    if kind == CURSOR_MASK and first & 31:
        return STATUS_CORRUPT
    if kind != CURSOR_MASK and first + count > <uint64_t>CURSOR_MESSAGE_END:
        return STATUS_CORRUPT
    record.redelivery_count = <uint32_t>redeliveries
    record.kind = kind
    record.ledger_id = self.base_ledger_id + (word0 >> 37 & (CURSOR_LEDGER_SPAN - 1))
    record.first = first
    record.count = count
    return STATUS_OK


cdef inline uint64_t word0_of(const CursorTail* self, uint32_t kind, uint64_t ledger_id,
                              uint64_t first) noexcept nogil:
    return <uint64_t>kind << 61 | (ledger_id - self.base_ledger_id) << 37 | first


cdef inline uint32_t put_record(CursorTail* self, uint64_t slot, uint64_t word0,
                                uint64_t count) noexcept nogil:
    """Write into a free slot; answers the checksum of word 0."""
    cdef uint32_t checksum = crc32c_u64(self.seed, word0)
    self.slots[2 * slot] = word0
    # Word 1 makes it a record: a process killed before this store has not acknowledged.
    atomic_store_u64(self.slots + 2 * slot + 1, checked_count(checksum, count, slot))
    while self.used < self.capacity and self.slots[2 * self.used + 1]:
        self.used += 1
    return checksum


cdef int cursor_tail_append(CursorTail* self, uint32_t kind, uint64_t ledger_id, uint64_t first,
                            uint64_t count) noexcept nogil:
    if cursor_tail_extends(self, kind, ledger_id, first, count):
        self.last_end = first + count
        atomic_store_u64(self.slots + 2 * self.last_slot + 1,
                         checked_count(self.last_checksum, self.last_end - self.last_first,
                                       self.last_slot))
        return STATUS_OK
    if not cursor_tail_has_room(self, ledger_id):
        return STATUS_FOLD
    invariant(count - 1 < CURSOR_RUN_MAX and first + count <= <uint64_t>CURSOR_MESSAGE_END)
    self.last_slot = self.used
    self.last_checksum = put_record(self, self.used,
                                    word0_of(self, kind, ledger_id, first), count)
    self.last_kind = kind
    self.last_ledger_id = ledger_id
    self.last_first = first
    self.last_end = first + count
    return STATUS_OK


cdef int cursor_tail_scatter(CursorTail* self, uint64_t ledger_id, uint64_t first, uint64_t count,
                             uint32_t held, bint only_known) noexcept nogil:
    cdef uint64_t shift = first & 31
    cdef uint64_t group = first >> 5
    cdef uint64_t home = (group ^ ledger_id << 5) & self.home_mask
    cdef uint64_t word0
    if self.home_mask == 0 or count > 32 - shift:
        return STATUS_END
    word0 = word0_of(self, CURSOR_MASK, ledger_id, first - shift)
    if self.slots[2 * home + 1] and self.slots[2 * home] == word0:
        atomic_store_u64(self.slots + 2 * home + 1,
                         checked_count(crc32c_u64(self.seed, word0), held, home))
        return STATUS_OK
    if only_known:
        return STATUS_END
    if not cursor_tail_has_room(self, ledger_id):
        return STATUS_FOLD
    if self.slots[2 * home + 1]:
        home = self.used        # the slot is another's: this record will not be found again
    put_record(self, home, word0, held)
    return STATUS_OK


cdef int cursor_tail_redelivered(CursorTail* self, uint64_t ledger_id, uint64_t message,
                                 uint32_t redelivery_count) noexcept nogil:
    cdef uint64_t run = message - self.redelivered_first
    if redelivery_count == self.redelivered_count and message == self.redelivered_end and (
            ledger_id == self.redelivered_ledger_id and run < CURSOR_REDELIVERED_RUN_MAX):
        self.redelivered_end = message + 1
        atomic_store_u64(self.slots + 2 * self.redelivered_slot + 1,
                         checked_count(self.redelivered_checksum, run << 16 | redelivery_count,
                                       self.redelivered_slot))
        return STATUS_OK
    if not cursor_tail_has_room(self, ledger_id):
        return STATUS_FOLD
    invariant(redelivery_count - 1 < CURSOR_REDELIVERIES_MAX)
    self.redelivered_slot = self.used
    self.redelivered_checksum = put_record(
        self, self.used, word0_of(self, CURSOR_REDELIVERED, ledger_id, message), redelivery_count)
    self.redelivered_count = redelivery_count
    self.redelivered_ledger_id = ledger_id
    self.redelivered_first = message
    self.redelivered_end = message + 1
    return STATUS_OK


cdef void cursor_tail_end(CursorTail* self) noexcept nogil:
    self.slots = NULL
    self.capacity = 0
    self.last_kind = 0
    self.redelivered_count = 0
    self.home_mask = 0


cdef uint64_t cursor_ledger_size(uint64_t ledger_id_delta, const AckBits* bits) noexcept nogil:
    cdef uint64_t size = varint_size(ledger_id_delta) + varint_size(bits.contiguous) + 1
    cdef uint64_t word = 0
    cdef uint64_t count = 0
    cdef const uint64_t* words = NULL
    cdef int kind
    while True:
        kind = ack_bits_next_run(bits, &word, &words, &count)
        if kind == ACK_RUN_END:
            return size
        size += varint_size(count << 2 | <uint64_t>kind)
        if kind == ACK_RUN_MIXED:
            size += count * 8
        word += count


cdef void cursor_ledger_encode(uint64_t ledger_id_delta, const AckBits* bits,
                               ByteWriter* writer) noexcept nogil:
    cdef uint64_t word = 0
    cdef uint64_t count = 0
    cdef const uint64_t* words = NULL
    cdef int kind
    byte_writer_varint(writer, ledger_id_delta)
    byte_writer_varint(writer, bits.contiguous)
    while True:
        kind = ack_bits_next_run(bits, &word, &words, &count)
        if kind == ACK_RUN_END:
            break
        byte_writer_varint(writer, count << 2 | <uint64_t>kind)
        if kind == ACK_RUN_MIXED:
            byte_writer_bytes(writer, <const uint8_t*>words, count * 8)
        word += count
    byte_writer_varint(writer, ACK_RUN_END)


cdef int put_words(AckBits* bits, uint64_t word, ByteReader* reader, uint64_t count) noexcept nogil:
    cdef const uint8_t* raw = NULL
    cdef uint64_t at, held
    cdef int status = byte_reader_take(reader, count * 8, &raw)
    if status:
        return status
    # From the end, so that the bitmap is sized once.
    for at in range(count, 0, -1):
        memcpy(&held, raw + 8 * (at - 1), 8)
        status = ack_bits_put_word(bits, word + at - 1, held)
        if status:
            return status
    return STATUS_OK


cdef int cursor_ledger_decode(ByteReader* reader, uint64_t* ledger_id_delta,
                              AckBits* bits) noexcept nogil:
    cdef uint64_t contiguous = 0
    cdef uint64_t token = 0
    cdef uint64_t newly = 0
    cdef uint64_t word, count, first
    cdef int status = byte_reader_varint(reader, ledger_id_delta)
    if status == STATUS_OK:
        status = byte_reader_varint(reader, &contiguous)
    if status:
        return status
    if contiguous > <uint64_t>CURSOR_MESSAGE_END:
        return STATUS_CORRUPT
    bits.contiguous = contiguous
    word = contiguous >> 6
    while True:
        status = byte_reader_varint(reader, &token)
        if status:
            return status
        count = token >> 2
        if token == ACK_RUN_END:
            return STATUS_CORRUPT if ack_bits_has(bits, contiguous) else STATUS_OK
        if count == 0 or count > (<uint64_t>CURSOR_MESSAGE_END >> 6) - word:
            return STATUS_CORRUPT
        if token & 3 == ACK_RUN_MIXED:
            status = put_words(bits, word, reader, count)
        elif token & 3 == ACK_RUN_SET:
            first = word << 6
            if first <= contiguous:
                return STATUS_CORRUPT
            status = ack_bits_add(bits, first, count << 6, CURSOR_MESSAGE_END, &newly)
        elif token & 3 != ACK_RUN_CLEAR:
            status = STATUS_CORRUPT
        if status:
            return STATUS_CORRUPT if status == STATUS_DUPLICATE else status
        word += count
