"""A table of file operations that carries out each call and writes down what it did, for tests of
power cuts. It wraps the system's; at most one recording is made at a time.

Calls are carried out one at a time, so their order in the recording is the one in which they took
effect. Stores to writable mappings are no calls: in front of every call that is recorded, and of
every mark, the pages of mappings that differ from what was last seen of them are recorded. Files
without a name, reads and mappings that are only read are left out; so are calls that failed without
an effect, and those of children.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

cdef enum FileRecordOp:                  # beside those of FileOp
    FILE_RECORD_MARK = 100               # data: what a test said
    FILE_RECORD_STORE = 101              # a page of a mapping as it is now: map, offset in it, data
    FILE_RECORD_FLUSH_MAP = 102          # map, offset in it, size

cdef struct FileRecord:
    # Behind it in the recording: path, other path, data, and zeros up to a multiple of 8.
    uint32_t op                          # FileOp or FileRecordOp
    int32_t error                        # 0: it was carried out; else it may be in part
    int32_t fd
    uint32_t map                         # number of the mapping; 0: none
    uint64_t offset
    uint64_t size                        # of a write: of what was to be written
    uint32_t flags                       # of an open: FileOpen
    uint32_t is_new                      # of an open: it made the file
    uint32_t path_size
    uint32_t other_size                  # of the second path of a rename or link
    uint64_t data_size                   # of a write of zeros: 0

cdef void file_record_install() noexcept nogil
"""From now on calls are recorded, and the recording is empty."""

cdef void file_record_remove() noexcept nogil
"""Go back to the system's calls. The recording stays until the next one begins, or is freed."""

cdef void file_record_mark(const uint8_t* data, size_t size) noexcept nogil
"""Write down what a test says of this moment."""

cdef const uint8_t* file_record_lock(uint64_t* size) noexcept nogil
"""The recording so far; no call is carried out until file_record_unlock. NULL: there was no memory
for all of it."""

cdef void file_record_unlock() noexcept nogil

cdef void file_record_free() noexcept nogil
"""Give the memory of a recording back that is removed."""
