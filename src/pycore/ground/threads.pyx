"""Body of threads.pxd."""

import _thread
import sys
import threading

from cpython.exc cimport PyErr_SetObject, PyErr_WriteUnraisable
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._core.wait_event cimport (
    wait_event_enter, wait_event_leave, wait_event_sleep, wait_event_wake,
)
from pulsarx._pycore.ground.signals cimport signals_check, signals_sleep_ns

cdef extern from "Python.h":
    ctypedef struct PyInterpreterState:
        pass
    ctypedef struct PyThreadState:
        pass
    unsigned long PyThread_get_thread_ident() noexcept
    unsigned long PyThread_start_new_thread(void (*function)(void*) noexcept nogil, void* argument)
    unsigned long THREAD_NOT_STARTED "PYTHREAD_INVALID_THREAD_ID"
    PyInterpreterState* PyInterpreterState_Main() noexcept nogil
    PyThreadState* PyThreadState_New(PyInterpreterState* interpreter) noexcept nogil
    void PyEval_AcquireThread(PyThreadState* state) noexcept nogil
    void PyThreadState_Clear(PyThreadState* state) noexcept
    void PyThreadState_DeleteCurrent() noexcept nogil

cdef extern from "<time.h>":
    struct timespec:
        long tv_sec
        long tv_nsec
    int nanosleep(const timespec* wanted, timespec* left) nogil

cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030D0000
    #define Py_IsFinalizing _Py_IsFinalizing
    #endif
    """
    bint Py_IsFinalizing() noexcept

cdef enum:
    LOOKS_MAX = 100000                   # 100 µs each; a thread begins as soon as a core is free
    MEMORY_NS = 10000000

# Under the GIL:
cdef long starting = 0                   # that were started and have not begun
cdef bint is_exiting = False             # await_beginnings was called
cdef uint64_t fork_count = 0             # of this process, seen as the child


cdef int thread_start(object run, str name) except -1:
    global starting
    if threads_have_ended():             # before Python 3.12 it would be made, and never begin
        raise RuntimeError(f"the thread {name} cannot be started: the interpreter ends")
    starting += 1
    try:
        # A single step, and the thread needs no memory to begin. Thread.start is Python code that a
        # signal handler may leave half done.
        if getattr(_thread.start_new_thread, "__module__", None) == "gevent.thread":
            start_natively((run, name))      # that would make a greenlet
        else:
            start_by_python((run, name))
    except BaseException as error:
        starting -= 1
        if isinstance(error, MemoryError):   # as Python says of the system's
            raise RuntimeError(f"can't start new thread {name}: out of memory") from error
        raise
    if is_exiting:
        await_beginnings()
    return 0


cdef bint threads_have_ended() noexcept:
    return Py_IsFinalizing()


cdef uint64_t fork_number() noexcept nogil:
    return fork_count


cdef int start_by_python(tuple work) except -1:
    try:
        _thread.start_new_thread(_begin, work)
    except RuntimeError as error:
        # From Python 3.12 on it starts none as soon as the main thread has ended. But then threads
        # live on that use clients, and so do exit hooks; what it fears is what await_beginnings
        # prevents.
        if "interpreter shutdown" not in str(error):
            raise
        start_natively(work)
    return 0


cdef int start_natively(tuple work) except -1:
    Py_INCREF(work)
    if PyThread_start_new_thread(run_natively, <void*>work) == THREAD_NOT_STARTED:
        Py_DECREF(work)
        raise RuntimeError(f"can't start new thread {work[1]}")
    return 0


cdef void run_natively(void* held) noexcept nogil:
    cdef PyThreadState* state = NULL
    while state == NULL:                 # Python's own way ends the process without memory
        state = PyThreadState_New(PyInterpreterState_Main())
        if state == NULL:
            await_memory()
    PyEval_AcquireThread(state)
    with gil:
        run_held(held)
        PyThreadState_Clear(state)
    PyThreadState_DeleteCurrent()


cdef void run_held(void* held) noexcept:
    # What a hook of the program raises goes to sys.unraisablehook, as in threads that Python
    # starts: passed on it would skip what gives the GIL up.
    work = <tuple>held
    Py_DECREF(work)
    try:
        _begin(work[0], work[1])
    except BaseException as error:
        PyErr_SetObject(type(error), error)
        PyErr_WriteUnraisable(work[0])


cdef int await_memory() noexcept nogil:
    cdef timespec once
    once.tv_sec, once.tv_nsec = 0, MEMORY_NS
    nanosleep(&once, NULL)
    return 0


def rest_for_memory() -> None:
    """Sleep a moment, in a thread that cannot go on without memory and that others need."""
    with nogil:
        await_memory()


def _begin(run, name) -> None:
    """Run one thread. Without memory it has no name, but runs."""
    global starting
    thread = None
    try:
        thread = _named(name)
    except Exception:
        pass
    starting -= 1
    try:
        run()
    except BaseException as error:
        threading.excepthook(
            threading.ExceptHookArgs((type(error), error, error.__traceback__, thread)))
    finally:
        forget_thread(PyThread_get_thread_ident())


cdef int forget_thread(unsigned long ident) except -1:
    """Have Python list a thread no more, that it has not started and keeps before 3.13."""
    getattr(threading, "_active", {}).pop(ident, None)
    return 0


cdef object _named(str name):
    """Give this thread what `threading` gives to those that it starts."""
    thread = threading.current_thread()
    thread.name = name
    trace, profile = threading.gettrace(), threading.getprofile()
    if trace is not None:
        sys.settrace(trace)
    if profile is not None:
        sys.setprofile(profile)
    return thread


def await_beginnings() -> None:
    """Return when all threads that were started have begun, after ten seconds at most. At exit:
    before Python 3.12, one that begins behind the end of the interpreter takes a state that is
    freed, and the process crashes."""
    global is_exiting
    cdef timespec once
    cdef int look
    is_exiting = True
    once.tv_sec, once.tv_nsec = 0, 100000
    for look in range(LOOKS_MAX):
        if starting <= 0:
            return
        with nogil:
            nanosleep(&once, NULL)


def forget_beginnings() -> None:
    """In a forked child, which has none of these threads."""
    global starting, fork_count
    starting = 0
    fork_count += 1


cdef class OwnThread:
    """See the pxd."""

    def __cinit__(self) -> None:
        self.ended.event = 0
        self.ended.waiters = 0

    def __init__(self, work, str name not None) -> None:
        self.work = work
        self.name = name

    def start(self) -> None:
        """Have it run work(). RuntimeError: the system, or the interpreter that ends, gives no
        thread."""
        self.forks = fork_count
        self.is_begun = True
        try:
            thread_start(self.run, self.name)
        except BaseException:
            self.is_begun = False
            raise

    def run(self) -> None:
        """Run the work of the thread."""
        self.ident = PyThread_get_thread_ident()
        work, self.work = self.work, None
        try:
            work()
        finally:
            del work
            try:
                forget_thread(self.ident)    # else it may be listed when join has returned
            finally:
                self.ident = 0           # another one may get the same number
                self.is_begun = False
                wait_event_wake(&self.ended)

    def runs_here(self) -> bool:
        """Whether the calling thread is this one."""
        return self.ident == PyThread_get_thread_ident()

    def join(self) -> None:
        """Return when it has ended, at once where it was not started, in a forked child, and while
        the interpreter ends. A signal may end it."""
        cdef int64_t sleep_ns
        cdef uint32_t seen
        while self.is_begun and self.forks == fork_count and not threads_have_ended():
            seen = wait_event_enter(&self.ended)
            sleep_ns = signals_sleep_ns(-1)
            if self.is_begun:
                with nogil:
                    wait_event_sleep(&self.ended, seen, sleep_ns)
            wait_event_leave(&self.ended)
            signals_check()
