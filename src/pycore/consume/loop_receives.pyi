from asyncio import Future
from typing import Any

from pulsarx._pycore.message.message import Message

class LoopReceives:
    """Coroutines of one loop that wait for messages of one consumer, in order."""

    def __init__(self, consumer: Any) -> None:
        """consumer: with take_now, give_back, watch and unwatch. In the thread of the loop."""

    def is_here(self) -> bool:
        """Whether it is of the loop that runs in this thread."""

    def is_over(self) -> bool:
        """Whether its loop is closed; then nothing is kept for it any more."""

    def take(self) -> Message | None:
        """The next message; None: `wait` for it."""

    def wait(self) -> Future[None]:
        """A future that is completed when `taken` has a message for its coroutine."""

    def taken(self, turn: Future[None]) -> Message:
        """The message of a turn that has come; to be called at once when its coroutine runs."""

    def leave(self, turn: Future[None]) -> None:
        """The coroutine does not take its turn."""
