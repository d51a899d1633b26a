"""The system's version of the table of file operations, where the system refuses, is interrupted,
or writes a part."""

import os

from failing_calls cimport (
    EBADF, EINTR, EINVAL, EIO, ENOENT, ENOSPC, ENOSYS, EPERM, call_fails, calls_fail, calls_succeed,
)
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.file_ops cimport *
from pulsarx._core.low_descriptors cimport low_descriptors_hold, low_descriptors_leave

cdef extern from "<unistd.h>":
    int dup2(int, int)
    int close(int)

cdef enum:
    OFTEN = 1000


cdef int opened(tmp_path) except -1:
    cdef int fd = -1
    assert file_open(bytes(tmp_path / "file"), FILE_WRITE | FILE_CREATE, &fd) == 0
    return fd


def test_interrupted_calls_are_repeated_a_hundred_times(tmp_path):
    cdef int fd = opened(tmp_path)
    cdef int other = -1
    cdef uint8_t room[8]
    cdef size_t done = 0
    path = bytes(tmp_path / "file")
    for count, answer in ((100, 0), (101, EINTR)):
        call_fails(b"open", EINTR, count)
        assert file_open(path, FILE_READ, &other) == answer
        calls_succeed()
        if answer == 0:
            file_close(other)
        call_fails(b"pwrite", EINTR, count)
        assert file_write(fd, <const uint8_t*>b"abcdefgh", 8, 0) == answer
        calls_succeed()
        call_fails(b"pread", EINTR, count)
        assert file_read(fd, room, 8, 0, &done) == answer
        calls_succeed()
        assert calls_fail(b"posix_fallocate", 1, count, EINTR, 0)
        assert file_allocate(fd, 0, 4096) == answer
        calls_succeed()
    assert done == 8 and room[:8] == b"abcdefgh"
    file_close(fd)


def test_an_interrupted_close_has_closed(tmp_path):
    cdef int fd = opened(tmp_path)
    call_fails(b"close", EINTR)
    assert file_close(fd) == 0
    calls_succeed()
    call_fails(b"close", EIO)
    assert file_close(fd) == EIO
    calls_succeed()
    assert file_close(fd) == 0


def test_a_refusal_is_the_answer(tmp_path):
    cdef int fd = opened(tmp_path)
    cdef int other = -1
    cdef uint8_t room[8]
    cdef uint8_t* base = NULL
    cdef size_t done = 0
    cdef uint64_t size = 0
    call_fails(b"open", ENOENT)
    assert file_open(b"/nowhere", FILE_READ, &other) == ENOENT
    calls_succeed()
    call_fails(b"memfd_create", EIO)
    assert file_open_memory(&other) == EIO
    calls_succeed()
    call_fails(b"pwrite", ENOSPC)
    assert file_write(fd, room, 8, 0) == ENOSPC
    calls_succeed()
    assert calls_fail(b"pwrite", 1, 1, 0, 0)     # nothing was written, and no reason is told
    assert file_write(fd, room, 8, 0) == EIO
    calls_succeed()
    call_fails(b"pread", EIO)
    assert file_read(fd, room, 8, 0, &done) == EIO
    calls_succeed()
    call_fails(b"fdatasync", EIO)
    assert file_flush(fd) == EIO
    calls_succeed()
    call_fails(b"fstat", EIO)
    assert file_size(fd, &size) == EIO
    calls_succeed()
    call_fails(b"mmap", EPERM)
    assert file_map(fd, 0, 4096, True, &base) == EPERM
    calls_succeed()
    assert base == NULL and file_map(fd, 0, 4096, True, &base) == 0
    call_fails(b"msync", EIO)
    assert file_flush_map(base, 4096) == EIO
    calls_succeed()
    call_fails(b"munmap", EINVAL)
    assert file_unmap(base, 4096) == EINVAL
    calls_succeed()
    assert file_unmap(base, 4096) == 0
    call_fails(b"fallocate", ENOSYS)
    assert file_punch_hole(fd, 0, 4096) == ENOSYS
    calls_succeed()
    file_close(fd)


def test_a_path_that_is_refused(tmp_path):
    here, there = bytes(tmp_path / "here"), bytes(tmp_path / "there")
    assert file_rename(here, there) == ENOENT
    assert file_rename_new(here, there) == ENOENT
    assert file_link(here, there) == ENOENT
    assert file_unlink(here) == ENOENT
    assert file_make_directory(bytes(tmp_path / "no" / "folder"), 0o755) == ENOENT
    (tmp_path / "here").write_bytes(b"")
    assert file_rename_new(here, there) == 0 and not (tmp_path / "here").exists()


def test_a_folder_is_flushed_where_that_is_known(tmp_path):
    path = bytes(tmp_path)
    assert file_flush_directory(path) == 0
    assert file_flush_directory(path + b"/nowhere") == ENOENT
    for error, answer in ((EINVAL, 0), (EBADF, 0), (EIO, EIO)):
        call_fails(b"fsync", error)
        assert file_flush_directory(path) == answer
        calls_succeed()


def test_a_file_in_memory_lies_in_a_folder_where_there_is_no_such_call():
    cdef int fd = -1
    cdef uint64_t size = 7
    for error in (ENOSYS, EPERM):
        call_fails(b"memfd_create", error)
        assert file_open_memory(&fd) == 0
        calls_succeed()
        assert file_size(fd, &size) == 0 and size == 0
        file_close(fd)
    call_fails(b"memfd_create", ENOSYS)
    call_fails(b"open", EIO, OFTEN)
    assert file_open_memory(&fd) == ENOSYS
    calls_succeed()


def test_space_that_cannot_be_allocated_is_written(tmp_path):
    cdef int fd = opened(tmp_path)
    cdef uint64_t size = 0
    assert file_write(fd, <const uint8_t*>b"there", 5, 0) == 0
    assert calls_fail(b"posix_fallocate", 1, OFTEN, ENOSYS, 0)
    assert file_allocate(fd, 0, 200_000) == 0
    call_fails(b"pwrite", ENOSPC)
    assert file_allocate(fd, 200_000, 100) == ENOSPC
    calls_succeed()
    assert calls_fail(b"posix_fallocate", 1, OFTEN, ENOSYS, 0)
    call_fails(b"fstat", EIO)
    assert file_allocate(fd, 0, 300_000) == EIO
    calls_succeed()
    assert file_size(fd, &size) == 0 and size == 200_000
    content = (tmp_path / "file").read_bytes()
    assert content[:5] == b"there" and not any(content[5:])
    file_close(fd)


def test_what_the_system_may_not_tell_is_taken_for_no(tmp_path):
    cdef int fd = opened(tmp_path)
    cdef uint8_t* base = NULL
    assert file_allocate(fd, 0, 1 << 20) == 0
    call_fails(b"fstatfs", EIO)
    assert not file_is_overwritten(fd)
    calls_succeed()
    file_has_large_folios(fd)                # yes or no, as the system is
    assert file_map(fd, 0, 1 << 20, True, &base) == 0
    base[0] = 1
    assert file_is_resident(base, 0) and file_is_resident(base, 1)
    call_fails(b"mincore", EINVAL)
    assert not file_is_resident(base, 1 << 20)
    calls_succeed()
    assert calls_fail(b"mincore", 1, 1, 0, 0)   # the first page that is asked about is not there
    assert not file_is_resident(base, 1 << 20)
    calls_succeed()
    file_unmap(base, 1 << 20)
    file_close(fd)


def test_another_kind_of_file_system_is_known():
    cdef int fd = -1
    assert file_open(b"/proc/self/maps", FILE_READ, &fd) == 0
    assert not file_is_overwritten(fd)
    file_close(fd)


def test_no_descriptor_below_three_is_given(tmp_path):
    """Another thread may have closed one since they were held."""
    cdef int fd = opened(tmp_path)
    cdef int kept
    assert low_descriptors_leave(-1) == -1 and low_descriptors_leave(fd) == fd
    kept = os.dup(0)
    try:
        assert dup2(fd, 0) == 0
        fd = low_descriptors_leave(0)
        assert fd >= 3
        os.fstat(fd)
        assert low_descriptors_hold() == 0   # 0 was given back
        os.fstat(0)
        close(0)
        call_fails(b"open", EIO)
        assert low_descriptors_hold() == EIO
        calls_succeed()
        # Another thread was faster: what is opened is not needed.
        call_fails(b"fcntl", EBADF, 3)
        assert calls_fail(b"open", 4, 1, -1, EIO)
        low_descriptors_hold()
        calls_succeed()
    finally:
        dup2(kept, 0)
        close(kept)
        file_close(fd)


def test_where_none_can_be_held_nothing_is_opened(tmp_path):
    cdef int fd = -1
    path = bytes(tmp_path / "file")
    for count in range(3):
        call_fails(b"fcntl", EBADF)
        call_fails(b"open", EIO)
        if count == 0:
            assert file_open(path, FILE_WRITE | FILE_CREATE, &fd) == EIO
        elif count == 1:
            assert file_open_memory(&fd) == EIO
        else:
            assert file_flush_directory(bytes(tmp_path)) == EIO
        calls_succeed()
    assert fd == -1 and not (tmp_path / "file").exists()
