"""Body of signals.pxd."""

from cpython.exc cimport PyErr_CheckSignals

from pulsarx import errors


cdef int signals_check() except -1:
    try:
        PyErr_CheckSignals()
    except KeyboardInterrupt as caught:
        raise errors.InterruptedByKeyboard("Ctrl-C while waiting") from caught
    except Exception as caught:
        raise errors.Interrupted(f"a signal handler raised {caught!r} while waiting") from caught
    return 0
