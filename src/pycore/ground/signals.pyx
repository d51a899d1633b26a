"""Body of signals.pxd."""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint64_t

import threading

from pulsarx import errors
from pulsarx.ground.fork import at_fork

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

# gevent gives the main thread another number for Python; that of the system stays.
cdef unsigned long main_thread = (
    PyThread_get_thread_ident() if threading.main_thread().native_id == threading.get_native_id()
    else threading.main_thread().ident)
cdef uint64_t raised_count = 0


cdef bint signals_arrive_here() noexcept:
    return PyThread_get_thread_ident() == main_thread


cdef int signals_check() except -1:
    global raised_count
    try:
        PyErr_CheckSignals()
    except BaseException as caught:
        raised_count += 1
        if type(caught) is KeyboardInterrupt:
            raise errors.InterruptedByKeyboard(detail="Ctrl-C while waiting") from caught
        raise
    return 0


cpdef uint64_t signals_raised() noexcept:
    return raised_count if signals_arrive_here() else 0


cdef int64_t signals_sleep_ns(int64_t left_ns) noexcept:
    if not signals_arrive_here() or 0 <= left_ns < SIGNAL_LOOK_NS:
        return left_ns
    return SIGNAL_LOOK_NS


def _forked() -> None:
    """The thread that forked is the child's main thread."""
    global main_thread
    main_thread = PyThread_get_thread_ident()


at_fork(__name__, _forked)
