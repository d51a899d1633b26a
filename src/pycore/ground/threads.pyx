"""Body of threads.pxd."""

import _thread
import threading

from pulsarx._pycore.ground.signals cimport signals_arrive_here

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

cdef long starting = 0                   # that were started and have not begun; under the GIL


cdef int thread_start(object run, str name) except -1:
    global starting
    starting += 1
    try:
        if signals_arrive_here():
            # Thread.start is Python code that a signal handler may leave half done: another thread
            # does it, and starting that one is a single step.
            _thread.start_new_thread(_start_named, (run, name))
        else:
            threading.Thread(target=_begin, args=(run,), name=name, daemon=True).start()
    except BaseException:
        starting -= 1
        raise
    return 0


cdef bint threads_have_ended() noexcept:
    return Py_IsFinalizing()


def _start_named(run, name) -> None:
    global starting
    try:
        threading.Thread(target=_begin, args=(run,), name=name, daemon=True).start()
    except RuntimeError:
        _begin(run)
    except BaseException:
        starting -= 1
        raise


def _begin(run) -> None:
    global starting
    starting -= 1
    run()


def await_beginnings() -> None:
    """Return when all threads that were started have begun, after ten seconds at most. At exit:
    before Python 3.12, one that begins behind the end of the interpreter takes a state that is
    freed, and the process crashes."""
    cdef timespec once
    cdef int look
    once.tv_sec, once.tv_nsec = 0, 100000
    for look in range(LOOKS_MAX):
        if starting <= 0:
            return
        with nogil:
            nanosleep(&once, NULL)


def forget_beginnings() -> None:
    """In a forked child, which has none of these threads."""
    global starting
    starting = 0
