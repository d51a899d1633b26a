# cython: language_level=3
"""Body of json_object.pxd."""

from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy

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
    while at < size:
        byte = data[at]
        at += 1
        if byte == QUOTE:
            return at
        if byte == BACKSLASH and at < size:
            byte = data[at]          # the character that is escaped
            at += 1
        if byte < SPACE:
            return 0
    return 0


cdef int json_object_copy(const uint8_t* data, uint32_t size, uint8_t* copy) noexcept nogil:
    cdef uint32_t at
    cdef uint32_t depth = 0
    cdef uint8_t byte
    memcpy(copy, data, size)
    at = pass_white(data, size, 0, copy)
    if at == size or data[at] != BRACE:
        return STATUS_CORRUPT
    while at < size:
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
        elif byte < SPACE:
            if not is_white(byte):
                return STATUS_CORRUPT
            copy[at - 1] = SPACE
    return STATUS_CORRUPT
