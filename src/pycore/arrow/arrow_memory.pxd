"""Memory of columns, 64-byte aligned. For arrow_block and range_block. Any thread, with or without
the GIL.

Memory that the system has just given costs several times the copying into it (each page is faulted
in and cleared), so that a few large rooms are kept for the next block: 32 MiB at most.
"""

cdef void* room_new(size_t size) noexcept nogil
"""At least so many bytes and 64 more that may be read; NULL: no memory. Not cleared."""

cdef void room_free(void* room) noexcept nogil
"""room: may be NULL."""

cdef int room_grow(void** room, size_t used, size_t wanted, bint zeroed) noexcept nogil
"""Move used bytes into a room of wanted bytes, the rest zeroed or as it is. STATUS_NO_MEMORY:
nothing was changed."""
