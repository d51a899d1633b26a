"""What the model found in the broker, each as the shortest history that showed it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from driven_topic import DrivenTopic
from topic_model import EXCLUSIVE, FAILOVER, KEY_SHARED, SHARED

OpenTopic = Callable[..., DrivenTopic]


@pytest.fixture
def open_topic() -> Iterator[OpenTopic]:
    opened: list[DrivenTopic] = []

    def make(folder: Path | None = None) -> DrivenTopic:
        opened.append(DrivenTopic(folder))
        return opened[-1]

    yield make
    for topic in opened:
        topic.close()


@pytest.mark.parametrize("by_id", [False, True])
@pytest.mark.parametrize("consumer_type", [EXCLUSIVE, FAILOVER])
def test_what_is_acknowledged_ahead_of_the_reader_is_not_handed_out(
    open_topic: OpenTopic, consumer_type: str, by_id: bool
) -> None:
    """The rest of a batch that was being handed out came although it was acknowledged."""
    topic = open_topic()
    topic.publish(["a"] * 4, True, None)
    topic.join(consumer_type)
    topic.receive("c0", 4)
    topic.leave("c0")
    topic.join(consumer_type)
    topic.receive("c1", 2)
    topic.acknowledge("c1", 2, by_id)
    topic.drain()


@pytest.mark.parametrize("consumer_type", [EXCLUSIVE, FAILOVER])
def test_a_cumulative_acknowledgement_in_a_later_ledger_covers_a_batch_half_handed_out(
    open_topic: OpenTopic, consumer_type: str
) -> None:
    """The rest of the batch came although it was acknowledged."""
    topic = open_topic()
    topic.publish(["a"] * 4, True, None)
    topic.publish(["a"] * 10, False, None)  # seven entries fill a ledger
    topic.join(consumer_type)
    topic.drain()
    topic.leave("c0")
    topic.join(consumer_type)
    topic.receive("c1", 2)
    topic.acknowledge_cumulative("c1", 12)
    topic.drain()


@pytest.mark.parametrize("consumer_type", [EXCLUSIVE, FAILOVER])
def test_a_message_behind_one_that_was_passed_over_has_its_own_redelivery_count(
    open_topic: OpenTopic, consumer_type: str
) -> None:
    """It came with 65535, which was to say that the one before it was acknowledged."""
    topic = open_topic()
    topic.publish(["a", "a"], True, None)
    topic.publish(["a"], False, None)
    topic.join(consumer_type)
    topic.receive("c0", 2)
    topic.acknowledge("c0", 1, False)
    topic.redeliver("c0")
    topic.receive("c0", 1)
    topic.acknowledge("c0", 0, False)
    topic.drain()


def test_a_delayed_message_waits_for_its_key_after_all_consumers_were_gone(
    open_topic: OpenTopic,
) -> None:
    """It came due while what is before it was unread again, and overtook it."""
    topic = open_topic()
    topic.publish(["a"], False, None)
    topic.publish(["a"], False, topic.model.now_ms + 1)
    topic.join(KEY_SHARED)
    topic.receive("c0", 1)
    topic.leave("c0")
    topic.join(KEY_SHARED)
    topic.advance(300_000)
    topic.drain()


@pytest.mark.parametrize("consumer_type", [SHARED, KEY_SHARED])
def test_a_message_that_comes_due_after_a_restart_without_consumers_is_delivered(
    open_topic: OpenTopic, tmp_path: Path, consumer_type: str
) -> None:
    """Nobody ever got it."""
    topic = open_topic(tmp_path)
    topic.publish(["a"], False, topic.model.now_ms + 1000)
    topic.join(consumer_type)
    topic.restart(False)
    topic.advance(60_000)
    topic.join(consumer_type)
    topic.drain()


def test_a_delayed_message_without_a_key_keeps_its_place_over_a_restart(
    open_topic: OpenTopic, tmp_path: Path
) -> None:
    """It went to another consumer than the other messages without a key."""
    topic = open_topic(tmp_path)
    topic.publish([None], True, topic.model.now_ms + 1)
    topic.join(KEY_SHARED, queue_size=3)
    topic.publish([None], False, None)
    topic.restart(False)
    topic.join(KEY_SHARED, queue_size=3)
    topic.join(KEY_SHARED, queue_size=3)
    topic.advance(1)
    topic.drain()
