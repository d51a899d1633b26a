"""Whatever producers, consumers, time and restarts do: the broker stays within the model."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest
from driven_topic import DrivenTopic
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from seeds import new_seed, scaled
from topic_model import ALL_TYPES, ORDERED

SEED = new_seed()
BOUNDED = settings(
    max_examples=scaled(60),
    stateful_step_count=40,
    deadline=None,
    database=None,
    # To shrink takes minutes; a violation tells its whole history anyway.
    phases=[Phase.generate] if os.environ.get("CI") else [Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)

# No power fails here, so where there is one a disk in memory does: flushing is what would cost.
MEMORY_DISK = "/dev/shm" if os.path.isdir("/dev/shm") else None

KEYS = st.sampled_from(["a", "b", "c", None])
WHICH = st.integers(0, 1000)  # one of those there are
NACK_DELAYS_MS = st.sampled_from([100, 2000, 60_000])
ACK_TIMEOUTS_MS = st.sampled_from([0, 0, 5000])
PRIORITIES = st.integers(0, 1)
SPANS_MS = st.sampled_from([0, 1, 99, 100, 1000, 2000, 5000, 6000, 60_000])


class SubscriptionMachine(RuleBasedStateMachine):
    """One subscription, of one type or of a type that changes whenever all have left."""

    types: ClassVar[tuple[str, ...]] = ALL_TYPES
    on_disk: ClassVar[bool] = False

    @initialize()
    def open(self) -> None:
        self.folder = (
            Path(tempfile.mkdtemp(prefix="model-", dir=MEMORY_DISK)) if self.on_disk else None
        )
        self.topic = DrivenTopic(self.folder)

    def consumer(self, which: int) -> str:
        names = list(self.topic.consumers["s"])
        return names[which % len(names)]

    def has_consumers(self) -> bool:
        return bool(self.topic.consumers["s"])

    def is_ordered(self) -> bool:
        return self.has_consumers() and self.topic.subscription().type in ORDERED

    @rule(keys=st.lists(KEYS, min_size=1, max_size=5), batched=st.booleans())
    def publish(self, keys: list[str | None], batched: bool) -> None:
        self.topic.publish(keys, batched, None)

    @rule(key=KEYS, batched=st.booleans(), delay_ms=SPANS_MS)
    def publish_delayed(self, key: str | None, batched: bool, delay_ms: int) -> None:
        self.topic.publish([key], batched, self.topic.model.now_ms + delay_ms)

    @rule(
        which=WHICH,
        priority=PRIORITIES,
        queue_size=st.sampled_from([1, 2, 3, 1000]),
        ack_timeout_ms=ACK_TIMEOUTS_MS,
        nack_delay_ms=NACK_DELAYS_MS,
    )
    def join(self, which: int, **options: Any) -> None:
        if len(self.topic.consumers["s"]) < 4:
            self.topic.join(self.types[which % len(self.types)], **options)

    @precondition(has_consumers)
    @rule(which=WHICH)
    def leave(self, which: int) -> None:
        self.topic.leave(self.consumer(which))

    @precondition(has_consumers)
    @rule(which=WHICH, most=st.integers(1, 4))
    def receive(self, which: int, most: int) -> None:
        self.topic.receive(self.consumer(which), most)

    @precondition(has_consumers)
    @rule()
    def drain(self) -> None:
        self.topic.drain()

    @precondition(lambda self: self.has_consumers() and self.topic.received)
    @rule(who=WHICH, which=WHICH, by_id=st.booleans())
    def acknowledge(self, who: int, which: int, by_id: bool) -> None:
        known = self.topic.known()
        self.topic.acknowledge(self.consumer(who), known[which % len(known)], by_id)

    @precondition(lambda self: self.is_ordered() and self.topic.received)
    @rule(which=WHICH)
    def acknowledge_cumulative(self, which: int) -> None:
        known = self.topic.known()
        self.topic.acknowledge_cumulative(self.topic.taker(), known[which % len(known)])

    @precondition(lambda self: self.topic.outstanding())
    @rule(which=WHICH)
    def nack(self, which: int) -> None:
        found = self.topic.outstanding()
        self.topic.nack(found[which % len(found)])

    @precondition(has_consumers)
    @rule(which=WHICH)
    def redeliver(self, which: int) -> None:
        self.topic.redeliver(self.consumer(which))

    @rule(milliseconds=SPANS_MS)
    def advance(self, milliseconds: int) -> None:
        self.topic.advance(milliseconds)

    @precondition(lambda self: self.on_disk)
    @rule(killed=st.booleans())
    def restart(self, killed: bool) -> None:
        self.topic.restart(killed)

    def teardown(self) -> None:
        if not hasattr(self, "topic"):
            return
        try:
            if sys.exc_info()[0] is None:  # a second failure would hide the first
                self.topic.finish()
        finally:
            self.topic.close()
            if self.folder is not None:
                shutil.rmtree(self.folder)


def machine(types: tuple[str, ...], on_disk: bool) -> Any:
    name = f"{'Or'.join(types)}{'OnDisk' if on_disk else ''}"
    return type(name, (SubscriptionMachine,), {"types": types, "on_disk": on_disk})


@pytest.mark.parametrize(
    "on_disk",
    [pytest.param(False, id="memory"), pytest.param(True, id="disk", marks=pytest.mark.standard)],
)
@pytest.mark.parametrize(
    "types", [*((each,) for each in ALL_TYPES), ALL_TYPES], ids=[*ALL_TYPES, "changing"]
)
def test_a_subscription_stays_within_the_model(types: tuple[str, ...], on_disk: bool) -> None:
    print(f"PULSARX_TEST_SEED={SEED}")
    run_state_machine_as_test(seed(SEED)(machine(types, on_disk)), settings=BOUNDED)
