"""Body of ledger_block.pxd."""

from libc.errno cimport ENOMEM
from libc.stdint cimport uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from pulsarx._core.file_ops cimport file_write
from pulsarx._core.invariant cimport invariant


cdef int ledger_block_init(LedgerBlock* self, uint64_t end) noexcept nogil:
    invariant(end < LEDGER_BLOCK_MIN)
    self.room = <uint8_t*>malloc(LEDGER_BLOCK_MIN)
    self.size = LEDGER_BLOCK_MIN
    self.start = 0
    self.written = end
    self.end = end
    return 0 if self.room != NULL else ENOMEM


cdef void next_block(LedgerBlock* self) noexcept nogil:
    cdef uint8_t* room
    self.start += self.size
    if self.size < LEDGER_BLOCK_MAX and self.start % (2 * self.size) == 0:
        room = <uint8_t*>malloc(2 * self.size)
        if room != NULL:             # else blocks stay as they are: slower, and that is all
            free(self.room)
            self.room = room
            self.size *= 2


cdef int ledger_block_append(LedgerBlock* self, int fd, const uint8_t* data,
                             uint64_t size) noexcept nogil:
    cdef uint64_t before = self.end
    cdef uint64_t step
    cdef int error
    while size:
        step = min(size, self.start + self.size - self.end)
        memcpy(self.room + (self.end - self.start), data, step)
        self.end += step
        data += step
        size -= step
        if self.end == self.start + self.size:
            error = ledger_block_write(self, fd)
            if error:
                self.end = max(before, self.written)
                return error
            next_block(self)
    return 0


cdef int ledger_block_write(LedgerBlock* self, int fd) noexcept nogil:
    cdef int error
    if self.end == self.written:
        return 0
    error = file_write(fd, self.room + (self.written - self.start), self.end - self.written,
                       self.written)
    if error == 0:
        self.written = self.end
    return error


cdef void ledger_block_free(LedgerBlock* self) noexcept nogil:
    free(self.room)
    self.room = NULL
