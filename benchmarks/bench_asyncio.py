"""Sending and receiving in asyncio with 1000 coroutines in flight, against as many that wait for a
future and do nothing, in the same loop. CPU time of the whole process: threads that flush count."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from measurement import Measurement

from pulsarx import aio

IN_FLIGHT = 1000
Work = Callable[[], Coroutine[Any, Any, Any]]


async def empty() -> None:
    """A coroutine that waits for a future."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_soon(future.set_result, None)
    await future


async def each_us(work: Work, count: int) -> float:
    """CPU time of one, in microseconds."""
    began = time.process_time()
    for _ in range(0, count, IN_FLIGHT):
        await asyncio.gather(*[work() for _ in range(IN_FLIGHT)])
    return (time.process_time() - began) / count * 1e6


def bench_asyncio_send(measurement: Measurement, scratch: Path) -> None:
    _measure(measurement, scratch, "asyncio_send")


def bench_asyncio_receive(measurement: Measurement, scratch: Path) -> None:
    _measure(measurement, scratch, "asyncio_receive")


def _measure(measurement: Measurement, scratch: Path, row: str) -> None:
    count = measurement.sizes.messages // 10
    payload = b"x" * 100
    costs: list[float] = []

    async def rounds() -> list[float]:
        async with await aio.Client.open(scratch / row, durability="os") as client:
            producer = await client.create_producer("measured")
            consumer = await client.subscribe("measured", "worker")

            async def send() -> None:
                await producer.send(payload)

            async def receive() -> None:
                await consumer.acknowledge(await consumer.receive())

            above: list[float] = []
            for _ in range(measurement.sizes.rounds + 1):
                floor = await each_us(empty, count)
                sent = await each_us(send, count)
                if row == "asyncio_receive":
                    floor = await each_us(empty, count)
                received = await each_us(receive, count)
                cost = sent if row == "asyncio_send" else received
                costs.append(cost)
                above.append(cost - floor)
            return above[1:]  # the first one warmed up

    found = iter(asyncio.run(rounds()))
    measurement.values(row, lambda: next(found), measurement.sizes.rounds)
    measurement.add_note(f"{statistics.median(costs):.3g} µs with the task")
