from collections.abc import Callable

class OwnerLink:
    """One end of the connection of a client to the process that owns its folder."""

    descriptor: int
    def __init__(self, descriptor: int, out: Callable[[bytes], object] | None = None) -> None:
        """descriptor: of a connected stream socket. out: is called with the bytes instead; it may
        only enqueue them."""

    @property
    def woken_by(self) -> int:
        """The descriptor that becomes readable when `flush` is to be called."""

    def write(self, data: bytes) -> None:
        """Send bytes."""

    def flush(self) -> bool:
        """Give the socket what waits; False: it takes no more now."""

    def end(self) -> None:
        """Send nothing any more."""

ACKNOWLEDGE: int
ACKNOWLEDGE_THROUGH: int
NACK: int
GIVE_BACK: int
FLOW: int
REWIND: int
RESET_DONE: int
SEQUENCE_NOTED: int
RUN: int
CHUNK: int
RESET: int
ACTIVE: int
CLOSED: int
RECORDED: int
SEQUENCE: int

def frame(
    kind: int,
    consumer_id: int,
    first: int = 0,
    second: int = 0,
    third: int = 0,
    fourth: int = 0,
) -> bytes:
    """The bytes of a fixed frame."""
