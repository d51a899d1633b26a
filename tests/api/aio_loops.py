"""Runs coroutines in the loops that PulsarX is tested with."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from typing import Any

LOOPS = ["asyncio", *(["uvloop"] if find_spec("uvloop") else [])]
Run = Callable[[Coroutine[Any, Any, Any]], Any]


def loop_factory(kind: str) -> Callable[[], asyncio.AbstractEventLoop]:
    if kind == "uvloop":
        import uvloop

        return uvloop.new_event_loop  # type: ignore[no-any-return]
    return asyncio.new_event_loop


def run_in(kind: str) -> Run:
    """asyncio.run in a loop of this kind."""

    def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=loop_factory(kind)) as runner:
            return runner.run(coroutine)

    return run


async def turns(count: int = 10) -> None:
    """Let everything run that can, so many times."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition: Callable[[], object], patience_seconds: float = 120) -> None:
    """Let others run until it holds. AssertionError: a hang; it says where the tasks are."""
    loop = asyncio.get_running_loop()
    end = loop.time() + patience_seconds
    while not condition():
        if loop.time() >= end:
            raise AssertionError(f"nothing came within {patience_seconds} s\n{_where_tasks_are()}")
        await asyncio.sleep(0)


def _where_tasks_are() -> str:
    told = io.StringIO()
    for task in asyncio.all_tasks():
        task.print_stack(file=told)
    return told.getvalue()
