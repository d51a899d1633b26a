"""Pauses Python's garbage collector while much is made that stays: there is no garbage then, and
looking for it takes longer than making it. Any module may use it.

The collector runs again when the last of those that paused it is done, if it ran before; also in a
child that is forked meanwhile.
"""

cdef class CollectorPaused:
    """A block in which the collector does not run. In the main thread a signal handler can leave it
    paused: there, use `import_paused` and `call_paused`, which are one step."""
    cdef bint entered
