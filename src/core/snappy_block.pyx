"""Snappy: greedy matches of four bytes and more, found by a hash table of 64 KiB at a time."""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pulsarx._core.byte_reader cimport (
    ByteReader, byte_reader_left, byte_reader_start, byte_reader_take, byte_reader_varint,
)
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK

cdef enum:
    FRAGMENT_SIZE = 65536        # positions within one fit the table's 16 bits
    TABLE_SIZE_MIN = 256
    MARGIN = 15                  # bytes at the end of a fragment in which no match begins
    HASH_FACTOR = 0x1E35A7BD
    COPY_MAX = 64                # bytes of one copy
    LITERAL = 0                  # low bits of a tag
    COPY_1 = 1
    COPY_2 = 2

cdef extern from *:
    int trailing_zeros "__builtin_ctzll"(uint64_t value) noexcept nogil


cdef inline uint32_t load_u32(const uint8_t* at) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, at, 4)
    return value


cdef inline uint64_t load_u64(const uint8_t* at) noexcept nogil:
    cdef uint64_t value
    memcpy(&value, at, 8)
    return value


cdef inline uint32_t hash_of(const uint8_t* at, unsigned int shift) noexcept nogil:
    return (load_u32(at) * <uint32_t>HASH_FACTOR) >> shift


# Compressing --------------------------------------------------------------------------------------


cdef size_t snappy_block_bound(size_t plain_size) noexcept nogil:
    return 32 + plain_size + plain_size // 6 if plain_size <= <size_t>0xFFFFFFFFU else 0


cdef inline uint8_t* literal_write(uint8_t* to, const uint8_t* plain, size_t size,
                                   bint is_last) noexcept nogil:
    """size: 1..FRAGMENT_SIZE. Those before a match have 16 bytes to read, and all have the room."""
    cdef size_t less = size - 1
    if less < 16 and not is_last:
        to[0] = <uint8_t>(less << 2)
        memcpy(to + 1, plain, 16)        # what is too much is written over
        return to + 1 + size
    if less < 60:
        to[0] = <uint8_t>(less << 2)
        to += 1
    elif less < 256:
        to[0] = 60 << 2
        to[1] = <uint8_t>less
        to += 2
    else:
        to[0] = 61 << 2
        to[1] = <uint8_t>less
        to[2] = <uint8_t>(less >> 8)
        to += 3
    memcpy(to, plain, size)
    return to + size


cdef inline uint8_t* copy_2_write(uint8_t* to, size_t offset, size_t size) noexcept nogil:
    to[0] = <uint8_t>(COPY_2 | ((size - 1) << 2))
    to[1] = <uint8_t>offset
    to[2] = <uint8_t>(offset >> 8)
    return to + 3


cdef inline uint8_t* match_write(uint8_t* to, size_t offset, size_t size) noexcept nogil:
    """A match of 4 bytes and more, in copies of which none is shorter than that."""
    while size >= COPY_MAX + 4:
        to = copy_2_write(to, offset, COPY_MAX)
        size -= COPY_MAX
    if size > COPY_MAX:
        to = copy_2_write(to, offset, COPY_MAX - 4)
        size -= COPY_MAX - 4
    if size >= 12 or offset >= 2048:
        return copy_2_write(to, offset, size)
    to[0] = <uint8_t>(COPY_1 | ((size - 4) << 2) | ((offset >> 8) << 5))
    to[1] = <uint8_t>offset
    return to + 2


cdef inline size_t match_size(const uint8_t* before, const uint8_t* at,
                              const uint8_t* end) noexcept nogil:
    """How many bytes from `at` to `end` are as those from `before`."""
    cdef const uint8_t* start = at
    cdef uint64_t differ
    while end - at >= 8:
        differ = load_u64(at) ^ load_u64(before)
        if differ:
            return <size_t>(at - start) + (<size_t>trailing_zeros(differ) >> 3)
        at += 8
        before += 8
    while at < end and at[0] == before[0]:
        at += 1
        before += 1
    return <size_t>(at - start)


cdef inline const uint8_t* match_find(const uint8_t* base, const uint8_t** position,
                                      const uint8_t* limit, uint16_t* table,
                                      unsigned int shift) noexcept nogil:
    """Move the position to the next match, whose earlier bytes are answered; NULL: there is none.

    The longer nothing is found, the longer the steps: what cannot be compressed is passed quickly.
    """
    cdef const uint8_t* at = position[0]
    cdef const uint8_t* following
    cdef const uint8_t* before
    cdef uint32_t skip = 32
    cdef uint32_t slot
    cdef uint32_t next_slot = hash_of(at, shift)
    while True:
        slot = next_slot
        following = at + (skip >> 5)
        skip += skip >> 5
        if following > limit:
            return NULL
        next_slot = hash_of(following, shift)
        before = base + table[slot]
        table[slot] = <uint16_t>(at - base)
        if load_u32(at) == load_u32(before):
            position[0] = at
            return before
        at = following


cdef uint8_t* fragment_compress(const uint8_t* base, size_t size, uint8_t* to,
                                uint16_t* table) noexcept nogil:
    cdef const uint8_t* end = base + size
    cdef const uint8_t* limit = end - MARGIN
    cdef const uint8_t* emitted = base
    cdef const uint8_t* at = base + 1
    cdef const uint8_t* before
    cdef size_t matched
    cdef uint32_t slot
    cdef unsigned int shift = 24
    cdef size_t table_size = TABLE_SIZE_MIN
    while table_size < SNAPPY_TABLE_SIZE and table_size < size:
        table_size <<= 1
        shift -= 1
    if size > MARGIN:
        memset(table, 0, table_size * sizeof(uint16_t))
        while at <= limit:
            before = match_find(base, &at, limit, table, shift)
            if before == NULL:
                break
            to = literal_write(to, emitted, <size_t>(at - emitted), False)
            while True:
                matched = 4 + match_size(before + 4, at + 4, end)
                to = match_write(to, <size_t>(at - before), matched)
                at += matched
                emitted = at
                if at >= limit:
                    break
                table[hash_of(at - 1, shift)] = <uint16_t>(at - 1 - base)
                slot = hash_of(at, shift)
                before = base + table[slot]
                table[slot] = <uint16_t>(at - base)
                if load_u32(at) != load_u32(before):
                    break
            at += 1
    if emitted < end:
        to = literal_write(to, emitted, <size_t>(end - emitted), True)
    return to


cdef size_t snappy_block_compress(const uint8_t* plain, size_t plain_size, uint8_t* room,
                                  uint16_t* table) noexcept nogil:
    cdef uint8_t* to = room
    cdef size_t left = plain_size
    cdef size_t size
    while left >= 0x80:
        to[0] = <uint8_t>(left | 0x80)
        to += 1
        left >>= 7
    to[0] = <uint8_t>left
    to += 1
    while plain_size:
        size = plain_size if plain_size < FRAGMENT_SIZE else FRAGMENT_SIZE
        to = fragment_compress(plain, size, to, table)
        plain += size
        plain_size -= size
    return <size_t>(to - room)


# Decompressing ------------------------------------------------------------------------------------

# Of each tag of a copy: its size, the upper bits of its offset, and how many bytes have the lower
# ones. What is looked up needs no branch, which no processor could foresee.
cdef uint16_t COPIES[256]

cdef enum:
    COPY_SIZE = 0xFF
    COPY_OFFSET = 0x700
    COPY_BEHIND = 11             # a shift
    LITERAL_FAST = 16
    AHEAD = 1 + LITERAL_FAST     # bytes of a block that are read without looking for its end


cdef void copies_prepare() noexcept nogil:
    cdef unsigned int tag, size
    for tag in range(256):
        size = (tag >> 2) + 1
        if tag & 3 == COPY_1:
            COPIES[tag] = <uint16_t>(4 + ((tag >> 2) & 7) | (tag >> 5) << 8 | 1 << COPY_BEHIND)
        elif tag & 3 == COPY_2:
            COPIES[tag] = <uint16_t>(size | 2 << COPY_BEHIND)
        else:
            COPIES[tag] = <uint16_t>(size | 4 << COPY_BEHIND)


cdef int literal_undo(ByteReader* reader, unsigned int tag, uint8_t** to,
                      const uint8_t* end) noexcept nogil:
    cdef size_t size = (tag >> 2) + 1
    cdef const uint8_t* bytes
    cdef unsigned int index, count
    if size > 60:
        count = <unsigned int>size - 60
        if byte_reader_take(reader, count, &bytes):
            return STATUS_CORRUPT
        size = 1
        for index in range(count):
            size += <size_t>bytes[index] << (8 * index)
    if size > <size_t>(end - to[0]) or byte_reader_take(reader, size, &bytes):
        return STATUS_CORRUPT
    memcpy(to[0], bytes, size)
    to[0] += size
    return STATUS_OK


cdef inline int copy_undo(size_t offset, size_t size, const uint8_t* room, uint8_t** to,
                          const uint8_t* end) noexcept nogil:
    """size: 1..COPY_MAX."""
    cdef uint8_t* at = to[0]
    cdef const uint8_t* before
    cdef uint8_t* behind
    if offset == 0 or offset > <size_t>(at - room) or size > <size_t>(end - at):
        return STATUS_CORRUPT
    before = at - offset
    behind = at + size
    to[0] = behind
    if offset >= 16 and end - at >= COPY_MAX:
        memcpy(at, before, 16)
        if size > 16:
            memcpy(at + 16, before + 16, 16)
            if size > 32:
                memcpy(at + 32, before + 32, 16)
                memcpy(at + 48, before + 48, 16)
    elif offset >= 8 and end - at >= COPY_MAX:
        while at < behind:
            memcpy(at, before, 8)
            at += 8
            before += 8
    else:
        while at < behind:               # a copy may repeat what it writes
            at[0] = before[0]
            at += 1
            before += 1
    return STATUS_OK


cdef int element_undo(ByteReader* reader, const uint8_t* room, uint8_t** to,
                      const uint8_t* end) noexcept nogil:
    """One element, of which the tag at least is there."""
    cdef const uint8_t* bytes
    cdef unsigned int tag = reader.at[0]
    cdef unsigned int copy, index
    cdef size_t offset = 0
    reader.at += 1
    if tag & 3 == LITERAL:
        return literal_undo(reader, tag, to, end)
    copy = COPIES[tag]
    if byte_reader_take(reader, copy >> COPY_BEHIND, &bytes):
        return STATUS_CORRUPT
    for index in range(copy >> COPY_BEHIND):
        offset |= <size_t>bytes[index] << (8 * index)
    return copy_undo(offset | (copy & COPY_OFFSET), copy & COPY_SIZE, room, to, end)


cdef int elements_undo(ByteReader* reader, const uint8_t* room, uint8_t** to,
                       const uint8_t* end) noexcept nogil:
    """All in front of the last bytes, but no long literal: as many as there are in a row."""
    cdef const uint8_t* at = reader.at
    cdef const uint8_t* limit = reader.end - AHEAD
    cdef uint8_t* plain = to[0]
    cdef uint64_t offset
    cdef unsigned int tag, copy, count
    cdef int status = STATUS_OK
    while at <= limit and end - plain >= LITERAL_FAST:
        tag = at[0]
        if tag & 3:
            copy = COPIES[tag]
            count = copy >> COPY_BEHIND
            offset = load_u32(at + 1) & ((<uint64_t>1 << (8 * count)) - 1)
            at += 1 + count
            status = copy_undo(<size_t>offset | (copy & COPY_OFFSET), copy & COPY_SIZE, room,
                               &plain, end)
            if status:
                break
        elif tag < LITERAL_FAST << 2:
            memcpy(plain, at + 1, LITERAL_FAST)      # what is too much is written over
            at += 2 + (tag >> 2)
            plain += 1 + (tag >> 2)
        else:
            break
    reader.at = at
    to[0] = plain
    return status


cdef int snappy_block_decompress(const uint8_t* block, size_t block_size, uint8_t* room,
                                 size_t plain_size) noexcept nogil:
    cdef ByteReader reader
    cdef uint8_t* to = room
    cdef const uint8_t* end = room + plain_size
    cdef uint64_t stated = 0
    byte_reader_start(&reader, block, block_size)
    if byte_reader_varint(&reader, &stated) or stated != plain_size:
        return STATUS_CORRUPT
    while byte_reader_left(&reader):
        if byte_reader_left(&reader) >= AHEAD and elements_undo(&reader, room, &to, end):
            return STATUS_CORRUPT
        if byte_reader_left(&reader) and element_undo(&reader, room, &to, end):
            return STATUS_CORRUPT
    return STATUS_OK if to == end else STATUS_CORRUPT


# At import, which comes before any call: a module that cimports this one imports it first.
copies_prepare()
