"""Body of control_plane.pxd."""

from libc.stdint cimport UINT64_MAX, int64_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._core.wait_event cimport (
    WaitEvent, wait_event_enter, wait_event_leave, wait_event_sleep, wait_event_wake,
    wait_event_wake_one,
)
from pulsarx._pycore.ground.acting_for cimport act_for, hand_over
from pulsarx._pycore.ground.deadline cimport Deadline
from pulsarx._pycore.ground.failure_log cimport log_failure
from pulsarx._pycore.ground.signals cimport signals_arrive_here
from pulsarx._pycore.ground.threads cimport await_memory, thread_start, threads_have_ended
from pulsarx._pycore.ground.waits cimport (
    lock_was_given, lock_was_taken, others_run_here, wait_on,
)
from pulsarx.ground.fork import at_fork


cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

cdef enum:
    LEFT_PATIENCE_NS = 2000000000        # how long a call waits for those that were left before it
    IDLE_MAX = 4                         # threads that wait for a call; those of a burst end


cdef class ControlCall:
    """A call handed over. Its caller waits; its thread touches it once at the end."""

    def __cinit__(self, function, tuple arguments, give_back) -> None:
        self.function = function
        self.arguments = arguments
        self.give_back = give_back
        self.ended.event = 0
        self.ended.waiters = 0
        self.state = CALL_WAITED_FOR
        self.forks = control_plane.forks
        self.caller = PyThread_get_thread_ident()
        self.number = hand_over()

    cdef int wait(self, WaitEvent* came) except -1:
        cdef uint32_t seen
        while self.state == CALL_WAITED_FOR:
            seen = wait_event_enter(&self.ended)
            # It looks for signals behind the result too: a handler that raises goes first, as it
            # would between any two lines.
            wait_on(&self.ended, seen, -1, came)
            came = NULL
        return 0

    cdef int wait_whole(self, WaitEvent* came) except -1:
        """Like wait. Handlers of signals run when the caller is back in Python."""
        cdef uint32_t seen
        while self.state == CALL_WAITED_FOR:
            seen = wait_event_enter(&self.ended)
            with nogil:
                if came != NULL:
                    wait_event_wake_one(came)
                wait_event_sleep(&self.ended, seen, -1)
            came = NULL
            wait_event_leave(&self.ended)
        return 0

    cdef object take_result(self):
        """Return or raise what the call did, for its caller. Nothing stays here, for the thread
        that performed it may keep it a while."""
        result, self.result = self.result, None
        error, self.error = self.error, None
        self.give_back = None
        if error is not None:
            raise error
        return result

    cdef bint run(self) except -1:
        """Perform the call, unless that is done; in a control thread. True: its caller is to be
        woken."""
        if self.function is not None:
            function, self.function = self.function, None
            arguments, self.arguments = self.arguments, None
            act_for(self.caller, self.number, &self.state, CALL_WAITED_FOR)
            try:
                self.result = function(*arguments)
            except BaseException as error:
                self.error = error
            act_for(0, 0, NULL, 0)
            del function, arguments
            if self.state == CALL_WAITED_FOR:
                self.state = CALL_DONE
                return True
        if self.state == CALL_POSTED:
            if self.error is not None:
                log_left(self.error)
        else:
            self.return_result()
            control_plane.left_ended()
        self.error = None
        return False

    def return_result(self) -> None:
        """Undo what was made for the caller alone, because it has left."""
        result, self.result = self.result, None
        give_back, self.give_back = self.give_back, None
        if self.error is not None or give_back is None:
            return
        try:
            give_back(result)
        except BaseException as error:
            log_left(error)


cdef class ControlPlane:
    """See the pxd. The process has one, `control_plane`."""

    def __init__(self) -> None:
        self.loaded = set()
        self.reset()

    cdef int reset(self) except -1:
        self.calls = []
        self.came.event = 0
        self.came.waiters = 0
        self.free_threads = 0
        self.thread_count = 0
        self.holders = 0
        self.left_count = 0
        self.left_hanging = 0
        self.progress.event = 0
        self.progress.waiters = 0
        return 0

    cpdef object perform(self, object function, tuple arguments=(), object give_back=None):
        cdef ControlCall call
        if not signals_arrive_here() or threads_have_ended():
            return function(*arguments)
        if self.left_count > self.left_hanging:
            self.wait_for_left(NULL)
        call = ControlCall(function, arguments, give_back)
        if others_run_here():
            call.caller = 0                  # its thread does not wait, and who does has no mutex
        self.enqueue(call)
        try:
            call.wait(&self.came)
        except BaseException:
            self.left_count += 1
            if call.state == CALL_DONE:
                self.submit(call)            # for what is left to be done: to return the result
            call.state = CALL_LEFT
            raise
        return call.take_result()

    cdef object perform_held(self, object function, tuple arguments=()):
        lock_was_taken()
        try:
            return self.perform(function, arguments)
        finally:
            lock_was_given()

    cdef int wait_for_left(self, const bint* is_left) except -1:
        cdef Deadline deadline = Deadline(LEFT_PATIENCE_NS // 1000000)
        cdef int64_t left_ns
        cdef uint32_t seen
        while self.left_count > self.left_hanging and (is_left == NULL or not is_left[0]):
            left_ns = deadline.remaining_ns()
            if left_ns == 0:
                self.left_hanging = self.left_count
                break
            seen = wait_event_enter(&self.progress)
            if self.left_count > self.left_hanging and (is_left == NULL or not is_left[0]):
                wait_on(&self.progress, seen, left_ns)
            else:
                wait_event_leave(&self.progress)
        return 0

    cdef int left_begun(self) except -1:
        self.left_count += 1
        wait_event_wake(&self.progress)      # it may be one of those that wait for such calls
        return 0

    cdef int left_ended(self) except -1:
        self.left_count -= 1
        if self.left_hanging > self.left_count:
            self.left_hanging = self.left_count
        wait_event_wake(&self.progress)
        return 0

    cdef object perform_whole(self, object function, tuple arguments):
        cdef ControlCall call
        if not signals_arrive_here():
            return function(*arguments)
        call = ControlCall(function, arguments, None)
        if not self.thread_is_there():
            return function(*arguments)
        give(self, call)
        call.wait_whole(&self.came)
        return call.take_result()

    cdef ControlCall begin(self, object function, tuple arguments):
        cdef ControlCall call
        call = ControlCall(function, arguments, None)
        if not self.thread_is_there():
            return None
        call.number = UINT64_MAX         # with what its caller takes meanwhile that may wait for it
        give(self, call)
        wait_event_wake_one(&self.came)
        return call

    cdef object end(self, ControlCall call):
        if call.forks != self.forks and call.state == CALL_WAITED_FOR:
            raise errors.forked_error(errors.parent_pid())
        call.wait_whole(NULL)
        return call.take_result()

    cpdef int load(self, str name) except -1:
        if name not in self.loaded:
            # The last argument only has the module itself returned, not its package.
            self.perform_whole(__import__, (name, None, None, ("__name__",)))
            self.loaded.add(name)
        return 0

    cdef bint thread_is_there(self) except -1:
        """Have a thread take the next call, and no other; False: no more can be started."""
        if threads_have_ended():
            return False
        if self.free_threads > 0:
            self.free_threads -= 1
            return True
        self.thread_count += 1
        try:
            thread_start(self.run, "pulsarx-control")
        except BaseException as error:
            self.thread_count -= 1
            if not isinstance(error, Exception):
                raise
            return False
        return True

    cdef int enqueue(self, ControlCall call) except -1:
        """Each call gets a thread of its own: one that hangs holds up no other. It is to be woken
        by `came`."""
        if not self.thread_is_there():
            if self.thread_count == 0:
                # There will be none, the interpreter ends: better here than not at all.
                if call.run():
                    wait_event_wake(&call.ended)
                return 0
            self.free_threads -= 1           # one that is busy takes it when it is done
        return give(self, call)

    cdef int submit(self, ControlCall call) except -1:
        """Like enqueue, for a call that nobody waits for."""
        if threads_have_ended():
            return 0         # what clients had was closed before, and this would need imports
        self.enqueue(call)
        wait_event_wake_one(&self.came)
        return 0

    cpdef int post(self, object job) except -1:
        cdef ControlCall call = ControlCall(job, (), None)
        call.state = CALL_POSTED
        return self.submit(call)

    def hold(self) -> None:
        """Keep one thread ready until `let_go`: while the interpreter ends none can be started."""
        self.holders += 1
        if self.thread_count == 0:
            self.thread_count += 1
            self.free_threads += 1
            try:
                thread_start(self.run, "pulsarx-control")
            except BaseException as error:
                self.thread_count -= 1
                self.free_threads -= 1
                if not isinstance(error, Exception):
                    self.holders -= 1
                    raise
                # Calls run where they are made.

    def let_go(self) -> None:
        self.holders -= 1
        if self.holders == 0:
            while self.free_threads > 0:
                self.free_threads -= 1
                self.calls.append(None)
            wait_event_wake(&self.came)

    cdef ControlCall take(self, ControlCall done):
        """The next call; None: the thread ends. done: its caller is woken before this sleeps, or
        before the next call begins; None: nobody waits."""
        cdef WaitEvent* ended = NULL if done is None else &done.ended
        cdef uint32_t seen
        while not self.calls:
            seen = wait_event_enter(&self.came)
            with nogil:
                if ended != NULL:
                    wait_event_wake(ended)   # now it finds the GIL free
                wait_event_sleep(&self.came, seen, -1)
            ended = NULL
            wait_event_leave(&self.came)
        if ended != NULL:
            wait_event_wake(ended)
        while True:
            try:
                return self.calls.pop(0)
            except MemoryError:          # of the list that becomes shorter
                with nogil:
                    await_memory()

    def run(self) -> None:
        """Run one thread of the control plane."""
        cdef ControlCall call, done = None
        while True:
            call = self.take(done)
            if call is None:
                break
            done = call if call.run() else None
            call = None      # what it refers to must not live on while this thread sleeps
            self.free_threads += 1
            if self.free_threads > (IDLE_MAX if self.holders else 0):
                self.free_threads -= 1
                if done is not None:
                    wait_event_wake(&done.ended)
                break
        self.thread_count -= 1

    @property
    def threads(self) -> int:
        return self.thread_count


cdef int give(ControlPlane plane, ControlCall call) except -1:
    """Have the thread take it that is there for it."""
    try:
        plane.calls.append(call)
    except BaseException:
        plane.free_threads += 1
        raise
    return 0


cdef int log_left(object error) except -1:
    return log_failure("pulsarx", error, "%s failed", "a call that no caller waits for")


control_plane = ControlPlane()       # declared in the pxd, for Python callers too
globals()["control_plane"] = control_plane


def _forked() -> None:
    """In a child none of the threads is there, and nothing is to be done for the parent."""
    control_plane.reset()
    control_plane.forks += 1


at_fork(__name__, _forked)
