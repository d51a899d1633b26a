from typing import final

@final
class Deadline:
    """A deadline: how long a caller still waits, in real time. For the thread that made it."""

    def __init__(self, timeout_ms: float | None) -> None:
        """timeout_ms: None waits for ever; 0 and less has passed already."""

    def remaining_ms(self) -> int | None:
        """Rounded up, so that 0 means over; None: for ever."""

    def remaining_seconds(self) -> float | None:
        """The seconds left, as `threading` takes them; None: for ever."""

    def expired(self) -> bool: ...
