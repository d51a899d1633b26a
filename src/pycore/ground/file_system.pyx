"""FileSystem: whole small files, names and directories through the core's table of file operations;
besides the checksum and the lock of such files, for whose modules of Python a start would pay.

Failures are OSError (FileExistsError, FileNotFoundError ... by errno) that name the file.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.errno cimport (
    EACCES, EAGAIN, EDQUOT, EEXIST, EINTR, EINVAL, EIO, EMLINK, ENOENT, ENOMEM, ENOSPC, ENOSYS,
    ENOTDIR, EOPNOTSUPP, EPERM, ESTALE, EXDEV, errno,
)
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from pulsarx._core.atomic cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from pulsarx._core.file_faults cimport *
from pulsarx._core.file_ops cimport *
from pulsarx._core.file_record cimport *
from pulsarx._core.low_descriptors cimport low_descriptors_hold, low_descriptors_leave

import os

cdef extern from "Python.h":
    bytes PyUnicode_EncodeFSDefault(object text)

cdef extern from "<fcntl.h>" nogil:
    struct c_flock "flock":
        short l_type
        short l_whence
        int64_t l_start
        int64_t l_len                    # 0: the whole file
        int l_pid                        # must be 0
    int c_fcntl "fcntl"(int fd, int command, ...)
    enum:
        F_RDLCK, F_WRLCK, F_UNLCK

cdef extern from "<sys/stat.h>" nogil:
    struct c_stat "stat":
        uint64_t st_dev
        uint64_t st_ino
    int path_stat "stat"(const char* path, c_stat* out)

cdef enum:
    OFD_GETLK = 36                       # Linux's, on every architecture; not in every header
    OFD_SETLK = 37
    COPIED_SIZE = 1 << 20
    RESERVE_PIECE = 4096
    CRC32_POLYNOMIAL = 0xedb88320        # that of zlib, lowest power in the highest bit

cdef uint32_t crc32_table[8][256]        # [k][byte]: what a byte adds when k more bytes follow it

cdef dict OPS = {
    "open": FILE_OP_OPEN, "open_memory": FILE_OP_OPEN_MEMORY, "close": FILE_OP_CLOSE,
    "write": FILE_OP_WRITE,
    "read": FILE_OP_READ, "allocate": FILE_OP_ALLOCATE, "flush": FILE_OP_FLUSH,
    "flush_directory": FILE_OP_FLUSH_DIRECTORY, "rename": FILE_OP_RENAME,
    "rename_new": FILE_OP_RENAME_NEW, "link": FILE_OP_LINK,
    "unlink": FILE_OP_UNLINK, "make_directory": FILE_OP_MAKE_DIRECTORY, "size": FILE_OP_SIZE,
    "map": FILE_OP_MAP, "unmap": FILE_OP_UNMAP, "punch_hole": FILE_OP_PUNCH_HOLE,
    "zeros": FILE_OP_ZEROS, "large_folios": FILE_OP_LARGE_FOLIOS, "resident": FILE_OP_RESIDENT,
}
cdef dict OP_NAMES = {number: name for name, number in OPS.items()}
OP_NAMES[FILE_RECORD_MARK] = "mark"
OP_NAMES[FILE_RECORD_STORE] = "store"
OP_NAMES[FILE_RECORD_FLUSH_MAP] = "flush_map"
cdef dict KINDS = {
    "error": FAULT_ERROR, "short": FAULT_SHORT, "stall": FAULT_STALL,
    "late_error": FAULT_LATE_ERROR, "kill": FAULT_KILL,
}


cdef bytes path_bytes(object path):
    if isinstance(path, str):
        return PyUnicode_EncodeFSDefault(path)
    return os.fsencode(path)


cdef int refuse(int error, path, other=None) except -1:
    if error == 0:
        return 0
    if other is None:
        raise OSError(error, os.strerror(error), path)
    raise OSError(error, os.strerror(error), path, None, other)


cdef bint is_missing(int error) noexcept nogil:
    """Whether an error of link or rename_new means that there is no such operation here: the file
    system has no hard links (exFAT, SMB, many FUSE), or allows none (too many, or to a file of
    another user), or a sandbox refuses the system call."""
    return (error == EPERM or error == EOPNOTSUPP or error == ENOSYS or error == EMLINK
            or error == EXDEV or error == EINVAL)


cdef int claimed_rename(const char* source, const char* target, const char* claim) noexcept nogil:
    """Rename where no system call refuses a taken target: whoever creates the file claim may
    rename. The next owner removes one that was left."""
    cdef int fd = -1
    cdef int error = file_open(claim, FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE, &fd)
    if error:
        return error
    file_close(fd)
    error = file_open(target, FILE_READ, &fd)
    if error == 0:
        file_close(fd)
        error = EEXIST
    elif error == ENOENT:
        error = file_rename(source, target)
    file_unlink(claim)
    return error


cdef int copy_blocks(int source, int target, uint8_t* room) noexcept nogil:
    cdef uint64_t at = 0
    cdef size_t done = COPIED_SIZE
    cdef int error = 0
    while error == 0 and done == COPIED_SIZE:
        error = file_read(source, room, COPIED_SIZE, at, &done)
        if error == 0 and done:
            error = file_write(target, room, done, at)
        at += done
    return error if error else file_flush(target)


cdef int copy_file(const char* source, const char* target) noexcept nogil:
    cdef int from_fd = -1
    cdef int to_fd = -1
    cdef int close_error
    cdef uint8_t* room = <uint8_t*>malloc(COPIED_SIZE)
    cdef int error = ENOMEM if room == NULL else file_open(source, FILE_READ, &from_fd)
    if error == 0:
        error = file_open(target, FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE, &to_fd)
    if to_fd >= 0:
        error = copy_blocks(from_fd, to_fd, room)
        close_error = file_close(to_fd)
        if error == 0:
            error = close_error
        if error:
            file_unlink(target)
    if from_fd >= 0:
        file_close(from_fd)
    free(room)
    return error


cdef bint fill_reserve(const char* path, uint64_t size) noexcept nogil:
    """Let the file grow by what there is room for; whether it has the size now."""
    cdef uint64_t at = 0
    cdef uint64_t piece
    cdef int fd = -1
    cdef int error = file_open(path, FILE_WRITE | FILE_CREATE, &fd)
    if error:
        return False
    error = file_size(fd, &at)
    piece = size - at if at < size else 0
    while error == 0 and at < size and piece >= RESERVE_PIECE:
        error = file_allocate(fd, at, piece)
        if error == 0:
            at += piece
        elif error == ENOSPC or error == EDQUOT:
            error = 0
            piece = piece // 2 & ~<uint64_t>(RESERVE_PIECE - 1)
    file_close(fd)
    return error == 0 and at >= size


cdef int check_there(FileSystem self, path) except -1:
    if self.c_guarded is None or self.is_there():
        return 0
    raise OSError(ESTALE, "its folder was removed, moved or replaced while it was open", path)


cdef class FileSystem:
    """The file operations of catalogue and cursors. Any thread may call; every call blocks without
    the GIL."""

    def __cinit__(self) -> None:
        pthread_mutex_init(&self.c_reserve_mutex, NULL)

    def __dealloc__(self):
        pthread_mutex_destroy(&self.c_reserve_mutex)

    def guard(self, path: str) -> None:
        """From now on nothing is written, and no name changed, unless this path leads to the folder
        it leads to now. A file in it that the caller has open keeps the inode of a removed one from
        being that of another.
        """
        cdef bytes name = path_bytes(path)
        cdef const char* c_name = name
        cdef c_stat found
        cdef int failed
        with nogil:
            failed = path_stat(c_name, &found)
        refuse(errno if failed else 0, path)
        self.c_device, self.c_inode = found.st_dev, found.st_ino
        self.c_guarded = name

    def is_there(self) -> bool:
        """Whether the folder that `guard` named is there. True: where that cannot be told, too."""
        cdef c_stat found
        cdef const char* name
        cdef int failed
        if self.c_guarded is None:
            return True
        name = self.c_guarded
        with nogil:
            failed = path_stat(name, &found)
        if failed:
            return errno != ENOENT and errno != ENOTDIR and errno != ESTALE
        return found.st_dev == self.c_device and found.st_ino == self.c_inode

    def create(
        self, path: str, data: bytes, exclusive: bool = True, flush: bool = True
    ) -> None:
        """Write a new file whole and flush it. exclusive: FileExistsError when it is there; else
        it is overwritten. flush: False leaves that to `flush_file`.

        Overwriting does not shorten a longer file: use another name and rename.
        After a failure a file may be left that is not whole; its name is durable after
        flush_directory.
        """
        cdef bytes name = path_bytes(path)
        cdef const char* c_name = name
        cdef const uint8_t* c_data = <const uint8_t*>PyBytes_AS_STRING(data)
        cdef size_t size = PyBytes_GET_SIZE(data)
        cdef uint32_t flags = FILE_WRITE | FILE_CREATE
        cdef bint flushes = flush
        cdef int error, close_error
        cdef int fd = -1
        if exclusive:
            flags |= FILE_EXCLUSIVE
        check_there(self, path)
        with nogil:
            error = file_open(c_name, flags, &fd)
            if error == 0:
                error = file_write(fd, c_data, size, 0)
                if error == 0 and flushes:
                    error = file_flush(fd)
                close_error = file_close(fd)
                if error == 0:
                    error = close_error
        refuse(error, path)

    def flush_file(self, path: str) -> None:
        """The bytes of the file are durable when this returns."""
        cdef bytes name = path_bytes(path)
        cdef const char* c_name = name
        cdef int error, close_error
        cdef int fd = -1
        with nogil:
            error = file_open(c_name, FILE_READ, &fd)
            if error == 0:
                error = file_flush(fd)
                close_error = file_close(fd)
                if error == 0:
                    error = close_error
        refuse(error, path)

    def read(self, path: str) -> bytes:
        """The whole file."""
        cdef bytes name = path_bytes(path)
        cdef bytes data = None
        cdef const char* c_name = name
        cdef uint8_t* room = NULL
        cdef uint64_t size = 0
        cdef size_t done = 0
        cdef int error
        cdef int fd = -1
        with nogil:
            error = file_open(c_name, FILE_READ, &fd)
        refuse(error, path)
        try:
            refuse(file_size(fd, &size), path)
            data = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
            room = <uint8_t*>PyBytes_AS_STRING(data)
            with nogil:
                error = file_read(fd, room, size, 0, &done)
            refuse(error, path)
        finally:
            file_close(fd)
        return data if done == size else data[:done]

    def write_at(self, path: str, data: bytes, offset: int, flush: bool) -> None:
        """Write over a part of a file that is there. flush: it is durable when this returns. After
        a failure any part of it may be written."""
        cdef bytes name = path_bytes(path)
        cdef const char* c_name = name
        cdef const uint8_t* c_data = <const uint8_t*>PyBytes_AS_STRING(data)
        cdef size_t size = PyBytes_GET_SIZE(data)
        cdef uint64_t at = offset
        cdef bint flushes = flush
        cdef int error, close_error
        cdef int fd = -1
        check_there(self, path)
        with nogil:
            error = file_open(c_name, FILE_WRITE, &fd)
            if error == 0:
                error = file_write(fd, c_data, size, at)
                if error == 0 and flushes:
                    error = file_flush(fd)
                close_error = file_close(fd)
                if error == 0:
                    error = close_error
        refuse(error, path)

    def read_at(self, path: str, offset: int, size: int) -> bytes:
        """At most so many bytes of a file from an offset on; fewer at its end."""
        cdef bytes name = path_bytes(path)
        cdef const char* c_name = name
        cdef bytes data = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>size)
        cdef uint8_t* room = <uint8_t*>PyBytes_AS_STRING(data)
        cdef size_t wanted = size
        cdef uint64_t at = offset
        cdef size_t done = 0
        cdef int error
        cdef int fd = -1
        with nogil:
            error = file_open(c_name, FILE_READ, &fd)
            if error == 0:
                error = file_read(fd, room, wanted, at, &done)
                file_close(fd)
        refuse(error, path)
        return data if done == wanted else data[:done]

    def rename(self, source: str, target: str) -> None:
        """Give the file another name; a file of that name is replaced."""
        cdef bytes source_name = path_bytes(source)
        cdef bytes target_name = path_bytes(target)
        cdef const char* c_source = source_name
        cdef const char* c_target = target_name
        cdef int error
        check_there(self, target)
        with nogil:
            error = file_rename(c_source, c_target)
        refuse(error, source, target)

    def take_name(self, source: str, target: str) -> None:
        """Give a whole file its name; FileExistsError when that is taken. Whether it keeps the one
        it had depends on the file system, so the caller removes that."""
        cdef bytes source_name = path_bytes(source)
        cdef bytes target_name = path_bytes(target)
        cdef bytes claim_name = target_name + b".claim.tmp"
        cdef const char* c_source = source_name
        cdef const char* c_target = target_name
        cdef const char* c_claim = claim_name
        cdef int error
        check_there(self, target)
        with nogil:
            error = file_link(c_source, c_target)
            if is_missing(error):
                error = file_rename_new(c_source, c_target)
                if is_missing(error):
                    error = claimed_rename(c_source, c_target, c_claim)
        refuse(error, source, target)

    def link_or_copy(self, source: str, target: str) -> bool:
        """A second name for a file, or, where the file system has none, a copy that is flushed;
        whether it is a copy. FileExistsError when the name is taken. A copy that fails is removed.
        """
        cdef bytes source_name = path_bytes(source)
        cdef bytes target_name = path_bytes(target)
        cdef const char* c_source = source_name
        cdef const char* c_target = target_name
        cdef bint copied
        cdef int error
        check_there(self, target)
        with nogil:
            error = file_link(c_source, c_target)
            copied = is_missing(error)
            if copied:
                error = copy_file(c_source, c_target)
        refuse(error, source, target)
        return copied

    def unlink(self, path: str) -> None:
        """Take the name away."""
        cdef bytes name = path_bytes(path)
        cdef const char* c_name = name
        cdef int error
        check_there(self, path)
        with nogil:
            error = file_unlink(c_name)
        refuse(error, path)

    def flush_directory(self, path: str) -> None:
        """Names created, changed and taken away in this directory are durable when this returns."""
        cdef bytes name = path_bytes(path)
        cdef const char* c_name = name
        cdef int error
        with nogil:
            error = file_flush_directory(c_name)
        refuse(error, path)

    def make_directory(self, path: str, mode: int = 0o755) -> None:
        """Create a directory; FileExistsError when the name is taken. mode: its permissions,
        without those that the umask takes."""
        cdef bytes name = path_bytes(path)
        cdef const char* c_name = name
        cdef uint32_t c_mode = mode
        cdef int error
        check_there(self, path)
        with nogil:
            error = file_make_directory(c_name, c_mode)
        refuse(error, path)

    def keep_reserve(self, folder: str, name: str, size: int) -> None:
        """Keep so much room in a file of the folder, for what frees room; as much of it as there
        is. Nothing is raised."""
        self.c_reserve_folder = path_bytes(folder)
        self.c_reserve = self.c_reserve_folder + b"/" + path_bytes(name)
        self.c_reserve_size = size
        self.c_reserve_lacks = True
        self.fill_reserve()

    def fill_reserve(self) -> None:
        """Make the reserve whole again, as far as there is room; not while somebody spends it."""
        cdef const char* c_path
        if not self.c_reserve_lacks or not self.is_there():
            return
        c_path = self.c_reserve
        with nogil:
            pthread_mutex_lock(&self.c_reserve_mutex)
            if self.c_reserve_spenders == 0:
                self.c_reserve_lacks = not fill_reserve(c_path, self.c_reserve_size)
            pthread_mutex_unlock(&self.c_reserve_mutex)

    def spend_reserve(self, least: int = 0) -> bool:
        """Give the reserve's room up, unless it has less than this; False: it was not. Whoever
        calls tries once more what failed, and calls `end_spending` then, whatever happens."""
        cdef const char* c_path
        cdef const char* c_folder
        cdef uint64_t wanted = least
        cdef uint64_t size = 0
        cdef bint is_spent = False
        cdef int fd = -1
        if self.c_reserve is None or not self.is_there():
            return False
        c_path, c_folder = self.c_reserve, self.c_reserve_folder
        with nogil:
            pthread_mutex_lock(&self.c_reserve_mutex)
            if file_open(c_path, FILE_READ, &fd) == 0:
                if file_size(fd, &size) != 0:
                    size = 0
                file_close(fd)
            if size >= wanted:
                is_spent = self.c_reserve_lacks = True
                self.c_reserve_spenders += 1
                # Some file systems have the room back when the name is durably gone. Where it was
                # gone already another thread has just given it up.
                if file_unlink(c_path) == 0:
                    file_flush_directory(c_folder)
            pthread_mutex_unlock(&self.c_reserve_mutex)
        return is_spent

    def end_spending(self) -> None:
        """End what spend_reserve was called for: fill the reserve, or leave that to the last caller
        that spends it."""
        with nogil:
            pthread_mutex_lock(&self.c_reserve_mutex)
            self.c_reserve_spenders -= 1
            pthread_mutex_unlock(&self.c_reserve_mutex)
        self.fill_reserve()

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted."""
        return sorted(os.listdir(path))


cdef void crc32_prepare() noexcept:
    cdef uint32_t byte, state, k
    for byte in range(256):
        state = byte
        for k in range(8):
            state = (state >> 1) ^ (<uint32_t>CRC32_POLYNOMIAL if state & 1 else 0)
        crc32_table[0][byte] = state
    for byte in range(256):
        for k in range(1, 8):
            state = crc32_table[k - 1][byte]
            crc32_table[k][byte] = (state >> 8) ^ crc32_table[0][state & 0xff]


crc32_prepare()


def crc32(bytes data not None, uint32_t start=0) -> int:
    """The checksum of zlib. start: the checksum of what is in front."""
    cdef const uint8_t* at = <const uint8_t*>PyBytes_AS_STRING(data)
    cdef size_t left = PyBytes_GET_SIZE(data)
    cdef uint32_t state = ~start
    cdef uint64_t word
    with nogil:
        while left >= 8:
            memcpy(&word, at, 8)
            word ^= state
            state = (crc32_table[7][word & 0xff] ^ crc32_table[6][(word >> 8) & 0xff]
                     ^ crc32_table[5][(word >> 16) & 0xff] ^ crc32_table[4][(word >> 24) & 0xff]
                     ^ crc32_table[3][(word >> 32) & 0xff] ^ crc32_table[2][(word >> 40) & 0xff]
                     ^ crc32_table[1][(word >> 48) & 0xff] ^ crc32_table[0][word >> 56])
            at += 8
            left -= 8
        while left > 0:
            state = (state >> 8) ^ crc32_table[0][(state ^ at[0]) & 0xff]
            at += 1
            left -= 1
    return <uint32_t>~state


cdef int ask_lock(int descriptor, int command, short* kind) noexcept:
    """0 or an errno. kind: what is asked for; with OFD_GETLK, what another opening holds."""
    cdef c_flock asked
    memset(&asked, 0, sizeof(asked))
    asked.l_type = kind[0]
    while c_fcntl(descriptor, command, &asked) < 0:
        if errno != EINTR:
            return errno
    kind[0] = asked.l_type
    return 0


def hold_low_descriptors() -> None:
    """Have what Python or another library opens next get no descriptor of standard input, output
    or error, though the program closed those. OSError: no descriptor is left."""
    refuse(low_descriptors_hold(), "/")


def may_exist(path) -> bool:
    """Whether something has this name, or the system cannot tell: an error of the device, or of a
    network, is no sign that a file is gone, as `os.path.exists` has it."""
    cdef bytes name = path_bytes(path)
    cdef const char* c_name = name
    cdef c_stat found
    cdef int error
    with nogil:
        error = errno if path_stat(c_name, &found) else 0
    return error != ENOENT and error != ENOTDIR


def open_descriptor(path, int flags, int mode=0o666) -> int:
    """Like os.open, with a descriptor of 3 or more. The opener of each `open` of ours."""
    hold_low_descriptors()
    cdef int opened = low_descriptors_leave(os.open(path, flags, mode))
    if opened < 0:
        refuse(errno, path)
    return opened


def lock_file(int descriptor) -> bool:
    """Lock the whole file for this opening alone, without waiting; False: another one has it."""
    cdef short kind = F_WRLCK
    cdef int error = ask_lock(descriptor, OFD_SETLK, &kind)
    if error == EAGAIN or error == EACCES:
        return False
    refuse(error, descriptor)
    return True


def unlock_file(int descriptor) -> None:
    """Nothing is raised: closing the file does the same."""
    cdef short kind = F_UNLCK
    ask_lock(descriptor, OFD_SETLK, &kind)


def close_file(int descriptor) -> None:
    """Closed in any case; OSError: something of it may be lost."""
    refuse(file_close(descriptor), descriptor)


def is_file_locked(int descriptor) -> bool:
    """Whether another opening has locked it."""
    cdef short kind = F_RDLCK
    refuse(ask_lock(descriptor, OFD_GETLK, &kind), descriptor)
    return kind != F_UNLCK


def faults_install() -> None:
    """Put the faulting table in force, with an empty plan. For tests."""
    file_faults_install()


def faults_remove() -> None:
    """Go back to the system's table; stalled calls go on."""
    file_faults_remove()


def faults_add(op: str, call: int = 1, *, kind: str = "error", error: int = EIO,
               sticky: bool = False) -> None:
    """The call-th next call of op fails. kind: error, short (half a write), stall, late_error
    (done, yet refused), kill (of the process, in front of the call)."""
    if op not in OPS or kind not in KINDS:
        raise ValueError(f"op: one of {sorted(OPS)}, not {op}; "
                         f"kind: one of {sorted(KINDS)}, not {kind}")
    if file_faults_add(OPS[op], KINDS[kind], call, sticky, error) != 0:
        raise ValueError(f"more than {<int>FAULT_RULES_MAX} faults")


def faults_op(op: str) -> int:
    """The number of an operation."""
    if op not in OPS:
        raise ValueError(f"op: one of {sorted(OPS)}, not {op}")
    return OPS[op]


def faults_release() -> None:
    """Let stalled and delayed calls go on, now and later."""
    file_faults_release()


def faults_calls(op: str) -> int:
    """How often op was called since the plan is in force."""
    return file_faults_calls(OPS[op])


def faults_stalled() -> int:
    """How many calls are stalled or delayed now."""
    return file_faults_stalled()


class RecordedCall:
    """One call of a recording, or a mark, or a page that was stored through a mapping."""

    __slots__ = ("data", "error", "fd", "flags", "is_new", "map", "offset", "op", "other", "path",
                 "size")

    def __init__(self, op, path, other, fd, map, offset, size, data, error, flags, is_new) -> None:
        self.op = op
        self.path = path
        self.other = other
        self.fd = fd
        self.map = map
        self.offset = offset
        self.size = size
        self.data = data
        self.error = error
        self.flags = flags
        self.is_new = is_new

    def __repr__(self) -> str:
        return (f"{self.op} {self.path}{self.other and ' ' + self.other} fd={self.fd} "
                f"map={self.map} offset={self.offset} size={self.size} "
                f"data={self.data[:40]!r} error={self.error}")


cdef list recorded_calls(bytes recording):
    cdef list found = []
    cdef const uint8_t* base = <const uint8_t*>PyBytes_AS_STRING(recording)
    cdef Py_ssize_t end = PyBytes_GET_SIZE(recording)
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t names, data
    cdef FileRecord head
    while at < end:
        memcpy(&head, base + at, sizeof(FileRecord))
        names = at + <Py_ssize_t>sizeof(FileRecord)
        data = names + head.path_size + head.other_size
        found.append(RecordedCall(
            OP_NAMES[head.op], os.fsdecode(recording[names:names + head.path_size]),
            os.fsdecode(recording[names + head.path_size:data]), head.fd, head.map, head.offset,
            head.size, recording[data:data + <Py_ssize_t>head.data_size], head.error, head.flags,
            bool(head.is_new)))
        at = (data + <Py_ssize_t>head.data_size + 7) & ~<Py_ssize_t>7
    return found


def record_install() -> None:
    """Put the recording table in force, with an empty recording. For tests: before a client opens
    its folder, so that what is opened and mapped is known."""
    file_record_install()


def record_remove() -> None:
    """Go back to the system's table. What was recorded can be asked for until it is freed."""
    file_record_remove()


def record_free() -> None:
    """Forget what was recorded, once it is removed."""
    file_record_free()


def record_mark(bytes text not None) -> None:
    """Put a mark between the calls, which says what is so from here on."""
    cdef const uint8_t* data = <const uint8_t*>PyBytes_AS_STRING(text)
    cdef size_t size = PyBytes_GET_SIZE(text)
    with nogil:
        file_record_mark(data, size)


def record_calls() -> list[RecordedCall]:
    """List what was recorded until now, in the order in which it took effect.

    op: as faults_add names it; and "mark" (data), "store" (a page of a mapping: map, offset in it,
    data) and "flush_map" (map, offset in it, size). "map" gives a mapping its number and names
    descriptor and offset. A descriptor is that of the last "open" before that gave it.
    """
    cdef bytes recording = None
    cdef const uint8_t* data
    cdef uint64_t size = 0
    with nogil:
        data = file_record_lock(&size)
    try:
        if data != NULL or size == 0:
            recording = PyBytes_FromStringAndSize(<const char*>data, <Py_ssize_t>size)
    finally:
        file_record_unlock()
    if recording is None:
        raise MemoryError("the recording does not fit into memory")
    return recorded_calls(recording)
