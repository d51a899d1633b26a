"""Facts about deleting topics: what goes, who is told, what a topic of the same name has."""

from __future__ import annotations

import os
import re
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from topic_reading import OpenClient, Told, payloads, whole_topic

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, Result, errors
from pulsarx.admin import Admin
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
from pulsarx.testing import inspect

SMALL = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=3)


def files_of(folder: Path) -> set[str]:
    """Ledgers, cursors and what was set aside."""
    return {
        str(each.relative_to(folder))
        for part in ("ledgers", "cursors", "orphans")
        for each in (folder / part).rglob("*")
        if each.is_file()
    }


def used_topic(client: pulsarx.Client, topic: str = "t", count: int = 10) -> None:
    """Messages in several ledgers, a subscription; nobody is attached."""
    client.subscribe(topic, "s").close()
    with client.create_producer(topic) as producer:
        for number in range(count):
            producer.send(b"%d" % number)


def test_a_deleted_topic_leaves_nothing(open_client: OpenClient, folder: Path) -> None:
    client = open_client(broker_options=SMALL)
    used_topic(client)
    assert len(files_of(folder)) > 3
    client.admin.topics.delete("t")
    assert client.admin.topics.get_list() == []
    with pytest.raises(errors.TopicNotFound):
        client.admin.topics.stats("t")
    client.close()
    assert files_of(folder) == set()
    assert open_client().admin.topics.get_list() == []


def test_a_topic_of_the_same_name_is_a_new_one(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    used_topic(client)
    client.admin.topics.delete("t")
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
    client.create_producer("t").send(b"new")
    assert payloads(consumer) == [b"new"]
    assert whole_topic(client) == [b"new"]
    client.close()
    assert whole_topic(open_client()) == [b"new"]


@pytest.mark.parametrize("who", ["producer", "consumer", "reader", "table view"])
def test_a_topic_in_use_stays(open_client: OpenClient, who: str) -> None:
    client = open_client()
    used_topic(client)
    user: Any = {
        "producer": lambda: client.create_producer("t"),
        "consumer": lambda: client.subscribe("t", "s"),
        "reader": lambda: client.create_reader("t", MessageId.earliest),
        "table view": lambda: client.create_table_view("t"),
    }[who]()
    with pytest.raises(errors.NotAllowedError, match="attached"):
        client.admin.topics.delete("t")
    client.create_producer("t").send(b"10")
    assert len(whole_topic(client)) == 11
    user.close()


@pytest.mark.border(left_out="forgotten consumers")
def test_who_has_left_does_not_keep_a_topic(open_client: OpenClient, folder: Path) -> None:
    client = open_client()
    producer = client.create_producer("t")
    producer.send(b"1")
    left = pulsarx.Client(folder, durability="os")
    consumer = left.subscribe("t", "s")
    reader = left.create_reader("t", MessageId.earliest)
    del producer, consumer, reader, left
    client.admin.topics.delete("t")
    assert client.admin.topics.get_list() == []


def test_force_closes_who_is_there(open_client: OpenClient) -> None:
    client = open_client()
    used_topic(client)
    producer = client.create_producer("t")
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
    producer.send(b"last")
    reader = client.create_reader("t", MessageId.earliest)
    first, read = consumer.receive(60_000), reader.read_next(60_000)
    client.admin.topics.delete("t", force=True)
    assert not producer.is_connected()
    assert not reader.is_connected()
    for call in (
        lambda: producer.send(b"x"),
        lambda: consumer.receive(1000),
        lambda: consumer.acknowledge(first),
        lambda: reader.read_next(1000),
    ):
        with pytest.raises(errors.AlreadyClosed):
            call()
    # Messages point into files that have no name any more.
    assert (first.data(), read.data()) == (b"0", b"0")
    assert client.admin.topics.get_list() == []


@pytest.mark.border(left_out="fenced producers learn it late")
def test_what_waits_in_a_batch_is_told(open_client: OpenClient) -> None:
    client = open_client()
    producer = client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=60_000
    )
    told = Told()
    producer.send_async(b"1", told)
    client.admin.topics.delete("t", force=True)
    assert [result for result, _ in told.results] == [Result.TopicNotFound]


def test_a_waiting_receive_ends(open_client: OpenClient) -> None:
    client = open_client()
    consumer = client.subscribe("t", "s")
    ends: list[BaseException] = []

    def receive() -> None:
        try:
            consumer.receive()
        except BaseException as error:
            ends.append(error)

    thread = threading.Thread(target=receive)
    thread.start()
    client.admin.topics.delete("t", force=True)
    thread.join(60)
    assert [type(each) for each in ends] == [errors.AlreadyClosed]


def test_a_table_view_keeps_what_it_has(open_client: OpenClient) -> None:
    client = open_client()
    client.create_producer("t").send(b"1", partition_key="k")
    view = client.create_table_view("t")
    client.admin.topics.delete("t", force=True)
    client.create_producer("t").send(b"2", partition_key="k")
    assert view.get("k") == b"1"
    with pytest.raises(errors.AlreadyClosed):
        view.for_each_and_listen(lambda *_: None)
    view.close()


@pytest.mark.border(left_out="several topics")
def test_a_consumer_of_several_topics_goes_on_with_the_others(open_client: OpenClient) -> None:
    client = open_client()
    consumer = client.subscribe(["a", "b"], "s")
    producer = client.create_producer("b")
    client.admin.topics.delete("a", force=True)
    producer.send(b"1")
    assert consumer.receive(60_000).data() == b"1"
    client.admin.topics.delete("b", force=True)
    with pytest.raises(errors.AlreadyClosed):
        consumer.receive(1000)


@pytest.mark.border(left_out="several topics")
def test_a_consumer_of_a_pattern_takes_up_what_is_born_again(open_client: OpenClient) -> None:
    client = open_client()
    consumer = client.subscribe(re.compile("p-.*"), "s")
    for turn in range(3):
        producer = client.create_producer("p-1")
        producer.send(b"%d" % turn)
        message = consumer.receive(1000)
        assert message.data() == b"%d" % turn
        client.admin.topics.delete("p-1", force=True)
        with pytest.raises(errors.Timeout):
            consumer.receive(0)
        assert consumer.members() == []


@pytest.mark.border(left_out="several topics")
def test_a_consumer_of_a_pattern_lets_go_of_partitions(open_client: OpenClient) -> None:
    client = open_client()
    consumer = client.subscribe(re.compile("p.*"), "s")
    for turn in range(3):
        client.admin.topics.create_partitioned_topic("p", 2 + turn)
        assert len(consumer.members()) == 2 + turn
        client.create_producer("p").send(b"%d" % turn)
        assert consumer.receive(60_000).data() == b"%d" % turn
        client.admin.topics.delete_partitioned_topic("p", force=True)
        assert consumer.members() == []
        assert len(consumer.followers) == 1


@pytest.mark.border(left_out="dead letters")
def test_letters_go_to_the_next_topic_of_their_name(open_client: OpenClient) -> None:
    client = open_client()
    policy = pulsarx.ConsumerDeadLetterPolicy(1, "dead")
    consumer = client.subscribe(
        "t",
        "s",
        ConsumerType.Shared,
        dead_letter_policy=policy,
        negative_ack_redelivery_delay_ms=1,
    )
    producer = client.create_producer("t")
    for turn in range(2):
        dead = client.subscribe("dead", "s")
        producer.send(b"%d" % turn)
        for _ in range(2):
            consumer.negative_acknowledge(consumer.receive(60_000))
        with pytest.raises(errors.Timeout):
            consumer.receive(100)
        assert dead.receive(60_000).data() == b"%d" % turn
        client.admin.topics.delete("dead", force=True)


@pytest.mark.border(left_out="several topics")
def test_a_partitioned_topic_goes_with_its_partitions(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client(broker_options=SMALL)
    topics = client.admin.topics
    topics.create_partitioned_topic("p", 3)
    client.subscribe("p", "s").close()
    producer = client.create_producer("p")
    for number in range(20):
        producer.send(b"%d" % number)
    topics.create_non_partitioned_topic("p-partition")
    with pytest.raises(errors.NotAllowedError, match="delete_partitioned_topic"):
        topics.delete("p")
    with pytest.raises(errors.NotAllowedError, match="attached"):
        topics.delete("p-partition-1")
    with pytest.raises(errors.NotAllowedError, match="attached"):
        topics.delete_partitioned_topic("p")
    with pytest.raises(errors.TopicNotFound):
        topics.delete_partitioned_topic("p-partition")
    assert len(topics.get_list()) == 4
    producer.close()
    topics.delete_partitioned_topic("p")
    assert topics.get_list() == ["persistent://public/default/p-partition"]
    assert topics.get_partitioned_topic_list() == []
    client.close()
    assert files_of(folder) == set()


@pytest.mark.border(left_out="several topics")
def test_a_partition_that_is_deleted_is_there_again_and_empty(
    open_client: OpenClient, folder: Path
) -> None:
    """It was refused; Pulsar deletes it, and makes it anew when it is used."""
    client = open_client(broker_options=SMALL)
    topics = client.admin.topics
    topics.create_partitioned_topic("p", 2)
    client.subscribe("p", "s").close()
    for _ in range(2):
        with client.create_producer("p") as producer:
            producer.send_many([b"%d" % number for number in range(20)])
        with pytest.raises(errors.TopicNotFound):
            topics.delete("p-partition-2")
        topics.delete("p-partition-1")
        assert topics.get_subscriptions("p-partition-1") == []
        assert topics.stats("p-partition-1")["messages"] == 0
        assert topics.get_partitioned_topic_metadata("p")["partitions"] == 2
        client.close()
        client = open_client(broker_options=SMALL)
        topics = client.admin.topics
    consumer = client.subscribe("p", "s")
    producer = client.create_producer("p", "left")
    with pytest.raises(errors.NotAllowedError, match="attached"):
        topics.delete("p-partition-1")
    topics.delete("p-partition-1", force=True)
    producer.close()
    consumer.close()
    with client.create_producer("p") as producer, client.subscribe("p", "new") as consumer:
        producer.send_many([b"x"] * 20)
        assert len(consumer.receive_many(20, 60_000)) == 20
    topics.delete_partitioned_topic("p")
    client.close()
    assert files_of(folder) == set()


@pytest.mark.border(left_out="several topics")
def test_a_lazy_producer_of_a_deleted_topic_does_not_go_to_the_next_one(
    open_client: OpenClient,
) -> None:
    client = open_client()
    topics = client.admin.topics
    topics.create_partitioned_topic("p", 5)
    producer = client.create_producer("p", lazy_start_partitioned_producers=True)
    topics.delete_partitioned_topic("p", force=True)
    topics.create_partitioned_topic("p", 5)
    assert not producer.is_connected()
    for key in "abcdefgh":
        with pytest.raises(errors.AlreadyClosed):
            producer.send(b"x", partition_key=key)
    assert topics.partitioned_stats("p")["messages"] == 0


def test_a_topic_that_is_not_there_is_told(open_client: OpenClient) -> None:
    topics = open_client().admin.topics
    with pytest.raises(errors.TopicNotFound):
        topics.delete("none", force=True)
    assert topics.get_list() == []


def test_a_deletion_that_cannot_be_committed_changes_nothing(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_client(broker_options=SMALL)
    used_topic(client)
    producer = client.create_producer("t")
    consumer = client.subscribe("t", "s")
    producer.send(b"10")
    from pulsarx.testing import inspect

    catalogue = inspect(client).broker.catalogue

    def refuse(self: Any, operations: Any) -> int:
        raise errors.StorageFullError(detail="no space")

    monkeypatch.setattr(type(catalogue), "commit", refuse)
    with pytest.raises(errors.StorageFullError):
        client.admin.topics.delete("t", force=True)
    monkeypatch.undo()
    producer.send(b"11")
    assert payloads(consumer) == [b"%d" % number for number in range(12)]
    assert len(whole_topic(client)) == 12
    client.create_producer("t").send(b"12")


def test_a_reader_beside_the_owner_is_told(open_client: OpenClient, folder: Path) -> None:
    """A reader in another process reads what it has mapped, and is then told."""
    owner = open_client(broker_options=SMALL)
    used_topic(owner, count=9)
    program = """
import sys, pulsarx
from pulsarx import MessageId, errors
with pulsarx.Client(sys.argv[1], read_only=True) as client:
    reader = client.create_reader("t", MessageId.earliest)
    print(reader.read_next(60_000).data().decode(), flush=True)
    input()
    found = []
    try:
        while True:
            found.append(reader.read_next(60_000).data().decode())
    except errors.TopicNotFound as error:
        print(",".join(found), "deleted" in error.detail, flush=True)
    try:
        client.admin.topics.stats("t")
    except errors.TopicNotFound:
        print("gone", flush=True)
    input()
    print(client.create_reader("t", MessageId.earliest).read_next(60_000).data().decode())
    print(client.admin.topics.stats("t")["messages"])
"""
    with ChildProcess(program, folder) as child:
        assert child.line() == "0"
        owner.admin.topics.delete("t")
        child.tell()
        assert child.line() in ("1,2 True", "1 True", " True")  # as much as it had at hand
        assert child.line() == "gone"
        owner.create_producer("t").send(b"new")
        child.tell()
        assert child.end() == ["new", "1"]


def test_a_reader_does_not_go_on_in_the_next_topic_of_the_name(
    open_client: OpenClient, folder: Path
) -> None:
    owner = open_client(broker_options=SMALL)
    used_topic(owner, count=9)
    program = """
import sys, pulsarx
from pulsarx import MessageId, errors
with pulsarx.Client(sys.argv[1], read_only=True) as client:
    reader = client.create_reader("t", MessageId.earliest)
    print(reader.read_next(60_000).data().decode(), flush=True)
    input()
    found = []
    try:
        while True:
            found.append(reader.read_next(60_000).data().decode())
    except errors.TopicNotFound:
        print(",".join(found), flush=True)
    anew = client.create_reader("t", MessageId.earliest)
    print(anew.read_next(60_000).data().decode())
"""
    with ChildProcess(program, folder) as child:
        assert child.line() == "0"
        owner.admin.topics.delete("t")
        owner.create_producer("t").send(b"new")
        child.tell()
        assert child.end() == ["1,2", "new"]


def test_another_process_deletes_through_the_owner(open_client: OpenClient, folder: Path) -> None:
    owner = open_client()
    used_topic(owner)
    consumer = owner.subscribe("t", "s")
    program = """
import sys
from pulsarx import errors
from pulsarx.admin import Admin
topics = Admin.at(sys.argv[1]).topics
try:
    topics.delete("t")
except errors.NotAllowedError as error:
    print("attached" in error.detail)
topics.delete("t", force=True)
"""
    with ChildProcess(program, folder) as child:
        assert child.end() == ["True"]
    with pytest.raises(errors.AlreadyClosed):
        consumer.receive(1000)
    used_topic(owner)
    owner.close()
    Admin.at(folder).topics.delete("t")
    assert files_of(folder) == set()


def test_a_leased_topic_stays_unless_forced(open_client: OpenClient) -> None:
    from pulsarx.testing import inspect

    client = open_client(broker_options=SMALL)
    used_topic(client)
    inspection = inspect(client)
    inspection.settle()  # for ledgers that are being sealed
    ids = [each.ledger_id for each in inspection.ledger("t").ledgers() if each.state == "sealed"]
    from pulsarx.broker.verbs.table import perform

    arguments = {"job": "j", "ledgers": {"t": ids}, "ttl_ms": 60_000}
    perform(inspection.broker, "leases.set", arguments)
    with pytest.raises(errors.NotAllowedError, match="job j reads it"):
        client.admin.topics.delete("t")
    client.admin.topics.delete("t", force=True)
    # A lease on the topic before does not hold the ledgers of the next one.
    used_topic(client)
    consumer = client.subscribe("t", "s")
    consumer.acknowledge_cumulative(consumer.receive_many(10)[-1])
    inspection.settle()  # for ledgers that are being sealed
    inspection.topic("t").trim()
    assert len(inspection.ledger("t").ledgers()) < 3


@pytest.mark.standard
def test_a_topic_is_deleted_while_it_is_used(open_client: OpenClient, folder: Path) -> None:
    """Producers and consumers come, publish and receive in threads, and find the next topic when
    theirs is gone; no call hangs or fails otherwise, and no file is left."""
    client = open_client(broker_options=SMALL)
    ended = threading.Event()
    failures: list[BaseException] = []
    expected = (
        errors.AlreadyClosed,
        errors.ServiceUnitNotReady,  # what AlreadyClosed is where it comes over a connection
        errors.TopicNotFound,
        errors.Timeout,
        errors.ConsumerBusy,
    )

    def publish() -> None:
        while not ended.is_set():
            try:
                producer = client.create_producer("t", batching_enabled=True)
                for number in range(50):
                    producer.send_async(b"%d" % number, None)
                    producer.send(b"%d" % number)
                producer.close()
            except expected:
                pass

    def consume(name: str) -> None:
        while not ended.is_set():
            try:
                consumer = client.subscribe("t", name, ConsumerType.Shared)
                for _ in range(50):
                    consumer.acknowledge(consumer.receive(100))
                consumer.close()
            except (*expected, errors.NotAllowedError):
                pass

    def read() -> None:
        while not ended.is_set():
            try:
                reader = client.create_reader("t", MessageId.earliest)
                for _ in range(50):
                    reader.read_next(100)
                reader.close()
            except expected:
                pass

    def guarded(work: Any, *arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            failures.append(error)

    works: list[tuple[Any, ...]] = [(publish,), (publish,), (consume, "a"), (consume, "b"), (read,)]
    threads = [threading.Thread(target=guarded, args=work) for work in works]
    for thread in threads:
        thread.start()
    deleted = 0
    while deleted < 40 and not failures:
        try:
            client.admin.topics.delete("t", force=True)
            deleted += 1
        except errors.TopicNotFound:
            pass
    ended.set()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert not failures
    try:
        client.admin.topics.delete("t", force=True)
    except errors.TopicNotFound:
        pass
    client.close()
    assert files_of(folder) == set()


def test_a_deletion_in_a_callback_does_not_hang(open_client: OpenClient) -> None:
    client = open_client(durability="sync")
    producer = client.create_producer("t")
    done = threading.Event()

    def delete(_: Any, __: Any) -> None:
        client.admin.topics.delete("t", force=True)
        done.set()

    producer.send_async(b"1", delete)
    assert done.wait(60)
    assert client.admin.topics.get_list() == []


def test_a_foreign_file_is_not_deleted(open_client: OpenClient, folder: Path) -> None:
    """What lies where a ledger of the topic should be, and is not it, is kept."""
    with open_client() as client:
        used_topic(client, "a")
        used_topic(client, "b")
    first, second = sorted(folder.glob("ledgers/*/*.ledger"))
    content = first.read_bytes()
    os.replace(first, second)  # b's ledger is a's by now
    client = open_client()
    client.admin.topics.delete("b", force=True)
    [kept] = (folder / "orphans").iterdir()
    assert kept.read_bytes() == content


def delete_beside(client: pulsarx.Client, topic: str) -> None:
    """Another thread deletes it, and has done so on return."""
    deletion = partial(client.admin.topics.delete, topic, force=True)
    deleter = threading.Thread(target=deletion)
    deleter.start()
    deleter.join()


@pytest.mark.border(left_out="the inside is changed")
@pytest.mark.parametrize("level", ["topic", "namespace"])
def test_a_policy_is_not_set_on_what_is_deleted_meanwhile(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    """It was a CatalogueError."""
    admin = memory_client.admin
    admin.namespaces.create_namespace("public/going")
    admin.topics.create_non_partitioned_topic("public/going/t")
    commit = Catalogue.commit

    def delete_and_commit(self: Catalogue, *arguments: Any, **more: Any) -> Any:
        monkeypatch.undo()
        delete_beside(memory_client, "public/going/t")
        if level == "namespace":
            admin.namespaces.delete_namespace("public/going")
        return commit(self, *arguments, **more)

    monkeypatch.setattr(Catalogue, "commit", delete_and_commit)
    with pytest.raises(errors.TopicNotFound):
        if level == "topic":
            admin.topics.set_deduplication("public/going/t", True)
        else:
            admin.namespaces.set_deduplication("public/going", True)


@pytest.mark.border(left_out="the inside is changed")
def test_a_topic_that_is_deleted_while_it_is_truncated_is_not_found(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said that a ledger was closed."""
    memory_client.create_producer("t").send(b"1")

    def delete_and_seal(self: ManagedLedger, writer: Any) -> Any:
        monkeypatch.undo()
        delete_beside(memory_client, "t")
        inspect(memory_client).settle()
        return writer.seal(flush=True)

    monkeypatch.setattr(ManagedLedger, "_seal", delete_and_seal)
    with pytest.raises(errors.TopicNotFound):
        memory_client.admin.topics.truncate("t")
