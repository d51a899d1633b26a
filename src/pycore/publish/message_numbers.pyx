# cython: language_level=3
"""Body of message_numbers.pxd."""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._pycore.publish.producer_sequences cimport ProducerSequences


cdef class MessageNumbers:
    """See the pxd."""

    def __cinit__(self) -> None:
        self.own_ids_are_new = True

    cdef int begin_behind(self, int64_t sequence_id) except -1:
        self.own_ids_are_new = False
        self.next_sequence_id = <uint64_t>(sequence_id + 1)
        return 0

    cdef int64_t tell_duplicates(self, ProducerSequences sequences, int64_t pushed,
                                 bint resume) except -2:
        cdef int64_t stored = -1
        if sequences is not None:
            sequences.begin(pushed)
            if resume and self.own_ids_are_new:
                stored = sequences.stored
                self.next_sequence_id = <uint64_t>(stored + 1)
        self.sequences = sequences
        return stored

    cdef bint resume_after(self, int64_t sequence_id) noexcept:
        self.lifts_own_ids = self.own_ids_are_new
        return self.lift_above(sequence_id)

    cdef bint lift_above(self, int64_t sequence_id) noexcept:
        if not self.lifts_own_ids or sequence_id < <int64_t>self.next_sequence_id:
            return False
        self.next_sequence_id = <uint64_t>(sequence_id + 1)
        return True

    cdef void note_used(self, uint64_t sequence_id) noexcept:
        if self.lifts_own_ids and sequence_id >= self.next_sequence_id:
            self.next_sequence_id = sequence_id + 1

    cdef bint number_anew(self, uint64_t* sequence_id, bint own_id) noexcept:
        # Duplicates that are told here were told when the message was taken.
        if not own_id or self.sequences is not None or (
                sequence_id[0] + 1 == self.next_sequence_id):
            return False
        sequence_id[0] = self.next_sequence_id
        self.next_sequence_id += 1
        return True

    cdef int lift_own_ids(self) except -1:
        if self.own_ids_are_new and <int64_t>self.next_sequence_id <= self.sequences.pushed:
            self.next_sequence_id = <uint64_t>(self.sequences.pushed + 1)
        return 0

    cdef int known(self, uint64_t sequence_id) except -1:
        cdef ProducerSequences sequences = self.sequences
        if <int64_t>sequence_id > sequences.pushed:
            sequences.pushed = <int64_t>sequence_id
            return KNOWN_NEW
        if sequences.seen is None and <int64_t>sequence_id <= sequences.stored:
            return KNOWN_STORED
        return KNOWN_ON_ITS_WAY

    cdef bint is_stored(self, uint64_t sequence_id) except -1:
        cdef ProducerSequences sequences = self.sequences
        sequences.fall_back()
        if <int64_t>sequence_id <= sequences.pushed:
            return sequences.is_stored(<int64_t>sequence_id)
        sequences.pushed = <int64_t>sequence_id
        return False
