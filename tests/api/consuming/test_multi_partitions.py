"""Facts about a consumer of partitions, and about several consumers of several topics."""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import Any

import pytest
from topic_reading import OpenClient, drain, numbers, payloads
from topics_steps import TOPICS, in_thread, publish, subscribe

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, errors
from pulsarx.broker.subscriptions.subscription import Subscription
from pulsarx.clock import Deadline
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

# Partitions --------------------------------------------------------------------------------------


def partitioned(client: pulsarx.Client, partitions: int = 3, **options: Any) -> Any:
    client.admin.topics.create_partitioned_topic("p", partitions)
    options.setdefault("initial_position", InitialPosition.Earliest)
    return client.subscribe("p", "s", **options)


def test_a_partitioned_topic_is_received_with_all_its_partitions(
    memory_client: pulsarx.Client,
) -> None:
    consumer = partitioned(memory_client)
    producer = memory_client.create_producer("p")
    ids = [producer.send(number) for number in numbers(30)]
    messages = drain(consumer)
    assert sorted(message.data() for message in messages) == sorted(numbers(30))
    assert {each.partition() for each in ids} == {0, 1, 2}
    assert consumer.topic() == "persistent://public/default/p"
    for message in messages:
        consumer.acknowledge(message.message_id())
    consumer.seek(MessageId.latest)
    assert drain(consumer) == []
    consumer.close()
    assert (
        memory_client.admin.topics.partitioned_stats("p")["subscriptions"]["s"]["msg_backlog"] == 0
    )


def test_a_consumer_grows_with_its_topic(memory_client: pulsarx.Client) -> None:
    consumer = partitioned(memory_client, 1)
    thread, result = in_thread(lambda: [consumer.receive().data() for _ in range(8)])
    memory_client.admin.topics.update_partitioned_topic("p", 4)
    for index in range(4):
        memory_client.create_producer(f"p-partition-{index}").send_many(numbers(2, 2 * index))
    thread.join(30)
    assert sorted(result[0]) == numbers(8)  # type: ignore[call-overload]
    assert len(consumer.members()) == 4
    consumer.close()
    memory_client.admin.topics.update_partitioned_topic("p", 5)
    for index in range(5):
        memory_client.subscribe(f"p-partition-{index}", "s")


def test_a_forgotten_consumer_does_not_grow(memory_client: pulsarx.Client) -> None:
    consumer = partitioned(pulsarx.Client("memory:"), 1)
    del consumer  # and its client
    memory_client.admin.topics.update_partitioned_topic("p", 2)
    memory_client.subscribe("p-partition-1", "s")


@pytest.mark.parametrize("count", [1, 3])
def test_partitions_refuse_a_receiver_queue_of_0(memory_client: pulsarx.Client, count: int) -> None:
    with pytest.raises(errors.InvalidConfiguration) as caught:
        partitioned(memory_client, count, receiver_queue_size=0)
    assert str(caught.value) == "Pulsar error: InvalidConfiguration"
    assert "a consumer of partitions needs a receiver queue" in caught.value.detail


def test_one_partition_by_its_name_takes_a_receiver_queue_of_0(
    memory_client: pulsarx.Client,
) -> None:
    memory_client.admin.topics.create_partitioned_topic("p", 2)
    consumer = memory_client.subscribe("p-partition-1", "s", receiver_queue_size=0)
    memory_client.create_producer("p-partition-1").send(b"0")
    assert consumer.receive().data() == b"0"


def test_partitions_and_topics_go_together_in_a_list(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic("p", 2)
    consumer = subscribe(memory_client, ["p", "a"])
    producer = memory_client.create_producer("p")
    for number in numbers(4):
        producer.send(number)
    publish(memory_client, "a", 1)
    assert sorted(payloads(consumer)) == [*numbers(4), b"a0"]


# Types -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ConsumerType.Shared, ConsumerType.KeyShared])
def test_consumers_share_several_topics(memory_client: pulsarx.Client, kind: ConsumerType) -> None:
    consumers = [subscribe(memory_client, consumer_type=kind) for _ in range(3)]
    for topic in TOPICS:
        with memory_client.create_producer(topic) as producer:
            for number in numbers(60):
                producer.send(topic.encode() + number, partition_key=number.decode())
    found = []
    for consumer in consumers:
        messages = drain(consumer)
        assert messages
        consumer.acknowledge_many(messages)
        found += [message.data() for message in messages]
    assert sorted(found) == sorted(topic.encode() + n for topic in TOPICS for n in numbers(60))


def test_what_a_leaver_had_wakes_one_who_waits(memory_client: pulsarx.Client) -> None:
    first = subscribe(memory_client, consumer_type=ConsumerType.Shared)
    publish(memory_client, "b", 4)
    assert len(drain(first)) == 4
    second = subscribe(memory_client, consumer_type=ConsumerType.Shared)
    thread, result = in_thread(lambda: {second.receive().data() for _ in range(4)})
    first.close()
    thread.join(30)
    assert result == [{b"b0", b"b1", b"b2", b"b3"}]


@pytest.mark.parametrize("kind", [ConsumerType.Shared, ConsumerType.Exclusive])
def test_a_negatively_acknowledged_message_comes_again_after_its_delay(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    consumer = subscribe(clocked_client, consumer_type=kind)
    publish(clocked_client, "a", 1)
    publish(clocked_client, "b", 1)
    by_payload = {message.data(): message for message in drain(consumer)}
    consumer.negative_acknowledge(by_payload[b"a0"])
    consumer.negative_acknowledge(by_payload[b"b0"].message_id())
    manual_clock.advance(59)
    assert drain(consumer) == []
    thread, result = in_thread(lambda: {consumer.receive().data() for _ in range(2)})
    manual_clock.advance(2)
    thread.join(30)
    assert result == [{b"a0", b"b0"}]


def test_members_of_a_failover_subscription_are_told_who_is_active(
    memory_client: pulsarx.Client,
) -> None:
    told: queue.SimpleQueue[tuple[str, int]] = queue.SimpleQueue()

    class Events:
        def became_active(self, consumer: Any, partition: int) -> None:
            told.put((f"{consumer.consumer_name()} active", partition))

        def became_inactive(self, consumer: Any, partition: int) -> None:
            told.put((f"{consumer.consumer_name()} inactive", partition))

    options: Any = {"consumer_type": ConsumerType.Failover, "consumer_event_listener": Events()}
    memory_client.admin.topics.create_partitioned_topic("p", 2)
    first = memory_client.subscribe("p", "s", consumer_name="a", **options)
    assert {told.get(timeout=30) for _ in range(2)} == {("a active", 0), ("a active", 1)}
    second = memory_client.subscribe("p", "s", consumer_name="b", **options)
    first.close()
    found = set()
    while not {("b active", 0), ("b active", 1)} <= found:
        found.add(told.get(timeout=30))
    second.close()


def test_consumers_come_and_go_while_others_listen_and_wait(memory_client: pulsarx.Client) -> None:
    """Listeners, futures and receivers of one Shared subscription; everyone closes in the middle.
    Nothing is lost, and nobody hangs."""
    count = 3000
    acknowledged: set[bytes] = set()
    done = threading.Event()

    def process(consumer: Any, message: Any) -> None:
        try:
            consumer.acknowledge(message)
        except errors.AlreadyClosed:
            return  # it comes again to another
        acknowledged.add(message.data())
        if len(acknowledged) == count * len(TOPICS):
            done.set()

    def listen() -> Any:
        return subscribe(memory_client, consumer_type=ConsumerType.Shared, message_listener=process)

    def receive(number: int) -> None:
        while not done.is_set():
            with subscribe(memory_client, consumer_type=ConsumerType.Shared) as consumer:
                for turn in range(20):
                    if (number + turn) % 2:
                        future = consumer.receive_async()
                        if not future.cancel():
                            process(consumer, future.result())
                    else:
                        for message in consumer.receive_many(13, 1):
                            process(consumer, message)
            if number == 0:
                listen().close()

    listener = listen()
    threads = [in_thread(lambda n=number: receive(n)) for number in range(3)]
    threads += [in_thread(lambda t=topic: publish(memory_client, t, count)) for topic in TOPICS]
    for thread, _ in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert [result for _, result in threads if isinstance(result[0], Exception)] == []
    assert len(acknowledged) == count * len(TOPICS)
    listener.close()
    rest = subscribe(memory_client, consumer_type=ConsumerType.Shared)
    assert drain(rest) == []


def test_a_consumer_that_left_gets_no_new_partitions(
    memory_client: pulsarx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    """A closed one used to come back for a moment, so that the open one of an Exclusive
    subscription was refused and missed the new partition."""
    memory_client.admin.topics.create_partitioned_topic("p", 2)
    left = memory_client.subscribe("p", "s")
    left.close()
    consumer = memory_client.subscribe("p", "s")
    memory_client.admin.topics.update_partitioned_topic("p", 4)
    with memory_client.create_producer("p-partition-3") as producer:
        producer.send(b"new")
    assert consumer.receive(60_000).data() == b"new"
    assert not left.is_connected()
    assert caplog.text == ""


def test_new_partitions_do_not_bring_an_unsubscribed_subscription_back(
    memory_client: pulsarx.Client,
) -> None:
    """The new partitions used to get it, without a consumer, and to keep their messages for it."""
    topics = memory_client.admin.topics
    topics.create_partitioned_topic("p", 2)
    left = memory_client.subscribe("p", "s")
    left.unsubscribe()
    topics.update_partitioned_topic("p", 3)
    assert topics.partitioned_stats("p")["subscriptions"] == {}
    assert not left.is_connected()


def test_a_new_partition_that_could_not_be_attached_is_tried_again(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A second later, as often as it takes; the log says so. What is published meanwhile waits."""
    topics = clocked_client.admin.topics
    topics.create_partitioned_topic("p", 2)
    consumer = clocked_client.subscribe("p", "s")
    attach = Subscription.attach
    failures = [errors.StorageError(detail="too many open files")] * 2

    def fail_twice(self: Subscription, *given: Any) -> Any:
        if failures:
            raise failures.pop()
        return attach(self, *given)

    with monkeypatch.context() as failing:
        failing.setattr(Subscription, "attach", fail_twice)
        topics.update_partitioned_topic("p", 3)
        with clocked_client.create_producer("p-partition-2") as producer:
            producer.send(b"new")
        for left in (1, 0):
            assert len(failures) == left
            assert consumer.take_now() is None
            manual_clock.advance(1)
            inspect(clocked_client).settle()
    assert consumer.receive(60_000).data() == b"new"
    assert caplog.text.count("did not get its new partitions") == 2


def test_a_consumer_that_left_is_tried_for_no_more(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topics = clocked_client.admin.topics
    topics.create_partitioned_topic("p", 2)
    consumer = clocked_client.subscribe("p", "s")
    calls: list[None] = []

    def fail(self: Subscription, *given: Any) -> Any:
        calls.append(None)
        raise errors.StorageError(detail="too many open files")

    monkeypatch.setattr(Subscription, "attach", fail)
    topics.update_partitioned_topic("p", 3)
    consumer.close()
    for _ in range(3):
        manual_clock.advance(1)
        inspect(clocked_client).settle()
    assert len(calls) == 1


# Many cursors -------------------------------------------------------------------------------------


def make_partitions(client: pulsarx.Client) -> None:
    """With a message in each: else their cursors have no files yet."""
    client.admin.topics.create_partitioned_topic("many", 30)
    for index in range(30):
        client.create_producer(f"many-partition-{index}").send(b"old")


def test_cursors_of_many_topics_are_flushed_at_once(open_client: OpenClient) -> None:
    """Each waited for the device by itself: a pattern over 10,000 topics took half a minute."""
    client = open_client()
    make_partitions(client)
    with fault_plan() as plan:
        plan.stall("flush", sticky=True)
        thread = threading.Thread(target=lambda: client.subscribe("many", "s"))
        thread.start()
        deadline = Deadline(60_000)  # where they wait for each other there is never a second one
        while plan.stalled() < 2 and not deadline.expired():
            pass
        together = plan.stalled()
        plan.release()
        thread.join()
    assert together >= 2
    assert len(client.admin.topics.partitioned_stats("many")["partitions"]) == 30


@pytest.mark.parametrize("operation", ["flush", "rename", "allocate"])
@pytest.mark.parametrize("call", [1, 20])
def test_one_cursor_of_many_that_cannot_be_kept_leaves_none(
    open_client: OpenClient, folder: Path, operation: str, call: int
) -> None:
    client = open_client()
    topics = client.admin.topics
    make_partitions(client)
    with fault_plan() as plan:
        plan.fail(operation, call)
        with pytest.raises(errors.StorageError):
            client.subscribe("many", "s")
    assert topics.get_subscriptions("many") == []
    assert list((folder / "cursors").iterdir()) == []
    consumer = client.subscribe("many", "s")
    producer = client.create_producer("many")
    ids = [producer.send(b"x") for _ in range(60)]
    assert {message.message_id() for message in drain(consumer)} == set(ids)


def test_closing_flushes_no_cursor_in_which_nothing_was_acknowledged(
    open_client: OpenClient,
) -> None:
    """It flushed each: a client of 10,000 idle topics took ten seconds to close."""
    client = open_client()
    make_partitions(client)
    client.close()
    client = open_client()
    client.subscribe("many", "s").close()
    with fault_plan() as plan:
        client.close()
        assert plan.calls("flush") < 30
