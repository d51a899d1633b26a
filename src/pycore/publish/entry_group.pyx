# cython: language_level=3
"""Body of entry_group.pxd."""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pulsarx._core.entry_frame cimport EntryFrame, entry_frame_span
from pulsarx._core.limits cimport ENTRY_FRAME_SIZE

cdef enum:
    SPARE_MAX = 4                # as many as are likely to be in use at a time

cdef list spare = []             # the GIL guards it


cdef class EntryGroup:
    """See the pxd."""

    def __cinit__(self) -> None:
        self.room = <uint8_t*>PyMem_Malloc(GROUP_SIZE_MAX)
        if self.room == NULL:
            raise MemoryError(f"store {GROUP_SIZE_MAX} bytes together")

    def __dealloc__(self) -> None:
        PyMem_Free(self.room)

    cdef bint has_room(self, uint32_t entry_size) noexcept:
        return self.count < GROUP_COUNT_MAX and (
            self.size + entry_frame_span(entry_size) <= GROUP_SIZE_MAX)

    cdef void add(self, const EntryFrame* frame, uint64_t sequence_id,
                  const uint8_t* entry) noexcept:
        cdef uint64_t span = entry_frame_span(frame.entry_size)
        cdef uint8_t* at = self.room + self.size + ENTRY_FRAME_SIZE
        memcpy(at, entry, frame.entry_size)
        memset(at + frame.entry_size, 0, span - ENTRY_FRAME_SIZE - frame.entry_size)
        self.frames[self.count] = frame[0]
        self.sequence_ids[self.count] = sequence_id
        self.count += 1
        self.size += span

    cdef const uint8_t* entry_at(self, uint64_t offset) noexcept:
        return self.room + offset + ENTRY_FRAME_SIZE


cdef EntryGroup group_take():
    return spare.pop() if spare else EntryGroup.__new__(EntryGroup)


cdef void group_give_back(EntryGroup group):
    group.count = group.answered = 0
    group.size = 0
    group.is_stored = False
    if len(spare) < SPARE_MAX:
        spare.append(group)
