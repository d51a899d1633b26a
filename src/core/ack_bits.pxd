"""Records which messages of one ledger are acknowledged: everything below `contiguous`, and a
bitmap of what lies above.

One thread at a time. The bitmap exists only while something above `contiguous` is acknowledged; it
grows by a quarter and moves along, so memory stays at 1 to 1.25 bits for each message between
`contiguous` and the highest acknowledged one. A bit below `contiguous` means nothing.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.status cimport STATUS_OK

cdef enum AckRunKind:
    ACK_RUN_END = 0
    ACK_RUN_CLEAR = 1       # words without an acknowledged message
    ACK_RUN_SET = 2         # words of acknowledged messages only
    ACK_RUN_MIXED = 3

cdef struct AckBits:
    uint64_t contiguous     # every message below is acknowledged
    uint64_t beyond         # acknowledged messages above; 0: the bitmap is empty
    uint64_t* words         # owned; NULL while there was no need
    uint64_t first_word     # words[0] holds the messages from 64 * first_word on
    uint64_t used_words     # words that may hold a set bit
    uint64_t capacity_words

cdef void ack_bits_init(AckBits* self) noexcept nogil
cdef void ack_bits_free(AckBits* self) noexcept nogil

cdef int ack_bits_add_bounded(AckBits* self, uint64_t first, uint64_t count, uint64_t bound,
                              uint64_t* newly) noexcept nogil

cdef inline int ack_bits_add(AckBits* self, uint64_t first, uint64_t count, uint64_t bound,
                             uint64_t* newly) noexcept nogil:
    """Acknowledge count messages from first on; newly: how many of them were not before.

    OUT_OF_RANGE: count is 0 or the run ends above bound. DUPLICATE: all of them were. NO_MEMORY.
    Nothing changed by those.
    """
    if count - 1 < bound and first <= bound - count and first == self.contiguous and (
            self.beyond == 0):
        self.contiguous = first + count
        newly[0] = count
        return STATUS_OK
    return ack_bits_add_bounded(self, first, count, bound, newly)

cdef int ack_bits_through(AckBits* self, uint64_t end, uint64_t* newly) noexcept nogil
"""Acknowledge everything below end. DUPLICATE: it was. Cannot run out of memory."""

cdef void ack_bits_clamp(AckBits* self, uint64_t end) noexcept nogil
"""Forget acknowledgements of messages from end on: the ledger turned out to end there."""

cdef inline bint ack_bits_has(const AckBits* self, uint64_t message) noexcept nogil:
    cdef uint64_t at = (message >> 6) - self.first_word
    if message < self.contiguous:
        return True
    return self.beyond != 0 and at < self.used_words and (self.words[at] >> (message & 63)) & 1

cdef inline uint32_t ack_bits_group(const AckBits* self, uint64_t group) noexcept nogil:
    """Which of the 32 messages from 32 * group on are acknowledged, a bit each."""
    cdef uint64_t at = (group >> 1) - self.first_word
    cdef uint64_t bits = 0
    if self.beyond and at < self.used_words:
        bits = self.words[at] >> (group << 5 & 63)
    if self.contiguous > group << 5:
        if self.contiguous - (group << 5) >= 32:
            return <uint32_t>-1
        bits |= (<uint64_t>1 << (self.contiguous & 31)) - 1
    return <uint32_t>bits

cdef uint64_t ack_bits_next_unacknowledged(const AckBits* self, uint64_t message,
                                           uint64_t end) noexcept nogil
"""The first message of [message, end) that is not acknowledged, else end."""

cdef inline uint64_t ack_bits_count(const AckBits* self) noexcept nogil:
    return self.contiguous + self.beyond

cdef uint64_t ack_bits_count_below(const AckBits* self, uint64_t end) noexcept nogil
"""Acknowledged messages below end."""

cdef inline uint64_t ack_bits_end(const AckBits* self) noexcept nogil:
    """No message from here on is acknowledged."""
    if self.beyond == 0:
        return self.contiguous
    return (self.first_word + self.used_words) << 6

cdef uint64_t ack_bits_hole_count(const AckBits* self) noexcept nogil
"""Runs of unacknowledged messages that have an acknowledged one above them."""

cdef uint64_t ack_bits_memory_size(const AckBits* self) noexcept nogil

cdef int ack_bits_next_run(const AckBits* self, uint64_t* word, const uint64_t** words,
                           uint64_t* count) noexcept nogil
"""Walk the bitmap by words of 64 messages, for snapshots; answers an AckRunKind.

word in: 0 to start, then word + count; out: the ordinal of the run's first word. Starts at the word
of `contiguous`.
"""

cdef int ack_bits_put_word(AckBits* self, uint64_t word, uint64_t bits) noexcept nogil
"""Add the messages of one word of a snapshot. NO_MEMORY."""
