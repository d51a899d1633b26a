"""Runs everything that changes the broker's Python state in threads that no signal enters.

Python runs signal handlers between the instructions of the main thread, at any of them, and
nowhere else. What must not be left half done is therefore not run there: the main thread hands it
over as a call and waits, and the waiting may be interrupted while the work may not. Every other
thread, those of the control plane included, performs its calls itself.

  state of a call   holds                                            left by
  WAITED_FOR        its caller sleeps until the result is there      the end of the work, interrupts
  DONE              result or error, for the caller                  -
  LEFT              the caller got its interrupt and has gone        -
  POSTED            no caller ever waited; what it raises is logged  -

A result that its caller left is given back by the function the caller named. The next call of the
main thread, or of a coroutine, begins when that is done, so that a call that was interrupted or
cancelled can be repeated.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._core.wait_event cimport WaitEvent

cdef enum ControlCallState:
    CALL_WAITED_FOR = 1
    CALL_DONE = 2
    CALL_LEFT = 3
    CALL_POSTED = 4


cdef class ControlCall:
    cdef object function
    cdef tuple arguments
    cdef object give_back                # called with a result its caller left; or None
    cdef object result
    cdef object error
    cdef WaitEvent ended
    cdef uint32_t state                  # ControlCallState
    cdef uint32_t forks                  # of the process that made it
    cdef unsigned long caller            # the thread that did
    cdef uint64_t number                 # of hand_over

    cdef int wait(self, WaitEvent* came) except -1
    """Sleep until it is done. came: wakes the thread that takes it, when this one sleeps."""

    cdef int wait_whole(self, WaitEvent* came) except -1
    cdef object take_result(self)
    cdef bint run(self) except -1


cdef class ControlPlane:
    cdef list calls                      # ControlCalls in their order; None ends a thread
    cdef WaitEvent came                  # one more of them
    cdef int64_t free_threads            # that sleep, or will before they take another call
    cdef int64_t thread_count
    cdef int64_t holders                 # brokers and what else keeps a thread ready
    cdef uint32_t forks                  # of the process before it was this one
    cdef int64_t left_count              # calls that were left and are not over
    cdef int64_t left_hanging            # those of them that no call waits for any more
    cdef WaitEvent progress              # one of them is over
    cdef set loaded                      # names of modules

    cpdef object perform(self, object function, tuple arguments=*, object give_back=*)
    cdef object perform_held(self, object function, tuple arguments=*)
    """Like perform, for a caller that may hold a mutex: no other greenlet of its thread runs
    meanwhile."""

    cdef object perform_whole(self, object function, tuple arguments)
    """Like perform, for native code that holds mutexes: waited for whatever signals arrive. The
    function is brief, and takes no mutex of a producer or dispatcher."""

    cdef ControlCall begin(self, object function, tuple arguments)
    """Like perform_whole, in any thread, which goes on at once; its caller calls `end` whatever
    happens. None: no thread can be started."""

    cdef object end(self, ControlCall call)
    """The result of a call that was begun. ForkedError: by the parent of this process."""

    cpdef int load(self, str name) except -1
    """Import a module that is not loaded with the package, before the import statement that binds
    it. An import that is cut by a signal leaves a native module, NumPy's for one, that can never be
    imported again in this process; so this is waited for whatever signals arrive."""

    cdef int submit(self, ControlCall call) except -1
    cdef int enqueue(self, ControlCall call) except -1
    cdef ControlCall take(self, ControlCall done)
    cdef bint thread_is_there(self) except -1
    cpdef int post(self, object job) except -1
    """Have job() run soon, in a control thread; at any moment. What it raises is logged."""

    cdef int wait_for_left(self, const bint* is_left) except -1
    """Wait until the calls whose callers were interrupted have ended, or hang. is_left: of a call
    that was begun and is left as well: it waits no longer; NULL: of none."""

    cdef int left_begun(self) except -1
    """A call that was begun has nobody who waits for it any more."""

    cdef int left_ended(self) except -1
    """A call that was left is over, its result given back."""

    cdef int reset(self) except -1


cdef ControlPlane control_plane          # of the process
