"""Facts about a consumer of several topics."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from topic_reading import OpenClient, drain, numbers, payloads
from topics_steps import TOPICS, in_thread, of_topic, publish, subscribe

import pulsarx
from pulsarx import InitialPosition, MessageId, errors
from pulsarx.broker.schemas.registry import SchemaRegistry
from pulsarx.broker.topics.topic import Topic
from pulsarx.consuming.subscribing import _Several
from pulsarx.ground.client_owner import take_back
from pulsarx.schema import StringSchema

# Receiving ---------------------------------------------------------------------------------------


def test_it_is_a_consumer_like_that_of_one_topic(memory_client: pulsarx.Client) -> None:
    several = subscribe(memory_client, consumer_name="me")
    one = memory_client.subscribe("z", "s")
    assert isinstance(several, pulsarx.Consumer)
    assert isinstance(one, pulsarx.Consumer)
    assert several.consumer_name() == "me"
    assert several.subscription_name() == "s"
    assert several.topic() == ",".join(f"persistent://public/default/{name}" for name in TOPICS)
    assert several.is_connected()


def test_it_receives_every_message_of_every_topic_in_the_order_of_each(
    memory_client: pulsarx.Client,
) -> None:
    consumer = subscribe(memory_client)
    for topic in TOPICS:
        publish(memory_client, topic, 50)
    found = payloads(consumer)
    assert len(found) == 150
    for topic in TOPICS:
        assert of_topic(found, topic) == [b"%s%d" % (topic.encode(), n) for n in range(50)]


@pytest.mark.guest(left_out="messages come later")
def test_it_takes_from_its_topics_in_turn(memory_client: pulsarx.Client) -> None:
    for topic in TOPICS:
        publish(memory_client, topic, 4)
    consumer = subscribe(memory_client)
    found = [consumer.receive(0).data()[:1] for _ in range(12)]
    assert all(set(found[at : at + 3]) == {b"a", b"b", b"c"} for at in range(0, 12, 3))


def test_a_topic_named_twice_is_one_topic(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client, ["a", "persistent://public/default/a", "a"])
    publish(memory_client, "a", 2)
    assert payloads(consumer) == [b"a0", b"a1"]


def test_a_list_of_one_topic_is_accepted(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client, ["a"])
    publish(memory_client, "a", 1)
    assert consumer.receive(60_000).data() == b"a0"


@pytest.mark.parametrize("topic", TOPICS)
def test_whoever_waits_is_woken_by_any_topic(memory_client: pulsarx.Client, topic: str) -> None:
    consumer = subscribe(memory_client)
    thread, result = in_thread(consumer.receive)
    publish(memory_client, topic, 1)
    thread.join(30)
    assert result[0].data() == b"%s0" % topic.encode()  # type: ignore[attr-defined]


def test_many_threads_receive_every_message_once(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client)
    found: list[bytes] = []
    count = 3000

    def receive() -> None:
        while True:
            messages = consumer.receive_many(7)
            for message in messages:
                found.append(message.data())
            if len(found) >= 3 * count:
                consumer.close()

    threads = [in_thread(receive) for _ in range(4)]
    senders = [in_thread(lambda t=topic: publish(memory_client, t, count)) for topic in TOPICS]
    for thread, _ in [*senders, *threads]:
        thread.join(60)
    assert len(found) == 3 * count
    assert len(set(found)) == 3 * count
    assert all(isinstance(result[0], errors.AlreadyClosed) for _, result in threads)


@pytest.mark.parametrize("timeout", [0, -1, 1])
def test_receive_raises_timeout_when_nothing_comes(
    memory_client: pulsarx.Client, timeout: int
) -> None:
    consumer = subscribe(memory_client)
    with pytest.raises(errors.Timeout):
        consumer.receive(timeout)
    assert consumer.receive_many(5, timeout) == []
    assert len(consumer.receive_arrow(5, timeout)) == 0
    with pytest.raises(ValueError, match="timeout_millis"):
        consumer.receive(0.5)


def test_columns_are_of_one_topic_a_call_and_are_acknowledged(
    memory_client: pulsarx.Client,
) -> None:
    for topic in TOPICS:
        publish(memory_client, topic, 5)
    consumer = subscribe(memory_client)
    sizes = []
    for _ in TOPICS:
        rows = consumer.receive_arrow(100, 1000)
        consumer.acknowledge_many(rows)
        sizes.append(len(rows))
    assert sizes == [5, 5, 5]
    consumer.redeliver_unacknowledged_messages()
    assert drain(consumer) == []


def test_batch_receive_collects_from_all_topics(memory_client: pulsarx.Client) -> None:
    policy = pulsarx.ConsumerBatchReceivePolicy(6, -1, -1)
    consumer = subscribe(memory_client, batch_receive_policy=policy)
    for topic in TOPICS:
        publish(memory_client, topic, 2)
    assert len(consumer.batch_receive()) == 6


def test_has_message_looks_at_every_topic(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client)
    assert not consumer.has_message()
    publish(memory_client, "c", 1)
    assert consumer.has_message()
    consumer.receive(0)
    assert not consumer.has_message()


@pytest.mark.parametrize("topics", [TOPICS, ["a"], re.compile("persistent://public/default/.*")])
def test_a_receiver_queue_of_0_is_refused(memory_client: pulsarx.Client, topics: Any) -> None:
    """As the official client refuses it on partitions. Its consumers of a list or a pattern take a
    message of each topic, and hand out none."""
    with pytest.raises(errors.InvalidConfiguration) as caught:
        memory_client.subscribe(topics, "s", receiver_queue_size=0)
    assert str(caught.value) == "Pulsar error: InvalidConfiguration"
    assert "a consumer of several topics needs a receiver queue" in caught.value.detail
    assert memory_client.admin.topics.get_list("public/default") == []


# Acknowledging -----------------------------------------------------------------------------------


def test_acknowledged_messages_do_not_come_again(open_client: OpenClient) -> None:
    client = open_client()
    consumer = subscribe(client)
    for topic in TOPICS:
        publish(client, topic, 4)
    messages = drain(consumer)
    assert len(messages) == 12
    for message in messages:
        if message.data()[1:] in (b"0", b"1"):
            consumer.acknowledge(message)
        elif message.data()[1:] == b"2":
            consumer.acknowledge(message.message_id())
    client.close()
    rest = payloads(subscribe(open_client()))
    assert sorted(rest) == [b"a3", b"b3", b"c3"]


def test_a_list_of_messages_and_ids_is_acknowledged_on_their_topics(
    memory_client: pulsarx.Client,
) -> None:
    consumer = subscribe(memory_client)
    for topic in TOPICS:
        publish(memory_client, topic, 4)
    messages = drain(consumer)
    consumer.acknowledge_many(
        [each.message_id() if number % 2 else each for number, each in enumerate(messages)][:11]
    )
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == [messages[11].data()]


def test_a_cumulative_acknowledgement_is_about_the_topic_of_its_message(
    memory_client: pulsarx.Client,
) -> None:
    consumer = subscribe(memory_client)
    for topic in TOPICS:
        publish(memory_client, topic, 3)
    by_payload = {message.data(): message for message in drain(consumer)}
    consumer.acknowledge_cumulative(by_payload[b"a1"])
    consumer.acknowledge_cumulative(by_payload[b"b0"].message_id())
    consumer.redeliver_unacknowledged_messages()
    assert sorted(payloads(consumer)) == [b"a2", b"b1", b"b2", b"c0", b"c1", b"c2"]


def test_a_foreign_message_is_refused(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client)
    publish(memory_client, "z", 1)
    other = memory_client.subscribe("z", "s", initial_position=InitialPosition.Earliest)
    foreign = other.receive(0)
    for call in (consumer.acknowledge, consumer.acknowledge_cumulative):
        with pytest.raises(errors.OperationNotSupported):
            call(foreign)
    with pytest.raises(errors.OperationNotSupported):
        consumer.acknowledge_many([foreign])
    with pytest.raises(TypeError):
        consumer.acknowledge("x")


# Seeking -----------------------------------------------------------------------------------------


def test_a_seek_to_earliest_latest_or_a_time_moves_all_topics(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    consumer = subscribe(clocked_client)
    for topic in TOPICS:
        publish(clocked_client, topic, 1)
    manual_clock.advance(10)
    middle_ms = manual_clock.now_ms()
    for topic in TOPICS:
        with clocked_client.create_producer(topic) as producer:
            producer.send(topic.encode() + b"late")
    assert len(drain(consumer)) == 6
    consumer.seek(MessageId.earliest)
    assert len(drain(consumer)) == 6
    consumer.seek(middle_ms)
    assert sorted(payloads(consumer)) == [b"alate", b"blate", b"clate"]
    consumer.seek(MessageId.latest)
    assert payloads(consumer) == []


def test_a_seek_to_an_id_moves_its_topic_only(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client)
    ids = {topic: publish(memory_client, topic, 3) for topic in TOPICS}
    messages = drain(consumer)
    consumer.acknowledge_many(messages)
    consumer.seek(ids["b"][0])
    assert payloads(consumer) == [b"b1", b"b2"]
    stranger = publish(memory_client, "z", 1)[0]
    with pytest.raises(errors.OperationNotSupported, match="belongs to no topic"):
        consumer.seek(stranger)
    with pytest.raises(ValueError, match="seek_arg"):
        consumer.seek("x")


def test_the_last_message_id_is_not_supported(memory_client: pulsarx.Client) -> None:
    with pytest.raises(errors.OperationNotSupported):
        subscribe(memory_client).get_last_message_id()


# Leaving -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["close", "unsubscribe", "client"])
def test_whoever_waits_when_it_ends_gets_already_closed(
    memory_client: pulsarx.Client, end: str
) -> None:
    consumer = subscribe(memory_client)
    threads = [in_thread(call) for call in (consumer.receive, lambda: consumer.receive_many(5))]
    threads.append(in_thread(lambda: consumer.receive_arrow(5)))
    {"close": consumer.close, "unsubscribe": consumer.unsubscribe, "client": memory_client.close}[
        end
    ]()
    for thread, _ in threads:
        thread.join(30)
    assert all(isinstance(result[0], errors.AlreadyClosed) for _, result in threads)


def test_every_call_after_close_raises_already_closed(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client)
    message_id = publish(memory_client, "a", 1)[0]
    message = consumer.receive(0)
    consumer.close()
    calls: list[Callable[[], object]] = [
        consumer.receive,
        lambda: consumer.receive(0),
        lambda: consumer.receive_many(1),
        lambda: consumer.receive_arrow(1),
        consumer.receive_async,
        consumer.take_now,
        consumer.batch_receive,
        consumer.has_message,
        lambda: consumer.acknowledge(message),
        lambda: consumer.acknowledge(message_id),
        lambda: consumer.acknowledge_cumulative(message),
        lambda: consumer.acknowledge_many([message]),
        consumer.get_last_message_id,
        lambda: consumer.seek(0),
        consumer.unsubscribe,
        consumer.pause_message_listener,
        consumer.resume_message_listener,
        consumer.close,
    ]
    for call in calls:
        with pytest.raises(errors.AlreadyClosed):
            call()
    assert not consumer.is_connected()


def test_closing_gives_every_topic_back(memory_client: pulsarx.Client) -> None:
    subscribe(memory_client).close()
    for topic in TOPICS:
        memory_client.subscribe(topic, "s")


def test_unsubscribing_forgets_the_position_on_every_topic(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client)
    consumer.unsubscribe()
    consumer.close()
    for topic in TOPICS:
        assert memory_client.admin.topics.stats(topic)["subscriptions"] == {}


def test_when_one_topic_refuses_no_topic_is_attached(memory_client: pulsarx.Client) -> None:
    busy = memory_client.subscribe("c", "s")
    with pytest.raises(errors.ConsumerBusy):
        subscribe(memory_client)
    for topic in ("a", "b"):
        memory_client.subscribe(topic, "s").close()
    busy.close()
    assert subscribe(memory_client).is_connected()


def test_a_wrong_name_in_the_list_makes_no_topic(memory_client: pulsarx.Client) -> None:
    with pytest.raises(errors.InvalidTopicName):
        subscribe(memory_client, ["a", "b/c"])
    assert memory_client.admin.topics.get_list("public/default") == []


@pytest.mark.guest(left_out="the owner's inside is changed")
def test_a_topic_that_sends_the_consumer_away_leaves_it_the_others(
    memory_client: pulsarx.Client,
) -> None:
    one = memory_client.subscribe("a", "s")
    one.close()
    consumer = subscribe(memory_client, ["a", "b"])
    consumer.members()[0].unsubscribe()
    publish(memory_client, "b", 1)
    assert consumer.receive(60_000).data() == b"b0"
    consumer.members()[1].unsubscribe()
    with pytest.raises(errors.AlreadyClosed):
        consumer.receive()


@pytest.mark.guest(left_out="forgotten consumers")
def test_a_forgotten_consumer_gives_its_topics_back(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(pulsarx.Client("memory:"))
    del consumer  # and its client
    publish(memory_client, "a", 2)
    assert payloads(memory_client.subscribe("a", "s")) == [b"a0", b"a1"]


def test_it_survives_a_restart(open_client: OpenClient) -> None:
    client = open_client()
    consumer = subscribe(client)
    publish(client, "a", 3)
    publish(client, "b", 3)
    for message in drain(consumer):
        if message.data()[:1] == b"a":
            consumer.acknowledge(message)
    client.close()
    assert payloads(subscribe(open_client())) == numbers_of("b", 3)


def numbers_of(topic: str, count: int) -> list[bytes]:
    return [topic.encode() + number for number in numbers(count)]


def test_a_consumer_refused_by_one_topic_leaves_no_subscription_on_others(
    memory_client: pulsarx.Client,
) -> None:
    """Those made on the way used to stay, and to keep messages for nobody."""
    holder = memory_client.subscribe("b", "s")
    memory_client.subscribe("kept", "s").close()
    with pytest.raises(errors.ConsumerBusy):
        memory_client.subscribe(["a", "kept", "b"], "s")
    stats = memory_client.admin.topics.stats
    assert "a" not in [each.rpartition("/")[2] for each in memory_client.admin.topics.get_list()]
    assert list(stats("kept")["subscriptions"]) == ["s"]
    assert holder.is_connected()


# What is left, and what goes meanwhile ------------------------------------------------------------


def test_a_schema_that_cannot_be_kept_leaves_no_subscription(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages were held for a consumer that was never made."""

    def refuse(*_: object) -> None:
        raise errors.StorageError(detail="no room")

    for topic in TOPICS:
        memory_client.admin.topics.create_non_partitioned_topic(topic)
    monkeypatch.setattr(SchemaRegistry, "register", refuse)
    with pytest.raises(errors.StorageError):
        subscribe(memory_client, schema=StringSchema())
    for topic in TOPICS:
        assert memory_client.admin.topics.get_subscriptions(topic) == []


def test_what_is_taken_back_from_an_interrupted_caller_leaves_no_subscription(
    memory_client: pulsarx.Client,
) -> None:
    memory_client.subscribe(TOPICS[0], "s").close()
    take_back(subscribe(memory_client))
    found = [memory_client.admin.topics.get_subscriptions(each) for each in TOPICS]
    assert found == [["s"], *[[] for _ in TOPICS[1:]]]


@pytest.mark.guest(left_out="the owner's inside is changed")
@pytest.mark.parametrize("partitions", [0, 2])
def test_a_topic_that_goes_while_they_are_attached_is_made_anew(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    """The call was refused with TopicNotFound, though it makes topics that are missing."""
    topics = memory_client.admin.topics
    last = TOPICS[-1]
    delete = topics.delete
    if partitions:
        topics.create_partitioned_topic(last, partitions)
        delete = topics.delete_partitioned_topic
    attach_all = _Several.attach_all

    def deleting(*arguments: Any) -> Any:
        monkeypatch.setattr(_Several, "attach_all", attach_all)
        delete(last)
        return attach_all(*arguments)

    monkeypatch.setattr(_Several, "attach_all", deleting)
    consumer = subscribe(memory_client)
    for topic in TOPICS:
        publish(memory_client, topic, 1)
    assert sorted(payloads(consumer)) == sorted(b"%s0" % topic.encode() for topic in TOPICS)


def test_one_topic_that_goes_while_its_schema_is_compared_is_made_anew(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KeyError."""
    memory_client.admin.topics.create_non_partitioned_topic("t")
    is_idle = Topic.is_idle

    def deleting(topic: Topic) -> bool:
        monkeypatch.setattr(Topic, "is_idle", is_idle)
        memory_client.admin.topics.delete("t")
        return is_idle(topic)

    monkeypatch.setattr(Topic, "is_idle", deleting)
    consumer = memory_client.subscribe("t", "s", schema=StringSchema())
    memory_client.create_producer("t").send(b"x")
    assert consumer.receive(60_000).data() == b"x"
