"""Declares the fields that frame_cutter reads of the commands that come once per entry."""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t


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


cdef enum:
    LINK_SIZE = 48               # 0 instead of a command's size, kind, five numbers


cdef bint send_parse(const uint8_t* frame, size_t size, SendParts* parts) noexcept nogil
"""Read a SEND; frame: without its total size. False: it is none, or has another field than producer
id, sequence id and the number of messages."""

cdef bint receipt_parse(const uint8_t* frame, size_t size, ReceiptParts* parts) noexcept nogil
"""Read a SEND_RECEIPT with the id of a whole entry; frame: without its total size. False: it is
none, or says more than that."""

cdef inline uint32_t size_at(const uint8_t* at) noexcept nogil:
    return <uint32_t>at[0] << 24 | <uint32_t>at[1] << 16 | <uint32_t>at[2] << 8 | at[3]


cdef inline uint64_t number_at(const uint8_t* at) noexcept nogil:
    return <uint64_t>size_at(at) << 32 | size_at(at + 4)
