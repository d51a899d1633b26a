"""What randomized tests draw from, so that a campaign (tests/long) can give them other seeds.

PULSARX_TEST_SEED   all seeds of this run follow from it; a failure is repeated by setting it
PULSARX_TEST_SCALE  how much a test does; 1: what it does in a round of a campaign

Without them each run draws the same, and less.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TypeVar

Point = TypeVar("Point")
GIVEN = os.environ.get("PULSARX_TEST_SEED", "")
SCALE = float(os.environ.get("PULSARX_TEST_SCALE", "0.3"))
FIXED = 20240101
CALLS_MAX = 10_000


def seeds(count: int) -> list[int]:
    """For parametrize: the same ones in every run, others in every round of a campaign."""
    first = int(GIVEN) if GIVEN else 0
    return [first + index for index in range(scaled(count))]


def seed_of(fixed: int) -> int:
    """Of one draw: fixed, or one that follows from what is given."""
    return fixed + int(GIVEN) if GIVEN else fixed


def new_seed() -> int:
    """Of one that draws much. Printed, so that a failure says with what it can be repeated."""
    seed = int(GIVEN) if GIVEN else FIXED
    print(f"PULSARX_TEST_SEED={seed}")
    return seed


def scaled(count: int) -> int:
    """So many examples, kills, turns; more in a campaign that asks for more."""
    return max(round(count * SCALE), 1)


def calls(seed: int | None, among: Sequence[int | None]) -> Iterator[int]:
    """The numbers of calls at each of which something fails, as long as who takes them wants any:
    all in a campaign. Else one in so many as there are seeds; tests with the others take the
    rest."""
    first, step = (0, 1) if SCALE >= 1 else (among.index(seed), len(among))
    yield from range(first, CALLS_MAX, step)
    raise AssertionError("the sweep did not end")


def some_of(points: Sequence[Point], count: int) -> list[Point]:
    """Of a sweep: all points in a campaign, else so many, evenly spread from the first to the
    last."""
    if SCALE >= 1 or count >= len(points):
        return list(points)
    last = len(points) - 1
    return [points[round(number * last / max(count - 1, 1))] for number in range(count)]
