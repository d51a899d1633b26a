class UnixListener:
    """A Unix socket that listens. Any thread may call. Failures are OSError."""

    def __init__(self) -> None: ...
    def bind(self, address: str) -> None:
        """address: a path, or a name without a file behind a first character of 0."""

    def listen(self, backlog: int) -> None: ...
    def accept(self) -> int:
        """The descriptor of the next connection, which the caller closes. Sleeps until there is
        one, or shutdown was called: OSError. Not for the main thread."""

    def shutdown(self) -> None:
        """Wake the thread that sleeps in accept."""

    def close(self) -> None:
        """May be called twice, and when no thread is in accept."""
