"""Facts about terminating, truncating and unloading topics."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from topic_reading import OpenClient, Told, payloads, whole_topic

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, Result, errors
from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
from pulsarx.ground.attempt import attempt
from pulsarx.testing import inspect

SMALL = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=3)


def test_a_terminated_topic_takes_no_more(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    producer = client.create_producer("t")
    consumer = client.subscribe("t", "s")
    ids = [producer.send(b"%d" % number) for number in range(5)]
    assert client.admin.topics.terminate("t") == ids[-1]
    with pytest.raises(errors.TopicTerminated):
        producer.send(b"5")
    told = Told()
    producer.send_async(b"6", told)
    producer.flush()
    assert [result for result, _ in told.results] == [Result.TopicTerminated]
    with pytest.raises(errors.TopicTerminated):
        client.create_producer("t")
    assert payloads(consumer) == [b"%d" % number for number in range(5)]
    with pytest.raises(errors.Timeout):
        consumer.receive(1)
    later = client.subscribe("t", "later", initial_position=InitialPosition.Earliest)
    assert len(payloads(later)) == 5
    reader = client.create_reader("t", MessageId.earliest)
    while reader.has_message_available():
        last = reader.read_next(60_000)
    assert last.message_id() == ids[-1]


def test_terminating_twice_gives_the_same_id(open_client: OpenClient) -> None:
    with open_client() as client:
        last = client.create_producer("t").send(b"1")
        assert client.admin.topics.terminate("t") == last
        assert client.admin.topics.terminate("t") == last
    client = open_client()
    assert client.admin.topics.terminate("t") == last
    with pytest.raises(errors.TopicTerminated):
        client.create_producer("t")
    assert whole_topic(client) == [b"1"]


def test_a_checkpoint_keeps_that_a_topic_is_terminated(open_client: OpenClient) -> None:
    with open_client() as client:
        client.create_producer("t").send(b"1")
        client.admin.topics.terminate("t")
        inspect(client).broker.catalogue.checkpoint()
        inspect(client).broker.catalogue.checkpoint()
    with pytest.raises(errors.TopicTerminated):
        open_client().create_producer("t")


def test_an_empty_topic_can_be_terminated(open_client: OpenClient) -> None:
    client = open_client()
    producer = client.create_producer("t")
    assert client.admin.topics.terminate("t") == MessageId.earliest
    with pytest.raises(errors.TopicTerminated):
        producer.send(b"1")


@pytest.mark.border(left_out="fenced producers learn it late")
def test_an_open_batch_is_refused_with_its_topic(open_client: OpenClient) -> None:
    client = open_client()
    producer = client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=60_000
    )
    producer.send_async(b"1", None)
    producer.flush()
    told = Told()
    producer.send_async(b"2", told)
    client.admin.topics.terminate("t")
    with pytest.raises(errors.TopicTerminated):
        producer.close()
    inspect(client).settle()
    assert [result for result, _ in told.results] == [Result.TopicTerminated]
    assert whole_topic(client) == [b"1"]


@pytest.mark.border(left_out="several topics")
def test_partitions_are_terminated_one_by_one(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic("p", 2)
    producer = client.create_producer("p")
    with pytest.raises(errors.OperationNotSupported):
        client.admin.topics.terminate("p")
    client.admin.topics.terminate("p-partition-1")
    outcomes = set()
    for number in range(4):
        try:
            producer.send(b"%d" % number)
            outcomes.add("sent")
        except errors.TopicTerminated:
            outcomes.add("refused")
    assert outcomes == {"sent", "refused"}
    with pytest.raises(errors.TopicTerminated):
        client.create_producer("p")


def test_a_terminated_topic_can_be_deleted_and_born_again(open_client: OpenClient) -> None:
    client = open_client()
    client.create_producer("t").close()
    client.admin.topics.terminate("t")
    client.admin.topics.delete("t")
    client.create_producer("t").send(b"1")
    assert whole_topic(client) == [b"1"]


@pytest.mark.border(left_out="sent before acknowledged")
@pytest.mark.parametrize("kind", list(ConsumerType.__members__.values()), ids=str)
def test_truncating_removes_what_is_there(open_client: OpenClient, kind: Any) -> None:
    client = open_client(broker_options=SMALL)
    client.admin.namespaces.set_retention("public/default", -1, -1)
    consumer = client.subscribe("t", "s", kind)
    client.subscribe("t", "other").close()
    producer = client.create_producer("t")
    for number in range(10):
        producer.send(b"%d" % number, partition_key="k")
    taken = consumer.receive(60_000)
    client.admin.topics.truncate("t")
    stats = client.admin.topics.stats("t")
    assert (stats["messages"], stats["storage_size"]) == (0, 0)
    assert [each["msg_backlog"] for each in stats["subscriptions"].values()] == [0, 0]
    assert taken.data() == b"0"
    producer.send(b"new", partition_key="k")
    assert payloads(consumer) == [b"new"]
    assert whole_topic(client) == [b"new"]


@pytest.mark.border(left_out="several topics")
def test_truncating_an_empty_topic_does_nothing(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic("p", 2)
    client.admin.topics.truncate("p")
    client.create_producer("p").send(b"1")
    client.admin.topics.truncate("p")
    assert client.admin.topics.partitioned_stats("p")["messages"] == 0


def test_a_terminated_topic_can_be_truncated(open_client: OpenClient) -> None:
    client = open_client()
    client.create_producer("t").send(b"1")
    client.admin.topics.terminate("t")
    client.admin.topics.truncate("t")
    assert whole_topic(client) == []
    with pytest.raises(errors.TopicTerminated):
        client.create_producer("t")


def test_clients_go_on_with_a_topic_that_is_unloaded(open_client: OpenClient) -> None:
    client = open_client()
    producer = client.create_producer("t")
    consumer = client.subscribe("t", "s")
    producer.send(b"0")
    first = consumer.receive(60_000)
    client.admin.topics.unload("t")
    assert producer.send(b"1").ledger_id() > first.message_id().ledger_id()
    assert consumer.receive(60_000).data() == b"1"
    assert whole_topic(client) == [b"0", b"1"]


@pytest.mark.border(left_out="forgotten consumers")
def test_a_topic_without_clients_leaves_memory_when_it_is_unloaded(
    open_client: OpenClient,
) -> None:
    client = open_client()
    client.subscribe("t", "s").close()
    client.create_producer("t").send(b"0")
    client.admin.topics.unload("t")
    assert inspect(client).broker.topics.open_topics() == []
    assert client.subscribe("t", "s").receive(60_000).data() == b"0"
    assert whole_topic(client) == [b"0"]


def test_a_topic_in_memory_is_not_freed_when_it_is_unloaded() -> None:
    """Unloading lost all of its messages, and its readers went round in circles: there is no file
    from which it could be opened again."""
    with pulsarx.Client("memory:unloaded", broker_options=SMALL) as client:
        with client.create_producer("t") as producer:
            for number in range(5):
                producer.send(b"%d" % number)
        client.subscribe("t", "s", initial_position=InitialPosition.Earliest).close()
        client.admin.topics.unload("t")
        assert whole_topic(client) == [b"%d" % number for number in range(5)]
        assert payloads(client.subscribe("t", "s")) == [b"%d" % number for number in range(5)]


def test_closing_waits_for_a_ledger_that_is_being_sealed(open_client: OpenClient) -> None:
    """Unloading a topic raised AlreadyClosed while a full ledger of it was being sealed in the
    background."""
    from pulsarx.testing.faults import fault_plan

    client = open_client(broker_options=SMALL)
    told: list[Exception | None] = []
    with fault_plan() as plan:
        plan.stall("punch_hole")  # the last step of sealing
        with client.create_producer("t") as producer:
            for number in range(4):
                producer.send(b"%d" % number)
        while not plan.stalled():
            pass
        ledger = inspect(client).topic("t").ledger
        closing = threading.Thread(target=lambda: told.append(attempt(ledger.close)))
        closing.start()
        closing.join(0.1)  # longer than it took to be refused
        plan.release()
        closing.join()
    assert told == [None]
    inspect(client).settle()
    assert {each.state for each in ledger.ledgers()} == {"sealed"}
    assert whole_topic(client) == [b"%d" % number for number in range(4)]


def test_the_last_message_id_is_told(open_client: OpenClient) -> None:
    client = open_client()
    topics = client.admin.topics
    with pytest.raises(errors.TopicNotFound):
        topics.get_last_message_id("t")
    producer = client.create_producer("t", batching_enabled=True)
    assert topics.get_last_message_id("t") == MessageId.earliest
    producer.send_async(b"1", None)
    last = producer.send(b"2")
    assert topics.get_last_message_id("t") == last


class ToldOfRelease:
    """In the place of a lock: calls what it is given each time that it was released."""

    def __init__(self, lock: Any, told: Callable[[], object]) -> None:
        self.acquire = lock.acquire
        self._release = lock.release
        self._told = told

    def release(self) -> None:
        self._release()
        self._told()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


@pytest.mark.border(left_out="the inside is changed")
def test_a_send_that_begins_a_ledger_while_its_topic_is_terminated_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was told that None has no ledger id, and the full ledger stayed unsealed."""
    client = pulsarx.Client("memory:small", broker_options=SMALL)
    monkeypatch.setattr(ManagedLedger, "prepare", lambda self: None)
    producer = client.create_producer("t")
    for number in range(3):
        producer.send(b"%d" % number)
    begun: list[bool] = []
    switch = ManagedLedger._switch

    def begin(self: ManagedLedger) -> None:
        switch(self)
        begun.append(True)

    def terminate_once() -> None:
        if begun:
            begun.clear()
            ender = threading.Thread(target=client.admin.topics.terminate, args=("t",))
            ender.start()
            ender.join()

    monkeypatch.setattr(ManagedLedger, "_switch", begin)
    ledger = inspect(client).ledger("t")
    monkeypatch.setattr(ledger, "lock", ToldOfRelease(ledger.lock, terminate_once))
    with pytest.raises(errors.TopicTerminated):
        producer.send(b"3")
    inspect(client).settle()
    assert [each["state"] for each in client.admin.topics.stats("t")["ledgers"]] == ["sealed"]
    assert whole_topic(client) == [b"0", b"1", b"2"]
    client.close()
