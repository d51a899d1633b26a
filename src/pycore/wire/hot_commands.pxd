"""Declares what frame_cutter reads of the commands that come once per entry, and how those are
written that go out once per entry."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef struct SendParts:
    uint64_t producer_id
    uint64_t sequence_id
    const uint8_t* entry
    size_t entry_size


cdef struct ReceiptParts:
    uint64_t producer_id
    uint64_t sequence_id
    uint64_t ledger_id
    uint64_t entry_id
    int32_t partition                    # -1: none


cdef struct AckParts:
    uint64_t consumer_id
    const uint8_t* at                    # of the first id, which ack_next takes
    const uint8_t* end


cdef struct FlowParts:
    uint64_t consumer_id
    uint32_t permits


cdef enum:
    COMMAND_SIZE_MAX = 160       # bytes of a frame that is written here, without its entry
    LINK_SIZE = 48               # 0 instead of a command's size, kind, five numbers


cdef bint send_parse(const uint8_t* frame, size_t size, SendParts* parts) noexcept nogil
"""Read a SEND; frame: without its total size. False: it is none, or has another field than producer
id, sequence id and the number of messages."""

cdef bint receipt_parse(const uint8_t* frame, size_t size, ReceiptParts* parts) noexcept nogil
"""Read a SEND_RECEIPT with the id of a whole entry; frame: without its total size. False: it is
none, or says more than that."""

cdef bint ack_parse(const uint8_t* frame, size_t size, AckParts* parts) noexcept nogil
"""Read an ACK of whole entries, one by one, in no transaction and without a request; frame: without
its total size. False: it is none, or says more than that."""

cdef bint ack_next(AckParts* parts, uint64_t* ledger_id, uint64_t* entry_id) noexcept nogil
"""Take the next id of an ACK that was read. False: there is none any more."""

cdef bint flow_parse(const uint8_t* frame, size_t size, FlowParts* parts) noexcept nogil
"""Read a FLOW; frame: without its total size. False: it is none."""

cdef size_t receipt_put(uint8_t* to, uint64_t producer_id, uint64_t sequence_id, int64_t ledger_id,
                        int64_t entry_id, int32_t partition) noexcept nogil
"""Write a SEND_RECEIPT into COMMAND_SIZE_MAX bytes; partition -1: none. Return its size."""

cdef size_t message_put(uint8_t* to, uint64_t consumer_id, int64_t ledger_id, int64_t entry_id,
                        int32_t partition, uint32_t redelivery_count, uint64_t epoch,
                        const uint8_t* entry, uint32_t size) noexcept nogil
"""Write a MESSAGE that is a whole entry into COMMAND_SIZE_MAX + size bytes; partition -1: none.
Return its size."""

cdef inline uint32_t size_at(const uint8_t* at) noexcept nogil:
    return <uint32_t>at[0] << 24 | <uint32_t>at[1] << 16 | <uint32_t>at[2] << 8 | at[3]


cdef inline uint64_t number_at(const uint8_t* at) noexcept nogil:
    return <uint64_t>size_at(at) << 32 | size_at(at + 4)
