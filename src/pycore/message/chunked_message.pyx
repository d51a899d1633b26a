# cython: language_level=3
"""Body of chunked_message.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pulsarx import errors
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.message_metadata cimport EntryParts
from pulsarx._core.single_metadata cimport METADATA_ENCRYPTED

cdef enum:
    FIRST_CHUNKS = 8


cdef class ChunkedMessage:
    """The chunks of one message. With the subscription's mutex held; `join` needs none once it is
    whole."""

    def __dealloc__(self) -> None:
        PyMem_Free(self.chunks)

    cdef int add(self, object pin, uint64_t ledger_id, const EntryFrame* frame,
                 const uint8_t* entry, const EntryParts* parts) except -1:
        cdef Chunk* grown
        cdef uint32_t capacity
        if self.count == self.capacity:
            capacity = 2 * self.capacity if self.capacity else <uint32_t>FIRST_CHUNKS
            grown = <Chunk*>PyMem_Realloc(self.chunks, capacity * sizeof(Chunk))
            if grown == NULL:
                raise MemoryError(f"remember {capacity} chunks of a message")
            self.chunks = grown
            self.capacity = capacity
        if not self.pins or self.pins[len(self.pins) - 1] is not pin:
            self.pins.append(pin)
        self.chunks[self.count].ledger_id = ledger_id
        self.chunks[self.count].message = frame.first_message
        self.chunks[self.count].payload = parts.payload
        self.chunks[self.count].size = parts.payload_size
        self.chunks[self.count].entry_id = frame.entry_id
        self.chunks[self.count].entry = entry
        self.chunks[self.count].entry_size = frame.entry_size
        self.count += 1
        self.size += parts.payload_size
        self.encrypted |= parts.metadata.flags & METADATA_ENCRYPTED != 0
        self.frame = frame[0]
        self.c_entry = entry
        self.pin = pin
        return 0

    cdef bytes join(self):
        self.check_size(self.size)
        return self.stored()

    cdef int check_size(self, uint64_t size) except -1:
        cdef Chunk* last = &self.chunks[self.count - 1]
        if size != self.chunked_size:
            raise errors.CorruptDataError(
                detail=f"put together the {self.count} chunks of entry {self.frame.entry_id} of "
                f"ledger {last.ledger_id}: they hold {size} bytes, and total_chunk_msg_size is "
                f"{self.chunked_size}")
        return 0

    cdef bytes stored(self):
        cdef bytes joined
        cdef uint8_t* at
        cdef uint32_t number
        joined = PyBytes_FromStringAndSize(NULL, <Py_ssize_t>self.size)
        at = <uint8_t*>PyBytes_AS_STRING(joined)
        with nogil:
            for number in range(self.count):
                memcpy(at, self.chunks[number].payload, self.chunks[number].size)
                at += self.chunks[number].size
        return joined


cdef ChunkedMessage chunked_message_new(bytes uuid, uint32_t chunk_count, uint32_t chunked_size):
    cdef ChunkedMessage made = ChunkedMessage.__new__(ChunkedMessage)
    made.uuid = uuid
    made.chunk_count = chunk_count
    made.chunked_size = chunked_size
    made.pins = []
    return made
