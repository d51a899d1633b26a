"""Facts about what the tests of asyncio wait with."""

from __future__ import annotations

import asyncio

import pytest
from aio_loops import LOOPS, run_in, until


@pytest.mark.parametrize("loop", LOOPS)
def test_a_hang_fails_and_says_where_the_tasks_are(loop: str) -> None:
    """It used to run until the whole run was ended, without a trace."""

    async def waits_for_ever() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        waiting = asyncio.ensure_future(waits_for_ever())
        try:
            await until(waiting.done, 0)
        finally:
            waiting.cancel()

    with pytest.raises(AssertionError, match="in waits_for_ever"):
        run_in(loop)(main())
