"""Publishes a message that is larger than an entry as several, which hold its payload one behind
the other. Beneath batcher; with the producer's mutex held.
"""

from libc.stdint cimport uint32_t

from pulsarx._core.batch_encode cimport BatchEncode
from pulsarx._core.message_metadata cimport MessageMetadata
from pulsarx._pycore.publish.admission cimport Admission
from pulsarx._pycore.publish.chunked_rate cimport ChunkedRate
from pulsarx._pycore.publish.entry_publisher cimport EntryPublisher, Receipt
from pulsarx._pycore.publish.envelope cimport Envelope, Payload
from pulsarx._pycore.publish.message_numbers cimport MessageNumbers
from pulsarx._pycore.publish.outgoing_message cimport PropertyScratch


cdef class Chunker:
    cdef EntryPublisher publisher
    cdef Envelope envelope
    cdef MessageNumbers numbers
    cdef Admission admission
    cdef object before_chunks            # called before the first chunk is stored; None: it was
    cdef ChunkedRate rate                # of chunks

    cdef int publish(self, MessageMetadata* metadata, Payload content, BatchEncode* buffer,
                     PropertyScratch* scratch, list callbacks, Receipt receipt, bint own_id,
                     bint awaited) except -1
    """Publish one message. The mutex may be given up before the first chunk. buffer: empty, to
    encode in. scratch: what the message's properties are in. awaited: a caller waits for it."""
