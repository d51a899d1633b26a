"""Appends, flushes and seals one ledger file."""

from libc.errno cimport EDQUOT, EFBIG, ENOMEM, ENOSPC
from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset, strlen

from pulsarx._core.atomic cimport *
from pulsarx._core.crc32c cimport crc32c_u64
from pulsarx._core.entry_frame cimport (
    ENTRY_TRANSACTION, EntryFrame, entry_flags_are_plain, entry_frame_count_holds,
    entry_frame_encode, entry_frame_place_holds, entry_frame_span,
)
from pulsarx._core.file_ops cimport *
from pulsarx._core.invariant cimport invariant
from pulsarx._core.ledger_flush cimport *
from pulsarx._core.ledger_footer cimport *
from pulsarx._core.ledger_index cimport *
from pulsarx._core.ledger_name cimport LEDGER_NAME_OFFSET, LEDGER_NAME_RECORD_SIZE
from pulsarx._core.ledger_prepare cimport *
from pulsarx._core.ledger_read cimport LedgerRead, ledger_read_frame
from pulsarx._core.ledger_seal cimport ledger_seal_write
from pulsarx._core.ledger_state cimport *
from pulsarx._core.limits cimport ENTRY_FRAME_SIZE, ENTRY_SIZE_MAX, LEDGER_HEADER_SIZE
from pulsarx._core.published_end cimport PUBLISHED_SEALED
from pulsarx._core.status cimport *
from pulsarx._core.wait_event cimport wait_event_wake

cdef enum:
    PATH_SIZE_MAX = 4096
    ENTRY_SIZE_MIN = 6                # 0x0e01 and the checksum


cdef inline int status_of(int error) noexcept nogil:
    if error == 0:
        return STATUS_OK
    if error == ENOSPC or error == EDQUOT or error == EFBIG:
        return STATUS_NO_SPACE
    return STATUS_NO_MEMORY if error == ENOMEM else STATUS_IO


cdef int parent_flush(const char* path) noexcept nogil:
    cdef char parent[PATH_SIZE_MAX]
    cdef size_t size = strlen(path)
    while size > 0 and path[size - 1] != b"/":
        size -= 1
    if size == 0:
        return file_flush_directory(b".")
    invariant(size < PATH_SIZE_MAX)              # the system opened it
    memcpy(parent, path, size)
    parent[size] = 0
    return file_flush_directory(parent)


cdef int header_write(LedgerAppend* self, const LedgerSettings* settings) noexcept nogil:
    cdef LedgerHeader header
    cdef uint8_t block[LEDGER_HEADER_SIZE]
    cdef int error
    memset(&header, 0, sizeof(header))
    memcpy(header.uuid, settings.uuid, 16)
    memcpy(header.folder_id, settings.folder_id, 16)
    header.created_ms = settings.created_ms
    if settings.publish_on_flush:
        header.flags |= LEDGER_SYNC
    if settings.zero_space:
        header.flags |= LEDGER_ZEROED
    ledger_header_encode(&header, block)
    if settings.name_record != NULL:
        memcpy(block + LEDGER_NAME_OFFSET, settings.name_record, LEDGER_NAME_RECORD_SIZE)
    error = file_write(self.fd, block, LEDGER_HEADER_SIZE, 0)
    # Once a ledger, whatever the durability: a power cut must not take a whole file.
    if error == 0 and settings.path != NULL and not settings.flushed_later:
        error = file_flush(self.fd)
        if error == 0:
            error = parent_flush(settings.path)
    # What a reader will compute is what appends are summed with.
    ledger_header_decode(block, LEDGER_HEADER_SIZE, &header)
    self.seed = header.seed
    return error


cdef void settings_take(LedgerAppend* self, const LedgerSettings* settings) noexcept nogil:
    memset(self, 0, sizeof(LedgerAppend))
    self.fd = -1
    self.memory = settings.path == NULL
    self.entry_count_max = settings.entry_count_max
    self.size_max = settings.size_max
    self.first_index = settings.first_index
    self.publish_on_flush = settings.publish_on_flush
    self.zero_space = settings.zero_space
    self.published = settings.published
    self.topic_event = settings.topic_event


cdef void locks_make(LedgerAppend* self) noexcept nogil:
    ledger_index_init(<LedgerIndex*>self.index)
    pthread_mutex_init(&self.append_mutex, NULL)
    pthread_mutex_init(&self.flush_mutex, NULL)
    self.end = LEDGER_HEADER_SIZE
    self.durable_end = LEDGER_HEADER_SIZE
    self.held_end = UINT64_MAX


cdef int ledger_append_create(LedgerAppend* self, const LedgerSettings* settings) noexcept nogil:
    cdef int error
    settings_take(self, settings)
    if self.memory:
        error = file_open_memory(&self.fd)
    else:
        error = file_open(settings.path, FILE_WRITE | FILE_CREATE | FILE_EXCLUSIVE, &self.fd)
    if error:
        ledger_note_error(self, error)
        return status_of(error)
    self.index = malloc(sizeof(LedgerIndex))
    error = ENOMEM if self.index == NULL else ledger_prepare_start(self)
    if error == 0:
        error = header_write(self, settings)
    if error:
        file_close(self.fd)
        if not self.memory:
            file_unlink(settings.path)
        free(self.index)
        self.index = NULL
        ledger_prepare_free(self)
        self.fd = -1
        self.state = LEDGER_CLOSED
        ledger_note_error(self, error)
        return status_of(error)
    locks_make(self)
    atomic_store_u32(&self.state, LEDGER_OPEN)
    ledger_publish(self, self.end, 0, 0)
    return STATUS_OK


cdef int entries_note(LedgerAppend* self, const uint8_t* base, uint64_t end) noexcept nogil:
    """Count and index the entries that a file has already."""
    cdef LedgerHeader header
    cdef LedgerRead read
    cdef EntryFrame frame
    cdef int status = ledger_header_decode(base, end, &header)
    if status != STATUS_OK:
        return status
    self.seed = header.seed
    memset(&read, 0, sizeof(read))
    read.base = base
    read.mapped_size = end
    read.seed = self.seed
    while self.end < end:
        status = ledger_read_frame(&read, self.end, end, &frame)
        if status != STATUS_OK:
            return status
        if frame.entry_id != self.entry_count or frame.first_message != self.message_count:
            return STATUS_CORRUPT
        append_note(self, &frame, base + self.end, self.end,
                    self.end + entry_frame_span(frame.entry_size))
    return STATUS_OK if self.end == end else STATUS_CORRUPT


cdef int ledger_append_reopen(LedgerAppend* self, const LedgerSettings* settings,
                              const uint8_t* base, uint64_t end) noexcept nogil:
    cdef int status
    cdef int error
    settings_take(self, settings)
    error = file_open(settings.path, FILE_WRITE, &self.fd)
    if error:
        ledger_note_error(self, error)
        return status_of(error)
    self.index = malloc(sizeof(LedgerIndex))
    if self.index == NULL or ledger_prepare_nothing(self):
        file_close(self.fd)
        free(self.index)
        self.index = NULL
        self.fd = -1
        self.state = LEDGER_CLOSED
        return STATUS_NO_MEMORY
    locks_make(self)
    self.held_end = LEDGER_HEADER_SIZE
    ledger_publish(self, LEDGER_HEADER_SIZE, 0, 0)
    status = entries_note(self, base, end)
    atomic_store_u32(&self.state, LEDGER_FENCED if status == STATUS_OK else LEDGER_CLOSED)
    if status != STATUS_OK:
        file_close(self.fd)
        self.fd = -1
        ledger_append_free(self)
    return status


cdef int append_refusal(LedgerAppend* self) noexcept nogil:
    cdef uint32_t state = atomic_load_u32(&self.state)
    if state == LEDGER_FENCED:
        return STATUS_IO
    if state == LEDGER_POISONED:
        return STATUS_POISONED
    return STATUS_CLOSED


cdef int append_room(LedgerAppend* self, uint64_t span) noexcept nogil:
    """Is there room, by the limits and on the device? Called with append_mutex held."""
    cdef uint64_t end = self.end + span
    cdef int error
    if self.entry_count > 0 and (self.entry_count >= self.entry_count_max or end > self.size_max):
        return STATUS_LEDGER_FULL
    if end <= atomic_load_u64(&self.prepared_end):
        return STATUS_OK
    if end > self.size_max + LEDGER_OVERSHOOT_MAX:
        return STATUS_TOO_LARGE
    error = ledger_prepare_room(self, end)
    if error:
        ledger_note_error(self, error)
    return status_of(error)


cdef void hold_set(LedgerAppend* self, uint64_t end, uint64_t entry_count,
                   uint64_t message_count) noexcept nogil:
    self.held_entries = entry_count
    self.held_messages = message_count
    atomic_store_u64(&self.held_end, end)


cdef void append_note(LedgerAppend* self, const EntryFrame* frame, const uint8_t* room,
                      uint64_t offset,
                      uint64_t end) noexcept nogil:
    """The entry is written: count it, index it, publish it."""
    cdef uint32_t frame_checksum = 0
    cdef uint32_t entry_checksum = 0
    cdef uint64_t message_count = self.message_count + frame.message_count
    cdef uint64_t entry_count = self.entry_count + 1
    memcpy(&frame_checksum, room + 4, 4)
    memcpy(&entry_checksum, room + ENTRY_FRAME_SIZE + 2, 4)
    self.digest = crc32c_u64(self.digest, frame_checksum | (<uint64_t>entry_checksum << 32))
    self.entry_flags |= frame.flags
    ledger_index_note(<LedgerIndex*>self.index, offset, frame.entry_id, frame.first_message,
                      frame.publish_time_ms)
    if entry_count == 1:
        self.first_publish_ms = frame.publish_time_ms
        self.last_publish_ms = frame.publish_time_ms
    elif frame.publish_time_ms > self.last_publish_ms:
        self.last_publish_ms = frame.publish_time_ms
    elif frame.publish_time_ms < self.first_publish_ms:
        self.first_publish_ms = frame.publish_time_ms
    if frame.flags & ENTRY_TRANSACTION and self.held_end > offset:
        hold_set(self, offset, frame.entry_id, frame.first_message)
    atomic_store_u64(&self.message_count, message_count)
    atomic_store_u64(&self.entry_count, entry_count)
    atomic_store_u64(&self.end, end)
    if not self.publish_on_flush:
        ledger_publish(self, end, entry_count, message_count)


cdef int append_locked(LedgerAppend* self, EntryFrame* frame, uint8_t* room, uint64_t span,
                       uint64_t* offset) noexcept nogil:
    cdef uint64_t at = self.end
    cdef int error
    cdef int status
    if atomic_load_u32(&self.state) != LEDGER_OPEN:
        return append_refusal(self)
    status = append_room(self, span)
    if status != STATUS_OK:
        return status
    frame.entry_id = self.entry_count
    frame.first_message = self.message_count
    frame.first_index = self.first_index
    frame.durable_count = atomic_load_u64(&self.durable_count)
    if not entry_frame_place_holds(frame):
        return STATUS_LEDGER_FULL
    entry_frame_encode(frame, self.seed, at, room)
    error = file_write(self.fd, room, span, at)
    if error:
        # It may lie there whole all the same, and is refused: recovery is not to find it.
        memset(room, 0, ENTRY_FRAME_SIZE)
        file_write(self.fd, room, ENTRY_FRAME_SIZE, at)
        ledger_note_error(self, error)
        atomic_swap_if_u32(&self.state, LEDGER_OPEN, LEDGER_FENCED)
        return status_of(error)
    append_note(self, frame, room, at, at + span)
    offset[0] = at
    return STATUS_OK


cdef int ledger_append_entry(LedgerAppend* self, EntryFrame* frame, uint8_t* entry,
                             uint64_t* offset) noexcept nogil:
    cdef int status = ledger_append_quietly(self, frame, entry, offset)
    if status == STATUS_OK and not self.publish_on_flush:
        ledger_publish_wake(self)
    return status


cdef int ledger_append_quietly(LedgerAppend* self, EntryFrame* frame, uint8_t* entry,
                               uint64_t* offset) noexcept nogil:
    cdef uint64_t span = entry_frame_span(frame.entry_size)
    cdef int status
    cdef bint due = False
    if frame.entry_size > ENTRY_SIZE_MAX:
        return STATUS_TOO_LARGE
    if frame.message_count == 0 or frame.entry_size < ENTRY_SIZE_MIN:
        return STATUS_OUT_OF_RANGE
    if entry[0] != 0x0E or entry[1] != 0x01 or not entry_frame_count_holds(frame):
        return STATUS_OUT_OF_RANGE
    # Looked at before the lock too: in a forked child the mutex may be locked for ever, and the
    # state is CLOSED.
    if atomic_load_u32(&self.state) != LEDGER_OPEN:
        return append_refusal(self)
    memset(entry + frame.entry_size, 0, 8)
    pthread_mutex_lock(&self.append_mutex)
    status = append_locked(self, frame, entry - ENTRY_FRAME_SIZE, span, offset)
    due = status == STATUS_OK and ledger_prepare_due(self, self.end)
    if due:
        ledger_prepare_ask(self)
    pthread_mutex_unlock(&self.append_mutex)
    return status


cdef int group_locked(LedgerAppend* self, EntryFrame* frames, uint32_t count, uint8_t* room,
                      uint64_t size, uint64_t* offset) noexcept nogil:
    cdef uint8_t nothing[ENTRY_FRAME_SIZE]
    cdef uint64_t begin = self.end
    cdef uint64_t at = 0
    cdef uint64_t message_count = self.message_count
    cdef uint32_t number
    cdef EntryFrame* frame
    cdef bint may_lie_there = False
    cdef int error
    if atomic_load_u32(&self.state) != LEDGER_OPEN:
        return append_refusal(self)
    if self.entry_count + count > self.entry_count_max or begin + size > self.size_max or (
            begin + size > atomic_load_u64(&self.prepared_end)):
        return STATUS_LEDGER_FULL
    for number in range(count):
        frame = &frames[number]
        frame.entry_id = self.entry_count + number
        frame.first_message = message_count
        frame.first_index = self.first_index
        frame.durable_count = atomic_load_u64(&self.durable_count)
        if not entry_frame_place_holds(frame):
            return STATUS_LEDGER_FULL
        entry_frame_encode(frame, self.seed, begin + at, room + at)
        message_count += frame.message_count
        at += entry_frame_span(frame.entry_size)
    error = file_write(self.fd, room, size, begin)
    at = 0
    if error:
        # See append_locked.
        memset(nothing, 0, ENTRY_FRAME_SIZE)
        for number in range(count):
            if file_write(self.fd, nothing, ENTRY_FRAME_SIZE, begin + at):
                may_lie_there = True
            at += entry_frame_span(frames[number].entry_size)
        ledger_note_error(self, error)
        atomic_swap_if_u32(&self.state, LEDGER_OPEN, LEDGER_FENCED)
        return STATUS_TORN if may_lie_there else status_of(error)
    for number in range(count):
        offset[0] = begin + at
        at += entry_frame_span(frames[number].entry_size)
        append_note(self, &frames[number], room + (offset[0] - begin), offset[0], begin + at)
    return STATUS_OK


cdef int ledger_append_group(LedgerAppend* self, EntryFrame* frames, uint32_t count, uint8_t* room,
                             uint64_t size, uint64_t* offset) noexcept nogil:
    cdef uint64_t at = 0
    cdef uint32_t number
    cdef const uint8_t* entry
    cdef int status
    for number in range(count):
        entry = room + at + ENTRY_FRAME_SIZE
        if frames[number].message_count == 0 or frames[number].entry_size < ENTRY_SIZE_MIN:
            return STATUS_OUT_OF_RANGE
        if entry[0] != 0x0E or entry[1] != 0x01 or not entry_frame_count_holds(&frames[number]):
            return STATUS_OUT_OF_RANGE
        at += entry_frame_span(frames[number].entry_size)
    invariant(at == size)
    if atomic_load_u32(&self.state) != LEDGER_OPEN:      # see ledger_append_quietly
        return append_refusal(self)
    pthread_mutex_lock(&self.append_mutex)
    status = group_locked(self, frames, count, room, size, offset)
    if status == STATUS_OK and ledger_prepare_due(self, self.end):
        ledger_prepare_ask(self)
    pthread_mutex_unlock(&self.append_mutex)
    if status == STATUS_OK and not self.publish_on_flush:
        ledger_publish_wake(self)
    return status


cdef void ledger_append_tell_others(LedgerAppend* self) noexcept nogil:
    if not self.publish_on_flush:
        wait_event_wake(&self.published.event)


cdef int ledger_append_prepare(LedgerAppend* self, uint64_t size) noexcept nogil:
    cdef int error = 0
    cdef int status = STATUS_OK
    if atomic_load_u32(&self.state) != LEDGER_OPEN:
        return append_refusal(self)
    pthread_mutex_lock(&self.append_mutex)
    if atomic_load_u32(&self.state) != LEDGER_OPEN:
        status = append_refusal(self)
    else:
        error = ledger_prepare_room(self, self.end + size)
        if error:
            ledger_note_error(self, error)
        status = status_of(error)
    pthread_mutex_unlock(&self.append_mutex)
    return status


cdef void ledger_append_fence(LedgerAppend* self) noexcept nogil:
    pthread_mutex_lock(&self.append_mutex)
    atomic_swap_if_u32(&self.state, LEDGER_OPEN, LEDGER_FENCED)
    pthread_mutex_unlock(&self.append_mutex)


cdef void ledger_append_follow(LedgerAppend* self, LedgerAppend* full) noexcept nogil:
    invariant(self.entry_count == 0 and atomic_load_u32(&full.state) != LEDGER_OPEN)
    self.before = full
    # Nothing is added to the full one any more.
    self.first_index = full.first_index + full.message_count


cdef void ledger_append_forget(LedgerAppend* self) noexcept nogil:
    ledger_flush_turn(self)
    self.before = NULL
    ledger_flush_end(self, 0, 0, FLUSH_NOTHING, 0)


cdef void ledger_append_end(LedgerAppend* self) noexcept nogil:
    cdef bint ended
    pthread_mutex_lock(&self.flush_mutex)
    self.followed = 1
    ended = ledger_flush_ended(self)
    pthread_mutex_unlock(&self.flush_mutex)
    if ended:
        ledger_publish_wake(self)


cdef bint ledger_append_is_final(LedgerAppend* self) noexcept nogil:
    cdef uint32_t state = atomic_load_u32(&self.state)
    if state == LEDGER_POISONED or state == LEDGER_CLOSED:
        return True
    return atomic_load_u64(&self.visible_end) == atomic_load_u64(&self.end)


cdef void ledger_append_hold_all(LedgerAppend* self) noexcept nogil:
    hold_set(self, LEDGER_HEADER_SIZE, 0, 0)


cdef void ledger_append_switch(LedgerHold* holds, uint64_t count,
                               uint64_t* switching) noexcept nogil:
    cdef LedgerAppend* ledger
    cdef uint64_t at
    for at in range(count):
        pthread_mutex_lock(&holds[at].ledger.append_mutex)
        pthread_mutex_lock(&holds[at].ledger.flush_mutex)
    atomic_store_u64(switching, atomic_load_u64(switching) + 1)
    for at in range(count):
        ledger = holds[at].ledger
        hold_set(ledger, holds[at].end, holds[at].entry_count, holds[at].message_count)
        if atomic_load_u32(&ledger.state) == LEDGER_CLOSED:
            continue                     # its slot may be another ledger's
        if ledger.publish_on_flush:
            ledger_publish(ledger, ledger.durable_end, ledger.durable_count,
                           ledger.durable_messages)
        else:
            ledger_publish(ledger, ledger.end, ledger.entry_count, ledger.message_count)
        ledger_flush_ended(ledger)
    atomic_store_u64(switching, atomic_load_u64(switching) + 1)
    for at in range(count):
        pthread_mutex_unlock(&holds[at].ledger.flush_mutex)
        pthread_mutex_unlock(&holds[at].ledger.append_mutex)
    for at in range(count):
        ledger_publish_wake(holds[at].ledger)


cdef int flush_before(LedgerAppend* self, int64_t sleep_ns) noexcept nogil:
    """Make all of the ledger in front durable. Called with the turn, so that it stays where it
    is."""
    cdef int status
    if self.before == NULL:
        return STATUS_OK
    status = ledger_append_flush(self.before, atomic_load_u64(&self.before.entry_count), sleep_ns)
    if status == STATUS_OK:
        self.before = NULL
    return status


cdef int ledger_append_flush(LedgerAppend* self, uint64_t entry_count,
                             int64_t sleep_ns) noexcept nogil:
    cdef uint64_t end, written_count, message_count
    cdef int error
    cdef int status = ledger_flush_begin(self, entry_count, sleep_ns)
    if status == STATUS_DUPLICATE:
        return STATUS_OK
    if status != STATUS_OK:
        return status
    status = flush_before(self, sleep_ns)
    if status != STATUS_OK:
        error = ledger_error(self.before) if status == STATUS_POISONED else 0
        ledger_flush_end(self, error, 0, FLUSH_NOTHING, 0)
        return status
    pthread_mutex_lock(&self.append_mutex)
    end = self.end
    written_count = self.entry_count
    message_count = self.message_count
    pthread_mutex_unlock(&self.append_mutex)
    error = file_flush(self.fd)
    ledger_flush_end(self, error, end, written_count, message_count)
    return STATUS_POISONED if error else STATUS_OK


cdef int seal_begin(LedgerAppend* self, uint32_t* state) noexcept nogil:
    cdef int status = STATUS_OK
    if atomic_load_u32(&self.state) == LEDGER_CLOSED:
        return STATUS_CLOSED
    pthread_mutex_lock(&self.append_mutex)
    state[0] = atomic_load_u32(&self.state)
    if state[0] == LEDGER_POISONED:
        status = STATUS_POISONED
    elif state[0] != LEDGER_OPEN and state[0] != LEDGER_FENCED:
        status = STATUS_CLOSED
    elif not atomic_swap_if_u32(&self.state, state[0], LEDGER_SEALING):
        status = STATUS_POISONED
    pthread_mutex_unlock(&self.append_mutex)
    return status


cdef int ledger_append_seal(LedgerAppend* self, bint flush, LedgerFooter* footer) noexcept nogil:
    cdef WaitEvent* event
    cdef uint32_t before = 0
    cdef int error = 0
    cdef int status = seal_begin(self, &before)
    if status != STATUS_OK:
        return status
    ledger_prepare_stop(self)
    ledger_flush_turn(self)
    if atomic_load_u32(&self.state) != LEDGER_SEALING:
        ledger_flush_end(self, 0, 0, FLUSH_NOTHING, 0)
        return append_refusal(self)
    memset(footer, 0, sizeof(LedgerFooter))
    footer.end = self.end
    footer.entry_count = self.entry_count
    footer.message_count = self.message_count
    footer.first_publish_ms = self.first_publish_ms
    footer.last_publish_ms = self.last_publish_ms
    footer.digest = self.digest
    footer.flags = LEDGER_PLAIN if entry_flags_are_plain(self.entry_flags) else 0
    status = flush_before(self, -1) if flush else STATUS_OK
    if status == STATUS_POISONED:
        error = ledger_error(self.before)
    elif status == STATUS_OK:
        status = ledger_seal_write(self.fd, self.seed, <LedgerIndex*>self.index, NULL, footer,
                                   flush, &error)
    if status == STATUS_OK:
        ledger_flush_end(self, 0, self.end, self.entry_count, self.message_count)
        atomic_swap_if_u32(&self.state, LEDGER_SEALING, LEDGER_SEALED)
        atomic_store_u64(&self.published.state, PUBLISHED_SEALED)
        wait_event_wake(&self.published.event)
        event = <WaitEvent*>atomic_load_u64(<const uint64_t*>&self.topic_event)
        if event != NULL:
            wait_event_wake(event)
        return STATUS_OK
    ledger_note_error(self, error)
    if status == STATUS_POISONED:
        ledger_flush_end(self, error, 0, FLUSH_NOTHING, 0)
        return status
    atomic_store_u32(&(<LedgerPreparer*>self.preparer).stopping, 0)
    atomic_swap_if_u32(&self.state, LEDGER_SEALING,
                       before if status == STATUS_NO_SPACE else <uint32_t>LEDGER_FENCED)
    ledger_flush_end(self, 0, 0, FLUSH_NOTHING, 0)
    return status


cdef void ledger_append_close(LedgerAppend* self) noexcept nogil:
    cdef int fd
    if atomic_load_u32(&self.state) == LEDGER_CLOSED or self.fd < 0:
        return
    ledger_prepare_stop(self)
    ledger_flush_turn(self)
    pthread_mutex_lock(&self.append_mutex)
    atomic_store_u32(&self.state, LEDGER_CLOSED)
    fd = self.fd
    self.fd = -1
    pthread_mutex_unlock(&self.append_mutex)
    ledger_flush_end(self, 0, 0, FLUSH_NOTHING, 0)
    if fd >= 0:
        file_close(fd)


cdef void ledger_append_free(LedgerAppend* self) noexcept nogil:
    invariant(atomic_load_u32(&self.state) == LEDGER_CLOSED)
    if self.preparer == NULL:
        return
    if self.index != NULL:
        ledger_index_free(<LedgerIndex*>self.index)
        free(self.index)
        self.index = NULL
    ledger_prepare_free(self)
    pthread_mutex_destroy(&self.append_mutex)
    pthread_mutex_destroy(&self.flush_mutex)
