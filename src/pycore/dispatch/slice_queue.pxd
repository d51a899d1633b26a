"""A queue of slices: the entries of which a consumer was given messages, in order. Beneath
entry_sink; with the subscription's mutex held.

A slice is a run of messages of one entry, or picked ones. A queue counts how much of what its
entries had decompressed lies in it, for all consumers of the process together.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._pycore.message.entry_view cimport EntryView

cdef struct SliceItem:
    uint32_t at                          # offset of the message in the entry's payload
    uint32_t index                       # its batch index
    # As whoever routed it read it: in front of its payload, and that. 0: it is to be read.
    uint32_t header_size
    uint32_t payload_size
    uint32_t flags                       # MetadataFlags

cdef struct Slice:
    void* view                           # owned reference to an EntryView
    SliceItem* items                     # owned; NULL: all from `first` on
    uint32_t at                          # without items: offset and index of the first message
    uint32_t first
    uint32_t end                         # without items: one behind the last index
    uint32_t item_count
    uint32_t tag
    uint32_t plain_size                  # what its view had decompressed when it was queued

cdef struct SliceQueue:
    Slice* ring                          # owned
    uint32_t head
    uint32_t count
    uint32_t capacity                    # a power of two, or 0

cdef struct SlicePlace:
    # Where a consumer is in the slice that it hands out; the view is the consumer's.
    SliceItem* items                     # owned
    uint64_t generation                  # of the dispatcher, when it was taken out of the queue
    uint32_t at                          # offset of its next message in the payload
    uint32_t index                       # batch index of its next message
    uint32_t end                         # one behind its last index, or the number of items
    uint32_t item_at                     # of items, the next
    uint32_t tag
    bint filtered                        # each message must be claimed


cdef inline void slice_item_set(SliceItem* self, uint32_t at, uint32_t index) noexcept:
    """A message that nobody has read, or of which nobody kept what was read."""
    self.at = at
    self.index = index
    self.header_size = 0


cdef int slices_grow(SliceQueue* self) except -1
"""Make room for more slices. MemoryError: nothing has changed."""

cdef inline int slices_reserve(SliceQueue* self, uint32_t count) except -1:
    """Have room for so many more."""
    while self.capacity - self.count < count:
        slices_grow(self)
    return 0


cdef void slices_push(SliceQueue* self, const Slice* slice) noexcept
"""Queue a slice, for which there is room; its view and items are the queue's from now on."""

cdef void slices_push_first(SliceQueue* self, const Slice* slice) noexcept
"""Like slices_push, in front of what is queued."""

cdef Slice* slices_pop(SliceQueue* self) noexcept
"""Take the first out of one that is not empty; its view and items are the caller's. To be read
before anything is queued."""

cdef inline Slice* slices_at(SliceQueue* self, uint32_t number) noexcept:
    """The slice with this number, from 0."""
    return &self.ring[(self.head + number) & (self.capacity - 1)]


cdef void slices_clear(SliceQueue* self) noexcept
"""Let go of everything that is queued."""

cdef void slices_free(SliceQueue* self) noexcept
"""Like slices_clear, and free the ring itself."""

cdef bint plain_has_room(EntryView view)
"""Whether what a view has decompressed may be queued as it is."""
