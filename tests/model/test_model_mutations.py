"""The model accepts what is right and notices what is wrong."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
import topic_model
from history_mutations import Mutations
from seeds import seed_of
from simulated_histories import simulated_history
from topic_model import ALL_TYPES, EXCLUSIVE, FAILOVER, KEY_SHARED, SHARED, Step, Violation, replay

SEEDS = [seed_of(number) for number in range(50)]  # each mutation fits some histories
MUTATIONS = {
    "lost_message": ALL_TYPES,
    "dropped_redelivery": ALL_TYPES,
    "swapped_order": (EXCLUSIVE, FAILOVER, KEY_SHARED),
    "twice_while_outstanding": ALL_TYPES,
    "to_another_consumer": (FAILOVER, KEY_SHARED),
    "early": ALL_TYPES,
    "acknowledged_comes_back": ALL_TYPES,
    "stuck": ALL_TYPES,
    "wrong_count": ALL_TYPES,
    "too_much_prefetched": ALL_TYPES,
}


@pytest.mark.parametrize("consumer_type", ALL_TYPES)
def test_a_correct_history_is_accepted(consumer_type: str) -> None:
    for seed in SEEDS:
        history = simulated_history(consumer_type, seed)
        assert replay(history).history == history


@pytest.mark.parametrize(
    ("mutation", "consumer_type"),
    [(name, each) for name, types in MUTATIONS.items() for each in types],
)
def test_a_broken_history_is_refused(mutation: str, consumer_type: str) -> None:
    refused = 0
    for seed in SEEDS:
        history = simulated_history(consumer_type, seed)
        mutations = Mutations(history, consumer_type, random.Random(seed))
        broken = getattr(mutations, mutation)()
        if broken is not None:
            with pytest.raises(Violation):
                replay(broken)
            refused += 1
    assert refused >= 10, "too few of the histories had a place for it"


def subscribed(consumer_type: str, *keys: str | None, consumers: int = 2) -> list[Step]:
    """Messages of these keys, consumers c1, c2 ..."""
    steps: list[Step] = [("subscribe", {"subscription": "s"})]
    for number in range(1, consumers + 1):
        steps.append(of_s("join", consumer=f"c{number}", consumer_type=consumer_type))
    return steps + [("publish", {"key": key}) for key in keys]


def of_s(step: str, **arguments: Any) -> Step:
    return step, {"subscription": "s", **arguments}


def to(consumer: str, index: int, count: int = 0) -> Step:
    return of_s("deliver", consumer=consumer, index=index, count=count)


def acknowledged(index: int) -> Step:
    return of_s("acknowledge", index=index)


def nacked(consumer: str, index: int, delay_ms: int) -> Step:
    return of_s("nack", consumer=consumer, index=index, delay_ms=delay_ms)


def passed(milliseconds: int) -> Step:
    return "advance", {"milliseconds": milliseconds}


DRAINED = of_s("drained")
LEFT = of_s("leave", consumer="c1")
DELAYED: Step = ("publish", {"key": "a", "deliver_at_ms": 5000})

RIGHT: dict[str, list[Step]] = {
    "an unkeyed message may overtake on Shared": [
        *subscribed(SHARED, "a", "a"), to("c1", 1), to("c2", 0), DRAINED,
    ],
    "a key goes on with another consumer once all is acknowledged": [
        *subscribed(KEY_SHARED, "a", "a"), to("c1", 0), acknowledged(0), LEFT, to("c2", 1),
    ],
    "a key waits for its holder after somebody joined": [
        *subscribed(KEY_SHARED, "a", consumers=1), to("c1", 0),
        of_s("join", consumer="c2", consumer_type=KEY_SHARED),
        ("publish", {"key": "a"}), DRAINED, acknowledged(0), to("c2", 1), DRAINED,
    ],
    "a nacked message holds back its key": [
        *subscribed(KEY_SHARED, "a", "a"), to("c1", 0), nacked("c1", 0, 100), DRAINED,
        passed(100), to("c1", 0, 1), to("c1", 1), DRAINED,
    ],
    "a delayed message holds nobody back": [
        *subscribed(KEY_SHARED), DELAYED, ("publish", {"key": "a"}), to("c1", 1), DRAINED,
        passed(6000), to("c1", 0), DRAINED,
    ],
    "a delayed message comes at once where messages are in order": [
        *subscribed(EXCLUSIVE, consumers=1), DELAYED, to("c1", 0), DRAINED,
    ],
    "a delayed message may take a tick": [*subscribed(SHARED), DELAYED, passed(5999), DRAINED],
    "a nack on Exclusive brings back all behind it": [
        *subscribed(EXCLUSIVE, "a", "b", "c", consumers=1), to("c1", 0), to("c1", 1), to("c1", 2),
        nacked("c1", 1, 100), passed(100), to("c1", 1, 1), to("c1", 2, 0), DRAINED,
    ],
    "what a leaver had goes to the next in line": [
        *subscribed(FAILOVER, "a", "b"), to("c1", 0), LEFT, to("c2", 0), to("c2", 1), DRAINED,
    ],
    "redelivery counts survive a restart": [
        *subscribed(SHARED, "a", consumers=1), to("c1", 0), nacked("c1", 0, 0), passed(0),
        to("c1", 0, 1), ("restart", {}), of_s("join", consumer="c3", consumer_type=SHARED),
        to("c3", 0, 1), DRAINED,
    ],
}  # fmt: skip

WRONG: dict[str, list[Step]] = {
    "a message is delivered twice while outstanding": [
        *subscribed(SHARED, "a"), to("c1", 0), to("c2", 0),
    ],
    "a key is with two consumers": [*subscribed(KEY_SHARED, "a", "a"), to("c1", 0), to("c2", 1)],
    "keyless messages are with two consumers": [
        *subscribed(KEY_SHARED, None, None), to("c1", 0), to("c2", 1),
    ],
    "a key is overtaken by itself": [*subscribed(KEY_SHARED, "a", "a"), to("c1", 1)],
    "a key overtakes its nacked message": [
        *subscribed(KEY_SHARED, "a", "a"), to("c1", 0), nacked("c1", 0, 100), to("c1", 1),
    ],
    "a key changes its consumer and nobody came or went": [
        *subscribed(KEY_SHARED, "a", "a"), to("c1", 0), acknowledged(0), to("c2", 1),
    ],
    "a delayed message is early": [*subscribed(SHARED), DELAYED, passed(4999), to("c1", 0)],
    "a delayed message is late": [*subscribed(SHARED), DELAYED, passed(6000), DRAINED],
    "a nacked message is early": [
        *subscribed(SHARED, "a"), to("c1", 0), nacked("c1", 0, 100), passed(99), to("c1", 0, 1),
    ],
    "a nacked message never comes again": [
        *subscribed(SHARED, "a"), to("c1", 0), nacked("c1", 0, 100), passed(100), DRAINED,
    ],
    "a nack counts nothing": [
        *subscribed(SHARED, "a"), to("c1", 0), nacked("c1", 0, 0), passed(0), to("c1", 0, 0),
    ],
    "an acknowledgement does not survive a restart": [
        *subscribed(SHARED, "a"), to("c1", 0), acknowledged(0), ("restart", {}),
        of_s("join", consumer="c3", consumer_type=SHARED), to("c3", 0),
    ],
    "a redelivery count does not survive a restart": [
        *subscribed(SHARED, "a", consumers=1), to("c1", 0), nacked("c1", 0, 0), passed(0),
        to("c1", 0, 1), ("restart", {}), of_s("join", consumer="c3", consumer_type=SHARED),
        to("c3", 0, 0),
    ],
    "a nacked and acknowledged message comes again": [
        *subscribed(SHARED, "a"), to("c1", 0), nacked("c1", 0, 100), acknowledged(0),
        passed(100), to("c1", 0, 1),
    ],
    "an ack timeout does not fire": [
        ("subscribe", {"subscription": "s"}), ("publish", {}),
        of_s("join", consumer="c1", consumer_type=SHARED, ack_timeout_ms=1000),
        to("c1", 0), passed(2000), DRAINED,
    ],
    "what a leaver had is lost": [*subscribed(SHARED, "a"), to("c1", 0), LEFT, DRAINED],
    "a stand-by of Failover gets something": [*subscribed(FAILOVER, "a"), to("c2", 0)],
    "a higher priority does not count": [
        *subscribed(FAILOVER, "a", consumers=1),
        of_s("join", consumer="c0", consumer_type=FAILOVER, priority=-1), to("c1", 0),
    ],
    "Exclusive has two consumers": subscribed(EXCLUSIVE, consumers=2),
    "a nack on Exclusive brings back one alone": [
        *subscribed(EXCLUSIVE, "a", "b", consumers=1), to("c1", 0), to("c1", 1),
        nacked("c1", 0, 0), passed(0), to("c1", 0, 1), DRAINED,
    ],
    "one stalled key holds back another": [
        *subscribed(KEY_SHARED, "a", "b"), to("c1", 0), DRAINED,
    ],
    "something is never acknowledged": [*subscribed(SHARED, "a"), to("c1", 0), of_s("finished")],
}  # fmt: skip


@pytest.mark.parametrize("history", RIGHT.values(), ids=RIGHT.keys())
def test_what_is_right_is_accepted(history: list[Step]) -> None:
    replay(history)


@pytest.mark.parametrize("history", WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_refused_at_its_last_step(history: list[Step]) -> None:
    replay(history[:-1])
    with pytest.raises(Violation):
        replay(history)


def test_the_model_shares_no_code_with_the_broker() -> None:
    source = Path(topic_model.__file__).read_text()
    imported = [line for line in source.splitlines() if re.match(r"(from|import) ", line)]
    assert imported == ["from __future__ import annotations", "from typing import Any"]
