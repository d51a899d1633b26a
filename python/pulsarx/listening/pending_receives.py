"""The futures of receive_async. Imported by the first call: it needs concurrent.futures."""

from __future__ import annotations

from concurrent.futures import Future

from pulsarx._pycore.consume.pending_receives import ReceiveQueue
from pulsarx._pycore.ground.locks import Condition
from pulsarx._pycore.message.message import Message


class MessageFuture(Future[Message]):
    """A Future of a message. Cancelling it leaves the message to the next receive."""

    def __init__(self, receives: ReceiveQueue) -> None:
        super().__init__()
        # The completing thread must not find the lock taken by a thread that was interrupted.
        self._condition = Condition()  # type: ignore[assignment]
        self._receives = receives
        self.claimed = False  # a message or an error is on its way to it

    def cancel(self) -> bool:
        """True: no message was or will be taken for it. False: it has its message."""
        given_up = self._receives.give_up(self)
        if self.claimed:
            return False
        cancelled = super().cancel()
        if given_up:
            self.set_running_or_notify_cancel()  # tells callers that wait for several futures
        return cancelled


def serve(receives: ReceiveQueue) -> None:
    """Complete waiting futures with the messages there are, in order; in a thread of the pool."""
    while (found := receives.claim_next()) is not None:
        future, message, error = found
        future.set_running_or_notify_cancel()
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(message)
