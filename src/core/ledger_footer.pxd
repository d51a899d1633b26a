"""The header block of a ledger file, and the footer of a sealed one. Little endian.

The file: header block (4096) | entries | after sealing, at the data's end: index records, damage
records, footer.
Each part of the header block has a 512-byte sector of its own, so that no torn write of one hurts
another.

  offset  size  header (at 0, and once more at 2048)
       0     8  magic "PULSARXL"
       8     4  format_version   2; 1: without first_index and broker_time in its frames
      12     4  checksum         crc32c of bytes 0..11 and 16..511
      16    16  uuid             of the file; seed of all other checksums: crc32c(uuid)
      32     8  created_ms
      40     4  flags            LedgerHeaderFlags
      44    16  folder_id        of the data directory it is for
      60   452  unused           zero

  offset  size  seal record (at 512) and cut record (at 1024)
       0     8  magic "PULSARXS", "PULSARXC"
       8     4  checksum         crc32c of bytes 0..7 and 12..511, from the seed
      12     4  unused           zero
      16     8  end              of the data: frames lie in 4096..end
      24     8  place            seal: offset of the footer; cut: greatest durable_count known
      32   480  unused           zero

  offset  size  damage record
       0     8  entry_id         first entry that is damaged
       8     8  entry_count      how many
      16     8  offset           where
      24     8  next_offset      the next readable frame, or end

  offset  size  footer (128 bytes)
       0     8  magic "PULSARXF"
       8     4  checksum         crc32c of bytes 0..7 and 12..127, from the seed
      12     4  digest           crc32c over frame and entry checksum (4 + 4) of intact entries
      16     8  end
      24     8  entry_count
      32     8  message_count
      40     8  first_publish_ms the smallest
      48     8  last_publish_ms  the greatest of all
      56     8  index_offset
      64     8  index_count
      72     4  damage_count     records right behind the index
      76     4  index_checksum   crc32c of index and damage records, from the seed
      80     8  torn_size        bytes cut off by recovery
      88     4  flags            1: sealed by recovery; 2: no entry is a chunk or a marker
      92    36  unused           zero
A header block of zeros is an unborn ledger: created, never written; it has no entries.
The cut record is written before recovery changes anything, so that a second recovery finds the
same end.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum LedgerFormat:
    LEDGER_FORMAT_VERSION = 2
    LEDGER_FORMAT_VERSION_LEAST = 1
    LEDGER_SECTOR_SIZE = 512
    LEDGER_SEAL_OFFSET = 512
    LEDGER_CUT_OFFSET = 1024
    LEDGER_HEADER_COPY_OFFSET = 2048
    LEDGER_FOOTER_SIZE = 128
    LEDGER_DAMAGE_SIZE = 32

cdef enum LedgerHeaderFlags:
    LEDGER_SYNC = 1                # durability sync: readers saw only what was flushed
    LEDGER_ZEROED = 2              # prepared space was written with zeros and flushed

cdef enum LedgerFooterFlags:
    LEDGER_RECOVERED = 1
    LEDGER_PLAIN = 2               # as many messages as message_count; older versions say it not

cdef struct LedgerHeader:
    uint8_t uuid[16]
    uint8_t folder_id[16]
    int64_t created_ms
    uint32_t flags                 # LedgerHeaderFlags
    uint32_t seed                  # of the file's checksums, from uuid
    bint damaged                   # one of the two copies does not hold
    bint sealed                    # seal_end, footer_offset hold
    bint cut                       # cut_end, cut_durable_count hold
    uint64_t seal_end
    uint64_t footer_offset
    uint64_t cut_end
    uint64_t cut_durable_count

cdef struct LedgerFooter:
    uint64_t end
    uint64_t entry_count
    uint64_t message_count
    int64_t first_publish_ms
    int64_t last_publish_ms
    uint64_t index_offset
    uint64_t index_count
    uint64_t torn_size
    uint32_t damage_count
    uint32_t digest
    uint32_t index_checksum
    uint32_t flags                 # LedgerFooterFlags

cdef struct LedgerDamage:
    uint64_t entry_id
    uint64_t entry_count
    uint64_t offset
    uint64_t next_offset

cdef void ledger_header_encode(const LedgerHeader* header, uint8_t* block) noexcept nogil
"""block: LEDGER_HEADER_SIZE bytes."""

cdef int ledger_header_decode(const uint8_t* block, uint64_t size,
                              LedgerHeader* header) noexcept nogil
"""size: of the file. FOREIGN, UNSUPPORTED, UNBORN, TRUNCATED, CORRUPT (both copies damaged)."""

cdef void ledger_mark_encode(uint32_t seed, bint cut, uint64_t end, uint64_t place,
                             uint8_t* sector) noexcept nogil
"""A seal record, or a cut record."""

cdef void ledger_footer_encode(const LedgerFooter* footer, uint32_t seed,
                               uint8_t* room) noexcept nogil
cdef int ledger_footer_decode(const uint8_t* base, uint64_t size, const LedgerHeader* header,
                              LedgerFooter* footer) noexcept nogil
"""The footer of a sealed file of size bytes mapped at base, with index and damage records
verified: their checksum, and that counts, index and end can be of one file."""
