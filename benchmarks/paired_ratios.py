"""What pairs of turns say about a row: how much slower it has become, and how sure that is.

Pairs come in groups: one group is one pair of processes. Two processes of the same program differ
for as long as they live (where memory lies decides what meets in a cache), and no number of turns
averages that out. So the interval is found by drawing groups anew, and pairs within them.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass

DRAWS = 4000
CONFIDENCE = 0.95

SLOWER, FASTER, SAME, UNCLEAR = "slower", "faster", "same", "unclear"


def ratio(base: float, now: float) -> float:
    """Above 1: worse than before. What is nothing on both sides is the same."""
    if base <= 0 or now <= 0:
        return 1.0 if base <= 0 and now <= 0 else float("inf") if base <= 0 else 0.0
    return now / base


@dataclass(frozen=True)
class Verdict:
    """What is said about a row. low, high: between them the ratio lies with CONFIDENCE."""

    median: float
    low: float
    high: float
    limit: float  # 1.03: what is slower by no more than 3 % counts as the same

    @property
    def text(self) -> str:
        if self.low > self.limit:
            return SLOWER
        if self.high < 1 / self.limit:
            return FASTER
        # Nothing else is certain but that it is neither, unless all of the interval is near 1.
        return SAME if self.low >= 1 / self.limit and self.high <= self.limit else UNCLEAR


def verdict(groups: list[list[float]], limit: float) -> Verdict:
    """groups: the ratios of the pairs of each pair of processes. Draws are the same each time."""
    low, high = interval(groups)
    median = statistics.median(value for group in groups for value in group)
    return Verdict(median, low, high, limit)


def interval(groups: list[list[float]]) -> tuple[float, float]:
    """Of the median of all pairs, by the percentiles of a bootstrap in two stages."""
    import numpy

    chance = numpy.random.default_rng(1)
    sizes = numpy.array([len(group) for group in groups])
    pairs = numpy.full((len(groups), sizes.max()), numpy.nan)
    for row, group in zip(pairs, groups):
        row[: len(group)] = group
    drawn = chance.integers(len(groups), size=(DRAWS, len(groups), 1))
    found = pairs[drawn, (chance.random((DRAWS, *pairs.shape)) * sizes[drawn]).astype(int)]
    # A group that was drawn gives as many pairs as it has.
    found[numpy.arange(sizes.max()) >= sizes[drawn]] = numpy.nan
    medians = numpy.sort(numpy.nanmedian(found.reshape(DRAWS, -1), axis=1))
    outside = round(DRAWS * (1 - CONFIDENCE) / 2)
    return float(medians[outside]), float(medians[-1 - outside])
