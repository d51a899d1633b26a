# cython: language_level=3
"""Body of range_reader.pxd."""

import os

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport INT64_MAX, INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from pulsarx import errors
from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.entry_frame cimport (
    ENTRY_CHUNK, EntryFrame, entry_flags_are_plain, entry_frame_span,
)
from pulsarx._core.file_ops cimport file_is_resident
from pulsarx._core.ledger_read cimport LedgerRead, ledger_read_entry, ledger_read_frame
from pulsarx._core.message_metadata cimport EntryParts, entry_count_holds, entry_decode
from pulsarx._core.selector_match cimport (
    SelectorMessage, selector_match, selector_match_batch,
)
from pulsarx._core.single_metadata cimport METADATA_BATCH, METADATA_ENCRYPTED, METADATA_UUID
from pulsarx._core.status cimport (
    STATUS_CORRUPT, STATUS_END, STATUS_NO_MEMORY, STATUS_OK, STATUS_TOO_LARGE, STATUS_UNSUPPORTED,
)
from pulsarx._pycore.ledger.ledger_file cimport LedgerFile
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.message.message_filter cimport MessageFilter
from pulsarx._pycore.ranges.range_batch cimport RangeBatch, column_order, range_batch_new
from pulsarx._pycore.ranges.range_block cimport (
    RANGE_BYTES_MAX, RANGE_ROWS_MAX, RANGE_TOPIC, RangeBlock, range_block_new, range_block_release,
    range_block_take_batch, range_block_take_single, topic_column_new, topic_column_release,
)
from pulsarx._pycore.ranges.read_window cimport (
    read_window_close, read_window_entry, read_window_open,
)

cdef enum:
    # Beside the statuses:
    COMPRESSED = -1              # the payload has to be made plain first
    GAP = -2                     # the next entry begins behind the next message
    ENCRYPTED = -3               # the entry cannot be read here
    WINDOWED_LEAST = 1048576     # bytes; for less, opening the file again costs more than it saves
    WINDOWS_MAX = 64             # at a time: each has a descriptor

cdef int windows = 0             # that readers have; the GIL guards it


cdef int step_to(RangeCursor* self, const EntryFrame* frame) noexcept nogil:
    """Go to the first message of the entry that belongs to the range."""
    cdef BatchMessage passed
    cdef int status = STATUS_OK
    while status == STATUS_OK and frame.first_message + self.index < self.first_message:
        if self.entry.flags & METADATA_BATCH:
            status = batch_decode_next(self.entry.payload, self.entry.payload_size, &self.at,
                                       &passed)
        self.index += 1
    return STATUS_CORRUPT if status == STATUS_END else status


cdef int pass_other_times(RangeCursor* self, LedgerRead* read) noexcept nogil:
    """Go past entries that were published at other times; their payloads are not looked at."""
    cdef EntryFrame frame
    cdef int status
    while self.from_ms != INT64_MIN or self.until_ms != INT64_MAX:
        status = ledger_read_frame(read, self.offset, self.end, &frame)
        if status != STATUS_OK:
            return status
        if frame.first_message >= self.end_message or (
                self.from_ms <= frame.publish_time_ms < self.until_ms):
            break
        if frame.first_message > self.first_message and not self.pass_gaps:
            return GAP
        self.offset += entry_frame_span(frame.entry_size)
        # The range may end inside this entry.
        self.first_message = min(self.end_message, max(self.first_message,
                                 frame.first_message + frame.message_count))
    return STATUS_OK


cdef int read_entry(RangeCursor* self, LedgerRead* read, EntryFrame* frame,
                    const uint8_t** entry, uint64_t* next_offset) noexcept nogil:
    if self.window.descriptor >= 0 and self.offset < self.end:
        if read_window_entry(&self.window, self.offset, self.end, frame, entry,
                             next_offset) == STATUS_OK:
            return STATUS_OK
        read_window_close(&self.window)  # what comes is read by the mapping, which says why
    return ledger_read_entry(read, self.offset, self.end, frame, entry, next_offset)


cdef int open_entry(RangeCursor* self, LedgerRead* read, EntryFrame* frame) noexcept nogil:
    """Go to the next entry of the range, verified; STATUS_END: there is none."""
    cdef EntryParts parts
    cdef const uint8_t* entry = NULL
    cdef uint64_t next_offset = 0
    cdef int status
    while True:
        status = pass_other_times(self, read)
        if status == STATUS_OK:
            status = read_entry(self, read, frame, &entry, &next_offset)
        if status != STATUS_OK:
            return status
        if frame.first_message >= self.end_message:
            return STATUS_END
        if frame.first_message + frame.message_count > self.first_message:
            break
        self.offset = next_offset
    if frame.first_message > self.first_message and not self.pass_gaps:
        return GAP
    status = entry_decode(entry, frame.entry_size, False, &parts)
    if status != STATUS_OK:
        return status
    if not entry_count_holds(&parts, frame.message_count):
        return STATUS_CORRUPT
    if frame.flags & ENTRY_CHUNK or parts.metadata.flags & METADATA_UUID:
        return STATUS_UNSUPPORTED
    if parts.metadata.flags & METADATA_ENCRYPTED:
        return ENCRYPTED
    self.entry.payload = parts.payload
    self.entry.payload_size = parts.payload_size
    self.entry.metadata = parts.encoded_metadata
    self.entry.metadata_size = parts.encoded_metadata_size
    self.entry.flags = parts.metadata.flags
    self.entry.message_count = frame.message_count
    self.entry.entry_id = frame.entry_id
    self.entry.first_message = frame.first_message
    self.entry.publish_time_ms = <int64_t>parts.metadata.publish_time_ms
    self.compression = parts.metadata.compression
    self.uncompressed_size = parts.metadata.uncompressed_size
    self.at = 0
    self.index = 0
    self.until = frame.message_count
    if frame.first_message + frame.message_count > self.end_message:
        self.until = <uint32_t>(self.end_message - frame.first_message)
    self.inside = True
    self.selected = False
    self.offset = next_offset
    return COMPRESSED if self.compression else STATUS_OK


cdef int select(RangeCursor* self, Selected* selected) noexcept nogil:
    """Ask the selector about the messages of the entry that are next."""
    cdef SelectorMessage message
    cdef bint wanted = True
    cdef uint32_t at = self.at
    cdef void* grown
    if self.until > selected.capacity:
        grown = realloc(selected.matches, self.until)
        if grown == NULL:
            return STATUS_NO_MEMORY
        selected.matches = <uint8_t*>grown
        selected.capacity = self.until
    if self.entry.flags & METADATA_BATCH:
        # What cannot be read is wanted, and told when it is taken.
        selector_match_batch(self.selector, self.entry.payload, self.entry.payload_size, &at,
                             self.index, self.until, self.entry.publish_time_ms,
                             selected.matches + self.index)
    else:
        message.metadata = self.entry.metadata
        message.metadata_size = self.entry.metadata_size
        message.in_batch = False
        message.publish_time_ms = self.entry.publish_time_ms
        if selector_match(self.selector, &message, &wanted) != STATUS_OK:
            wanted = True
        selected.matches[0] = wanted
    self.selected = True
    return STATUS_OK


cdef int take_selected(RangeCursor* self, const Selected* selected,
                       RangeBlock* block) noexcept nogil:
    """Append the messages of a batch that are wanted, as take_batch does with all."""
    cdef BatchMessage passed
    cdef uint32_t end
    cdef int status = STATUS_OK
    while self.index < self.until and status == STATUS_OK:
        if selected.matches[self.index] == 0:
            status = batch_decode_next(self.entry.payload, self.entry.payload_size, &self.at,
                                       &passed)
            self.index += status == STATUS_OK
            continue
        end = self.index
        while end < self.until and selected.matches[end]:
            end += 1
        status = range_block_take_batch(block, &self.entry, &self.at, &self.index, end)
    return status


cdef bint take_counted(RangeCursor* self, const LedgerRead* read, RangeBlock* block) noexcept nogil:
    """Count the messages of the next entry by its frame: the entry is not looked at, and its
    checksum neither. False: it has to be read, and nothing was done."""
    cdef EntryFrame frame
    cdef uint64_t end
    if ledger_read_frame(read, self.offset, self.end, &frame) != STATUS_OK:
        return False
    end = frame.first_message + frame.message_count
    if not frame.first_message <= self.first_message < end or (
            not self.from_ms <= frame.publish_time_ms < self.until_ms):
        return False
    if not entry_flags_are_plain(frame.flags):
        return False
    end = min(end, self.end_message, self.first_message + <uint64_t>(
        block.row_capacity - block.row_count))
    block.row_count += <int64_t>(end - self.first_message)
    self.first_message = end
    if end == frame.first_message + frame.message_count:
        self.offset += entry_frame_span(frame.entry_size)
    return True


cdef int fill_block(RangeCursor* self, LedgerRead* read, RangeBlock* block,
                    Selected* selected) noexcept nogil:
    """Append messages until the block is full (TOO_LARGE) or the range is read (END).

    COMPRESSED: the entry's payload has to be made plain, then again. Anything else: damage at the
    entry that is next or being read.
    """
    cdef EntryFrame frame
    cdef int status
    while True:
        if not self.inside:
            if self.first_message >= self.end_message:
                return STATUS_END
            if block.row_count == block.row_capacity:
                return STATUS_TOO_LARGE
            if self.is_counted and take_counted(self, read, block):
                continue
            status = open_entry(self, read, &frame)
            if status != STATUS_OK:
                return status
        if self.compression:
            return COMPRESSED
        if self.index == 0 and self.entry.first_message < self.first_message:
            frame.first_message = self.entry.first_message
            status = step_to(self, &frame)
            if status != STATUS_OK:
                return status
        if self.selector != NULL and not self.selected:
            status = select(self, selected)
            if status != STATUS_OK:
                return status
        if self.selector != NULL and self.entry.flags & METADATA_BATCH:
            status = take_selected(self, selected, block)
        elif self.entry.flags & METADATA_BATCH:
            status = range_block_take_batch(block, &self.entry, &self.at, &self.index, self.until)
        elif self.selector != NULL and selected.matches[0] == 0:
            status = STATUS_OK
            self.index = 1
        else:
            status = range_block_take_single(block, &self.entry)
            if status == STATUS_OK:
                self.index = 1
        self.first_message = self.entry.first_message + self.index
        if status != STATUS_OK:
            return status
        self.inside = False


@cython.final
cdef class LedgerPlace:
    """Names the ledger and its topic, for errors. Made of every range, and seldom said."""

    def __init__(self, uint64_t ledger_id, topic, path):
        self.ledger_id = ledger_id
        self.topic = topic
        self.path = path

    def __str__(self) -> str:
        return f"ledger {self.ledger_id} of {self.topic} at {self.path}"


@cython.final
cdef class RangeReader:
    """An iterator of RangeBatch over ranges. One thread at a time."""

    def __cinit__(self):
        memset(&self.cursor, 0, sizeof(self.cursor))
        self.cursor.window.descriptor = -1

    def __init__(self, ranges not None, *, columns, int64_t rows_max, int64_t bytes_max, decompress,
                 uint32_t decompressed_size_max, bint pass_damage, str selector=None):
        """ranges: an iterable of tuples (file: LedgerFile, ledger id, topic, partition, offset,
        end, first message, end message, from_ms, until_ms, rows ahead, bytes ahead).

        from_ms, until_ms: only entries published from then on, and before; None: all.
        rows, bytes ahead: of this range and those behind it that may be in one batch with it. Bytes
        may be more or less; no rows ahead but its own: a batch ends with this range.
        The iterable is asked for the next one when the file of the one before it was let go of.
        pass_damage: what cannot be read is logged and left out.
        selector: which messages are read; None: all. InvalidConfiguration: it is wrong.
        columns: none: the messages are counted, and entries are not looked at but for their frames.
        """
        if selector is not None:
            self.filter = MessageFilter(selector)
        if columns:
            column_order(columns, &self.order)
        if not 1 <= rows_max <= RANGE_ROWS_MAX or not 1 <= bytes_max <= RANGE_BYTES_MAX:
            raise ValueError(f"max_rows is {rows_max}, max_bytes {bytes_max}; they must be from 1 "
                             f"to {<int>RANGE_ROWS_MAX} and {<int>RANGE_BYTES_MAX}")
        self.names = tuple(columns)
        self.ranges = iter(ranges)
        self.rows_max = rows_max
        self.bytes_max = bytes_max
        self.decompress = decompress
        self.decompressed_size_max = decompressed_size_max
        self.pass_damage = pass_damage

    def __dealloc__(self):
        self.end_window()
        topic_column_release(self.c_topic)
        free(self.selected.matches)

    def __iter__(self):
        return self

    def __next__(self) -> RangeBatch:
        if self.is_busy:
            raise ValueError(f"read {self.what or 'a range'}: another thread is reading it")
        self.is_busy = True
        try:
            return self.read_block()
        finally:
            self.is_busy = False

    def begin(self) -> None:
        """Go to the first range now: whatever is wrong with it is an error here."""
        self.next_range()

    cdef void end_window(self) noexcept:
        global windows
        read_window_close(&self.cursor.window)
        if self.has_window:
            self.has_window = False
            windows -= 1

    cdef bint next_range(self) except -1:
        """False: there is none any more."""
        self.end_window()
        self.file = None
        try:
            opened = next(self.ranges, None)
            if opened is None:
                return False
            (file, ledger_id, topic, partition, offset, end, first_message, end_message, from_ms,
             until_ms, rows_ahead, bytes_ahead) = opened
            self.start(file, ledger_id, topic, offset, end, from_ms is None and until_ms is None)
        except BaseException:
            self.ranges = iter(())       # none is passed over by who asks again
            raise
        self.partition = partition
        self.cursor.entry.ledger_id = ledger_id
        self.cursor.first_message = first_message
        self.cursor.end_message = end_message
        self.cursor.from_ms = INT64_MIN if from_ms is None else from_ms
        self.cursor.until_ms = INT64_MAX if until_ms is None else until_ms
        self.rows_behind = rows_ahead - (<int64_t>end_message - <int64_t>first_message)
        self.bytes_behind = bytes_ahead - (<int64_t>end - <int64_t>offset)
        return True

    cdef int start(self, LedgerFile file, uint64_t ledger_id, str topic, uint64_t offset,
                   uint64_t end, bint is_whole) except -1:
        """Go to these bytes of a file. is_whole: nothing between them is left out."""
        global windows
        cdef bytes path
        cdef const char* c_path
        self.what = LedgerPlace(ledger_id, topic, file.path)
        if end > file.c_read.mapped_size:
            raise errors.CorruptDataError(
                detail=f"read {self.what}: the file has {file.c_read.mapped_size} bytes, {end} "
                "were planned. It was cut; restore it")
        memset(&self.cursor, 0, sizeof(self.cursor))
        self.cursor.window.descriptor = -1
        self.cursor.is_counted = self.order.count == 0 and self.filter is None
        if file.path is not None and not file.is_shown and end - offset >= WINDOWED_LEAST and (
                is_whole and windows < WINDOWS_MAX and not self.cursor.is_counted) and not (
                    file.c_has_large_folios
                    and file_is_resident(file.c_read.base + offset, end - offset)):
            windows += 1
            self.has_window = True
            path = os.fsencode(file.path)
            c_path = PyBytes_AS_STRING(path)
            with nogil:
                read_window_open(&self.cursor.window, c_path, file.at, &file.c_read)
        if topic != self.topic:
            topic_column_release(self.c_topic)
            self.c_topic = NULL
            self.topic = topic
        self.cursor.offset = offset
        self.cursor.end = end
        if self.filter is not None:
            self.cursor.selector = &self.filter.c_program
        self.cursor.pass_gaps = self.pass_damage
        self.file = file
        return 0

    cdef RangeBatch read_block(self):
        cdef RangeBlock* block
        while True:
            if self.kept is not None:
                kept, self.kept = self.kept, None
                return kept
            if self.failure is not None:
                failure, self.failure = self.failure, None
                raise failure
            if self.file is None or (
                    not self.cursor.inside
                    and self.cursor.first_message >= self.cursor.end_message):
                if not self.next_range():
                    raise StopIteration
            block = self.new_block()
            try:
                self.fill(block)
            except BaseException:
                # Rows are there when a signal interrupted what is Python's.
                if block.row_count:
                    self.kept = range_batch_new(block, self.names)
                else:
                    range_block_release(block)
                raise
            if block.row_count:
                return range_batch_new(block, self.names)
            range_block_release(block)

    cdef RangeBlock* new_block(self) except NULL:
        cdef RangeBlock* block
        cdef int64_t left = <int64_t>(self.cursor.end_message - self.cursor.first_message)
        cdef int64_t rows
        # Plain payloads are no more than what is left of the files; a block's, about its share.
        cdef int64_t expected = <int64_t>(self.cursor.end - self.cursor.offset) + self.bytes_behind
        if self.cursor.inside:
            expected += self.cursor.entry.payload_size
        left = max(left + self.rows_behind, 1)
        rows = min(left, self.rows_max)
        if self.order.columns & RANGE_TOPIC:
            rows = self.topic_rows(rows)
        if left > rows:
            expected = expected // left * rows * 5 // 4
        expected += 4096
        block = range_block_new(&self.order, rows, self.bytes_max, expected, self.c_topic)
        if block == NULL:
            raise MemoryError(f"the columns of {rows} messages")
        block.partition = self.partition
        return block

    cdef int64_t topic_rows(self, int64_t rows) except -1:
        """For how many rows, of so many, there is the column of the topic's name."""
        cdef bytes name
        if self.c_topic == NULL:
            name = self.topic.encode()
            # Names are bytes of a batch, too.
            rows = min(rows, max(self.bytes_max // len(name), 1))
            self.c_topic = topic_column_new(<const uint8_t*>PyBytes_AS_STRING(name),
                                            <uint32_t>len(name), rows)
            if self.c_topic == NULL:
                raise MemoryError(f"the names of {rows} topics")
        return min(rows, self.c_topic.rows)

    cdef bint go_on(self, RangeBlock* block) except -1:
        """Have the next range, if there is one that may be in the same block, go into it."""
        if self.rows_behind <= 0:
            return False
        try:
            if not self.next_range():
                return False
        except Exception as error:
            if block.row_count == 0:
                raise
            self.failure = error         # what was read before comes first
            return False
        if block.topic != self.c_topic:
            return False                 # those of its topic that were ahead are missing
        block.partition = self.partition
        return True

    cdef int fill(self, RangeBlock* block) except -1:
        cdef int status
        while True:
            with nogil:
                status = fill_block(&self.cursor, &self.file.c_read, block, &self.selected)
            if status == STATUS_TOO_LARGE:
                return 0
            if block.row_count and not self.pass_damage and status != STATUS_END and (
                    status != COMPRESSED):
                return 0                 # what was read before the damage comes first
            if status == STATUS_END:
                missing = self.cursor.end_message - self.cursor.first_message
                if missing and block.row_count and not self.pass_damage:
                    return 0
                self.cursor.first_message = self.cursor.end_message
                if missing and not self.pass_damage:
                    self.ranges = iter(())
                    # All of the range was published when it was planned.
                    raise errors.CorruptDataError(
                        detail=f"read {self.what}: the last {missing} messages of the range are "
                        "not there")
                if not self.go_on(block):
                    return 0
                continue
            if status == COMPRESSED:
                try:
                    self.plain_payload()
                    continue
                except Exception as error:
                    if not self.pass_damage or not isinstance(error, errors.CorruptDataError):
                        if block.row_count:
                            return 0
                        raise
                    self.log(error)
                    self.leave_entry()
                    continue
            if status == STATUS_NO_MEMORY or not self.pass_damage:
                self.raise_at(status)
            try:
                self.raise_at(status)
            except errors.PulsarException as error:
                self.log(error)
            self.pass_on()

    cdef int plain_payload(self) except -1:
        cdef RangeCursor* cursor = &self.cursor
        cdef bytes packed = cursor.entry.payload[:cursor.entry.payload_size]
        self.plain = self.decompress(cursor.compression, packed, cursor.uncompressed_size,
                                     self.decompressed_size_max)
        cursor.entry.payload = <const uint8_t*>PyBytes_AS_STRING(self.plain)
        cursor.entry.payload_size = <uint32_t>PyBytes_GET_SIZE(self.plain)
        cursor.compression = 0
        return 0

    def log(self, error) -> None:
        import logging

        logging.getLogger("pulsarx").error("%s; reading goes on behind it",
                                           errors.detail_of(error))

    def leave_entry(self) -> None:
        """The rest of the entry cannot be read."""
        self.cursor.inside = False
        self.cursor.compression = 0
        self.cursor.first_message = self.cursor.entry.first_message + (
            self.cursor.entry.message_count)

    def pass_on(self) -> None:
        """Go behind the damage: the rest of this entry, or up to the next frame that holds."""
        if self.cursor.inside:
            self.leave_entry()
            return
        self.cursor.offset = self.file.pass_damaged(self.cursor.offset, self.cursor.end)

    cdef int raise_at(self, int status) except -1:
        if status == GAP:
            raise errors.CorruptDataError(
                detail=f"read {self.what}: message {self.cursor.first_message} is not there; what "
                f"is in front of offset {self.cursor.offset} is damaged")
        if status == STATUS_UNSUPPORTED:
            raise errors.OperationNotSupported(
                detail=f"read {self.what}: the entry at offset {self.cursor.offset} is a chunk of "
                "a message; a range may begin or end inside one, so such messages are read by "
                "consumers and readers, receive_arrow and read_arrow too")
        if status == ENCRYPTED:
            raise errors.OperationNotSupported(
                detail=f"read {self.what}: the entry at offset {self.cursor.offset} is encrypted; "
                "ranges have no crypto_key_reader, consumers and readers have")
        if self.cursor.inside:
            raise_status(status, 0, f"read message {self.cursor.index} of entry "
                                    f"{self.cursor.entry.entry_id} of {self.what}")
        return raise_status(status, 0, f"read {self.what} at offset {self.cursor.offset}")
