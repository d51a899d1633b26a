"""Bytes at the very end of what may be read: behind them lies a page that nobody may touch.

Whoever reads one byte too many dies at once, in every build; sanitizers say where it was.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport uint8_t
from libc.string cimport memcpy
from posix.mman cimport (
    MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_NONE, PROT_READ, PROT_WRITE, mmap, mprotect,
    munmap,
)

cdef enum:
    # Divisible by the page size of every machine this runs on.
    GUARD_SIZE = 65536


cdef inline size_t _mapped_size(bytes data):
    return (<size_t>PyBytes_GET_SIZE(data) // GUARD_SIZE + 2) * GUARD_SIZE


cdef inline uint8_t* guarded_bytes(bytes data) except NULL:
    """Copy data to the end of what may be read; free_guarded_bytes gives the copy back."""
    cdef size_t mapped = _mapped_size(data)
    cdef size_t size = PyBytes_GET_SIZE(data)
    cdef void* start = mmap(
        NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    cdef uint8_t* end
    if start == MAP_FAILED:
        raise MemoryError(f"mmap of {mapped} bytes")
    end = <uint8_t*>start + mapped - GUARD_SIZE
    if mprotect(end, GUARD_SIZE, PROT_NONE) != 0:
        munmap(start, mapped)
        raise OSError("mprotect refuses PROT_NONE")
    memcpy(end - size, PyBytes_AS_STRING(data), size)
    return end - size


cdef inline void free_guarded_bytes(uint8_t* copy, bytes data) noexcept:
    """copy: what guarded_bytes made of the same data."""
    munmap(copy + PyBytes_GET_SIZE(data) + GUARD_SIZE - _mapped_size(data), _mapped_size(data))
