from collections.abc import Callable
from typing import Any
from weakref import ReferenceType

from pulsarx._pycore.ground.owner_link import LinkTaker, OwnerLink
from pulsarx._pycore.wire.command_takers import AckTaker, SendTaker

class FrameCutter(LinkTaker):
    """Cuts what comes over one connection into frames. One thread at a time."""

    sends: dict[int, Callable[[int, bytes], object] | SendTaker]
    acks: dict[int, AckTaker]
    receipts: dict[int, Callable[[int, int, int], object]]
    runs: dict[int, ReferenceType[Any]]
    links: dict[int, Callable[[int, int, int, int, int], object]]
    link: OwnerLink | None  # over which it comes
    frame_size_max: int
    size: int
    def __init__(self, frame_size_max: int) -> None:
        """frame_size_max: bytes that a frame may have, without its total size."""

    def feed(self, data: bytes | memoryview) -> None:
        """Take what came; its memory may be used again on return."""

    def next(self) -> bytes | int | None:
        """The next frame that nobody is told of, without its total size; None: there is none by
        now; a number: it would have so many bytes, which is not allowed. Raises what one who was
        told raises."""
