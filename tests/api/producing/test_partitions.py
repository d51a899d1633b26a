"""Partitioned topics: creating, growing, naming; ids; what happens to them over a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from topic_reading import OpenClient, Told, drain, payloads, read_all, whole_topic

import pulsarx
from pulsarx import errors
from pulsarx.testing import inspect

FULL = "persistent://public/default/"
EARLIEST = pulsarx.InitialPosition.Earliest


def partitioned(client: pulsarx.Client, partitions: int = 3, topic: str = "x") -> Any:
    client.admin.topics.create_partitioned_topic(topic, partitions)
    return client


def names(count: int, topic: str = "x") -> list[str]:
    return [f"{FULL}{topic}-partition-{index}" for index in range(count)]


def test_partitions_are_topics_of_their_own(memory_client: pulsarx.Client) -> None:
    topics = partitioned(memory_client).admin.topics
    assert topics.get_list() == names(3)
    assert topics.get_partitioned_topic_list() == [f"{FULL}x"]
    assert topics.get_partitioned_topic_metadata("x") == {"partitions": 3}
    assert topics.get_partitioned_topic_metadata("x-partition-1") == {"partitions": 0}
    assert memory_client.get_topic_partitions("x") == names(3)
    assert memory_client.get_topic_partitions("x-partition-1") == names(3)[1:2]


def test_they_are_there_after_a_restart(open_client: OpenClient) -> None:
    client = partitioned(open_client())
    with client.create_producer("x", producer_name="p") as producer:
        ids = [producer.send(b"%d" % number) for number in range(6)]
    client.close()
    client = open_client()
    assert client.get_topic_partitions("x") == names(3)
    found = [message for each in names(3) for message in read_all(client, each)]
    assert sorted(message.message_id() for message in found) == sorted(ids)
    assert {message.producer_name() for message in found} == {"p"}
    producer = client.create_producer("x", producer_name="p")
    assert producer.send(b"more").partition() in range(3)


@pytest.mark.parametrize("partitions", [0, -1, 10_001])
def test_a_bad_number_of_partitions_is_refused(
    memory_client: pulsarx.Client, partitions: int
) -> None:
    topics = memory_client.admin.topics
    with pytest.raises(ValueError, match="from 1 to 10000"):
        topics.create_partitioned_topic("x", partitions)
    partitioned(memory_client)
    with pytest.raises(ValueError, match="from 1 to 10000"):
        topics.update_partitioned_topic("x", partitions)
    for wrong in (True, 1.0, "3", None):
        with pytest.raises(ValueError, match="partitions must be int"):
            topics.create_partitioned_topic("y", wrong)


def test_what_exists_is_not_created_again(memory_client: pulsarx.Client) -> None:
    topics = partitioned(memory_client).admin.topics
    topics.create_non_partitioned_topic("plain")
    for create in (lambda: topics.create_partitioned_topic("x", 3),
                   lambda: topics.create_partitioned_topic("plain", 3),
                   lambda: topics.create_non_partitioned_topic("x"),
                   lambda: topics.create_non_partitioned_topic("plain"),
                   lambda: topics.create_non_partitioned_topic("x-partition-1")):  # fmt: skip
        with pytest.raises(errors.NotAllowedError, match="exists already"):
            create()
    with pytest.raises(errors.NotAllowedError, match="name of a partition"):
        topics.create_partitioned_topic("z-partition-0", 3)
    assert topics.get_partitioned_topic_list() == [f"{FULL}x"]


def test_missing_names_are_not_found(memory_client: pulsarx.Client) -> None:
    topics = memory_client.admin.topics
    for call in (lambda: topics.get_partitioned_topic_metadata("x"),
                 lambda: topics.update_partitioned_topic("x", 3),
                 lambda: topics.partitioned_stats("x"),
                 lambda: topics.create_partitioned_topic("no/where/x", 3),
                 lambda: topics.create_non_partitioned_topic("no/where/x")):  # fmt: skip
        with pytest.raises(errors.TopicNotFound):
            call()
    topics.create_non_partitioned_topic("x")
    with pytest.raises(errors.TopicNotFound, match=r"Partitioned Topic .* not found"):
        topics.update_partitioned_topic("x", 3)
    with pytest.raises(errors.TopicNotFound, match=r"Partitioned Topic .* not found"):
        topics.partitioned_stats("x")


def test_a_partition_the_topic_has_not_got_is_not_found(memory_client: pulsarx.Client) -> None:
    partitioned(memory_client)
    earliest = pulsarx.MessageId.earliest
    for name in ("x-partition-3", "x-partition-99"):
        with pytest.raises(errors.TopicNotFound, match="has 3 partitions"):
            memory_client.create_producer(name)
        with pytest.raises(errors.TopicNotFound, match="has 3 partitions"):
            memory_client.subscribe(name, "s")
        with pytest.raises(errors.TopicNotFound, match="has 3 partitions"):
            memory_client.create_reader(name, earliest)
        with pytest.raises(errors.TopicNotFound, match="has 3 partitions"):
            memory_client.admin.topics.create_non_partitioned_topic(name)
    memory_client.create_producer("x-partition-03")  # a name of its own


def test_a_partition_without_its_topic_is_refused(memory_client: pulsarx.Client) -> None:
    """It used to be made, and then there could be no partitioned topic of that name."""
    memory_client.create_producer("plain")
    earliest = pulsarx.MessageId.earliest
    creators: list[Callable[[str], object]] = [
        memory_client.create_producer,
        lambda name: memory_client.subscribe(name, "s"),
        lambda name: memory_client.subscribe(["plain", name], "s"),
        lambda name: memory_client.create_reader(name, earliest),
        memory_client.admin.topics.create_non_partitioned_topic,
    ]
    for name in ("y-partition-0", "y-partition-3", "plain-partition-0"):
        for create in creators:
            with pytest.raises(errors.NotAllowedError, match="no partitioned topic"):
                create(name)
        with pytest.raises(errors.TopicNotFound):
            memory_client.admin.topics.stats(name)
    assert memory_client.admin.topics.get_list() == [f"{FULL}plain"]
    for name in ("y-partition-x", "y-partition-", "y-partition-01", "y-partition--1"):
        memory_client.create_producer(name)  # names of their own


def test_ids_name_the_partition(memory_client: pulsarx.Client) -> None:
    partitioned(memory_client)
    told = Told()
    with memory_client.create_producer("x-partition-2", batching_enabled=True) as producer:
        ids = [producer.send(b"1"), *producer.send_many([b"2", b"3"]), *producer.send_many([b"4"])]
        producer.send_async(b"5", told)
        producer.send_async(b"6", told)
        producer.flush()
    ids += [message_id for _, message_id in told.results if message_id is not None]
    assert len(ids) == 6
    assert {each.partition() for each in ids} == {2}
    consumer = memory_client.subscribe("x-partition-2", "s", initial_position=EARLIEST)
    assert consumer.get_last_message_id() == ids[-1]
    messages = drain(consumer)
    assert [message.message_id() for message in messages] == ids
    restored = [pulsarx.MessageId.deserialize(each.serialize()) for each in ids]
    assert restored == ids
    for message_id in restored:
        consumer.acknowledge(message_id)
    assert memory_client.admin.topics.stats("x-partition-2")["subscriptions"]["s"][
        "msg_backlog"
    ] == 0  # fmt: skip
    assert memory_client.create_producer("plain").send(b"").partition() == -1


def test_columns_name_the_partition(memory_client: pulsarx.Client) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    partitioned(memory_client)
    producer = memory_client.create_producer("x-partition-1")
    sent = producer.send_arrow(pyarrow.table({"value": [b"a", b"b"]}))
    assert sent.partition() == 1
    reader = memory_client.create_reader("x-partition-1", pulsarx.MessageId.earliest)
    table = pyarrow.table(reader.read_arrow(10))
    assert [each["partition"] for each in table["message_id"].to_pylist()] == [1, 1]


def test_new_partitions_begin_with_the_durable_subscriptions(open_client: OpenClient) -> None:
    """What is sent to a new partition before its consumer comes is not missed, restart or not."""
    client = partitioned(open_client())
    client.subscribe("x-partition-0", "s").close()
    client.subscribe("x-partition-1", "only here").close()
    client.admin.topics.update_partitioned_topic("x", 5)
    assert client.get_topic_partitions("x") == names(5)
    client.create_producer("x-partition-3").send_many([b"1", b"2"])
    client.create_producer("x-partition-4").send(b"3")
    assert payloads(client.subscribe("x-partition-3", "s")) == [b"1", b"2"]
    client.close()
    client = open_client()
    assert payloads(client.subscribe("x-partition-4", "s")) == [b"3"]
    figures = client.admin.topics.partitioned_stats("x")["partitions"]
    subscriptions = {name: sorted(each["subscriptions"]) for name, each in figures.items()}
    expected = [["s"], ["only here"], [], ["s"], ["s"]]
    assert subscriptions == dict(zip(names(5), expected, strict=True))


def test_partitions_only_become_more(memory_client: pulsarx.Client) -> None:
    topics = partitioned(memory_client).admin.topics
    with pytest.raises(errors.NotAllowedError, match="has 3 partitions; they cannot become 2"):
        topics.update_partitioned_topic("x", 2)
    topics.update_partitioned_topic("x", 3)
    assert memory_client.get_topic_partitions("x") == names(3)


def test_an_open_producer_uses_new_partitions(memory_client: pulsarx.Client) -> None:
    partitioned(memory_client, 2)
    producer = memory_client.create_producer("x", producer_name="p")
    assert {producer.send(b"").partition() for _ in range(4)} == {0, 1}
    memory_client.admin.topics.update_partitioned_topic("x", 4)
    assert {producer.send(b"").partition() for _ in range(8)} == {0, 1, 2, 3}
    with pytest.raises(errors.ProducerBusy):
        memory_client.create_producer("x-partition-3", producer_name="p")
    producer.close()
    memory_client.create_producer("x", producer_name="p")


def test_watchers_are_told_of_growth(memory_client: pulsarx.Client) -> None:
    class Watcher:
        def __init__(self) -> None:
            self.told: list[int] = []

        def grown(self, partition_count: int) -> None:
            self.told.append(partition_count)

    partitioned(memory_client)
    watcher, gone = Watcher(), Watcher()
    topic = inspect(memory_client).partitioned_topic("x")
    topic.watch(watcher)
    topic.watch(gone)
    del gone
    memory_client.admin.topics.update_partitioned_topic("x", 4)
    memory_client.admin.topics.update_partitioned_topic("x", 4)
    memory_client.admin.topics.update_partitioned_topic("x", 6)
    assert watcher.told == [4, 6]


def test_topics_may_be_created_partitioned_by_themselves(open_client: OpenClient) -> None:
    options = pulsarx.BrokerOptions(
        allow_auto_topic_creation_type="partitioned", default_num_partitions=4
    )
    client = open_client(broker_options=options)
    assert client.create_producer("x").send(b"").partition() in range(4)
    assert client.get_topic_partitions("x") == names(4)
    with pytest.raises(errors.NotAllowedError, match="no partitioned topic"):
        client.create_producer("y-partition-1")
    client.admin.topics.create_non_partitioned_topic("plain")
    assert client.create_producer("plain").send(b"").partition() == -1


def test_nothing_is_created_when_that_is_off(open_client: OpenClient) -> None:
    client = open_client(broker_options=pulsarx.BrokerOptions(allow_auto_topic_creation=False))
    with pytest.raises(errors.TopicNotFound):
        client.create_producer("x")
    assert partitioned(client).create_producer("x").send(b"").partition() in range(3)


def test_statistics_of_a_partitioned_topic_are_added_up(memory_client: pulsarx.Client) -> None:
    topics = partitioned(memory_client).admin.topics
    for name in names(3):
        memory_client.subscribe(name, "s").close()
    producer = memory_client.create_producer("x")
    for number in range(7):
        producer.send(b"%d" % number)
    with pytest.raises(errors.OperationNotSupported, match="partitioned_stats"):
        topics.stats("x")
    found = topics.partitioned_stats("x")
    assert found["metadata"] == {"partitions": 3}
    assert (found["entries"], found["messages"], len(found["publishers"])) == (7, 7, 1)
    assert found["subscriptions"]["s"]["msg_backlog"] == 7
    assert sorted(found["partitions"]) == names(3)
    assert sorted(each["messages"] for each in found["partitions"].values()) == [2, 2, 3]
    assert found["storage_size"] == sum(
        each["storage_size"] for each in found["partitions"].values()
    )


def test_beside_an_owner_partitions_are_seen_and_not_changed(open_client: OpenClient) -> None:
    owner = partitioned(open_client())
    owner.create_producer("x-partition-1").send(b"1")
    beside = open_client(read_only=True)
    assert beside.get_topic_partitions("x") == names(3)
    assert whole_topic(beside, "x-partition-1") == [b"1"]
    with pytest.raises(errors.OperationNotSupported, match="read_only"):
        beside.admin.topics.create_partitioned_topic("y", 3)


def test_no_plain_topic_has_a_partitioned_name(memory_client: pulsarx.Client) -> None:
    """Whatever asks for it: what is sent there would be seen by nobody."""
    partitioned(memory_client)
    memory_client.create_producer("x").send(b"1")
    with pytest.raises(errors.OperationNotSupported):
        inspect(memory_client).topic("x")
    assert f"{FULL}x" not in memory_client.admin.topics.get_list()


def test_growing_under_load_loses_and_doubles_nothing(open_client: OpenClient) -> None:
    """Four threads through one producer, while the topic grows from 2 to 12 partitions."""
    client = partitioned(open_client(), 2)
    client.subscribe("x-partition-0", "s").close()
    each = 3000
    producer = client.create_producer(
        "x", batching_enabled=True, batching_max_messages=20, block_if_queue_full=True
    )
    told: list[Any] = []

    def publish(number: int) -> None:
        for at in range(each):
            key = f"k{at % 50}" if number % 2 else None
            producer.send_async(b"%d:%d" % (number, at), lambda *it: told.append(it), None, key)

    threads = [threading.Thread(target=publish, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for partitions in range(3, 13):
        client.admin.topics.update_partitioned_topic("x", partitions)
    for thread in threads:
        thread.join(60)
    producer.flush()
    found = [
        (message.data(), message.message_id())
        for name in client.get_topic_partitions("x")
        for message in read_all(client, name)
    ]
    assert sorted(data for data, _ in found) == sorted(
        b"%d:%d" % (number, at) for number in range(4) for at in range(each)
    )
    assert {result for result, _ in told} == {pulsarx.Result.Ok}
    assert sorted(message_id for _, message_id in told) == sorted(place for _, place in found)
    for index in range(2, 12):
        waiting = payloads(client.subscribe(f"x-partition-{index}", "s"))
        assert waiting == [data for data, place in found if place.partition() == index]
