"""The bytes of a cursor file: header, snapshot, and the tail of 16-byte records. Layout in
FORMAT.md.

Header and snapshot are written once, before the file gets its name. The tail is appended to in a
shared mapping by one thread at a time: no system call, and a process killed at any instant leaves
either the old record or the new one.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.ack_bits cimport AckBits
from pulsarx._core.byte_reader cimport ByteReader
from pulsarx._core.byte_writer cimport ByteWriter

cdef enum CursorLimits:
    CURSOR_SLOT_SIZE = 16
    CURSOR_BLOCK_SIZE = 4096            # header, snapshot and tail start on it
    CURSOR_IDENTITY_SIZE = 16
    CURSOR_LABEL_OFFSET = 80            # in the header: whose it is
    CURSOR_LABEL_SIZE = 4016
    CURSOR_TAIL_SIZE_MAX = 1073741824   # what a header may claim
    CURSOR_RUN_MAX = 4294967295         # messages in one record
    CURSOR_LEDGER_SPAN = 16777216       # ledger ids a file reaches above its base
    CURSOR_MESSAGE_END = 137438953472   # 2^37: ordinals are below
    CURSOR_REDELIVERIES_MAX = 65535     # counted; more count as that many
    CURSOR_REDELIVERED_RUN_MAX = 65536  # messages in one CURSOR_REDELIVERED

cdef enum CursorRecordKind:
    CURSOR_RUN = 1          # [first, first + count) of the ledger
    CURSOR_THROUGH = 2      # all earlier ledgers, and of this one everything below first + count
    CURSOR_BEFORE = 3       # all earlier ledgers and nothing of this one; first 0, count 1
    CURSOR_MASK = 4         # of the 32 messages from first (a multiple of 32) on, by bits in count
    CURSOR_REDELIVERED = 5  # each of [first, first + count) was redelivered redelivery_count times

cdef enum CursorSectionTag:
    CURSOR_SECTION_LEDGERS = 1
    CURSOR_SECTION_REDELIVERY = 2
    CURSOR_SECTION_DUE = 3

cdef struct CursorHeader:
    uint8_t identity[16]
    uint64_t generation
    uint64_t base_ledger_id
    uint64_t snapshot_size
    uint64_t tail_offset
    uint64_t tail_size
    uint32_t snapshot_checksum

cdef struct CursorRecord:
    uint32_t kind
    uint64_t ledger_id
    uint64_t first
    uint64_t count
    uint32_t redelivery_count   # of a CURSOR_REDELIVERED; else 0

cdef struct CursorTail:
    uint64_t* slots             # borrowed mapping; NULL: nothing is recorded
    uint64_t capacity           # slots
    uint64_t used               # the first free slot: all below hold something, only masks above
    uint64_t base_ledger_id
    uint64_t home_mask          # capacity - 1 when that is a power of two: masks have homes; else 0
    uint64_t last_slot          # the run that may be extended, while last_kind is not 0
    uint64_t last_ledger_id
    uint64_t last_first
    uint64_t last_end
    uint32_t last_kind
    uint32_t last_checksum      # over word0, to go on from
    uint32_t seed
    uint32_t redelivered_count  # of the last CURSOR_REDELIVERED, which may be extended; or 0
    uint32_t redelivered_checksum
    uint64_t redelivered_slot
    uint64_t redelivered_ledger_id
    uint64_t redelivered_first
    uint64_t redelivered_end

cdef void cursor_header_encode(const CursorHeader* header, const uint8_t* label,
                               size_t label_size, uint8_t* room) noexcept nogil
"""label: up to CURSOR_LABEL_SIZE bytes. room: CURSOR_HEADER_SIZE bytes."""

cdef int cursor_header_decode(const uint8_t* data, uint64_t file_size,
                              CursorHeader* header) noexcept nogil
"""data: CURSOR_HEADER_SIZE bytes. UNBORN, FOREIGN, UNSUPPORTED, CORRUPT.

TRUNCATED: the file ends before the snapshot does.
"""

cdef uint32_t cursor_seed(const CursorHeader* header) noexcept nogil
"""Return the seed of the checksums of this file's records: records of other files do not verify
with it."""

cdef void cursor_tail_start(CursorTail* self, const CursorHeader* header, uint64_t* slots,
                            uint64_t slot_count) noexcept nogil

cdef int cursor_tail_read(CursorTail* self, uint64_t slot, CursorRecord* record) noexcept nogil
"""END: the slot is empty. CORRUPT: damaged, no record. Read all, ascending, before appending."""

cdef int cursor_tail_append(CursorTail* self, uint32_t kind, uint64_t ledger_id, uint64_t first,
                            uint64_t count) noexcept nogil
"""Record a CURSOR_RUN, CURSOR_THROUGH or CURSOR_BEFORE, by extending the last one where that says
the same.

FOLD: no room, or the ledger is too far from the base; nothing was recorded. Survives a kill from
here on.
count: 1..CURSOR_RUN_MAX.
"""

cdef int cursor_tail_scatter(CursorTail* self, uint64_t ledger_id, uint64_t first, uint64_t count,
                             uint32_t held, bint only_known) noexcept nogil
"""Record a few messages of one aligned group of 32 by their bits, in the group's record if that is
in the slot where it belongs.

held: all acknowledged messages of the group, these included. What the slot says of them is not
asked: it may have come back damaged from the disk, and is only replaced by what is known.
END: not within one group, or there is no such record and only_known: append a run instead. FOLD: as
append.
"""

cdef int cursor_tail_redelivered(CursorTail* self, uint64_t ledger_id, uint64_t message,
                                 uint32_t redelivery_count) noexcept nogil
"""Record how often a message was redelivered, over what was recorded before; the last record grows
where the message follows its run with the same count. FOLD: as append.

redelivery_count: 1..CURSOR_REDELIVERIES_MAX.
"""

cdef void cursor_tail_end(CursorTail* self) noexcept nogil
"""The mapping is gone: whatever is recorded from now on answers FOLD."""

cdef inline bint cursor_tail_extends(const CursorTail* self, uint32_t kind, uint64_t ledger_id,
                                     uint64_t first, uint64_t count) noexcept nogil:
    """Whether the last record can say this too, by a larger count."""
    if kind != self.last_kind or ledger_id != self.last_ledger_id:
        return False
    if first + count - self.last_first > CURSOR_RUN_MAX:
        return False
    return first == self.last_end or (kind == CURSOR_THROUGH and first + count >= self.last_end)


cdef inline bint cursor_tail_has_room(const CursorTail* self, uint64_t ledger_id) noexcept nogil:
    """Whether the next append for the ledger cannot answer FOLD."""
    return self.used < self.capacity and ledger_id - self.base_ledger_id < CURSOR_LEDGER_SPAN


cdef uint64_t cursor_ledger_size(uint64_t ledger_id_delta, const AckBits* bits) noexcept nogil
cdef void cursor_ledger_encode(uint64_t ledger_id_delta, const AckBits* bits,
                               ByteWriter* writer) noexcept nogil
cdef int cursor_ledger_decode(ByteReader* reader, uint64_t* ledger_id_delta,
                              AckBits* bits) noexcept nogil
"""bits: initialised; filled. CORRUPT, TRUNCATED, NO_MEMORY: it holds a part."""
