"""The sequence ids of one producer's messages, and which messages are duplicates. Beneath batcher;
with the producer's mutex held.

Without `sequences` nothing is told from a new message here: the topic keeps none, or a broker in
another process tells duplicates.
"""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._pycore.publish.producer_sequences cimport ProducerSequences

cdef enum Known:
    KNOWN_NEW = 0
    KNOWN_STORED = 1
    KNOWN_ON_ITS_WAY = 2       # the first one is, or was: this one is of the same outcome


cdef class MessageNumbers:
    cdef ProducerSequences sequences     # None: see above
    cdef uint64_t next_sequence_id
    cdef bint own_ids_are_new            # the next one is above all that were pushed
    cdef bint lifts_own_ids              # that, also without sequences; see resume_after

    cdef int begin_behind(self, int64_t sequence_id) except -1
    """Have the producer's own ids begin behind this one, which its user chose."""

    cdef int64_t tell_duplicates(self, ProducerSequences sequences, int64_t pushed,
                                 bint resume) except -2
    """Tell duplicates by these numbers from now on; None: no more. pushed: the highest id that
    waits in an open batch, or -1. resume: own ids go on behind what is stored; that id is the
    answer, else -1."""

    cdef bint resume_after(self, int64_t sequence_id) noexcept
    """Like lift_above, and do so for each id that is used from now on, chosen by the user or
    not."""

    cdef bint lift_above(self, int64_t sequence_id) noexcept
    """Have the producer's own ids go on above this one. False: they do."""

    cdef void note_used(self, uint64_t sequence_id) noexcept
    """A message with this id goes out now: own ids go on above it."""

    cdef bint number_anew(self, uint64_t* sequence_id, bint own_id) noexcept
    """Give a message of an id of the producer's own the next one, where others were sent since it
    was numbered: a broker in another process would take it for a duplicate. False: it is that of
    the newest."""

    cdef int lift_own_ids(self) except -1
    """Have the next id of the producer's own be a new one, unless its user chose where they begin.
    Where there are sequences."""

    cdef int known(self, uint64_t sequence_id) except -1
    """Say whether a message with this id is known, as Known; a new one counts as pushed. Where
    there are sequences."""

    cdef bint is_stored(self, uint64_t sequence_id) except -1
    """Whether the first message of an id KNOWN_ON_ITS_WAY is stored, once nothing is on its way;
    else this one counts as pushed. What the first one failed with is raised."""
