from typing import Any

from pulsarx._pycore.ground.work_pool import SerialWork

class ReceiveQueue:
    """Futures of one consumer that wait for a message, in order. Any thread may call."""

    def __init__(self, consumer: Any, work: SerialWork) -> None:
        """consumer: with take_now, watch and unwatch. work: lets a thread call serve."""

    def add(self, future: Any) -> None:
        """The future gets the next message; at once if one is there."""

    def claim_next(self) -> tuple[Any, Any, Exception | None] | None:
        """(future, message, error) of the future that waited longest, when there is a message for
        it or taking one failed; None: nothing is to be done."""

    def give_up(self, future: Any) -> bool:
        """Forget a future that was cancelled; False: it has been claimed, or was given up."""
