"""The file of one durable cursor: generations on disk, the mapped tail of the newest one.

Used by AckTracker alone, with the subscription's mutex held; only flush may come from another
thread meanwhile.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.atomic cimport pthread_mutex_t
from pulsarx._core.cursor_record cimport CursorHeader, CursorTail

cdef class CursorStore:
    cdef CursorTail c_tail              # inside c_map
    cdef uint8_t* c_map                 # owned mapping of the tail
    cdef size_t c_map_size
    cdef uint32_t c_closed
    cdef uint32_t c_poisoned            # a flush failed: the next generation cures it
    cdef pthread_mutex_t c_flush_mutex  # guards c_map, c_poisoned; after the subscription's
    cdef CursorHeader c_header
    cdef object files
    cdef str directory
    cdef str name
    cdef list names                     # until loaded
    cdef list extras                    # paths of this cursor that may be there besides; None: no
    cdef bytes identity
    cdef str topic                      # of the subscription; "": the header does not say whose
    cdef object subscription            # its record; None: likewise
    cdef bint read_only                 # beside the owner: a copy of the tail, nothing is written
    cdef list damage_texts              # None: nothing is damaged
    cdef readonly uint64_t generation   # 0: nothing is on disk yet
    cdef readonly uint64_t damaged_count

    cdef uint64_t newest                # highest generation ever seen

    cdef object load(self)
    cdef int write_generation(self, bytes snapshot, uint64_t base_ledger_id) except -1
    cdef int write_once(self, bytes snapshot, uint64_t base_ledger_id, bint small) except -1
    cdef int flush(self) except -1
    cdef int close(self) except -1
    cdef int delete(self) except -1
    cdef void abandon(self) noexcept
    cdef int note_damage(self, str text) except -1
    cdef str path_of(self, uint64_t generation)
    cdef list generations(self)
    cdef int extra(self, str path) except -1
    cdef int keep_damaged(self, str path) except -1
    cdef object load_generation(self, uint64_t generation)
    cdef int check(self, bytes data, const CursorHeader* header, uint64_t generation)
    cdef int map_existing(self, str path, bytes data, const CursorHeader* header) except -1
    cdef uint8_t* copied_tail(self, bytes data, const CursorHeader* header) except NULL
    cdef int take_over(self, const CursorHeader* header, uint8_t* room) except -1
    cdef bytes encode(self, bytes snapshot, uint64_t base_ledger_id, bint small,
                      CursorHeader* header)
    cdef int discard(self, str path) except -1
    cdef void rest(self) noexcept
    cdef void unmap(self) noexcept
