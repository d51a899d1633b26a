"""Starts the threads of PulsarX so that no signal can interrupt the start. For all of pycore."""

cdef int thread_start(object run, str name) except -1
"""Run run() in a daemon thread of this name. RuntimeError: the system, or the interpreter that
ends, gives no thread."""

cdef bint threads_have_ended() noexcept
"""Whether the interpreter ends and finalizers run: threads but the main one are gone, or end as
soon as they want the GIL, so nobody may wait for them."""
