"""A consumer of all topics whose names match a pattern."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from support.consumer_types import ALL_TYPES
from support.next_calls import before_the_next
from topic_reading import OpenClient

import pulsarx
from pulsarx import ConsumerType, InitialPosition, RegexSubscriptionMode
from pulsarx.broker.schemas.registry import SchemaRegistry
from pulsarx.broker.topics.topic import Topic
from pulsarx.consuming.subscribing import _Several
from pulsarx.schema import Int32Schema, StringSchema
from pulsarx.testing import inspect

EARLIEST = InitialPosition.Earliest


def received(consumer: pulsarx.Consumer, count: int) -> list[bytes]:
    found = []
    for _ in range(count):
        message = consumer.receive(10_000)
        consumer.acknowledge(message)
        found.append(message.data())
    with pytest.raises(pulsarx.Timeout):
        consumer.receive(0)
    return sorted(found)


def subscribe(client: pulsarx.Client, pattern: str, **options: Any) -> pulsarx.Consumer:
    return client.subscribe(re.compile(pattern), options.pop("subscription_name", "s"), **options)


def send(client: pulsarx.Client, topic: str, data: bytes) -> None:
    producer = client.create_producer(topic)
    producer.send(data)
    producer.close()


@pytest.mark.parametrize(
    "pattern",
    [
        "persistent://public/default/fin-.*",
        "public/default/fin-.*",
        "fin-.*",
        "^persistent://public/default/fin-.*",
        "non-persistent://public/default/fin-.*",  # the mode decides, not the text
        "fin-[ab]$",
    ],
)
def test_it_receives_from_the_topics_that_match(
    memory_client: pulsarx.Client, pattern: str
) -> None:
    for topic in ("fin-a", "fin-b", "xfin-a", "fin"):
        send(memory_client, topic, topic.encode())
    consumer = subscribe(memory_client, pattern, initial_position=EARLIEST)
    assert received(consumer, 2) == [b"fin-a", b"fin-b"]


def test_the_whole_name_must_match(memory_client: pulsarx.Client) -> None:
    for topic in ("ab", "abc"):
        send(memory_client, topic, topic.encode())
    assert received(subscribe(memory_client, "ab", initial_position=EARLIEST), 1) == [b"ab"]


def test_flags_of_the_pattern_count(memory_client: pulsarx.Client) -> None:
    send(memory_client, "FIN-A", b"x")
    consumer = memory_client.subscribe(
        re.compile("fin-.*", re.IGNORECASE), "s", initial_position=EARLIEST
    )
    assert received(consumer, 1) == [b"x"]


def test_a_new_topic_is_taken_up_and_nothing_of_it_is_missed(
    memory_client: pulsarx.Client,
) -> None:
    """Also with the initial position Latest: the subscription comes together with the topic."""
    consumer = subscribe(memory_client, "new-.*")
    for number in range(5):
        send(memory_client, f"new-{number}", b"%d" % number)
    send(memory_client, "other", b"x")
    assert received(consumer, 5) == [b"0", b"1", b"2", b"3", b"4"]


def test_a_waiting_receive_gets_what_comes_to_a_new_topic(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client, "new-.*")
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(consumer.receive(60_000).data()))
    thread.start()
    send(memory_client, "new-1", b"x")
    thread.join(60)
    assert found == [b"x"]


def test_latest_misses_what_was_there_before(memory_client: pulsarx.Client) -> None:
    send(memory_client, "a-1", b"before")
    consumer = subscribe(memory_client, "a-.*")
    send(memory_client, "a-1", b"after")
    assert received(consumer, 1) == [b"after"]


def test_a_consumer_without_a_topic_waits(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client, "none-.*")
    assert consumer.is_connected()
    with pytest.raises(pulsarx.Timeout):
        consumer.receive(0)
    assert consumer.receive_many(10, 0) == []
    assert len(consumer.receive_arrow(10, 0)) == 0
    assert memory_client.admin.topics.get_list() == []
    consumer.close()
    with pytest.raises(pulsarx.AlreadyClosed):
        consumer.receive(0)


def test_a_partitioned_topic_is_one_match_and_grows(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic("p-1", 2)
    consumer = subscribe(memory_client, "p-.*")
    memory_client.admin.topics.create_partitioned_topic("p-2", 2)
    memory_client.admin.topics.update_partitioned_topic("p-1", 3)
    memory_client.admin.topics.update_partitioned_topic("p-2", 3)
    for topic in ("p-1", "p-2"):
        for partition in range(3):
            send(memory_client, f"{topic}-partition-{partition}", f"{topic}{partition}".encode())
    assert received(consumer, 6) == [b"p-10", b"p-11", b"p-12", b"p-20", b"p-21", b"p-22"]


def test_partitions_themselves_do_not_match(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic("p", 2)
    consumer = subscribe(memory_client, ".*-partition-.*", initial_position=EARLIEST)
    send(memory_client, "p-partition-0", b"x")
    with pytest.raises(pulsarx.Timeout):
        consumer.receive(0)


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [
        (RegexSubscriptionMode.PersistentOnly, [b"x"]),
        (RegexSubscriptionMode.AllTopics, [b"x"]),
        (RegexSubscriptionMode.NonPersistentOnly, []),
    ],
)
def test_the_mode_says_which_domains_are_meant(
    memory_client: pulsarx.Client, mode: RegexSubscriptionMode, wanted: list[bytes]
) -> None:
    send(memory_client, "t", b"x")
    consumer = subscribe(
        memory_client, "t", initial_position=EARLIEST, regex_subscription_mode=mode
    )
    assert received(consumer, len(wanted)) == wanted


def test_names_of_the_system_are_never_meant(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client, ".*")
    send(memory_client, "__mine", b"x")
    send(memory_client, "mine", b"y")
    assert received(consumer, 1) == [b"y"]


@pytest.mark.parametrize(
    "pattern", ["public/.*/x", ".*/default/x", "pub(lic|x)/default/x", "a/b/c/d", "public//x"]
)
def test_a_pattern_of_namespaces_is_refused(memory_client: pulsarx.Client, pattern: str) -> None:
    with pytest.raises(pulsarx.InvalidTopicName, match="last slash"):
        subscribe(memory_client, pattern)


def test_topics_of_a_namespace_that_comes_later_are_found(memory_client: pulsarx.Client) -> None:
    """The subscribe was refused; in Pulsar it is not."""
    memory_client.admin.tenants.create_tenant("other")
    consumer = subscribe(memory_client, "other/space/a.*")
    memory_client.admin.namespaces.create_namespace("other/space")
    for name in ("abc", "bcd"):
        memory_client.create_producer(f"other/space/{name}").send(name.encode())
    assert consumer.receive(60_000).data() == b"abc"
    assert not consumer.has_message()


def test_a_caret_behind_the_namespace_matches_nothing(memory_client: pulsarx.Client) -> None:
    """As in Pulsar, where the whole name is matched."""
    producer = memory_client.create_producer("abc")
    consumers = [
        subscribe(memory_client, pattern, subscription_name=f"s{number}")
        for number, pattern in enumerate(("abc$", "^abc$", "public/default/^abc"))
    ]
    producer.send(b"x")
    assert [each.has_message() for each in consumers] == [True, False, False]


@pytest.mark.parametrize("pattern", ["", "public/default/", "persistent://public/default/"])
def test_an_empty_pattern_is_refused(memory_client: pulsarx.Client, pattern: str) -> None:
    with pytest.raises(pulsarx.InvalidTopicName, match="no pattern for topics"):
        subscribe(memory_client, pattern)


def test_a_pattern_of_bytes_is_refused(memory_client: pulsarx.Client) -> None:
    with pytest.raises(TypeError, match="not of bytes"):
        memory_client.subscribe(re.compile(b"x"), "s")


def test_a_refused_topic_refuses_all_and_leaves_no_subscription(
    memory_client: pulsarx.Client,
) -> None:
    for topic in ("a-1", "a-2", "a-3"):
        send(memory_client, topic, b"x")
    holder = memory_client.subscribe("a-2", "s")
    with pytest.raises(pulsarx.ConsumerBusy):
        subscribe(memory_client, "a-.*")
    stats = memory_client.admin.topics.stats
    assert stats("a-1")["subscriptions"].keys() == set()
    assert stats("a-2")["subscriptions"].keys() == {"s"}
    assert stats("a-3")["subscriptions"].keys() == set()
    holder.close()
    subscribe(memory_client, "a-.*").close()
    send(memory_client, "a-4", b"nobody follows any more")
    assert stats("a-4")["subscriptions"] == {}


def test_a_new_topic_that_refuses_is_tried_again(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = subscribe(clocked_client, "a-.*", consumer_type=ConsumerType.Exclusive)
    with caplog.at_level(logging.ERROR, "pulsarx"):
        second = subscribe(
            clocked_client, "[a]-x", consumer_type=ConsumerType.Exclusive,
            pattern_auto_discovery_period=5,
        )  # fmt: skip
        send(clocked_client, "a-x", b"1")
    assert any("tried again in 5 s" in each.getMessage() for each in caplog.records)
    holder = [each for each in (first, second) if each.receive_many(1, 0)]
    assert holder == [first]
    first.close()
    manual_clock.advance(5000)
    assert second.receive(60_000).data() == b"1"


def test_topics_are_taken_up_no_more_after_close(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client, "a-.*")
    send(memory_client, "a-1", b"x")
    consumer.close()
    send(memory_client, "a-2", b"x")
    assert memory_client.admin.topics.stats("a-2")["subscriptions"] == {}
    assert memory_client.admin.topics.stats("a-1")["subscriptions"].keys() == {"s"}


def test_a_forgotten_consumer_follows_no_more(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(pulsarx.Client("memory:"), "a-.*")
    del consumer  # and its client
    send(memory_client, "a-1", b"x")
    assert memory_client.admin.topics.stats("a-1")["subscriptions"] == {}


def test_unsubscribe_deletes_the_subscription_of_all_topics(
    memory_client: pulsarx.Client,
) -> None:
    for topic in ("a-1", "a-2"):
        send(memory_client, topic, b"x")
    subscribe(memory_client, "a-.*").unsubscribe()
    for topic in ("a-1", "a-2"):
        assert memory_client.admin.topics.stats(topic)["subscriptions"] == {}


def test_a_listener_gets_what_comes_to_new_topics(memory_client: pulsarx.Client) -> None:
    told: list[bytes] = []
    came = threading.Event()

    def listen(consumer: pulsarx.Consumer, message: pulsarx.Message) -> None:
        told.append(message.data())
        consumer.acknowledge(message)
        came.set()

    subscribe(memory_client, "a-.*", message_listener=listen)
    send(memory_client, "a-1", b"x")
    assert came.wait(60)
    assert told == [b"x"]


@pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
)
def test_all_subscription_types_take_patterns(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = subscribe(memory_client, "a-.*", consumer_type=kind)
    for number in range(3):
        send(memory_client, f"a-{number}", b"%d" % number)
    assert received(consumer, 3) == [b"0", b"1", b"2"]


def test_positions_survive_a_restart(open_client: OpenClient) -> None:
    client = open_client()
    consumer = subscribe(client, "a-.*")
    for number in range(4):
        send(client, f"a-{number % 2}", b"%d" % number)
    taken = consumer.receive(60_000)
    consumer.acknowledge(taken)
    client.close()
    again = subscribe(open_client(), "a-.*")
    left = {b"0", b"1", b"2", b"3"} - {taken.data()}
    assert received(again, 3) == sorted(left)


def test_dead_letters_of_each_topic_do_not_come_back(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    policy = pulsarx.ConsumerDeadLetterPolicy(max_redeliver_count=1)
    consumer = subscribe(
        clocked_client, ".*", consumer_type=ConsumerType.Shared, dead_letter_policy=policy,
        negative_ack_redelivery_delay_ms=100,
    )  # fmt: skip
    dead = clocked_client.subscribe("a-s-DLQ", "watch")
    send(clocked_client, "a", b"x")
    for _ in range(2):
        consumer.negative_acknowledge(consumer.receive(60_000))
        manual_clock.advance(200)
    assert dead.receive(60_000).data() == b"x"
    assert consumer.receive_many(1, 0) == []
    assert clocked_client.admin.topics.stats("a-s-DLQ")["subscriptions"].keys() == {"watch"}


def test_retry_letters_of_a_pattern_come_again_once(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    send(clocked_client, "a", b"before")
    consumer = subscribe(
        clocked_client, "a.*", consumer_type=ConsumerType.Shared, retry_enable=True
    )
    send(clocked_client, "a", b"x")
    message = consumer.receive(60_000)
    consumer.reconsume_later(message, 1000)
    manual_clock.advance(1000)
    again = consumer.receive(60_000)
    assert again.data() == b"x"
    assert again.topic_name().endswith("a-s-RETRY")
    consumer.acknowledge(again)
    assert consumer.receive_many(1, 0) == []


def test_retry_letters_need_a_name_where_no_topic_is_there_yet(
    memory_client: pulsarx.Client,
) -> None:
    with pytest.raises(pulsarx.InvalidConfiguration, match="retry_letter_topic"):
        subscribe(memory_client, "a-.*", retry_enable=True)
    policy = pulsarx.ConsumerDeadLetterPolicy(3, retry_letter_topic="again")
    consumer = subscribe(
        memory_client, "a-.*", retry_enable=True, dead_letter_policy=policy,
        consumer_type=ConsumerType.Shared,
    )  # fmt: skip
    send(memory_client, "a-1", b"x")
    assert received(consumer, 1) == [b"x"]


def test_topics_may_be_created_while_a_pattern_subscribes(memory_client: pulsarx.Client) -> None:
    """Each is attached once, whether the consumer or its creator came first."""
    count = 60
    threads = [
        threading.Thread(target=lambda n=n: send(memory_client, f"a-{n}", b"%d" % n))
        for n in range(count)
    ]
    for thread in threads[: count // 2]:
        thread.start()
    consumer = subscribe(
        memory_client, "a-.*", consumer_type=ConsumerType.Exclusive, initial_position=EARLIEST
    )
    for thread in threads[count // 2 :]:
        thread.start()
    for thread in threads:
        thread.join()
    assert received(consumer, count) == sorted(b"%d" % n for n in range(count))


def test_two_patterns_and_a_topic_share_what_they_may(memory_client: pulsarx.Client) -> None:
    shared = {"consumer_type": ConsumerType.Shared}
    consumers = [
        subscribe(memory_client, "a.*", **shared),
        subscribe(memory_client, ".*b", **shared),
    ]
    send(memory_client, "ab", b"1")
    found = [each.data() for consumer in consumers for each in consumer.receive_many(2, 100)]
    assert found == [b"1"]


def test_many_topics_open_at_once(memory_client: pulsarx.Client) -> None:
    for number in range(500):
        memory_client.admin.topics.create_non_partitioned_topic(f"a-{number}")
    consumer = subscribe(memory_client, "a-.*", initial_position=EARLIEST)
    send(memory_client, "a-77", b"x")
    assert received(consumer, 1) == [b"x"]
    stats = memory_client.admin.topics.stats("a-499")
    assert stats["subscriptions"].keys() == {"s"}


def test_a_seek_to_the_beginning_moves_all_topics(memory_client: pulsarx.Client) -> None:
    consumer = subscribe(memory_client, "a-.*")
    for number in range(3):
        send(memory_client, f"a-{number}", b"%d" % number)
    assert received(consumer, 3) == [b"0", b"1", b"2"]
    consumer.seek(pulsarx.MessageId.earliest)
    assert received(consumer, 3) == [b"0", b"1", b"2"]


def test_the_schemas_of_topics_are_compared_with_the_consumers(
    memory_client: pulsarx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    memory_client.create_producer("a-1", schema=StringSchema()).send("x")
    consumer = subscribe(memory_client, "a-.*", initial_position=EARLIEST, schema=StringSchema())
    memory_client.create_producer("a-2", schema=StringSchema()).send("y")
    assert sorted(consumer.receive(60_000).value() for _ in range(2)) == ["x", "y"]
    with pytest.raises(pulsarx.IncompatibleSchema):
        subscribe(memory_client, "a-.*", subscription_name="other", schema=Int32Schema())
    for topic in ("a-1", "a-2"):
        assert memory_client.admin.topics.stats(topic)["subscriptions"].keys() == {"s"}


# Topics that come and go meanwhile ----------------------------------------------------------------


def consumers_of(client: pulsarx.Client, topic: str) -> int:
    return len(client.admin.topics.stats(topic)["subscriptions"]["s"]["consumers"])


class First:
    """Is told of a new topic before those who come later are."""

    def __init__(self, client: pulsarx.Client, created: Callable[[], object]) -> None:
        self._created = created
        inspect(client).broker.topics.watch(self)

    def created(self, _: object) -> None:
        self._created()

    def deleted(self, _: object) -> None:
        pass

    def grown(self, _: object) -> None:
        pass


def test_a_new_topic_that_refuses_it_on_one_partition_is_tried_again_as_a_whole(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    """It stayed attached to the other partitions, and so stood in its own way for ever."""
    others: list[pulsarx.Consumer] = []
    first = First(
        clocked_client, lambda: others.append(clocked_client.subscribe("p-1-partition-1", "s"))
    )
    consumer = subscribe(clocked_client, "p-.*")
    clocked_client.admin.topics.create_partitioned_topic("p-1", 3)
    assert first
    assert [consumers_of(clocked_client, f"p-1-partition-{n}") for n in range(3)] == [0, 1, 0]
    others[0].close()
    manual_clock.advance(60_000)
    inspect(clocked_client).settle()
    for number in range(3):
        send(clocked_client, f"p-1-partition-{number}", b"%d" % number)
    assert received(consumer, 3) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared])
def test_a_new_topic_that_cannot_keep_its_schema_is_tried_again(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    kind: ConsumerType,
) -> None:
    """It stayed attached without a schema, and the schema was refused because of that."""
    consumer = subscribe(clocked_client, "a-.*", schema=StringSchema(), consumer_type=kind)

    def refuse() -> None:
        raise pulsarx.StorageError(detail="no room")

    before_the_next(monkeypatch, SchemaRegistry, "register", refuse)
    clocked_client.admin.topics.create_non_partitioned_topic("a-1")
    assert consumers_of(clocked_client, "a-1") == 0
    manual_clock.advance(60_000)
    inspect(clocked_client).settle()
    assert consumers_of(clocked_client, "a-1") == 1
    assert len(clocked_client.admin.schemas.get_all_schemas("a-1")) == 1
    clocked_client.create_producer("a-1", schema=StringSchema()).send("x")
    assert consumer.receive(60_000).value() == "x"


@pytest.mark.guest(left_out="the owner's inside is changed")
@pytest.mark.parametrize("pattern", ["a-.*", "a-1"])
def test_a_new_topic_that_is_unloaded_meanwhile_is_taken_up(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """It was taken for deleted: the consumer never received from it."""
    client = open_client()
    consumer = subscribe(client, pattern)
    before_the_next(monkeypatch, Topic, "subscribe", lambda: client.admin.topics.unload("a-1"))
    send(client, "a-1", b"x")
    assert received(consumer, 1) == [b"x"]


@pytest.mark.guest(left_out="the owner's inside is changed")
@pytest.mark.parametrize("topic", ["a-2", "p-2"])
def test_a_topic_that_is_deleted_while_they_are_attached_is_passed_over(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch, topic: str
) -> None:
    """The whole call was refused with TopicNotFound."""
    topics = memory_client.admin.topics
    for each in ("a-1", "a-2", "a-3"):
        send(memory_client, each, each.encode())
    topics.create_partitioned_topic("p-2", 2)
    delete = topics.delete_partitioned_topic if topic == "p-2" else topics.delete
    deleting = threading.Thread(target=delete, args=(topic,))

    def delete_it() -> None:
        deleting.start()  # it ends when the consumer is there, which it tells of the deletion
        while any(topic in each for each in topics.get_list()):
            pass

    before_the_next(monkeypatch, _Several, "attach_all", delete_it)
    consumer = subscribe(memory_client, "[ap]-.*", initial_position=EARLIEST)
    deleting.join()
    rest = sorted({b"a-1", b"a-2", b"a-3"} - {topic.encode()})
    assert received(consumer, len(rest)) == rest
    send(memory_client, topic, b"another")
    assert received(consumer, 1) == [b"another"]


@pytest.mark.parametrize("partitions", [0, 2])
def test_a_topic_that_is_another_one_by_then_is_attached_once(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    """The consumer has the new one already when it is told of the deletion of the old one."""
    topics = memory_client.admin.topics

    def create() -> None:
        if partitions:
            topics.create_partitioned_topic("a", partitions)
        else:
            topics.create_non_partitioned_topic("a")

    delete = topics.delete_partitioned_topic if partitions else topics.delete
    create()
    threads = [threading.Thread(target=delete, args=("a",)), threading.Thread(target=create)]

    def delete_and_create() -> None:
        for thread, count in zip(threads, (0, max(partitions, 1))):
            thread.start()  # it ends when the consumer is there
            while len(topics.get_list()) != count:
                pass

    before_the_next(monkeypatch, _Several, "attach_all", delete_and_create)
    consumer = subscribe(memory_client, "a", consumer_type=ConsumerType.Shared)
    for thread in threads:
        thread.join()
    names = [f"a-partition-{n}" for n in range(partitions)] or ["a"]
    assert [consumers_of(memory_client, each) for each in names] == [1] * len(names)
    for each in names:
        send(memory_client, each, each.encode())
    assert received(consumer, len(names)) == sorted(each.encode() for each in names)
    if partitions:
        topics.update_partitioned_topic("a", partitions + 1)
        send(memory_client, f"a-partition-{partitions}", b"grown")
        assert received(consumer, 1) == [b"grown"]
