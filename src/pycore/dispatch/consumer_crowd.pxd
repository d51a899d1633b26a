"""The consumers of a Shared or Key_Shared subscription that are at the other end of connections.
For SharedDispatcher, EntryConsumer and LedgerTail, which calls it as a watcher.

A message goes to one of them. So few are told that one may have come, and who looks dispatches for
all: those that are given something are told then. Whoever was told looks until nothing is left, or
has others told: where its connection takes no more, and where it leaves.
"""

from libc.stdint cimport uint32_t

from pulsarx._pycore.dispatch.entry_sink cimport EntrySink


cdef class CrowdConnection:
    """The consumers of a crowd that share one connection, which looks for messages of one at a
    time."""

    cdef object key                      # the same object for all of them; None: one alone
    cdef list sinks                      # each with its `notify`
    cdef uint32_t turn                   # behind the one that was told last

    cdef EntrySink able(self)
    """The next that can take something; None: none can."""


cdef class ConsumerCrowd:
    cdef list sinks                      # all, as they came
    cdef list connections                # of CrowdConnection
    cdef dict by_key                     # those whose key is not None
    cdef uint32_t turn                   # behind the connections that were told last
    cdef bint is_owed                    # some were told, and none of them has begun to look

    cdef int tell_some(self) except -1
    """Tell a few that can take something, each of another connection. With any mutex held, and
    without."""

    cdef int looks(self, EntrySink sink) except -1
    """The member begins to look. Mutex held."""

    cdef int looked(self, EntrySink sink) except -1
    """The member found nothing more."""

    cdef int stalls(self, EntrySink sink) except -1
    """Its connection takes no more, before it has found nothing more. No mutex held."""

    cdef int tell_given(self) except -1
    """Tell those that were given something by others. Mutex held."""
