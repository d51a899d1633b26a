# cython: language_level=3
"""Body of arrow_memory.pxd."""

from libc.stdint cimport uint8_t
from libc.stdlib cimport free
from libc.string cimport memcpy, memset

from pulsarx._core.atomic cimport (
    pthread_mutex_init, pthread_mutex_t, pthread_mutex_trylock, pthread_mutex_unlock,
)
from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK

cdef extern from "<stdlib.h>" nogil:
    int posix_memalign(void** room, size_t alignment, size_t size)

cdef extern from *:
    """
    #include <stddef.h>
    #include <sys/mman.h>
    static void room_advise(void *at, size_t size) {
    #ifdef MADV_HUGEPAGE
        madvise(at, size, MADV_HUGEPAGE);
    #endif
    }
    """
    void room_advise(void* at, size_t size) nogil

cdef enum:
    ALIGNMENT = 64               # what Arrow asks for
    PADDING = 64
    KEPT_FROM = 16384            # bytes: malloc is as good at smaller ones
    SLOTS = 32
    KEPT_BYTES_MAX = 33554432
    HUGE_FROM = 4194304
    HUGE_PAGE = 2097152

cdef struct RoomHead:
    size_t size                  # of the room that follows ALIGNMENT bytes after this

cdef pthread_mutex_t mutex       # only ever tried: a thread that does not get it does without
cdef RoomHead* kept[SLOTS]
cdef size_t kept_bytes = 0
cdef int oldest = 0
pthread_mutex_init(&mutex, NULL)


cdef void* room_new(size_t size) noexcept nogil:
    cdef void* head = NULL
    cdef size_t whole = ALIGNMENT + size + PADDING
    cdef size_t alignment = ALIGNMENT
    if size >= <size_t>KEPT_FROM:
        head = take_kept(size)
    if head == NULL:
        if whole >= <size_t>HUGE_FROM:
            alignment = HUGE_PAGE
        if posix_memalign(&head, alignment, whole) != 0:
            return NULL
        if whole >= <size_t>HUGE_FROM:
            room_advise(head, whole)
        (<RoomHead*>head).size = size
    return <char*>head + ALIGNMENT


cdef void* take_kept(size_t size) noexcept nogil:
    """The smallest kept room that is large enough, and not so large that holding it is a waste."""
    global kept_bytes
    cdef RoomHead* head = NULL
    cdef int at
    cdef int best = -1
    if pthread_mutex_trylock(&mutex) != 0:
        return NULL
    for at in range(SLOTS):
        if kept[at] != NULL and size <= kept[at].size <= 2 * size and (
                best < 0 or kept[at].size < kept[best].size):
            best = at
    if best >= 0:
        head = kept[best]
        kept[best] = NULL
        kept_bytes -= head.size
    pthread_mutex_unlock(&mutex)
    return head


cdef void room_free(void* room) noexcept nogil:
    cdef RoomHead* head
    if room == NULL:
        return
    head = <RoomHead*>(<char*>room - ALIGNMENT)
    if head.size < <size_t>KEPT_FROM or head.size > <size_t>(KEPT_BYTES_MAX // 2) or (
            pthread_mutex_trylock(&mutex) != 0):
        free(head)
        return
    keep(head)
    pthread_mutex_unlock(&mutex)


cdef void keep(RoomHead* head) noexcept nogil:
    """Put it in place of the oldest; let go of more until all together are within the bound."""
    global kept_bytes, oldest
    while kept[oldest] != NULL or kept_bytes + head.size > <size_t>KEPT_BYTES_MAX:
        if kept[oldest] != NULL:
            kept_bytes -= kept[oldest].size
            free(kept[oldest])
            kept[oldest] = NULL
            if kept_bytes + head.size <= <size_t>KEPT_BYTES_MAX:
                break
        oldest = (oldest + 1) % SLOTS
    kept[oldest] = head
    kept_bytes += head.size
    oldest = (oldest + 1) % SLOTS


cdef int room_grow(void** room, size_t used, size_t wanted, bint zeroed) noexcept nogil:
    cdef void* other = room_new(wanted)
    if other == NULL:
        return STATUS_NO_MEMORY
    if used:
        memcpy(other, room[0], used)
    if zeroed:
        memset(<uint8_t*>other + used, 0, wanted - used)
    room_free(room[0])
    room[0] = other
    return STATUS_OK
