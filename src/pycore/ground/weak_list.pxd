"""Objects that are held weakly, and found again as long as somebody else holds them. Any thread may
call; needs the GIL.
"""

cdef class WeakList:
    """Like weakref.WeakSet, without its callbacks: a callback is Python code that runs wherever the
    last reference goes, in the middle of a call of the main thread for one; what a signal handler
    raises there is lost. And without the weakref module, which is dear to import."""

    cdef dict references      # by their own addresses, in the order they came
    cdef Py_ssize_t prune_at
