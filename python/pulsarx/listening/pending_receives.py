"""The futures of receive_async. Imported by the first call: it needs concurrent.futures."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future

from pulsarx._pycore.message.message import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class PendingReceives:
    """Futures of one consumer that wait for a message, in order. Any thread may call.

    A message is taken and its future claimed under one lock, which cancelling takes too: so no
    message is ever taken for a future that was cancelled. Futures are completed, and their
    callbacks run, outside the lock.
    """

    def __init__(self, consumer: Any, due: Callable[[], None]) -> None:
        """consumer: with take_now, watch and unwatch. due: lets a thread call serve."""
        self.lock = threading.RLock()
        self._consumer = consumer
        self._due = due
        self._futures: deque[MessageFuture] = deque()

    def add(self) -> Future[Message]:
        """A future of the next message; done already when one is there."""
        future = MessageFuture(self)
        with self.lock:
            if not self._futures:
                message = self._consumer.take_now()
                if message is not None:
                    future.claim()
                    future.set_result(message)  # nobody knows the future yet
                    return future
                self._consumer.watch(self._due)
            self._futures.append(future)
        self._due()  # what came before the watch began
        return future

    def serve(self) -> None:
        """Give what is there to whoever waits, first come first served."""
        while True:
            with self.lock:
                if not self._futures:
                    return
                error: Exception | None = None
                message: Message | None = None
                try:
                    message = self._consumer.take_now()
                except Exception as raised:
                    error = raised
                if message is None and error is None:
                    return
                future = self._futures.popleft()
                future.claim()
                self._rest_if_empty()
            if error is not None:
                future.set_exception(error)
            else:
                assert message is not None
                future.set_result(message)

    def give_up(self, future: MessageFuture) -> None:
        """Lock held: nobody waits for this one any more."""
        self._futures.remove(future)
        self._rest_if_empty()

    def _rest_if_empty(self) -> None:
        if not self._futures:
            self._consumer.unwatch(self._due)


class MessageFuture(Future[Message]):
    """A Future of a message. Cancelling it leaves the message to the next receive."""

    def __init__(self, receives: PendingReceives) -> None:
        super().__init__()
        self._receives = receives
        self._claimed = False  # a message or an error is on its way to it
        self._given_up = False

    def claim(self) -> None:
        """Receives' lock held: from now on it cannot be cancelled."""
        self._claimed = True
        self.set_running_or_notify_cancel()

    def cancel(self) -> bool:
        """True: no message was or will be taken for it. False: it has its message."""
        with self._receives.lock:
            if self._claimed:
                return False
            first = not self._given_up
            if first:
                self._given_up = True
                self._receives.give_up(self)
        cancelled = super().cancel()
        if first:
            self.set_running_or_notify_cancel()  # tells those who wait for several futures
        return cancelled
