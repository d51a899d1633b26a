"""Scans twice: first for the greatest durable_count, then to judge what does not hold."""

from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from pulsarx._core.crc32c cimport crc32c, crc32c_u64
from pulsarx._core.entry_frame cimport EntryFrame, entry_flags_are_plain, entry_frame_span
from pulsarx._core.file_ops cimport file_flush, file_read, file_write
from pulsarx._core.ledger_footer cimport *
from pulsarx._core.ledger_index cimport *
from pulsarx._core.ledger_name cimport (
    LEDGER_NAME_OFFSET, LEDGER_NAME_RECORD_SIZE, LedgerName, ledger_name_decode,
)
from pulsarx._core.ledger_read cimport *
from pulsarx._core.ledger_seal cimport ledger_seal_write
from pulsarx._core.limits cimport ENTRY_ALIGNMENT, ENTRY_FRAME_SIZE, LEDGER_HEADER_SIZE
from pulsarx._core.status cimport *

cdef struct Scan:
    LedgerRead read
    uint64_t limit                   # bytes that may hold frames
    uint64_t offset
    uint64_t entry_id                # expected at offset
    uint64_t message_count           # before it


cdef bint zeros_at(const uint8_t* base, uint64_t offset, uint64_t limit) noexcept nogil:
    """Is the place of a frame empty? A place cut short by the end of the file counts by what is
    left."""
    cdef uint64_t at
    for at in range(offset,
                    offset + ENTRY_FRAME_SIZE if limit - offset > ENTRY_FRAME_SIZE else limit):
        if base[at]:
            return False
    return True


cdef bint frame_follows(const Scan* scan, const EntryFrame* frame) noexcept nogil:
    return frame.entry_id > scan.entry_id and frame.first_message > scan.message_count


cdef int next_frame(const Scan* scan, uint64_t* offset, EntryFrame* frame) noexcept nogil:
    """The next valid frame behind the broken one at scan.offset that belongs to a later entry."""
    cdef uint64_t at = scan.offset
    cdef int status
    while True:
        status = ledger_read_pass(&scan.read, at, scan.limit, &at)
        if status != STATUS_OK:
            return status
        ledger_read_frame(&scan.read, at, scan.limit, frame)
        if frame_follows(scan, frame):
            offset[0] = at
            return STATUS_OK


cdef bint frame_expected(const Scan* scan, EntryFrame* frame) noexcept nogil:
    return (ledger_read_frame(&scan.read, scan.offset, scan.limit, frame) == STATUS_OK
            and frame.entry_id == scan.entry_id and frame.first_message == scan.message_count)


cdef void scan_start(Scan* scan, const LedgerRecover* self, const uint8_t* base,
                     uint64_t size) noexcept nogil:
    memset(scan, 0, sizeof(Scan))
    scan.read.base = base
    scan.read.mapped_size = size
    scan.read.seed = self.header.seed
    scan.limit = size & ~<uint64_t>(ENTRY_ALIGNMENT - 1)
    if self.header.sealed and self.header.seal_end < scan.limit:
        scan.limit = self.header.seal_end
    elif self.header.cut and self.header.cut_end < scan.limit:
        scan.limit = self.header.cut_end
    scan.offset = LEDGER_HEADER_SIZE


cdef uint64_t durable_count_find(const LedgerRecover* self, const uint8_t* base,
                                 uint64_t size) noexcept nogil:
    """The greatest durable_count of all valid frames, whatever lies between them."""
    cdef Scan scan
    cdef EntryFrame frame
    cdef uint64_t durable = 0
    if self.header.sealed:
        return UINT64_MAX
    if self.header.cut:
        durable = self.header.cut_durable_count
    if self.published.entry_count > durable:
        durable = self.published.entry_count
    scan_start(&scan, self, base, size)
    while True:
        if not frame_expected(&scan, &frame):
            if next_frame(&scan, &scan.offset, &frame) != STATUS_OK:
                return durable
        if frame.durable_count > durable:
            durable = frame.durable_count
        scan.entry_id = frame.entry_id + 1
        scan.message_count = frame.first_message + frame.message_count
        scan.offset += entry_frame_span(frame.entry_size)


cdef void entry_note(LedgerRecover* self, const Scan* scan, const EntryFrame* frame) noexcept nogil:
    """An intact entry, or one whose frame at least holds."""
    self.entry_flags |= frame.flags
    ledger_index_note(&self.index, scan.offset, frame.entry_id, frame.first_message,
                      frame.publish_time_ms)
    if self.first_publish_ms == 0 and self.last_publish_ms == 0:
        self.first_publish_ms = frame.publish_time_ms
        self.last_publish_ms = frame.publish_time_ms
    elif frame.publish_time_ms > self.last_publish_ms:
        self.last_publish_ms = frame.publish_time_ms
    elif frame.publish_time_ms < self.first_publish_ms:
        self.first_publish_ms = frame.publish_time_ms


cdef void damage_note(LedgerRecover* self, uint64_t entry_id, uint64_t entry_count, uint64_t offset,
                      uint64_t next_offset) noexcept nogil:
    self.damaged_entries += entry_count
    if self.damage_count < LEDGER_DAMAGE_MAX:
        self.damage[self.damage_count].entry_id = entry_id
        self.damage[self.damage_count].entry_count = entry_count
        self.damage[self.damage_count].offset = offset
        self.damage[self.damage_count].next_offset = next_offset
        self.damage_count += 1


cdef void digest_note(LedgerRecover* self, const uint8_t* frame) noexcept nogil:
    cdef uint64_t frame_checksum = 0
    cdef uint64_t entry_checksum = 0
    memcpy(&frame_checksum, frame + 4, 4)
    memcpy(&entry_checksum, frame + ENTRY_FRAME_SIZE + 2, 4)
    self.digest = crc32c_u64(self.digest, frame_checksum | (entry_checksum << 32))


cdef bint place_torn(const LedgerRecover* self, const Scan* scan, bint zeros,
                     bint follows) noexcept nogil:
    """The rule of the .pxd for the entry expected at scan.offset, which does not hold."""
    if self.header.sealed or scan.entry_id < self.durable_count:
        return False
    if self.header.cut:
        # A recovery before this one judged with more bytes at hand; what it kept is kept.
        return False
    # Zeros are what a power cut leaves of a write that did not reach the device. Anything else with
    # good entries behind it is taken for damage: better a false alarm than entries lost in silence.
    return zeros or not follows


cdef bint frame_step(LedgerRecover* self, Scan* scan) noexcept nogil:
    """No frame holds at scan.offset: pass over it or cut. False: the scan ends here."""
    cdef EntryFrame frame
    cdef uint64_t offset = scan.limit
    cdef bint follows
    cdef bint zeros = zeros_at(scan.read.base, scan.offset, scan.limit)
    follows = next_frame(scan, &offset, &frame) == STATUS_OK
    if place_torn(self, scan, zeros, follows):
        return False
    if not follows:
        # Known to have been there, but nothing behind it says how many.
        offset = tail_end(self, scan)
        damage_note(self, scan.entry_id, tail_count(self, scan), scan.offset, offset)
        scan.message_count += tail_messages(self, scan)
        scan.entry_id += tail_count(self, scan)
        scan.offset = offset
        return False
    damage_note(self, scan.entry_id, frame.entry_id - scan.entry_id, scan.offset, offset)
    scan.entry_id = frame.entry_id
    scan.message_count = frame.first_message
    scan.offset = offset
    # A record right behind the damage, so that a search need not look for it.
    ledger_index_add(&self.index, offset, frame.entry_id, frame.first_message, True)
    return True


cdef uint64_t tail_count(const LedgerRecover* self, const Scan* scan) noexcept nogil:
    if not self.header.sealed and self.durable_count > scan.entry_id:
        return self.durable_count - scan.entry_id
    return 1


cdef uint64_t torn_find(const uint8_t* base, uint64_t end, uint64_t size) noexcept nogil:
    cdef uint64_t last = size
    while last > end and (last & 7) and base[last - 1] == 0:
        last -= 1
    while last >= end + 8 and (last & 7) == 0 and (<const uint64_t*>(base + last - 8))[0] == 0:
        last -= 8
    while last > end and base[last - 1] == 0:
        last -= 1
    return last - end


cdef uint64_t tail_messages(const LedgerRecover* self, const Scan* scan) noexcept nogil:
    """The messages in a tail that does not hold: as published, else one for each entry."""
    cdef uint64_t count = tail_count(self, scan)
    if self.published.entry_count == scan.entry_id + count and (
            self.published.message_count > scan.message_count + count):
        return self.published.message_count - scan.message_count
    return count


cdef uint64_t tail_end(const LedgerRecover* self, const Scan* scan) noexcept nogil:
    """Return where the damaged end of the data ends: its bytes are kept."""
    cdef uint64_t end
    if self.header.sealed or self.header.cut:
        return scan.limit
    end = scan.offset + torn_find(scan.read.base, scan.offset, scan.limit)
    if self.published.end > end:
        end = self.published.end
    end = (end + ENTRY_ALIGNMENT - 1) & ~<uint64_t>(ENTRY_ALIGNMENT - 1)
    return end if end < scan.limit else scan.limit


cdef void scan_judge(LedgerRecover* self, Scan* scan) noexcept nogil:
    cdef EntryFrame frame, later
    cdef const uint8_t* entry = NULL
    cdef uint64_t behind = 0
    cdef uint64_t unused = 0
    cdef bint follows
    while scan.offset < scan.limit:
        if not frame_expected(scan, &frame):
            if not frame_step(self, scan):
                return
            continue
        if ledger_read_entry(&scan.read, scan.offset, scan.limit, &frame, &entry,
                             &behind) == STATUS_OK:
            digest_note(self, scan.read.base + scan.offset)
        else:
            follows = next_frame(scan, &unused, &later) == STATUS_OK
            if place_torn(self, scan, False, follows):
                return
            damage_note(self, frame.entry_id, 1, scan.offset, behind)
        entry_note(self, scan, &frame)
        scan.entry_id += 1
        scan.message_count += frame.message_count
        scan.offset = behind
    if not self.header.sealed and scan.entry_id < self.durable_count:
        # The file ends in front of what was flushed.
        damage_note(self, scan.entry_id, tail_count(self, scan), scan.offset, scan.offset)
        scan.message_count += tail_messages(self, scan)
        scan.entry_id = self.durable_count


cdef int ledger_recover_header(const uint8_t* base, uint64_t size, const uint8_t* uuid,
                               const uint8_t* folder_id, LedgerHeader* header) noexcept nogil:
    cdef LedgerRead read
    cdef EntryFrame frame
    cdef uint64_t offset = LEDGER_HEADER_SIZE
    memset(&read, 0, sizeof(read))
    read.base = base
    read.mapped_size = size & ~<uint64_t>(ENTRY_ALIGNMENT - 1)
    read.seed = crc32c(0, uuid, 16)
    if read.mapped_size <= LEDGER_HEADER_SIZE:
        return STATUS_UNBORN
    if ledger_read_frame(&read, offset, read.mapped_size, &frame) != STATUS_OK and (
            ledger_read_pass(&read, offset, read.mapped_size, &offset) != STATUS_OK):
        return STATUS_UNBORN
    memset(header, 0, sizeof(LedgerHeader))
    memcpy(header.uuid, uuid, 16)
    memcpy(header.folder_id, folder_id, 16)
    header.seed = read.seed
    # Its durability is unknown: what was published is taken for flushed.
    header.flags = LEDGER_SYNC
    header.damaged = True
    return STATUS_OK


cdef int ledger_recover_scan(LedgerRecover* self, const LedgerHeader* header, bint unborn,
                             const uint8_t* base, uint64_t size,
                             const LedgerPublished* published) noexcept nogil:
    cdef Scan scan
    memset(self, 0, sizeof(LedgerRecover))
    ledger_index_init(&self.index)
    self.unborn = unborn
    if unborn:
        self.end = LEDGER_HEADER_SIZE
        return STATUS_OK
    self.header = header[0]
    if header.flags & LEDGER_SYNC:
        self.published = published[0]
    self.durable_count = durable_count_find(self, base, size)
    scan_start(&scan, self, base, size)
    scan_judge(self, &scan)
    self.end = scan.offset
    self.entry_count = scan.entry_id
    self.message_count = scan.message_count
    if not self.header.sealed:
        self.torn_size = torn_find(base, self.end, size)
    else:
        footer_take(self, base, size)
    return STATUS_OK


cdef void footer_take(LedgerRecover* self, const uint8_t* base, uint64_t size) noexcept nogil:
    """Count as damage what the footer of a sealed file counts and its entries do not show."""
    cdef LedgerFooter footer
    if ledger_footer_decode(base, size, &self.header, &footer) != STATUS_OK:
        return
    if footer.entry_count > self.entry_count:
        damage_note(self, self.entry_count, footer.entry_count - self.entry_count, self.end,
                    self.end)
        self.entry_count = footer.entry_count
    if footer.message_count > self.message_count:
        self.message_count = footer.message_count


cdef int header_write(LedgerRecover* self, int fd, int* error) noexcept nogil:
    cdef uint8_t block[LEDGER_HEADER_SIZE]
    cdef uint8_t record[LEDGER_NAME_RECORD_SIZE]
    cdef LedgerName name
    cdef size_t done = 0
    ledger_header_encode(&self.header, block)
    error[0] = file_read(fd, record, LEDGER_NAME_RECORD_SIZE, LEDGER_NAME_OFFSET, &done)
    if error[0]:
        return STATUS_IO
    # One that is whole stays: nothing else in the file says whose it is.
    if done == LEDGER_NAME_RECORD_SIZE and ledger_name_decode(record, &name) == STATUS_OK and (
            memcmp(name.uuid, self.header.uuid, 16) == 0):
        memcpy(block + LEDGER_NAME_OFFSET, record, LEDGER_NAME_RECORD_SIZE)
    error[0] = file_write(fd, block, LEDGER_HEADER_SIZE, 0)
    if error[0]:
        return STATUS_IO
    error[0] = file_flush(fd)
    return STATUS_POISONED if error[0] else STATUS_OK


cdef int cut_write(LedgerRecover* self, int fd, int* error) noexcept nogil:
    cdef uint8_t sector[LEDGER_SECTOR_SIZE]
    ledger_mark_encode(self.header.seed, True, self.end, self.durable_count, sector)
    error[0] = file_write(fd, sector, LEDGER_SECTOR_SIZE, LEDGER_CUT_OFFSET)
    if error[0]:
        return STATUS_IO
    error[0] = file_flush(fd)
    return STATUS_POISONED if error[0] else STATUS_OK


cdef void footer_fill(const LedgerRecover* self, LedgerFooter* footer) noexcept nogil:
    memset(footer, 0, sizeof(LedgerFooter))
    footer.end = self.end
    footer.entry_count = self.entry_count
    footer.message_count = self.message_count
    footer.first_publish_ms = self.first_publish_ms
    footer.last_publish_ms = self.last_publish_ms
    footer.digest = self.digest
    footer.damage_count = self.damage_count
    footer.torn_size = self.torn_size
    footer.flags = LEDGER_RECOVERED
    if entry_flags_are_plain(self.entry_flags):
        footer.flags |= LEDGER_PLAIN


cdef int ledger_recover_seal(LedgerRecover* self, int fd, LedgerFooter* footer,
                             int* error) noexcept nogil:
    cdef int status
    error[0] = 0
    if self.unborn:
        return STATUS_UNBORN
    footer_fill(self, footer)
    if self.header.sealed:
        return STATUS_DUPLICATE
    if self.headless:
        status = header_write(self, fd, error)
        if status != STATUS_OK:
            return status
    if not self.header.cut:
        status = cut_write(self, fd, error)
        if status != STATUS_OK:
            return status
    return ledger_seal_write(fd, self.header.seed, &self.index, self.damage, footer, True, error)


cdef void ledger_recover_free(LedgerRecover* self) noexcept nogil:
    ledger_index_free(&self.index)
