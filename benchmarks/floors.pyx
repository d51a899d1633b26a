"""What the machine can do at all: loops in C that each benchmark stands beside.

Built at bench time by floor_build.py; not part of the library.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.errno cimport errno
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from posix.types cimport off_t

from pulsarx._core.crc32c cimport crc32c

cdef extern from "<unistd.h>" nogil:
    ssize_t pwrite(int fd, const void* data, size_t size, off_t offset)
    int fdatasync(int fd)


cdef class Empty:
    """The unit of the per-message figures: a call that does nothing."""

    @cython.binding(False)
    def call(self, message):
        pass


cdef int write_all(int fd, const uint8_t* data, size_t size, off_t offset) noexcept nogil:
    cdef ssize_t done
    while size > 0:
        done = pwrite(fd, data, size, offset)
        if done <= 0:
            return errno
        data += done
        size -= done
        offset += done
    return 0


def write_blocks(int fd, bytes data not None, size_t block_size, off_t offset,
                 bint checksum) -> int:
    """`pwrite` data in blocks from offset on, each summed before if checksum; returns the sums."""
    cdef const uint8_t* at = <const uint8_t*>PyBytes_AS_STRING(data)
    cdef size_t left = PyBytes_GET_SIZE(data)
    cdef size_t size
    cdef uint32_t sums = 0
    cdef int error = 0
    with nogil:
        while left > 0 and error == 0:
            size = block_size if left > block_size else left
            if checksum:
                sums ^= crc32c(0, at, size)
            error = write_all(fd, at, size, offset)
            at += size
            offset += size
            left -= size
    if error:
        raise OSError(error, "pwrite")
    return sums


def copy_blocks(int fd, list messages not None, size_t block_size, off_t offset) -> int:
    """Copy messages one behind the other into a block, sum and `pwrite` it when the next one does
    not fit, from offset on; returns the sums. As the engine does, without a byte of its own."""
    cdef Py_ssize_t count = PyList_GET_SIZE(messages)
    cdef uint8_t* block = <uint8_t*>malloc(block_size)
    cdef size_t used = 0
    cdef size_t size
    cdef uint32_t sums = 0
    cdef int error = 0
    cdef Py_ssize_t at
    if block == NULL:
        raise MemoryError("a block of messages")
    for at in range(count + 1):
        message = <object>PyList_GET_ITEM(messages, at) if at < count else None
        size = PyBytes_GET_SIZE(message) if at < count else 0
        if used and (at == count or used + size > block_size):
            sums ^= crc32c(0, block, used)
            error = write_all(fd, block, used, offset)
            if error:
                break
            offset += used
            used = 0
        if at < count:
            memcpy(block + used, PyBytes_AS_STRING(message), size)
            used += size
    free(block)
    if error:
        raise OSError(error, "pwrite")
    return sums


def write_and_flush(int fd, bytes record not None, off_t offset, int count) -> None:
    """count times `pwrite` of the record, one behind the other, and `fdatasync`."""
    cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(record)
    cdef size_t size = PyBytes_GET_SIZE(record)
    cdef int error = 0
    cdef int turn
    with nogil:
        for turn in range(count):
            error = write_all(fd, data, size, offset + <off_t>(turn * size))
            if error == 0 and fdatasync(fd) != 0:
                error = errno
            if error:
                break
    if error:
        raise OSError(error, "pwrite and fdatasync")
