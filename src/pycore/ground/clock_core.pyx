"""Body of clock_core.pxd."""

cimport cython
from libc.stdint cimport INT64_MAX, INT64_MIN, UINT64_MAX, int64_t, uint32_t, uint64_t

from pulsarx._core.atomic cimport (
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock,
)
from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.timer_wheel cimport (
    TIMER_NONE, TimerNode, timer_wheel_cancel, timer_wheel_free, timer_wheel_init,
    timer_wheel_insert, timer_wheel_next_due, timer_wheel_pop,
)
from pulsarx._core.wait_event cimport (
    wait_event_enter, wait_event_leave, wait_event_sleep, wait_event_wake,
)
from pulsarx._pycore.ground.failure_log cimport log_failure
from pulsarx._pycore.ground.system_time cimport monotonic_ns, wall_ns
from pulsarx._pycore.ground.threads cimport await_memory, thread_start

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

cdef enum:
    NS_IN_MS = 1000000
    AGAIN_MS = 20                        # until what had no memory is called again

# A wheel's milliseconds are unsigned: a clock's, plus half of what there is.
cdef uint64_t ORIGIN_MS = <uint64_t>1 << 63
# How long the thread of a system clock outlives its last timer.
IDLE_SECONDS = 60.0


cdef int64_t clamped_ms(object ms) except? -1:
    """Any int as milliseconds of a clock; beyond its bounds: the nearest."""
    if ms > INT64_MAX - 1:
        return INT64_MAX - 1
    if ms < INT64_MIN:
        return INT64_MIN
    return ms


cdef inline int64_t ms_after(int64_t ns) noexcept:
    """Rounded up: a timer may be late by less than a millisecond, never early."""
    return ns // NS_IN_MS + (1 if ns % NS_IN_MS > 0 else 0)


@cython.no_gc_clear      # one that is in the wheel needs its clock; the clock lets go of it
cdef class Timer:
    """A callback that fires at most once. Any thread may cancel it."""

    def __cinit__(self) -> None:
        self.node = TIMER_NONE

    cpdef bint cancel(self) except -1:
        if self.callback is None:
            return False
        callback, self.callback = self.callback, None
        self.clock.take_out(self)
        return True

    def is_waiting(self) -> bool:
        return self.callback is not None


def wall_ms() -> int:
    """The time of day, whatever clock a client was given."""
    return wall_ns() // NS_IN_MS


def monotonic_ms() -> int:
    """Real time from an arbitrary start; it never goes back."""
    return monotonic_ns() // NS_IN_MS


def monotonic_us() -> int:
    """Like monotonic_ms, in microseconds: for measurements."""
    return monotonic_ns() // 1000


cdef class ClockCore:
    """Base of the clocks. Any thread may use one."""

    def __cinit__(self) -> None:
        pthread_mutex_init(&self.mutex, NULL)
        timer_wheel_init(&self.wheel)
        self.waiting = set()

    def __dealloc__(self) -> None:
        timer_wheel_free(&self.wheel)
        pthread_mutex_destroy(&self.mutex)

    cdef int64_t now(self) noexcept:
        return 0

    def now_ms(self) -> int:
        """Return milliseconds since 1970 in UTC."""
        return self.now()

    def steady_ms(self) -> int:
        """Return milliseconds from an arbitrary start, for how long something takes: a time of day
        that is set does not change it."""
        return self.monotonic()

    cpdef Timer call_at(self, due_ms, callback):
        """Call back once the time is there, never before; at once if it has passed.

        Args:
            due_ms: The time in milliseconds since 1970.
            callback: Must not block: it holds up all other timers. What it raises is logged.

        Returns:
            The timer, which can be cancelled.

        Raises:
            MemoryError: There is no memory for another timer.
        """
        return self.arm(clamped_ms(due_ms), callback)

    cdef Timer arm(self, int64_t due_ms, object callback):
        raise NotImplementedError

    cdef int64_t monotonic(self) noexcept:
        return self.now()

    cdef Timer arm_monotonic(self, int64_t due_ms, object callback):
        return self.arm(due_ms, callback)

    def call_monotonic(self, due_ms, callback) -> Timer:
        """Call back like call_at, at a time that a publish rate says.

        Args:
            due_ms: The time in milliseconds of steady_ms.
            callback: As call_at.

        Returns:
            The timer, which can be cancelled.

        Raises:
            MemoryError: There is no memory for another timer.
        """
        return self.arm_monotonic(clamped_ms(due_ms), callback)

    cdef Timer timer(self, int64_t due_ms, object callback):
        cdef Timer made = Timer.__new__(Timer)
        made.clock = self
        made.due_ms = due_ms
        made.callback = callback
        return made

    cdef int push(self, Timer timer, int64_t wheel_ms) except -1:
        cdef int status
        self.waiting.add(timer)
        pthread_mutex_lock(&self.mutex)
        self.armed_count += 1
        status = timer_wheel_insert(&self.wheel, <uint64_t>wheel_ms + ORIGIN_MS, self.armed_count,
                                    <uint64_t><size_t><void*>timer, &timer.node)
        pthread_mutex_unlock(&self.mutex)
        if status != STATUS_OK:
            self.waiting.discard(timer)
            raise MemoryError(f"arm a timer beside {self.wheel.count} others: out of memory")
        return 0

    cdef Timer pop(self, int64_t wheel_ms):
        cdef TimerNode node
        cdef Timer found = None
        pthread_mutex_lock(&self.mutex)
        if timer_wheel_pop(&self.wheel, <uint64_t>wheel_ms + ORIGIN_MS, &node):
            found = <Timer><void*><size_t>node.second
            found.node = TIMER_NONE
        pthread_mutex_unlock(&self.mutex)
        if found is not None:
            self.waiting.discard(found)
        return found

    cdef int take_out(self, Timer timer) except -1:
        cdef bint was_there
        pthread_mutex_lock(&self.mutex)
        was_there = timer.node != TIMER_NONE
        if was_there:
            timer_wheel_cancel(&self.wheel, timer.node)
            timer.node = TIMER_NONE
        pthread_mutex_unlock(&self.mutex)
        if was_there:
            self.waiting.discard(timer)
        return 0

    cdef int64_t earliest(self) noexcept:
        cdef uint64_t due_ms
        pthread_mutex_lock(&self.mutex)
        due_ms = timer_wheel_next_due(&self.wheel)
        pthread_mutex_unlock(&self.mutex)
        return INT64_MAX if due_ms == UINT64_MAX else <int64_t>(due_ms - ORIGIN_MS)

    def deliver_at_ms(self, deliver_after) -> int:
        """Return the time that lies deliver_after ahead, in milliseconds since 1970; now for one
        that is past.

        Args:
            deliver_after: A timedelta.

        Raises:
            ValueError: It is none.
        """
        from datetime import timedelta

        if not isinstance(deliver_after, timedelta):
            raise ValueError(
                "Argument deliver_after is expected to be either None or of type 'timedelta'")
        return self.now() + max(round(deliver_after.total_seconds() * 1000), 0)

    @property
    def timer_count(self) -> int:
        """How many timers wait."""
        return self.wheel.count

    cdef int forget(self) except -1:
        """In a forked child: no timer of the parent fires here. Another thread may have held the
        mutex, or changed the wheel, in the moment of the fork."""
        cdef Timer timer
        for timer in self.waiting:
            timer.node = TIMER_NONE          # it is cancelled without touching the new wheel
        self.waiting = set()
        pthread_mutex_init(&self.mutex, NULL)
        timer_wheel_init(&self.wheel)        # the parent's nodes are left behind
        return 0

    def forget_timers(self) -> None:
        """Forget all timers, in a forked child: those of before say that they wait, and never
        fire."""
        self.forget()


cdef class SystemClockCore(ClockCore):
    """The time of day. Its thread starts with the first timer and ends a minute after the last.

    The wheel counts whole milliseconds of monotonic time.
    """

    def __cinit__(self) -> None:
        self.earlier.event = 0
        self.earlier.waiters = 0
        self.sleeps_until_ns = INT64_MIN

    cdef int64_t now(self) noexcept:
        return wall_ns() // NS_IN_MS

    cdef Timer arm(self, int64_t due_ms, object callback):
        cdef Timer timer = self.timer(due_ms, callback)
        cdef int64_t now_ms = self.now()
        cdef int64_t delay_ms = due_ms - now_ms if due_ms > now_ms else 0
        timer.by_wall = True
        return self.armed_after(timer, delay_ms)

    cdef int64_t monotonic(self) noexcept:
        return monotonic_ns() // NS_IN_MS

    cdef Timer arm_monotonic(self, int64_t due_ms, object callback):
        cdef Timer timer = self.timer(due_ms, callback)
        self.push(timer, due_ms)
        try:
            self.armed(due_ms)
        except BaseException:
            timer.cancel()
            raise
        return timer

    cpdef Timer call_after(self, delay_ms, callback):
        """Call back after a while, whatever becomes of the time of day.

        Args:
            delay_ms: In how many milliseconds.
            callback: As call_at.

        Returns:
            The timer, which can be cancelled.

        Raises:
            MemoryError: There is no memory for another timer.
        """
        cdef int64_t clamped = max(clamped_ms(delay_ms), <int64_t>0)
        cdef int64_t now_ms = self.now()
        cdef int64_t due_ms = now_ms + clamped if clamped < INT64_MAX - now_ms else INT64_MAX - 1
        return self.armed_after(self.timer(due_ms, callback), clamped)

    cdef Timer armed_after(self, Timer timer, int64_t delay_ms):
        cdef int64_t now_ms = ms_after(monotonic_ns())
        cdef int64_t wheel_ms = INT64_MAX - 1
        if delay_ms < INT64_MAX - now_ms:
            wheel_ms = now_ms + delay_ms
        self.push(timer, wheel_ms)
        try:
            self.armed(wheel_ms)
        except BaseException:
            timer.cancel()
            raise
        return timer

    cdef int armed(self, int64_t wheel_ms) except -1:
        """A timer is in the wheel: see to it that the thread wakes in time."""
        if self.stopped:
            return 0
        if not self.has_thread:
            self.has_thread = True       # first: a finalizer that arms now starts no second one
            try:
                thread_start(self.run, "pulsarx-clock")
            except BaseException:
                self.has_thread = False
                raise
        elif wheel_ms < INT64_MAX // NS_IN_MS and wheel_ms * NS_IN_MS < self.sleeps_until_ns:
            wait_event_wake(&self.earlier)
        return 0

    def run(self) -> None:
        """Run the thread of the clock."""
        cdef Timer timer
        self.thread = PyThread_get_thread_ident()
        while not self.stopped:
            timer = self.pop(monotonic_ns() // NS_IN_MS)
            if timer is None:
                if not self.sleep():
                    break
            elif timer.by_wall and timer.due_ms > self.now():
                # The time of day was set back since.
                push_again(self, timer, ms_after(monotonic_ns()) + timer.due_ms - self.now())
            elif not fire(timer):
                push_again(self, timer, ms_after(monotonic_ns()) + AGAIN_MS)
            timer = None      # its callback must not live on while this thread sleeps
        self.thread = 0
        self.has_thread = False
        wait_event_wake(&self.earlier)

    cdef bint sleep(self) except -1:
        """Until a timer is due, or one that is due earlier was armed; False: the thread ends."""
        cdef uint32_t seen = wait_event_enter(&self.earlier)
        cdef int64_t due_ms = self.earliest()
        cdef int64_t left_ns
        cdef bint idle = due_ms == INT64_MAX
        cdef int64_t now_ns = monotonic_ns()
        if idle:
            self.sleeps_until_ns = INT64_MAX
            left_ns = <int64_t>(<double>IDLE_SECONDS * 1e9)    # without memory
        elif due_ms >= INT64_MAX // NS_IN_MS:
            self.sleeps_until_ns = INT64_MAX
            left_ns = -1
        else:
            self.sleeps_until_ns = due_ms * NS_IN_MS
            left_ns = max(self.sleeps_until_ns - now_ns, <int64_t>0)
        # What was armed before this saw no reason to wake the thread.
        if self.earliest() == due_ms and not self.stopped:
            with nogil:
                wait_event_sleep(&self.earlier, seen, left_ns)
        wait_event_leave(&self.earlier)
        self.sleeps_until_ns = INT64_MIN     # awake: arming now need not wake it
        return not (idle and self.earliest() == INT64_MAX
                    and monotonic_ns() - now_ns >= left_ns) and not self.stopped

    cdef int forget(self) except -1:
        ClockCore.forget(self)
        self.has_thread = False
        self.thread = 0
        self.stopped = False
        self.sleeps_until_ns = INT64_MIN
        self.earlier.waiters = 0
        return 0

    def stop(self) -> None:
        """End the thread; timers stay unfired. Returns when no callback runs any more."""
        cdef uint32_t seen
        self.stopped = True
        if self.thread == PyThread_get_thread_ident():
            return
        while self.has_thread:
            seen = wait_event_enter(&self.earlier)
            wait_event_wake(&self.earlier)
            if self.has_thread:
                with nogil:
                    wait_event_sleep(&self.earlier, seen, 10 * NS_IN_MS)
            wait_event_leave(&self.earlier)


cdef class ManualClockCore(ClockCore):
    """A clock that stands still; `pulsarx.clock.ManualClock` moves it."""

    def __init__(self, start_ms) -> None:
        self.now_value_ms = clamped_ms(start_ms)

    cdef int64_t now(self) noexcept:
        return self.now_value_ms

    cdef Timer arm(self, int64_t due_ms, object callback):
        cdef Timer timer = self.timer(due_ms, callback)
        self.push(timer, due_ms)
        return timer

    def call_after(self, delay_ms, callback) -> Timer:
        """Call back after a while.

        Args:
            delay_ms: In how many milliseconds of this clock.
            callback: As call_at.

        Returns:
            The timer, which can be cancelled.

        Raises:
            MemoryError: There is no memory for another timer.
        """
        return self.arm(clamped_ms(self.now_value_ms + delay_ms), callback)

    def next_due_ms(self) -> int | None:
        """Return when the next timer fires, in milliseconds since 1970; None when there is none."""
        cdef int64_t due_ms = self.earliest()
        return None if due_ms == INT64_MAX else due_ms

    def set_now_ms(self, now_ms) -> None:
        """Set the time, and fire nothing.

        Args:
            now_ms: Milliseconds since 1970.
        """
        self.now_value_ms = clamped_ms(now_ms)

    def fire_next(self, until_ms) -> bool:
        """Fire the earliest timer due by then, at its time.

        Args:
            until_ms: Milliseconds since 1970.

        Returns:
            Whether there was one.
        """
        cdef Timer timer = self.pop(clamped_ms(until_ms))
        if timer is None:
            return False
        self.now_value_ms = max(self.now_value_ms, timer.due_ms)
        if not fire(timer):
            push_again(self, timer, self.now_value_ms + AGAIN_MS)
        return True


cdef int push_again(ClockCore clock, Timer timer, int64_t wheel_ms) except -1:
    """A timer that was popped; it is not lost when there is no memory."""
    while True:
        try:
            clock.push(timer, wheel_ms)
            break
        except MemoryError:
            with nogil:
                await_memory()
    if timer.callback is None:
        clock.take_out(timer)                # cancelled while it was in no wheel
    return 0


cdef bint fire(Timer timer) except -1:
    """Call back, unless it was cancelled meanwhile. Whatever it raises, the others must fire.
    False: it had no memory, and is to be fired again."""
    if timer.callback is None:
        return True
    callback, timer.callback = timer.callback, None
    try:
        callback()
    except BaseException as error:
        log_failure("pulsarx.clock", error, "a timer's callback failed: %r", callback)
        if isinstance(error, MemoryError):
            timer.callback = callback
            return False
    return True
