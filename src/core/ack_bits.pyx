"""Acknowledged messages of one ledger. One thread at a time; the contract is in the pxd."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memmove, memset

from pulsarx._core.invariant cimport invariant
from pulsarx._core.status cimport STATUS_DUPLICATE, STATUS_NO_MEMORY, STATUS_OK, STATUS_OUT_OF_RANGE

cdef extern from *:
    int __builtin_ctzll(unsigned long long value) noexcept nogil
    int __builtin_popcountll(unsigned long long value) noexcept nogil

cdef enum:
    KEPT_WORDS = 64     # an emptied bitmap of up to 512 bytes is kept for the next disorder

cdef uint64_t ALL = <uint64_t>-1


cdef void ack_bits_init(AckBits* self) noexcept nogil:
    memset(self, 0, sizeof(AckBits))


cdef void ack_bits_free(AckBits* self) noexcept nogil:
    free(self.words)
    ack_bits_init(self)


cdef void empty_bitmap(AckBits* self) noexcept nogil:
    if self.capacity_words > KEPT_WORDS:
        free(self.words)
        self.words = NULL
        self.capacity_words = 0
    elif self.used_words:
        memset(self.words, 0, self.used_words * 8)
    self.used_words = 0
    self.beyond = 0


cdef void advance(AckBits* self) noexcept nogil:
    """Move contiguous on over what is acknowledged in the bitmap."""
    cdef uint64_t at = (self.contiguous >> 6) - self.first_word
    cdef uint64_t clear, run
    while self.beyond and at < self.used_words:
        clear = ~(self.words[at] >> (self.contiguous & 63))
        run = 64
        if clear:
            run = <uint64_t>__builtin_ctzll(clear)
        if run == 0:
            break
        self.contiguous += run
        self.beyond -= run
        if self.contiguous & 63:
            break
        at += 1
    if self.beyond == 0:
        empty_bitmap(self)


cdef int move_window(AckBits* self, uint64_t start, uint64_t live) noexcept nogil:
    """Let the bitmap start at word start and have room for live words."""
    cdef uint64_t shift = start - self.first_word
    cdef uint64_t kept = 0
    cdef uint64_t capacity = live + (live >> 2) + 4
    cdef uint64_t* words
    if shift < self.used_words:
        kept = self.used_words - shift
    # A quarter more than what is live, not than what is allocated: 1.25 bits a message, and it
    # shrinks again.
    if capacity > self.capacity_words or capacity * 4 < self.capacity_words:
        words = <uint64_t*>calloc(capacity, 8)
        if words != NULL:
            if kept:
                memcpy(words, self.words + shift, kept * 8)
            free(self.words)
            self.words = words
            self.capacity_words = capacity
            self.first_word = start
            self.used_words = kept
            return STATUS_OK
        if live > self.capacity_words:
            return STATUS_NO_MEMORY
    # There is room for it elsewhere in the bitmap: what is acknowledged beyond moves there.
    invariant(kept > 0 and kept < self.used_words)
    memmove(self.words, self.words + shift, kept * 8)
    memset(self.words + kept, 0, (self.used_words - kept) * 8)
    self.first_word = start
    self.used_words = kept
    return STATUS_OK


cdef int reserve(AckBits* self, uint64_t end) noexcept nogil:
    """Make the bitmap reach up to end."""
    cdef uint64_t end_word = (end + 63) >> 6
    cdef int status
    if self.beyond == 0:
        self.first_word = self.contiguous >> 6
    if end_word - self.first_word > self.capacity_words:
        status = move_window(self, self.contiguous >> 6, end_word - (self.contiguous >> 6))
        if status:
            return status
    if end_word - self.first_word > self.used_words:
        self.used_words = end_word - self.first_word
    return STATUS_OK


cdef inline uint64_t mask_of(uint64_t word, uint64_t first, uint64_t end) noexcept nogil:
    """The bits of [first, end) that lie in the word."""
    cdef uint64_t mask = ALL
    if first > word << 6:
        mask <<= first & 63
    if end < (word + 1) << 6:
        mask &= (<uint64_t>1 << (end & 63)) - 1
    return mask


cdef uint64_t set_range(AckBits* self, uint64_t first, uint64_t end) noexcept nogil:
    """Set the bits and answer how many were clear."""
    cdef uint64_t word = first >> 6
    cdef uint64_t fresh
    cdef uint64_t newly = 0
    while word << 6 < end:
        fresh = mask_of(word, first, end) & ~self.words[word - self.first_word]
        if fresh:
            self.words[word - self.first_word] |= fresh
            newly += <uint64_t>__builtin_popcountll(fresh)
        word += 1
    return newly


cdef uint64_t count_range(const AckBits* self, uint64_t first, uint64_t end) noexcept nogil:
    cdef uint64_t word = first >> 6
    cdef uint64_t held
    cdef uint64_t total = 0
    while word << 6 < end and word - self.first_word < self.used_words:
        held = mask_of(word, first, end) & self.words[word - self.first_word]
        if held:
            total += <uint64_t>__builtin_popcountll(held)
        word += 1
    return total


cdef int ack_bits_add_bounded(AckBits* self, uint64_t first, uint64_t count, uint64_t bound,
                              uint64_t* newly) noexcept nogil:
    cdef uint64_t end = first + count
    cdef uint64_t at, bit
    cdef int status
    if count == 0 or count > bound or first > bound - count:
        return STATUS_OUT_OF_RANGE
    if end <= self.contiguous:
        return STATUS_DUPLICATE
    if first <= self.contiguous:
        return ack_bits_through(self, end, newly)
    status = reserve(self, end)
    if status:
        return status
    if count == 1:
        at = (first >> 6) - self.first_word
        bit = <uint64_t>1 << (first & 63)
        if self.words[at] & bit:
            return STATUS_DUPLICATE
        self.words[at] |= bit
        self.beyond += 1
        newly[0] = 1
        return STATUS_OK
    count = set_range(self, first, end)
    if count == 0:
        return STATUS_DUPLICATE
    self.beyond += count
    newly[0] = count
    return STATUS_OK


cdef int ack_bits_through(AckBits* self, uint64_t end, uint64_t* newly) noexcept nogil:
    cdef uint64_t passed = 0
    if end <= self.contiguous:
        return STATUS_DUPLICATE
    if self.beyond:
        passed = count_range(self, self.contiguous, end)
    invariant(passed <= self.beyond and passed < end - self.contiguous)
    newly[0] = end - self.contiguous - passed
    self.beyond -= passed
    self.contiguous = end
    advance(self)
    return STATUS_OK


cdef void ack_bits_clamp(AckBits* self, uint64_t end) noexcept nogil:
    cdef uint64_t at
    if end <= self.contiguous:
        self.contiguous = end
        empty_bitmap(self)
        return
    if self.beyond == 0:
        return
    self.beyond = count_range(self, self.contiguous, end)
    if self.beyond == 0:
        empty_bitmap(self)
        return
    at = (end >> 6) - self.first_word
    if at >= self.used_words:
        return
    self.words[at] &= (<uint64_t>1 << (end & 63)) - 1
    memset(self.words + at + 1, 0, (self.used_words - at - 1) * 8)


cdef uint64_t ack_bits_next_unacknowledged(const AckBits* self, uint64_t message,
                                           uint64_t end) noexcept nogil:
    cdef uint64_t at, clear
    if message < self.contiguous:
        message = self.contiguous
    while message < end:
        at = (message >> 6) - self.first_word
        if self.beyond == 0 or at >= self.used_words:
            return message
        clear = ~self.words[at] >> (message & 63)
        if clear:
            message += <uint64_t>__builtin_ctzll(clear)
            break
        message = ((message >> 6) + 1) << 6
    return message if message < end else end


cdef uint64_t ack_bits_count_below(const AckBits* self, uint64_t end) noexcept nogil:
    if end <= self.contiguous:
        return end
    if self.beyond == 0:
        return self.contiguous
    return self.contiguous + count_range(self, self.contiguous, end)


cdef uint64_t ack_bits_hole_count(const AckBits* self) noexcept nogil:
    cdef uint64_t at = (self.contiguous >> 6) - self.first_word
    cdef uint64_t before = 0
    cdef uint64_t total = 0
    cdef uint64_t held
    if self.beyond == 0:
        return 0
    # A hole ends where an acknowledged message follows one that is not; the one at contiguous never
    # is.
    held = self.words[at] & (ALL << (self.contiguous & 63))
    while True:
        total += <uint64_t>__builtin_popcountll(held & ~(held << 1 | before))
        before = held >> 63
        at += 1
        if at >= self.used_words:
            return total
        held = self.words[at]


cdef uint64_t ack_bits_memory_size(const AckBits* self) noexcept nogil:
    return self.capacity_words * 8


cdef inline int kind_of(uint64_t bits) noexcept nogil:
    if bits == 0:
        return ACK_RUN_CLEAR
    return ACK_RUN_SET if bits == ALL else ACK_RUN_MIXED


cdef int ack_bits_next_run(const AckBits* self, uint64_t* word, const uint64_t** words,
                           uint64_t* count) noexcept nogil:
    cdef uint64_t start = self.contiguous >> 6
    cdef uint64_t at, last
    cdef int kind
    if word[0] > start:
        start = word[0]
    at = start - self.first_word
    if self.beyond == 0 or at >= self.used_words:
        return ACK_RUN_END
    kind = kind_of(self.words[at])
    last = at + 1
    while last < self.used_words and kind_of(self.words[last]) == kind:
        last += 1
    if kind == ACK_RUN_CLEAR and last == self.used_words:
        return ACK_RUN_END
    word[0] = start
    words[0] = self.words + at
    count[0] = last - at
    return kind


cdef int ack_bits_put_word(AckBits* self, uint64_t word, uint64_t bits) noexcept nogil:
    cdef uint64_t fresh
    cdef int status
    if (word + 1) << 6 <= self.contiguous:
        return STATUS_OK
    if word << 6 < self.contiguous:
        bits &= ALL << (self.contiguous & 63)
    if bits == 0:
        return STATUS_OK
    status = reserve(self, (word + 1) << 6)
    if status:
        return status
    fresh = bits & ~self.words[word - self.first_word]
    self.words[word - self.first_word] |= fresh
    self.beyond += <uint64_t>__builtin_popcountll(fresh)
    return STATUS_OK
