"""Threads that meet in the core without the interpreter's lock, for the thread sanitizer and for
what they assert themselves; and races that are planted, which it must find.

Each method of a scene is the body of one thread: all begin at a barrier, and nothing but what is
tested orders them.
"""

from libc.stdint cimport UINT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from pulsarx._core.atomic cimport *
from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.entry_frame cimport ENTRY_TRANSACTION, EntryFrame
from pulsarx._core.file_faults cimport *
from pulsarx._core.file_ops cimport *
from pulsarx._core.ledger_append cimport *
from pulsarx._core.ledger_footer cimport LedgerFooter
from pulsarx._core.ledger_read cimport LedgerRead, ledger_read_entry
from pulsarx._core.ledger_state cimport *
from pulsarx._core.limits cimport LEDGER_HEADER_SIZE
from pulsarx._core.published_end cimport *
from pulsarx._core.status cimport *
from pulsarx._core.wait_event cimport *

cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_barrier_t:
        pass
    int pthread_barrier_init(pthread_barrier_t* barrier, const void* attributes, unsigned count)
    int pthread_barrier_wait(pthread_barrier_t* barrier)
    int pthread_barrier_destroy(pthread_barrier_t* barrier)

cdef enum:
    ENTRY_SIZE = 900
    MESSAGES = 3                         # of each entry
    SIZE_MAX = 1 << 26


cdef class Start:
    """Where the threads of a scene wait for each other."""

    cdef pthread_barrier_t barrier

    def __cinit__(self, int threads):
        pthread_barrier_init(&self.barrier, NULL, <unsigned>threads)

    def __dealloc__(self):
        pthread_barrier_destroy(&self.barrier)


cdef int entry_append(LedgerAppend* ledger, uint64_t* entry_id,
                      uint32_t flags=0) noexcept nogil:
    cdef EntryFrame frame
    cdef uint8_t room[64 + ENTRY_SIZE + 8]
    cdef uint64_t offset = 0
    cdef uint32_t checksum
    cdef int status
    memset(room + 64, 7, ENTRY_SIZE)
    room[64] = 0x0E
    room[65] = 0x01
    checksum = crc32c(0, room + 70, ENTRY_SIZE - 6)
    room[66] = checksum >> 24
    room[67] = checksum >> 16
    room[68] = checksum >> 8
    room[69] = checksum
    memset(&frame, 0, sizeof(frame))
    frame.entry_size = ENTRY_SIZE
    frame.message_count = MESSAGES
    frame.publish_time_ms = 5
    frame.flags = flags
    status = ledger_append_entry(ledger, &frame, room + 64, &offset)
    entry_id[0] = frame.entry_id
    return status


cdef class GrowingLedgers:
    """Two ledgers of one topic: the second is prepared behind the first, as a managed ledger has
    them."""

    cdef LedgerAppend ledgers[2]
    cdef PublishedEnd slots[2]
    cdef WaitEvent event
    cdef pthread_mutex_t switching
    cdef uint32_t switched               # atomic: the second takes the entries
    cdef uint32_t closed                 # atomic
    cdef Start start

    def __cinit__(self, int threads, int entries, bint durable):
        cdef LedgerSettings settings
        cdef int at
        self.start = Start(threads)
        pthread_mutex_init(&self.switching, NULL)
        memset(self.slots, 0, sizeof(self.slots))
        memset(&self.event, 0, sizeof(self.event))
        for at in range(2):
            memset(&settings, 0, sizeof(settings))
            settings.path = NULL
            settings.uuid[3] = at + 1
            settings.entry_count_max = entries if at == 0 else 1000000
            settings.size_max = SIZE_MAX
            settings.publish_on_flush = settings.zero_space = durable
            settings.published = &self.slots[at]
            settings.topic_event = &self.event
            self.slots[at].ledger_id = at + 1
            atomic_store_u64(&self.slots[at].state, PUBLISHED_OPEN)
            assert ledger_append_create(&self.ledgers[at], &settings) == STATUS_OK

    def __dealloc__(self):
        cdef int at
        for at in range(2):
            ledger_append_close(&self.ledgers[at])
            ledger_append_free(&self.ledgers[at])

    cdef LedgerAppend* current(self) noexcept nogil:
        return &self.ledgers[1 if atomic_load_u32(&self.switched) else 0]

    cdef void roll_over(self) noexcept nogil:
        """LedgerTail.use_prepared."""
        pthread_mutex_lock(&self.switching)
        if not self.switched:
            ledger_append_fence(&self.ledgers[0])
            ledger_append_follow(&self.ledgers[1], &self.ledgers[0])
            atomic_store_u32(&self.switched, 1)
            ledger_append_end(&self.ledgers[0])
            wait_event_wake(&self.event)
        pthread_mutex_unlock(&self.switching)

    def publish(self, int count, bint flushes):
        """Append so many entries; on to the second ledger when the first is full. The number of
        those that were stored before a ledger was closed, or a flush has failed."""
        cdef LedgerAppend* ledger
        cdef uint64_t entry_id = 0
        cdef int status = STATUS_OK
        cdef int stored = 0
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            while stored < count:
                ledger = self.current()
                status = entry_append(ledger, &entry_id)
                if status != STATUS_OK:
                    if ledger == &self.ledgers[1] or status == STATUS_POISONED:
                        break
                    self.roll_over()
                    continue
                if flushes and ledger_append_flush(ledger, entry_id + 1, -1) != STATUS_OK:
                    break
                stored += 1
        return stored

    def flush(self, int count):
        """Flush what there is, again and again; whether none has failed."""
        cdef LedgerAppend* ledger
        cdef int turn
        cdef int status = STATUS_OK
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            for turn in range(count):
                ledger = self.current()
                status = ledger_append_flush(ledger, atomic_load_u64(&ledger.entry_count), -1)
                if status != STATUS_OK:
                    break
        return status == STATUS_OK

    def settle(self):
        """Wait for the switch, then seal what is full, as the lane of a managed ledger does."""
        cdef LedgerFooter footer
        cdef uint32_t seen
        cdef int status
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            while not atomic_load_u32(&self.switched):
                seen = wait_event_enter(&self.event)
                if not atomic_load_u32(&self.switched):
                    wait_event_sleep(&self.event, seen, -1)
                wait_event_leave(&self.event)
            status = ledger_append_seal(&self.ledgers[0], True, &footer)
            ledger_append_forget(&self.ledgers[1])
        return status == STATUS_OK

    def close(self, int entries):
        """Close the first ledger when so many entries are in it, while all others go on."""
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            while atomic_load_u64(&self.ledgers[0].entry_count) < <uint64_t>entries:
                pass
            ledger_append_close(&self.ledgers[0])
            atomic_store_u32(&self.closed, 1)
            wait_event_wake(&self.event)

    def read(self, int at, int entries):
        """Read entries of a ledger as they are published, asleep while there are none; how many
        there were."""
        cdef LedgerAppend* ledger = &self.ledgers[at]
        cdef LedgerRead reader
        cdef EntryFrame frame
        cdef const uint8_t* entry = NULL
        cdef uint8_t* base = NULL
        cdef uint64_t offset = LEDGER_HEADER_SIZE
        cdef uint64_t count = 0
        cdef uint64_t end
        cdef uint32_t seen
        assert file_map(ledger.fd, 0, SIZE_MAX, False, &base) == 0
        memset(&reader, 0, sizeof(reader))
        reader.base = base
        reader.mapped_size = SIZE_MAX
        reader.seed = ledger.seed
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            while count < <uint64_t>entries and not atomic_load_u32(&self.closed):
                end = atomic_load_u64(&self.slots[at].end)
                while ledger_read_entry(&reader, offset, end, &frame, &entry,
                                        &offset) == STATUS_OK:
                    if frame.entry_id != count:
                        break
                    count += 1
                if offset != end:
                    break                # a damaged one
                seen = wait_event_enter(&self.event)
                if atomic_load_u64(&self.slots[at].end) == end and (
                        count < <uint64_t>entries and not atomic_load_u32(&self.closed)):
                    wait_event_sleep(&self.event, seen, -1)
                wait_event_leave(&self.event)
        file_unmap(base, SIZE_MAX)
        return count

    def look(self, int at, int entries):
        """See a slot as another process does, asleep on it; whether what is counted could always
        be read."""
        cdef PublishedEnd* slot = &self.slots[at]
        cdef uint64_t found = 0
        cdef uint64_t end = 0
        cdef uint32_t seen
        cdef bint holds = True
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            while found < <uint64_t>entries and holds and not atomic_load_u32(&self.closed):
                seen = wait_event_enter(&slot.event)
                if atomic_load_u64(&slot.entry_count) == found and (
                        atomic_load_u64(&slot.state) == PUBLISHED_OPEN):
                    wait_event_sleep(&slot.event, seen, -1)
                wait_event_leave(&slot.event)
                found = atomic_load_u64(&slot.entry_count)
                end = atomic_load_u64(&slot.end)
                holds = end >= LEDGER_HEADER_SIZE + found * (64 + ENTRY_SIZE)
        return bool(holds)

    def wake_all(self):
        """The readers of a ledger that failed or was closed look once more."""
        atomic_store_u32(&self.closed, 1)
        wait_event_wake(&self.event)
        wait_event_wake(&self.slots[0].event)
        wait_event_wake(&self.slots[1].event)

    @property
    def is_over(self):
        return bool(atomic_load_u32(&self.closed))


def fail_calls(int flush, int write):
    """The flush and the write of these numbers fail, counted from now on; 0: none."""
    file_faults_install()
    if flush:
        file_faults_add(FILE_OP_FLUSH, FAULT_ERROR, flush, False, 5)
    if write:
        file_faults_add(FILE_OP_WRITE, FAULT_ERROR, write, False, 28)


def fail_no_more():
    file_faults_remove()


cdef class Takers:
    """Threads that take what others put, asleep on one event or on two."""

    cdef WaitEvent events[2]
    cdef uint32_t put_count              # atomic
    cdef uint32_t taken                  # atomic
    cdef uint32_t values[4096]           # published by put_count
    cdef uint64_t sum                    # of what was taken; guarded by the mutex
    cdef pthread_mutex_t mutex
    cdef Start start

    def __cinit__(self, int threads):
        self.start = Start(threads)
        pthread_mutex_init(&self.mutex, NULL)

    def put(self, int count, bint one):
        """One thread puts; it wakes one of those that sleep, or all."""
        cdef int at
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            for at in range(count):
                self.values[at] = at
                atomic_store_u32(&self.put_count, at + 1)
                if one:
                    wait_event_wake_one(&self.events[0])
                else:
                    wait_event_wake(&self.events[at % 2])
            wait_event_wake(&self.events[0])
            wait_event_wake(&self.events[1])

    def take(self, int count, bint one):
        cdef WaitEvent* all[2]
        cdef uint32_t seen[2]
        cdef uint32_t at
        all[0] = &self.events[0]
        all[1] = &self.events[1]
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            while True:
                at = atomic_load_u32(&self.taken)
                if at == <uint32_t>count:
                    break
                if at < atomic_load_u32(&self.put_count):
                    if atomic_swap_if_u32(&self.taken, at, at + 1):
                        pthread_mutex_lock(&self.mutex)
                        self.sum += self.values[at]
                        pthread_mutex_unlock(&self.mutex)
                    continue
                seen[0] = wait_event_enter(all[0])
                seen[1] = wait_event_enter(all[1])
                if atomic_load_u32(&self.put_count) == at and (
                        atomic_load_u32(&self.taken) == at):
                    if one:
                        wait_event_sleep(all[0], seen[0], -1)
                    else:
                        wait_events_sleep(all, seen, 2, -1)
                wait_event_leave(all[0])
                wait_event_leave(all[1])
            wait_event_wake(all[0])

    @property
    def total(self):
        return self.sum


cdef class SwitchedLedgers:
    """One open ledger of each of two topics, in which transactions write to both and others to one;
    what ends them shows both at one moment."""

    cdef LedgerAppend ledgers[2]
    cdef PublishedEnd slots[2]
    cdef WaitEvent events[2]
    cdef uint64_t switching
    cdef uint32_t over                   # atomic: no transaction comes any more
    cdef Start start

    def __cinit__(self, int threads, bint durable):
        cdef LedgerSettings settings
        cdef int at
        self.start = Start(threads)
        memset(self.slots, 0, sizeof(self.slots))
        memset(self.events, 0, sizeof(self.events))
        for at in range(2):
            memset(&settings, 0, sizeof(settings))
            settings.path = NULL
            settings.uuid[3] = at + 1
            settings.entry_count_max = 1000000
            settings.size_max = SIZE_MAX
            settings.publish_on_flush = settings.zero_space = durable
            settings.published = &self.slots[at]
            settings.topic_event = &self.events[at]
            self.slots[at].ledger_id = at + 1
            atomic_store_u64(&self.slots[at].state, PUBLISHED_OPEN)
            assert ledger_append_create(&self.ledgers[at], &settings) == STATUS_OK

    def __dealloc__(self):
        cdef int at
        for at in range(2):
            ledger_append_close(&self.ledgers[at])
            ledger_append_free(&self.ledgers[at])

    def transact(self, int count):
        """So many transactions, one after the other; how many entries could be stored."""
        cdef LedgerHold holds[2]
        cdef uint64_t entry_id = 0
        cdef int turn, at
        cdef int stored = 0
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            for turn in range(count):
                for at in range(2):
                    stored += entry_append(&self.ledgers[at], &entry_id,
                                           ENTRY_TRANSACTION) == STATUS_OK
                    ledger_append_flush(&self.ledgers[at], entry_id + 1, -1)
                    holds[at].ledger = &self.ledgers[at]
                    holds[at].end = UINT64_MAX
                    holds[at].entry_count = holds[at].message_count = 0
                ledger_append_switch(holds, 2, &self.switching)
            atomic_store_u32(&self.over, 1)
        return stored

    def publish(self, int at, bint flushes):
        """Others, while there are transactions; whether nothing was refused."""
        cdef uint64_t entry_id = 0
        cdef int status = STATUS_OK
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            while status == STATUS_OK and not atomic_load_u32(&self.over) and entry_id < 20000:
                status = entry_append(&self.ledgers[at], &entry_id)
                if flushes and status == STATUS_OK:
                    status = ledger_append_flush(&self.ledgers[at], entry_id + 1, -1)
        return status == STATUS_OK

    def read(self, int at, int count):
        """Read a topic, asleep while there is nothing new, until so many entries of transactions
        have come."""
        cdef LedgerRead reader
        cdef uint64_t offset = LEDGER_HEADER_SIZE
        cdef uint64_t found = 0
        cdef uint64_t end
        cdef uint32_t seen
        cdef uint8_t* base = self.mapped(at, &reader)
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            while found < <uint64_t>count:
                end = atomic_load_u64(&self.slots[at].end)
                found += transacted(&reader, &offset, end)
                seen = wait_event_enter(&self.events[at])
                if atomic_load_u64(&self.slots[at].end) == end and found < <uint64_t>count:
                    wait_event_sleep(&self.events[at], seen, -1)
                wait_event_leave(&self.events[at])
        file_unmap(base, SIZE_MAX)
        return found

    def compare(self, int count):
        """Look at both at one moment, until so many transactions were seen; the looks that saw one
        in one topic alone."""
        cdef LedgerRead readers[2]
        cdef uint64_t offsets[2]
        cdef uint64_t ends[2]
        cdef uint64_t found[2]
        cdef uint64_t seen
        cdef int at
        cdef int wrong = 0
        cdef uint8_t* first = self.mapped(0, &readers[0])
        cdef uint8_t* second = self.mapped(1, &readers[1])
        with nogil:
            for at in range(2):
                offsets[at] = LEDGER_HEADER_SIZE
                found[at] = 0
            pthread_barrier_wait(&self.start.barrier)
            while found[0] < <uint64_t>count:
                seen = atomic_load_u64(&self.switching)
                for at in range(2):
                    ends[at] = atomic_load_u64(&self.slots[at].end)
                if seen & 1 or atomic_load_u64(&self.switching) != seen:
                    continue
                for at in range(2):
                    found[at] += transacted(&readers[at], &offsets[at], ends[at])
                wrong += found[0] != found[1]
        file_unmap(first, SIZE_MAX)
        file_unmap(second, SIZE_MAX)
        return wrong

    cdef uint8_t* mapped(self, int at, LedgerRead* reader) except NULL:
        cdef uint8_t* base = NULL
        assert file_map(self.ledgers[at].fd, 0, SIZE_MAX, False, &base) == 0
        memset(reader, 0, sizeof(reader[0]))
        reader.base = base
        reader.mapped_size = SIZE_MAX
        reader.seed = self.ledgers[at].seed
        return base


cdef uint64_t transacted(LedgerRead* reader, uint64_t* offset, uint64_t end) noexcept nogil:
    """The entries of transactions from there to the end."""
    cdef EntryFrame frame
    cdef const uint8_t* entry = NULL
    cdef uint64_t found = 0
    while ledger_read_entry(reader, offset[0], end, &frame, &entry, offset) == STATUS_OK:
        found += (frame.flags & ENTRY_TRANSACTION) != 0
    return found


# Planted ------------------------------------------------------------------------------------------


cdef class PlantedRaces:
    """What no thread may do; each method is the body of two threads, who=0 and who=1."""

    cdef uint64_t count
    cdef uint64_t value
    cdef uint64_t ready
    cdef uint64_t* made
    cdef pthread_mutex_t mutex
    cdef Start start

    def __cinit__(self):
        self.start = Start(2)
        pthread_mutex_init(&self.mutex, NULL)
        self.made = <uint64_t*>malloc(sizeof(uint64_t))
        self.made[0] = 0

    def __dealloc__(self):
        free(self.made)

    def count_without_atomics(self, int who, int turns):
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            for _ in range(turns):
                self.count += 1

    def publish_without_release(self, int who, int turns):
        cdef int turn
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            if who == 0:
                for turn in range(1, turns):
                    self.value = turn
                    relaxed_store(&self.ready, turn)
            else:
                while atomic_load_u64(&self.ready) < <uint64_t>turns - 1:
                    pass
                self.count = self.value

    def forget_the_mutex(self, int who, int turns):
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            for _ in range(turns):
                if who == 0:
                    pthread_mutex_lock(&self.mutex)
                self.count += 1
                if who == 0:
                    pthread_mutex_unlock(&self.mutex)

    def free_too_early(self, int who, int turns):
        with nogil:
            pthread_barrier_wait(&self.start.barrier)
            if who == 0:
                free(self.made)
                self.made = NULL
            elif self.made != NULL:
                self.count = self.made[0]


cdef extern from *:
    """
    static void relaxed_store(uint64_t *at, uint64_t value) {
        __atomic_store_n(at, value, __ATOMIC_RELAXED);
    }
    """
    void relaxed_store(uint64_t* at, uint64_t value) noexcept nogil


cdef void publish_plainly(LedgerAppend* ledger, uint64_t end, uint64_t entry_count,
                          uint64_t message_count) noexcept nogil:
    """ledger_publish, whose stores release nothing."""
    ledger.published.end = end
    ledger.published.entry_count = entry_count
    ledger.published.message_count = message_count


def address_of_plain_publication():
    """Where publish_plainly is, to be planted in the place of ledger_publish."""
    return <size_t><void*>publish_plainly
