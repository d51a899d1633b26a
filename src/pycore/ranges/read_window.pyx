# cython: language_level=3
"""Body of read_window.pxd."""

from libc.stdint cimport uint64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memmove

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.file_ops cimport FILE_READ, file_close, file_open, file_read
from pulsarx._core.ledger_read cimport LedgerRead, ledger_read_entry
from pulsarx._core.status cimport STATUS_END, STATUS_IO, STATUS_NO_MEMORY, STATUS_OK

cdef enum:
    WINDOW_SIZE = 524288                 # half of what the cache of a core holds


cdef int read_window_open(ReadWindow* self, const char* path, uint64_t at,
                          const LedgerRead* read) noexcept nogil:
    self.descriptor = -1
    self.room = <uint8_t*>malloc(WINDOW_SIZE)
    if self.room == NULL:
        return STATUS_NO_MEMORY
    if file_open(path, FILE_READ, &self.descriptor) != 0:
        self.descriptor = -1
        read_window_close(self)
        return STATUS_IO
    self.at = at
    self.start = 0
    self.read.base = self.room
    self.read.mapped_size = 0
    self.read.seed = read.seed
    return STATUS_OK


cdef void read_window_close(ReadWindow* self) noexcept nogil:
    if self.descriptor >= 0:
        file_close(self.descriptor)
        self.descriptor = -1
    free(self.room)
    self.room = NULL


cdef bint move_to(ReadWindow* self, uint64_t offset, uint64_t end) noexcept nogil:
    """Have the window begin at offset; whether there is more in it now."""
    cdef size_t kept = 0
    cdef size_t done = 0
    cdef size_t wanted = WINDOW_SIZE
    if self.start <= offset < self.read.mapped_size:
        kept = self.read.mapped_size - offset
        memmove(self.room, self.room + (offset - self.start), kept)
    if wanted > end - offset:
        wanted = end - offset
    self.start = offset
    self.read.base = self.room - offset
    self.read.mapped_size = offset + kept
    if wanted <= kept or file_read(self.descriptor, self.room + kept, wanted - kept,
                                   self.at + offset + kept, &done) != 0:
        return False
    self.read.mapped_size += done
    return done > 0


cdef int read_window_entry(ReadWindow* self, uint64_t offset, uint64_t end, EntryFrame* frame,
                           const uint8_t** entry, uint64_t* next_offset) noexcept nogil:
    cdef int status = STATUS_END
    if offset >= end:
        return STATUS_END
    if self.start <= offset < self.read.mapped_size:
        status = ledger_read_entry(&self.read, offset, self.read.mapped_size, frame, entry,
                                   next_offset)
    if status != STATUS_OK and move_to(self, offset, end):
        status = ledger_read_entry(&self.read, offset, self.read.mapped_size, frame, entry,
                                   next_offset)
    return status
