"""Tells whether bytes are one JSON object, as its brackets and strings go. For json_lines."""

from libc.stdint cimport uint8_t, uint32_t

cdef enum:
    JSON_DEPTH_MAX = 256         # parsers recurse: deeper objects may end their process

cdef int json_object_copy(const uint8_t* data, uint32_t size, uint8_t* copy) noexcept nogil
"""Copy a payload to one line: line breaks between tokens become spaces.

copy: room for size bytes.
What passes is an object whose brackets close with its last byte but for white space, with no
control character in it. So a parser that accepts several of them in a row, one a line, takes each
as one object. STATUS_CORRUPT: it is none. STATUS_TOO_LARGE: deeper than JSON_DEPTH_MAX.
"""
