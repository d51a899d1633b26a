"""The calls of `pulsarx.testing` for tests that are coroutines. They do not block the loop, whose
tasks do the work meanwhile; a client may be one of `pulsarx.aio`."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from inspect import isawaitable

from pulsarx import errors
from pulsarx.clock import Deadline, ManualClock
from pulsarx.testing import assertions, cleaning, contents
from pulsarx.testing.assertions import Steps, failure_of
from pulsarx.testing.drain import LOOK_SECONDS
from pulsarx.testing.drain import drain as drained
from pulsarx.testing.inspection import client_behind
from pulsarx.testing.other_process import other_process as entered

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path
    from typing import Any, TypeVar

    from pulsarx import aio
    from pulsarx.admin.peeked_message import PeekedMessage
    from pulsarx.client import Client
    from pulsarx.message import Message
    from pulsarx.schema.schema import Schema
    from pulsarx.testing.other_process import OtherProcess as Other

    AnyClient = Client | aio.Client
    R = TypeVar("R")

_TURNS = 20  # of the loop, for its tasks to do what a step of the clock set off


async def published(
    client: AnyClient,
    topic: str,
    *expected: Any,
    key: str | None = None,
    properties: dict[str, str] | None = None,
    schema: Schema[Any] | None = None,
    only: bool = False,
) -> list[Message[Any]]:
    """See pulsarx.testing.published."""
    return await asyncio.to_thread(
        assertions.published,
        client_behind(client),
        topic,
        *expected,
        key=key,
        properties=properties,
        schema=schema,
        only=only,
    )


async def acknowledged(
    client: AnyClient,
    topic: str,
    subscription_name: str,
    *expected: Any,
    key: str | None = None,
    properties: dict[str, str] | None = None,
    schema: Schema[Any] | None = None,
) -> None:
    """See pulsarx.testing.acknowledged."""
    await asyncio.to_thread(
        assertions.acknowledged,
        client_behind(client),
        topic,
        subscription_name,
        *expected,
        key=key,
        properties=properties,
        schema=schema,
    )


async def eventually(
    clock: ManualClock,
    check: Callable[[], R | Awaitable[R]],
    *,
    seconds: float = 60.0,
    timeout_seconds: float = 10.0,
) -> R:
    """Like pulsarx.testing.eventually. The check may be a coroutine function. Between the steps of
    the clock the loop has some turns for its tasks."""
    steps = await asyncio.to_thread(Steps, clock, seconds)
    while True:
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        failure, result = await _attempt(check)
        if failure is None:
            return result  # type: ignore[return-value]  # it was returned
        span = steps.next_seconds()
        if span is None:
            break
        await asyncio.to_thread(clock.advance, span)
    deadline = Deadline(timeout_seconds * 1000)
    while not deadline.expired():
        await asyncio.sleep(LOOK_SECONDS)
        await asyncio.to_thread(clock.advance, 0)
        failure, result = await _attempt(check)
        if failure is None:
            return result  # type: ignore[return-value]
    raise steps.failed(failure, timeout_seconds) from failure


async def drain(client: AnyClient, *topics: str, timeout_seconds: float = 10.0) -> None:
    """See pulsarx.testing.drain."""
    await asyncio.to_thread(
        drained, client_behind(client), *topics, timeout_seconds=timeout_seconds
    )


async def messages(
    client: AnyClient, topic: str, schema: Schema[Any] | None = None
) -> list[Message[Any]]:
    """See pulsarx.testing.messages."""
    return await asyncio.to_thread(contents.messages, client_behind(client), topic, schema)


async def unacknowledged(
    client: AnyClient, topic: str, subscription_name: str
) -> list[PeekedMessage]:
    """See pulsarx.testing.unacknowledged."""
    return await asyncio.to_thread(
        contents.unacknowledged, client_behind(client), topic, subscription_name
    )


async def dead_letters(
    client: AnyClient, topic: str, subscription_name: str, schema: Schema[Any] | None = None
) -> list[Message[Any]]:
    """See pulsarx.testing.dead_letters."""
    return await asyncio.to_thread(
        contents.dead_letters, client_behind(client), topic, subscription_name, schema
    )


async def clean(client: AnyClient, *namespaces: str) -> None:
    """See pulsarx.testing.clean."""
    await asyncio.to_thread(cleaning.clean, client_behind(client), *namespaces)


class OtherProcess:
    """See pulsarx.testing.OtherProcess."""

    def __init__(self, other: Other) -> None:
        """Use `other_process`.

        Args:
            other: The process.
        """
        self._other = other

    @property
    def folder(self) -> Path:
        """The folder."""
        return self._other.folder

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._other.pid

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._other.is_running

    async def kill(self, op: str | None = None, call: int = 1) -> None:
        """See pulsarx.testing.OtherProcess.kill."""
        await asyncio.to_thread(self._other.kill, op, call)

    async def close(self, timeout_seconds: float = 10.0) -> Any:
        """See pulsarx.testing.OtherProcess.close."""
        return await asyncio.to_thread(self._other.close, timeout_seconds)

    async def wait(self, timeout_seconds: float = 10.0) -> Any:
        """See pulsarx.testing.OtherProcess.wait."""
        return await asyncio.to_thread(self._other.wait, timeout_seconds)


@asynccontextmanager
async def other_process(
    folder: str | os.PathLike[str],
    work: Callable[[Client], object] | None = None,
    *,
    kill_at: tuple[str, int] | None = None,
    **options: Any,
) -> AsyncIterator[OtherProcess]:
    """See pulsarx.testing.other_process."""
    entering = entered(folder, work, kill_at=kill_at, **options)
    other = await asyncio.to_thread(entering.__enter__)
    try:
        yield OtherProcess(other)
    finally:
        await asyncio.to_thread(entering.__exit__, None, None, None)


async def _attempt(
    check: Callable[[], R | Awaitable[R]],
) -> tuple[Exception | None, R | None]:
    try:
        answer: Any = check()
        result: R = await answer if isawaitable(answer) else answer
        return failure_of(result), result
    except (AssertionError, errors.PulsarException) as error:
        return error, None
