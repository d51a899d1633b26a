# cython: language_level=3
"""Body of json_object.pxd."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK, STATUS_TOO_LARGE

cdef enum:
    QUOTE = 0x22
    BACKSLASH = 0x5C
    BRACE = 0x7B
    BRACE_END = 0x7D
    BRACKET = 0x5B
    BRACKET_END = 0x5D
    SPACE = 0x20
    TAB = 0x09
    LINE_FEED = 0x0A
    CARRIAGE_RETURN = 0x0D
    MINUS = 0x2D
    LETTER_I = 0x49
    LETTER_N = 0x4E


cdef extern from *:
    """
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest");
    """
    int __builtin_ctzll(unsigned long long) nogil

# The highest bit of each byte that is what the name says, the lowest byte first; bytes behind the
# first one may be marked though they are not.
cdef enum:
    WORD = 8


cdef inline uint64_t each_byte(uint64_t byte) noexcept nogil:
    return byte * <uint64_t>0x0101010101010101


cdef inline uint64_t equal_bytes(uint64_t word, uint64_t byte) noexcept nogil:
    cdef uint64_t differing = word ^ each_byte(byte)
    return (differing - each_byte(1)) & ~differing


cdef inline uint64_t control_bytes(uint64_t word) noexcept nogil:
    return (word - each_byte(SPACE)) & ~word


cdef inline uint32_t pass_plain(const uint8_t* data, uint32_t size, uint32_t at,
                                bint in_string) noexcept nogil:
    """To the next byte that counts, or the end: in a string quote, backslash or control character,
    elsewhere quote, bracket, control character, N or I."""
    cdef uint64_t word = 0
    cdef uint64_t found
    while at + WORD <= size:
        memcpy(&word, data + at, WORD)
        found = equal_bytes(word, QUOTE) | control_bytes(word)
        if in_string:
            found |= equal_bytes(word, BACKSLASH)
        else:
            found |= equal_bytes(word, LETTER_N) | equal_bytes(word, LETTER_I)
            word |= each_byte(SPACE)     # makes braces of brackets
            found |= equal_bytes(word, BRACE) | equal_bytes(word, BRACE_END)
        found &= each_byte(0x80)
        if found:
            return at + <uint32_t>(__builtin_ctzll(found) >> 3)
        at += WORD
    return at


cdef inline bint is_white(uint8_t byte) noexcept nogil:
    return byte == SPACE or byte == LINE_FEED or byte == CARRIAGE_RETURN or byte == TAB


cdef inline uint32_t pass_white(const uint8_t* data, uint32_t size, uint32_t at,
                                uint8_t* copy) noexcept nogil:
    while at < size and is_white(data[at]):
        copy[at] = SPACE
        at += 1
    return at


cdef inline uint32_t pass_string(const uint8_t* data, uint32_t size, uint32_t at) noexcept nogil:
    """From behind the quote to behind the next one; 0: there is none, or a control character."""
    cdef uint8_t byte
    while True:
        at = pass_plain(data, size, at, True)
        if at == size:
            return 0
        byte = data[at]
        at += 1
        if byte == QUOTE:
            return at
        if byte == BACKSLASH and at < size:
            byte = data[at]          # the character that is escaped
            at += 1
        if byte < SPACE:
            return 0


cdef inline int word_at(const uint8_t* data, uint32_t size, uint32_t at) noexcept nogil:
    """Which of JSON_WORDS an N or I begins."""
    if data[at] == LETTER_N:
        return JSON_WORDS_ODD if data[at - 1] == MINUS else JSON_WORDS_KNOWN
    if size - at >= 8 and memcmp(data + at, <const char*>b"Infinity", 8) == 0:
        return JSON_WORDS_KNOWN
    return JSON_WORDS_ODD


cdef int json_object_copy(const uint8_t* data, uint32_t size, uint8_t* copy,
                          int* words) noexcept nogil:
    cdef uint32_t at
    cdef uint32_t depth = 0
    cdef uint8_t byte
    memcpy(copy, data, size)
    at = pass_white(data, size, 0, copy)
    if at == size or data[at] != BRACE:
        return STATUS_CORRUPT
    while True:
        at = pass_plain(data, size, at, False)
        if at == size:
            return STATUS_CORRUPT
        byte = data[at]
        at += 1
        if byte == QUOTE:
            at = pass_string(data, size, at)
            if at == 0:
                return STATUS_CORRUPT
        elif byte == BRACE or byte == BRACKET:
            depth += 1
            if depth > JSON_DEPTH_MAX:
                return STATUS_TOO_LARGE
        elif byte == BRACE_END or byte == BRACKET_END:
            depth -= 1
            if depth == 0:
                return STATUS_OK if pass_white(data, size, at, copy) == size else STATUS_CORRUPT
        elif byte == LETTER_N or byte == LETTER_I:      # behind a brace, at least
            words[0] = max(words[0], word_at(data, size, at - 1))
        elif byte < SPACE:
            if not is_white(byte):
                return STATUS_CORRUPT
            copy[at - 1] = SPACE
