"""Reads the entries of ledgers in front of a dispatcher, and gives it those that it is to dispatch.
Chunks are put together, and what is damaged, too old, or cannot be decrypted by anybody counts as
acknowledged and is told, so that a dispatcher decides one thing: who gets an entry.

Base of all dispatchers. Everything is called with the subscription's mutex held.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.message.chunked_message cimport ChunkedMessage
from pulsarx._pycore.message.entry_view cimport EntryView

cdef enum CryptoFailureAction:   # ConsumerCryptoFailureAction
    CRYPTO_FAIL = 0
    CRYPTO_DISCARD = 1
    CRYPTO_CONSUME = 2

cdef enum ChunkStep:
    CHUNK_ORDINARY               # the entry is a message of its own all the same
    CHUNK_WAITS                  # nothing is to be delivered for it now
    CHUNK_WHOLE                  # `whole` is the message whose last chunk it is


cdef class EntrySource:
    cdef readonly SubscriptionCore core
    cdef readonly LedgerTail tail
    cdef readonly str topic_name
    cdef uint32_t decompressed_size_max
    cdef ChunkedMessage whole            # of CHUNK_WHOLE
    cdef bint came_later                 # whole_later was called: look once more
    cdef bint loss_kept                  # the messages lost last count as acknowledged
    cdef bint wakes                      # there is something to tell or to receive, once unlocked
    cdef uint32_t passed_count           # messages that no selector wanted, since one was wanted
    # (whether it is an error, text) for the log, unlocked; or None
    cdef list undecrypted

    cdef int acknowledged(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1
    """Messages were acknowledged: whatever the dispatcher knows of them goes."""

    cdef int acknowledged_through(self, uint64_t ledger_id, uint64_t end) except -1
    """Like acknowledged, for everything before a message."""

    cdef int read_chunk(self, LedgerReader reader) except -1
    """The entry read last says that it is a chunk: a ChunkStep."""

    cdef int whole_later(self, ChunkedMessage chunked) except -1
    """A message in chunks that was read some time ago is to be delivered now."""

    cdef int discard(self, EntryView view, uint32_t index) except -1
    """A message that cannot be decrypted counts as acknowledged."""

    cdef int tell_undecrypted(self, EntryView view, int action) except -1
    """Say in the log what was done with an entry that cannot be decrypted, once unlocked."""

    cdef int log_undecrypted(self, list undecrypted) except -1
    """Say what was noted there. No mutex held."""

    cdef int chunks_acknowledged(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1
    """Messages were acknowledged; core.chunks is not None."""

    cdef int look_for_chunks(self, uint64_t ledger_id, uint64_t end) except -1
    """Everything before a message is about to be acknowledged: know the chunks in front of it, also
    those that were not read yet."""

    cdef int acknowledge_sparing(self, uint64_t ledger_id, uint64_t end, list spared) except -1
    """Acknowledge everything before a message but the messages (ledger id, ordinal) of spared,
    which is in order and not empty."""

    cdef int lose_rest(self, EntryView view, uint32_t index, int status) except -1
    """The batch cannot be read from this message on: its other messages are lost. Raises
    CorruptDataError, unless that was told before."""

    cdef int lose_one(self, EntryView view, uint32_t index, int status) except -1
    """Like lose_rest, for this message alone."""

    cdef str count_rest(self, EntryView view, uint32_t index, uint32_t end, int status)
    """Say in words what losing messages index .. end - 1 of a batch costs, which cannot be read;
    None: nobody misses them."""

    cdef int lose_entry(self, LedgerReader reader, object error) except -1
    """Like lose_rest, for the entry the reader read last, which cannot be taken apart."""

    cdef int tell_damage(self, LedgerReader reader) except -1
    """Like lose_rest, for the damage that the reader found."""

    cdef str count_damage(self, LedgerReader reader)
    """Say in words what the damage that the reader found costs; None: nobody misses anything of
    it."""

    cdef str count_text(self, uint64_t missing)
    cdef int raise_loss(self, str text) except -1
    cdef object loss(self, kind, str text)
    cdef uint64_t lose_messages(self, uint64_t ledger_id, uint64_t first,
                                uint64_t end) except? 18446744073709551615
    """Messages first .. end - 1 will never be delivered: they count as acknowledged, so that
    backlog, mark-delete position and trimming go on. How many of them were not acknowledged."""

    cdef int expire(self, uint64_t ledger_id, uint64_t first, uint64_t end) except -1
    """Messages first .. end - 1, of one entry, are too old to be delivered: they count as
    acknowledged."""

    cdef int expire_view(self, EntryView view) except -1
    """Like expire, for the whole entry."""

    cdef bint select(self, EntryView view) except -1
    """Whether core.filter, which is not None, lets a message of the entry pass that nobody dealt
    with; the others count as acknowledged. StorageError: they cannot be acknowledged now, and the
    entry is to be read again. The view is not packed."""

    cdef uint64_t reject(self, uint64_t ledger_id, uint64_t first,
                         uint64_t end) except? 18446744073709551615
    cdef bint rests(self, LedgerReader reader) except -1
    """Whether reading stops, as it passed over many messages: others want the mutex. It goes on
    with the next look, for which whoever waits is woken. Raises LedgerWanted where the reader
    defers: the receiver looks again at once."""

    cdef int report_loss(self, str text) except -1
    """Have the subscription say in the log what was lost."""
