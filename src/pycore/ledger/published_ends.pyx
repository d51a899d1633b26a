"""PublishedEnds: create, open, hand out slots, wait for one to move.

The file is a header slot and then slots (see published_end.pxd). Header: magic "PULSARXE", epoch
u64, version u32, zero u32, switching u64 (odd while the ends of several ledgers change at once),
zeros.
It is never flushed; after a crash the next owner starts it anew with another epoch.
"""

from libc.errno cimport ENOSPC
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from pulsarx._core.atomic cimport *
from pulsarx._core.file_ops cimport *
from pulsarx._core.limits cimport (
    ENTRY_ALIGNMENT, ENTRY_MESSAGES_MAX, ENTRY_SPAN_MIN, LEDGER_HEADER_SIZE, LEDGER_MESSAGES_END,
)
from pulsarx._core.published_end cimport *
from pulsarx._core.status cimport *
from pulsarx._core.wait_event cimport *
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ground.signals cimport signals_check

import os

cdef extern from "<sys/mman.h>" nogil:
    int PROT_READ, PROT_WRITE, MAP_PRIVATE, MAP_ANONYMOUS, MAP_FIXED
    void* mmap(void* base, size_t size, int access, int flags, int fd, long offset)

cdef enum:
    SLOT_SIZE = 64
    SLOT_COUNT_MAX = 4194304          # of addresses only: 256 MiB
    GROW_SIZE = 65536
    POLL_FIRST_NS = 1000000
    POLL_LAST_NS = 20000000

cdef uint64_t END_MAX = <uint64_t>1 << 41     # of a ledger file, with room to spare

cdef bytes MAGIC = b"PULSARXE"


cdef class PublishedEnds:
    """Slots of the open ledgers of one owner. Any thread may call; other processes open the file
    to read."""

    def __cinit__(self):
        self.c_slots = NULL
        self.c_fd = -1
        self.c_next = 1
        self.free = []
        self.left_slots = {}

    def __dealloc__(self):
        if self.c_slots != NULL:
            file_unmap(<unsigned char*>self.c_slots, self.c_mapped)
        if self.c_fd >= 0:
            file_close(self.c_fd)

    @staticmethod
    def create(path: str, epoch: int) -> PublishedEnds:
        """Start the file anew, as the owner with this epoch. No reader reads up to the ends
        that earlier owners published; they are kept for `left`."""
        return _start(PublishedEnds.__new__(PublishedEnds), path, epoch)

    @staticmethod
    def memory(epoch: int = 0) -> PublishedEnds:
        """Slots that only this process sees."""
        return _start(PublishedEnds.__new__(PublishedEnds), None, epoch)

    @staticmethod
    def open(path: str) -> PublishedEnds:
        """Open the file of another process, to read and wait; also when the file may not be
        written."""
        cdef PublishedEnds self = PublishedEnds.__new__(PublishedEnds)
        cdef bytes name = os.fsencode(path)
        cdef const char* c_name = name
        cdef int error
        self.path = path
        self.writable = True
        with nogil:
            error = file_open(c_name, FILE_WRITE, &self.c_fd)
            if error:
                self.writable = False
                error = file_open(c_name, FILE_READ, &self.c_fd)
        if error:
            raise_status(STATUS_IO, error, f"open {path}")
        _map(self)
        self.c_size_check(0)
        if memcmp(self.c_slots, <const char*>MAGIC, 8) != 0:
            raise_status(STATUS_FOREIGN, 0, f"open {path}")
        memcpy(&self.c_epoch, <char*>self.c_slots + 8, 8)
        return self

    def close_file(self) -> None:
        """No more slots are handed out; those there are stay mapped as long as anybody holds
        them. Where there is no file they are in no memory from now on, but for what is written
        there late: nobody sleeps on them."""
        cdef uint64_t kept = self.c_count * SLOT_SIZE
        cdef unsigned char* base = <unsigned char*>self.c_slots
        if self.c_fd >= 0:
            if self.path is None and mmap(base, kept, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == base:
                file_unmap(base + kept, self.c_mapped - kept)
                self.c_mapped = kept
            file_close(self.c_fd)
            self.c_fd = -1

    @property
    def epoch(self) -> int:
        """The epoch found when the file was created or opened."""
        return self.c_epoch

    @property
    def epoch_now(self) -> int:
        """The epoch in the file now: another one when another owner has started it anew."""
        return atomic_load_u64(<uint64_t*>(<char*>self.c_slots + 8))

    cdef int c_size_check(self, uint64_t slot) except -1:
        """Only what the file has may be touched; the rest of the mapping is addresses."""
        cdef uint64_t size = 0
        cdef int error
        if slot < self.c_count:
            return 0
        error = file_size(self.c_fd, &size)
        if error:
            raise_status(STATUS_IO, error, f"size of {self.path}")
        self.c_count = min(size // SLOT_SIZE, <uint64_t>SLOT_COUNT_MAX)
        if slot >= self.c_count:
            raise_status(STATUS_OUT_OF_RANGE, 0, f"slot {slot} of {self.path or 'memory'}")
        return 0

    cdef uint64_t* c_switching(self) noexcept:
        return &self.c_slots.entry_count

    cdef PublishedEnd* c_slot(self, uint64_t slot) except NULL:
        if slot == 0:
            raise_status(STATUS_OUT_OF_RANGE, 0, "slot 0 is the header")
        self.c_size_check(slot)
        return self.c_slots + slot

    def allocate(self) -> int:
        """A free slot. Owner only."""
        cdef uint64_t slot
        cdef int error
        if self.free:
            return self.free.pop()
        while self.c_next < self.c_count and (self.c_slots[self.c_next].left_ledger_id
                                              or self.c_slots[self.c_next].ledger_id):
            self.c_next += 1
        slot = self.c_next
        if slot >= SLOT_COUNT_MAX:
            raise_status(STATUS_OUT_OF_RANGE, 0, f"more than {SLOT_COUNT_MAX} open ledgers")
        if slot >= self.c_count:
            # Allocated, never sparse: a store into a sparse page on a full disk would kill the
            # process.
            error = file_allocate(self.c_fd, self.c_count * SLOT_SIZE, GROW_SIZE)
            if error:
                raise_status(STATUS_NO_SPACE, error,
                             f"grow {self.path or 'the table of open ledgers'}")
            self.c_count += GROW_SIZE // SLOT_SIZE
        self.c_next += 1
        return slot

    def release(self, slot: int) -> None:
        """The slot may be given to another ledger. Readers that still look see another ledger
        id."""
        cdef PublishedEnd* at = self.c_slot(slot)
        atomic_store_u64(&at.ledger_id, 0)
        atomic_store_u64(&at.state, PUBLISHED_FREE)
        wait_event_wake(&at.event)
        if slot < self.c_next:           # else `allocate` comes to it
            self.free.append(slot)

    cdef int c_start(self, uint64_t slot, uint64_t ledger_id) except -1:
        """The slot is this ledger's from here on, still empty. The id last: it makes the rest
        valid."""
        cdef PublishedEnd* at = self.c_slot(slot)
        at.left_ledger_id = 0
        atomic_store_u64(&at.ledger_id, 0)
        atomic_store_u64(&at.end, 0)
        atomic_store_u64(&at.entry_count, 0)
        atomic_store_u64(&at.message_count, 0)
        at.epoch = self.c_epoch
        atomic_store_u64(&at.state, PUBLISHED_OPEN)
        atomic_store_u64(&at.ledger_id, ledger_id)
        return 0

    def left(self, ledger_id: int) -> tuple[int, int, int]:
        """(end, entry_count, message_count) that an owner published of a ledger before it died;
        zeros when it is unknown. No end to read up to, but evidence of what there was."""
        cdef uint64_t slot
        if ledger_id not in self.left_slots:
            return 0, 0, 0
        slot = self.left_slots[ledger_id]
        return evidence(self.c_slots + slot)

    def left_ids(self) -> list[int]:
        """The ledgers of which earlier owners left an end."""
        return list(self.left_slots)

    def take_left(self, ledger_id: int) -> int:
        """The slot that a ledger had of an earlier owner, to be started for it once more; 0: it is
        not known."""
        return self.left_slots.pop(ledger_id, 0)

    def forget_left(self, ledger_id: int) -> None:
        """The ledger is recovered, or gone: its slot is free."""
        cdef uint64_t slot = self.left_slots.pop(ledger_id, 0)
        if slot:
            self.c_slots[slot].left_ledger_id = 0
            if slot < self.c_next:
                self.free.append(slot)

    def published(self, slot: int, ledger_id: int) -> tuple[int, int, int]:
        """Like left, for a file opened of another owner, dead or alive."""
        cdef PublishedEnd* at
        cdef uint64_t wanted = ledger_id
        if slot < 1:
            return 0, 0, 0
        at = self.c_slot(slot)
        if wanted == 0 or (at.ledger_id != wanted and at.left_ledger_id != wanted):
            return 0, 0, 0
        return evidence(at)

    def read(self, slot: int) -> tuple[int, int, int, int, int, int]:
        """(ledger_id, epoch, end, entry_count, message_count, state); state 0 free, 1 open, 2
        sealed, 3 ended: full, and another one takes the entries."""
        cdef PublishedEnd* at = self.c_slot(slot)
        # Counts before the end, so that what is counted may be read.
        cdef uint64_t ledger_id = atomic_load_u64(&at.ledger_id)
        cdef uint64_t message_count = atomic_load_u64(&at.message_count)
        cdef uint64_t entry_count = atomic_load_u64(&at.entry_count)
        cdef uint64_t end = atomic_load_u64(&at.end)
        cdef uint64_t state = atomic_load_u64(&at.state)
        if atomic_load_u64(&at.ledger_id) != ledger_id:
            return 0, 0, 0, 0, 0, 0
        return ledger_id, at.epoch, end, entry_count, message_count, state

    def find(self, ledger_id: int) -> int:
        """The slot of this ledger under the present epoch, or 0."""
        cdef uint64_t wanted = ledger_id
        cdef uint64_t epoch = self.epoch_now
        cdef uint64_t slot = 1
        cdef uint64_t size = 0
        if wanted == 0:
            return 0
        if file_size(self.c_fd, &size) == 0:
            self.c_count = min(size // SLOT_SIZE, <uint64_t>SLOT_COUNT_MAX)
        while slot < self.c_count:
            if (atomic_load_u64(&self.c_slots[slot].ledger_id) == wanted
                    and self.c_slots[slot].epoch == epoch):
                return slot
            slot += 1
        return 0

    def wait(self, slot: int, end_known: int, timeout_ms: int) -> int:
        """Sleep until more than end_known is published, or the ledger is sealed or gone; the end
        then.

        May return early with nothing new: look and wait again. timeout_ms -1: no limit. Ctrl-C
        raises.
        """
        cdef PublishedEnd* at = self.c_slot(slot)
        cdef uint64_t known = end_known
        cdef uint64_t ledger_id = atomic_load_u64(&at.ledger_id)
        cdef int64_t timeout_ns = <int64_t>timeout_ms * 1000000 if timeout_ms >= 0 else -1
        cdef uint32_t seen
        cdef int status = STATUS_OK
        if self.writable:
            with nogil:
                seen = wait_event_enter(&at.event)
                if not slot_moved(at, ledger_id, known):
                    status = wait_event_sleep(&at.event, seen, timeout_ns)
                wait_event_leave(&at.event)
        else:
            status = self._poll(slot, known, timeout_ns)
        if status == STATUS_INTERRUPTED:
            signals_check()
        return atomic_load_u64(&at.end)

    def _poll(self, slot: int, end_known: int, timeout_ns: int) -> int:
        """A file that may not be written cannot count its waiters: look again and again, ever less
        often."""
        cdef PublishedEnd* at = self.c_slot(slot)
        cdef uint64_t known = end_known
        cdef uint64_t ledger_id = atomic_load_u64(&at.ledger_id)
        cdef int64_t left = timeout_ns
        cdef int64_t step = POLL_FIRST_NS
        cdef WaitEvent never
        cdef int status = STATUS_OK
        memset(&never, 0, sizeof(never))
        with nogil:
            while left != 0 and not slot_moved(at, ledger_id, known):
                if 0 <= left < step:
                    step = left
                status = wait_event_sleep(&never, 0, step)
                if status == STATUS_INTERRUPTED:
                    break
                if left > 0:
                    left -= step
                if step < POLL_LAST_NS:
                    step *= 2
        return status


cdef tuple evidence(const PublishedEnd* at):
    """Return what a slot says, if that is possible; a power cut may have left any bytes."""
    cdef uint64_t end = at.end
    cdef uint64_t entries = at.entry_count
    cdef uint64_t messages = at.message_count
    if end < LEDGER_HEADER_SIZE or end % ENTRY_ALIGNMENT or end > END_MAX:
        return 0, 0, 0
    if entries > (end - LEDGER_HEADER_SIZE) // ENTRY_SPAN_MIN or messages < entries or (
            messages > entries * ENTRY_MESSAGES_MAX or messages > LEDGER_MESSAGES_END):
        return 0, 0, 0
    return end, entries, messages


cdef inline bint slot_moved(PublishedEnd* at, uint64_t ledger_id, uint64_t known) noexcept nogil:
    return (atomic_load_u64(&at.end) > known or atomic_load_u64(&at.state) != PUBLISHED_OPEN
            or atomic_load_u64(&at.ledger_id) != ledger_id)


cdef int _map(PublishedEnds self) except -1:
    cdef int error = file_map(self.c_fd, 0, <uint64_t>SLOT_COUNT_MAX * SLOT_SIZE, self.writable,
                              <unsigned char**>&self.c_slots)
    self.c_mapped = <uint64_t>SLOT_COUNT_MAX * SLOT_SIZE
    if error:
        self.c_slots = NULL
        raise_status(STATUS_IO, error, f"map {self.path or 'the table of open ledgers'}")
    return 0


cdef PublishedEnds _start(PublishedEnds self, object path, uint64_t epoch):
    cdef bytes name
    cdef const char* c_name = NULL
    cdef uint64_t size = 0
    cdef uint32_t version = 1
    cdef PublishedEnd* at
    cdef uint64_t slot
    cdef int error
    self.path = path
    self.writable = True
    if path is not None:
        name = os.fsencode(path)
        c_name = name
    with nogil:
        if c_name == NULL:
            error = file_open_memory(&self.c_fd)
        else:
            error = file_open(c_name, FILE_WRITE | FILE_CREATE, &self.c_fd)
        if error == 0:
            error = file_size(self.c_fd, &size)
        if error == 0:
            size = (size + GROW_SIZE - 1) // GROW_SIZE * GROW_SIZE
            size = max(<uint64_t>GROW_SIZE, min(size, <uint64_t>SLOT_COUNT_MAX * SLOT_SIZE))
            error = file_allocate(self.c_fd, 0, size)
    if error:
        raise_status(STATUS_NO_SPACE if error == ENOSPC else STATUS_IO, error,
                     f"create {path or 'the table of open ledgers'}")
    _map(self)
    self.c_count = size // SLOT_SIZE
    # The new epoch first: a reader in another process sees that the old slots are not to be
    # trusted before they vanish.
    self.c_epoch = epoch
    atomic_store_u64(<uint64_t*>(<char*>self.c_slots + 8), epoch)
    for slot in range(1, self.c_count):
        at = self.c_slots + slot
        if at.ledger_id:
            at.left_ledger_id = at.ledger_id
            atomic_store_u64(&at.ledger_id, 0)
            atomic_store_u64(&at.state, PUBLISHED_FREE)
            wait_event_wake(&at.event)
        if at.left_ledger_id:
            self.left_slots[at.left_ledger_id] = slot
    memcpy(<char*>self.c_slots + 16, &version, 4)
    atomic_store_u64(self.c_switching(), 0)      # a dead owner may have been about it
    memcpy(self.c_slots, <const char*>MAGIC, 8)
    return self
