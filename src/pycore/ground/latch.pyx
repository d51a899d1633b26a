"""Body of latch.pxd."""

from libc.stdint cimport int64_t, uint32_t

from pulsarx._core.wait_event cimport wait_event_enter, wait_event_leave, wait_event_wake
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.deadline cimport Deadline
from pulsarx._pycore.ground.waits cimport wait_on


cdef class Latch:
    """See the pxd."""

    def __cinit__(self) -> None:
        self.changed.event = 0
        self.changed.waiters = 0

    def set(self) -> None:
        """Let all pass that wait, or will."""
        self.is_set = True
        wait_event_wake(&self.changed)
        told, self.told = self.told, None
        if told is not None:
            for notify in told:
                notify()

    def tell(self, notify) -> None:
        """Call notify() once when it is set, in whatever thread: it may only enqueue something."""
        if self.is_set:
            notify()
        elif self.told is None:
            self.told = [notify]
        else:
            self.told.append(notify)

    def wait(self, timeout=None) -> bool:
        """Return when it is set; False: the time (seconds) is over. A signal may end it."""
        cdef Deadline deadline = Deadline(None if timeout is None else timeout * 1000)
        cdef int64_t left_ns
        cdef uint32_t seen
        while not self.is_set:
            left_ns = deadline.remaining_ns()
            if left_ns == 0:
                return False
            seen = wait_event_enter(&self.changed)
            if self.is_set:
                wait_event_leave(&self.changed)
            else:
                wait_on(&self.changed, seen, left_ns)
        return True

    def wait_or(self, leave) -> None:
        """Like wait; interrupted, leave() is called first, in the control plane."""
        try:
            self.wait()
        except BaseException:
            control_plane.perform(leave)
            raise
