"""The table of file operations: the system's version and the one in force."""

from libc.errno cimport EAGAIN, EBADF, EINTR, EINVAL, EIO, ENOSYS, EOPNOTSUPP, EPERM, errno
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.low_descriptors cimport low_descriptors_hold, low_descriptors_leave

cdef extern from "<unistd.h>" nogil:
    ssize_t pwrite(int fd, const void* data, size_t size, int64_t offset)
    ssize_t pread(int fd, void* room, size_t size, int64_t offset)
    int fdatasync(int fd)
    int fsync(int fd)
    int close(int fd)
    int link(const char* source, const char* target)
    int unlink(const char* path)
    int getpagesize()
    long syscall(long number, ...)

cdef extern from *:
    """
    #include <sys/syscall.h>
    #ifdef SYS_renameat2
    #define PULSARX_RENAMEAT2 SYS_renameat2
    #else
    #define PULSARX_RENAMEAT2 -1         /* ENOSYS */
    #endif
    """
    const long PULSARX_RENAMEAT2

cdef extern from "<stdio.h>" nogil:
    int rename(const char* source, const char* target)
    int sscanf(const char* text, const char* format, ...)

cdef extern from "<fcntl.h>" nogil:
    int c_open "open"(const char* path, int flags, ...)
    int O_TMPFILE
    int posix_fallocate(int fd, int64_t offset, int64_t size)
    int fallocate(int fd, int mode, int64_t offset, int64_t size)
    int AT_FDCWD
    int O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_CLOEXEC, O_DIRECTORY
    int FALLOC_FL_PUNCH_HOLE, FALLOC_FL_KEEP_SIZE

cdef extern from "<sys/stat.h>" nogil:
    struct c_stat "stat":
        int64_t st_size
    int fstat(int fd, c_stat* out)
    int mkdir(const char* path, unsigned int mode)

cdef extern from "<sys/mman.h>" nogil:
    void* mmap(void* at, size_t size, int protection, int flags, int fd, int64_t offset)
    int msync(void* at, size_t size, int flags)
    int MS_SYNC
    int munmap(void* at, size_t size)
    int mincore(void* at, size_t size, uint8_t* pages)
    int memfd_create(const char* name, unsigned int flags)
    int PROT_READ, PROT_WRITE, MAP_SHARED, MAP_NORESERVE
    unsigned int MFD_CLOEXEC
    void* MAP_FAILED

cdef extern from "<sys/vfs.h>" nogil:
    struct c_statfs "statfs":
        long f_type
    int fstatfs(int fd, c_statfs* found)

cdef extern from "<sys/utsname.h>" nogil:
    struct c_utsname "utsname":
        char release[65]
    int uname(c_utsname* found)

cdef enum:
    INTERRUPTS_MAX = 100
    RENAME_WITHOUT_REPLACING = 1         # RENAME_NOREPLACE, which not all headers have
    EXT4_MAGIC = 0xEF53
    XFS_MAGIC = 0x58465342
    OVERLAY_MAGIC = 0x794C7630
    FOLIOS_MAJOR = 6                     # Linux 6.16: files of ext4 may be in large folios
    FOLIOS_MINOR = 16
    RESIDENT_SAMPLES = 16                # about five microseconds
    ZEROS_SIZE = 65536

cdef uint8_t[ZEROS_SIZE] ZEROS
cdef const char* MEMORY_FOLDERS[3]
MEMORY_FOLDERS[0] = "/dev/shm"
MEMORY_FOLDERS[1] = "/tmp"
MEMORY_FOLDERS[2] = "/var/tmp"


cdef int open_as(const char* path, int mode, int* fd) noexcept nogil:
    cdef int interrupts = 0
    cdef int opened
    cdef int error = low_descriptors_hold()
    if error:
        return error
    while True:
        opened = low_descriptors_leave(c_open(path, mode, 0o644))
        if opened >= 0:
            fd[0] = opened
            return 0
        if errno != EINTR or interrupts == INTERRUPTS_MAX:
            return errno
        interrupts += 1


cdef int system_open(const char* path, uint32_t flags, int* fd) noexcept nogil:
    cdef int mode = O_CLOEXEC
    mode |= O_RDWR if flags & FILE_WRITE else O_RDONLY
    if flags & FILE_CREATE:
        mode |= O_CREAT
    if flags & FILE_EXCLUSIVE:
        mode |= O_EXCL
    return open_as(path, mode, fd)


cdef int system_open_memory(int* fd) noexcept nogil:
    cdef int opened
    cdef int error = low_descriptors_hold()
    if error:
        return error
    opened = low_descriptors_leave(memfd_create("pulsarx", MFD_CLOEXEC))
    if opened < 0:
        return errno
    fd[0] = opened
    return 0


cdef int system_close(int fd) noexcept nogil:
    # EINTR from close means closed on Linux; closing again could hit another thread's file.
    if close(fd) < 0 and errno != EINTR:
        return errno
    return 0


cdef int system_write(int fd, const uint8_t* data, size_t size, uint64_t offset) noexcept nogil:
    cdef int interrupts = 0
    cdef ssize_t done
    while size > 0:
        done = pwrite(fd, data, size, <int64_t>offset)
        if done < 0:
            if errno != EINTR or interrupts == INTERRUPTS_MAX:
                return errno
            interrupts += 1
            continue
        if done == 0:
            return EIO
        data += done
        offset += <uint64_t>done
        size -= <size_t>done
    return 0


cdef int system_read(int fd, uint8_t* room, size_t size, uint64_t offset,
                     size_t* done) noexcept nogil:
    cdef int interrupts = 0
    cdef size_t got = 0
    cdef ssize_t step
    while got < size:
        step = pread(fd, room + got, size - got, <int64_t>(offset + got))
        if step < 0:
            if errno != EINTR or interrupts == INTERRUPTS_MAX:
                return errno
            interrupts += 1
            continue
        if step == 0:
            break
        got += <size_t>step
    done[0] = got
    return 0


cdef int system_allocate(int fd, uint64_t offset, uint64_t size) noexcept nogil:
    cdef int interrupts = 0
    cdef int error
    while True:
        error = posix_fallocate(fd, <int64_t>offset, <int64_t>size)
        if error != EINTR or interrupts == INTERRUPTS_MAX:
            return error
        interrupts += 1


cdef int system_flush(int fd) noexcept nogil:
    # Never repeated: after a failure the kernel forgets which pages it lost.
    if fdatasync(fd) < 0:
        return errno
    return 0


cdef int system_flush_map(uint8_t* base, uint64_t size) noexcept nogil:
    if msync(base, size, MS_SYNC) < 0:
        return errno
    return 0


cdef int system_flush_directory(const char* path) noexcept nogil:
    cdef int fd = -1
    cdef int error = open_as(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, &fd)
    if error:
        return error
    if fsync(fd) < 0:
        error = errno
    close(fd)
    return error


cdef int system_rename(const char* source, const char* target) noexcept nogil:
    return errno if rename(source, target) < 0 else 0


cdef int system_rename_new(const char* source, const char* target) noexcept nogil:
    # The system's function, for old C libraries have none of their own.
    return errno if syscall(PULSARX_RENAMEAT2, AT_FDCWD, source, AT_FDCWD, target,
                            <unsigned int>RENAME_WITHOUT_REPLACING) < 0 else 0


cdef int system_link(const char* source, const char* target) noexcept nogil:
    return errno if link(source, target) < 0 else 0


cdef int system_unlink(const char* path) noexcept nogil:
    return errno if unlink(path) < 0 else 0


cdef int system_make_directory(const char* path, uint32_t mode) noexcept nogil:
    return errno if mkdir(path, mode) < 0 else 0


cdef int system_size(int fd, uint64_t* size) noexcept nogil:
    cdef c_stat found
    if fstat(fd, &found) < 0:
        return errno
    size[0] = <uint64_t>found.st_size
    return 0


cdef int system_map(int fd, uint64_t offset, uint64_t size, bint writable,
                    uint8_t** base) noexcept nogil:
    cdef int protection = PROT_READ
    if writable:
        protection |= PROT_WRITE
    cdef void* mapped = mmap(NULL, size, protection, MAP_SHARED | MAP_NORESERVE, fd,
                             <int64_t>offset)
    if mapped == MAP_FAILED:
        return errno
    base[0] = <uint8_t*>mapped
    return 0


cdef int system_unmap(uint8_t* base, uint64_t size) noexcept nogil:
    return errno if munmap(base, size) < 0 else 0


cdef bint is_of_kind(int fd) noexcept nogil:
    """ext4, XFS, or an overlay, which is of one of them as a rule."""
    cdef c_statfs found
    if fstatfs(fd, &found) < 0:
        return False
    return found.f_type == EXT4_MAGIC or found.f_type == XFS_MAGIC or (
        found.f_type == OVERLAY_MAGIC)


cdef bint system_has_large_folios() noexcept nogil:
    cdef c_utsname found
    cdef int major = 0
    cdef int minor = 0
    if uname(&found) < 0 or sscanf(found.release, "%d.%d", &major, &minor) != 2:
        return False
    return major > FOLIOS_MAJOR or major == FOLIOS_MAJOR and minor >= FOLIOS_MINOR


cdef bint SYSTEM_HAS_FOLIOS = system_has_large_folios()


cdef int system_large_folios(int fd) noexcept nogil:
    return 0 if SYSTEM_HAS_FOLIOS and is_of_kind(fd) else ENOSYS


cdef int system_resident(const uint8_t* base, uint64_t size) noexcept nogil:
    cdef uint64_t page_size = <uint64_t>getpagesize()
    cdef uint64_t last = size - 1 if size else 0
    cdef int sample
    cdef size_t page
    cdef uint8_t found = 0
    for sample in range(RESIDENT_SAMPLES):
        page = <size_t>base + last // (RESIDENT_SAMPLES - 1) * <uint64_t>sample
        if mincore(<void*>(page - page % page_size), 1, &found) < 0:
            return errno
        if found & 1 == 0:
            return EAGAIN
    return 0


cdef int system_punch_hole(int fd, uint64_t offset, uint64_t size) noexcept nogil:
    cdef int interrupts = 0
    while fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, <int64_t>offset,
                    <int64_t>size) < 0:
        if errno != EINTR or interrupts == INTERRUPTS_MAX:
            return errno
        interrupts += 1
    return 0


cdef FileOps SYSTEM
SYSTEM.open = system_open
SYSTEM.open_memory = system_open_memory
SYSTEM.close = system_close
SYSTEM.write = system_write
SYSTEM.read = system_read
SYSTEM.allocate = system_allocate
SYSTEM.flush = system_flush
SYSTEM.flush_map = system_flush_map
SYSTEM.flush_directory = system_flush_directory
SYSTEM.rename = system_rename
SYSTEM.rename_new = system_rename_new
SYSTEM.link = system_link
SYSTEM.unlink = system_unlink
SYSTEM.make_directory = system_make_directory
SYSTEM.size = system_size
SYSTEM.map = system_map
SYSTEM.unmap = system_unmap
SYSTEM.punch_hole = system_punch_hole
SYSTEM.zeros = system_write
SYSTEM.large_folios = system_large_folios
SYSTEM.resident = system_resident

cdef const FileOps* IN_FORCE = &SYSTEM


cdef const FileOps* file_ops_system() noexcept nogil:
    return &SYSTEM


cdef void file_ops_replace(const FileOps* table) noexcept nogil:
    global IN_FORCE
    IN_FORCE = table if table != NULL else &SYSTEM


cdef int file_open(const char* path, uint32_t flags, int* fd) noexcept nogil:
    return IN_FORCE.open(path, flags, fd)


cdef bint is_unknown(int error) noexcept nogil:
    """Whether the file system, the kernel or a sandbox has no such operation."""
    return error == ENOSYS or error == EOPNOTSUPP or error == EINVAL or error == EPERM


cdef int file_open_memory(int* fd) noexcept nogil:
    cdef int error = IN_FORCE.open_memory(fd)
    cdef int place, opened
    if not is_unknown(error):
        return error
    for place in range(3):
        opened = low_descriptors_leave(
            c_open(MEMORY_FOLDERS[place], O_TMPFILE | O_RDWR | O_CLOEXEC, 0o600))
        if opened >= 0:
            fd[0] = opened
            return 0
    return error


cdef int file_close(int fd) noexcept nogil:
    return IN_FORCE.close(fd)


cdef int file_write(int fd, const uint8_t* data, size_t size, uint64_t offset) noexcept nogil:
    return IN_FORCE.write(fd, data, size, offset)


cdef int file_zeros(int fd, const uint8_t* data, size_t size, uint64_t offset) noexcept nogil:
    return IN_FORCE.zeros(fd, data, size, offset)


cdef int file_read(int fd, uint8_t* room, size_t size, uint64_t offset,
                   size_t* done) noexcept nogil:
    return IN_FORCE.read(fd, room, size, offset, done)


cdef int file_allocate(int fd, uint64_t offset, uint64_t size) noexcept nogil:
    cdef int error = IN_FORCE.allocate(fd, offset, size)
    cdef uint64_t at = 0
    cdef uint64_t step
    if not is_unknown(error):
        return error
    # What the file has already was written, so it has its room.
    error = IN_FORCE.size(fd, &at)
    while error == 0 and at < offset + size:
        step = min(offset + size - at, <uint64_t>ZEROS_SIZE)
        error = IN_FORCE.zeros(fd, ZEROS, step, at)
        at += step
    return error


cdef int file_flush(int fd) noexcept nogil:
    return IN_FORCE.flush(fd)


cdef int file_flush_map(uint8_t* base, uint64_t size) noexcept nogil:
    return IN_FORCE.flush_map(base, size)


cdef int file_flush_directory(const char* path) noexcept nogil:
    cdef int error = IN_FORCE.flush_directory(path)
    # As of SMB and some of FUSE: where a name is made it is with the server.
    return 0 if is_unknown(error) or error == EBADF else error


cdef int file_rename(const char* source, const char* target) noexcept nogil:
    return IN_FORCE.rename(source, target)


cdef int file_rename_new(const char* source, const char* target) noexcept nogil:
    return IN_FORCE.rename_new(source, target)


cdef int file_link(const char* source, const char* target) noexcept nogil:
    return IN_FORCE.link(source, target)


cdef int file_unlink(const char* path) noexcept nogil:
    return IN_FORCE.unlink(path)


cdef int file_make_directory(const char* path, uint32_t mode) noexcept nogil:
    return IN_FORCE.make_directory(path, mode)


cdef int file_size(int fd, uint64_t* size) noexcept nogil:
    return IN_FORCE.size(fd, size)


cdef int file_map(int fd, uint64_t offset, uint64_t size, bint writable,
                  uint8_t** base) noexcept nogil:
    return IN_FORCE.map(fd, offset, size, writable, base)


cdef int file_unmap(uint8_t* base, uint64_t size) noexcept nogil:
    return IN_FORCE.unmap(base, size)


cdef bint file_is_overwritten(int fd) noexcept nogil:
    return is_of_kind(fd)


cdef bint file_has_large_folios(int fd) noexcept nogil:
    return IN_FORCE.large_folios(fd) == 0


cdef bint file_is_resident(const uint8_t* base, uint64_t size) noexcept nogil:
    return IN_FORCE.resident(base, size) == 0


cdef int file_punch_hole(int fd, uint64_t offset, uint64_t size) noexcept nogil:
    return IN_FORCE.punch_hole(fd, offset, size)
