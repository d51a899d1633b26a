"""Facts about taking from several topics in turn, over topics that are made up."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from pulsarx import errors
from pulsarx._pycore.consume.multi_consumer import MultiConsumerCore


class Topic:
    """What a MultiConsumerCore asks of the consumer of one topic that has no messages."""

    is_open = True
    is_forked = False

    def __init__(self) -> None:
        self.dispatcher = SimpleNamespace(tail=object())
        self.looks = 0
        self.ring: Callable[[], object] | None = None

    def watch(self, set_flag: Callable[[], object]) -> None:
        self.ring = set_flag

    def unwatch(self, set_flag: object) -> None:
        self.ring = None

    def take_now(self) -> None:
        self.looks += 1


def of_several(count: int) -> tuple[MultiConsumerCore, list[Topic]]:
    core = MultiConsumerCore()
    topics = [Topic() for _ in range(count)]
    for each in topics:
        each_consumer: Any = each
        core.add(each_consumer)
    return core, topics


def looked_at(core: MultiConsumerCore, topics: list[Topic]) -> list[int]:
    for each in topics:
        each.looks = 0
    assert core.take_now() is None
    return [each.looks for each in topics]


def test_only_topics_that_rang_are_looked_at_and_once() -> None:
    core, topics = of_several(4)
    assert looked_at(core, topics) == [1, 1, 1, 1]  # they may have had messages before
    assert looked_at(core, topics) == [0, 0, 0, 0]
    for index in (2, 0, 2):
        assert topics[index].ring is not None
        topics[index].ring()
    assert looked_at(core, topics) == [1, 0, 1, 0]
    assert looked_at(core, topics) == [0, 0, 0, 0]


def of_levels(*priorities: int | None) -> tuple[MultiConsumerCore, list[Topic], list[int]]:
    """Topics of these priorities, and the list of those that are looked at."""
    core = MultiConsumerCore()
    topics = [Topic() for _ in priorities]
    looks: list[int] = []
    for number, (topic, priority) in enumerate(zip(topics, priorities, strict=True)):
        topic.__dict__["take_now"] = partial(looks.append, number)
        each_consumer: Any = topic
        core.add(each_consumer, priority)
    return core, topics, looks


def test_topics_that_rang_are_looked_at_by_priority_and_once() -> None:
    core, topics, looks = of_levels(None, 5, 0, 5, None, 2**31 - 1)
    assert core.take_now() is None
    assert looks == [2, 1, 3, 5, 0, 4]
    looks.clear()
    for index in (4, 5, 3, 3, 2):
        ring = topics[index].ring
        assert ring is not None
        ring()
    assert core.take_now() is None
    assert looks == [2, 3, 5, 4]
    assert core.take_now() is None
    assert len(looks) == 4


def test_a_topic_of_a_level_that_goes_while_its_flag_is_set_is_passed_over() -> None:
    core, topics, looks = of_levels(1, 0, 1)
    gone: Any = topics[1]
    core.drop(gone)
    assert core.take_now() is None
    assert looks == [0, 2]


@pytest.mark.parametrize("dropped", range(3))
def test_a_topic_that_goes_while_its_flag_is_set_is_passed_over(dropped: int) -> None:
    core, topics = of_several(3)
    gone: Any = topics[dropped]
    core.drop(gone)
    assert looked_at(core, topics) == [int(index != dropped) for index in range(3)]
    for index in range(3):
        ring = topics[index].ring
        if ring is not None:
            ring()
    assert looked_at(core, topics) == [int(index != dropped) for index in range(3)]


def test_a_look_that_fails_is_made_again() -> None:
    core, topics = of_several(2)
    failing: Any = topics[0]

    def fail() -> None:
        raise errors.ReadError(detail="once")

    failing.take_now = fail
    with pytest.raises(errors.ReadError):
        core.take_now()
    del failing.take_now
    assert looked_at(core, topics) == [1, 1]


def ready_flags() -> int:
    names = ("ReadyFlag", "ReadyLane", "ReadyList")
    return sum(type(each).__name__ in names for each in gc.get_objects())


@pytest.mark.standard
@pytest.mark.parametrize("priorities", [[None] * 100, [*range(99), None]], ids=["none", "levels"])
def test_a_forgotten_one_leaves_nothing_to_the_garbage_collector(
    priorities: list[int | None],
) -> None:
    """Ready flags that are set are a chain, and a circle with the list that they are in."""
    gc.collect()
    before = ready_flags()
    gc.disable()
    try:
        core, topics, _ = of_levels(*priorities)
        assert ready_flags() >= before + 100
        del core, topics
        assert ready_flags() == before
    finally:
        gc.enable()
