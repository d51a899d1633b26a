# cython: language_level=3
"""The messages of entries that a broker sent over a connection."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.message_metadata cimport EntryParts, entry_decode
from pulsarx._core.single_metadata cimport METADATA_BATCH, METADATA_COMPACTED_OUT
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage, chunked_message_new
from pulsarx._pycore.message.entry_bytes cimport entry_bytes_check
from pulsarx._pycore.message.entry_view cimport (
    ENTRY_PLAIN, EntryContext, EntryView, entry_view_chunked, entry_view_join, entry_view_new,
)
from pulsarx._pycore.message.message cimport REDELIVERY_SHIFT, Message, message_new
from pulsarx._pycore.message.message_id cimport MessageId, message_id_new


cdef class ArrivingChunks:
    """The message in chunks that is arriving at one consumer: a broker sends them one behind the
    other. One thread at a time."""
    cdef ChunkedMessage open             # None: none is

    cdef ChunkedMessage add(self, bytes entry, uint64_t ledger_id, EntryFrame* frame,
                            EntryParts* parts):
        """The message when this was its last chunk, else None."""
        cdef bytes uuid = parts.metadata.uuid[:parts.metadata.uuid_size]
        cdef ChunkedMessage found = self.open
        self.open = None
        if parts.metadata.chunk_id == 0:
            found = chunked_message_new(uuid, parts.metadata.chunk_count,
                                        parts.metadata.chunked_size)
        elif found is None or found.uuid != uuid or found.count != parts.metadata.chunk_id or (
                found.chunk_count != parts.metadata.chunk_count):
            raise errors.CorruptDataError(
                detail=f"entry {frame.entry_id} of ledger {ledger_id} is chunk "
                f"{parts.metadata.chunk_id} of a message whose chunks before did not come")
        found.add(entry, ledger_id, frame, <const uint8_t*>PyBytes_AS_STRING(entry), parts)
        if found.is_whole():
            return found
        self.open = found
        return None


def entry_message_count(bytes entry not None) -> int:
    """The number of messages that the metadata of an entry names, as the broker counts permits:
    each chunk is one; 1 where it cannot be read."""
    cdef EntryParts parts
    if PyBytes_GET_SIZE(entry) > <Py_ssize_t>UINT32_MAX:
        return 1
    if entry_decode(<const uint8_t*>PyBytes_AS_STRING(entry),
                    <uint32_t>PyBytes_GET_SIZE(entry), False, &parts) != STATUS_OK:
        return 1
    if parts.metadata.flags & METADATA_BATCH == 0:
        return 1
    return max(1, parts.metadata.message_count)


def entry_messages(EntryContext context not None, uint64_t ledger_id, uint64_t entry_id,
                   bytes entry not None, uint32_t redelivery_count, ack_set,
                   uint32_t decompressed_size_max,
                   ArrivingChunks chunks not None) -> tuple[list[Message], list[MessageId]]:
    """The messages of an entry that came over a connection, oldest first, and the ids of those
    that compaction took out of its batch.

    ack_set: words of 64 bits, the first message the lowest bit of the first; a message whose bit is
    not set is left out. None: all. chunks: takes an entry that is one; its message comes with the
    last. CorruptDataError names ledger and entry.
    """
    cdef ChunkedMessage chunked
    cdef EntryFrame frame
    cdef EntryParts parts
    cdef EntryView view
    cdef BatchMessage each
    cdef uint32_t at = 0
    cdef uint32_t index
    cdef uint32_t count = min(redelivery_count, <uint32_t>65535)
    cdef list found = []
    cdef list taken_out = []
    cdef int status
    if PyBytes_GET_SIZE(entry) > <Py_ssize_t>UINT32_MAX:
        raise errors.CorruptDataError(detail=f"an entry of {len(entry)} bytes")
    try:
        entry_bytes_check(<const uint8_t*>PyBytes_AS_STRING(entry),
                          <uint32_t>PyBytes_GET_SIZE(entry), &frame, &parts)
    except errors.CorruptDataError as error:
        raise errors.CorruptDataError(
            detail=f"entry {entry_id} of ledger {ledger_id}: {error}") from error
    frame.entry_id = entry_id
    if is_chunk(&parts):
        chunked = chunks.add(entry, ledger_id, &frame, &parts)
        if chunked is None:
            return found, taken_out
        view = entry_view_chunked(chunked, context)
        if view.encryption != ENTRY_PLAIN:
            refuse_encrypted(ledger_id, entry_id)
        entry_view_join(view, decompressed_size_max)
        return [message_new(view, view.c_payload, view.payload_size, -1, 0,
                            view.metadata_flags | (count << REDELIVERY_SHIFT))], taken_out
    view = entry_view_new(entry, context, ledger_id, &frame,
                          <const uint8_t*>PyBytes_AS_STRING(entry), decompressed_size_max)
    if view.encryption != ENTRY_PLAIN:
        refuse_encrypted(ledger_id, entry_id)
    if view.metadata_flags & METADATA_BATCH == 0:
        return [message_new(view, view.c_payload, view.payload_size, -1, 0,
                            view.metadata_flags | (count << REDELIVERY_SHIFT))], taken_out
    for index in range(view.message_count):
        status = batch_decode_next(view.c_payload, view.payload_size, &at, &each)
        if status != STATUS_OK:
            raise_status(status, 0, f"read message {index} of entry {entry_id} of ledger "
                                    f"{ledger_id}")
        if ack_set is not None and not has_bit(ack_set, index):
            continue
        if each.flags & METADATA_COMPACTED_OUT:
            taken_out.append(message_id_new(<int64_t>ledger_id, <int64_t>entry_id,
                                            context.partition, <int>index,
                                            <int>view.message_count))
            continue
        found.append(message_new(view, each.payload, each.payload_size, <int>index,
                                 each.encoded_metadata_size,
                                 each.flags | (count << REDELIVERY_SHIFT)))
    return found, taken_out


cdef int refuse_encrypted(uint64_t ledger_id, uint64_t entry_id) except -1:
    raise errors.UnreadableEntryError(
        detail=f"entry {entry_id} of ledger {ledger_id} is encrypted, and decrypting is not "
        "supported yet over a connection")


cdef bint is_chunk(const EntryParts* parts) noexcept:
    return parts.metadata.chunk_count > 1 and parts.metadata.flags & METADATA_BATCH == 0


cdef bint has_bit(list words, uint32_t index) except -1:
    return index >> 6 < <uint32_t>len(words) and (words[index >> 6] >> (index & 63)) & 1
