class MemoryLimit:
    """Limits how many bytes of messages the producers of a client may have on their way."""

    limit: int
    used: int
    def __init__(self, limit: int) -> None:
        """limit: in bytes, from 1."""
