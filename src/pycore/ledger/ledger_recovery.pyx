"""LedgerRecovery: the result of a scan, and sealing by it."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memset

from pulsarx._core.file_ops cimport *
from pulsarx._core.ledger_footer cimport LedgerFooter, LedgerHeader, ledger_header_decode
from pulsarx._core.entry_frame cimport ENTRY_TRANSACTION, EntryFrame, entry_frame_span
from pulsarx._core.ledger_read cimport LedgerRead, ledger_read_frame, ledger_read_pass
from pulsarx._core.ledger_recover cimport *
from pulsarx._core.limits cimport ENTRY_FRAME_SIZE, LEDGER_HEADER_SIZE
from pulsarx._core.message_metadata cimport (
    EntryParts, entry_decode, message_metadata_transaction,
)
from pulsarx._core.status cimport *
from pulsarx._pycore.ledger.ledger_summary cimport LedgerSummary, ledger_summary
from pulsarx._pycore.ground.raise_status cimport raise_status

import os


cdef class LedgerRecovery:
    """The result of recovering a ledger whose owner died: what it holds. A value.

    Entries 0..entry_count-1 exist, those in damage cannot be read; frames lie in 4096..end;
    torn_size bytes behind
    were never acknowledged as durable and are cut off.
    """

    def __dealloc__(self):
        if self.c_recover != NULL:
            ledger_recover_free(self.c_recover)
            free(self.c_recover)

    @property
    def unborn(self) -> bool:
        """Created and never written: no entries, and nothing to seal."""
        return bool(self.c_recover.unborn)

    @property
    def sealed(self) -> bool:
        return bool(self.c_recover.header.sealed)

    @property
    def header_damaged(self) -> bool:
        return bool(self.c_recover.header.damaged)

    @property
    def headless(self) -> bool:
        """The header block is gone; the entries are summed with the uuid the catalogue knows."""
        return bool(self.c_recover.headless)

    @property
    def end(self) -> int:
        return self.c_recover.end

    @property
    def entry_count(self) -> int:
        return self.c_recover.entry_count

    @property
    def message_count(self) -> int:
        return self.c_recover.message_count

    @property
    def first_publish_ms(self) -> int:
        return self.c_recover.first_publish_ms

    @property
    def last_publish_ms(self) -> int:
        return self.c_recover.last_publish_ms

    @property
    def durable_count(self) -> int:
        """Entries that a frame in the file says were flushed."""
        return self.c_recover.durable_count

    @property
    def torn_size(self) -> int:
        return self.c_recover.torn_size

    @property
    def damaged_entries(self) -> int:
        """How many entries cannot be read."""
        return self.c_recover.damaged_entries

    @property
    def damage(self) -> list[tuple[int, int, int, int]]:
        """(first entry_id, entry_count, offset, next_offset) of each damaged place; at most 1024
        are kept."""
        found = []
        for position in range(self.c_recover.damage_count):
            damage = &self.c_recover.damage[<uint32_t>position]
            found.append((damage.entry_id, damage.entry_count, damage.offset, damage.next_offset))
        return found

    @property
    def digest(self) -> int:
        """The digest of the intact entries, as in the footer."""
        return self.c_recover.digest

    def __repr__(self) -> str:
        return (f"LedgerRecovery(ledger_id={self.ledger_id}, entry_count={self.entry_count}, "
                f"end={self.end}, "
                f"torn_size={self.torn_size}, damaged_entries={self.damaged_entries}, "
                f"unborn={self.unborn})")


cdef LedgerRecovery ledger_recovery_scan(const LedgerHeader* header, bint unborn, bint headless,
                                         const uint8_t* base, uint64_t size, object ledger_id,
                                         object path, const LedgerPublished* published):
    cdef LedgerRecovery self = LedgerRecovery.__new__(LedgerRecovery)
    self.ledger_id = ledger_id
    self.path = path
    self.c_recover = <LedgerRecover*>malloc(sizeof(LedgerRecover))
    if self.c_recover == NULL:
        raise MemoryError(f"recover ledger {ledger_id}: out of memory; nothing was changed")
    with nogil:
        ledger_recover_scan(self.c_recover, header, unborn, base, size, published)
    self.c_recover.headless = headless
    self.transacted = []
    self.named = []
    if self.c_recover.entry_flags & ENTRY_TRANSACTION:
        find_transacted(self, base, size)
    return self


cdef int find_transacted(LedgerRecovery self, const uint8_t* base, uint64_t size) except -1:
    cdef LedgerRead read
    cdef EntryFrame frame
    cdef uint64_t offset = LEDGER_HEADER_SIZE
    cdef uint64_t end = min(self.c_recover.end, size)
    cdef list run = None
    memset(&read, 0, sizeof(read))
    read.base = base
    read.mapped_size = end
    read.seed = self.c_recover.header.seed
    while offset < end:
        if ledger_read_frame(&read, offset, end, &frame) != STATUS_OK:
            if ledger_read_pass(&read, offset, end, &offset) != STATUS_OK:
                break
            continue
        offset += entry_frame_span(frame.entry_size)
        if not frame.flags & ENTRY_TRANSACTION:
            continue
        named_append(self.named, base + offset - entry_frame_span(frame.entry_size), &frame)
        if run is not None and run[1] == frame.first_message:
            run[1] += frame.message_count
        else:
            run = [frame.first_message, frame.first_message + frame.message_count]
            self.transacted.append(run)
    return 0


cdef int named_append(list named, const uint8_t* at, const EntryFrame* frame) except -1:
    cdef uint64_t number = 0
    cdef uint64_t first = frame.first_message
    cdef uint64_t end = first + frame.message_count
    if not entry_transaction(at, frame, &number):
        return 0
    if named and named[len(named) - 1][0] == number and named[len(named) - 1][2] == first:
        named[len(named) - 1][2] = end
    else:
        named.append([number, first, end])
    return 0


cdef bint entry_transaction(const uint8_t* at, const EntryFrame* frame,
                            uint64_t* number) noexcept nogil:
    cdef EntryParts parts
    cdef uint64_t coordinator = 1
    if entry_decode(at + ENTRY_FRAME_SIZE, frame.entry_size, False, &parts) != STATUS_OK:
        return False
    return message_metadata_transaction(parts.encoded_metadata, parts.encoded_metadata_size,
                                        &coordinator, number) and coordinator == 0


def seal_recovered(path: str, recovery: LedgerRecovery) -> LedgerSummary:
    """Cut the torn tail off and seal the file as recovery found it; a file sealed already stays as
    it is."""
    cdef bytes name = os.fsencode(path)
    cdef uint8_t block[LEDGER_HEADER_SIZE]
    cdef LedgerHeader header
    cdef LedgerFooter footer
    cdef size_t done = 0
    cdef int status
    cdef const char* c_name = name
    cdef int fd = -1
    cdef int error
    what = f"seal ledger {recovery.ledger_id} at {path}"
    with nogil:
        error = file_open(c_name, FILE_WRITE, &fd)
    if error:
        raise_status(STATUS_IO, error, what)
    try:
        with nogil:
            error = file_read(fd, block, LEDGER_HEADER_SIZE, 0, &done)
        if error:
            raise_status(STATUS_IO, error, what)
        if not recovery.c_recover.unborn and not recovery.c_recover.headless:
            raise_status(ledger_header_decode(block, done, &header), 0, what)
            if memcmp(header.uuid, recovery.c_recover.header.uuid, 16) != 0:
                raise_status(STATUS_FOREIGN, 0, f"{what}: not the file that was recovered")
        with nogil:
            status = ledger_recover_seal(recovery.c_recover, fd, &footer, &error)
        if status != STATUS_DUPLICATE:
            raise_status(status, error, what)
    finally:
        file_close(fd)
    return ledger_summary(&footer)
