"""Body of open_state.pxd."""

from pulsarx import errors


cdef class OpenState:
    """See the pxd."""

    def __init__(self, str what not None) -> None:
        """what: is named by AlreadyClosed."""
        self.what = what
        self.value = STATE_OPEN

    cdef int check(self) except -1:
        if self.value == STATE_OPEN:
            return 0
        if self.value == STATE_FORKED:
            raise errors.forked_error(self.owner_pid)
        raise errors.AlreadyClosed(detail=self.what)

    def require_open(self) -> None:
        """AlreadyClosed, or ForkedError in a forked child, unless it is open."""
        self.check()

    def close(self) -> bool:
        """Close it; False: it was not open."""
        if self.value != STATE_OPEN:
            return False
        self.value = STATE_CLOSED
        return True

    def abandon(self) -> None:
        """In a forked child."""
        if self.value != STATE_FORKED:       # else by the child of a child
            self.owner_pid = errors.parent_pid()
        self.value = STATE_FORKED

    @property
    def is_open(self) -> bool:
        return self.value == STATE_OPEN

    @property
    def is_forked(self) -> bool:
        return self.value == STATE_FORKED
