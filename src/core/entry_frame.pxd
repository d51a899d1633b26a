"""The 64 bytes in front of every entry in a ledger file. Little endian.

  offset  size  field            meaning
       0     4  entry_size       bytes of the entry after this frame; then zeros up to a multiple of
                                 8
       4     4  checksum         crc32c of bytes 0..3 and 8..63, seeded with the file's seed and
                                 this frame's offset
       8     8  entry_id         0 for the first, then one more each
      16     8  durable_count    entries of this file known to be flushed when this one was written;
                                 of the first entry first_index: the index in its topic of the
                                 first message, 0: not said
      24     8  first_message    messages in this file before this entry
      32     8  publish_time_ms
      40     8  deliver_at_ms    0: at once
      48     4  message_count    1 or more
      52     4  sticky_hash      murmur3_32(0, ordering key, else key, else "NON_KEY") of the first
                                 message
      56     4  flags            EntryFlags
      60     4  broker_time      when the broker stored it, in ms since 1970, modulo 2^32; 0: not
                                 said
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.limits cimport ENTRY_MESSAGE_SIZE_MIN, ENTRY_SIZE_MAX, LEDGER_MESSAGES_END

cdef enum EntryFlags:
    ENTRY_BATCH = 1           # the payload is a batch
    ENTRY_COMPRESSED = 2
    ENTRY_MIXED_KEYS = 4      # messages of different keys: dispatch by key splits it
    ENTRY_CHUNK = 8
    ENTRY_NO_CHECKSUM = 16    # the entry came without its own; it was given one
    ENTRY_REWRITTEN = 32      # of a compacted ledger: messages of its batch were taken out
    ENTRY_TRANSACTION = 64    # of a transaction: readers see it if that was committed
    ENTRY_MARKER = 128        # of another broker, about its messages: readers of rows pass it over

cdef struct EntryFrame:
    uint32_t entry_size
    uint32_t message_count
    uint64_t entry_id
    uint64_t durable_count
    uint64_t first_message
    int64_t publish_time_ms
    int64_t deliver_at_ms
    uint32_t sticky_hash
    uint32_t flags
    uint64_t first_index     # of the first entry of a file alone
    uint32_t broker_time

cdef inline bint entry_frame_count_holds(const EntryFrame* frame) noexcept nogil:
    """Whether an entry of this size can hold so many messages."""
    cdef uint64_t size = ENTRY_SIZE_MAX if frame.flags & ENTRY_COMPRESSED else frame.entry_size
    return frame.message_count <= 1 or (
        <uint64_t>frame.message_count * ENTRY_MESSAGE_SIZE_MIN <= size)


cdef inline bint entry_flags_are_plain(uint32_t flags) noexcept nogil:
    """Whether an entry, or each of some, has as many messages as its frame says."""
    return flags & (ENTRY_CHUNK | ENTRY_MARKER) == 0


cdef inline bint entry_frame_place_holds(const EntryFrame* frame) noexcept nogil:
    """Whether a ledger can have so many messages."""
    return frame.first_message <= LEDGER_MESSAGES_END - frame.message_count


cdef void entry_frame_encode(const EntryFrame* frame, uint32_t seed, uint64_t offset,
                             uint8_t* room) noexcept nogil
cdef int entry_frame_decode(const uint8_t* data, uint32_t seed, uint64_t offset,
                            EntryFrame* frame) noexcept nogil
"""STATUS_END for 64 zero bytes (nothing was written here), STATUS_CORRUPT when the checksum or a
bound does not hold."""

cdef inline uint64_t entry_frame_span(uint32_t entry_size) noexcept nogil:
    """Bytes from this frame to the next: frame, entry and padding."""
    return (64 + <uint64_t>entry_size + 7) & ~(<uint64_t>7)
