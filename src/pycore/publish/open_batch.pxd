"""One batch of a producer while it collects messages, until it is encoded as an entry. With the
producer's mutex held.

  state     holds                                                   left by
  EMPTY     nothing                                                 the first message
  OPEN      messages, which more may join                           encoding
  ENCODED   the entry, to be published; no message may join         published, or given up
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from pulsarx._core.batch_encode cimport BatchEncode
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.message_metadata cimport MessageMetadata
from pulsarx._pycore.ground.control_plane cimport ControlCall
from pulsarx._pycore.publish.entry_publisher cimport Receipt
from pulsarx._pycore.publish.envelope cimport Envelope


cdef class OpenBatch:
    cdef BatchEncode batch
    cdef list ids                        # sequence ids of a batch by key, where they are asked for
    cdef list callbacks                  # see CompletionQueue.post; None: there is none
    cdef Receipt receipt                 # a waiting send looks at it when the batch is published
    cdef int64_t reserved                # of the memory limit
    cdef int64_t publish_ms              # when it was begun
    cdef EntryFrame frame                # once encoded
    cdef uint32_t packed_size            # once encoded: of a compressed or encrypted payload
    cdef uint8_t* entry                  # once encoded: inside the buffer of batch; else NULL
    cdef bytes packed                    # its payload compressed; None: not yet
    cdef ControlCall packing             # compresses it in another thread; None: nobody does

    cdef int pack(self, Envelope envelope) except -1
    """Compress the payload ahead of `encode`; no message may join from here on. What raises leaves
    it as it was."""

    cdef int take_packed(self) except -1
    cdef int pack_beside(self, Envelope envelope) except -1
    """Like pack, in another thread, if there is one: `encode` and `clear` wait for it, until then
    nobody else touches the batch."""

    cdef int encode(self, MessageMetadata* metadata, Envelope envelope) except -1
    """Turn the messages into an entry, unless they are one. What raises leaves them as they were.
    metadata: filled by the envelope."""

    cdef int fill_frame(self, const MessageMetadata* metadata, uint32_t entry_size) except -1
    cdef void clear(self) noexcept
    """Empty it: it is published, or given up."""

    cdef int add_callback(self, object callback) except -1
    """Add the callback of the message added last."""
