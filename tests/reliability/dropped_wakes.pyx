"""A wait_event_wake and a wait_event_wake_one that note whom they wake, and drop one wake when they
are told to: to be planted in the place of the library's (planted_code.py)."""

from libc.limits cimport INT_MAX
from libc.stdint cimport uint32_t

from pulsarx._core.atomic cimport *
from pulsarx._core.wait_event cimport WaitEvent

cdef extern from *:
    """
    #include <limits.h>
    #include <linux/futex.h>
    #include <sys/syscall.h>
    #include <sys/uio.h>
    #include <unistd.h>
    static long wake_on(uint32_t *word, int count) {
        return syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
    }
    /* Whoever sleeps goes to the end of the same queue, and is counted; nobody does where the event
       is gone, and maybe the memory that it was in. */
    static long sleepers_on(uint32_t *word) {
        uint32_t value = 0;
        struct iovec own = {&value, sizeof value}, there = {word, sizeof value};
        if (process_vm_readv(getpid(), &own, 1, &there, 1, 0) != sizeof value)
            return 0;
        return syscall(SYS_futex, word, FUTEX_CMP_REQUEUE, 0, INT_MAX, word, value);
    }
    """
    long wake_on(uint32_t* word, int count) nogil
    long sleepers_on(uint32_t* word) nogil

cdef enum:
    NOTED_MAX = 64

cdef WaitEvent* NOTED[NOTED_MAX]         # in the order of the first wake
cdef uint32_t TIMES[NOTED_MAX]           # that each was woken
cdef uint32_t NOTED_COUNT = 0            # atomic
cdef uint32_t NOTES = 0                  # atomic: whether wakes are noted
cdef uint32_t DROPS = 0                  # atomic: 1 + the number of the event whose wake is dropped
cdef pthread_mutex_t mutex
pthread_mutex_init(&mutex, NULL)


cdef void wake_but_one(WaitEvent* self) noexcept nogil:
    wake(self, INT_MAX)


cdef void wake_one_but_one(WaitEvent* self) noexcept nogil:
    wake(self, 1)


cdef void wake(WaitEvent* self, int count) noexcept nogil:
    cdef uint32_t drops
    atomic_fence()
    if atomic_load_u32(&self.waiters) == 0:
        return
    if atomic_load_u32(&NOTES):
        note(self)
    drops = atomic_load_u32(&DROPS)
    if drops and NOTED[drops - 1] == self and atomic_swap_if_u32(&DROPS, drops, 0):
        return
    atomic_add_u32(&self.event, 1)
    wake_on(&self.event, count)


cdef void note(WaitEvent* self) noexcept nogil:
    cdef uint32_t at
    pthread_mutex_lock(&mutex)
    for at in range(NOTED_COUNT):
        if NOTED[at] == self:
            TIMES[at] += 1
            break
    else:
        if NOTED_COUNT < NOTED_MAX:
            NOTED[NOTED_COUNT] = self
            TIMES[NOTED_COUNT] = 1
            atomic_store_u32(&NOTED_COUNT, NOTED_COUNT + 1)
    pthread_mutex_unlock(&mutex)


def address_of_wake():
    return <size_t><void*>wake_but_one


def address_of_wake_one():
    return <size_t><void*>wake_one_but_one


def note_wakes(bint notes):
    """Whether events that are woken are noted from now on."""
    atomic_store_u32(&NOTES, notes)


def keep_lasting():
    """Forget events that were woken once: they were made for one call."""
    cdef uint32_t at
    cdef uint32_t kept = 0
    pthread_mutex_lock(&mutex)
    for at in range(NOTED_COUNT):
        if TIMES[at] > 1:
            NOTED[kept] = NOTED[at]
            kept += 1
    atomic_store_u32(&NOTED_COUNT, kept)
    pthread_mutex_unlock(&mutex)


def noted():
    """How many events were woken while that was noted."""
    return atomic_load_u32(&NOTED_COUNT)


def drop_next(uint32_t number):
    """Drop the next wake of the event of this number that somebody waits for."""
    atomic_store_u32(&DROPS, number + 1)


def sleeps(uint32_t number):
    """Whether a thread sleeps on the event of this number, and will not look again by itself."""
    return number < NOTED_COUNT and sleepers_on(&NOTED[number].event) > 0
