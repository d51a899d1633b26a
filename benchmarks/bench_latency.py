"""How long a message takes from send to acknowledge in one thread, batching off."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from floor_build import floors
from measurement import Measurement, shown
from topic_in_folder import TopicInFolder, payloads


@pytest.fixture
def unbatched(scratch: Path) -> Iterator[TopicInFolder]:
    with TopicInFolder(scratch / "latency", batching=False) as opened:
        yield opened


def times_ns(work: Callable[[bytes], object], messages: list[bytes]) -> list[int]:
    clock = time.perf_counter_ns
    taken = []
    for message in messages:
        began = clock()
        work(message)
        taken.append(clock() - began)
    return taken


def bench_round_trip(measurement: Measurement, unbatched: TopicInFolder) -> None:
    messages = payloads(measurement.sizes.round_trips, 100)
    send = unbatched.producer.send
    receive, acknowledge = unbatched.consumer.receive, unbatched.consumer.acknowledge
    late: list[float] = []

    def round_trip(message: bytes) -> None:
        send(message)
        acknowledge(receive())

    def turn() -> float:
        taken = times_ns(round_trip, messages)
        late.append(statistics.quantiles(taken, n=100)[98])
        return statistics.median(taken) / 1000

    turn()
    floor = statistics.median(times_ns(floors().Empty().call, messages))
    measurement.values("latency", turn, measurement.sizes.rounds)
    measurement.add_note(
        f"99th percentile {shown(statistics.median(late) * 1e-9)}, "
        f"an empty call timed the same way {shown(floor * 1e-9)}"
    )
