# cython: language_level=3
"""Body of slice_queue.pxd."""

from cpython.bytes cimport PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t, uint32_t

from pulsarx._core.invariant cimport invariant
from pulsarx._pycore.message.entry_view cimport EntryView

cdef enum:
    FIRST_SLICES = 16
    # bytes that were decompressed and are queued, of all consumers of the process; what comes
    # then is decompressed anew when its turn comes
    PLAIN_QUEUED_MAX = 64 << 20

cdef int64_t plain_queued = 0    # the GIL guards it


cdef bint plain_has_room(EntryView view):
    return plain_queued + PyBytes_GET_SIZE(view.plain) <= PLAIN_QUEUED_MAX


cdef inline void put(Slice* place, const Slice* slice) noexcept:
    """Put a slice into its place in a queue, and count what its view had decompressed."""
    global plain_queued
    cdef EntryView view = <EntryView>slice.view
    place[0] = slice[0]
    place.plain_size = 0
    if view.plain is not None:
        place.plain_size = <uint32_t>PyBytes_GET_SIZE(view.plain)
        plain_queued += place.plain_size


cdef int slices_grow(SliceQueue* self) except -1:
    cdef uint32_t capacity = 2 * self.capacity if self.capacity else FIRST_SLICES
    cdef uint32_t number
    cdef Slice* grown = <Slice*>PyMem_Malloc(capacity * sizeof(Slice))
    if grown == NULL:
        raise MemoryError(f"queue {self.count + 1} entries for a consumer")
    for number in range(self.count):
        grown[number] = slices_at(self, number)[0]
    PyMem_Free(self.ring)
    self.ring = grown
    self.capacity = capacity
    self.head = 0
    return 0


cdef void slices_push(SliceQueue* self, const Slice* slice) noexcept:
    invariant(self.count < self.capacity)
    put(slices_at(self, self.count), slice)
    self.count += 1


cdef void slices_push_first(SliceQueue* self, const Slice* slice) noexcept:
    invariant(self.count < self.capacity)
    self.head = (self.head - 1) & (self.capacity - 1)
    put(&self.ring[self.head], slice)
    self.count += 1


cdef Slice* slices_pop(SliceQueue* self) noexcept:
    global plain_queued
    cdef Slice* slice = &self.ring[self.head]
    self.head = (self.head + 1) & (self.capacity - 1)
    self.count -= 1
    plain_queued -= slice.plain_size
    return slice


cdef void slices_clear(SliceQueue* self) noexcept:
    cdef Slice* slice
    while self.count:
        slice = slices_pop(self)
        PyMem_Free(slice.items)
        Py_DECREF(<object>slice.view)


cdef void slices_free(SliceQueue* self) noexcept:
    slices_clear(self)
    PyMem_Free(self.ring)
    self.ring = NULL
    self.capacity = 0
