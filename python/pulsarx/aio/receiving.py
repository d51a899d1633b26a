"""Receiving messages in coroutines and listeners, as the consumers and readers of asyncio share
it."""

from __future__ import annotations

import asyncio
from inspect import isawaitable

from pulsarx import errors
from pulsarx._pycore.consume.loop_receives import LoopReceives
from pulsarx.listening.listener_pool import log_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any, NoReturn

    from pulsarx._pycore.message.message import Message

# How long a listener waits, in real time, after a message could not be read: of a disk in trouble.
AGAIN_S = 1.0


class Receiving:
    """Receives from one consumer or reader, in any loop."""

    _listening: Listening | None = None

    def __init__(self, source: Any) -> None:
        """source: with take_now, give_back, watch, unwatch and is_open."""
        self._source = source
        self._receives: list[LoopReceives] = []  # of each loop that it was used in
        self._newest: LoopReceives | None = None

    def _here(self) -> LoopReceives:
        """The receives of the loop that runs here."""
        found = self._newest
        if found is not None and found.is_here():
            return found
        left = [each for each in self._receives if not each.is_over()]
        for found in left:
            if found.is_here():
                break
        else:
            found = LoopReceives(self._source)
            left.append(found)
        self._receives = left
        self._newest = found
        return found

    async def _next(self) -> Any:
        """The next message."""
        receives = self._here()
        message = receives.take()
        if message is not None:
            return message
        turn = receives.wait()
        try:
            await turn
        except BaseException:
            receives.leave(turn)
            raise
        return receives.taken(turn)

    async def _next_of_iteration(self) -> Any:
        if self._listening is not None:
            await _refuse_beside_listener()
        try:
            return await self._next()
        except errors.ForkedError:
            raise
        except errors.AlreadyClosed:
            raise StopAsyncIteration from None

    def _give_back(self, messages: list[Any]) -> None:
        self._source.give_back(messages)

    def _listen(
        self,
        listener: Callable[[Any, Message], Awaitable[object] | object],
        failed: Callable[[Any], Awaitable[object]] | None,
        calls: tuple[str, ...],
    ) -> None:
        """Call the listener with each message. calls: what is refused beside it."""
        for call in calls:
            setattr(self, call, _refuse_beside_listener)
        self._listening = Listening(self, listener, failed)


class Listening:
    """Calls a listener in the loop, one message after another."""

    def __init__(
        self,
        receiving: Receiving,
        listener: Callable[[Any, Message], Awaitable[object] | object],
        failed: Callable[[Any], Awaitable[object]] | None,
    ) -> None:
        """failed: called with a message whose listener raised."""
        self._receiving = receiving
        self._listener = listener
        self._failed = failed
        self._resumed = asyncio.Event()
        self._resumed.set()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def pause(self) -> None:
        self._resumed.clear()

    def resume(self) -> None:
        self._resumed.set()

    async def _run(self) -> None:
        owner: Any = self._receiving
        while True:
            await self._resumed.wait()
            try:
                message = await owner._next()
            except errors.AlreadyClosed:
                return
            except errors.InterruptedByKeyboard:
                raise  # out of the loop, as any KeyboardInterrupt
            except errors.CorruptDataError as error:
                if not getattr(error, "logged", False):
                    log_exception("%s: damaged messages were skipped", owner.topic())
                continue
            except Exception:
                # The message was not skipped, so the next try would meet it at once.
                log_exception("%s: a message could not be read; tried again soon", owner.topic())
                await asyncio.sleep(AGAIN_S)
                continue
            if not self._resumed.is_set():
                owner._give_back([message])  # paused meanwhile
                continue
            await self._hand_over(owner, message)

    async def _hand_over(self, owner: Any, message: Message) -> None:
        try:
            answer = self._listener(owner, message)
            if isawaitable(answer):
                await answer
        except errors.InterruptedByKeyboard:
            raise  # as above
        except Exception as raised:
            if not owner._source.is_open and isinstance(raised, errors.AlreadyClosed):
                return  # closed meanwhile, by itself or by others: the message comes again
            log_exception("%s: the listener raised on %r", owner.topic(), message)
            if self._failed is not None:
                try:
                    await self._failed(message)
                except errors.AlreadyClosed:
                    return  # the message goes to the next consumer
                except Exception:
                    log_exception("%s: %r will not come again now", owner.topic(), message)


async def _refuse_beside_listener(*_: object, **__: object) -> NoReturn:
    raise errors.InvalidConfiguration(
        detail="a listener receives all messages; nothing receives besides"
    )
