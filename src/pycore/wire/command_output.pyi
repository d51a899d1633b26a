from collections.abc import Callable

class CommandOutput:
    """Passes on the commands for the other end of a connection, in the order in which they are
    written. Any thread."""

    def __init__(self, write: Callable[[bytes], object], has_room: Callable[[], bool]) -> None:
        """write: sends bytes without waiting. has_room: whether more is to be delivered."""

    def put(self, command: bytes) -> int:
        """Write the bytes of one command, or several."""

    def has_room(self) -> bool:
        """Whether the other end takes more of what may wait. False: there is a wake when it
        does."""

    def let_go(self) -> None:
        """Keep nothing back while what comes next is done, which may take long."""

class SocketOutput(CommandOutput):
    """Collects the commands for the other end of a socket, and sends them."""

    def __init__(
        self, ask: Callable[[], object], room_came: Callable[[], object], unsent_max: int
    ) -> None:
        """ask: has the loop call `take` soon; in any thread. room_came: called when there is room
        that was wanted; in any thread. unsent_max: bytes with which there is no room."""

    def begin(self, descriptor: int) -> None:
        """Send past the loop what the socket takes. By the loop, whose transport has nothing."""

    def end(self) -> None:
        """The loop is about to close the socket: nothing is sent any more."""

    def hold(self) -> None:
        """The calling thread sends what it writes from now on when it calls release."""

    def release(self) -> None: ...
    def take(self, is_direct: bool) -> bytes:
        """Return what the transport is to send. By the loop. is_direct: that has nothing, so the
        socket is asked first, and there may be nothing left."""

    def block(self, is_blocked: bool) -> None:
        """The transport has too much, or not any more. By the loop."""

    @property
    def size(self) -> int:
        """Bytes that were written and have not left."""
