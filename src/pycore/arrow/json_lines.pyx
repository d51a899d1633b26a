# cython: language_level=3
"""Writes the JSON objects of a column one a line, as parsers of many objects read them. For
`read_table`."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer, Py_buffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pulsarx._core.json_object cimport JSON_WORDS_NONE, json_object_copy
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.arrow.arrow_text cimport text_is_valid

cdef enum:
    LINE_FEED = 0x0A


def json_lines(offsets, data, int64_t first, int64_t count) -> tuple:
    """(lines, rows that were taken, length of the longest line, words): less than count rows where
    the next one is no JSON object in UTF-8. words: 1: a number is NaN, Infinity or -Infinity, also
    one that a parser passes over; 2: or another word such as -NaN or Inf.

    offsets, data: the buffers of an Arrow column of binary; first: its offset.
    """
    cdef Py_buffer offset_view
    cdef Py_buffer data_view
    cdef Py_ssize_t size
    cdef int64_t taken = 0
    cdef uint32_t longest = 0
    cdef int words = JSON_WORDS_NONE
    cdef bytes lines
    cdef uint8_t* at
    PyObject_GetBuffer(offsets, &offset_view, PyBUF_SIMPLE)
    try:
        PyObject_GetBuffer(data, &data_view, PyBUF_SIMPLE)
        try:
            size = size_of(&offset_view, &data_view, first, count)
            lines = PyBytes_FromStringAndSize(NULL, size + count)
            at = <uint8_t*>PyBytes_AS_STRING(lines)
            with nogil:
                taken = fill(<const int32_t*>offset_view.buf + first, count,
                             <const uint8_t*>data_view.buf, &at, &longest, &words)
        finally:
            PyBuffer_Release(&data_view)
    finally:
        PyBuffer_Release(&offset_view)
    written = at - <uint8_t*>PyBytes_AS_STRING(lines)
    return lines if written == size + count else lines[:written], taken, longest, words


cdef Py_ssize_t size_of(const Py_buffer* offsets, const Py_buffer* data, int64_t first,
                        int64_t count) except -1:
    """Bytes of the values. ValueError: the offsets point elsewhere."""
    cdef const int32_t* ends = <const int32_t*>offsets.buf + first
    cdef int64_t row
    if first < 0 or count < 0 or (first + count + 1) * 4 > offsets.len:
        raise ValueError(f"{count} rows from {first} of {offsets.len} bytes of offsets")
    if ends[0] < 0 or ends[count] > data.len:
        raise ValueError(f"offsets {ends[0]} to {ends[count]} of {data.len} bytes")
    for row in range(count):
        if ends[row + 1] < ends[row]:
            raise ValueError(f"the offsets fall in row {row}")
    return ends[count] - ends[0]


cdef bint has_high_bit(const uint8_t* data, uint32_t size) noexcept nogil:
    cdef uint64_t found = 0
    cdef uint64_t word = 0
    cdef uint32_t at = 0
    while at + 8 <= size:
        memcpy(&word, data + at, 8)
        found |= word
        at += 8
    while at < size:
        found |= data[at]
        at += 1
    return found & <uint64_t>0x8080808080808080 != 0


cdef int64_t fill(const int32_t* ends, int64_t count, const uint8_t* data, uint8_t** at,
                  uint32_t* longest, int* words) noexcept nogil:
    """The number of rows that were written to at, which moves behind them."""
    cdef int64_t row
    cdef uint32_t size
    cdef const uint8_t* payload
    for row in range(count):
        payload = data + ends[row]
        size = <uint32_t>(ends[row + 1] - ends[row])
        if json_object_copy(payload, size, at[0], words) != STATUS_OK:
            return row
        if has_high_bit(payload, size) and not text_is_valid(payload, size):
            return row
        at[0] += size
        at[0][0] = LINE_FEED
        at[0] += 1
        if size > longest[0]:
            longest[0] = size
    return count
