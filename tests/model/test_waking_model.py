"""No order of steps loses a waking, and each known defect is found by trying all of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from waking_model import (
    LostWaking,
    Process,
    State,
    asker,
    closer,
    explore,
    flag_publisher,
    flusher,
    forwarder,
    lane,
    new_topic,
    new_topics,
    no_topic_waits_in_vain,
    nobody_waits_in_vain,
    pool_thread,
    prepared_topic,
    publisher,
    read_topic,
    seeker,
    sleeper,
    switcher,
    taker,
)


def sleepers() -> list[Process]:
    """Two wait for the messages of a topic whose first ledger appears."""
    return [publisher([2]), sleeper("a"), sleeper("b")]


def roll_over() -> list[Process]:
    return [publisher([1, 1]), sleeper("a")]


def futures() -> list[Process]:
    """One future is cancelled while the first ledger appears, others wait behind it."""
    return [publisher([2]), asker("asker", ["f", "g"], cancels=("f",)), pool_thread()]


def futures_of_two() -> list[Process]:
    """Two ask at a time."""
    return [
        publisher([1]),
        asker("asker", ["f"], cancels=("f",)),
        asker("other", ["g"]),
        pool_thread(),
    ]


def futures_over_ledgers() -> list[Process]:
    return [publisher([1, 1]), asker("asker", ["f", "g"]), pool_thread()]


def beside_a_sleeper() -> list[Process]:
    return [publisher([1]), sleeper("a"), asker("asker", ["f"]), pool_thread()]


def seeking() -> list[Process]:
    """Who waits behind the last message gets it again."""
    return [sleeper("a"), seeker()]


def seeking_futures() -> list[Process]:
    return [asker("asker", ["f", "g"], cancels=("f",)), pool_thread(), seeker()]


def closing() -> list[Process]:
    return [sleeper("a"), sleeper("b"), closer()]


def closing_futures() -> list[Process]:
    return [publisher([1]), asker("asker", ["f", "g"]), pool_thread(), closer()]


def switching() -> list[Process]:
    """A publisher goes on to a prepared ledger while the full one is being flushed."""
    return [switcher(), flusher(), sleeper("a"), sleeper("b")]


def switching_alone() -> list[Process]:
    """Nobody but the lane and who comes behind flushes the full one."""
    return [switcher(), lane(), sleeper("a")]


def switching_in_vain() -> list[Process]:
    """The publisher is interrupted before its message; the full ledger is flushed all the same."""
    return [switcher(interrupted=True), lane(), sleeper("a")]


def switching_futures() -> list[Process]:
    return [switcher(), lane(), asker("asker", ["f", "g"]), pool_thread()]


def forwarding() -> list[Process]:
    """Two wait for what another process publishes."""
    return [forwarder(2), sleeper("a"), sleeper("b")]


NEW = [
    sleepers, roll_over, futures, futures_of_two, futures_over_ledgers, beside_a_sleeper,
    closing_futures,
]  # fmt: skip
READ = [seeking, seeking_futures, closing, forwarding]
PREPARED = [switching, switching_alone, switching_in_vain, switching_futures]
DEFECTS = {
    "the thread of a connection sleeps before it wakes": [forwarding],
    "a reader does not ask whether a full ledger is durable": [switching],
    "a full ledger that becomes durable tells nobody": [switching_in_vain],
    "the catalogue tells before the writer is registered": [sleepers, roll_over, futures],
    "the waker counts waiters before its change": [sleepers],
    "a sleeper does not look again": [sleepers, seeking, closing],
    "a future that came to wait looks no more": [futures, futures_of_two, seeking_futures],
    "a step forgets what fell due while it ran": [futures],
    "cancelling one unwatches for all": [futures_of_two],
    "a future does not ask whether it is open still": [closing_futures],
    "a step asks a closed pool to run it again": [closing_futures],
    "a seek tells nobody": [seeking, seeking_futures],
    "a close tells nobody": [closing, closing_futures],
}


def begin(scene: Callable[[], list[Process]], *defects: str) -> State:
    if scene in PREPARED:
        return prepared_topic(*defects)
    return read_topic(*defects) if scene in READ else new_topic(*defects)


@pytest.mark.standard
@pytest.mark.parametrize("scene", NEW + READ + PREPARED)
def test_no_waking_is_lost(scene: Callable[[], list[Process]]) -> None:
    assert explore(begin(scene), scene(), nobody_waits_in_vain) > 20


@pytest.mark.parametrize(
    ("defect", "scene"), [(defect, scene) for defect, scenes in DEFECTS.items() for scene in scenes]
)
def test_a_defect_is_found(defect: str, scene: Callable[[], list[Process]]) -> None:
    with pytest.raises(LostWaking):
        explore(begin(scene, defect), scene(), nobody_waits_in_vain)


def topics() -> list[Process]:
    return [flag_publisher(0, "first"), flag_publisher(1, "second"), taker("a", 2), taker("b", 2)]


def one_topic_of_two() -> list[Process]:
    return [flag_publisher(0, "first"), flag_publisher(0, "second"), taker("a", 1), taker("b", 1)]


def topics_by_priority() -> list[Process]:
    takers = [taker(name, 2, by_priority=True) for name in ("a", "b")]
    return [flag_publisher(0, "first"), flag_publisher(1, "second"), *takers]


@pytest.mark.parametrize("scene", [topics, topics_by_priority, one_topic_of_two])
def test_no_flag_of_several_topics_stays_unseen(scene: Callable[[], list[Process]]) -> None:
    assert explore(new_topics(2), scene(), no_topic_waits_in_vain) > 100


@pytest.mark.parametrize("scene", [topics, topics_by_priority])
@pytest.mark.parametrize("defect", ["a flag is cleared behind the look"])
def test_a_defect_of_flags_is_found(defect: str, scene: Callable[[], list[Process]]) -> None:
    with pytest.raises(LostWaking):
        explore(new_topics(2, defect), scene(), no_topic_waits_in_vain)


def test_a_flag_that_stays_cleared_behind_a_message_is_found() -> None:
    with pytest.raises(LostWaking):
        explore(
            new_topics(1, "a flag stays cleared behind a message"),
            one_topic_of_two(),
            no_topic_waits_in_vain,
        )
