"""The plan of faults that other tests lean on: each kind, for each operation that knows it."""

import threading

from failing_calls cimport EIO, ENOENT
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.file_faults cimport *
from pulsarx._core.file_ops cimport *
from pulsarx._core.status cimport STATUS_OK, STATUS_OUT_OF_RANGE


cdef class Files:
    """A file, its mapping and paths, and every operation on them."""

    cdef int fd
    cdef uint8_t* base
    cdef object folder

    def __init__(self, folder):
        self.folder = folder
        assert file_open(bytes(folder / "file"), FILE_WRITE | FILE_CREATE, &self.fd) == 0
        assert file_allocate(self.fd, 0, 4096) == 0
        assert file_map(self.fd, 0, 4096, True, &self.base) == 0

    cdef int call(self, uint32_t op):
        cdef int fd = -1
        cdef int answer
        cdef uint8_t room[8]
        cdef size_t done = 0
        cdef uint64_t size = 0
        cdef uint8_t* base = NULL
        path, other = bytes(self.folder / "file"), bytes(self.folder / "other")
        if op == FILE_OP_OPEN or op == FILE_OP_OPEN_MEMORY or op == FILE_OP_CLOSE:
            if op == FILE_OP_OPEN_MEMORY:
                answer = file_open_memory(&fd)
            else:
                answer = file_open(path, FILE_READ, &fd)
            if answer == 0:
                answer = file_close(fd)
            return answer
        if op == FILE_OP_WRITE:
            return file_write(self.fd, <const uint8_t*>b"abcdefgh", 8, 0)
        if op == FILE_OP_ZEROS:
            return file_zeros(self.fd, <const uint8_t*>b"\0\0\0\0\0\0\0\0", 8, 100)
        if op == FILE_OP_READ:
            return file_read(self.fd, room, 8, 0, &done)
        if op == FILE_OP_ALLOCATE:
            return file_allocate(self.fd, 0, 4096)
        if op == FILE_OP_FLUSH:
            return file_flush(self.fd)
        if op == FILE_OP_FLUSH_DIRECTORY:
            return file_flush_directory(bytes(self.folder))
        if op == FILE_OP_RENAME:
            return file_rename(path, path)
        if op == FILE_OP_RENAME_NEW:
            return file_rename_new(bytes(self.folder / "spare"), other)
        if op == FILE_OP_LINK:
            return file_link(path, other)
        if op == FILE_OP_UNLINK:
            return file_unlink(other)
        if op == FILE_OP_MAKE_DIRECTORY:
            return file_make_directory(bytes(self.folder / "made"), 0o755)
        if op == FILE_OP_SIZE:
            return file_size(self.fd, &size)
        if op == FILE_OP_MAP:
            answer = file_map(self.fd, 0, 4096, False, &base)
            if answer == 0:
                file_unmap(base, 4096)
            return answer
        if op == FILE_OP_PUNCH_HOLE:
            return file_punch_hole(self.fd, 0, 4096)
        if op == FILE_OP_LARGE_FOLIOS:
            return 0 if file_has_large_folios(self.fd) else EIO
        if op == FILE_OP_RESIDENT:
            self.base[0] = 1
            return 0 if file_is_resident(self.base, 8) else EIO
        return 0

    cdef void close(self):
        file_unmap(self.base, 4096)
        file_close(self.fd)


def test_every_operation_fails_by_plan(tmp_path):
    cdef Files files = Files(tmp_path)
    cdef uint32_t op
    for op in range(FILE_OP_COUNT):
        if op == FILE_OP_UNMAP:              # it must not fail: memory would be lost
            continue
        file_faults_install()
        assert file_faults_add(op, FAULT_ERROR, 1, False, EIO) == STATUS_OK
        assert files.call(op) == EIO, op
        assert file_faults_calls(op) == 1
        if op == FILE_OP_UNLINK or op == FILE_OP_RENAME_NEW:
            (tmp_path / ("other" if op == FILE_OP_UNLINK else "spare")).touch()
        if op != FILE_OP_LARGE_FOLIOS:       # the answer is the system's
            assert files.call(op) == 0, op
        else:
            files.call(op)
        assert file_faults_calls(op) == 2
        for name in ("other", "spare"):
            (tmp_path / name).unlink(missing_ok=True)
        file_faults_remove()
    files.close()


def test_a_late_error_comes_behind_the_deed(tmp_path):
    cdef Files files = Files(tmp_path)
    other = tmp_path / "other"
    file_faults_install()
    for op in (FILE_OP_WRITE, FILE_OP_FLUSH, FILE_OP_RENAME, FILE_OP_RENAME_NEW, FILE_OP_LINK):
        assert file_faults_add(op, FAULT_LATE_ERROR, 1, False, EIO) == STATUS_OK
    (tmp_path / "spare").touch()
    assert files.call(FILE_OP_WRITE) == EIO
    assert (tmp_path / "file").read_bytes()[:8] == b"abcdefgh"
    assert files.call(FILE_OP_FLUSH) == EIO and files.call(FILE_OP_FLUSH) == 0
    assert files.call(FILE_OP_RENAME) == EIO and (tmp_path / "file").exists()
    assert files.call(FILE_OP_RENAME_NEW) == EIO and other.exists()
    other.unlink()
    assert files.call(FILE_OP_LINK) == EIO and other.exists()
    assert file_faults_add(FILE_OP_FLUSH, FAULT_LATE_ERROR, 1, False, EIO) == STATUS_OK
    assert file_flush_map(files.base, 4096) == EIO and file_flush_map(files.base, 4096) == 0
    assert file_faults_add(FILE_OP_FLUSH, FAULT_ERROR, 1, False, EIO) == STATUS_OK
    assert file_flush_map(files.base, 4096) == EIO
    file_faults_remove()
    files.close()


def test_a_short_write_leaves_a_half(tmp_path):
    cdef Files files = Files(tmp_path)
    file_faults_install()
    assert file_faults_add(FILE_OP_WRITE, FAULT_SHORT, 2, True, EIO) == STATUS_OK
    assert files.call(FILE_OP_WRITE) == 0
    assert file_write(files.fd, <const uint8_t*>b"ABCDEFGH", 8, 0) == EIO
    assert (tmp_path / "file").read_bytes()[:8] == b"ABCDefgh"
    assert files.call(FILE_OP_WRITE) == files.call(FILE_OP_WRITE) == EIO
    file_faults_remove()
    files.close()


def test_a_plan_is_bounded():
    file_faults_install()
    assert file_faults_add(FILE_OP_COUNT, FAULT_ERROR, 1, False, EIO) == STATUS_OUT_OF_RANGE
    assert file_faults_calls(FILE_OP_COUNT) == 0
    for _ in range(FAULT_RULES_MAX):
        assert file_faults_add(FILE_OP_LINK, FAULT_ERROR, 99, False, EIO) == STATUS_OK
    assert file_faults_add(FILE_OP_LINK, FAULT_ERROR, 1, False, EIO) == STATUS_OUT_OF_RANGE
    assert file_link(b"/nowhere/a", b"/nowhere/b") == ENOENT
    file_faults_remove()


def write_in_a_thread(Files files):
    cdef int fd = files.fd
    with nogil:
        file_write(fd, <const uint8_t*>"later", 5, 0)


def test_a_call_that_stalls_goes_on_when_it_is_released(tmp_path):
    cdef Files files = Files(tmp_path)
    file_faults_install()
    assert file_faults_add(FILE_OP_WRITE, FAULT_STALL, 1, True, 0) == STATUS_OK
    threads = [threading.Thread(target=write_in_a_thread, args=(files,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    while file_faults_stalled() < 2:
        threads[0].join(0.001)
    assert (tmp_path / "file").read_bytes()[:5] == bytes(5)
    file_faults_release()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert (tmp_path / "file").read_bytes()[:5] == b"later" and file_faults_stalled() == 0
    # Released is released: what comes later does not wait.
    write_in_a_thread(files)
    file_faults_remove()
    files.close()
