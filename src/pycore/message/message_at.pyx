# cython: language_level=3
"""Body of message_at.pxd."""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.single_metadata cimport METADATA_BATCH, METADATA_COMPACTED_OUT
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage
from pulsarx._pycore.message.entry_view cimport (
    EntryContext, EntryView, entry_view_chunked, entry_view_join, entry_view_new,
)
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader, READ_ENTRY
from pulsarx._pycore.message.message cimport REDELIVERY_SHIFT, Message, message_new


cdef Message message_at(LedgerReader reader, EntryContext context, uint64_t ledger_id,
                        uint64_t message, uint32_t redelivery_count,
                        uint32_t decompressed_size_max):
    cdef BatchMessage found
    cdef EntryView view
    cdef uint32_t at = 0
    cdef uint32_t walked = 0
    cdef uint32_t index
    if reader.read_message(ledger_id, message) != READ_ENTRY:
        return None
    try:
        view = entry_view_new(reader.span.file, context, ledger_id, &reader.c_frame,
                              reader.c_entry, decompressed_size_max)
    except errors.CorruptDataError:
        return None
    if view.metadata_flags & METADATA_BATCH == 0:
        return message_new(view, view.c_payload, view.payload_size, -1, 0,
                           view.metadata_flags | (redelivery_count << REDELIVERY_SHIFT))
    index = <uint32_t>(message - view.first_message)
    if message_place(view, index, &at, &walked) != STATUS_OK or (
            batch_decode_next(view.c_payload, view.payload_size, &at, &found) != STATUS_OK) or (
            found.flags & METADATA_COMPACTED_OUT):
        return None
    return message_new(view, found.payload, found.payload_size, <int>index,
                       found.encoded_metadata_size,
                       found.flags | (redelivery_count << REDELIVERY_SHIFT))


cdef Message chunked_message_at(ChunkedMessage chunked, EntryContext context,
                                uint32_t redelivery_count, uint32_t decompressed_size_max):
    cdef EntryView view
    try:
        view = entry_view_chunked(chunked, context)
        entry_view_join(view, decompressed_size_max)
    except errors.CorruptDataError:
        return None
    return message_new(view, view.c_payload, view.payload_size, -1, 0,
                       view.metadata_flags | (redelivery_count << REDELIVERY_SHIFT))


cdef int message_place(EntryView view, uint32_t index, uint32_t* at, uint32_t* walked) noexcept:
    cdef BatchMessage passed
    cdef int status
    while walked[0] < index:
        status = batch_decode_next(view.c_payload, view.payload_size, at, &passed)
        if status != STATUS_OK:
            return status
        walked[0] += 1
    return STATUS_OK
