"""Facts about deleting, terminating, truncating and unloading topics that producers have to
themselves, that tell duplicates, have schemas and a ledger that is prepared."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from child_process import ChildProcess
from topic_reading import OpenClient, payloads, whole_topic

import pulsarx
from pulsarx import ProducerAccessMode, errors
from pulsarx.schema import JsonSchema, Record, String
from pulsarx.testing import inspect

SMALL = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=3)
ALONE = {"access_mode": ProducerAccessMode.WaitForExclusive}


class Order(Record):
    """A value."""

    name = String()


def left_files(folder: Path) -> list[str]:
    return [
        each.name
        for part in ("ledgers", "cursors", "orphans", "deduplication")
        for each in (folder / part).rglob("*")
        if each.is_file()
    ]


def has_prepared(client: pulsarx.Client) -> bool:
    inspect(client).settle()
    return bool(inspect(client).ledger("t").tail.has_prepared)


def test_a_deleted_topic_leaves_no_sequences_no_schema_and_no_prepared_ledger(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client(broker_options=SMALL)
    client.admin.namespaces.set_deduplication("public/default", True)
    with client.create_producer("t", schema=JsonSchema(Order), producer_name="p") as producer:
        for number in range(4):
            producer.send(Order(name="n"), sequence_id=number)
    client.admin.topics.unload("t")
    assert [each for each in left_files(folder) if each.endswith(".sequences")]
    producer = client.create_producer("t", schema=JsonSchema(Order), producer_name="p")
    producer.send(Order(name="n"), sequence_id=4)
    assert has_prepared(client)
    client.admin.topics.delete("t", force=True)
    inspect(client).settle()
    assert left_files(folder) == []
    with pytest.raises(errors.TopicNotFound):
        client.admin.schemas.get_all_schemas("t")
    with client.create_producer("t", producer_name="p") as producer:
        producer.send(b"new", sequence_id=0)
    assert whole_topic(client) == [b"new"]


def test_a_truncated_topic_goes_on_telling_duplicates(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client(broker_options=SMALL)
    client.admin.namespaces.set_deduplication("public/default", True)
    with client.create_producer("t", producer_name="p") as producer:
        for number in range(4):
            producer.send(b"%d" % number, sequence_id=number)
    client.admin.topics.truncate("t")
    client.admin.topics.unload("t")
    with client.create_producer("t", producer_name="p") as producer:
        producer.send(b"again", sequence_id=3)
        producer.send(b"new", sequence_id=4)
    assert whole_topic(client) == [b"new"]


def test_a_truncated_topic_without_subscription_and_ledger_leaves_no_sequences(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client(broker_options=SMALL)
    client.admin.namespaces.set_deduplication("public/default", True)
    with client.create_producer("t", producer_name="p") as producer:
        producer.send(b"0")
    client.admin.topics.truncate("t")
    client.close()
    assert [each for each in left_files(folder) if each.endswith(".sequences")]
    client = open_client(broker_options=SMALL)
    client.admin.topics.delete("t")
    assert left_files(folder) == []


def test_a_terminated_topic_discards_what_is_prepared(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    producer = client.create_producer("t")
    producer.send(b"0")
    assert has_prepared(client)
    client.admin.topics.terminate("t")
    assert not has_prepared(client)
    for _ in range(4):
        with pytest.raises(errors.TopicTerminated):
            producer.send(b"more")
    for mode in ProducerAccessMode.__members__.values():
        with pytest.raises(errors.TopicTerminated):
            client.create_producer("t", access_mode=mode)
    client.close()
    assert whole_topic(open_client()) == [b"0"]


def test_a_truncated_topic_with_a_prepared_ledger_is_empty(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    for number in range(10):
        producer.send(b"%d" % number)
    assert has_prepared(client)
    client.admin.topics.truncate("t")
    assert whole_topic(client) == []
    producer.send(b"new")
    assert payloads(consumer)[-1] == b"new"
    assert whole_topic(client) == [b"new"]


def waiting(client: pulsarx.Client, told: list[object]) -> threading.Thread:
    """A thread that waits until it has the topic to itself."""

    def wait() -> None:
        try:
            told.append(client.create_producer("t", producer_name="waiting", **ALONE))
        except errors.PulsarException as error:
            told.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while not inspect(client).waiting_producers("t"):
        assert thread.is_alive()
    return thread


def test_a_producer_that_waits_is_told_of_the_deletion(open_client: OpenClient) -> None:
    client = open_client()
    first = client.create_producer("t", **ALONE)
    told: list[object] = []
    thread = waiting(client, told)
    with pytest.raises(errors.NotAllowedError, match="2 producers"):
        client.admin.topics.delete("t")
    client.admin.topics.delete("t", force=True)
    thread.join(60)
    assert isinstance(told[0], errors.TopicNotFound)
    with pytest.raises(errors.AlreadyClosed):
        first.send(b"x")
    assert client.admin.topics.get_list() == []


def test_a_producer_that_waits_is_told_of_the_termination(open_client: OpenClient) -> None:
    client = open_client()
    first = client.create_producer("t", **ALONE)
    told: list[object] = []
    thread = waiting(client, told)
    client.admin.topics.terminate("t")
    thread.join(60)
    assert isinstance(told[0], errors.TopicTerminated)
    first.close()
    with pytest.raises(errors.TopicTerminated):
        client.create_producer("t", **ALONE)
    client.admin.topics.delete("t")
    client.create_producer("t", **ALONE).send(b"in the next one")


@pytest.mark.standard
def test_a_producer_that_waits_in_another_process_is_told_of_the_termination(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client()
    first = client.create_producer("t", **ALONE)
    program = """
import sys, pulsarx
with pulsarx.Client(sys.argv[1]) as client:
    client.admin.topics.create_partitioned_topic("p", 2)
    print("there", flush=True)
    for topic in ("t", "p"):
        try:
            client.create_producer(
                topic, access_mode=pulsarx.ProducerAccessMode.WaitForExclusive
            )
        except pulsarx.TopicTerminated:
            print("told", flush=True)
"""
    with ChildProcess(program, folder) as child:
        assert child.line() == "there"
        held = client.create_producer("p-partition-1", **ALONE)
        for topic in ("t", "p-partition-1"):
            while not inspect(client).waiting_producers(topic):
                pass
            client.admin.topics.terminate(topic)
            assert child.line() == "told"
    assert not inspect(client).topic("p-partition-0").producers.is_used()
    assert first.is_connected() and held.is_connected()


def test_a_topic_that_somebody_waits_for_stays_in_memory(open_client: OpenClient) -> None:
    client = open_client()
    first = client.create_producer("t", **ALONE)
    told: list[object] = []
    thread = waiting(client, told)
    client.admin.topics.unload("t")
    first.send(b"x")
    first.close()
    thread.join(60)
    assert isinstance(told[0], pulsarx.Producer)
    told[0].send(b"y")
    assert whole_topic(client) == [b"x", b"y"]


def test_a_topic_of_the_same_name_begins_with_its_first_epoch(open_client: OpenClient) -> None:
    client = open_client()
    for _ in range(3):
        client.create_producer("t", **ALONE).close()
    assert client.admin.topics.stats("t")["topic_epoch"] == 2
    client.admin.topics.delete("t")
    client.create_producer("t", **ALONE).close()
    assert client.admin.topics.stats("t")["topic_epoch"] == 0


def test_limits_hold_for_the_topics_of_a_list(open_client: OpenClient) -> None:
    client = open_client(broker_options=pulsarx.BrokerOptions(max_subscriptions_per_topic=1))
    client.create_producer("b").close()
    client.subscribe("a", "other").close()
    with pytest.raises(errors.NotAllowedError, match="max_subscriptions_per_topic"):
        client.subscribe(["a", "b"], "s")
    assert client.admin.topics.get_subscriptions("b") == []
    client.admin.topics.set_subscription_types_enabled("b", ["Shared"])
    client.admin.topics.delete_subscription("a", "other")
    with pytest.raises(errors.NotAllowedError, match="subscription_types_enabled"):
        client.subscribe(["a", "b"], "s")
    assert client.admin.topics.get_subscriptions("a") == []
