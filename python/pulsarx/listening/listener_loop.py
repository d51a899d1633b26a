"""Hands messages to a message listener or reader listener, one after another."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.clock import system_clock
from pulsarx.listening.listener_pool import log_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.message.message import Message
    from pulsarx.listening.listener_pool import ListenerPool

# Messages a consumer may hand over before its thread looks whether another consumer waits for one.
TURN = 100
# How long it waits, in real time, after a message could not be read: of a disk in trouble.
AGAIN_MS = 1000


class ListenerLoop:
    """The step of one consumer's or reader's SerialWork. Pausing is for any thread."""

    def __init__(
        self,
        pool: ListenerPool,
        source: Any,
        listener: Callable[[Any, Message], object],
        failed: Callable[[Message], object] | None,
    ) -> None:
        """source: with take_now and is_open. failed: called with a message whose listener
        raised."""
        self._pool = pool
        self._source = source
        self._listener = listener
        self._failed = failed
        self.paused = False

    def turn(self, owner: Any) -> bool:
        """Hand over what is there; True: there may be more, False: nothing until it is told so.

        owner: what the listener gets beside the message. Raises AlreadyClosed once it is closed.
        """
        for _ in range(TURN):
            if self.paused:
                if not self._source.is_open:
                    raise errors.AlreadyClosed(detail="it was closed while its listener was paused")
                return False
            try:
                message = self._source.take_now()
            except errors.AlreadyClosed:
                raise
            except errors.TopicNotFound as error:
                # The owner, another process, has deleted the topic: nothing comes any more.
                raise errors.AlreadyClosed(detail=errors.detail_of(error)) from error
            except errors.CorruptDataError as error:
                if not getattr(error, "logged", False):
                    log_exception("%s: damaged messages were skipped", owner.topic())
                continue
            except Exception:
                # The message was not skipped, so the next try would meet it at once.
                log_exception("%s: a message could not be read; tried again soon", owner.topic())
                system_clock().call_after(AGAIN_MS, owner._work.due)
                return False
            if message is None:
                return False
            self._hand_over(owner, message)
            if self._pool.is_wanted():
                return True
        return True

    def _hand_over(self, owner: Any, message: Message) -> None:
        try:
            self._listener(owner, message)
        except BaseException as raised:
            if not self._source.is_open and isinstance(raised, errors.AlreadyClosed):
                return  # closed meanwhile, by itself or by others: the message comes again
            log_exception("%s: the listener raised on %r", owner.topic(), message)
            if self._failed is not None:
                try:
                    self._failed(message)
                except errors.AlreadyClosed:
                    return  # the message goes to the next consumer
                except BaseException:
                    log_exception("%s: %r will not come again now", owner.topic(), message)
