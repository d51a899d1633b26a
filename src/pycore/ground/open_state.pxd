"""Says whether an object may still be used. Any module; any thread.

  state    means                                     left by
  OPEN     use it                                    close, a fork
  CLOSED   every call raises AlreadyClosed           -
  FORKED   a child's copy: every call raises         -
           ForkedError and touches nothing
"""

from libc.stdint cimport uint32_t

cdef enum OpenStateValue:
    STATE_OPEN = 1
    STATE_CLOSED = 2
    STATE_FORKED = 3


cdef class OpenState:
    cdef uint32_t value                  # OpenStateValue
    cdef readonly str what               # is closed, for the text
    cdef int owner_pid                   # FORKED: the process that opened it

    cdef int check(self) except -1
    """AlreadyClosed, or ForkedError, unless it is open."""
