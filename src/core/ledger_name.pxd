"""The name record of a ledger: whose ledger a file is, in its header block. Little endian.

From it the catalogue of a folder is made again when that is lost. Nobody reads it otherwise, and a
ledger without it (written before there was one) is as good as any.

  offset  size  name record (1536 bytes, at 2560 of the header block)
       0     8  magic "PULSARXN"
       8     4  checksum           crc32c of bytes 0..7 and 12..1535
      12     4  flags              LedgerNameFlags
      16    16  uuid               of the file, as in the header
      32    16  folder_id          as in the header
      48     8  ledger_id          0: not known when the file was made (a staged one)
      56     8  horizon_ledger_id  of a compacted ledger: up to where the topic was compacted
      64     8  horizon_entry      the last entry in front of it
      72     8  horizon_message    the message behind that entry
      80     4  partition_count    of the topic this one is a partition of; 0: of none, or not known
      84     4  name_size
      88        name               of the topic in full, UTF-8; zeros behind it
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef enum LedgerNameSizes:
    LEDGER_NAME_OFFSET = 2560
    LEDGER_NAME_RECORD_SIZE = 1536
    LEDGER_NAME_SIZE_MAX = 1448

cdef enum LedgerNameFlags:
    LEDGER_NAME_COMPACTED = 1      # what a compaction left
    LEDGER_NAME_CUT = 2            # the name was too long: its beginning, and its checksum

cdef struct LedgerName:
    uint8_t uuid[16]
    uint8_t folder_id[16]
    uint64_t ledger_id
    uint64_t horizon_ledger_id
    uint64_t horizon_entry
    uint64_t horizon_message
    uint32_t flags                 # LedgerNameFlags
    uint32_t partition_count
    uint32_t name_size             # 1..LEDGER_NAME_SIZE_MAX
    const uint8_t* name            # borrowed

cdef void ledger_name_encode(const LedgerName* self, uint8_t* record) noexcept nogil
"""record: LEDGER_NAME_RECORD_SIZE bytes."""

cdef int ledger_name_decode(const uint8_t* record, LedgerName* self) noexcept nogil
"""UNBORN: there is none, all is zero. CORRUPT. self.name points into the record."""
