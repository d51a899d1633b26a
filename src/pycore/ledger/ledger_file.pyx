"""LedgerFile: map, read entries, find, summary, recover.

Every read takes the end below which it may look: of the slot for an open ledger, of the summary
for a sealed one.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.errno cimport EIO, ENOMEM
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from pulsarx._core.atomic cimport atomic_load_u64
from pulsarx._core.batch_decode cimport entry_check
from pulsarx._core.compacted_entry cimport COMPACTED_HEADER_SIZE
from pulsarx._core.entry_frame cimport ENTRY_CHUNK, EntryFrame, entry_frame_span
from pulsarx._core.file_ops cimport *
from pulsarx._core.ledger_footer cimport *
from pulsarx._core.ledger_index cimport *
from pulsarx._core.ledger_read cimport *
from pulsarx._core.ledger_recover cimport LedgerPublished, ledger_recover_header
from pulsarx._core.limits cimport ENTRY_FRAME_SIZE, LEDGER_HEADER_SIZE
from pulsarx._core.message_metadata cimport EntryParts, entry_decode
from pulsarx._core.status cimport *
from pulsarx._pycore.ledger.ledger_recovery cimport LedgerRecovery, ledger_recovery_scan
from pulsarx._pycore.ledger.ledger_summary cimport LedgerSummary, ledger_summary
from pulsarx._pycore.ground.raise_status cimport raise_status

import os

from pulsarx._pycore.ledger.ledger_recovery import seal_recovered
from pulsarx.errors import CorruptDataError

# 32 bits of milliseconds are 49 days; a clock may have been set back since the file was made.
cdef int64_t BEFORE_CREATED_MS = 20 * 86400000

# Addresses only. The largest ledger that options allow, and its last entry, fit.
cdef uint64_t GROWING_SIZE = <uint64_t>65 << 30


cdef class LedgerFile:
    """A ledger file, mapped read-only, or read. Any number of threads may use it; unmapped when the
    last reference goes."""

    def __cinit__(self):
        memset(&self.c_read, 0, sizeof(self.c_read))
        memset(&self.c_header, 0, sizeof(self.c_header))
        self.c_index = NULL
        self.first_index = -1

    def __dealloc__(self):
        if self.c_is_read:
            free(<void*>self.c_read.base)
        elif self.c_read.base != NULL:
            file_unmap(<uint8_t*>self.c_read.base, self.c_read.mapped_size)
        self.c_read.base = NULL

    @staticmethod
    def open(path: str, ledger_id: int, growing: bool = False, *, uuid: str = "",
             folder_id: str = "", at: int = 0, size: int = 0, shown: str = "",
             read_to: int = 0) -> LedgerFile:
        """Map a file as it is. A foreign, newer or damaged header raises; an unborn file has no
        entries.

        growing: another process appends to it; addresses for GROWING_SIZE bytes are taken, so that
        what comes later can be read. Such a map is not for recover.
        uuid, folder_id: 32 hex digits each, as the catalogue names the file and its data directory.
        CorruptDataError names both when another file is in its place. A file without a header whose
        entries are of this uuid can be read all the same: `headless`.
        at, size: the ledger is these bytes of a file that several were merged into. All offsets
        count from its own beginning.
        shown: what errors call the file instead of path, which is to be opened this once.
        read_to: so many bytes are read into memory, and nothing is mapped: what follows is not
        there. Of a file of some KiB that is read once that takes a third of the time.
        """
        cdef bytes name = os.fsencode(path)
        cdef const char* c_name = name
        cdef LedgerFile self
        cdef uint64_t begin = at
        cdef uint64_t there = 0
        cdef bint has_large_folios = False
        cdef int fd = -1
        cdef int error
        with nogil:
            error = file_open(c_name, FILE_READ, &fd)
        if error:
            raise_status(STATUS_IO, error, f"open ledger {ledger_id} at {path}")
        try:
            error = file_size(fd, &there)
            if error:
                raise_status(STATUS_IO, error, f"open ledger {ledger_id} at {path}")
            if size:
                there = min(there - begin, size) if there > begin else 0
            if read_to:
                there = min(there, max(<uint64_t>read_to, LEDGER_HEADER_SIZE))
            self = ledger_file_map(
                fd, max(there, GROWING_SIZE) if growing else there, there, ledger_id, shown or path,
                bytes.fromhex(uuid) if uuid else None,
                bytes.fromhex(folder_id) if folder_id else bytes(16), begin, read_to > 0)
            self.is_shown = bool(shown)
            if read_to == 0:
                with nogil:                      # a network file system asks its server
                    has_large_folios = file_has_large_folios(fd)
                self.c_has_large_folios = has_large_folios
        finally:
            file_close(fd)
        return self

    @property
    def uuid(self) -> bytes:
        return PyBytes_FromStringAndSize(<char*>self.c_header.uuid, 16)

    @property
    def folder_id(self) -> str:
        """The id of the data directory it was written for, 32 hex digits."""
        return PyBytes_FromStringAndSize(<char*>self.c_header.folder_id, 16).hex()

    @property
    def created_ms(self) -> int:
        return self.c_header.created_ms

    @property
    def sealed(self) -> bool:
        """Was the file sealed when it was mapped?"""
        return bool(self.c_header.sealed)

    @property
    def sealed_size(self) -> int:
        """Bytes from the beginning to the end of the footer. CorruptDataError: it has none."""
        self.c_footer_load()
        return self.c_header.footer_offset + LEDGER_FOOTER_SIZE

    @property
    def footer_place(self) -> tuple[int, int]:
        """The end of the entries and that of the footer, as the header says; zeros: the file is not
        sealed."""
        if not self.c_header.sealed:
            return 0, 0
        return self.c_header.seal_end, self.c_header.footer_offset + LEDGER_FOOTER_SIZE

    @property
    def header_damaged(self) -> bool:
        """A part of the header block does not hold; another part replaced it."""
        return bool(self.c_header.damaged)

    @property
    def mapped_size(self) -> int:
        return self.c_read.mapped_size

    cdef int c_raise(self, int status, object what) except -1:
        return raise_status(status, 0,
                            f"{what} of ledger {self.ledger_id} at {self.path or 'memory'}")

    cdef uint64_t c_size_now(self) except? 0:
        cdef bytes name = os.fsencode(self.path)
        cdef const char* c_name = name
        cdef int fd = -1
        cdef int error
        with nogil:
            error = file_open(c_name, FILE_READ, &fd)
            if error == 0:
                error = file_size(fd, &self.c_file_size)
                file_close(fd)
        if error:
            raise_status(STATUS_IO, error, f"open ledger {self.ledger_id} at {self.path}")
        return self.c_file_size

    cdef int c_footer_load(self) except -1:
        """Check footer, index and damage records once."""
        cdef int status
        if self.c_footer_known:
            return 0
        if self.unborn:
            self.c_raise(STATUS_UNBORN, "summary")
        if not self.c_header.sealed:
            raise_status(STATUS_TORN, 0,
                         f"summary of ledger {self.ledger_id} at {self.path}: not sealed")
        with nogil:
            status = ledger_footer_decode(self.c_read.base, self.c_read.mapped_size,
                                          &self.c_header, &self.c_footer)
        if status != STATUS_OK:
            self.c_raise(status, f"footer at offset {self.c_header.footer_offset}")
        ledger_index_map(&self.c_sealed_index, self.c_read.base + self.c_footer.index_offset,
                         self.c_footer.index_count)
        self.c_index = &self.c_sealed_index
        self.c_footer_known = True
        return 0

    def said_first_index(self, end: int) -> int:
        """The index of its first message as the first entry says it; 0: it does not, or there is
        none below end."""
        cdef EntryFrame frame
        if self.unborn or ledger_read_frame(&self.c_read, LEDGER_HEADER_SIZE, end,
                                            &frame) != STATUS_OK or frame.entry_id:
            return 0
        return frame.first_index

    cdef int64_t c_first_index(self, uint64_t ledger_id) except -2:
        if self.first_indexes is None:
            return self.first_index
        return self.first_indexes.get(ledger_id, -1)

    cdef bint says_time(self, int64_t time_ms) noexcept:
        return 0 <= time_ms - (self.c_header.created_ms - BEFORE_CREATED_MS) < <int64_t>1 << 32

    cdef int64_t c_broker_time(self, const uint8_t* entry) noexcept:
        cdef uint32_t low = 0
        cdef int64_t time_ms = 0
        cdef int64_t begin = self.c_header.created_ms - BEFORE_CREATED_MS
        if self.first_indexes is not None:
            entry -= COMPACTED_HEADER_SIZE
            memcpy(&time_ms, entry + 36, 4)
            memcpy(<uint8_t*>&time_ms + 4, entry + 6, 2)
            return time_ms
        memcpy(&low, entry - 4, 4)           # the end of the frame
        if low == 0 or self.c_header.created_ms == 0:
            return 0
        return begin + <int64_t><uint32_t>(low - <uint32_t><uint64_t>begin)

    def summary(self) -> LedgerSummary:
        """Counts, end and times of a sealed file."""
        self.c_footer_load()
        return ledger_summary(&self.c_footer)

    def has_each(self, end_message: int) -> bool:
        """Whether the footer of a sealed file says that each ordinal below this one is a message
        that is there. False: the entries have to be looked at."""
        if not self.c_header.sealed or (
                self.c_header.footer_offset + LEDGER_FOOTER_SIZE > self.c_read.mapped_size):
            return False
        try:
            self.c_footer_load()
        except CorruptDataError:
            return False
        return (self.c_footer.flags & LEDGER_PLAIN != 0 and self.c_footer.damage_count == 0
                and <uint64_t>end_message <= self.c_footer.message_count)

    def damage(self) -> list[tuple[int, int, int, int]]:
        """Return the damage that recovery found before it sealed the file: (entry_id, entry_count,
        offset, next_offset)."""
        cdef const LedgerDamage* records
        cdef uint32_t position
        self.c_footer_load()
        records = <const LedgerDamage*>(self.c_read.base + self.c_footer.index_offset
                                        + self.c_footer.index_count * INDEX_RECORD_SIZE)
        found = []
        for position in range(self.c_footer.damage_count):
            found.append((records[position].entry_id, records[position].entry_count,
                          records[position].offset,
                          records[position].next_offset))
        return found

    def index(self) -> list[tuple[int, int, int, int]]:
        """The index of a sealed file: (offset, entry_id, first_message, greatest publish time
        before) of some of its entries."""
        cdef IndexRecord record
        cdef uint64_t position
        self.c_footer_load()
        found = []
        for position in range(self.c_footer.index_count):
            ledger_index_record(self.c_index, position, &record)
            found.append((record.offset, record.entry_id, record.first_message,
                          record.publish_max_ms))
        return found

    def recover(self, published: tuple[int, int, int] = (0, 0, 0)) -> LedgerRecovery:
        """Scan a file whose owner died; nothing is changed. Not for the map of a writer.

        published: the end, entries and messages that readers are known to have seen; in a topic of
        durability sync what is not there of it is damage.
        """
        cdef LedgerPublished known
        if self.growing:
            self.c_raise(STATUS_OUT_OF_RANGE, "recover from the map of the writer")
        known.end, known.entry_count, known.message_count = published
        return ledger_recovery_scan(&self.c_header, self.unborn, self.headless, self.c_read.base,
                                    self.c_read.mapped_size, self.ledger_id, self.path, &known)

    def entry(self, offset: int, end: int) -> tuple[dict[str, int], bytes, int] | None:
        """(frame, entry, next_offset) of the entry at offset; None at the end. Checksums
        verified."""
        cdef uint64_t at = offset
        cdef uint64_t stop = end
        cdef uint64_t next_offset = 0
        cdef const uint8_t* entry = NULL
        cdef EntryFrame frame
        cdef int status
        frame.entry_id = 0
        with nogil:
            status = ledger_read_entry(&self.c_read, at, stop, &frame, &entry, &next_offset)
        if status == STATUS_END:
            return None
        if status != STATUS_OK:
            which = f"entry {frame.entry_id}" if next_offset else "entry"
            self.c_raise(status, f"{which} at offset {offset}")
        return frame_dict(&frame), PyBytes_FromStringAndSize(<const char*>entry,
                                                             frame.entry_size), next_offset

    def check_entries(self, offset: int, end: int) -> int:
        """Look at the entries from offset to end: each is whole, comes where the one before said,
        and holds as many messages as its frame says. How many there are.

        CorruptDataError: not so, says where. Compressed batches are not decompressed.
        """
        cdef uint64_t at = offset
        cdef uint64_t stop = end
        cdef uint64_t count = 0
        cdef uint64_t next_offset = 0
        cdef uint64_t next_entry = 0
        cdef uint64_t next_message = 0
        cdef const uint8_t* entry = NULL
        cdef EntryFrame frame
        cdef EntryParts parts
        cdef int status = STATUS_OK
        with nogil:
            while at < stop:
                status = ledger_read_entry(&self.c_read, at, stop, &frame, &entry, &next_offset)
                if status == STATUS_OK:
                    status = entry_decode(entry, frame.entry_size, False, &parts)
                if status == STATUS_OK:
                    status = entry_check(&parts, frame.message_count)
                if status == STATUS_OK and count and (frame.entry_id != next_entry
                                                      or frame.first_message != next_message):
                    status = STATUS_CORRUPT
                if status != STATUS_OK:
                    break
                next_entry = frame.entry_id + 1
                next_message = frame.first_message + frame.message_count
                count += 1
                at = next_offset
        if status != STATUS_OK:
            self.c_raise(status, f"entry at offset {at}")
        return count

    def scan(self, offset: int, end: int, size_max: int, entry_id: int, message: int, *,
             compacted: bool = False) -> tuple[int, int, int, tuple[int, int, int] | None]:
        """Look at entries from offset on, about size_max bytes of them, up to end or to a damaged
        place, as check_entries: (offset, entry id, message) that it came to, and if that place is
        damaged the same of the next readable frame; -1 for its ids when there is none below end.

        entry_id, message: what belongs to offset. compacted: entries of a compacted ledger, which
        are not taken apart.
        """
        cdef uint64_t at = offset
        cdef uint64_t stop = end
        cdef uint64_t pause = min(end, offset + size_max)
        cdef uint64_t next_entry = entry_id
        cdef uint64_t next_message = message
        cdef uint64_t next_offset = 0
        cdef bint takes_apart = not compacted
        cdef bint in_order = True
        cdef const uint8_t* entry = NULL
        cdef EntryFrame frame
        cdef EntryParts parts
        cdef int status = STATUS_OK
        with nogil:
            while at < pause:
                next_offset = 0
                status = ledger_read_entry(&self.c_read, at, stop, &frame, &entry, &next_offset)
                in_order = next_offset == 0 or (
                    frame.entry_id == next_entry and frame.first_message == next_message)
                if status == STATUS_OK and takes_apart:
                    status = entry_decode(entry, frame.entry_size, False, &parts)
                    if status == STATUS_OK:
                        status = entry_check(&parts, frame.message_count)
                if status != STATUS_OK or not in_order:
                    break
                next_entry = frame.entry_id + 1
                next_message = frame.first_message + frame.message_count
                at = next_offset
        if status == STATUS_OUT_OF_RANGE:
            self.c_raise(status, f"scan at offset {at}")
        if not in_order:
            # Others are missing in front of this entry, which the next call looks at.
            return at, next_entry, next_message, (at, frame.entry_id, frame.first_message)
        if status == STATUS_OK:
            return at, next_entry, next_message, None
        if next_offset:
            return at, next_entry, next_message, (
                next_offset, frame.entry_id + 1, frame.first_message + frame.message_count)
        with nogil:
            status = ledger_read_pass(&self.c_read, at, stop, &next_offset)
            if status == STATUS_OK:
                status = ledger_read_frame(&self.c_read, next_offset, stop, &frame)
        if status != STATUS_OK:
            return at, next_entry, next_message, (end, -1, -1)
        return at, next_entry, next_message, (next_offset, frame.entry_id, frame.first_message)

    def frame(self, offset: int, end: int) -> dict[str, int] | None:
        """The frame at offset alone; None at the end."""
        cdef EntryFrame frame
        cdef int status = ledger_read_frame(&self.c_read, offset, end, &frame)
        if status == STATUS_END:
            return None
        if status != STATUS_OK:
            self.c_raise(status, f"frame at offset {offset}")
        return frame_dict(&frame)

    def next_delayed(self, offset: int, end: int, after_ms: int) -> tuple[dict, int] | None:
        """The first entry from offset on that is for later than a time: its frame, and where the
        next one is. What is damaged is passed over. None: there is none below end."""
        cdef uint64_t at = offset
        cdef uint64_t stop = end
        cdef uint64_t next_offset = 0
        cdef int64_t after = after_ms
        cdef EntryFrame frame
        cdef bint found = False
        cdef int status
        with nogil:
            while at < stop and not found:
                status = ledger_read_frame(&self.c_read, at, stop, &frame)
                if status == STATUS_OK:
                    next_offset = at + entry_frame_span(frame.entry_size)
                    found = frame.deliver_at_ms > after
                elif status == STATUS_END or ledger_read_pass(
                        &self.c_read, at, stop, &next_offset) != STATUS_OK:
                    break
                at = next_offset
        return (frame_dict(&frame), next_offset) if found else None

    def chunk(self, offset: int, end: int) -> tuple[bytes, int, int] | None:
        """(uuid, chunk id, number of chunks) of the entry at offset; None: it is none, or cannot be
        read."""
        cdef EntryFrame frame
        cdef EntryParts parts
        cdef uint64_t at = offset
        if ledger_read_frame(&self.c_read, at, end, &frame) != STATUS_OK or (
                frame.flags & ENTRY_CHUNK == 0):
            return None
        if entry_decode(self.c_read.base + at + ENTRY_FRAME_SIZE, frame.entry_size, False,
                        &parts) != STATUS_OK or parts.metadata.chunk_count <= 1:
            return None
        return (parts.metadata.uuid[:parts.metadata.uuid_size], parts.metadata.chunk_id,
                parts.metadata.chunk_count)

    def pass_damaged(self, offset: int, end: int) -> int:
        """The offset of the next readable frame behind the damaged entry at offset, or end."""
        cdef uint64_t at = offset
        cdef uint64_t stop = end
        cdef uint64_t next_offset = 0
        cdef EntryFrame frame
        cdef const uint8_t* entry = NULL
        cdef int status
        with nogil:
            status = ledger_read_entry(&self.c_read, at, stop, &frame, &entry, &next_offset)
            if next_offset == 0:
                status = ledger_read_pass(&self.c_read, at, stop, &next_offset)
            else:
                status = STATUS_OK
        if status == STATUS_END:
            return end
        if status != STATUS_OK:
            self.c_raise(status, f"pass over offset {offset}")
        return next_offset

    cdef int c_find(self, int kind, uint64_t value, uint64_t end, uint64_t* offset,
                    LedgerGap* gap) except -1:
        cdef int status
        index_load(self)
        with nogil:
            status = ledger_read_find(&self.c_read, kind, value, end, self.c_index, offset, gap)
        if status == STATUS_END:
            offset[0] = end
            return 0
        return self.c_raise(status, f"find below offset {end}") if status != STATUS_OK else 0

    def find_entry(self, entry_id: int, end: int) -> int:
        """The offset of the first entry with this id or a later one; end when there is none."""
        return find(self, FIND_ENTRY, entry_id, end)

    def find_message(self, ordinal: int, end: int) -> int:
        """The offset of the entry that holds the message with this ordinal in the file; end when
        there is none."""
        return find(self, FIND_MESSAGE, ordinal, end)

    def find_publish_time(self, publish_time_ms: int, end: int) -> int:
        """The offset of the first entry published at this time or later; end when there is none."""
        return find(self, FIND_PUBLISH_TIME, <uint64_t><int64_t>publish_time_ms, end)

    def find_entry_or_gap(self, entry_id: int, end: int) -> tuple[int, tuple[int, int] | None]:
        """Like find_entry, and where the entry belongs if it lies in a damaged place: (entry id,
        ordinal of its first message) with which that place begins, else None."""
        return find_or_gap(self, FIND_ENTRY, entry_id, end)

    def find_publish_time_or_gap(self, publish_time_ms: int,
                                 end: int) -> tuple[int, tuple[int, int] | None]:
        """Like find_publish_time, and the damaged place right in front of the entry found, in the
        form of find_entry_or_gap."""
        return find_or_gap(self, FIND_PUBLISH_TIME, <uint64_t><int64_t>publish_time_ms, end)

    def end_of_times(self, publish_time_ms: int, end: int) -> tuple[int, int] | None:
        """(offset, ordinal) behind the last entry published before this time; None: damage keeps
        that from being found.

        Publish times are not in order where several producers batch: every frame from the first
        later one on is looked at.
        """
        cdef int64_t limit = publish_time_ms
        cdef uint64_t stop = end
        cdef uint64_t at = find(self, FIND_PUBLISH_TIME, <uint64_t>limit, stop)
        cdef uint64_t offset = at
        cdef uint64_t ordinal = 0
        cdef EntryFrame frame
        cdef int status = ledger_read_frame(&self.c_read, at, stop, &frame)
        if status != STATUS_OK:
            return None
        ordinal = frame.first_message
        with nogil:
            while status == STATUS_OK:
                at += entry_frame_span(frame.entry_size)
                if frame.publish_time_ms < limit:
                    offset = at
                    ordinal = frame.first_message + frame.message_count
                status = ledger_read_frame(&self.c_read, at, stop, &frame)
        return (offset, ordinal) if status == STATUS_END else None

    def end_of_old(self, publish_time_ms: int, message: int, end: int) -> tuple[int, bool]:
        """The ordinal, from a message on, up to which every entry was published before this time,
        and whether a later one, or damage, is what ends it, not the end of the file. The index
        cannot tell, as what lies before the message would count."""
        cdef int64_t limit = publish_time_ms
        cdef uint64_t stop = end
        cdef uint64_t ordinal = message
        cdef uint64_t at = find(self, FIND_MESSAGE, ordinal, stop)
        cdef EntryFrame frame
        cdef int status = STATUS_OK
        with nogil:
            while True:
                status = ledger_read_frame(&self.c_read, at, stop, &frame)
                if status != STATUS_OK or frame.publish_time_ms >= limit or (
                        frame.first_message > ordinal):
                    break
                at += entry_frame_span(frame.entry_size)
                ordinal = frame.first_message + frame.message_count
        return ordinal, status != STATUS_END

    def cuts(self, begin: int, end: int, step: int) -> list[tuple[int, int]]:
        """Cut begin..end into parts of about step bytes: (offset, first ordinal) of the entry that
        each part but the first begins with.

        A sealed file answers from its index; an open one is walked, frame by frame.
        """
        cdef IndexRecord record
        cdef EntryFrame frame
        cdef uint64_t position
        cdef uint64_t at = begin
        cdef uint64_t stop = end
        cdef uint64_t size = max(step, 1)
        cdef uint64_t due = at + size
        cdef list found = []
        index_load(self)
        if self.c_index != NULL:
            for position in range(atomic_load_u64(&self.c_index.count)):
                ledger_index_record(self.c_index, position, &record)
                if due <= record.offset < stop:
                    found.append((record.offset, record.first_message))
                    due = record.offset + size
            return found
        while ledger_read_frame(&self.c_read, at, stop, &frame) == STATUS_OK:
            if at >= due:
                found.append((at, frame.first_message))
                due = at + size
            at += entry_frame_span(frame.entry_size)
        return found


cdef class AppendIndex:
    def __dealloc__(self):
        if self.c_index != NULL:
            ledger_index_free(self.c_index)
            free(self.c_index)


cdef int index_load(LedgerFile self) except -1:
    if self.c_header.sealed and not self.c_footer_known:
        try:
            self.c_footer_load()
        except CorruptDataError:
            # A damaged index only makes the search slow; summary() reports it.
            pass
    return 0


cdef object find(LedgerFile self, int kind, uint64_t value, uint64_t end):
    cdef uint64_t offset = 0
    self.c_find(kind, value, end, &offset, NULL)
    return offset


cdef tuple find_or_gap(LedgerFile self, int kind, uint64_t value, uint64_t end):
    cdef uint64_t offset = 0
    cdef LedgerGap gap
    self.c_find(kind, value, end, &offset, &gap)
    return offset, (gap.entry_id, gap.first_message) if gap.offset else None


cdef dict frame_dict(const EntryFrame* frame):
    return {
        "entry_id": frame.entry_id,
        "entry_size": frame.entry_size,
        "message_count": frame.message_count,
        "first_message": frame.first_message,
        "durable_count": frame.durable_count,
        "publish_time_ms": frame.publish_time_ms,
        "deliver_at_ms": frame.deliver_at_ms,
        "sticky_hash": frame.sticky_hash,
        "flags": frame.flags,
    }


cdef int read_bytes(int fd, uint64_t at, size_t size, uint8_t** base) noexcept nogil:
    """Like file_map, into memory of its own; EIO: the file was cut meanwhile."""
    cdef size_t done = 0
    cdef int error
    base[0] = <uint8_t*>malloc(size)
    if base[0] == NULL:
        return ENOMEM
    error = file_read(fd, base[0], size, at, &done)
    if error == 0 and done < size:
        error = EIO
    if error:
        free(base[0])
        base[0] = NULL
    return error


cdef LedgerFile ledger_file_map(int fd, uint64_t size, uint64_t file_size, uint64_t ledger_id,
                                object path, bytes uuid, bytes folder_id, uint64_t at=0,
                                bint is_read=False):
    cdef LedgerFile self = LedgerFile.__new__(LedgerFile)
    cdef uint8_t* base = NULL
    cdef int status
    cdef int error = 0
    self.ledger_id = ledger_id
    self.path = path
    self.at = at
    if size > 0 and is_read:
        with nogil:                      # it may take as long as the disk does
            error = read_bytes(fd, at, size, &base)
    elif size > 0:
        error = file_map(fd, at, size, False, &base)
    if error:
        raise_status(STATUS_IO, error, f"{'read' if is_read else 'map'} ledger {ledger_id} at "
                                       f"{path or 'memory'}")
    self.c_is_read = is_read
    self.c_read.base = base
    self.c_read.mapped_size = size
    self.c_file_size = file_size
    status = ledger_header_decode(base, file_size, &self.c_header)
    if uuid is not None:
        status = expect(self, status, uuid, folder_id)
    self.unborn = status == STATUS_UNBORN
    if status != STATUS_OK and not self.unborn:
        self.c_raise(status, "header")
    self.c_read.seed = self.c_header.seed
    return self


cdef int expect(LedgerFile self, int status, bytes uuid, bytes folder_id) except -1:
    """Compare the header with what the catalogue says; status: of the header, and what becomes of
    it."""
    cdef const uint8_t* c_uuid = <const uint8_t*>PyBytes_AS_STRING(uuid)
    cdef const uint8_t* c_folder_id = <const uint8_t*>PyBytes_AS_STRING(folder_id)
    cdef int rebuilt
    if status == STATUS_UNBORN or status == STATUS_CORRUPT or status == STATUS_FOREIGN:
        with nogil:
            rebuilt = ledger_recover_header(self.c_read.base, self.c_file_size, c_uuid,
                                            c_folder_id, &self.c_header)
        self.headless = rebuilt == STATUS_OK
        return STATUS_OK if self.headless else status
    if status != STATUS_OK:
        return status
    where = f"open ledger {self.ledger_id} at {self.path}"
    if self.uuid != uuid:
        raise CorruptDataError(
            detail=f"{where}: the file there has the uuid {self.uuid.hex()}, the catalogue names "
            f"{uuid.hex()}; another file is in its place. Nothing was changed; put the right one "
            "back")
    found = PyBytes_FromStringAndSize(<char*>self.c_header.folder_id, 16)
    if found != folder_id:
        raise CorruptDataError(
            detail=f"{where}: the file there, of uuid {uuid.hex()}, belongs to the data directory "
            f"{found.hex()}, and not to this one, {folder_id.hex()}. Nothing was changed; put the "
            "right one back")
    return STATUS_OK
