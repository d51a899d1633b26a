"""Latencies of many messages: counts in buckets, of which percentiles are read."""

from __future__ import annotations

from pulsarx.clock import monotonic_us

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99_9": 0.999, "p99_99": 0.9999}
# Buckets grow with the latency: below 256 us each is one, above its 8 highest bits are one.
_SPREAD = 128
_HIGHEST_BITS = 40
_BUCKETS = _SPREAD * (_HIGHEST_BITS - 6)


class Latencies:
    """Counts of latencies. One thread adds at a time, others may look."""

    def __init__(self) -> None:
        self.counts: list[int] = [0] * _BUCKETS
        self.total_us: int = 0
        self.size: int = 0  # bytes
        self.failures = 0
        self.why = ""  # the last one
        self.last_us: int = 0  # when the last one was added

    def add(self, latency_us: int, size: int) -> None:
        self.counts[_bucket(latency_us)] += 1
        self.total_us += latency_us
        self.size += size
        self.last_us = monotonic_us()


def _bucket(latency_us: int) -> int:
    shift = max(latency_us.bit_length() - 8, 0)
    return min(_SPREAD * shift + (latency_us >> shift), _BUCKETS - 1)


def _latency_of(bucket: int) -> int:
    """The largest of a bucket, in microseconds."""
    shift = max(bucket // _SPREAD - 1, 0)
    return ((bucket - _SPREAD * shift + 1) << shift) - 1


class Figures:
    """The sum of all latencies at one moment. A value."""

    def __init__(self, of: list[Latencies]) -> None:
        lists = [list(each.counts) for each in of]
        self.counts: list[int] = [sum(each) for each in zip(*lists)] if lists else [0] * _BUCKETS
        self.total_us: int = sum(each.total_us for each in of)
        self.size: int = sum(each.size for each in of)
        self.failures: int = sum(each.failures for each in of)
        self.messages: int = sum(self.counts)

    def since(self, before: Figures) -> Figures:
        made = Figures([])
        made.counts = [one - other for one, other in zip(self.counts, before.counts)]
        made.total_us = self.total_us - before.total_us
        made.size = self.size - before.size
        made.failures = self.failures - before.failures
        made.messages = self.messages - before.messages
        return made

    def fields(self, seconds: float) -> dict[str, Any]:
        seconds = max(seconds, 1e-6)
        return {
            "messages": self.messages,
            "failures": self.failures,
            "rate": round(self.messages / seconds, 1),
            "mbit_s": round(self.size * 8 / 1e6 / seconds, 3),
            "latency_ms": self._latency() if self.messages else None,
        }

    def _latency(self) -> dict[str, float]:
        found = {"mean": round(self.total_us / self.messages / 1000, 3)}
        bounds = {**_PERCENTILES, "max": 1.0}
        names = iter(bounds)
        name, passed = next(names), 0
        for bucket, number in enumerate(self.counts):
            passed += number
            while passed >= bounds[name] * self.messages and number:
                found[name] = _latency_of(bucket) / 1000
                if name == "max":
                    return found
                name = next(names)
        return found
