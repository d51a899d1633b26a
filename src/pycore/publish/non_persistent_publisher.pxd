"""An EntryPublisher of a topic that keeps nothing: an entry goes to the consumers that have room
for it now, and is confirmed in any case."""

from libc.stdint cimport uint8_t, uint32_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._pycore.ground.rate_counter cimport RateCounter
from pulsarx._pycore.message.entry_target cimport EntryFanOut
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher


cdef class NonPersistentPublisher(EntryPublisher):
    cdef EntryFanOut fan_out
    cdef object decompress               # (kind, data, uncompressed size, limit) -> bytes
    cdef uint32_t decompressed_size_max
    cdef readonly RateCounter drops      # messages, once for each subscription that dropped one

    cdef int hand_out(self, list targets, EntryFrame* frame, const uint8_t* entry) except -1
    cdef bytes plain_of(self, const uint8_t* entry, uint32_t size)
