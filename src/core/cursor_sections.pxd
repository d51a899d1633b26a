"""The redelivery counts and due times that a cursor keeps of single messages, encoded and decoded.

They lie in two sections of a cursor's snapshot and, the counts, in the records of its tail. One
thread at a time; the layout is in FORMAT.md.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.byte_reader cimport ByteReader
from pulsarx._core.cursor_record cimport CursorTail

cdef struct RestoredMessage:
    uint64_t ledger_id
    uint64_t message            # ordinal in the ledger
    uint64_t value              # redeliveries, or due_ms

cdef struct RestoredMessages:
    RestoredMessage* messages   # owned; ascending by (ledger id, ordinal)
    uint64_t count
    uint64_t capacity

cdef struct SectionWriter:
    uint8_t* data               # owned
    uint64_t size
    uint64_t capacity
    uint64_t ledger_id
    uint64_t next_message       # ordinals below are written
    uint64_t last_value         # due times are told by their difference
    uint32_t tag
    uint32_t in_ledger

cdef struct SectionReader:
    ByteReader bytes            # borrowed
    uint64_t ledger_id
    uint64_t next_message
    uint64_t last_value
    uint32_t tag
    uint32_t in_ledger
    uint32_t ledgers_seen

cdef void section_writer_start(SectionWriter* self, uint32_t tag) noexcept nogil
"""tag: CURSOR_SECTION_REDELIVERY or CURSOR_SECTION_DUE. Allocates nothing yet."""

cdef int section_writer_add(SectionWriter* self, uint64_t ledger_id, uint64_t message,
                            uint64_t value) noexcept nogil
"""Messages come in ascending order, each once. NO_MEMORY.

value: redeliveries, 1 or more, counted up to CURSOR_REDELIVERIES_MAX; or due_ms.
"""

cdef int section_writer_end(SectionWriter* self) noexcept nogil
"""From here on data and size are the section; of no message: empty. NO_MEMORY."""

cdef void section_writer_free(SectionWriter* self) noexcept nogil

cdef void section_reader_start(SectionReader* self, uint32_t tag, const uint8_t* data,
                               uint64_t size) noexcept nogil

cdef int section_reader_next(SectionReader* self, RestoredMessage* found) noexcept nogil
"""END behind the last message. TRUNCATED, CORRUPT: the section is not one of ours."""

cdef int section_check(uint32_t tag, const uint8_t* data, uint64_t size) noexcept nogil
"""Whether all of a section can be read: OK, TRUNCATED or CORRUPT."""

cdef int section_decode(uint32_t tag, const uint8_t* data, uint64_t size,
                        RestoredMessages* found) noexcept nogil
"""found: zeros; filled. TRUNCATED, CORRUPT, NO_MEMORY: it holds a part."""

cdef int redeliveries_decode(const uint8_t* data, uint64_t size, CursorTail* tail,
                             RestoredMessages* found) noexcept nogil
"""The section of redelivery counts, and over it what the tail says; the latest record wins.

tail: NULL, or one whose slots were read. Statuses as of section_decode.
"""

cdef void restored_messages_free(RestoredMessages* self) noexcept nogil
