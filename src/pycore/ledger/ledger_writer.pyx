"""LedgerWriter: create, reopen, append, flush, seal, map, close; and what happens to it in a forked
child."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from pulsarx._core.atomic cimport atomic_load_u32, atomic_load_u64, atomic_store_u32
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.file_ops cimport file_flush
from pulsarx._core.ledger_append cimport *
from pulsarx._core.ledger_footer cimport LedgerFooter
from pulsarx._core.ledger_index cimport LedgerIndex
from pulsarx._core.ledger_name cimport LEDGER_NAME_RECORD_SIZE
from pulsarx._core.ledger_state cimport *
from pulsarx._core.limits cimport ENTRY_FRAME_SIZE, LEDGER_HEADER_SIZE
from pulsarx._core.status cimport *
from pulsarx._core.wait_event cimport WaitEvent
from pulsarx._pycore.ledger.ledger_file cimport AppendIndex, LedgerFile, ledger_file_map
from pulsarx._pycore.ledger.ledger_summary cimport LedgerSummary, ledger_summary
from pulsarx._pycore.ledger.published_ends cimport PublishedEnds
from pulsarx._pycore.ground.raise_status cimport raise_status
from pulsarx._pycore.ground.signals cimport signals_check, signals_sleep_ns

import os

from pulsarx.errors import ForkedError
from pulsarx.ground.fork import at_fork

cdef enum:
    SMALL_SIZE = 4096                  # written with the GIL: the switch would cost more

cdef uint64_t SIZE_MAX_LIMIT = <uint64_t>1 << 40

cdef dict STATE_NAMES = {
    LEDGER_OPEN: "open", LEDGER_FENCED: "fenced", LEDGER_POISONED: "poisoned",
    LEDGER_SEALED: "sealed", LEDGER_CLOSED: "closed", LEDGER_SEALING: "sealing",
}

# Every live writer; each takes itself out in __dealloc__, which must not ask for memory.
cdef void** LIVE = NULL
cdef size_t LIVE_COUNT = 0
cdef size_t LIVE_CAPACITY = 0


cdef int live_reserve() except -1:
    """Room for one more. MemoryError: there is none."""
    global LIVE, LIVE_CAPACITY
    cdef size_t capacity = max(LIVE_CAPACITY * 2, <size_t>64)
    cdef void* grown
    if LIVE_COUNT == LIVE_CAPACITY:
        grown = realloc(LIVE, capacity * sizeof(void*))
        if grown == NULL:
            raise MemoryError("note a ledger that is written: out of memory")
        LIVE = <void**>grown
        LIVE_CAPACITY = capacity
    return 0


cdef void live_discard(void* writer) noexcept:
    global LIVE_COUNT
    cdef size_t at
    for at in range(LIVE_COUNT):
        if LIVE[at] == writer:
            LIVE_COUNT -= 1
            LIVE[at] = LIVE[LIVE_COUNT]
            return


cdef class LedgerWriter:
    """Appends entries to one ledger. Any thread may call; closed when garbage-collected, without a
    flush."""

    def __cinit__(self):
        memset(&self.c_ledger, 0, sizeof(self.c_ledger))
        self.c_ledger.state = LEDGER_CLOSED
        self.c_ledger.fd = -1

    def __dealloc__(self):
        live_discard(<void*>self)
        if not self.c_born or self.c_forked:
            return
        with nogil:
            ledger_append_close(&self.c_ledger)
            self.c_ledger.index = NULL          # the AppendIndex owns it
            ledger_append_free(&self.c_ledger)

    @staticmethod
    def create(path: str | None, *, ledger_id: int, uuid: bytes, created_ms: int,
               entry_count_max: int, size_max: int,
               publish_on_flush: bool, zero_space: bool, slots: PublishedEnds,
               slot: int, folder_id: bytes, name_record: bytes = b"",
               flushed_later: bool = False, first_index: int = 0) -> LedgerWriter:
        """Create the file, which must not exist; path None: in memory. The slot shows its end from
        here on.

        folder_id: of the data directory it is for. name_record: of `name_record_bytes`; b"": the
        file does not say whose it is. flushed_later: the caller calls flush_sealed, and a power cut
        before may take the file. first_index: of the topic's messages, that of its first one.
        """
        cdef LedgerWriter self = LedgerWriter.__new__(LedgerWriter)
        cdef LedgerSettings settings
        cdef bytes name
        cdef int status
        if len(uuid) != 16 or len(folder_id) != 16:
            raise ValueError(f"uuid, folder_id: 16 bytes, not {len(uuid)}, {len(folder_id)}")
        if len(name_record) not in (0, LEDGER_NAME_RECORD_SIZE):
            raise ValueError(f"name_record: {LEDGER_NAME_RECORD_SIZE} bytes, or none, not "
                             f"{len(name_record)}")
        if not 0 < size_max <= SIZE_MAX_LIMIT or entry_count_max < 1:
            raise ValueError(f"size_max: 1..2**40, not {size_max}; "
                             f"entry_count_max: 1 or more, not {entry_count_max}")
        memset(&settings, 0, sizeof(settings))
        settings.path = NULL
        if path is not None:
            name = os.fsencode(path)
            settings.path = name
        memcpy(settings.uuid, PyBytes_AS_STRING(uuid), 16)
        memcpy(settings.folder_id, PyBytes_AS_STRING(folder_id), 16)
        settings.created_ms = created_ms
        if name_record:
            settings.name_record = <const uint8_t*>PyBytes_AS_STRING(name_record)
        settings.entry_count_max = entry_count_max
        settings.size_max = size_max
        settings.first_index = first_index
        settings.publish_on_flush = publish_on_flush
        settings.zero_space = zero_space
        settings.flushed_later = flushed_later
        settings.published = slots.c_slot(slot)
        self.ledger_id = ledger_id
        self.path = path
        self.slots = slots
        self.slot = slot
        slots.c_start(slot, ledger_id)
        with nogil:
            status = ledger_append_create(&self.c_ledger, &settings)
        if status != STATUS_OK:
            slots.c_start(slot, 0)
            self.c_raise(status, "create")
        self.c_begin()
        return self

    @staticmethod
    def reopen(file: LedgerFile, end: int, *, size_max: int, publish_on_flush: bool,
               slots: PublishedEnds, slot: int, first_index: int) -> LedgerWriter:
        """Open a ledger that its owner left open, to be held back and sealed. Nothing is appended
        to it, and readers see nothing of it until OpenTransactions shows it.

        file: mapped, and whole up to end, which is behind its last entry.
        """
        cdef LedgerWriter self = LedgerWriter.__new__(LedgerWriter)
        cdef LedgerSettings settings
        cdef bytes name = os.fsencode(file.path)
        cdef uint64_t stop = end
        cdef int status
        memset(&settings, 0, sizeof(settings))
        settings.path = name
        settings.size_max = max(<uint64_t>size_max, stop)
        settings.first_index = first_index
        settings.publish_on_flush = publish_on_flush
        settings.published = slots.c_slot(slot)
        self.ledger_id = file.ledger_id
        self.path = file.path
        self.slots = slots
        self.slot = slot
        slots.c_start(slot, self.ledger_id)
        with nogil:
            status = ledger_append_reopen(&self.c_ledger, &settings, file.c_read.base, stop)
        if status != STATUS_OK:
            slots.c_start(slot, 0)
            self.c_raise(status, "reopen")
        self.c_begin()
        return self

    cdef int c_begin(self) except -1:
        """The core has the file open."""
        global LIVE_COUNT
        self.c_born = True
        self.append_index = AppendIndex.__new__(AppendIndex)
        self.append_index.c_index = <LedgerIndex*>self.c_ledger.index
        live_reserve()
        LIVE[LIVE_COUNT] = <void*>self
        LIVE_COUNT += 1
        return 0

    cdef int c_raise(self, int status, object what) except -1:
        cdef int error = 0
        if self.c_forked:
            raise ForkedError(detail=f"{what} ledger {self.ledger_id}: "
                              "it belongs to the process this one was forked from")
        if status == STATUS_IO or status == STATUS_NO_SPACE or status == STATUS_POISONED:
            error = ledger_error(&self.c_ledger)
        return raise_status(status, error,
                            f"{what} ledger {self.ledger_id} at {self.path or 'memory'}")

    @property
    def first_index(self) -> int:
        """The index in its topic of its first message."""
        return self.c_ledger.first_index

    cdef int follow(self, LedgerWriter full) except -1:
        self.before = full
        ledger_append_follow(&self.c_ledger, &full.c_ledger)
        return 0

    def forget_before(self) -> None:
        """The ledger in front is sealed or given up: nothing more of it is flushed from here."""
        if self.before is None or self.c_forked:
            return
        with nogil:
            ledger_append_forget(&self.c_ledger)
        self.before = None

    def append(self, entry: bytes, *, message_count: int, publish_time_ms: int,
               deliver_at_ms: int = 0,
               sticky_hash: int = 0, flags: int = 0) -> tuple[int, int, int]:
        """Store one entry (0x0e01, checksum, ...); (entry_id, first_message, offset). Durable
        after flush."""
        cdef EntryFrame frame
        cdef uint8_t near[ENTRY_FRAME_SIZE + SMALL_SIZE + 8]
        cdef uint8_t* room = near
        cdef size_t size = PyBytes_GET_SIZE(entry)
        cdef const char* data = PyBytes_AS_STRING(entry)
        cdef uint64_t offset = 0
        cdef int status
        if size > <size_t>0xFFFFFFFF:
            self.c_raise(STATUS_TOO_LARGE, f"append {size} bytes to")
        memset(&frame, 0, sizeof(frame))
        frame.entry_size = <uint32_t>size
        frame.message_count = message_count
        frame.publish_time_ms = publish_time_ms
        frame.deliver_at_ms = deliver_at_ms
        frame.sticky_hash = sticky_hash
        frame.flags = flags
        if size > SMALL_SIZE:
            room = <uint8_t*>malloc(ENTRY_FRAME_SIZE + size + 8)
            if room == NULL:
                raise MemoryError(f"append {size} bytes to ledger {self.ledger_id}: out of memory; "
                                  "nothing was changed")
        if size > SMALL_SIZE or not ledger_append_is_brief(&self.c_ledger, frame.entry_size):
            with nogil:
                memcpy(room + ENTRY_FRAME_SIZE, data, size)
                status = ledger_append_entry(&self.c_ledger, &frame, room + ENTRY_FRAME_SIZE,
                                             &offset)
        else:
            memcpy(room + ENTRY_FRAME_SIZE, data, size)
            status = ledger_append_entry(&self.c_ledger, &frame, room + ENTRY_FRAME_SIZE,
                                         &offset)
        if room != near:
            free(room)
        if status != STATUS_OK:
            if status == STATUS_OUT_OF_RANGE:
                raise ValueError(f"append to ledger {self.ledger_id}: an entry starts with 0x0e01 "
                                 "and its checksum, and holds one message or more, as many as "
                                 f"{size} bytes can; not {message_count}")
            self.c_raise(status, f"append {size} bytes to")
        return frame.entry_id, frame.first_message, offset

    def flush(self, entry_count: int | None = None) -> None:
        """Return when the first entry_count entries (None: all so far) are on the device."""
        cdef uint64_t count = atomic_load_u64(&self.c_ledger.entry_count)
        cdef int64_t sleep_ns = signals_sleep_ns(-1)
        cdef int status
        if entry_count is not None:
            count = entry_count
        while True:
            with nogil:
                status = ledger_append_flush(&self.c_ledger, count, sleep_ns)
            if status != STATUS_INTERRUPTED:
                break
            signals_check()
        if status != STATUS_OK:
            self.c_raise(status, "flush")

    def prepare(self, size: int) -> None:
        """Prepare space for the next size bytes now."""
        cdef uint64_t wanted = size
        cdef int status
        with nogil:
            status = ledger_append_prepare(&self.c_ledger, wanted)
        if status != STATUS_OK:
            self.c_raise(status, f"prepare {size} bytes for")

    def seal(self, flush: bool = True) -> LedgerSummary:
        """Flush all, write index and footer. From here on the file never changes.

        flush False: left to the operating system, as with durability os; a kill loses nothing.
        Called again where that had no memory for its answer, it gives that.
        """
        cdef bint wanted = flush
        cdef LedgerFooter footer
        cdef int status
        if not self.c_sealed:
            with nogil:
                status = ledger_append_seal(&self.c_ledger, wanted, &footer)
            if status != STATUS_OK:
                self.c_raise(status, "seal")
            self.c_footer, self.c_sealed = footer, True
        return ledger_summary(&self.c_footer)

    def flush_sealed(self) -> None:
        """Return when all of a file sealed with flush False is on the device; its name is not."""
        cdef int error
        if atomic_load_u32(&self.c_ledger.state) != LEDGER_SEALED:
            raise ValueError(f"ledger {self.ledger_id} at {self.path} is {self.state}, not sealed")
        with nogil:
            error = file_flush(self.c_ledger.fd)
        if error:
            ledger_note_error(&self.c_ledger, error)
            self.c_raise(STATUS_IO, "flush")

    def close(self) -> None:
        """Close the file as it is: nothing is flushed, the slot stays. May be called twice."""
        if self.c_forked:
            return
        with nogil:
            ledger_append_close(&self.c_ledger)

    def map(self) -> LedgerFile:
        """The file mapped for reading below the published end; made once, good until the last
        reference goes."""
        if self.file is None:
            if atomic_load_u32(&self.c_ledger.state) == LEDGER_CLOSED:
                self.c_raise(STATUS_CLOSED, "map")
            size = self.c_ledger.size_max + LEDGER_OVERSHOOT_MAX
            self.file = ledger_file_map(self.c_ledger.fd, size, LEDGER_HEADER_SIZE,
                                        self.ledger_id, self.path, None, None)
            self.file.growing = True
            self.file.c_index = self.append_index.c_index
            self.file.append_index = self.append_index
        return self.file

    @property
    def entry_count(self) -> int:
        return atomic_load_u64(&self.c_ledger.entry_count)

    @property
    def message_count(self) -> int:
        return atomic_load_u64(&self.c_ledger.message_count)

    @property
    def end(self) -> int:
        return atomic_load_u64(&self.c_ledger.end)

    @property
    def durable_count(self) -> int:
        return atomic_load_u64(&self.c_ledger.durable_count)

    @property
    def durable_end(self) -> int:
        return atomic_load_u64(&self.c_ledger.durable_end)

    @property
    def prepared_end(self) -> int:
        return atomic_load_u64(&self.c_ledger.prepared_end)

    @property
    def published_end(self) -> int:
        """The end up to which readers may read: of all written, or with publish_on_flush of all
        durable entries; in front of the first of an open transaction."""
        return atomic_load_u64(&self.c_ledger.visible_end)

    @property
    def is_held(self) -> bool:
        """Whether readers do not see all of it, as transactions are open."""
        return atomic_load_u64(&self.c_ledger.held_end) != UINT64_MAX

    @property
    def state(self) -> str:
        """open, fenced, poisoned, sealing, sealed or closed."""
        return STATE_NAMES[atomic_load_u32(&self.c_ledger.state)]


def mark_forked() -> None:
    """In a forked child: close every writer of the parent, without touching a mutex, a slot or the
    file."""
    cdef LedgerWriter writer
    cdef size_t at
    for at in range(LIVE_COUNT):
        writer = <LedgerWriter>LIVE[at]
        writer.c_forked = True
        atomic_store_u32(&writer.c_ledger.state, LEDGER_CLOSED)


at_fork(__name__, mark_forked)
