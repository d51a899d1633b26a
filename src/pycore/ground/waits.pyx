"""Body of waits.pxd."""

import sys

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._core.atomic cimport (
    atomic_add_u32, atomic_load_u32, atomic_store_u32, atomic_sub_u32,
)
from pulsarx._core.status cimport STATUS_OK, STATUS_TIMEOUT
from pulsarx._core.wait_event cimport (
    WAIT_EVENTS_MAX, WAIT_EVENTS_POLL_NS, WaitEvent, wait_event_enter, wait_event_leave,
    wait_event_sleep, wait_event_wake, wait_event_wake_one, wait_events_sleep,
)
from pulsarx._pycore.ground.signals cimport signals_check, signals_sleep_ns
from pulsarx._pycore.ground.system_time cimport monotonic_ns
from pulsarx._pycore.ground.threads cimport await_memory, fork_number, thread_start

cdef extern from *:
    """
    #if defined(__x86_64__)
    #define cpu_relax() __builtin_ia32_pause()
    #else
    #define cpu_relax() __asm__ __volatile__("" ::: "memory")
    #endif
    static __thread long locks_of_thread;
    """
    long locks_of_thread
    void cpu_relax() nogil

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef enum:
    LOOKS = 8                            # at an event, before others may have the core

cdef dict modules = sys.modules
cdef uint32_t busy_waits = 0             # how many BusyWaits there are; atomic
cdef uint64_t busy_forks = 0             # the process of which they are; else there are none


cdef class BusyWait:
    """See the pxd."""

    def __cinit__(self):
        global busy_forks
        self.forks = fork_number()
        if busy_forks != self.forks:
            atomic_store_u32(&busy_waits, 0)
            busy_forks = self.forks
        atomic_add_u32(&busy_waits, 1)

    def __dealloc__(self):
        self.end()

    def end(self) -> None:
        """Have calls sleep again, if this was the last one."""
        if not self.ended and self.forks == fork_number():
            atomic_sub_u32(&busy_waits, 1)
        self.ended = True


cdef bint waits_are_busy() noexcept nogil:
    return atomic_load_u32(&busy_waits) != 0 and busy_forks == fork_number()


cdef int wait_on(WaitEvent* event, uint32_t seen, int64_t left_ns,
                 WaitEvent* wakes=NULL) except -1:
    cdef int status
    try:
        hub = hub_of_thread()
        if hub is None:
            left_ns = signals_sleep_ns(left_ns)
            with nogil:
                if wakes != NULL:
                    wait_event_wake_one(wakes)
                status = sleep_here(&event, &seen, 1, left_ns)
        else:
            if wakes != NULL:
                wait_event_wake_one(wakes)
            status = hub_sleep(hub, &event, &seen, 1, left_ns)
    finally:
        wait_event_leave(event)
    signals_check()
    return status


cdef int sleep_on(WaitEvent* event, uint32_t seen, int64_t left_ns) except -1:
    cdef int status
    hub = hub_of_thread()
    if hub is not None:
        return hub_sleep(hub, &event, &seen, 1, left_ns)
    with nogil:
        status = sleep_here(&event, &seen, 1, left_ns)
    return status


cdef int sleep_on_any(WaitEvent** events, const uint32_t* seen, uint32_t count,
                      int64_t left_ns) except -1:
    cdef int status
    hub = hub_of_thread()
    if hub is not None:
        return hub_sleep(hub, events, seen, count, left_ns)
    with nogil:
        status = sleep_here(events, seen, count, left_ns)
    return status


cdef int sleep_here(WaitEvent** events, const uint32_t* seen, uint32_t count,
                    int64_t left_ns) noexcept nogil:
    """Until one of the events moves, asleep or awake."""
    if waits_are_busy():
        return spin(events, seen, count, left_ns)
    if count == 1:
        return wait_event_sleep(events[0], seen[0], left_ns)
    return wait_events_sleep(events, seen, count,
                             left_ns if left_ns < 0 else monotonic_ns() + left_ns)


cdef int spin(WaitEvent** events, const uint32_t* seen, uint32_t count,
              int64_t left_ns) noexcept nogil:
    cdef int64_t until_ns = monotonic_ns() + (
        SPIN_NS if left_ns < 0 or left_ns > SPIN_NS else left_ns)
    cdef uint32_t at
    cdef int look
    while True:
        for look in range(LOOKS):
            for at in range(count):
                if atomic_load_u32(&events[at].event) != seen[at]:
                    return STATUS_OK
            cpu_relax()
        if monotonic_ns() >= until_ns:
            return STATUS_TIMEOUT        # for who waits longer: it looks, and waits once more
        sched_yield()


cdef bint others_run_here() except -1:
    return hub_of_thread() is not None


cdef void lock_was_taken() noexcept:
    global locks_of_thread
    locks_of_thread += 1


cdef void lock_was_given() noexcept:
    global locks_of_thread
    locks_of_thread -= 1


# Greenlets ----------------------------------------------------------------------------------------


cdef object hub_of_thread():
    """gevent's, to which the calling greenlet may hand over its thread; None."""
    if locks_of_thread > 0:
        return None
    module = modules.get("gevent._hub_local")
    if module is None:
        return None
    hub = module.get_hub_if_exists()
    if hub is None or modules["greenlet"].getcurrent() is hub:
        return None
    return hub


cdef int hub_sleep(object hub, WaitEvent** events, const uint32_t* seen, uint32_t count,
                   int64_t left_ns) except -1:
    from gevent import Timeout
    from gevent.hub import Waiter

    cdef list waits = []
    cdef uint32_t at
    cdef bint over = True
    waiter, came = Waiter(hub), hub.loop.async_()
    try:
        came.start(waiter.switch, None)  # first: the loop forgets what is sent before that
        for at in range(count):
            waits.append(hub_wait(events[at], seen[at], came.send))
        hub_watch.add(waits)
        with Timeout(None if left_ns < 0 else left_ns / 1e9, False):
            waiter.get()
            over = False
    finally:
        hub_watch.remove(waits)
        came.stop()
        came.close()
    return STATUS_TIMEOUT if over else STATUS_OK


cdef class HubWait:
    """The wait of one greenlet for one event."""
    cdef WaitEvent* event                # the greenlet keeps it
    cdef uint32_t seen
    cdef object tell                     # wakes the greenlet, from any thread


cdef HubWait hub_wait(WaitEvent* event, uint32_t seen, object tell):
    cdef HubWait self = HubWait.__new__(HubWait)
    self.event, self.seen, self.tell = event, seen, tell
    return self


cdef class HubWatch:
    """Tells greenlets of the events that they wait for. The process has one, `hub_watch`."""
    cdef list waits                      # of greenlets that sleep; under the GIL
    cdef WaitEvent changed               # one was added
    cdef bint has_thread
    cdef uint64_t forks                  # when it was started

    def __cinit__(self) -> None:
        self.waits = []

    cdef int add(self, list waits) except -1:
        if not self.has_thread or self.forks != fork_number():
            self.waits = []              # of greenlets that the parent has
            self.changed.waiters = 0
            self.forks = fork_number()
            self.has_thread = True
            try:
                thread_start(self.run, "pulsarx-greenlets")
            except BaseException:
                self.has_thread = False
                raise
        self.waits += waits
        wait_event_wake(&self.changed)
        return 0

    cdef int remove(self, list waits) except -1:
        for each in waits:
            if each in self.waits:
                self.waits.remove(each)
        return 0

    cdef list moved(self):
        """The waits that are over."""
        cdef HubWait wait
        cdef list moved = []
        for wait in self.waits:
            if atomic_load_u32(&wait.event.event) != wait.seen:
                moved.append(wait)
        return moved

    def run(self) -> None:
        """Run the thread that looks at the events."""
        while True:
            try:
                self.look()
            except MemoryError:
                with nogil:
                    await_memory()

    cdef int look(self) except -1:
        """Tell the greenlets whose waits are over, and sleep until one more is, or comes."""
        cdef WaitEvent* events[WAIT_EVENTS_MAX]
        cdef uint32_t seen[WAIT_EVENTS_MAX]
        cdef HubWait wait
        cdef uint32_t count
        cdef int64_t until_ns
        events[0], seen[0] = &self.changed, wait_event_enter(&self.changed)
        try:
            for wait in self.moved():
                try:
                    wait.tell()
                except MemoryError:
                    raise                # the next look tells it
                except Exception:
                    pass                 # the greenlet has been woken meanwhile, its watcher closed
                self.remove([wait])
            wait = None
            count, until_ns = 1, -1
            for wait in self.waits:
                if count == WAIT_EVENTS_MAX:
                    until_ns = monotonic_ns() + WAIT_EVENTS_POLL_NS
                    break
                events[count], seen[count] = wait.event, wait.seen
                count += 1
            wait = None
            with nogil:
                wait_events_sleep(events, seen, count, until_ns)
        finally:
            wait_event_leave(&self.changed)
        return 0


cdef HubWatch hub_watch = HubWatch()
