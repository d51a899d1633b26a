"""Lets Python's signal handlers run during a blocking call. Everybody in pycore; needs the GIL."""

cdef int signals_check() except -1
"""What a handler raises comes out as errors.Interrupted with it as the cause, as of the official
client; Ctrl-C as errors.InterruptedByKeyboard, which is a KeyboardInterrupt too."""
