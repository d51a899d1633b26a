"""Logs what a job raised that nobody waits for. Whatever runs such jobs calls it, in any thread.

It returns where nothing can be logged, as without memory: the thread that runs jobs is needed.
"""

cpdef int log_failure(str logger, object error, str text, object about) except -1
"""Log text % about under a logger, with the traceback of error."""
