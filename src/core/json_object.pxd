"""Tells whether bytes are one JSON object, as its brackets and strings go. For json_lines."""

from libc.stdint cimport uint8_t, uint32_t

cdef enum:
    JSON_DEPTH_MAX = 256         # parsers recurse: deeper objects may end their process

# Words for numbers that JSON has none for, by who takes them.
cdef enum:
    JSON_WORDS_NONE = 0
    JSON_WORDS_KNOWN = 1         # NaN, Infinity, -Infinity: some parsers, with one meaning
    JSON_WORDS_ODD = 2           # -NaN, Inf and what else there is: few

cdef int json_object_copy(const uint8_t* data, uint32_t size, uint8_t* copy,
                          int* words) noexcept nogil
"""Copy a payload to one line: line breaks between tokens become spaces.

copy: room for size bytes. words: becomes one of JSON_WORDS by what stands outside of strings, if
that is more than it was.
What passes is an object whose brackets close with its last byte but for white space, with no
control character in it. So a parser that accepts several of them in a row, one a line, takes each
as one object. STATUS_CORRUPT: it is none. STATUS_TOO_LARGE: deeper than JSON_DEPTH_MAX.
"""
