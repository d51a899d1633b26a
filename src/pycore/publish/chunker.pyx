# cython: language_level=3
"""Body of chunker.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free
from libc.stddef cimport size_t
from libc.stdint cimport INT32_MAX, int64_t, uint8_t, uint32_t
from libc.string cimport memset

from pulsarx import errors
from pulsarx._core.batch_encode cimport BatchEncode, batch_encode_single
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.message_metadata cimport MessageMetadata, message_metadata_size
from pulsarx._core.single_metadata cimport METADATA_UUID
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.ground.clock_core cimport ClockCore
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.message.message_id cimport MessageId, message_id_chunked
from pulsarx._pycore.publish.admission cimport Admission
from pulsarx._pycore.publish.chunked_rate cimport ChunkedRate
from pulsarx._pycore.publish.completion_queue cimport SendTold
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher, Receipt
from pulsarx._pycore.publish.envelope cimport Envelope, Payload, fill_frame
from pulsarx._pycore.publish.message_numbers cimport MessageNumbers
from pulsarx._pycore.publish.outgoing_message cimport PropertyScratch


cdef class Chunker:
    """See the pxd."""

    def __cinit__(self, EntryPublisher publisher not None, Envelope envelope not None,
                  MessageNumbers numbers not None, Admission admission not None,
                  ClockCore clock not None) -> None:
        self.publisher = publisher
        self.envelope = envelope
        self.numbers = numbers
        self.admission = admission
        self.rate = ChunkedRate(clock)

    cdef int publish(self, MessageMetadata* metadata, Payload content, BatchEncode* buffer,
                     PropertyScratch* scratch, list callbacks, Receipt receipt, bint own_id,
                     bint awaited) except -1:
        cdef EntryFrame frame
        cdef PropertyScratch kept
        cdef Receipt chunk
        cdef Payload piece
        cdef uint8_t* entry
        cdef uint32_t entry_size
        cdef uint32_t count
        cdef uint32_t number
        cdef uint32_t most
        cdef uint32_t metadata_size
        cdef int status
        cdef bytes uuid
        cdef tuple sealed
        metadata.flags |= METADATA_UUID
        metadata.chunked_size = content.size
        while True:
            uuid = self.envelope.name_utf8 + f"-{metadata.sequence_id}".encode()
            metadata.uuid = <const uint8_t*>PyBytes_AS_STRING(uuid)
            metadata.uuid_size = <uint32_t>PyBytes_GET_SIZE(uuid)
            metadata.chunk_count = metadata.chunk_id = INT32_MAX     # the longest they may be
            metadata_size = message_metadata_size(metadata)
            if metadata_size >= self.envelope.message_size_max:
                raise errors.MessageTooBig(
                    detail=f"send {content.size} bytes in chunks to {self.envelope.topic_name}: "
                    f"key, properties and what else goes with each chunk take {metadata_size} "
                    f"bytes, and max_message_size is {self.envelope.message_size_max}",
                    size=content.size, max_size=self.envelope.message_size_max)
            most = self.envelope.message_size_max - metadata_size
            count = (content.size - 1) // most + 1
            # Other threads send while this one waits: its properties are not theirs to overwrite.
            kept = scratch[0]
            memset(scratch, 0, sizeof(PropertyScratch))
            try:
                self.admission.wait_for_chunks(count)
            finally:
                PyMem_Free(scratch.views)
                scratch[0] = kept
            if not self.numbers.number_anew(&metadata.sequence_id, own_id):
                break
        self.numbers.note_used(metadata.sequence_id)
        if self.before_chunks is not None:
            control_plane.perform_whole(self.before_chunks, ())
            self.before_chunks = None
        metadata.chunk_count = count
        self.rate.begin()
        try:
            for number in range(count):
                metadata.chunk_id = number
                piece.size = min(most, content.size - number * most)
                piece.data = content.data + <size_t>number * most
                sealed = self.envelope.seal(metadata, &piece)        # keeps what it points into
                with nogil:
                    status = batch_encode_single(buffer, metadata, piece.data, piece.size, &entry,
                                                 &entry_size)
                if status != STATUS_OK:
                    raise_status(status, 0, f"encode a chunk of {piece.size} bytes")
                self.envelope.check_entry(0, entry_size)
                fill_frame(&frame, metadata, entry_size)
                if number + 1 < count:
                    chunk = Receipt.__new__(Receipt)
                    self.publisher.publish(&frame, entry, chunk, None, True)
                    if number == 0:
                        receipt.first_chunk = chunk
                        callbacks = with_first_chunk(callbacks, chunk)
                else:
                    self.publisher.publish(&frame, entry, receipt, callbacks, awaited)
                self.rate.count()
        except BaseException:
            # Chunks in front of the one that failed stay; their readers give them up.
            receipt.message_count = 0
            self.publisher.nobody_waits()
            raise
        return 0


cdef class ChunkedCallback:
    """The callback of a message in chunks: its id is to hold that of the first one."""
    cdef object callback
    cdef Receipt first

    def __call__(self, result, MessageId message_id) -> None:
        if message_id is not None:
            message_id = message_id_chunked(
                message_id.c_ledger_id, message_id.c_entry_id, message_id.c_partition,
                <int64_t>self.first.ledger_id, <int64_t>self.first.entry_id)
        self.callback(result, message_id)


cdef class ChunkedSend(SendTold):
    """Like ChunkedCallback, for a send that only takes note."""
    cdef SendTold send
    cdef Receipt first

    cdef int told(self, object message_id, object error) except -1:
        if message_id is not None:
            message_id = message_id_chunked(
                (<MessageId>message_id).c_ledger_id, (<MessageId>message_id).c_entry_id,
                (<MessageId>message_id).c_partition, <int64_t>self.first.ledger_id,
                <int64_t>self.first.entry_id)
        return self.send.told(message_id, error)


cdef list with_first_chunk(list callbacks, Receipt first):
    cdef ChunkedCallback wrapped
    cdef ChunkedSend noted
    cdef list found = []
    cdef Py_ssize_t at
    if callbacks is None:
        return None
    for at in range(0, len(callbacks), 2):
        callback = callbacks[at + 1]
        if isinstance(callback, SendTold):
            noted = ChunkedSend.__new__(ChunkedSend)
            noted.send = callback
            noted.first = first
            found += (callbacks[at], noted)
            continue
        wrapped = ChunkedCallback.__new__(ChunkedCallback)
        wrapped.callback = callback
        wrapped.first = first
        found += (callbacks[at], wrapped)
    return found
