# cython: language_level=3
"""Body of loop_queue.pxd."""

import weakref
from asyncio import get_running_loop

from cpython.list cimport PyList_GET_SIZE
from libc.stdint cimport uint64_t
from posix.unistd cimport close, read, write

from pulsarx._core.low_descriptors cimport low_descriptors_hold, low_descriptors_leave
from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.threads cimport threads_have_ended
from pulsarx._pycore.ground.watchers cimport LoopItem
from pulsarx._pycore.ground.weak_reference cimport referent
from pulsarx.ground.fork import at_fork

cdef extern from "sys/eventfd.h":
    int EFD_CLOEXEC
    int EFD_NONBLOCK
    int eventfd(unsigned int initial, int flags)

# By the id of the loop, weakly: a queue lives as long as its loop watches it, or somebody has it.
# No WeakValueDictionary: its callback is Python, which would lose what a signal handler raises in
# it wherever a queue goes.
cdef dict QUEUES = {}
cdef LoopQueue LAST = None               # the one that was asked for last
cdef enum:
    SETTLED_MAX = 1000                   # items that are kept in front of those that wait


cdef class LoopQueue:
    """See the pxd."""

    def __cinit__(self) -> None:
        self.event = -1

    def __init__(self, loop) -> None:
        """In the thread of the loop."""
        self.loop = weakref.ref(loop)
        self.items = []
        self.sending = set()
        low_descriptors_hold()               # where none is left, the next one says so
        self.event = low_descriptors_leave(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))
        if self.event < 0:
            raise OSError("no eventfd could be made for the asyncio loop")
        loop.add_reader(self.event, self.drain)

    def __dealloc__(self) -> None:
        if self.event >= 0:
            close(self.event)

    cdef object make_future(self):
        return referent(self.loop).create_future()

    cdef int call_soon(self, object call, object first, object second) except -1:
        referent(self.loop).call_soon(call, first, second)
        return 0

    cdef bint is_of(self, object loop) noexcept:
        return referent(self.loop) is loop

    cdef int put(self, LoopItem item) except -1:
        self.items.append(item)
        if not self.woken:
            self.wake()
        return 0

    cdef int wake(self) noexcept:
        cdef uint64_t one = 1
        self.woken = True
        write(self.event, &one, 8)           # never full, so it never fails
        return 0

    def drain(self) -> None:
        """Settle what was put; called by the loop."""
        cdef uint64_t count
        cdef list items = self.items
        cdef Py_ssize_t end = PyList_GET_SIZE(items)   # what comes now has woken the loop again
        cdef LoopItem item
        read(self.event, &count, 8)
        self.woken = False
        try:
            while self.settled < end:
                item = items[self.settled]
                try:
                    item.settle()
                except MemoryError:
                    item.settle()        # once more: nobody else settles it
                finally:
                    items[self.settled] = None
                    self.settled += 1
        except BaseException:
            # Ctrl-C: the others are settled when the loop goes on.
            self.wake()
            raise
        finally:
            if self.settled == PyList_GET_SIZE(items):
                items.clear()
                self.settled = 0
            elif self.settled > SETTLED_MAX:
                try:
                    self.items = items[self.settled:]
                    self.settled = 0
                except MemoryError:
                    pass                 # the next time


cdef LoopQueue loop_queue_here():
    global LAST
    loop = get_running_loop()
    cdef LoopQueue found = LAST
    if found is not None and found.is_of(loop):
        return found
    reference = QUEUES.get(id(loop))
    found = reference() if reference is not None else None
    if found is None or not found.is_of(loop):
        for key, each in list(QUEUES.items()):
            if each() is None:
                QUEUES.pop(key, None)
        found = LoopQueue(loop)
        QUEUES[id(loop)] = weakref.ref(found)
    LAST = found
    return found


cdef int loop_fail(object future, object error) except -1:
    from copy import copy

    if future.done():
        return 0
    try:
        told = copy(error)
        if type(told) is not type(error):
            told = error
    except Exception:
        told = error
    future.set_exception(told)
    return 0


# Calls ----------------------------------------------------------------------------------------


cdef class LoopCall(LoopItem):
    """See the pxd."""

    def __call__(self) -> None:
        """Perform it; in a control thread."""
        function, self.function = self.function, None
        arguments, self.arguments = self.arguments, None
        named, self.named = self.named, None
        try:
            if not self.left and control_plane.left_count > control_plane.left_hanging:
                control_plane.wait_for_left(&self.left)
            self.result = function(*arguments, **named)
        except BaseException as error:
            self.error = error
        del function, arguments, named
        self.done = True
        if self.left:
            self.return_result()
        else:
            self.queue.put(self)

    cdef int settle(self) except -1:
        if self.future.done():
            return 0                         # left, or about to be
        if self.error is not None:
            error, self.error = self.error, None
            self.give_back = None            # nothing was made
            self.future.set_exception(error)
        else:
            self.future.set_result(self.result)
        return 0

    def leave(self) -> None:
        """Its caller does not wait any more: what was made for it is given back."""
        if self.left:
            return
        self.left = True
        if self.done and self.give_back is None:
            return                           # nothing was made
        control_plane.left_begun()
        if self.done:
            control_plane.post(self.give_back_now)

    def give_back_now(self) -> None:
        """Return the result; a job."""
        self.return_result()

    cdef int return_result(self) except -1:
        """Its error, if any, is nobody's any more."""
        result, self.result = self.result, None
        give_back, self.give_back = self.give_back, None
        try:
            if self.error is None and give_back is not None:
                give_back(result)
        finally:
            control_plane.left_ended()
        return 0


cdef class LoopEvent(LoopItem):
    """See the pxd."""

    def __call__(self) -> None:
        self.queue.put(self)

    cdef int settle(self) except -1:
        if not self.future.done():
            self.future.set_result(None)
        return 0


def begin_call(function, tuple arguments, dict named, give_back) -> LoopCall:
    """Perform a function in the control plane, for the loop that runs here."""
    cdef LoopCall call = LoopCall.__new__(LoopCall)
    call.queue = loop_queue_here()
    call.future = call.queue.make_future()
    call.function = function
    call.arguments = arguments
    call.named = named
    call.give_back = give_back
    if threads_have_ended():
        call()                               # there what is posted is dropped, and this is awaited
    else:
        control_plane.post(call)
    return call


def loop_event() -> LoopEvent:
    """An event of the loop that runs here."""
    cdef LoopEvent event = LoopEvent.__new__(LoopEvent)
    event.queue = loop_queue_here()
    event.future = event.queue.make_future()
    return event


def _forked() -> None:
    """The loops are the parent's; reading their eventfds here would take its wakes."""
    global LAST
    LAST = None
    QUEUES.clear()


at_fork(__name__, _forked)
