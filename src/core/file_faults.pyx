"""Decides for every call whether it fails. Rules are few, so they are looked through one by one."""

from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.atomic cimport *
from pulsarx._core.file_ops cimport *
from pulsarx._core.status cimport STATUS_OK, STATUS_OUT_OF_RANGE, STATUS_TIMEOUT
from pulsarx._core.wait_event cimport *

cdef extern from "<signal.h>" nogil:
    int kill(int process, int signal)
    int SIGKILL

cdef extern from "<unistd.h>" nogil:
    int getpid()
    int pause()

cdef enum:
    STEP_MS = 1                   # how often a delayed call looks at a clock that is advanced
    NS_IN_MS = 1000000

cdef struct FaultRule:
    uint32_t op
    uint32_t kind
    uint64_t first_call
    bint sticky
    int error
    uint64_t delay_ms
    const int64_t* now_ms         # NULL: real time

cdef struct DelayedCall:
    const int64_t* now_ms         # NULL: the place is free
    int64_t due_ms

cdef DelayedCall DELAYED[FAULT_DELAYED_MAX]
cdef FaultRule RULES[FAULT_RULES_MAX]
cdef uint32_t RULE_COUNT = 0
cdef uint64_t CALLS[FILE_OP_COUNT]
cdef uint32_t STALLED = 0
cdef uint32_t RELEASED = 0
cdef uint32_t RELEASES = 0        # also told apart from those of an earlier plan
cdef WaitEvent RELEASE_EVENT
cdef pthread_mutex_t PLAN_MUTEX
pthread_mutex_init(&PLAN_MUTEX, NULL)


cdef int64_t clock_ms(const int64_t* now_ms) noexcept nogil:
    return <int64_t>atomic_load_u64(<uint64_t*>now_ms)


cdef bint is_waiting(const FaultRule* rule, int64_t due_ms, uint64_t slept_ms) noexcept nogil:
    """By the call's own time. True for a stall, which has none."""
    if rule.kind == FAULT_STALL:
        return True
    return clock_ms(rule.now_ms) < due_ms if rule.now_ms != NULL else slept_ms < rule.delay_ms


cdef DelayedCall* delayed_call(const FaultRule* rule) noexcept nogil:
    """Note when the call is due; NULL: there are too many."""
    cdef DelayedCall* found = NULL
    cdef uint32_t place
    pthread_mutex_lock(&PLAN_MUTEX)
    for place in range(FAULT_DELAYED_MAX):
        if DELAYED[place].now_ms == NULL:
            found = &DELAYED[place]
            found.due_ms = clock_ms(rule.now_ms) + <int64_t>rule.delay_ms
            found.now_ms = rule.now_ms
            break
    pthread_mutex_unlock(&PLAN_MUTEX)
    return found


cdef void wait_for_release(const FaultRule* rule, int64_t due_ms) noexcept nogil:
    cdef uint32_t releases = atomic_load_u32(&RELEASES)
    cdef uint32_t seen
    cdef uint64_t slept_ms = 0
    cdef int64_t timeout_ns = -1 if rule.kind == FAULT_STALL else STEP_MS * NS_IN_MS
    while (is_waiting(rule, due_ms, slept_ms) and not atomic_load_u32(&RELEASED)
           and atomic_load_u32(&RELEASES) == releases):
        seen = wait_event_enter(&RELEASE_EVENT)
        # A sleep that was cut short counts for nothing, so a delay is never too short.
        if not atomic_load_u32(&RELEASED) and (
                wait_event_sleep(&RELEASE_EVENT, seen, timeout_ns) == STATUS_TIMEOUT):
            slept_ms += STEP_MS
        wait_event_leave(&RELEASE_EVENT)


cdef void stall(const FaultRule* rule) noexcept nogil:
    cdef DelayedCall* call = NULL
    if rule.now_ms != NULL:
        call = delayed_call(rule)
        if call == NULL:
            return
    atomic_add_u32(&STALLED, 1)
    wait_for_release(rule, 0 if call == NULL else call.due_ms)
    atomic_sub_u32(&STALLED, 1)
    if call != NULL:
        pthread_mutex_lock(&PLAN_MUTEX)
        call.now_ms = NULL
        pthread_mutex_unlock(&PLAN_MUTEX)


cdef uint32_t fault_of(uint32_t op, int* error) noexcept nogil:
    """The kind of fault of this call, 0 for none. A stall is sat out here; a kill does not
    return."""
    cdef uint32_t kind = 0
    cdef uint32_t position
    cdef const FaultRule* rule
    cdef FaultRule found
    pthread_mutex_lock(&PLAN_MUTEX)
    CALLS[op] += 1
    for position in range(RULE_COUNT):
        rule = &RULES[position]
        if rule.op == op and (CALLS[op] == rule.first_call
                              or (rule.sticky and CALLS[op] > rule.first_call)):
            found = rule[0]
            kind = rule.kind
            error[0] = rule.error
            break
    pthread_mutex_unlock(&PLAN_MUTEX)
    if kind == FAULT_STALL or kind == FAULT_DELAY:
        stall(&found)
        kind = 0
    if kind == FAULT_KILL:
        kill(getpid(), SIGKILL)
        while True:
            pause()
    return kind


cdef int plain_fault(uint32_t op) noexcept nogil:
    """The errno of this call for operations that know no other fault."""
    cdef int error = 0
    return error if fault_of(op, &error) else 0


cdef int faulty_open(const char* path, uint32_t flags, int* fd) noexcept nogil:
    cdef int error = plain_fault(FILE_OP_OPEN)
    return error if error else file_ops_system().open(path, flags, fd)


cdef int faulty_open_memory(int* fd) noexcept nogil:
    cdef int error = plain_fault(FILE_OP_OPEN_MEMORY)
    return error if error else file_ops_system().open_memory(fd)


cdef int faulty_close(int fd) noexcept nogil:
    # Closed all the same, as the system does.
    cdef int error = plain_fault(FILE_OP_CLOSE)
    cdef int real = file_ops_system().close(fd)
    return error if error else real


cdef int faulty_write(int fd, const uint8_t* data, size_t size, uint64_t offset) noexcept nogil:
    cdef int error = 0
    cdef uint32_t kind = fault_of(FILE_OP_WRITE, &error)
    if kind == FAULT_SHORT:
        file_ops_system().write(fd, data, size // 2, offset)
    elif kind == FAULT_LATE_ERROR:
        file_ops_system().write(fd, data, size, offset)
    return error if kind else file_ops_system().write(fd, data, size, offset)


cdef int faulty_read(int fd, uint8_t* room, size_t size, uint64_t offset,
                     size_t* done) noexcept nogil:
    cdef int error = plain_fault(FILE_OP_READ)
    return error if error else file_ops_system().read(fd, room, size, offset, done)


cdef int faulty_allocate(int fd, uint64_t offset, uint64_t size) noexcept nogil:
    cdef int error = plain_fault(FILE_OP_ALLOCATE)
    return error if error else file_ops_system().allocate(fd, offset, size)


cdef int faulty_flush(int fd) noexcept nogil:
    cdef int error = 0
    cdef uint32_t kind = fault_of(FILE_OP_FLUSH, &error)
    if kind == FAULT_LATE_ERROR:
        file_ops_system().flush(fd)
    return error if kind else file_ops_system().flush(fd)


cdef int faulty_flush_map(uint8_t* base, uint64_t size) noexcept nogil:
    cdef int error = 0
    cdef uint32_t kind = fault_of(FILE_OP_FLUSH, &error)
    if kind == FAULT_LATE_ERROR:
        file_ops_system().flush_map(base, size)
    return error if kind else file_ops_system().flush_map(base, size)


cdef int faulty_flush_directory(const char* path) noexcept nogil:
    cdef int error = plain_fault(FILE_OP_FLUSH_DIRECTORY)
    return error if error else file_ops_system().flush_directory(path)


cdef int faulty_rename(const char* source, const char* target) noexcept nogil:
    cdef int error = 0
    cdef uint32_t kind = fault_of(FILE_OP_RENAME, &error)
    if kind == FAULT_LATE_ERROR:
        file_ops_system().rename(source, target)
    return error if kind else file_ops_system().rename(source, target)


cdef int faulty_rename_new(const char* source, const char* target) noexcept nogil:
    cdef int error = 0
    cdef uint32_t kind = fault_of(FILE_OP_RENAME_NEW, &error)
    if kind == FAULT_LATE_ERROR:
        file_ops_system().rename_new(source, target)
    return error if kind else file_ops_system().rename_new(source, target)


cdef int faulty_link(const char* source, const char* target) noexcept nogil:
    cdef int error = 0
    cdef uint32_t kind = fault_of(FILE_OP_LINK, &error)
    if kind == FAULT_LATE_ERROR:
        file_ops_system().link(source, target)
    return error if kind else file_ops_system().link(source, target)


cdef int faulty_unlink(const char* path) noexcept nogil:
    cdef int error = plain_fault(FILE_OP_UNLINK)
    return error if error else file_ops_system().unlink(path)


cdef int faulty_make_directory(const char* path, uint32_t mode) noexcept nogil:
    cdef int error = plain_fault(FILE_OP_MAKE_DIRECTORY)
    return error if error else file_ops_system().make_directory(path, mode)


cdef int faulty_size(int fd, uint64_t* size) noexcept nogil:
    cdef int error = plain_fault(FILE_OP_SIZE)
    return error if error else file_ops_system().size(fd, size)


cdef int faulty_map(int fd, uint64_t offset, uint64_t size, bint writable,
                    uint8_t** base) noexcept nogil:
    cdef int error = plain_fault(FILE_OP_MAP)
    return error if error else file_ops_system().map(fd, offset, size, writable, base)


cdef int faulty_unmap(uint8_t* base, uint64_t size) noexcept nogil:
    return file_ops_system().unmap(base, size)


cdef int faulty_punch_hole(int fd, uint64_t offset, uint64_t size) noexcept nogil:
    cdef int error = plain_fault(FILE_OP_PUNCH_HOLE)
    return error if error else file_ops_system().punch_hole(fd, offset, size)


cdef int faulty_large_folios(int fd) noexcept nogil:
    cdef int error = plain_fault(FILE_OP_LARGE_FOLIOS)
    return error if error else file_ops_system().large_folios(fd)


cdef int faulty_resident(const uint8_t* base, uint64_t size) noexcept nogil:
    cdef int error = plain_fault(FILE_OP_RESIDENT)
    return error if error else file_ops_system().resident(base, size)


cdef int faulty_zeros(int fd, const uint8_t* data, size_t size, uint64_t offset) noexcept nogil:
    cdef int error = plain_fault(FILE_OP_ZEROS)
    return error if error else file_ops_system().zeros(fd, data, size, offset)


cdef FileOps FAULTY
FAULTY.open = faulty_open
FAULTY.open_memory = faulty_open_memory
FAULTY.close = faulty_close
FAULTY.write = faulty_write
FAULTY.read = faulty_read
FAULTY.allocate = faulty_allocate
FAULTY.flush = faulty_flush
FAULTY.flush_map = faulty_flush_map
FAULTY.flush_directory = faulty_flush_directory
FAULTY.rename = faulty_rename
FAULTY.rename_new = faulty_rename_new
FAULTY.link = faulty_link
FAULTY.unlink = faulty_unlink
FAULTY.make_directory = faulty_make_directory
FAULTY.size = faulty_size
FAULTY.map = faulty_map
FAULTY.unmap = faulty_unmap
FAULTY.punch_hole = faulty_punch_hole
FAULTY.large_folios = faulty_large_folios
FAULTY.resident = faulty_resident
FAULTY.zeros = faulty_zeros


cdef void file_faults_install() noexcept nogil:
    global RULE_COUNT
    cdef uint32_t op
    pthread_mutex_lock(&PLAN_MUTEX)
    RULE_COUNT = 0
    for op in range(FILE_OP_COUNT):
        CALLS[op] = 0
    pthread_mutex_unlock(&PLAN_MUTEX)
    atomic_store_u32(&RELEASED, 0)
    file_ops_replace(&FAULTY)


cdef void file_faults_remove() noexcept nogil:
    file_ops_replace(NULL)
    file_faults_release()


cdef int add_rule(const FaultRule* rule) noexcept nogil:
    """first_call of it counts from now."""
    global RULE_COUNT
    cdef int status = STATUS_OK
    pthread_mutex_lock(&PLAN_MUTEX)
    if RULE_COUNT == FAULT_RULES_MAX or rule.op >= FILE_OP_COUNT:
        status = STATUS_OUT_OF_RANGE
    else:
        RULES[RULE_COUNT] = rule[0]
        RULES[RULE_COUNT].first_call += CALLS[rule.op]
        RULE_COUNT += 1
    pthread_mutex_unlock(&PLAN_MUTEX)
    return status


cdef int file_faults_add(uint32_t op, uint32_t kind, uint64_t call, bint sticky,
                         int error) noexcept nogil:
    cdef FaultRule rule
    rule.op, rule.kind, rule.first_call, rule.sticky, rule.error = op, kind, call, sticky, error
    rule.delay_ms, rule.now_ms = 0, NULL
    return add_rule(&rule)


cdef int file_faults_delay(uint32_t op, uint64_t call, bint sticky, uint64_t delay_ms,
                           const int64_t* now_ms) noexcept nogil:
    cdef FaultRule rule
    rule.op, rule.kind, rule.first_call, rule.sticky = op, FAULT_DELAY, call, sticky
    rule.error, rule.delay_ms, rule.now_ms = 0, delay_ms, now_ms
    return add_rule(&rule)


cdef int64_t file_faults_due(const int64_t* now_ms) noexcept nogil:
    cdef int64_t due_ms = INT64_MAX
    cdef uint32_t place
    pthread_mutex_lock(&PLAN_MUTEX)
    for place in range(FAULT_DELAYED_MAX):
        if DELAYED[place].now_ms == now_ms and DELAYED[place].due_ms > clock_ms(now_ms):
            due_ms = min(due_ms, DELAYED[place].due_ms)
    pthread_mutex_unlock(&PLAN_MUTEX)
    return due_ms


cdef void file_faults_release() noexcept nogil:
    atomic_store_u32(&RELEASED, 1)
    atomic_add_u32(&RELEASES, 1)
    wait_event_wake(&RELEASE_EVENT)


cdef uint64_t file_faults_calls(uint32_t op) noexcept nogil:
    cdef uint64_t calls
    if op >= FILE_OP_COUNT:
        return 0
    pthread_mutex_lock(&PLAN_MUTEX)
    calls = CALLS[op]
    pthread_mutex_unlock(&PLAN_MUTEX)
    return calls


cdef uint32_t file_faults_stalled() noexcept nogil:
    return atomic_load_u32(&STALLED)
