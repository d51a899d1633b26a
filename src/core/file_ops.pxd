"""Every call on files that the core makes, through one table that tests may replace. Any module
may use it.

All answer 0 or an errno. Calls interrupted by a signal are repeated a bounded number of times.
Paths are NUL-terminated bytes.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef enum FileOpen:
    FILE_READ = 1
    FILE_WRITE = 2                # read and write
    FILE_CREATE = 4               # create when missing
    FILE_EXCLUSIVE = 8            # with FILE_CREATE: EEXIST when it is there

cdef enum FileOp:                 # the names of the table's rows, for faults and counters
    FILE_OP_OPEN = 0
    FILE_OP_OPEN_MEMORY = 1
    FILE_OP_CLOSE = 2
    FILE_OP_WRITE = 3
    FILE_OP_READ = 4
    FILE_OP_ALLOCATE = 5
    FILE_OP_FLUSH = 6
    FILE_OP_FLUSH_DIRECTORY = 7
    FILE_OP_RENAME = 8
    FILE_OP_LINK = 9
    FILE_OP_UNLINK = 10
    FILE_OP_MAKE_DIRECTORY = 11
    FILE_OP_SIZE = 12
    FILE_OP_MAP = 13
    FILE_OP_UNMAP = 14
    FILE_OP_PUNCH_HOLE = 15
    FILE_OP_ZEROS = 16
    FILE_OP_LARGE_FOLIOS = 17
    FILE_OP_RESIDENT = 18
    FILE_OP_RENAME_NEW = 19
    FILE_OP_COUNT = 20

cdef struct FileOps:
    int (*open)(const char* path, uint32_t flags, int* fd) noexcept nogil
    int (*open_memory)(int* fd) noexcept nogil
    int (*close)(int fd) noexcept nogil
    int (*write)(int fd, const uint8_t* data, size_t size, uint64_t offset) noexcept nogil
    int (*read)(int fd, uint8_t* room, size_t size, uint64_t offset, size_t* done) noexcept nogil
    int (*allocate)(int fd, uint64_t offset, uint64_t size) noexcept nogil
    int (*flush)(int fd) noexcept nogil
    int (*flush_map)(uint8_t* base, uint64_t size) noexcept nogil
    int (*flush_directory)(const char* path) noexcept nogil
    int (*rename)(const char* source, const char* target) noexcept nogil
    int (*rename_new)(const char* source, const char* target) noexcept nogil
    int (*link)(const char* source, const char* target) noexcept nogil
    int (*unlink)(const char* path) noexcept nogil
    int (*make_directory)(const char* path, uint32_t mode) noexcept nogil
    int (*size)(int fd, uint64_t* size) noexcept nogil
    int (*map)(int fd, uint64_t offset, uint64_t size, bint writable,
               uint8_t** base) noexcept nogil
    int (*unmap)(uint8_t* base, uint64_t size) noexcept nogil
    int (*punch_hole)(int fd, uint64_t offset, uint64_t size) noexcept nogil
    int (*zeros)(int fd, const uint8_t* data, size_t size, uint64_t offset) noexcept nogil
    int (*large_folios)(int fd) noexcept nogil
    int (*resident)(const uint8_t* base, uint64_t size) noexcept nogil

cdef const FileOps* file_ops_system() noexcept nogil
"""The version that asks the operating system."""

cdef void file_ops_replace(const FileOps* table) noexcept nogil
"""From now on every call goes to table (borrowed for ever); NULL: back to the system's."""

cdef int file_open(const char* path, uint32_t flags, int* fd) noexcept nogil
cdef int file_open_memory(int* fd) noexcept nogil
"""A file without a name, in memory; where the system has none, one of a folder for such files."""

cdef int file_close(int fd) noexcept nogil
cdef int file_write(int fd, const uint8_t* data, size_t size, uint64_t offset) noexcept nogil
"""All of it or an errno; after an errno a part may be written."""

cdef int file_zeros(int fd, const uint8_t* data, size_t size, uint64_t offset) noexcept nogil
"""Like file_write, for zeros in prepared space. An operation of its own: a thread writes them when
it may, and a plan of faults means an entry by the n-th write."""

cdef int file_read(int fd, uint8_t* room, size_t size, uint64_t offset, size_t* done) noexcept nogil
"""done: less than size only at the end of the file."""

cdef int file_allocate(int fd, uint64_t offset, uint64_t size) noexcept nogil
"""Room on the device for these bytes; the file grows when they lie past its end. New bytes read as
zeros. Where the file system cannot make room, they are written: nobody else may write past the end
of the file meanwhile."""

cdef int file_flush(int fd) noexcept nogil
cdef int file_flush_map(uint8_t* base, uint64_t size) noexcept nogil
"""Like file_flush, for what is written in a mapping, whose descriptor may be closed by now."""

cdef int file_flush_directory(const char* path) noexcept nogil
"""0, too, where the file system has no such operation."""

cdef int file_rename(const char* source, const char* target) noexcept nogil
"""Replaces the target when it exists."""

cdef int file_rename_new(const char* source, const char* target) noexcept nogil
"""EEXIST when the target is there; EINVAL or ENOSYS where the file system or the system cannot."""

cdef int file_link(const char* source, const char* target) noexcept nogil
"""EEXIST when the target is there."""

cdef int file_unlink(const char* path) noexcept nogil
cdef int file_make_directory(const char* path, uint32_t mode) noexcept nogil
"""mode: its permissions, without those that the umask takes."""

cdef int file_size(int fd, uint64_t* size) noexcept nogil
cdef bint file_is_overwritten(int fd) noexcept nogil
"""Whether its file system writes the same place anew where a file is overwritten, by its kind:
ext4, XFS, and overlays, which are of one of them as a rule. Others may take new space for it, or a
network."""

cdef bint file_has_large_folios(int fd) noexcept nogil
"""Whether the system keeps such files in pieces of many pages, by its version and the kind of file
system: what is mapped is then mapped by pieces, and not page by page."""

cdef bint file_is_resident(const uint8_t* base, uint64_t size) noexcept nogil
"""Whether these bytes of a mapping are in memory, by a few of their pages. Where the system does
not tell this process, it says so of all."""

cdef int file_map(int fd, uint64_t offset, uint64_t size, bint writable,
                  uint8_t** base) noexcept nogil
"""Shared; offset lies on a page. May reach past the end of the file; such bytes may only be touched
once the file has them."""

cdef int file_unmap(uint8_t* base, uint64_t size) noexcept nogil
cdef int file_punch_hole(int fd, uint64_t offset, uint64_t size) noexcept nogil
"""Give the room back; the bytes read as zeros, the file keeps its size."""
