"""Facts about accepting connections, on a listener that refuses."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from pulsarx.access.listening import Accepting


class Full:
    """A listener of a process that has no descriptor left."""

    def fileno(self) -> int:
        return 5

    def setblocking(self, _: bool) -> None:
        pass

    def accept(self) -> Any:
        raise OSError(errno.EMFILE, "too many open files")


class Loop:
    """What a loop was asked for."""

    def __init__(self) -> None:
        self.reads = False
        self.later: list[Any] = []

    def add_reader(self, *_: Any) -> None:
        self.reads = True

    def remove_reader(self, *_: Any) -> None:
        self.reads = False

    def call_later(self, _: float, call: Any) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(0, call, (), asyncio.get_running_loop())
        self.later.append(handle)
        return handle


@pytest.mark.parametrize("stops", [False, True])
def test_one_that_rests_goes_on_unless_it_was_stopped(stops: bool) -> None:
    """A service that closed meanwhile accepted again, and waited for who came then."""

    async def rest() -> bool:
        loop = Loop()
        accepting = Accepting(loop, Full(), asyncio.Protocol, 1)  # type: ignore[arg-type]
        accepting._accept()
        assert not loop.reads
        if stops:
            accepting.stop()
        for each in loop.later:
            if not each.cancelled():
                each._run()
        return loop.reads

    assert asyncio.run(rest()) is not stops
