"""Body of deadline.pxd."""

cimport cython
from libc.stdint cimport INT64_MAX, int64_t

from pulsarx._pycore.ground.system_time cimport monotonic_ns

cdef enum:
    NS_IN_MS = 1000000

cdef int64_t LONGEST_MS = INT64_MAX // NS_IN_MS // 2      # a century and more: for ever


@cython.final
cdef class Deadline:
    """A moment in monotonic time, or never."""

    def __cinit__(self, timeout_ms) -> None:
        """timeout_ms: None waits for ever; 0 and less has passed already."""
        self.due_ns = -1
        if timeout_ms is not None and timeout_ms < LONGEST_MS:
            self.due_ns = monotonic_ns() + (
                <int64_t>(timeout_ms * NS_IN_MS) if timeout_ms > 0 else 0)

    cdef int64_t remaining_ns(self) noexcept:
        if self.due_ns < 0:
            return -1
        return max(self.due_ns - monotonic_ns(), 0)

    def remaining_ms(self) -> int | None:
        """Rounded up, so that 0 means over; None: for ever."""
        if self.due_ns < 0:
            return None
        return (self.remaining_ns() + NS_IN_MS - 1) // NS_IN_MS

    def remaining_seconds(self) -> float | None:
        """The seconds left, as `threading` takes them; None: for ever."""
        if self.due_ns < 0:
            return None
        return self.remaining_ns() / 1e9

    def expired(self) -> bool:
        return self.due_ns >= 0 and monotonic_ns() >= self.due_ns


cdef Deadline deadline_of(object timeout_millis):
    if timeout_millis is not None and not isinstance(timeout_millis, int):
        raise ValueError("Argument timeout_millis is expected to be of type 'int' "
                         f"and not '{type(timeout_millis).__name__}'")
    return Deadline(timeout_millis)
