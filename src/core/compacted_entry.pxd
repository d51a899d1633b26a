"""An entry of a compacted ledger: the entry of the topic, preceded by the place that it had there.

As every entry it begins with 0x0e01 and a checksum of all that follows, big endian; the rest of the
header is little endian:

  offset  size  field            meaning
       0     2  magic            0x0e01
       2     4  checksum         crc32c of everything behind it
       6     2  broker_time      when the broker stored it in the topic, in ms since 1970: bits 32
                                 to 47; with those at 36 all zero: not said
       8     8  ledger_id        of the topic's ledger
      16     8  entry_id         in that ledger
      24     8  first_message    messages of that ledger in front of the entry
      32     4  message_count    of the entry, with those that compaction took out of its batch
      36     4  broker_time      bits 0 to 31
      40        the entry, as the topic has it, or with a batch that was written anew

The frame in front of it numbers the entries and survivors of the compacted ledger itself, so
whatever is missing is counted; publish time and flags are those of the entry.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef enum CompactedEntrySizes:
    COMPACTED_HEADER_SIZE = 40

cdef struct CompactedPlace:
    uint64_t ledger_id
    uint64_t entry_id
    uint64_t first_message
    uint32_t message_count
    uint64_t broker_time_ms          # below 2^48; 0: not said

cdef void compacted_entry_encode(const CompactedPlace* place, uint8_t* data,
                                 uint32_t size) noexcept nogil
"""Write the header of size bytes, of which the entry is there already, at 40."""

cdef int compacted_entry_decode(const uint8_t* data, uint32_t size,
                                CompactedPlace* place) noexcept nogil
"""STATUS_CORRUPT: no such entry. The checksum was verified by the reader of the ledger."""
