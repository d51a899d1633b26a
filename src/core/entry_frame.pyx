"""Encodes and decodes the frame in front of an entry. The layout is in the .pxd."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pulsarx._core.crc32c cimport crc32c, crc32c_u64
from pulsarx._core.limits cimport ENTRY_SIZE_MAX
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_END, STATUS_OK

cdef extern from *:
    """
    #include <stdint.h>
    struct pulsarx_frame_bytes {
        uint32_t entry_size, checksum;
        uint64_t entry_id, durable_count, first_message;
        int64_t publish_time_ms, deliver_at_ms;
        uint32_t message_count, sticky_hash, flags, broker_time;
    };
    _Static_assert(sizeof(struct pulsarx_frame_bytes) == 64, "a frame is 64 bytes");
    _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
                   "frames are copied as they lie in memory");
    """
    ctypedef struct FrameBytes "struct pulsarx_frame_bytes":
        uint32_t entry_size
        uint32_t checksum
        uint64_t entry_id
        uint64_t durable_count
        uint64_t first_message
        int64_t publish_time_ms
        int64_t deliver_at_ms
        uint32_t message_count
        uint32_t sticky_hash
        uint32_t flags
        uint32_t broker_time


cdef inline uint32_t frame_checksum(const uint8_t* data, uint32_t seed,
                                    uint64_t offset) noexcept nogil:
    cdef uint32_t checksum = crc32c_u64(seed, offset)
    checksum = crc32c(checksum, data, 4)
    return crc32c(checksum, data + 8, 56)


cdef void entry_frame_encode(const EntryFrame* frame, uint32_t seed, uint64_t offset,
                             uint8_t* room) noexcept nogil:
    cdef FrameBytes built
    built.entry_size = frame.entry_size
    built.checksum = 0
    built.entry_id = frame.entry_id
    # Nothing is flushed in front of the first entry.
    built.durable_count = frame.durable_count if frame.entry_id else frame.first_index
    built.first_message = frame.first_message
    built.publish_time_ms = frame.publish_time_ms
    built.deliver_at_ms = frame.deliver_at_ms
    built.message_count = frame.message_count
    built.sticky_hash = frame.sticky_hash
    built.flags = frame.flags
    built.broker_time = frame.broker_time
    memcpy(room, &built, sizeof(built))
    built.checksum = frame_checksum(room, seed, offset)
    memcpy(room + 4, &built.checksum, 4)


cdef int entry_frame_decode(const uint8_t* data, uint32_t seed, uint64_t offset,
                            EntryFrame* frame) noexcept nogil:
    cdef FrameBytes found
    cdef uint64_t words[8]
    memcpy(&found, data, sizeof(found))
    # No message count: never a frame of ours, so the zeros are only looked for here.
    if found.message_count == 0 or found.entry_size == 0:
        memcpy(words, data, sizeof(words))
        if words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] | words[7]:
            return STATUS_CORRUPT
        return STATUS_END
    if found.entry_size > ENTRY_SIZE_MAX:
        return STATUS_CORRUPT
    if found.checksum != frame_checksum(data, seed, offset):
        return STATUS_CORRUPT
    frame.entry_size = found.entry_size
    frame.message_count = found.message_count
    frame.entry_id = found.entry_id
    frame.durable_count = found.durable_count if found.entry_id else 0
    frame.first_index = 0 if found.entry_id else found.durable_count
    frame.broker_time = found.broker_time
    frame.first_message = found.first_message
    frame.publish_time_ms = found.publish_time_ms
    frame.deliver_at_ms = found.deliver_at_ms
    frame.sticky_hash = found.sticky_hash
    frame.flags = found.flags
    if not entry_frame_count_holds(frame) or not entry_frame_place_holds(frame):
        return STATUS_CORRUPT
    return STATUS_OK
