"""Facts about topics that come, go and grow, in processes beside the owner, which tells of them."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from sharing_process import SharingProcess
from support.waiting import wait_until

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId
from pulsarx._pycore.ground.owner_link import CLOSED
from pulsarx.consuming.multi_topics_consumer import MultiTopicsConsumer
from pulsarx.consuming.partition_follower import PartitionFollower
from pulsarx.processes.guest import partitions as guest_partitions
from pulsarx.processes.guest import topics as guest_topics
from pulsarx.processes.guest.non_persistent_subscription import GuestNonPersistentSubscription
from pulsarx.processes.guest.subscription import GuestSubscription
from pulsarx.topic_name import TopicName

PATIENCE = 60


@pytest.fixture(autouse=True)
def never_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guests looked each second: what is found here is found because it was told."""
    for module in (guest_topics, guest_partitions):
        monkeypatch.setattr(module, "_LOOK_MS", 3_600_000, raising=False)


@pytest.fixture
def owner(owner: SharingProcess) -> SharingProcess:
    owner.run("client.admin.topics.create_partitioned_topic('t', 2)")
    return owner


def publish_to(process: SharingProcess, partition: int) -> None:
    process.run(f"client.create_producer('t-partition-{partition}').send(b'{partition}') and None")


def test_consumers_and_readers_get_the_partitions_that_the_owner_adds(
    folder: Path, owner: SharingProcess
) -> None:
    heard = threading.Semaphore(0)
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s")
        reader = client.create_reader("t", MessageId.earliest)
        view = client.create_table_view("t")
        client.subscribe("t", "l", message_listener=lambda *_: heard.release())
        for partition in (2, 3, 4):
            owner.run(f"client.admin.topics.update_partitioned_topic('t', {partition + 1})")
            publish_to(owner, partition)
            expected = b"%d" % partition
            assert consumer.receive(PATIENCE * 1000).data() == expected
            assert reader.read_next(PATIENCE * 1000).data() == expected
            assert heard.acquire(timeout=PATIENCE)
        owner.run("client.create_producer('t-partition-4').send(b'v', partition_key='k') and None")
        wait_until(lambda: view.get("k") == b"v")


@pytest.mark.parametrize("grower", ["owner", "another guest", "this guest"])
def test_producers_publish_to_partitions_that_were_added(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess], grower: str
) -> None:
    growth = "client.admin.topics.update_partitioned_topic('t', 3)"
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        if grower == "owner":
            owner.run(growth)
        elif grower == "another guest":
            processes.append(SharingProcess(folder))
            processes[-1].run(growth)
        else:
            # Its own producers know it when the call returns.
            client.admin.topics.update_partitioned_topic("t", 3)
            places = {producer.send(b"x").partition() for _ in range(3)}
            assert places == {0, 1, 2}
        wait_until(lambda: producer.send(b"x").partition() == 2)


def test_consumers_are_there_when_the_call_returns_by_which_a_topic_grew(
    folder: Path, owner: SharingProcess
) -> None:
    """What was sent at once came to the first of them, and its key to another one later."""
    names = [f"c{number}" for number in range(4)]
    with pulsarx.Client(folder) as client:
        consumers = [
            client.subscribe("t", "s", ConsumerType.KeyShared, consumer_name=name) for name in names
        ]
        topics = client.admin.topics
        topics.update_partitioned_topic("t", 5)
        for partition in range(5):
            found = topics.stats(f"t-partition-{partition}")["subscriptions"]["s"]
            assert [each["consumer_name"] for each in found["consumers"]] == names
        assert all(each.is_connected() for each in consumers)


def test_nothing_is_sent_to_new_partitions_before_the_consumers_of_its_process_are_there(
    folder: Path, owner: SharingProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, may_attach = threading.Event(), threading.Event()
    grown = PartitionFollower.grown

    def waiting(self: PartitionFollower, partition_count: int) -> None:
        told.set()
        assert may_attach.wait(PATIENCE)
        grown(self, partition_count)

    monkeypatch.setattr(PartitionFollower, "grown", waiting)
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s", ConsumerType.KeyShared)
        producer = client.create_producer("t")
        owner.run("client.admin.topics.update_partitioned_topic('t', 5)")
        assert told.wait(PATIENCE)
        for number in range(20):
            producer.send(b"x", partition_key=str(number))
        assert {consumer.receive(60_000).message_id().partition() for _ in range(20)} <= {0, 1}
        may_attach.set()
        wait_until(lambda: "partitions=5" in repr(producer))
        for partition in range(5):
            publish_to(owner, partition)
        assert {consumer.receive(60_000).message_id().partition() for _ in range(5)} == set(
            range(5)
        )


def test_consumers_of_a_pattern_get_topics_as_they_come(
    folder: Path, owner: SharingProcess
) -> None:
    pattern = re.compile("public/default/p.*")
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe(
            pattern,
            "s",
            ConsumerType.Shared,
            initial_position=InitialPosition.Earliest,
            regex_subscription_mode=pulsarx.RegexSubscriptionMode.AllTopics,
        )
        owner.run("client.create_producer('p1').send(b'1') and None")
        assert consumer.receive(PATIENCE * 1000).data() == b"1"
        owner.run("client.admin.topics.create_partitioned_topic('p2', 2)")
        owner.run("client.create_producer('p2-partition-1').send(b'2') and None")
        assert consumer.receive(PATIENCE * 1000).data() == b"2"
        owner.run("client.admin.topics.update_partitioned_topic('p2', 3)")
        owner.run("client.create_producer('p2-partition-2').send(b'3') and None")
        assert consumer.receive(PATIENCE * 1000).data() == b"3"
        owner.run("p = client.create_producer('non-persistent://public/default/p4')")
        owner.run("topics = client.admin.topics")
        # What is sent before it has permits is dropped.
        stats = "topics.stats('non-persistent://public/default/p4')['subscriptions']"
        consumers = f"{stats}.get('s', {{}}).get('consumers', ())"
        wait_until(lambda: owner.run(f"[each['available_permits'] for each in {consumers}]") > [0])
        owner.run("p.send(b'4') and None")
        assert consumer.receive(PATIENCE * 1000).data() == b"4"
        owner.run("client.admin.topics.delete('p1', force=True)")
        owner.run("client.create_producer('p1').send(b'5') and None")
        assert consumer.receive(PATIENCE * 1000).data() == b"5"


def test_what_has_come_to_a_process_is_received_there_by_the_priority_of_its_topic(
    folder: Path, owner: SharingProcess
) -> None:
    topics, earliest = ["idle", "urgent"], InitialPosition.Earliest
    with pulsarx.Client(folder) as client:
        consumer: Any = client.subscribe(
            topics, "s", initial_position=earliest, topic_priorities={"urgent": 0}
        )
        owner.run("idle, urgent = (client.create_producer(each) for each in ('idle', 'urgent'))")
        owner.run("for number in range(3): idle.send(b'idle %d' % number)")
        assert consumer.receive(PATIENCE * 1000).data() == b"idle 0"
        owner.run("urgent.send(b'urgent') and None")
        (member,) = (each for each in consumer.members() if each.topic().endswith("urgent"))
        wait_until(member.has_message)
        found = [consumer.receive(PATIENCE * 1000).data() for _ in range(3)]
        assert found == [b"urgent", b"idle 1", b"idle 2"]


def test_the_next_owner_tells_what_came_before_it_and_since(
    folder: Path, owner: SharingProcess, processes: list[SharingProcess]
) -> None:
    with pulsarx.Client(folder) as client:
        next_owner = SharingProcess(folder)
        processes.append(next_owner)
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t")
        owner.run("client.admin.topics.update_partitioned_topic('t', 3)")
        owner.kill()
        next_owner.run("client.admin.topics.update_partitioned_topic('t', 4)")
        for partition in (2, 3):
            publish_to(next_owner, partition)
        found = {consumer.receive(PATIENCE * 1000).data() for _ in range(2)}
        assert found == {b"2", b"3"}
        wait_until(lambda: producer.send(b"x").partition() == 3)


def test_statistics_are_of_the_same_types_in_every_process(
    folder: Path, owner: SharingProcess
) -> None:
    """What is a pair or a range was a list where JSON had brought it."""
    owner.run("kept = client.subscribe('t', 's', pulsarx.ConsumerType.KeyShared)")
    owner.run("producer = client.create_producer('t')")  # to be told of both times
    owner.run("producer.send(b'1', partition_key='k') and None")
    partition = "t-partition-0"
    with pulsarx.Client(folder) as client:
        topics = client.admin.topics
        client.subscribe("t", "own", ConsumerType.KeyShared)
        found = [topics.stats(partition), topics.partitioned_stats("t")["partitions"]]
        told = [
            owner.run(f"client.admin.topics.stats('{partition}')"),
            owner.run("client.admin.topics.partitioned_stats('t')['partitions']"),
        ]
    assert told[0]["subscriptions"]["s"]["hash_ranges"]
    assert types_in(found) == types_in(told)


def types_in(value: object) -> object:
    """The value with each number, text and so on in it replaced by its type."""
    if isinstance(value, dict):
        return {name: types_in(each) for name, each in value.items()}
    if isinstance(value, list):
        return [types_in(each) for each in value]
    return tuple(map(types_in, value)) if isinstance(value, tuple) else type(value)


def test_a_topic_that_is_made_anew_before_its_consumer_is_closed_is_received_from(
    folder: Path, owner: SharingProcess
) -> None:
    """What the owner commits is seen by others before it has closed the consumers."""
    owner.run("client.create_producer('p-1').send(b'1') and None")
    owner.run(
        "from pulsarx.sessions.consumers import SessionConsumers\n"
        "SessionConsumers._close_there = lambda *_: None"
    )
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe(
            re.compile("p-.*"), "s", initial_position=InitialPosition.Earliest
        )
        received = [consumer.receive(PATIENCE * 1000).data()]
        for data in (b"2", b"3"):
            owner.run("client.admin.topics.delete('p-1', force=True)")
            owner.run(f"client.create_producer('p-1').send({data!r}) and None")
            received.append(consumer.receive(PATIENCE * 1000).data())
    assert received == [b"1", b"2", b"3"]


def test_a_topic_that_is_made_anew_is_received_from_when_its_consumer_is_closed_later(
    folder: Path, owner: SharingProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the owner closed the consumer is read after what it committed since."""
    told, drop_topic = GuestSubscription.told, MultiTopicsConsumer.drop_topic
    held: list[Any] = []
    is_told = threading.Event()

    def hold(self: GuestSubscription, kind: str, values: dict[str, Any], data: bytes) -> None:
        if values["kind"] == CLOSED:
            held.append((self, kind, values, data))
            is_told.set()
        else:
            told(self, kind, values, data)

    def drop_late(self: MultiTopicsConsumer[Any], name: TopicName) -> bool:
        assert is_told.wait(PATIENCE)  # a consumer that closes first is told nothing
        return drop_topic(self, name)

    owner.run("client.create_producer('p-1').send(b'1') and None")
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe(
            re.compile("p-.*"), "s", initial_position=InitialPosition.Earliest
        )
        first = consumer.receive(PATIENCE * 1000)
        monkeypatch.setattr(GuestSubscription, "told", hold)
        monkeypatch.setattr(MultiTopicsConsumer, "drop_topic", drop_late)
        owner.run("client.admin.topics.delete('p-1', force=True)")
        owner.run("client.create_producer('p-1').send(b'2') and None")
        second = consumer.receive(PATIENCE * 1000)
        assert (first.data(), second.data()) == (b"1", b"2")
        for each in held:
            told(*each)
        owner.run("client.create_producer('p-1').send(b'3') and None")
        assert consumer.receive(PATIENCE * 1000).data() == b"3"


def test_a_topic_that_keeps_nothing_and_is_made_anew_at_once_is_received_from(
    folder: Path, owner: SharingProcess
) -> None:
    topic = "non-persistent://public/default/p-1"
    owner.run(f"producer = client.create_producer({topic!r})")
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe(
            re.compile("non-persistent://public/default/p-.*"),
            "s",
            regex_subscription_mode=pulsarx.RegexSubscriptionMode.AllTopics,
        )
        owner.run("producer.send(b'1') and None")
        assert consumer.receive(PATIENCE * 1000).data() == b"1"
        owner.run("producer.close()")
        owner.run(
            f"client.admin.topics.delete({topic!r}, force=True)\n"
            f"producer = client.create_producer({topic!r})"
        )

        def receives() -> bool:  # what is sent before is not kept
            owner.run("producer.send(b'2') and None")
            return bool(consumer.receive_many(1, timeout_millis=100))

        wait_until(receives)


def test_a_topic_that_keeps_nothing_and_is_deleted_is_let_go(
    folder: Path, owner: SharingProcess
) -> None:
    topics = [f"non-persistent://public/default/p-{number}" for number in range(3)]
    with pulsarx.Client(folder) as client:
        consumer: Any = client.subscribe(
            re.compile("non-persistent://public/default/p-.*"),
            "s",
            regex_subscription_mode=pulsarx.RegexSubscriptionMode.AllTopics,
        )
        for topic in topics:
            owner.run(f"client.create_producer({topic!r}).close()")
        wait_until(lambda: len(consumer.members()) == len(topics))
        for topic in topics:
            owner.run(f"client.admin.topics.delete({topic!r}, force=True)")
        wait_until(lambda: consumer.members() == [])


def test_a_topic_that_keeps_nothing_is_not_made_anew_by_who_found_it_before_it_went(
    folder: Path, owner: SharingProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of thirty that were deleted at once six to nine came back, with a consumer of a pattern."""
    topic = "non-persistent://public/default/p-1"
    subscribe, found = GuestNonPersistentSubscription._subscribe, threading.Event()

    def late(self: GuestNonPersistentSubscription) -> Any:
        if not found.is_set():
            owner.run(f"client.admin.topics.delete({topic!r}, force=True)")
            found.set()
        return subscribe(self)

    owner.run(f"client.create_producer({topic!r}).close()")
    monkeypatch.setattr(GuestNonPersistentSubscription, "_subscribe", late)
    with pulsarx.Client(folder) as client:
        consumer: Any = client.subscribe(
            re.compile("non-persistent://public/default/p-.*"),
            "s",
            regex_subscription_mode=pulsarx.RegexSubscriptionMode.AllTopics,
        )
        assert found.wait(PATIENCE)
        assert consumer.members() == []
        every = "client.admin.topics.get_list('public/default', domain='non-persistent')"
        assert owner.run(every) == []
        consumer.close()
        found.clear()  # who names it makes it, and then once more
        owner.run(f"client.create_producer({topic!r}).close()")
        client.subscribe(topic, "s")
        assert found.is_set() and owner.run(every) == [topic]
