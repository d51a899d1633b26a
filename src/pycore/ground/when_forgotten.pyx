# cython: language_level=3
"""Body of when_forgotten.pxd."""

import sys

cimport cython

cdef object is_finalizing = sys.is_finalizing    # the names of modules go before the objects


@cython.no_gc            # it is in no cycle, and needs what it refers to until the end
cdef class WhenForgotten:
    """See the pxd."""

    def __init__(self, post, job) -> None:
        """post: of a JobQueue, or of the control plane."""
        self.post = post
        self.job = job

    def __dealloc__(self) -> None:
        if self.job is not None and not is_finalizing():
            self.post(self.job)

    def cancel(self) -> None:
        """Forget the job, because the object was closed."""
        self.job = None


cdef class PostLater:
    """See the pxd."""

    def __init__(self, post, job, noted=None, item=None) -> None:
        self.post = post
        self.job = job
        self.noted = noted
        self.item = item

    def __call__(self, _) -> None:
        if self.noted is not None:
            self.noted.append(self.item)
        self.post(self.job)
