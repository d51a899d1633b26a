"""Facts about topics that are unloaded while nobody is attached, or somebody just comes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from support.next_calls import before_the_next
from support.topics import filled
from topic_reading import OpenClient, numbers, payloads

import pulsarx
from pulsarx import InitialPosition, MessageId, errors
from pulsarx.broker.schemas.registry import SchemaRegistry
from pulsarx.broker.topics.producer_registry import ProducerRegistry
from pulsarx.broker.topics.reader_cursor import ReaderCursor
from pulsarx.producing.partitioned_producer import PartitionedProducer
from pulsarx.schema import StringSchema
from pulsarx.testing import inspect

EARLIEST = InitialPosition.Earliest


def test_what_was_acknowledged_is_not_delivered_again(
    open_client: OpenClient, caplog: pytest.LogCaptureFixture
) -> None:
    """The cursor files of subscriptions made since the folder was opened were taken for missing:
    everything they had acknowledged was delivered again."""
    client = open_client()
    filled(client, 4)
    for already in range(4):  # each time the file is another one, or was opened once before
        consumer = client.subscribe("t", "s", initial_position=EARLIEST)
        assert payloads(consumer) == numbers(4 - already, already)
        consumer.redeliver_unacknowledged_messages()
        consumer.acknowledge(consumer.receive(60_000))
        consumer.close()
        client.subscribe("other", f"s{already}").close()  # lists the files before the next
        client.admin.topics.unload("t")
        assert [each.name for each in inspect(client).broker.topics.open_topics()] == [
            "persistent://public/default/other"
        ]
    assert not caplog.records


def test_a_reader_that_is_just_made_keeps_its_topic(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It read on in ledgers that were closed: what was published later was told as lost."""
    client = open_client()
    filled(client, 4)
    client.admin.topics.unload("t")
    before_the_next(monkeypatch, ReaderCursor, "attach", lambda: client.admin.topics.unload("t"))
    reader = client.create_reader("t", MessageId.earliest)
    assert [reader.read_next(60_000).data() for _ in range(4)] == numbers(4)
    client.create_producer("t").send(b"4")
    assert reader.read_next(60_000).data() == b"4"


ASKED: dict[str, Callable[[Any, list[MessageId]], object]] = {
    "create_subscription": lambda topics, _: topics.create_subscription(
        "t", "later", MessageId.earliest
    ),
    "delete_subscription": lambda topics, _: topics.delete_subscription("t", "s"),
    "reset_cursor": lambda topics, ids: topics.reset_cursor("t", "s", ids[1]),
    "skip_messages": lambda topics, _: topics.skip_messages("t", "s", 1),
    "skip_all_messages": lambda topics, _: topics.skip_all_messages("t", "s"),
    "expire_messages": lambda topics, _: topics.expire_messages("t", "s", -1),
    "truncate": lambda topics, _: topics.truncate("t"),
    "terminate": lambda topics, _: topics.terminate("t"),
    "stats": lambda topics, _: topics.stats("t"),
}


@pytest.mark.parametrize("asked", ASKED)
def test_what_is_asked_of_a_topic_just_before_it_is_unloaded_is_done(
    open_client: OpenClient,
    monkeypatch: pytest.MonkeyPatch,
    manual_clock: pulsarx.ManualClock,
    asked: str,
) -> None:
    """It was refused with TopicNotFound, or AlreadyClosed."""
    client = open_client(clock=manual_clock)
    ids = filled(client, 4)
    manual_clock.advance(1)  # what is no second old is not expired
    topics = client.admin.topics
    topics.create_subscription("t", "s", MessageId.earliest)
    broker = inspect(client).broker
    find = broker.topics.topic

    def found_and_unloaded(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(broker.topics, "topic", find)
        topic = find(*arguments, **options)
        topics.unload("t")
        assert topic.is_gone
        return topic

    monkeypatch.setattr(broker.topics, "topic", found_and_unloaded)
    ASKED[asked](topics, ids)
    left = {"reset_cursor": 3, "skip_messages": 3, "create_subscription": 4, "stats": 4}
    left |= {"terminate": 4}
    name = "later" if asked == "create_subscription" else "s"
    if asked == "delete_subscription":
        assert topics.get_subscriptions("t") == []
    else:
        assert len(payloads(client.subscribe("t", name))) == left.get(asked, 0)


@pytest.mark.parametrize("lazy", [False, True])
def test_a_producer_gets_a_partition_that_is_unloaded_just_then(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch, lazy: bool
) -> None:
    """It was refused, or its message was, with TopicNotFound."""
    client = open_client()
    topics = client.admin.topics
    topics.create_partitioned_topic("p", 1)
    unload = partial(topics.unload, "p")
    if not lazy:
        before_the_next(monkeypatch, ProducerRegistry, "add", unload)
    producer = client.create_producer("p", lazy_start_partitioned_producers=lazy)
    if lazy:
        topics.update_partitioned_topic("p", 2)
        before_the_next(monkeypatch, ProducerRegistry, "add", unload)
    ids = [producer.send(b"x") for _ in range(2)]
    assert len(set(ids)) == 2
    assert topics.partitioned_stats("p")["messages"] == 2


def test_a_producer_makes_a_partitioned_topic_anew_that_is_deleted_just_then(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused with TopicNotFound, though it makes a topic that is missing."""
    client = open_client()
    topics = client.admin.topics
    topics.create_partitioned_topic("p", 2)
    delete = partial(topics.delete_partitioned_topic, "p")
    before_the_next(monkeypatch, PartitionedProducer, "open", delete)
    client.create_producer("p").send(b"x")
    assert topics.get_partitioned_topic_metadata("p") == {"partitions": 0}
    assert topics.stats("p")["messages"] == 1


def test_a_reader_that_was_refused_does_not_keep_its_topic(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stayed attached for as long as its caller kept the error."""

    def refuse(*_: object) -> None:
        raise pulsarx.StorageError(detail="no room")

    topics = memory_client.admin.topics
    topics.create_non_partitioned_topic("t")
    monkeypatch.setattr(SchemaRegistry, "register", refuse)
    with pytest.raises(pulsarx.StorageError) as error:
        memory_client.create_reader("t", MessageId.earliest, schema=StringSchema())
    assert error
    topics.delete("t")


@pytest.mark.parametrize("end", ["delete", "unload"])
def test_a_topic_that_ended_is_compacted_no_more(open_client: OpenClient, end: str) -> None:
    """What compacts is made when it is asked for: not to be stopped, and stopped where somebody
    who found the topic before asks for it afterwards."""
    client = open_client()
    client.admin.topics.create_non_partitioned_topic("t")
    topic = inspect(client).topic("t")
    getattr(client.admin.topics, end)("t")
    assert not topic.parts
    with pytest.raises(errors.TopicNotFound, match="closed or deleted"):
        topic.compaction.trigger()
    assert topic.trim() == []
