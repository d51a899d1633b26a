"""The recording is one piece of memory, behind one mutex that is held while a call is made."""

from libc.stdint cimport int32_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset, strlen

from pulsarx._core.atomic cimport *
from pulsarx._core.file_ops cimport *

cdef extern from "<unistd.h>" nogil:
    int getpid()

cdef extern from "<fcntl.h>" nogil:
    int c_fcntl "fcntl"(int fd, int command, ...)
    enum:
        F_DUPFD_CLOEXEC

cdef enum:
    PAGE = 4096
    FIRST_ROOM = 1 << 20
    LOWEST_COPY = 3                      # 0, 1 and 2 belong to the program

cdef struct RecordedMap:
    uint32_t number
    int fd                               # a copy: the caller may close its own
    uint8_t* base
    uint64_t offset                      # in the file
    uint64_t size
    uint8_t* seen                        # what was recorded of it last
    RecordedMap* next

cdef uint8_t* RECORDING = NULL
cdef uint64_t USED = 0
cdef uint64_t ROOM = 0
cdef bint LACKS_MEMORY = False
cdef bint IS_RECORDED = False
cdef int RECORDED_PROCESS = 0
cdef uint32_t MAP_COUNT = 0
cdef RecordedMap* MAPS = NULL
cdef pthread_mutex_t RECORD_MUTEX
pthread_mutex_init(&RECORD_MUTEX, NULL)


cdef uint8_t* record_room(uint64_t size) noexcept nogil:
    """Room for so many bytes at the end; NULL without memory, and then for ever."""
    global RECORDING, ROOM, USED, LACKS_MEMORY
    cdef uint64_t wanted = ROOM if ROOM else FIRST_ROOM
    cdef void* moved
    if LACKS_MEMORY:
        return NULL
    while wanted < USED + size:
        wanted *= 2
    if wanted != ROOM:
        moved = realloc(RECORDING, wanted)
        if moved == NULL:
            LACKS_MEMORY = True
            return NULL
        RECORDING = <uint8_t*>moved
        ROOM = wanted
    USED += size
    return RECORDING + USED - size


cdef void record(FileRecord* head, const char* path, const char* other,
                 const uint8_t* data) noexcept nogil:
    cdef uint64_t size
    cdef uint8_t* at
    head.path_size = <uint32_t>strlen(path) if path != NULL else 0
    head.other_size = <uint32_t>strlen(other) if other != NULL else 0
    if data == NULL:
        head.data_size = 0
    size = sizeof(FileRecord) + head.path_size + head.other_size + head.data_size
    size = (size + 7) & ~<uint64_t>7
    at = record_room(size)
    if at == NULL:
        return
    memset(at, 0, size)
    memcpy(at, head, sizeof(FileRecord))
    at += sizeof(FileRecord)
    if path != NULL:
        memcpy(at, path, head.path_size)
    at += head.path_size
    if other != NULL:
        memcpy(at, other, head.other_size)
    at += head.other_size
    if data != NULL:
        memcpy(at, data, head.data_size)


cdef FileRecord new_record(uint32_t op, int fd) noexcept nogil:
    cdef FileRecord head
    memset(&head, 0, sizeof(head))
    head.op = op
    head.fd = fd
    return head


cdef uint64_t seen_size(RecordedMap* each) noexcept nogil:
    """How much of the mapping the file has: what is behind its end may not be touched."""
    cdef uint64_t size = 0
    if file_ops_system().size(each.fd, &size) != 0 or size <= each.offset:
        return 0
    return min(size - each.offset, each.size)


cdef void record_stores(RecordedMap* each, bint all_pages) noexcept nogil:
    cdef FileRecord head
    cdef uint64_t end = seen_size(each)
    cdef uint64_t at = 0
    cdef uint64_t size
    while at < end:
        size = min(end - at, <uint64_t>PAGE)
        if all_pages or memcmp(each.base + at, each.seen + at, size) != 0:
            memcpy(each.seen + at, each.base + at, size)
            if not all_pages:
                head = new_record(FILE_RECORD_STORE, -1)
                head.map = each.number
                head.offset = at
                head.size = size
                head.data_size = size
                record(&head, NULL, NULL, each.seen + at)
        at += size


cdef void record_all_stores() noexcept nogil:
    cdef RecordedMap* each = MAPS
    while each != NULL:
        record_stores(each, False)
        each = each.next


cdef bint enter() noexcept nogil:
    """Whether this call is recorded; the mutex is held then, and stores until now are recorded."""
    # A child has a copy of the mutex that another thread of its parent may have held.
    if getpid() != RECORDED_PROCESS:
        return False
    pthread_mutex_lock(&RECORD_MUTEX)
    if not IS_RECORDED:
        pthread_mutex_unlock(&RECORD_MUTEX)
        return False
    record_all_stores()
    return True


cdef int leave(FileRecord* head, const char* path, const char* other, const uint8_t* data,
               int error) noexcept nogil:
    head.error = error
    record(head, path, other, data)
    pthread_mutex_unlock(&RECORD_MUTEX)
    return error


cdef int recorded_open(const char* path, uint32_t flags, int* fd) noexcept nogil:
    cdef FileRecord head
    cdef int error
    cdef int found = -1
    if not enter():
        return file_ops_system().open(path, flags, fd)
    head = new_record(FILE_OP_OPEN, -1)
    head.flags = flags
    if flags & FILE_CREATE:
        if file_ops_system().open(path, FILE_READ, &found) == 0:
            file_ops_system().close(found)
        else:
            head.is_new = True
    error = file_ops_system().open(path, flags, fd)
    if error:
        pthread_mutex_unlock(&RECORD_MUTEX)
        return error
    head.fd = fd[0]
    return leave(&head, path, NULL, NULL, 0)


cdef int recorded_close(int fd) noexcept nogil:
    cdef FileRecord head
    if not enter():
        return file_ops_system().close(fd)
    head = new_record(FILE_OP_CLOSE, fd)
    return leave(&head, NULL, NULL, NULL, file_ops_system().close(fd))


cdef int recorded_write(int fd, const uint8_t* data, size_t size, uint64_t offset) noexcept nogil:
    cdef FileRecord head
    if not enter():
        return file_ops_system().write(fd, data, size, offset)
    head = new_record(FILE_OP_WRITE, fd)
    head.offset = offset
    head.size = head.data_size = size
    return leave(&head, NULL, NULL, data, file_ops_system().write(fd, data, size, offset))


cdef int recorded_zeros(int fd, const uint8_t* data, size_t size, uint64_t offset) noexcept nogil:
    cdef FileRecord head
    if not enter():
        return file_ops_system().zeros(fd, data, size, offset)
    head = new_record(FILE_OP_ZEROS, fd)
    head.offset = offset
    head.size = size
    return leave(&head, NULL, NULL, NULL, file_ops_system().zeros(fd, data, size, offset))


cdef int recorded_allocate(int fd, uint64_t offset, uint64_t size) noexcept nogil:
    cdef FileRecord head
    if not enter():
        return file_ops_system().allocate(fd, offset, size)
    head = new_record(FILE_OP_ALLOCATE, fd)
    head.offset = offset
    head.size = size
    return leave(&head, NULL, NULL, NULL, file_ops_system().allocate(fd, offset, size))


cdef int recorded_punch_hole(int fd, uint64_t offset, uint64_t size) noexcept nogil:
    cdef FileRecord head
    if not enter():
        return file_ops_system().punch_hole(fd, offset, size)
    head = new_record(FILE_OP_PUNCH_HOLE, fd)
    head.offset = offset
    head.size = size
    return leave(&head, NULL, NULL, NULL, file_ops_system().punch_hole(fd, offset, size))


cdef int recorded_flush(int fd) noexcept nogil:
    cdef FileRecord head
    if not enter():
        return file_ops_system().flush(fd)
    head = new_record(FILE_OP_FLUSH, fd)
    return leave(&head, NULL, NULL, NULL, file_ops_system().flush(fd))


cdef RecordedMap** map_of(const uint8_t* base) noexcept nogil:
    """Find what in the list points at the mapping that has this byte; NULL: none has it."""
    cdef RecordedMap** at = &MAPS
    while at[0] != NULL:
        if at[0].base <= base and base < at[0].base + at[0].size:
            return at
        at = &at[0].next
    return NULL


cdef int recorded_flush_map(uint8_t* base, uint64_t size) noexcept nogil:
    cdef FileRecord head
    cdef RecordedMap** at
    if not enter():
        return file_ops_system().flush_map(base, size)
    head = new_record(FILE_RECORD_FLUSH_MAP, -1)
    at = map_of(base)
    if at != NULL:
        head.map = at[0].number
        head.offset = <uint64_t>(base - at[0].base)
        head.size = size
    return leave(&head, NULL, NULL, NULL, file_ops_system().flush_map(base, size))


cdef int recorded_flush_directory(const char* path) noexcept nogil:
    cdef FileRecord head
    if not enter():
        return file_ops_system().flush_directory(path)
    head = new_record(FILE_OP_FLUSH_DIRECTORY, -1)
    return leave(&head, path, NULL, NULL, file_ops_system().flush_directory(path))


cdef int recorded_rename(const char* source, const char* target) noexcept nogil:
    cdef FileRecord head
    if not enter():
        return file_ops_system().rename(source, target)
    head = new_record(FILE_OP_RENAME, -1)
    return leave(&head, source, target, NULL, file_ops_system().rename(source, target))


cdef int recorded_rename_new(const char* source, const char* target) noexcept nogil:
    cdef FileRecord head
    if not enter():
        return file_ops_system().rename_new(source, target)
    head = new_record(FILE_OP_RENAME_NEW, -1)
    return leave(&head, source, target, NULL, file_ops_system().rename_new(source, target))


cdef int recorded_link(const char* source, const char* target) noexcept nogil:
    cdef FileRecord head
    if not enter():
        return file_ops_system().link(source, target)
    head = new_record(FILE_OP_LINK, -1)
    return leave(&head, source, target, NULL, file_ops_system().link(source, target))


cdef int recorded_unlink(const char* path) noexcept nogil:
    cdef FileRecord head
    if not enter():
        return file_ops_system().unlink(path)
    head = new_record(FILE_OP_UNLINK, -1)
    return leave(&head, path, NULL, NULL, file_ops_system().unlink(path))


cdef int recorded_make_directory(const char* path, uint32_t mode) noexcept nogil:
    cdef FileRecord head
    if not enter():
        return file_ops_system().make_directory(path, mode)
    head = new_record(FILE_OP_MAKE_DIRECTORY, -1)
    return leave(&head, path, NULL, NULL, file_ops_system().make_directory(path, mode))


cdef void forget_map(RecordedMap** at) noexcept nogil:
    cdef RecordedMap* gone = at[0]
    at[0] = gone.next
    if gone.fd >= 0:
        file_ops_system().close(gone.fd)
    free(gone.seen)
    free(gone)


cdef int recorded_map(int fd, uint64_t offset, uint64_t size, bint writable,
                      uint8_t** base) noexcept nogil:
    global MAPS, MAP_COUNT, LACKS_MEMORY
    cdef FileRecord head
    cdef RecordedMap* each
    cdef int error
    if not writable or not enter():
        return file_ops_system().map(fd, offset, size, writable, base)
    error = file_ops_system().map(fd, offset, size, writable, base)
    if error:
        pthread_mutex_unlock(&RECORD_MUTEX)
        return error
    each = <RecordedMap*>malloc(sizeof(RecordedMap))
    if each == NULL:
        LACKS_MEMORY = True
        pthread_mutex_unlock(&RECORD_MUTEX)
        return 0
    MAP_COUNT += 1
    each.number = MAP_COUNT
    each.fd = c_fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_COPY)
    each.base = base[0]
    each.offset = offset
    each.size = size
    each.seen = <uint8_t*>calloc(1, size)  # of which pages are taken as they are used
    each.next = MAPS
    MAPS = each
    if each.fd < 0 or each.seen == NULL:
        LACKS_MEMORY = True
        forget_map(&MAPS)
    else:
        record_stores(each, True)
        head = new_record(FILE_OP_MAP, fd)
        head.map = each.number
        head.offset = offset
        head.size = size
        record(&head, NULL, NULL, NULL)
    pthread_mutex_unlock(&RECORD_MUTEX)
    return 0


cdef int recorded_unmap(uint8_t* base, uint64_t size) noexcept nogil:
    cdef RecordedMap** at
    if enter():
        at = map_of(base)
        if at != NULL:
            forget_map(at)
        pthread_mutex_unlock(&RECORD_MUTEX)
    return file_ops_system().unmap(base, size)


cdef FileOps RECORDED


cdef void file_record_install() noexcept nogil:
    global RECORDED, RECORDED_PROCESS, IS_RECORDED, USED, LACKS_MEMORY, MAP_COUNT
    file_record_remove()
    pthread_mutex_lock(&RECORD_MUTEX)
    USED = 0
    LACKS_MEMORY = False
    MAP_COUNT = 0
    IS_RECORDED = True
    RECORDED_PROCESS = getpid()
    pthread_mutex_unlock(&RECORD_MUTEX)
    RECORDED = file_ops_system()[0]
    RECORDED.open = recorded_open
    RECORDED.close = recorded_close
    RECORDED.write = recorded_write
    RECORDED.zeros = recorded_zeros
    RECORDED.allocate = recorded_allocate
    RECORDED.punch_hole = recorded_punch_hole
    RECORDED.flush = recorded_flush
    RECORDED.flush_map = recorded_flush_map
    RECORDED.flush_directory = recorded_flush_directory
    RECORDED.rename = recorded_rename
    RECORDED.rename_new = recorded_rename_new
    RECORDED.link = recorded_link
    RECORDED.unlink = recorded_unlink
    RECORDED.make_directory = recorded_make_directory
    RECORDED.map = recorded_map
    RECORDED.unmap = recorded_unmap
    file_ops_replace(&RECORDED)


cdef void file_record_remove() noexcept nogil:
    global IS_RECORDED
    file_ops_replace(NULL)
    pthread_mutex_lock(&RECORD_MUTEX)
    if IS_RECORDED:
        record_all_stores()
    IS_RECORDED = False
    while MAPS != NULL:
        forget_map(&MAPS)
    pthread_mutex_unlock(&RECORD_MUTEX)


cdef void file_record_mark(const uint8_t* data, size_t size) noexcept nogil:
    cdef FileRecord head
    if not enter():
        return
    head = new_record(FILE_RECORD_MARK, -1)
    head.size = head.data_size = size
    leave(&head, NULL, NULL, data, 0)


cdef const uint8_t* file_record_lock(uint64_t* size) noexcept nogil:
    pthread_mutex_lock(&RECORD_MUTEX)
    if IS_RECORDED:
        record_all_stores()
    size[0] = USED
    return NULL if LACKS_MEMORY else RECORDING


cdef void file_record_unlock() noexcept nogil:
    pthread_mutex_unlock(&RECORD_MUTEX)


cdef void file_record_free() noexcept nogil:
    global RECORDING, USED, ROOM
    pthread_mutex_lock(&RECORD_MUTEX)
    if not IS_RECORDED:
        free(RECORDING)
        RECORDING = NULL
        USED = ROOM = 0
    pthread_mutex_unlock(&RECORD_MUTEX)
