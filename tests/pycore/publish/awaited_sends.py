"""Sends of coroutines, of which one allocation fails when their end is told, each in turn; for
test_awaited_sends.

awaited_sends.py <folder> <1: they are one batch>

A sync send tells them, in this thread: the one that would is kept busy.
"""

from __future__ import annotations

import asyncio
import ctypes
import logging
import sys
import threading
from pathlib import Path
from typing import Any

import pulsarx
from pulsarx._pycore.publish.loop_send import LoopSender
from pulsarx.aio.control_call import perform
from pulsarx.testing import inspect

SENDS = 6
FRAMES = 12  # functions that are looked at, the nearest first
MEMORY = ctypes.CDLL(None)
MEMORY.memory_fails.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_int, ctypes.c_size_t,
                                ctypes.c_size_t]  # fmt: skip
MEMORY.memory_lasts.restype = ctypes.c_long
BOUNDS = [
    [int(bound, 16) for bound in line.split()[0].split("-")]
    for line in Path("/proc/self/maps").read_text().splitlines()
    if "_linked" in line
]
LOW, HIGH = min(low for low, _ in BOUNDS), max(high for _, high in BOUNDS)


async def run(client: pulsarx.Client, producer: Any, sender: LoopSender, number: int) -> int:
    """How many failed, of the allocations that are asked for by one send: that of a number."""
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        go_on.wait()

    inspect(client).runtime.completions.jobs.post(hold)
    held.wait()
    rest = (None, None, None, None, None, False, None, None, None)
    sends = [sender.send(b"%d" % each, *rest) for each in range(SENDS)]
    MEMORY.memory_fails(number, 1, FRAMES, LOW, HIGH)
    try:
        producer.send(b"the last")
    except (MemoryError, pulsarx.PulsarException):
        pass  # it is told
    finally:
        failed = int(MEMORY.memory_lasts())
        go_on.set()
    await perform(producer.flush)  # it comes back behind them
    untold = [at for at, each in enumerate(sends) if not each.done()]
    assert not untold, f"where allocation {number} failed, {untold} are not told"
    for each in sends:
        each.exception()
    return failed


async def main(folder: str, is_batch: bool) -> None:
    logging.getLogger("pulsarx").setLevel(logging.CRITICAL + 1)
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t", batching_enabled=is_batch)
        sender = LoopSender(producer.send_async, producer.send_open if is_batch else None)
        await run(client, producer, sender, 1 << 30)  # imports what is imported late
        number = 0
        while await run(client, producer, sender, number):
            number += 1
        assert number > 1, number


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2] == "1"))
