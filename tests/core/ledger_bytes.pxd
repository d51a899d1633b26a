"""The bytes of a ledger file in memory, made entry by entry, for tests of what reads them."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.entry_frame cimport EntryFrame, entry_frame_encode, entry_frame_span


cdef inline uint64_t put_entry(uint8_t* base, uint32_t seed, uint64_t at, uint64_t entry_id,
                               uint64_t first_message, uint32_t message_count,
                               uint64_t durable_count=0, int64_t publish_time_ms=5,
                               uint32_t size=30, uint32_t flags=0) noexcept:
    """Where the next one begins."""
    cdef EntryFrame frame
    cdef uint8_t* entry = base + at + 64
    cdef uint32_t checksum
    memset(&frame, 0, sizeof(frame))
    frame.entry_size = size
    frame.entry_id = entry_id
    frame.first_message = first_message
    frame.message_count = message_count
    frame.durable_count = durable_count
    frame.publish_time_ms = publish_time_ms
    frame.flags = flags
    entry_frame_encode(&frame, seed, at, base + at)
    memset(entry, 0, entry_frame_span(size) - 64)
    memset(entry, 7, size)
    entry[0] = 0x0E
    entry[1] = 0x01
    checksum = crc32c(0, entry + 6, size - 6) if size >= 6 else 0
    entry[2] = checksum >> 24
    entry[3] = checksum >> 16 & 255
    entry[4] = checksum >> 8 & 255
    entry[5] = checksum & 255
    return at + entry_frame_span(size)
