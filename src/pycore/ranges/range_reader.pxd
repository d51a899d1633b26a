"""Reads ledger ranges out of their files, block by block. Beneath broker.scan.read_range."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.selector cimport SelectorProgram
from pulsarx._pycore.arrow.arrow_block cimport BlockEntry
from pulsarx._pycore.ledger.ledger_file cimport LedgerFile
from pulsarx._pycore.message.message_filter cimport MessageFilter
from pulsarx._pycore.ranges.range_batch cimport RangeBatch
from pulsarx._pycore.ranges.range_block cimport ColumnOrder, RangeBlock, TopicColumn
from pulsarx._pycore.ranges.read_window cimport ReadWindow

cdef struct RangeCursor:
    uint64_t offset                      # of the next frame
    uint64_t end                         # bytes of the file that may be read
    uint64_t first_message               # ordinals: the range is first_message..end_message - 1
    uint64_t end_message
    int64_t from_ms                      # entries published earlier, or at until_ms or later,
    int64_t until_ms                     # are left out
    bint pass_gaps                       # messages that are not there are left out
    bint is_counted                      # no column is read
    const SelectorProgram* selector      # NULL: all messages are read
    ReadWindow window                    # on what is read; where it has none, by the mapping
    bint inside                          # an entry is being read; what follows is about it
    BlockEntry entry
    uint32_t compression
    uint32_t uncompressed_size
    uint32_t at                          # in the payload
    uint32_t index                       # of the next message
    uint32_t until
    bint selected                        # the selector was asked about its messages


cdef struct Selected:                    # of the entry that is being read
    uint8_t* matches                     # owned; 1 for each message that is wanted
    uint32_t capacity


cdef class LedgerPlace:
    cdef uint64_t ledger_id
    cdef object topic
    cdef object path


cdef class RangeReader:
    cdef object ranges                   # an iterator of those that are next
    cdef LedgerFile file                 # owned; pins the mapping; None: no range was begun
    cdef RangeCursor cursor
    cdef MessageFilter filter            # None: all messages are read
    cdef Selected selected
    cdef ColumnOrder order
    cdef str topic
    cdef TopicColumn* c_topic            # owned: one reference; NULL: not made yet
    cdef bytes plain                     # pins the payload of a compressed entry
    cdef object decompress               # (kind, data, uncompressed size, limit) -> bytes
    cdef LedgerPlace what                # for errors
    cdef object failure                  # of the next range, to be raised by the next call
    cdef RangeBatch kept                 # of the call before, which was interrupted
    cdef tuple names
    cdef int64_t rows_max
    cdef int64_t bytes_max
    cdef int64_t rows_behind             # this range, which may be in the same block
    cdef int64_t bytes_behind
    cdef int partition
    cdef uint32_t decompressed_size_max
    cdef bint pass_damage
    cdef bint has_window                 # counted
    cdef bint is_busy                    # a thread is in __next__

    cdef RangeBatch read_block(self)
    cdef RangeBlock* new_block(self) except NULL
    cdef int64_t topic_rows(self, int64_t rows) except -1
    cdef bint next_range(self) except -1
    cdef int start(self, LedgerFile file, uint64_t ledger_id, str topic, uint64_t offset,
                   uint64_t end, bint is_whole) except -1
    cdef bint go_on(self, RangeBlock* block) except -1
    cdef void end_window(self) noexcept
    cdef int fill(self, RangeBlock* block) except -1
    cdef int plain_payload(self) except -1
    cdef int raise_at(self, int status) except -1
