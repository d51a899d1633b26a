"""Assembles messages from the chunks that a dispatcher reads: which chunks belong together, which
of them can never become a message, and what is acknowledged with a message.

One for each subscription or reader, made with the first chunk that is read. Only the last chunk's
message is known to dispatchers and pending messages: the chunks in front of it stay unacknowledged
until it is acknowledged, so they hold their ledgers, and are read again after a restart. Everything
with the subscription's mutex held.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._core.message_metadata cimport EntryParts
from pulsarx._pycore.cursor.ack_tracker cimport AckTracker
from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage

cdef struct ChunkLimits:
    # What a consumer says about messages in chunks.
    uint64_t pending_max                 # messages that are not whole; 0: no limit
    int64_t expiry_ms                    # until a message that is not whole is given up; 0: never
    bint acknowledges_oldest             # of too many; else it is redelivered


cdef class StrayChunks:
    """A run of chunks that belong to no message."""
    cdef uint64_t ledger_id
    cdef uint64_t first
    cdef uint64_t count
    cdef int64_t begun_ms                # when the first of them may be acknowledged
    cdef int64_t due_ms                  # when all may


cdef class ChunkAssembler:
    cdef AckTracker tracker              # None: a reader's
    cdef JobQueue jobs                   # None: nothing is kept
    cdef object settle                   # job: what acknowledged chunks leave to be done
    cdef ChunkLimits limits              # of the consumer that came last
    # by uuid, in the order of their first chunks
    cdef dict open                       # messages that are not whole
    cdef dict aside                      # too many for `open`; they come when there is room
    cdef dict whole                      # (ledger id, ordinal of the last chunk) -> message
    cdef dict whole_of                   # uuid -> list of them
    cdef list ready                      # messages from `aside` that are whole and may be delivered
    cdef object strays                   # deque of StrayChunks
    cdef int64_t armed_ms                # when the timer calls; 0: it is not armed

    cdef ChunkedMessage read(self, LedgerReader reader, const EntryParts* parts, int64_t now_ms)
    """The entry read last is a chunk. The message, when it is its last one and the others are
    there; else None."""

    cdef ChunkedMessage find(self, uint64_t ledger_id, uint64_t message)
    """The whole message whose last chunk lies there, or None."""

    cdef int remember(self, ChunkedMessage chunked) except -1
    """The message may be read again from its last chunk on."""

    cdef int acknowledged(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1
    """Messages were acknowledged: the other chunks of those in chunks are, too."""

    cdef int acknowledged_through(self, uint64_t ledger_id, uint64_t end) except -1
    """Everything before a message was acknowledged, but what `spared` says."""

    cdef list cut(self, uint64_t ledger_id, uint64_t end)
    """Everything before a message was acknowledged for all consumers: what begins there is gone as
    a whole. (ledger id, ordinal) of the last chunks of those that end behind it."""

    cdef list spared(self, uint64_t ledger_id, uint64_t end)
    """(ledger id, ordinal) of the chunks before a message that belong to a message which does not
    end before it; in order."""

    cdef set hidden(self, bint waiting)
    """(ledger id, ordinal) of all chunks that are read, and no message by themselves. waiting: and
    of whole messages that wait for room."""

    cdef int64_t next_due_ms(self) except? -1
    """When something of it expires; 0: never."""

    cdef int expire(self, int64_t now_ms, bint all_read) except -1
    """Acknowledge what has waited too long for its other chunks. all_read: none of them can be
    among what is there and was not read yet."""

    cdef int clear(self) noexcept
    """Reading begins anew in front of all chunks."""

    cdef ChunkedMessage extend(self, ChunkedMessage chunked, LedgerReader reader,
                               const EntryParts* parts, int64_t now_ms)
    cdef ChunkedMessage completed(self, ChunkedMessage chunked)
    cdef int begin(self, bytes uuid, LedgerReader reader, const EntryParts* parts,
                   int64_t now_ms) except -1
    cdef int make_room(self) except -1
    cdef int promote(self) except -1
    cdef int forget(self, ChunkedMessage chunked) except -1
    cdef ChunkedMessage known(self, bytes uuid, uint32_t chunk_id, uint64_t ledger_id,
                              uint64_t message)
    cdef int drop(self, ChunkedMessage chunked) except -1
    cdef int give_up(self, ChunkedMessage chunked, int64_t now_ms) except -1
    cdef int stray(self, uint64_t ledger_id, uint64_t message, int64_t publish_ms,
                   int64_t now_ms) except -1
    cdef int acknowledge_chunks(self, ChunkedMessage chunked, uint32_t count) except -1
    cdef int acknowledge_run(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1
