"""The guard that other tests of bounds stand on: it kills who reads too far, and nobody else."""

import faulthandler
import os
import signal

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t


cdef int byte_at(bytes data, Py_ssize_t index) except -1:
    cdef uint8_t* copy = guarded_bytes(data)
    cdef int found = copy[index]
    free_guarded_bytes(copy, data)
    return found


def lives(bytes data, Py_ssize_t index):
    """Whether a child lives that reads this byte."""
    child = os.fork()
    if child == 0:
        faulthandler.disable()
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)  # sanitizers would report it
        os._exit(byte_at(data, index) != (data + b"?")[index])
    status = os.waitpid(child, 0)[1]
    assert status in (0, signal.SIGSEGV), status
    return status == 0


def test_all_that_was_copied_can_be_read():
    for data in [b"a", b"ab", bytes(range(256)) * 256, bytes(range(256)) * 257]:
        assert byte_at(data, 0) == data[0]
        assert byte_at(data, len(data) - 1) == data[len(data) - 1]


def test_reading_one_byte_too_many_kills():
    for data in [b"", b"a", b"abc", bytes(65535), bytes(65536), bytes(65537)]:
        assert not lives(data, len(data)), len(data)
        assert not data or lives(data, len(data) - 1), len(data)
