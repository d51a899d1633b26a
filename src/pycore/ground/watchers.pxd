"""A list of callbacks for when messages may have come. For all of pycore; no lock.

Changed by steps that neither allocate nor let another thread run: a finalizer that unwatches may
come in the middle of anything that does.
"""


cdef int watchers_call(list watchers) except -1
"""Call all that are there; a watcher that comes meanwhile looks for itself."""

cdef int watchers_remove(list watchers, object notify) except -1
"""Nothing happens when it is not there."""


cdef class LoopItem:
    """Something that is done, as an asyncio loop is to learn of it; here, so that what may have to
    be told to a loop loads `loop_queue` with the first loop alone."""

    cdef int settle(self) except -1
    """Take notice, in the thread of the loop."""
