"""Records the highest sequence id of each producer of a topic with deduplication, by which a
message that is sent again is told from a new one.

A name belongs to one producer at a time, so its numbers are guarded by that producer's mutex. They
may be read without it, for a snapshot: what is stored afterwards is read from the ledgers.
"""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._pycore.ground.clock_core cimport ClockCore
from pulsarx._pycore.ground.job_queue cimport JobQueue


cdef class EntryCounter:
    """Counts the entries of one topic, and has a job run so many entries, or milliseconds, after
    the first one."""
    cdef ClockCore clock
    cdef JobQueue jobs
    cdef object due                      # the job when the time is over
    cdef object many                     # the job when there were so many entries
    cdef object timer
    cdef uint64_t entries_max
    cdef int64_t interval_ms
    cdef readonly uint64_t entries       # since the last start
    cdef bint posted

    cdef int count(self, int64_t now_ms) except -1


cdef class ProducerSequences:
    cdef EntryCounter counter
    cdef readonly int64_t pushed         # the highest that was taken from the producer, or -1
    cdef readonly int64_t stored         # the highest in the topic, or -1
    # Every id up to it is stored or was passed over. Below `stored` where batches by key belong
    # together and not all of them are stored: then `seen` are the stored ones above it.
    cdef readonly int64_t complete
    cdef set seen
    # What is stored but for open transactions, of which the notes are: (transaction, and as
    # note_read) of each entry, as they came. None: nothing here is of an open one.
    cdef ProducerSequences settled
    cdef list notes
    cdef public int64_t last_ms          # when it was active
    cdef bint failed                     # something that was pushed was not stored

    cdef int note_stored(self, int64_t last, list ids, bint more_follow, int64_t now_ms,
                         object transaction) except -1
    """An entry is in the topic. ids: of its messages, or None: last alone. more_follow: batches
    that belong to it are stored behind it. transaction: that it is of; None: of none."""

    cdef int note_read(self, int64_t last, list ids, bint more_follow, int64_t now_ms) except -1
    """Like note_stored, for an entry that was in the topic before."""

    cdef int note(self, int64_t last, list ids, bint more_follow, int64_t now_ms) except -1
    cdef int note_within(self, object transaction, int64_t last, list ids, bint more_follow,
                         int64_t now_ms) except -1
    cdef ProducerSequences copy(self)
    cdef int note_seen(self, list ids) except -1
    cdef int begin(self, int64_t pushed) except -1
    cdef bint is_stored(self, int64_t sequence_id) except -1
    """Whether it is a duplicate of what is in the topic."""

    cdef int require_decided(self, int64_t sequence_id, object transaction) except -1
    """It is a duplicate. TransactionConflict: of what is stored in a transaction that is open,
    other than this one, and that may be aborted."""

    cdef int leave(self, object transaction, bint committed) except -1
    """A transaction has ended. The ids of what was aborted are new again, down to the highest that
    others have stored."""

    cdef int fall_back(self) noexcept
    """Nothing is on its way: what was pushed and not stored is new again."""


cdef bint is_of_many(list ids) except -1
"""Whether messages of lower ids may be stored behind a batch that does not tell its highest id."""
