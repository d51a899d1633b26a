"""The file of one durable cursor, used by AckTracker with the subscription's mutex held; flush may
come from anywhere.

  state      holds                                        left by
  no file    generation is 0, nothing is recorded          write_generation
  OPEN       acknowledgements go to the mapped tail        abandon, close, delete
  POISONED   OPEN, but a flush failed: what is on the      write_generation (OPEN), abandon, close,
  delete
             device is unknown, the page cache holds all
  CLOSED     nothing is mapped                             -

The one lock, c_flush_mutex, is taken after the subscription's mutex, only without the GIL, and
never held while waiting
for the GIL: a flush in another thread holds the mapping by it while a new generation wants to
replace it.
"""

import os
from sys import intern

from cpython.bytes cimport PyBytes_AS_STRING
from libc.errno cimport ENOSPC, EDQUOT
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset
from posix.mman cimport (
    MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, madvise, mmap,
)

from pulsarx import errors
from pulsarx._core.atomic cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.cursor_record cimport (
    CURSOR_BLOCK_SIZE, CURSOR_IDENTITY_SIZE, CURSOR_SLOT_SIZE, CursorHeader, CursorTail,
    cursor_header_decode,
    cursor_header_encode, cursor_tail_end, cursor_tail_start,
)
from pulsarx._core.file_ops cimport (
    FILE_WRITE, file_allocate, file_close, file_flush, file_flush_map, file_map, file_open,
    file_unmap,
)
from pulsarx._core.limits cimport CURSOR_HEADER_SIZE
from pulsarx._core.status cimport (
    STATUS_CORRUPT, STATUS_FOREIGN, STATUS_IO, STATUS_NO_SPACE, STATUS_OK, STATUS_POISONED,
    STATUS_TRUNCATED,
    STATUS_UNBORN, STATUS_UNSUPPORTED,
)
from pulsarx._pycore.cursor.subscription_label cimport label_bytes
from pulsarx._pycore.ground.file_system cimport path_bytes
from pulsarx._pycore.ground.raise_status cimport raise_status

cdef enum:
    MADV_DONTNEED = 4
    MADV_POPULATE_WRITE = 23
    TAIL_SIZE_MIN = 4096
    TAIL_SIZE_MAX = 1048576     # 65,536 records, which may hold 32 messages each

cdef dict REASONS = {
    STATUS_UNBORN: "it was never written",
    STATUS_FOREIGN: "it is not a cursor file of PulsarX",
    STATUS_TRUNCATED: "it is cut off",
    STATUS_CORRUPT: "its checksum does not hold",
}


cdef int status_of(int error) noexcept nogil:
    if error == 0:
        return STATUS_OK
    return STATUS_NO_SPACE if error == ENOSPC or error == EDQUOT else STATUS_IO


cdef void fault_in(uint8_t* room, size_t size) noexcept nogil:
    """Take the page faults now and not in acknowledgements."""
    cdef volatile uint8_t* at = room
    cdef size_t page = 0
    if madvise(room, size, MADV_POPULATE_WRITE) == 0:
        return
    while page < size:
        at[page] = at[page]
        page += CURSOR_BLOCK_SIZE


cdef int map_tail(const char* path, uint64_t offset, uint64_t size, bint flushes,
                  uint8_t** room) noexcept nogil:
    """Open the file, allocate and map its tail; answers an errno. flushes: the whole file.

    A full disk is met here, never by a store. No descriptor stays: the mapping is flushed without
    one, and there may be more cursors than a process may have descriptors.
    """
    cdef int file = -1
    cdef int error = file_open(path, FILE_WRITE, &file)
    if error:
        return error
    error = file_allocate(file, offset, size)
    if error == 0:
        error = file_map(file, offset, size, True, room)
    if error == 0:
        fault_in(room[0], size)
        if flushes:
            error = file_flush(file)
        if error:
            file_unmap(room[0], size)
            room[0] = NULL
    file_close(file)
    return error


cdef int refuse(object problem, str what, str path) except -1:
    """Raise what the operating system refused as ours; let anything else pass."""
    if isinstance(problem, OSError):
        error = problem.errno or 0
        raise_status(status_of(error) or STATUS_IO, error, f"{what} cursor file {path}")
    return 0


cdef class CursorStore:
    """Keeps one cursor in `<prefix>.<generation>`; belongs to one AckTracker.

    files: a FileSystem. identity: 16 bytes that tell this cursor from all others, in every folder.
    names: the files there are that begin with the prefix's name and a dot; None: list the folder.
    read_only: for a process that does not own the folder. What the owner has recorded by now is
    copied, and every file left as it is; it can be asked, not changed.
    topic, subscription: the name of the topic and the SubscriptionRecord, which the header of every
    generation that is written says (`subscription_label`).
    """

    def __cinit__(self, files: object, prefix: str, identity: bytes,
                  names: list[str] | None = None, read_only: bool = False, topic: str = "",
                  subscription: object = None) -> None:
        if len(identity) != CURSOR_IDENTITY_SIZE:
            raise ValueError(f"identity must be {CURSOR_IDENTITY_SIZE} bytes, not {len(identity)}")
        self.files = files
        directory, self.name = os.path.split(prefix)
        self.directory = intern(directory)        # that of all cursors of a folder
        self.identity = identity
        self.names = names
        self.read_only = read_only
        self.topic = topic
        self.subscription = subscription
        pthread_mutex_init(&self.c_flush_mutex, NULL)

    def __dealloc__(self) -> None:
        if not self.c_closed:
            self.unmap()
        pthread_mutex_destroy(&self.c_flush_mutex)

    @property
    def damage(self) -> tuple[str, ...]:
        """The damage found in the file, one sentence each."""
        return tuple(self.damage_texts or ())

    @property
    def path(self) -> str:
        return self.path_of(self.generation)

    @property
    def tail_size(self) -> int:
        return self.c_map_size

    cdef str path_of(self, uint64_t generation):
        # Without os.path, whose code a signal handler could interrupt.
        between = "/" if self.directory and not self.directory.endswith("/") else ""
        return f"{self.directory}{between}{self.name}.{generation}"

    cdef int note_damage(self, str text) except -1:
        if self.damage_texts is None:
            self.damage_texts = []
        self.damage_texts.append(text)
        return 0

    cdef list generations(self):
        """Generations on disk, newest first; remembers what else there is."""
        prefix = self.name + "."
        found = []
        names, self.names = self.names, None
        if names is None:
            names = self.files.list(self.directory)
        for name in names:
            if not name.startswith(prefix):
                continue
            if name[len(prefix):].isdecimal():
                found.append(int(name[len(prefix):]))
            elif name[len(prefix):].split(".")[0].isdecimal():
                self.extra(os.path.join(self.directory, name))
        return sorted(found, reverse=True)

    cdef int extra(self, str path) except -1:
        """There may be this file of the cursor, besides its generation."""
        if self.extras is None:
            self.extras = []
        if path not in self.extras:
            self.extras.append(path)
        return 0

    cdef object load(self):
        """Open the newest whole generation and answer its snapshot; None: there is none."""
        cdef list found = self.generations()
        snapshot = None
        damaged = []
        for generation in found:
            if snapshot is not None:
                if not self.read_only:
                    self.discard(self.path_of(generation))
                continue
            snapshot = self.load_generation(generation)
            if snapshot is None:
                damaged.append(generation)
        if self.read_only:
            return snapshot
        for generation in damaged:
            self.keep_damaged(self.path_of(generation))
        if found:
            self.newest = found[0]
        return snapshot

    cdef int keep_damaged(self, str path) except -1:
        try:
            self.files.rename(path, path + ".damaged")
        except FileNotFoundError:
            return 0                       # it was gone when it was to be read
        except OSError as problem:
            refuse(problem, "keep", path)
        self.extra(path + ".damaged")
        return self.note_damage(
            f"It is kept as {path}.damaged; what was acknowledged in it is delivered again.")

    cdef object load_generation(self, uint64_t generation):
        path = self.path_of(generation)
        cdef bytes data
        try:
            data = self.files.read(path)
        except OSError as problem:
            if os.path.exists(path) or not isinstance(problem, FileNotFoundError):
                refuse(problem, "read", path)
            self.note_damage(f"Cursor file {path} is gone.")
            return None
        cdef CursorHeader header
        cdef int status = cursor_header_decode(<const uint8_t*>PyBytes_AS_STRING(data), len(data),
                                               &header)
        if status == STATUS_UNSUPPORTED:
            raise_status(status, 0, f"open cursor file {path}")
        if status == STATUS_OK:
            status = self.check(data, &header, generation)
        if status != STATUS_OK:
            self.note_damage(
                f"Cursor file {path} ({len(data)} bytes) is damaged: {REASONS[status]}.")
            return None
        if <uint64_t>len(data) < header.tail_offset + header.tail_size:
            self.note_damage(
                f"Cursor file {path} ends at {len(data)}, inside its tail:"
                " the last acknowledgements are delivered again.")
        self.map_existing(path, data, &header)
        return data[CURSOR_HEADER_SIZE:CURSOR_HEADER_SIZE + header.snapshot_size]

    cdef int check(self, bytes data, const CursorHeader* header, uint64_t generation):
        cdef const uint8_t* snapshot = <const uint8_t*>PyBytes_AS_STRING(data) + CURSOR_HEADER_SIZE
        if header.identity[:CURSOR_IDENTITY_SIZE] != self.identity:
            return STATUS_FOREIGN
        if header.generation != generation:
            return STATUS_FOREIGN
        if crc32c(0, snapshot, header.snapshot_size) != header.snapshot_checksum:
            return STATUS_CORRUPT
        return STATUS_OK

    cdef int map_existing(self, str path, bytes data, const CursorHeader* header) except -1:
        cdef uint8_t* room = NULL
        cdef int error = 0
        cdef bytes encoded = path_bytes(path)
        cdef const char* c_path = encoded
        if header.tail_size and self.read_only:
            room = self.copied_tail(data, header)
        elif header.tail_size:
            with nogil:
                error = map_tail(c_path, header.tail_offset, header.tail_size, False, &room)
        if error:
            raise_status(status_of(error), error, f"map the tail of cursor file {path}")
        self.take_over(header, room)
        return 0

    cdef uint8_t* copied_tail(self, bytes data, const CursorHeader* header) except NULL:
        """The tail as it was read, in memory of its own; what the file lacks is empty."""
        cdef uint64_t there = <uint64_t>len(data)
        cdef void* room = mmap(NULL, header.tail_size, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        if room == MAP_FAILED:
            raise MemoryError(f"the tail of a cursor file: {header.tail_size} bytes")
        there = there - header.tail_offset if there > header.tail_offset else 0
        memcpy(room, PyBytes_AS_STRING(data) + header.tail_offset, min(there, header.tail_size))
        return <uint8_t*>room

    cdef int take_over(self, const CursorHeader* header, uint8_t* room) except -1:
        """Go on with this generation; whatever was mapped is given back."""
        cdef uint8_t* old_map
        cdef size_t old_size
        with nogil:
            pthread_mutex_lock(&self.c_flush_mutex)
            old_map, old_size = self.c_map, self.c_map_size
            self.c_map = room
            self.c_map_size = header.tail_size
            self.c_poisoned = 0
            pthread_mutex_unlock(&self.c_flush_mutex)
            self.c_header = header[0]
            cursor_tail_start(&self.c_tail, header, <uint64_t*>room,
                              header.tail_size // CURSOR_SLOT_SIZE)
            if old_map != NULL:
                file_unmap(old_map, old_size)
        self.generation = header.generation
        if self.newest < header.generation:
            self.newest = header.generation
        return 0

    cdef int write_generation(self, bytes snapshot, uint64_t base_ledger_id) except -1:
        """Write the next generation and go on with it; durable when it returns. On a full device,
        which acknowledging may be what empties it, from the reserve of the folder.

        After a failure either nothing changed, or (`generation` moved on) the state is kept but its
        name may not survive a power cut; then the older generation stays too and the next call
        tries again.
        """
        try:
            return self.write_once(snapshot, base_ledger_id, False)
        except errors.StorageFullError:
            if self.generation == 0 or not self.files.spend_reserve():
                raise
        try:
            return self.write_once(snapshot, base_ledger_id, True)
        finally:
            self.files.end_spending()

    cdef int write_once(self, bytes snapshot, uint64_t base_ledger_id, bint small) except -1:
        """small: with the least tail."""
        cdef CursorHeader header
        cdef uint8_t* room = NULL
        cdef int error
        cdef uint64_t old = self.generation
        path = self.path_of(self.newest + 1)
        unfinished = path + ".unfinished"
        cdef bytes data = self.encode(snapshot, base_ledger_id, small, &header)
        cdef bytes encoded = path_bytes(unfinished)
        cdef const char* c_path = encoded
        try:
            # A file left by a killed process may be longer, and its end would be our tail.
            self.discard(unfinished)
            self.files.create(unfinished, data, True, False)     # flushed with its tail
            with nogil:
                error = map_tail(c_path, header.tail_offset, header.tail_size, True, &room)
            if error:
                raise_status(status_of(error), error, f"write cursor file {path}")
            self.files.rename(unfinished, path)
        except BaseException as problem:
            if room != NULL:
                file_unmap(room, header.tail_size)
            self.discard(unfinished)
            refuse(problem, "write", path)
            raise
        self.take_over(&header, room)
        try:
            self.files.flush_directory(self.directory)
        except BaseException as problem:
            self.c_poisoned = 1
            if old:
                self.extra(self.path_of(old))
            refuse(problem, "write", path)
            raise
        if old:
            self.discard(self.path_of(old))
        return 0

    cdef bytes encode(self, bytes snapshot, uint64_t base_ledger_id, bint small,
                      CursorHeader* header):
        cdef uint64_t tail_size = TAIL_SIZE_MIN
        cdef uint64_t blocks
        cdef bytearray head = bytearray(CURSOR_HEADER_SIZE)
        cdef uint8_t* room = head
        cdef bytes label = b""
        if self.generation and not small:
            tail_size = self.c_header.tail_size
            if self.c_tail.used >= self.c_tail.capacity:
                tail_size = min(16 * tail_size, <uint64_t>TAIL_SIZE_MAX)
        memset(header, 0, sizeof(CursorHeader))
        memcpy(header.identity, PyBytes_AS_STRING(self.identity), CURSOR_IDENTITY_SIZE)
        header.generation = self.newest + 1
        header.base_ledger_id = base_ledger_id
        header.snapshot_size = len(snapshot)
        header.snapshot_checksum = crc32c(0, <const uint8_t*>PyBytes_AS_STRING(snapshot),
                                          len(snapshot))
        blocks = (header.snapshot_size + CURSOR_BLOCK_SIZE - 1) // CURSOR_BLOCK_SIZE
        header.tail_offset = CURSOR_HEADER_SIZE + blocks * CURSOR_BLOCK_SIZE
        header.tail_size = tail_size
        if self.subscription is not None:
            label = label_bytes(self.topic, self.subscription)
        cursor_header_encode(header, <const uint8_t*>PyBytes_AS_STRING(label), len(label), room)
        return bytes(head) + snapshot + bytes(blocks * CURSOR_BLOCK_SIZE - header.snapshot_size)

    cdef int discard(self, str path) except -1:
        """Unlink what is not needed; the next open does it otherwise, or delete."""
        try:
            self.files.unlink(path)
        except FileNotFoundError:
            pass
        except OSError:
            return self.extra(path)
        if self.extras is not None and path in self.extras:
            self.extras.remove(path)
        return 0

    cdef int flush(self) except -1:
        """Put every record on the device. Any thread, without the subscription's mutex."""
        cdef int error = 0
        cdef uint32_t poisoned
        with nogil:
            pthread_mutex_lock(&self.c_flush_mutex)
            poisoned = self.c_poisoned
            if not poisoned and self.c_map != NULL and not self.read_only:
                error = file_flush_map(self.c_map, self.c_map_size)
            if error:
                self.c_poisoned = 1
            pthread_mutex_unlock(&self.c_flush_mutex)
        if poisoned:
            raise_status(STATUS_POISONED, 0, f"flush cursor file {self.path}")
        if error:
            raise_status(status_of(error), error, f"flush cursor file {self.path}")
        return 0

    cdef void rest(self) noexcept:
        """Leave the pages of the tail to the page cache until they are touched again. What is
        recorded in them stays in the file, flushed or not."""
        if self.c_map != NULL:
            madvise(self.c_map, self.c_map_size, MADV_DONTNEED)

    cdef void unmap(self) noexcept:
        cdef uint8_t* old_map
        with nogil:
            pthread_mutex_lock(&self.c_flush_mutex)
            old_map = self.c_map
            self.c_map = NULL
            pthread_mutex_unlock(&self.c_flush_mutex)
            cursor_tail_end(&self.c_tail)
            if old_map != NULL:
                file_unmap(old_map, self.c_map_size)

    cdef void abandon(self) noexcept:
        """In a forked child: never touch the mapping again. No lock: its holder may be gone."""
        self.c_closed = 1
        cursor_tail_end(&self.c_tail)

    cdef int close(self) except -1:
        if not self.c_closed:
            self.c_closed = 1
            self.unmap()
        return 0

    cdef int delete(self) except -1:
        """Close, and remove every file of this cursor. StorageError: some stay."""
        self.close()
        failure = None
        paths = self.extras or []
        if self.generation:
            paths = [*paths, self.path]
        try:
            for path in paths:
                try:
                    self.files.unlink(path)
                except FileNotFoundError:
                    pass
                except OSError as problem:
                    failure = problem
            if paths:
                self.files.flush_directory(self.directory)
        except OSError as problem:
            failure = problem
        return refuse(failure, "remove", self.path) if failure is not None else 0


def cursor_file_fault(data: bytes, identity: bytes, generation: int) -> str:
    """Why the bytes of a file are not this generation of the cursor of an identity, so that they
    are of no use; "": they are. NewerFormatError."""
    cdef CursorStore store = CursorStore(None, "", identity)
    cdef CursorHeader header
    cdef int status = cursor_header_decode(<const uint8_t*>PyBytes_AS_STRING(data), len(data),
                                           &header)
    if status == STATUS_UNSUPPORTED:
        raise_status(status, 0, f"read generation {generation} of a cursor")
    if status == STATUS_OK:
        status = store.check(data, &header, generation)
    return "" if status == STATUS_OK else REASONS[status]
