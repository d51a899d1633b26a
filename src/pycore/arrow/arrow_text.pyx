# cython: language_level=3
"""Body of arrow_text.pxd."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef inline uint32_t part(const uint8_t* at, const uint8_t* end, bint* valid) noexcept nogil:
    """Bytes of the character that begins at at, or of the longest beginning of one (not valid)."""
    cdef uint8_t lead = at[0]
    cdef uint8_t lowest = 0x80
    cdef uint8_t highest = 0xBF
    cdef uint32_t needed
    cdef uint32_t size = 1
    valid[0] = True
    if lead < 0x80:
        return 1
    valid[0] = False
    if lead < 0xC2 or lead > 0xF4:
        return 1
    if lead < 0xE0:
        needed = 2
    elif lead < 0xF0:
        needed = 3
        if lead == 0xE0:
            lowest = 0xA0
        elif lead == 0xED:
            highest = 0x9F      # no surrogates
    else:
        needed = 4
        if lead == 0xF0:
            lowest = 0x90
        elif lead == 0xF4:
            highest = 0x8F      # no more than U+10FFFF
    while size < needed:
        if at + size == end or at[size] < lowest or at[size] > highest:
            return size
        lowest = 0x80
        highest = 0xBF
        size += 1
    valid[0] = True
    return size


cdef bint text_is_valid(const uint8_t* data, uint32_t size) noexcept nogil:
    cdef const uint8_t* at = data
    cdef const uint8_t* end = data + size
    cdef uint64_t word
    cdef bint valid
    while end - at >= 8:
        memcpy(&word, at, 8)
        if word & <uint64_t>0x8080808080808080:
            break
        at += 8
    while at < end:
        at += part(at, end, &valid)
        if not valid:
            return False
    return True


cdef uint64_t text_repair(const uint8_t* data, uint32_t size, uint8_t* room) noexcept nogil:
    cdef const uint8_t* at = data
    cdef const uint8_t* end = data + size
    cdef uint8_t* out = room
    cdef uint32_t taken
    cdef bint valid
    while at < end:
        taken = part(at, end, &valid)
        if valid:
            memcpy(out, at, taken)
            out += taken
        else:
            memcpy(out, b"\xef\xbf\xbd", 3)
            out += 3
        at += taken
    return <uint64_t>(out - room)
