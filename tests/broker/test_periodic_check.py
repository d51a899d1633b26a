"""Facts about what a broker does again and again."""

from __future__ import annotations

import pytest

import pulsarx
from pulsarx import BrokerOptions
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx.broker.periodic_check import PeriodicCheck
from pulsarx.broker.topics.compaction_monitor import CompactionMonitor
from pulsarx.testing import inspect


def test_a_check_that_ran_out_of_memory_has_one_successor() -> None:
    """It runs once more, and each of the two armed a timer: from then on there were two checks."""
    clock, jobs = pulsarx.ManualClock(), JobQueue("jobs")
    turns: list[int] = []

    def run() -> bool:
        turns.append(clock.now_ms())
        if len(turns) == 1:
            raise MemoryError
        return True

    check = PeriodicCheck(clock, jobs, 1000, run)
    check.arm()
    for _ in range(4):
        clock.advance(1)
        jobs.wait()
    check.close()
    jobs.close()
    assert len(turns) == 1 + 4
    assert len(set(turns)) == 4


def test_the_look_for_what_is_to_be_compacted_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[object] = []

    def threshold(_: CompactionMonitor, topic: object) -> int:
        turns.append(topic)
        if len(turns) == 1:
            raise MemoryError
        return 1 << 30

    monkeypatch.setattr(CompactionMonitor, "_threshold", threshold)
    options = BrokerOptions(broker_service_compaction_threshold_in_bytes=1 << 30)
    clock = pulsarx.ManualClock()
    with pulsarx.Client("memory:", clock=clock, broker_options=options) as client:
        client.create_producer("t")
        for _ in range(4):
            clock.advance(60)
            inspect(client).settle()
    assert len(turns) == 1 + 4
