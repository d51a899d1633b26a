"""Body of collector_paused.pxd."""

from pulsarx.ground.fork import at_fork

cdef extern from "Python.h":
    bint PyGC_Disable() noexcept         # whether it was on
    bint PyGC_Enable() noexcept

cdef Py_ssize_t pauses = 0               # that are not over yet; the GIL guards it
cdef bint was_on = False                 # before the first of them


cdef void pause() noexcept:
    global pauses, was_on
    if pauses == 0:
        was_on = PyGC_Disable()
    pauses += 1


cdef void go_on() noexcept:
    global pauses
    if pauses > 0:                       # a forked child has forgotten them
        pauses -= 1
        if pauses == 0 and was_on:
            PyGC_Enable()


cdef class CollectorPaused:
    """See the pxd."""

    def __enter__(self) -> None:
        self.entered = True
        pause()

    def __exit__(self, kind, error, traceback) -> None:
        if self.entered:
            self.entered = False
            go_on()


def import_paused(name):
    pause()
    try:
        # The last argument only has the module itself returned, not its package.
        return __import__(name, None, None, ("__name__",))
    finally:
        go_on()


def call_paused(function, *arguments):
    pause()
    try:
        return function(*arguments)
    finally:
        go_on()


def _forked() -> None:
    """In a child, where the threads in such blocks are not."""
    global pauses
    if pauses > 0:
        pauses = 0
        if was_on:
            PyGC_Enable()


at_fork(__name__, _forked)
