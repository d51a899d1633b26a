"""Body of threads.pxd."""

import _thread
import threading

from pulsarx._pycore.ground.signals cimport signals_arrive_here


cdef int thread_start(object run, str name) except -1:
    if signals_arrive_here():
        # Thread.start is Python code that a signal handler may leave half done: another thread
        # does it, and starting that one is a single step.
        _thread.start_new_thread(_start_named, (run, name))
    else:
        threading.Thread(target=run, name=name, daemon=True).start()
    return 0


def _start_named(run, name) -> None:
    try:
        threading.Thread(target=run, name=name, daemon=True).start()
    except RuntimeError:
        run()
