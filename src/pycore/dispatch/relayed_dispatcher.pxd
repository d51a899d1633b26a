"""The dispatcher of a consumer of a non-persistent topic that another process owns. The owner
chooses what is this consumer's and sends it whole (`arrive`), as far as it has permits; here it
lies in the queue of the one receiver there is. Room in the queue goes to the owner as permits, in
halves.

With the core's mutex held unless a method says otherwise.
"""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._pycore.dispatch.entry_sink cimport EntrySink
from pulsarx._pycore.dispatch.slice_queue cimport SliceItem
from pulsarx._pycore.dispatch.non_persistent_dispatcher cimport NonPersistentDispatcher
from pulsarx._pycore.ground.owner_link cimport OwnerLink
from pulsarx._pycore.message.entry_view cimport EntryView


cdef class RelayedDispatcher(NonPersistentDispatcher):
    cdef object encode                   # native: (consumer id, permits) -> bytes of FLOW
    cdef OwnerLink link                  # None: there is no owner now
    cdef uint64_t consumer_id            # as the owner knows it
    cdef int64_t granted                 # messages that it may still send

    cdef int grant(self, EntrySink receiver) except -1
    """Give the owner permits for what there is room for, if that is worth a word."""

    cdef uint64_t pick(self, EntryView view, object ack_set, SliceItem* items) except? 0
    """The messages of a batch that are this consumer's; how many."""
