class OpenState:
    """Whether something may still be used. Any thread."""

    what: str
    def __init__(self, what: str) -> None:
        """what: is named by AlreadyClosed."""

    def require_open(self) -> None:
        """AlreadyClosed, or ForkedError in a forked child, unless it is open."""

    def close(self) -> bool:
        """Close it; False: it was not open."""

    def abandon(self) -> None:
        """In a forked child."""

    @property
    def is_open(self) -> bool: ...
    @property
    def is_forked(self) -> bool: ...
