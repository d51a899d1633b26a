from collections.abc import Callable

class LinkTaker:
    """Takes what comes over a connection and does it, as far as that needs no Python."""

class OwnerLink:
    """One end of the connection between a process that uses a folder and the one that owns it."""

    descriptor: int
    was_asked: bool  # `wake` was called before `wait` returned
    was_left: bool  # a caller that read has left something to the reading thread by then
    unsent_max: int
    def __init__(self, descriptor: int, out: Callable[[bytes], object] | None = None) -> None:
        """descriptor: of a connected stream socket. out: is called with the bytes instead; it may
        only enqueue them."""

    @property
    def unsent(self) -> int:
        """Bytes that the socket has not taken yet."""

    def has_room(self) -> bool:
        """Whether more is to be sent that may wait. When the socket has taken some, `wait`
        returns."""

    def write(self, data: bytes) -> None:
        """Send bytes. What answers the last of what has come is sent by `wait`."""

    def flush_kept(self) -> None:
        """Send what `write` has kept, and keep nothing more. By the reading thread, before it
        does anything but `wait`."""

    def wake(self) -> int:
        """Have `wait` return soon. In any thread and with any mutex held; one native step."""

    def wait(self, buffer: bytearray | memoryview, reads: bool, timeout_ms: int = -1) -> int:
        """Sleep until something came, or `wake` was called, or the socket took something that
        waited: the number of bytes that are in buffer now; -1: the connection has ended, and all
        that came was read. reads: whether anything is to be read."""

    def let_callers_read(self, taker: LinkTaker) -> None:
        """Let callers that wait read the connection themselves, for `taker`, in place of the
        reading thread. By that thread."""

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
GIVEN_UP: int
EXPIRED: int
TTL: int
SENT_AT: int
RUN: int
CHUNK: int
RESET: int
ACTIVE: int
CLOSED: int
RECORDED: int
SEQUENCE: int
NOT_DEDUPLICATED: int

def frame(
    kind: int,
    consumer_id: int,
    first: int = 0,
    second: int = 0,
    third: int = 0,
    fourth: int = 0,
) -> bytes:
    """The bytes of a fixed frame."""
