# cython: language_level=3
"""Body of entry_bytes.pxd."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx import errors
from pulsarx._core.entry_frame cimport (
    ENTRY_BATCH, ENTRY_CHUNK, ENTRY_COMPRESSED, ENTRY_MARKER, EntryFrame,
)
from pulsarx._core.message_metadata cimport EntryParts, entry_decode
from pulsarx._core.single_metadata cimport (
    METADATA_BATCH, METADATA_DELIVER_AT, METADATA_MARKER, METADATA_UUID,
)
from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.sticky_key cimport sticky_key_of_entry
from pulsarx._pycore.ground.raise_status cimport raise_status


cdef int entry_bytes_check(const uint8_t* entry, uint32_t size, EntryFrame* frame,
                           EntryParts* parts) except -1:
    cdef int status = entry_decode(entry, size, True, parts)
    cdef bint is_batch
    if status != STATUS_OK:
        raise_status(status, 0, f"take apart an entry of {size} bytes that came over a connection")
    if not parts.has_checksum:
        raise errors.CorruptDataError(detail=f"an entry of {size} bytes came without a checksum")
    is_batch = parts.metadata.flags & METADATA_BATCH != 0
    if is_batch and parts.metadata.message_count == 0:
        raise errors.CorruptDataError(
            detail=f"an entry of {size} bytes is a batch without messages")
    if parts.metadata.publish_time_ms > <uint64_t>INT64_MAX:
        raise errors.CorruptDataError(
            detail=f"an entry of {size} bytes was published at {parts.metadata.publish_time_ms} ms")
    memset(frame, 0, sizeof(EntryFrame))
    frame.entry_size = size
    frame.message_count = parts.metadata.message_count if is_batch else 1
    frame.publish_time_ms = <int64_t>parts.metadata.publish_time_ms
    if parts.metadata.flags & METADATA_DELIVER_AT:
        frame.deliver_at_ms = parts.metadata.deliver_at_ms
    frame.flags = (ENTRY_BATCH if is_batch else 0) | (
        ENTRY_COMPRESSED if parts.metadata.compression else 0) | (
        ENTRY_CHUNK if parts.metadata.flags & METADATA_UUID else 0) | (
        ENTRY_MARKER if parts.metadata.flags & METADATA_MARKER else 0)
    frame.sticky_hash = sticky_key_of_entry(&parts.metadata)
    return 0
