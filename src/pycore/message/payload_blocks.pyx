"""Payloads of entries as blocks of LZ4 and Snappy, for `pulsarx.compression`. Any thread may call;
others run meanwhile."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport uint8_t, uint16_t

from pulsarx._core.lz4_block cimport lz4_block_bound, lz4_block_compress, lz4_block_decompress
from pulsarx._core.snappy_block cimport (
    SNAPPY_TABLE_SIZE, snappy_block_bound, snappy_block_compress, snappy_block_decompress,
)
from pulsarx._core.status cimport STATUS_OK

cdef enum:
    SMALL_SIZE = 4096            # what is done sooner than another thread could begin


def lz4_compress(data) -> bytes:
    """Return a block without its size. ValueError: more than LZ4 takes, about 2 GiB."""
    return compressed(data, True)


def lz4_decompress(data, size_t plain_size):
    """Return the plain_size bytes of a block; None where it is no block of just as many."""
    return decompressed(data, plain_size, True)


def snappy_compress(data) -> bytes:
    """Return a block without framing. ValueError: more than Snappy takes, 4 GiB."""
    return compressed(data, False)


def snappy_decompress(data, size_t plain_size):
    """Return the plain_size bytes of a block; None where it is no block of just as many."""
    return decompressed(data, plain_size, False)


cdef bytes compressed(object data, bint by_lz4):
    cdef Py_buffer view
    cdef size_t bound, size
    cdef uint8_t* room
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        size = <size_t>view.len
        bound = lz4_block_bound(size) if by_lz4 else snappy_block_bound(size)
        if bound == 0:
            raise ValueError(f"compress {size} bytes by {'LZ4' if by_lz4 else 'Snappy'}: too many")
        # Not in the bytes that are returned: those would keep the room they do not need.
        room = <uint8_t*>PyMem_RawMalloc(bound)
        if room == NULL:
            raise MemoryError(f"compress {size} bytes: out of memory")
        try:
            if size < SMALL_SIZE:
                size = compress_into(view.buf, size, room, bound, by_lz4)
            else:
                with nogil:
                    size = compress_into(view.buf, size, room, bound, by_lz4)
            if size == 0:
                raise MemoryError(f"compress {view.len} bytes: out of memory")
            return PyBytes_FromStringAndSize(<const char*>room, <Py_ssize_t>size)
        finally:
            PyMem_RawFree(room)
    finally:
        PyBuffer_Release(&view)


cdef size_t compress_into(const void* data, size_t size, uint8_t* room, size_t bound,
                          bint by_lz4) noexcept nogil:
    """0: there is no memory for the table."""
    cdef uint16_t* table
    if by_lz4:
        return lz4_block_compress(<const uint8_t*>data, size, room, bound)
    table = <uint16_t*>PyMem_RawMalloc(SNAPPY_TABLE_SIZE * sizeof(uint16_t))
    if table == NULL:
        return 0
    size = snappy_block_compress(<const uint8_t*>data, size, room, table)
    PyMem_RawFree(table)
    return size


cdef object decompressed(object data, size_t plain_size, bint by_lz4):
    cdef Py_buffer view
    cdef bytes plain = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>plain_size)
    cdef uint8_t* room = <uint8_t*>PyBytes_AS_STRING(plain)
    cdef int status
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if plain_size < SMALL_SIZE:
            status = decompress_into(&view, room, plain_size, by_lz4)
        else:
            with nogil:
                status = decompress_into(&view, room, plain_size, by_lz4)
    finally:
        PyBuffer_Release(&view)
    return plain if status == STATUS_OK else None


cdef int decompress_into(const Py_buffer* view, uint8_t* room, size_t plain_size,
                         bint by_lz4) noexcept nogil:
    cdef const uint8_t* block = <const uint8_t*>view.buf
    if by_lz4:
        return lz4_block_decompress(block, <size_t>view.len, room, plain_size)
    return snappy_block_decompress(block, <size_t>view.len, room, plain_size)
