"""The preparer thread, its queue, and preparing in the caller's thread."""

from libc.errno cimport EDQUOT, EFBIG, ENOMEM, ENOSPC
from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from pulsarx._core.atomic cimport *
from pulsarx._core.file_ops cimport file_allocate, file_flush, file_is_overwritten, file_zeros
from pulsarx._core.ledger_flush cimport FLUSH_NOTHING, ledger_flush_end, ledger_flush_turn
from pulsarx._core.ledger_state cimport *
from pulsarx._core.limits cimport LEDGER_HEADER_SIZE
from pulsarx._core.wait_event cimport *

cdef extern from *:
    """
    #include <pthread.h>
    #include <signal.h>
    static int preparer_spawn(void *(*run)(void *)) {
        /* All signals stay with the threads that know what to do with them. */
        sigset_t all, before;
        pthread_t thread;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        int error = pthread_create(&thread, NULL, run, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (!error) pthread_detach(thread);
        return error;
    }
    static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
    static void queue_mutex_reset(void) { pthread_mutex_init(&queue_mutex, NULL); }
    """
    int preparer_spawn(void* (*run)(void*) noexcept nogil) nogil
    int pthread_atfork(void (*prepare)() noexcept nogil, void (*parent)() noexcept nogil,
                       void (*child)() noexcept nogil) nogil
    pthread_mutex_t queue_mutex
    void queue_mutex_reset() nogil

cdef enum:
    # Zeros written at a time: an appender waits not long for them, nor a flush for the turn.
    PIECE_SIZE = 1048576
    # What one call writes, at a multiple of its size, becomes one folio of the page cache. Folios
    # of 64 KiB are read at three times the speed of single pages, those of 256 KiB are mapped at
    # twice that of 64; but every write to a folio walks all its blocks.
    ZEROS_SIZE = 65536
    ZEROS_SIZE_MAX = 262144        # for entries of LARGE_ENTRY and more on average
    LARGE_ENTRY = 32768
    PAGE_SIZE = 4096
    POLL_NS = 1000000

cdef uint8_t ZEROS[ZEROS_SIZE_MAX]     # never written; costs no memory
cdef LedgerPreparer* QUEUE_FIRST = NULL
cdef LedgerPreparer* QUEUE_LAST = NULL
cdef LedgerPreparer* CURRENT = NULL
cdef WaitEvent QUEUE_EVENT         # something was queued
cdef WaitEvent DONE_EVENT          # CURRENT changed
cdef bint STARTED = False
cdef bint FORK_NOTED = False


cdef void forked_child() noexcept nogil:
    """The thread is gone and the mutex may be locked by it; ledgers of the parent are not ours to
    prepare."""
    global QUEUE_FIRST, QUEUE_LAST, CURRENT, STARTED
    queue_mutex_reset()
    QUEUE_FIRST = NULL
    QUEUE_LAST = NULL
    CURRENT = NULL
    STARTED = False
    QUEUE_EVENT.waiters = 0
    DONE_EVENT.waiters = 0


cdef inline uint64_t page_up(uint64_t offset) noexcept nogil:
    return (offset + PAGE_SIZE - 1) & ~<uint64_t>(PAGE_SIZE - 1)


cdef uint64_t next_step(LedgerAppend* self, LedgerPreparer* preparer, uint64_t step,
                        bint is_fast) noexcept nogil:
    """is_fast: the appender outruns the thread, or nearly."""
    cdef uint64_t most = LEDGER_STEP_MAX
    if self.memory:
        most = LEDGER_STEP_MAX_MEMORY
    elif preparer.zeros and not self.zero_space:
        most = LEDGER_STEP_MAX_CACHED
        if not is_fast:
            most = min(most, self.prepared_end // 4)
            most = max(<uint64_t>LEDGER_STEP_MIN, most - most % LEDGER_STEP_MIN)
    return min(2 * step, most)


cdef int zeros_write(LedgerAppend* self, uint64_t start, uint64_t end) noexcept nogil:
    cdef uint64_t most = ZEROS_SIZE
    cdef uint64_t size
    cdef int error
    if atomic_load_u64(&self.end) >= LARGE_ENTRY * (atomic_load_u64(&self.entry_count) + 1):
        most = ZEROS_SIZE_MAX
    while start < end:
        size = most - start % most
        if size > end - start:
            size = end - start
        error = file_zeros(self.fd, ZEROS, size, start)
        if error:
            return error
        start += size
    return 0


cdef void ask_later(LedgerAppend* self, LedgerPreparer* preparer, uint64_t step) noexcept nogil:
    """Ask when less than half of the last step is left, or never when nothing more is wanted."""
    cdef uint64_t prepared = atomic_load_u64(&self.prepared_end)
    if prepared >= self.size_max:
        atomic_store_u64(&preparer.ask_at, UINT64_MAX)
    else:
        atomic_store_u64(&preparer.ask_at, prepared - step // 2)


cdef int ledger_prepare_nothing(LedgerAppend* self) noexcept nogil:
    cdef LedgerPreparer* preparer = <LedgerPreparer*>calloc(1, sizeof(LedgerPreparer))
    if preparer == NULL:
        return ENOMEM
    pthread_mutex_init(&preparer.mutex, NULL)
    preparer.ledger = self
    atomic_store_u64(&preparer.ask_at, UINT64_MAX)
    self.preparer = preparer
    return 0


cdef int ledger_prepare_start(LedgerAppend* self) noexcept nogil:
    cdef LedgerPreparer* preparer
    cdef uint64_t first = LEDGER_STEP_MIN
    cdef int error = ledger_prepare_nothing(self)
    if error:
        return error
    preparer = <LedgerPreparer*>self.preparer
    error = file_allocate(self.fd, 0, first)
    if error == ENOSPC or error == EDQUOT or error == EFBIG:
        first = LEDGER_HEADER_SIZE
        error = file_allocate(self.fd, 0, first)
    if error == 0 and self.zero_space:
        error = zeros_write(self, LEDGER_HEADER_SIZE, first)
    if error:
        return error
    preparer.zeros = not self.memory and (
        self.zero_space or file_is_overwritten(self.fd))
    self.prepared_end = first
    preparer.step = next_step(self, preparer, LEDGER_STEP_MIN, False)
    ask_later(self, preparer, LEDGER_STEP_MIN)
    return 0


cdef int ledger_prepare_room(LedgerAppend* self, uint64_t end) noexcept nogil:
    cdef LedgerPreparer* preparer = <LedgerPreparer*>self.preparer
    cdef uint64_t start, target
    cdef uint32_t seen
    cdef int error
    while True:
        if atomic_load_u64(&self.prepared_end) >= end:
            return 0
        if pthread_mutex_trylock(&preparer.mutex) == 0:
            break
        seen = wait_event_enter(&preparer.progress)
        if atomic_load_u64(&self.prepared_end) < end:
            wait_event_sleep(&preparer.progress, seen, POLL_NS)
        wait_event_leave(&preparer.progress)
    start = self.prepared_end
    # No zeros here: they are to spare the appender time, and it would have to write them itself.
    target = page_up(end + (preparer.step if preparer.step < PIECE_SIZE else PIECE_SIZE))
    error = 0
    if start < end:
        error = file_allocate(self.fd, start, target - start)
        if error == ENOSPC or error == EDQUOT or error == EFBIG:
            preparer.step = LEDGER_STEP_MIN
            target = end
            error = file_allocate(self.fd, start, target - start)
        else:
            preparer.step = next_step(self, preparer, preparer.step, True)
        if error == 0:
            atomic_store_u64(&self.prepared_end, target)
            ask_later(self, preparer, target - start)
    pthread_mutex_unlock(&preparer.mutex)
    return error


cdef int piece_prepare(LedgerAppend* self, LedgerPreparer* preparer, uint64_t end) noexcept nogil:
    """Prepare the next piece, at most up to end. errno; a failed flush poisons the ledger."""
    cdef uint64_t start, target
    cdef int error
    pthread_mutex_lock(&preparer.mutex)
    start = self.prepared_end
    target = end
    if preparer.zeros and target > start + PIECE_SIZE:
        target = start + PIECE_SIZE
    error = 0
    if start < target:
        error = file_allocate(self.fd, start, target - start)
        if error == 0 and preparer.zeros:
            error = zeros_write(self, start, target)
        if error == 0:
            atomic_store_u64(&self.prepared_end, target)
    pthread_mutex_unlock(&preparer.mutex)
    wait_event_wake(&preparer.progress)
    # Without the mutex: the flusher may wait for append_mutex, and its holder for this one.
    if error == 0 and self.zero_space and start < target:
        ledger_flush_turn(self)
        if atomic_load_u32(&self.state) == LEDGER_OPEN:
            error = file_flush(self.fd)
        ledger_flush_end(self, error, 0, FLUSH_NOTHING, 0)
    return error


cdef void step_prepare(LedgerPreparer* preparer) noexcept nogil:
    cdef LedgerAppend* self = preparer.ledger
    cdef uint64_t step, prepared, end
    cdef bint is_fast
    pthread_mutex_lock(&preparer.mutex)
    step = preparer.step
    prepared = self.prepared_end
    pthread_mutex_unlock(&preparer.mutex)
    end = page_up(prepared + step)
    # It was asked when less than half of the step before was left.
    is_fast = atomic_load_u64(&self.end) + step // 8 > prepared
    if end > page_up(self.size_max):
        end = page_up(self.size_max)
    while atomic_load_u64(&self.prepared_end) < end:
        if atomic_load_u32(&preparer.stopping) or atomic_load_u32(&self.state) != LEDGER_OPEN:
            return
        if piece_prepare(self, preparer, end) != 0:
            # The writer will meet the full disk itself; asking again at each append would only
            # cost.
            return
    pthread_mutex_lock(&preparer.mutex)
    preparer.step = next_step(self, preparer, step, is_fast)
    pthread_mutex_unlock(&preparer.mutex)
    ask_later(self, preparer, step)


cdef void* preparer_run(void* unused) noexcept nogil:
    global CURRENT, QUEUE_FIRST, QUEUE_LAST
    cdef LedgerPreparer* preparer
    cdef uint32_t seen
    while True:
        seen = wait_event_enter(&QUEUE_EVENT)
        pthread_mutex_lock(&queue_mutex)
        preparer = QUEUE_FIRST
        if preparer != NULL:
            QUEUE_FIRST = preparer.next
            if QUEUE_FIRST == NULL:
                QUEUE_LAST = NULL
            preparer.next = NULL
            preparer.queued = 0
        CURRENT = preparer
        pthread_mutex_unlock(&queue_mutex)
        if preparer == NULL:
            wait_event_sleep(&QUEUE_EVENT, seen, -1)
        wait_event_leave(&QUEUE_EVENT)
        if preparer == NULL:
            continue
        step_prepare(preparer)
        pthread_mutex_lock(&queue_mutex)
        CURRENT = NULL
        pthread_mutex_unlock(&queue_mutex)
        wait_event_wake(&DONE_EVENT)


cdef void ledger_prepare_ask(LedgerAppend* self) noexcept nogil:
    global FORK_NOTED, QUEUE_FIRST, QUEUE_LAST, STARTED
    cdef LedgerPreparer* preparer = <LedgerPreparer*>self.preparer
    atomic_store_u64(&preparer.ask_at, UINT64_MAX)
    pthread_mutex_lock(&queue_mutex)
    if not FORK_NOTED:
        FORK_NOTED = pthread_atfork(NULL, NULL, forked_child) == 0
    if not STARTED:
        STARTED = preparer_spawn(preparer_run) == 0
    if STARTED and not preparer.queued and not atomic_load_u32(&preparer.stopping):
        preparer.queued = 1
        if QUEUE_LAST == NULL:
            QUEUE_FIRST = preparer
        else:
            QUEUE_LAST.next = preparer
        QUEUE_LAST = preparer
    pthread_mutex_unlock(&queue_mutex)
    wait_event_wake(&QUEUE_EVENT)


cdef void queue_remove(LedgerPreparer* preparer) noexcept nogil:
    global QUEUE_FIRST, QUEUE_LAST
    cdef LedgerPreparer* before = NULL
    cdef LedgerPreparer* at = QUEUE_FIRST
    while at != NULL and at != preparer:
        before = at
        at = at.next
    if at == NULL:
        return
    if before == NULL:
        QUEUE_FIRST = at.next
    else:
        before.next = at.next
    if QUEUE_LAST == at:
        QUEUE_LAST = before
    at.next = NULL
    at.queued = 0


cdef void ledger_prepare_stop(LedgerAppend* self) noexcept nogil:
    cdef LedgerPreparer* preparer = <LedgerPreparer*>self.preparer
    cdef uint32_t seen
    cdef bint busy
    atomic_store_u32(&preparer.stopping, 1)
    pthread_mutex_lock(&queue_mutex)
    queue_remove(preparer)
    pthread_mutex_unlock(&queue_mutex)
    while True:
        seen = wait_event_enter(&DONE_EVENT)
        pthread_mutex_lock(&queue_mutex)
        busy = CURRENT == preparer
        pthread_mutex_unlock(&queue_mutex)
        if busy:
            wait_event_sleep(&DONE_EVENT, seen, -1)
        wait_event_leave(&DONE_EVENT)
        if not busy:
            return


cdef void ledger_prepare_free(LedgerAppend* self) noexcept nogil:
    cdef LedgerPreparer* preparer = <LedgerPreparer*>self.preparer
    if preparer != NULL:
        pthread_mutex_destroy(&preparer.mutex)
        free(preparer)
        self.preparer = NULL
