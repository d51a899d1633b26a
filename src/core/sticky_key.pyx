"""Body of sticky_key.pxd: one rule for the sticky key, in three forms."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pulsarx._core.message_metadata cimport MessageMetadata
from pulsarx._core.murmur3 cimport murmur3_32, murmur3_blocks, murmur3_end
from pulsarx._core.single_metadata cimport (
    METADATA_KEY_BASE64, METADATA_ORDERING_KEY, METADATA_PARTITION_KEY, SingleMetadata,
    single_metadata_decode,
)
from pulsarx._core.status cimport STATUS_OK

cdef enum:
    TAG_PARTITION_KEY = 0x12        # fields of SingleMessageMetadata
    TAG_PAYLOAD_SIZE = 0x18
    TAG_SEQUENCE_ID = 0x40
    USUAL_REST_MAX = 17             # payload size and sequence id at their longest
    NO_SEXTET = 64
    CHARS_A_STEP = 64               # decoded at once: 48 bytes, twelve blocks of the hash
    BYTES_A_STEP = 48
    DIGITS_MAX = 21                 # of 64 bits, and "-"


cdef inline uint32_t sextet_of(uint8_t char) noexcept nogil:
    if 0x41 <= char <= 0x5A:
        return char - 0x41
    if 0x61 <= char <= 0x7A:
        return char - 0x61 + 26
    if 0x30 <= char <= 0x39:
        return char - 0x30 + 52
    if char == 0x2B:
        return 62
    return 63 if char == 0x2F else NO_SEXTET


cdef bint decode_step(const uint8_t* chars, uint32_t size, uint8_t* bytes) noexcept nogil:
    """Decode up to CHARS_A_STEP characters without padding into size * 6 / 8 bytes; False: not
    base64. Bits left over at the end are ignored, as Java does."""
    cdef uint32_t bits = 0
    cdef uint32_t pending = 0
    cdef uint32_t index, sextet
    for index in range(size):
        sextet = sextet_of(chars[index])
        if sextet == NO_SEXTET:
            return False
        bits = bits << 6 | sextet
        pending += 6
        if pending >= 8:
            pending -= 8
            bytes[0] = <uint8_t>(bits >> pending)
            bytes += 1
    return True


cdef uint32_t hash_of_base64(const uint8_t* key, uint32_t size) noexcept nogil:
    """The hash of the bytes that a base64 key stands for, padded to four characters or not."""
    cdef uint8_t[BYTES_A_STEP] bytes
    cdef uint32_t hashed = 0
    cdef uint32_t at = 0
    cdef uint32_t chars = size
    cdef uint32_t rest
    if size & 3 == 0 and size and key[size - 1] == 0x3D:
        chars -= 2 if key[size - 2] == 0x3D else 1
    if chars & 3 == 1:
        return murmur3_32(0, key, size)
    while chars - at > CHARS_A_STEP:
        if not decode_step(key + at, CHARS_A_STEP, bytes):
            return murmur3_32(0, key, size)
        hashed = murmur3_blocks(hashed, bytes, BYTES_A_STEP)
        at += CHARS_A_STEP
    if not decode_step(key + at, chars - at, bytes):
        return murmur3_32(0, key, size)
    rest = (chars - at) * 6 >> 3
    hashed = murmur3_blocks(hashed, bytes, rest & ~<uint32_t>3)
    return murmur3_end(hashed, bytes + (rest & ~<uint32_t>3), <size_t>chars * 6 >> 3)


cdef uint32_t sticky_key_decode(const uint8_t* key, uint32_t size, uint8_t* bytes) noexcept nogil:
    cdef uint32_t chars = size
    if size & 3 == 0 and size and key[size - 1] == 0x3D:
        chars -= 2 if key[size - 2] == 0x3D else 1
    if chars & 3 == 1 or not decode_step(key, chars, bytes):
        memcpy(bytes, key, size)
        return size
    return <uint32_t>(<uint64_t>chars * 6 >> 3)


cdef inline uint32_t hash_of_keys(uint32_t flags, const uint8_t* ordering_key,
                                  uint32_t ordering_key_size, const uint8_t* partition_key,
                                  uint32_t partition_key_size) noexcept nogil:
    if flags & METADATA_ORDERING_KEY:
        return murmur3_32(0, ordering_key, ordering_key_size)
    if flags & METADATA_PARTITION_KEY:
        if flags & METADATA_KEY_BASE64:
            return hash_of_base64(partition_key, partition_key_size)
        return murmur3_32(0, partition_key, partition_key_size)
    return STICKY_NON_KEY


cdef uint32_t sticky_key_hash(const SingleMetadata* metadata) noexcept nogil:
    return hash_of_keys(metadata.flags, metadata.ordering_key, metadata.ordering_key_size,
                        metadata.partition_key, metadata.partition_key_size)


cdef uint32_t sticky_key_of_entry(const MessageMetadata* metadata) noexcept nogil:
    return hash_of_keys(metadata.flags, metadata.ordering_key, metadata.ordering_key_size,
                        metadata.partition_key, metadata.partition_key_size)


cdef uint32_t sticky_key_spread(const MessageMetadata* metadata) noexcept nogil:
    cdef uint8_t[DIGITS_MAX] digits
    cdef uint8_t[BYTES_A_STEP] block
    cdef uint64_t left = metadata.sequence_id
    cdef uint32_t size = metadata.producer_name_size
    cdef uint32_t whole = size & ~<uint32_t>3
    cdef uint32_t count = 0
    cdef uint32_t at = DIGITS_MAX
    cdef uint32_t hashed = murmur3_blocks(0, metadata.producer_name, whole)
    while True:
        at -= 1
        digits[at] = <uint8_t>(0x30 + left % 10)
        left //= 10
        if left == 0:
            break
    at -= 1
    digits[at] = 0x2D
    # What is left of the name, "-" and the digits: 3 + 21 bytes at most.
    while whole + count < size:
        block[count] = metadata.producer_name[whole + count]
        count += 1
    while at < DIGITS_MAX:
        block[count] = digits[at]
        count += 1
        at += 1
    hashed = murmur3_blocks(hashed, block, count & ~<uint32_t>3)
    return murmur3_end(hashed, block + (count & ~<uint32_t>3), <size_t>whole + count)


cdef inline const uint8_t* behind_varint(const uint8_t* at, const uint8_t* end) noexcept nogil:
    """NULL: it does not end."""
    while at < end:
        if at[0] < 0x80:
            return at + 1
        at += 1
    return NULL


cdef inline bint hash_of_usual(const uint8_t* at, const uint8_t* end,
                               uint32_t* hash) noexcept nogil:
    """The hash from [key] payload size [sequence id], as our encoder writes them. False: it is more
    than that, to be read in full."""
    cdef const uint8_t* key = NULL
    cdef uint32_t key_size = 0
    if end - at >= 2 and at[0] == TAG_PARTITION_KEY and at[1] < 0x80:
        key_size = at[1]
        if key_size > end - at - 2:
            return False
        key = at + 2
        at = key + key_size
    if end - at < 2 or at[0] != TAG_PAYLOAD_SIZE or end - at > USUAL_REST_MAX:
        return False
    at = behind_varint(at + 1, end)
    if at != end:
        if at == NULL or at[0] != TAG_SEQUENCE_ID or behind_varint(at + 1, end) != end:
            return False
    hash[0] = STICKY_NON_KEY
    if key != NULL:
        hash[0] = murmur3_32(0, key, key_size)
    return True


cdef int sticky_key_of_encoded(const uint8_t* encoded_metadata, uint32_t size,
                               uint32_t* hash) noexcept nogil:
    cdef SingleMetadata metadata
    cdef int status
    if hash_of_usual(encoded_metadata, encoded_metadata + size, hash):
        return STATUS_OK
    status = single_metadata_decode(encoded_metadata, size, &metadata)
    if status != STATUS_OK:
        return status
    hash[0] = sticky_key_hash(&metadata)
    return STATUS_OK
