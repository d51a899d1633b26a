# cython: language_level=3
"""Body of watchers.pxd."""

from cpython.list cimport PyList_GET_SIZE


cdef int watchers_call(list watchers) except -1:
    cdef Py_ssize_t at = PyList_GET_SIZE(watchers)
    # Backwards: one that goes meanwhile moves those behind it, which were called already.
    while at > 0:
        at -= 1
        if at < PyList_GET_SIZE(watchers):
            notify = watchers[at]
            notify()
    return 0


cdef int watchers_remove(list watchers, object notify) except -1:
    try:
        watchers.remove(notify)
    except ValueError:
        pass
    return 0


cdef class LoopItem:
    """See the pxd."""

    cdef int settle(self) except -1:
        raise NotImplementedError
