"""Java's String.hashCode: 31 times what was before, plus the next UTF-16 code unit, in 32 bits."""

from libc.stdint cimport uint8_t, uint32_t

cdef enum:
    REPLACEMENT = 0xFFFD
    SIGNLESS = 0x7FFFFFFF
    LEAST_OF_TWO = 0x80             # smaller ones in longer form are not well formed
    LEAST_OF_THREE = 0x800
    LEAST_OF_FOUR = 0x10000
    GREATEST = 0x10FFFF
    SURROGATES = 0xD800
    SURROGATES_END = 0xE000
    LOW_SURROGATES = 0xDC00


cdef inline const uint8_t* take_character(const uint8_t* at, const uint8_t* end,
                                          uint32_t* character) noexcept nogil:
    """Take a character of two bytes or more; answers what is behind it."""
    cdef uint32_t lead = at[0]
    cdef uint32_t least = 0
    cdef uint32_t taken = 0
    cdef uint32_t more = 0
    cdef uint32_t index
    if lead >> 5 == 6:
        more, least, taken = 1, LEAST_OF_TWO, lead & 0x1F
    elif lead >> 4 == 14:
        more, least, taken = 2, LEAST_OF_THREE, lead & 0x0F
    elif lead >> 3 == 30:
        more, least, taken = 3, LEAST_OF_FOUR, lead & 0x07
    character[0] = REPLACEMENT
    if more == 0 or <uint32_t>(end - at - 1) < more:
        return at + 1
    for index in range(1, more + 1):
        if at[index] >> 6 != 2:
            return at + 1
        taken = taken << 6 | (at[index] & 0x3F)
    if taken < least or taken > GREATEST or SURROGATES <= taken < SURROGATES_END:
        return at + 1
    character[0] = taken
    return at + 1 + more


cdef uint32_t java_string_hash(const uint8_t* utf8, uint32_t size) noexcept nogil:
    cdef const uint8_t* at = utf8
    cdef const uint8_t* end = utf8 + size
    cdef uint32_t hashed = 0
    cdef uint32_t character = 0
    while at < end:
        if at[0] < 0x80:
            hashed = hashed * 31 + at[0]
            at += 1
            continue
        at = take_character(at, end, &character)
        if character >= LEAST_OF_FOUR:
            character -= LEAST_OF_FOUR
            hashed = hashed * 31 + (SURROGATES | character >> 10)
            character = LOW_SURROGATES | (character & 0x3FF)
        hashed = hashed * 31 + character
    return hashed & <uint32_t>SIGNLESS
