"""Random histories of plans that are read under leases while retention removes what nothing keeps.

The promise: from when a plan is leased until its last part is read and for a pause behind that,
what it names can be read, however long a reader takes, as long as the job does something before its
lease is over. Each part is read when it comes to that, and must hold exactly what was planned.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pulsarx
from pulsarx import errors
from pulsarx.broker.scan import lease as leases
from pulsarx.broker.scan import lease_renewal
from pulsarx.broker.scan.lease_renewal import LeaseRenewals
from pulsarx.broker.scan.ledger_range import LedgerRange
from pulsarx.broker.scan.plan import plan
from pulsarx.broker.scan.read_range import read_range
from pulsarx.testing import inspect

TOPIC = "persistent://public/default/t"
TTLS_MS = (12_000, 60_000, 240_000)


class PromiseBroken(Exception):
    """A part of a plan cannot be read as it was planned."""


@dataclass
class Job:
    name: str
    ttl_ms: int
    parts: list[LedgerRange]
    planned: list[list[object]]  # the values of each part
    acts_until_ms: int  # when it has done something again
    unread: list[int] = field(default_factory=list)
    is_again: bool = False  # it reads a second time


class History:
    """One topic, its retention, and jobs; all from one seed."""

    def __init__(self, folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.clock = pulsarx.ManualClock()
        self.renewals = LeaseRenewals(self.clock)
        monkeypatch.setattr(lease_renewal, "renewals", self.renewals)
        self.jobs: list[Job] = []
        self.count = 0
        self.read_count = 0

    def run(self, steps: int) -> None:
        """PromiseBroken; the text says which part of which job."""
        options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
        with pulsarx.Client(
            self.folder, clock=self.clock, durability="os", broker_options=options
        ) as self.client:
            self.producer = self.client.create_producer("t")
            self.keeper = self.client.subscribe("t", "keeper")
            self.client.admin.namespaces.set_retention("public/default", 0, 0)
            for _ in range(steps):
                step = self.random.choice(
                    [self.begin, self.read, self.read, self.read, self.idle, self.trim]
                )
                step()
            while self.jobs:
                self.read()

    def begin(self) -> None:
        """A job plans what there is and leases it; then nothing else keeps it."""
        if len(self.jobs) == 3:
            return
        for _ in range(self.random.randint(2, 5)):
            last = self.producer.send(b"%d" % self.count)
            self.count += 1
        ttl_ms = self.random.choice(TTLS_MS)
        name = f"job{self.count}"
        parts = self.leased(name, ttl_ms)
        planned = [values_of(*read_range(each)) for each in parts]
        job = Job(name, ttl_ms, parts, planned, 0, list(range(len(parts))))
        self.acts(job)
        self.jobs.append(job)
        self.keeper.acknowledge_cumulative(last)
        self.trim()

    def leased(self, name: str, ttl_ms: int) -> list[LedgerRange]:
        """A plan under a lease; made anew where retention removed some of it in between."""
        inspect(self.client).settle()
        while True:
            parts = plan(inspect(self.client).broker, "t", columns=["value"])
            try:
                leases.lease_ranges(self.folder, name, parts, ttl_ms)
                return parts
            except errors.NotAllowedError:
                pass

    def acts(self, job: Job) -> None:
        renewed_ms = min(job.ttl_ms // 3, max(job.ttl_ms // 24, 500)) + 1000
        kept_ms = leases.pause_ms(job.ttl_ms) // 2 if job.is_again else job.ttl_ms - renewed_ms
        job.acts_until_ms = self.clock.now_ms() + kept_ms

    def pass_time(self, job: Job | None, ms: int) -> None:
        """Time goes on in steps, as far as the other jobs may be idle."""
        until = [each.acts_until_ms for each in self.jobs if each is not job]
        end_ms = min([self.clock.now_ms() + ms, *until])
        # Twice as often as any lease is to be renewed.
        step_ms = min([max(each.ttl_ms // 24, 500) // 2 for each in self.jobs], default=ms)
        while self.clock.now_ms() < end_ms:
            self.clock.advance(min(step_ms, end_ms - self.clock.now_ms()) / 1000)
            self.renewals.wait()

    def idle(self) -> None:
        self.pass_time(None, self.random.choice((500, 5_000, 60_000)))

    def trim(self) -> None:
        inspect(self.client).settle()
        inspect(self.client).topic(TOPIC).trim()

    def read(self) -> None:
        """A job reads one of its parts, as slowly as it likes; behind the last it is over, or
        begins anew."""
        if not self.jobs:
            return
        job = self.random.choice(self.jobs)
        part = job.unread.pop(self.random.randrange(len(job.unread)))
        found: list[object] = []
        try:
            reader = read_range(job.parts[part], max_rows=1)
            for batch in reader:
                found += values_of(batch)
                self.renewals.wait()
                self.pass_time(job, self.random.choice((0, 0, 1_000, job.ttl_ms)))
                self.trim()
        except (errors.PulsarException, OSError) as error:
            raise PromiseBroken(f"{job.name}, part {part}: {error}") from error
        if found != job.planned[part]:
            raise PromiseBroken(f"{job.name}, part {part}: {found}, not {job.planned[part]}")
        self.read_count += 1
        if not job.is_again:
            leases.finish_part(job.parts[part], part, len(job.parts))
        if not job.unread and not job.is_again and self.random.random() < 0.5:
            job.is_again, job.unread = True, list(range(len(job.parts)))
        if job.unread:
            self.acts(job)
        else:
            self.jobs.remove(job)
        self.trim()


def values_of(*batches: Any) -> list[object]:
    return [each for batch in batches for each in pa.record_batch(batch).column(0).to_pylist()]
