"""A received message. 48 bytes and a share of its EntryView: payload, key and properties stay in
the ledger's mapping until they are asked for.
"""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t

from pulsarx._pycore.message.entry_view cimport ENTRY_UNREADABLE, EntryView

cdef enum:
    REDELIVERY_SHIFT = 16        # Message.flags holds the redelivery count above the others


cdef class Message:
    cdef EntryView entry
    cdef const uint8_t* c_payload
    cdef uint32_t payload_size
    cdef int32_t batch_index             # -1: the entry is this message
    cdef uint32_t encoded_metadata_size  # of a message in a batch: right before its payload
    cdef uint32_t flags                  # MetadataFlags; in the upper half the redelivery count


cdef inline Message message_new(EntryView entry, const uint8_t* payload, uint32_t payload_size,
                                int32_t batch_index,
                                uint32_t encoded_metadata_size, uint32_t flags):
    cdef Message message = Message.__new__(Message)
    message.entry = entry
    message.c_payload = payload
    message.payload_size = payload_size
    message.batch_index = batch_index
    message.encoded_metadata_size = encoded_metadata_size
    message.flags = flags
    return message


cdef inline uint64_t message_ordinal(Message message) noexcept:
    """The ordinal of the message in its ledger."""
    return message.entry.first_message + <uint32_t>(
        message.batch_index if message.batch_index > 0 else 0)


cdef inline uint64_t message_extent(Message message) noexcept:
    """How many messages of its ledger it stands for: more than one where a batch that could not be
    decrypted was delivered as it is stored."""
    if message.entry.encryption == ENTRY_UNREADABLE:
        return message.entry.message_count
    return 1


cdef object message_id_of(Message self)
