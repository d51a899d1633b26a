"""Facts about taking from several topics in turn, over topics that are made up."""

from __future__ import annotations

import gc
from collections.abc import Callable
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
    return sum(type(each).__name__ == "ReadyFlag" for each in gc.get_objects())


@pytest.mark.standard
def test_a_forgotten_one_leaves_nothing_to_the_garbage_collector() -> None:
    """Ready flags that are set are a chain, and a circle with the list that they are in."""
    gc.collect()
    before = ready_flags()
    gc.disable()
    try:
        core, topics = of_several(100)
        assert ready_flags() == before + 100
        del core, topics
        assert ready_flags() == before
    finally:
        gc.enable()
