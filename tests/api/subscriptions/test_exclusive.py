"""Facts about Exclusive subscriptions, and about what all types have in common."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from support.consumer_types import ALL_TYPES
from topic_reading import OpenClient, open_paths
from type_steps import check, join, publish, publish_batch, statistics, take, take_messages

import pulsarx
from pulsarx import CompressionType, ConsumerType, InitialPosition, MessageId, errors
from pulsarx.compression import decompress
from pulsarx.enumerations import SubscriptionMode
from pulsarx.testing import inspect

all_types = pytest.mark.parametrize("kind", ALL_TYPES, ids=[kind.name for kind in ALL_TYPES])


def test_a_second_consumer_is_refused_and_leaves_no_trace(memory_client: pulsarx.Client) -> None:
    first = join(memory_client, ConsumerType.Exclusive, "first")
    with pytest.raises(errors.ConsumerBusy, match="first"):
        join(memory_client, ConsumerType.Exclusive, "second")
    assert [each["consumer_name"] for each in statistics(memory_client)["consumers"]] == ["first"]
    publish(memory_client, "1", "2")
    assert take(first) == ["1", "2"]
    first.close()
    assert take(join(memory_client, ConsumerType.Exclusive)) == ["1", "2"]


@pytest.mark.parametrize("other", ALL_TYPES, ids=[kind.name for kind in ALL_TYPES])
@all_types
def test_the_type_is_that_of_the_first_consumer(
    memory_client: pulsarx.Client, kind: ConsumerType, other: ConsumerType
) -> None:
    if kind == other:
        return
    consumer = join(memory_client, kind)
    with pytest.raises(errors.ConsumerBusy):
        join(memory_client, other)
    publish(memory_client, "1")
    assert take(consumer) == ["1"]


@pytest.mark.parametrize("after", ALL_TYPES, ids=[kind.name for kind in ALL_TYPES])
@all_types
def test_the_type_is_undefined_without_consumers_and_changes_when_all_have_left(
    memory_client: pulsarx.Client, kind: ConsumerType, after: ConsumerType
) -> None:
    """Seed: "When a subscription has no consumers, its subscription type is undefined. [...] the
    type can be changed by restarting all consumers with a different configuration."
    """
    count = 1 if kind == ConsumerType.Exclusive else 2
    consumers = [join(memory_client, kind) for _ in range(count)]
    publish(memory_client, "a:1", "b:2", "a:3")
    got: list[Any] = []
    for consumer in consumers:
        got += take_messages(consumer)
    consumers[0].acknowledge(next(each for each in got if each.data() == b"b:2"))
    assert statistics(memory_client)["type"] != ""
    for number, consumer in enumerate(consumers):
        if number:  # not before the last one has left
            if kind != after:
                with pytest.raises(errors.ConsumerBusy):
                    join(memory_client, after)
        consumer.close()
    assert statistics(memory_client)["type"] == ""
    assert take(join(memory_client, after)) == ["a:1", "a:3"]


@all_types
def test_without_consumers_a_subscription_retains(
    open_client: OpenClient, folder: Path, kind: ConsumerType
) -> None:
    client = open_client()
    join(client, kind).close()
    publish(client, "1", "2")
    publish_batch(client, "3", "4")
    assert statistics(client)["msg_backlog"] == 4
    client.close()
    client = open_client()
    consumer = join(client, kind)
    found = take_messages(consumer)
    assert [each.data() for each in found] == [b"1", b"2", b"3", b"4"]
    consumer.acknowledge(found[2])
    client.close()
    assert take(join(open_client(), kind)) == ["1", "2", "4"]


@pytest.mark.guest(left_out="forgotten consumers")
@pytest.mark.border(left_out="forgotten consumers")
@all_types
def test_a_forgotten_consumer_leaves(memory_client: pulsarx.Client, kind: ConsumerType) -> None:
    consumer = join(pulsarx.Client("memory:"), kind)
    publish(memory_client, "1")
    assert take(consumer) == ["1"]
    del consumer  # and its client
    inspect(memory_client).settle()  # it leaves in the background
    assert take(join(memory_client, kind)) == ["1"]


@all_types
def test_a_durable_and_a_non_durable_subscription_of_one_name_are_independent(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    durable = join(memory_client, kind)
    other = join(
        memory_client, ConsumerType.Exclusive, subscription_mode=SubscriptionMode.NonDurable
    )
    publish(memory_client, "1", "2")
    for message in take_messages(other):
        other.acknowledge(message)
    assert take(durable) == ["1", "2"]
    other.unsubscribe()
    assert statistics(memory_client)["msg_backlog"] == 2


@all_types
def test_a_non_durable_subscription_goes_with_its_last_consumer(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    mode = SubscriptionMode.NonDurable
    consumer = join(memory_client, kind, subscription_mode=mode)
    publish(memory_client, "1", "2")
    consumer.acknowledge(consumer.receive())
    consumer.close()
    assert memory_client.admin.topics.stats("t")["subscriptions"] == {}
    again = join(memory_client, kind, subscription_mode=mode)
    assert take(again) == ["1", "2"]


@pytest.mark.guest(left_out="memory is a folder")
@pytest.mark.border(left_out="forgotten consumers")
@all_types
def test_a_non_durable_subscription_is_made_anew_when_its_consumer_was_forgotten(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    """The new consumer used to get into the old subscription while that one was removed."""
    mode = SubscriptionMode.NonDurable
    consumer = join(pulsarx.Client("memory:"), kind, subscription_mode=mode)
    publish(memory_client, "1", "2")
    consumer.acknowledge(consumer.receive())
    del consumer  # and its client
    again = join(memory_client, kind, subscription_mode=mode)
    inspect(memory_client).settle()
    messages = take_messages(again)
    assert [each.data() for each in messages] == [b"1", b"2"]
    again.acknowledge(messages[0])
    assert list(memory_client.admin.topics.stats("t")["subscriptions"]) == ["s"]


@pytest.mark.parametrize("batched", [False, True])
@all_types
def test_a_non_durable_subscription_survives_that_its_messages_are_trimmed(
    manual_clock: pulsarx.ManualClock, kind: ConsumerType, batched: bool
) -> None:
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    client = pulsarx.Client("memory:trimmed", clock=manual_clock, broker_options=options)
    durable = client.subscribe("t", "durable")
    consumer = join(
        client, kind, subscription_mode=SubscriptionMode.NonDurable, receiver_queue_size=3
    )
    if batched:
        publish_batch(client, "0", "1", "2", "3")
        publish_batch(client, "4", "5")
        publish(client, "6")
    else:
        publish(client, *(f"{number}" for number in range(7)))
    got = take_messages(consumer, 1)
    for message in take_messages(durable):
        durable.acknowledge(message)
    inspect(client).settle()
    assert client.admin.topics.stats("t")["storage_size"] >= 0
    found = take(consumer)
    assert found[-1] == "6"
    assert found == sorted(found)
    check(consumer)
    consumer.acknowledge(got[0])
    consumer.negative_acknowledge(got[0])
    consumer.redeliver_unacknowledged_messages()
    assert take(consumer)[-1] == "6"
    check(consumer)
    client.close()


@pytest.mark.guest(left_out="memory is a folder")
@pytest.mark.parametrize("closed", [False, True])
@all_types
def test_no_entry_outlives_its_client(kind: ConsumerType, closed: bool) -> None:
    """Shared subscriptions kept the entry read last, and with it their whole topic, for ever."""

    def use() -> None:
        client = pulsarx.Client("memory:outlived")
        consumer = join(client, kind, receiver_queue_size=3)
        publish_batch(client, *(f"{number}" for number in range(9)))
        consumer.negative_acknowledge(consumer.receive())
        consumer.redeliver_unacknowledged_messages()
        assert take(consumer, 2) == ["0", "1"]
        if closed:
            consumer.close()
        client.close()

    use()
    gc.collect()
    before = len(open_files())
    for _ in range(3):
        use()
    gc.collect()
    assert len(open_files()) <= before  # less, where a test before left something open


def open_files() -> list[str]:
    """Without what other threads of this process have open and close: Spark's, for one."""
    return [each for each in open_paths() if not each.startswith(("socket:", "pipe:"))]


@pytest.mark.guest(left_out="the owner's inside is changed")
@pytest.mark.border(left_out="the inside is changed")
@all_types
def test_ctrl_c_while_an_entry_is_decompressed_loses_nothing(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch, kind: ConsumerType
) -> None:
    """The entry used to be passed over, on shared subscriptions until a restart."""
    interrupts = [KeyboardInterrupt]

    def interrupted(*arguments: Any) -> bytes:
        if interrupts:
            raise interrupts.pop()
        return decompress(*arguments)

    monkeypatch.setattr("pulsarx.broker.subscriptions.subscription.decompress", interrupted)
    consumer = join(memory_client, kind)
    producer = memory_client.create_producer("t", compression_type=CompressionType.ZLib)
    for payload in (b"1", b"2"):
        producer.send(payload)
    with pytest.raises(KeyboardInterrupt):
        consumer.receive(0)
    check(consumer)
    assert take(consumer) == ["1", "2"]
    check(consumer)


@all_types
def test_seek_delivers_again_from_there(memory_client: pulsarx.Client, kind: ConsumerType) -> None:
    consumer = join(memory_client, kind, receiver_queue_size=4, start_message_id_inclusive=True)
    publish(memory_client, *(f"{number}" for number in range(8)))
    publish_batch(memory_client, *(f"{number}" for number in range(8, 12)))
    got = take_messages(consumer, 9)
    for message in got[:3]:
        consumer.acknowledge(message)
    consumer.seek(got[5].message_id())
    assert take(consumer) == [f"{number}" for number in range(5, 12)]
    check(consumer)
    consumer.seek(MessageId.earliest)
    check(consumer)
    assert take(consumer, 6) == [f"{number}" for number in range(6)]
    consumer.seek(MessageId.latest)
    assert take(consumer) == []
    check(consumer)
    assert statistics(memory_client)["msg_backlog"] == 0


@pytest.mark.border(left_out="sent before acknowledged")
@all_types
def test_what_was_acknowledged_by_id_before_it_came_does_not_come(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    """On Exclusive a batch that was being handed out used to come to its end."""
    consumer = join(memory_client, kind)
    publish_batch(memory_client, *(f"{number}" for number in range(6)))
    publish(memory_client, "6", "7")
    first = consumer.receive()
    ids = [each.message_id() for each in take_messages(reader_of(memory_client), 8)]
    for number in (2, 5, 6):
        consumer.acknowledge(ids[number])
    assert [first.data().decode(), *take(consumer, 3)] == ["0", "1", "3", "4"]
    assert consumer.has_message()
    consumer.acknowledge(ids[7])
    assert not consumer.has_message()
    assert take(consumer) == []
    check(consumer)


def reader_of(client: pulsarx.Client) -> Any:
    return client.subscribe(
        "t",
        "other",
        initial_position=InitialPosition.Earliest,
        subscription_mode=SubscriptionMode.NonDurable,
    )


@pytest.mark.parametrize("kind", ALL_TYPES[1:], ids=[kind.name for kind in ALL_TYPES[1:]])
def test_only_the_last_consumer_may_unsubscribe(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    one, other = join(memory_client, kind), join(memory_client, kind)
    publish(memory_client, "1")
    for consumer in (one, other):
        with pytest.raises(errors.BrokerMetadataError, match="1 other consumer"):
            consumer.unsubscribe()
    assert one.is_connected() and other.is_connected()
    assert take(one) + take(other) == ["1"]
    other.close()
    one.unsubscribe()
    assert memory_client.admin.topics.stats("t")["subscriptions"] == {}


@all_types
def test_unsubscribing_a_non_durable_subscription_removes_that_one(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    """It used to look for a durable one of the name."""
    consumer = join(memory_client, kind, subscription_mode=SubscriptionMode.NonDurable)
    consumer.unsubscribe()
    assert not consumer.is_connected()
    assert memory_client.admin.topics.stats("t")["subscriptions"] == {}
