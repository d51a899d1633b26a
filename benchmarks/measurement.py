"""How a row is measured: in pairs, floor and path in turns, and the median of the pairs' ratios.

A machine that others use too is never twice as fast as before, but for a second it mostly is what
it was; so only what was measured side by side is compared.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reach import BY_NAME


@dataclass(frozen=True)
class Sizes:
    """How much is measured. quick proves that everything runs; its figures mean nothing."""

    quick: bool = False
    rounds: int = 11
    messages: int = 200_000  # of 100 bytes, a round
    table_messages: int = 1_000_000
    kib_messages: int = 32_768
    codec_messages: int = 16_000  # of 1 KiB
    schema_records: int = 2_000  # encoded or decoded in a turn
    large_message: int = 100_000_000
    compacted_messages: int = 10_000_000
    cold_messages: int = 600 * 1024  # 600 MiB: a round begins at least two ledgers
    cold_rounds: int = 4
    durable_sends: int = 300
    thread_sends: int = 200  # of each of 16
    transactions: int = 60
    round_trips: int = 20_000
    folder_bytes: tuple[int, int] = (1_000_000_000, 10_000_000_000)
    starts: int = 11
    held: int = 1_000_000
    delayed: int = 1_000_000
    delayed_rounds: int = 3
    timers: int = 10_000_000
    idle_seconds: float = 2.0
    idle_topics: int = 10_000
    idle_subscriptions: int = 400
    client_bytes: int = 40_000_000  # a turn, but no more than `messages`
    client_sends: int = 1_000
    client_rounds: int = 7
    load_messages: int = 3_000_000  # in batches; a hundredth of them one by one
    spark_rounds: int = 5
    spark_read_rounds: int = 21  # of what takes a third of a second, and varies by a fifth
    spark_topic_rounds: int = 161  # whose limit is two hundredths away: the median's error is one
    spark_warmups: int = 2
    spark_messages: int = 5_000_000
    spark_messages_large: int = 20_000_000
    spark_batches: int = 11  # of a stream; the first is not counted
    spark_calls: int = 2_000
    flights: int = 1_000_000
    small_messages: int = 300_000
    small_pieces: int = 1_000  # topics, or ledgers of one topic
    attached: int = 200
    planned: int = 10_000


FULL = Sizes()
QUICK = Sizes(
    quick=True,
    rounds=1,
    messages=2_000,
    table_messages=2_000,
    kib_messages=512,
    codec_messages=200,
    schema_records=20,
    large_message=6_000_000,  # in chunks all the same
    compacted_messages=5_000,
    cold_messages=4_096,
    cold_rounds=1,
    durable_sends=5,
    thread_sends=3,
    transactions=2,
    round_trips=200,
    folder_bytes=(1_000_000, 10_000_000),
    starts=1,
    held=5_000,
    delayed=2_000,
    delayed_rounds=1,
    timers=20_000,
    idle_seconds=0.1,
    idle_topics=50,
    idle_subscriptions=10,
    client_bytes=200_000,
    client_sends=10,
    client_rounds=1,
    load_messages=10_000,
    spark_rounds=1,
    spark_read_rounds=1,
    spark_topic_rounds=1,
    spark_warmups=0,
    spark_messages=8_000,
    spark_messages_large=8_000,
    spark_batches=2,
    spark_calls=5,
    flights=800,
    small_messages=600,
    small_pieces=20,
    attached=5,
    planned=10,
)


class Measurement:
    """Fills one row. Belongs to one benchmark function."""

    def __init__(self, benchmark: Any, sizes: Sizes) -> None:
        self.benchmark = benchmark
        self.sizes = sizes

    def pairs(
        self,
        row: str,
        floor: Callable[[], object],
        path: Callable[[], object],
        *,
        before: Callable[[], object] | None = None,
        between: Callable[[], object] | None = None,
        rounds: int | None = None,
        warmup_rounds: int = 1,
        floor_count: int = 1,
        path_count: int = 1,
        names: tuple[str, str] = ("floor", "path"),
        note: Callable[[], str] | None = None,
    ) -> None:
        """Measure floor, then path, rounds times; the row gets each pair's ratio.

        floor_count, path_count: how many messages (or whatever is compared) one turn handles.
        before: run before the floor; between: between the two. Neither is timed.
        """
        rounds, warmup_rounds = self._rounds(rounds or self.sizes.rounds, warmup_rounds)
        floor_seconds: list[float] = []

        def setup() -> None:
            if before is not None:
                before()
            began = time.perf_counter()
            floor()
            floor_seconds.append(time.perf_counter() - began)
            if between is not None:
                between()

        self.benchmark.pedantic(path, setup=setup, rounds=rounds, warmup_rounds=warmup_rounds)
        path_each = [seconds / path_count for seconds in self.benchmark.stats.stats.data]
        floor_each = [seconds / floor_count for seconds in floor_seconds[-rounds:]]
        pairs = list(zip(floor_each, path_each))
        rates = not BY_NAME[row].at_most
        texts = [
            f"{name} {shown(statistics.median(each))}"
            for name, each in zip(names, (floor_each, path_each))
        ]
        if note is not None:
            texts.append(note())
        self.keep(row, [f / p if rates else p / f for f, p in pairs], ", ".join(texts))

    def units(
        self,
        row: str,
        messages: list[Any],
        path: Callable[[], object],
        *,
        before: Callable[[], object] | None = None,
        count: int | None = None,
    ) -> None:
        """As pairs, with an empty call for each message as the floor. count: messages a turn."""
        from floor_build import floors

        empty = floors().Empty().call

        def floor() -> None:
            for message in messages:
                empty(message)

        # In front of the floor: what it does (draining a topic) must not come between the two.
        self.pairs(
            row,
            floor,
            path,
            before=before,
            floor_count=len(messages),
            path_count=count or len(messages),
            names=("empty call", "a message"),
        )

    def values(self, row: str, turn: Callable[[], float], rounds: int, note: str = "") -> None:
        """The row gets what turn() returns, rounds times. The turn itself is what is timed."""
        found: list[float] = []
        rounds, _ = self._rounds(rounds)
        self.benchmark.pedantic(lambda: found.append(turn()), rounds=rounds)
        self.keep(row, found, note)

    def _rounds(self, rounds: int, warmup_rounds: int = 0) -> tuple[int, int]:
        """So many, where figures mean something."""
        return (min(rounds, self.sizes.rounds), 0) if self.sizes.quick else (rounds, warmup_rounds)

    def keep(self, row: str, values: list[float], note: str) -> None:
        assert row in BY_NAME, f"{row}: not in reach.py"
        self.benchmark.extra_info.update(row=row, values=values, note=note)

    def add_note(self, note: str) -> None:
        before = self.benchmark.extra_info["note"]
        self.benchmark.extra_info["note"] = f"{before}, {note}" if before else note


def shown(seconds: float) -> str:
    """A time with the unit that suits it."""
    for unit, factor in (("ns", 1e9), ("µs", 1e6), ("ms", 1e3)):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"
