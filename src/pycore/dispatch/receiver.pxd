"""An EntrySink that decodes messages for a consumer or reader of this process.

Entries that are encrypted come to it sealed: it decrypts one when it becomes the current one, and
does with what cannot be decrypted as the consumer's ConsumerCryptoFailureAction says.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.batch_decode cimport BatchMessage
from pulsarx._pycore.dispatch.entry_sink cimport EntrySink
from pulsarx._pycore.message.entry_view cimport EntryView


cdef class Receiver(EntrySink):
    # view_generation of a current view that is not decrypted yet, because that was interrupted:
    # it is stale meanwhile, so that nobody takes it for plain. NO_GENERATION: there is none
    cdef uint64_t sealed_generation

    cdef bint supplied(self) except -1
    """Have the dispatcher supply; False: nothing, or a ledger is to be fetched first, and
    key_wanted does."""

    cdef inline bint read_plain(self, EntryView view, uint32_t* at, BatchMessage* found) noexcept
    cdef bint open_view(self) except -1
    """Decrypt or decompress the current view; False: nothing of it is to be handed out, and it is
    gone."""

    cdef int find_places(self, EntryView view) except -1
    """The view was decrypted: find where the messages of its slice are."""

    cdef list claim_rest(self, EntryView view)
    """Claim all that is left of the current slice: (batch index, redelivery count) of each."""

    cdef int claim_stored(self, EntryView view) except -2
    """Like claim_rest, for an entry that is handed out as it is stored: the highest redelivery
    count, CLAIM_STALE when nothing is left of it."""

    cdef bint undecrypted(self, EntryView view) except -1
    """Do with what could not be decrypted as the consumer wants. True: it is to be handed out."""
