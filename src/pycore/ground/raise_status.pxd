"""Turns a status of the core into an exception. Everybody in pycore may call; needs the GIL."""

cdef int raise_status(int status, int error, object what) except -1
"""status: from the core; STATUS_OK raises nothing and returns 0. error: errno where there was one,
else 0.

what: what was done, where, with which values: "append 5242 bytes to ledger 17".
"""

cdef str status_reason(int status)
"""The words raise_status has for it."""
