"""Facts about messages that are sent in transactions: who sees them, when, in which order."""

from __future__ import annotations

import queue
import threading
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.clients import OpenClient
from transaction_steps import backlog, seen, taken

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, InitialPosition, MessageId, errors
from pulsarx.transaction import TransactionState

TYPES = [
    ConsumerType.Exclusive,
    ConsumerType.Failover,
    ConsumerType.Shared,
    ConsumerType.KeyShared,
]
NOTHING = MessageId()


@pytest.fixture(params=["sync", "interval", "os"])
def client(open_client: OpenClient, request: pytest.FixtureRequest) -> pulsarx.Client:
    return open_client(durability=request.param)


def consumer_of(client: pulsarx.Client, topic: str = "t", **options: Any) -> Any:
    options.setdefault("initial_position", InitialPosition.Earliest)
    return client.subscribe(topic, options.pop("name", "s"), **options)


# Visibility ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("consumer_type", TYPES)
def test_nobody_sees_what_is_sent_before_it_is_committed(
    client: pulsarx.Client, consumer_type: ConsumerType
) -> None:
    consumer = consumer_of(client, consumer_type=consumer_type)
    producer = client.create_producer("t")
    view = client.create_table_view("t")
    producer.send(b"0", partition_key="k")
    transaction = client.new_transaction()
    ids = [producer.send(b"%d" % n, partition_key="k", transaction=transaction) for n in (1, 2)]
    assert taken(consumer) == seen(client, "t") == [b"0"]
    assert client.admin.topics.get_last_message_id("t") < ids[0]
    transaction.commit()
    assert transaction.state() is TransactionState.COMMITTED
    found = consumer.receive_many(10, 0)
    assert [each.message_id() for each in found] == ids
    assert seen(client, "t") == [b"0", b"1", b"2"]
    assert client.admin.topics.get_last_message_id("t") == ids[1]
    view.close()


@pytest.mark.parametrize("consumer_type", TYPES)
def test_nobody_ever_sees_what_was_aborted(
    client: pulsarx.Client, consumer_type: ConsumerType
) -> None:
    consumer = consumer_of(client, consumer_type=consumer_type)
    producer = client.create_producer("t")
    transaction = client.new_transaction()
    producer.send_many([b"1", b"2"], keys=["a", "b"], transaction=transaction)
    transaction.abort()
    assert transaction.state() is TransactionState.ABORTED
    assert taken(consumer) == seen(client, "t") == []
    assert client.admin.topics.get_last_message_id("t") == NOTHING
    assert backlog(client, "t") == 0
    producer.send(b"3", partition_key="a")
    assert taken(consumer) == seen(client, "t") == [b"3"]
    again = consumer_of(client, name="later", consumer_type=consumer_type)
    assert taken(again) == [b"3"]
    assert backlog(client, "t", "later") == 0
    again.seek(MessageId.earliest)
    assert taken(again) == [b"3"]
    assert backlog(client, "t", "later") == 0


def test_plain_messages_wait_behind_an_open_transaction(client: pulsarx.Client) -> None:
    consumer = consumer_of(client)
    plain, other = client.create_producer("t"), client.create_producer("t")
    plain.send(b"0")
    transaction = client.new_transaction()
    other.send(b"1", transaction=transaction)
    plain.send(b"2")
    assert taken(consumer) == [b"0"]
    transaction.commit()
    assert taken(consumer) == [b"1", b"2"]


@pytest.mark.parametrize("first", ["commit", "abort"])
@pytest.mark.parametrize("second", ["commit", "abort"])
def test_what_is_behind_an_older_open_transaction_waits_for_that(
    client: pulsarx.Client, first: str, second: str
) -> None:
    consumer = consumer_of(client)
    producer = client.create_producer("t")
    a, b = client.new_transaction(), client.new_transaction()
    for content, transaction in ((b"a1", a), (b"b1", b), (b"a2", a), (b"plain", None)):
        producer.send(content, transaction=transaction)
    getattr(b, second)()
    assert taken(consumer) == seen(client, "t") == []
    getattr(a, first)()
    wanted = [
        content
        for content, end in ((b"a1", first), (b"b1", second), (b"a2", first), (b"plain", ""))
        if end != "abort"
    ]
    assert taken(consumer) == seen(client, "t") == wanted
    assert backlog(client, "t") == 0


def test_the_ends_of_an_older_and_a_younger_one_show_a_part_each(client: pulsarx.Client) -> None:
    producer = client.create_producer("t")
    a, b = client.new_transaction(), client.new_transaction()
    for content, transaction in ((b"a", a), (b"0", None), (b"b", b), (b"1", None)):
        producer.send(content, transaction=transaction)
    a.commit()
    assert seen(client, "t") == [b"a", b"0"]
    b.commit()
    assert seen(client, "t") == [b"a", b"0", b"b", b"1"]


def test_topics_show_what_was_committed_at_one_moment(client: pulsarx.Client) -> None:
    """Whoever reads one topic and then the other never sees a transaction in the first alone."""
    producers = {topic: client.create_producer(topic) for topic in ("x", "y")}
    readers = {
        order: [client.create_reader(topic, MessageId.earliest) for topic in order]
        for order in ("xy", "yx")
    }
    done = threading.Event()
    wrong: list[tuple[str, int, int]] = []

    def look(order: str) -> None:
        counts = [0, 0]
        while True:
            is_last = done.is_set()
            for at, reader in enumerate(readers[order]):
                counts[at] += len(reader.read_many(1000, 0))
            if counts[0] > counts[1]:
                wrong.append((order, *counts))
            if is_last:
                return

    threads = [threading.Thread(target=look, args=(order,)) for order in readers]
    for each in threads:
        each.start()
    for number in range(100):
        with client.new_transaction() as transaction:
            for producer in producers.values():
                producer.send(b"%d" % number, transaction=transaction)
    done.set()
    for each in threads:
        each.join()
    assert wrong == []


# What belongs to it -------------------------------------------------------------------------------


@pytest.mark.parametrize("by_key", [False, True])
def test_a_batch_belongs_to_one_transaction_or_to_none(
    client: pulsarx.Client, by_key: bool
) -> None:
    kind = pulsarx.BatchingType.KeyBased if by_key else pulsarx.BatchingType.Default
    producer = client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=60_000, batching_type=kind
    )
    a, b = client.new_transaction(), client.new_transaction()
    for content, transaction in (
        (b"0", None), (b"a1", a), (b"a2", a), (b"1", None), (b"b", b), (b"2", None), (b"a3", a),
    ):  # fmt: skip
        producer.send_async(content, None, partition_key="k", transaction=transaction)
    a.abort()
    b.commit()
    producer.flush()
    assert seen(client, "t") == [b"0", b"1", b"b", b"2"]


def test_each_call_that_publishes_joins_it_or_leaves_it(client: pulsarx.Client) -> None:
    producer = client.create_producer("t", batching_enabled=True)
    transaction = client.new_transaction()
    told: list[Any] = []
    producer.send_async(b"a", lambda *answer: told.append(answer), transaction=transaction)
    producer.send_async(b"b", None, transaction=transaction)
    producer.send_many([b"c", b"d"], transaction=transaction)
    producer.send_many([b"0"])
    producer.send_many([b"e"], keys=["k"], transaction=transaction)
    producer.send_arrow(pa.table({"value": [b"1"]}))
    producer.send(b"f", transaction=transaction)
    producer.send_async(b"2", None)
    producer.send(b"g", deliver_after=timedelta(0), transaction=transaction)
    producer.send(b"3", deliver_after=timedelta(0))
    producer.flush()
    transaction.abort()
    assert [answer[0] for answer in told] == [pulsarx.Result.Ok]
    assert seen(client, "t") == [b"0", b"1", b"2", b"3"]


def test_partitions_and_several_topics_take_part(client: pulsarx.Client) -> None:
    client.admin.topics.create_partitioned_topic("p", 3)
    partitioned, other = client.create_producer("p"), client.create_producer("t")
    consumer = consumer_of(client, "p")
    aborted, committed = client.new_transaction(), client.new_transaction()
    for transaction in (aborted, committed):
        for number in range(6):
            partitioned.send(b"%d" % number, transaction=transaction)
        partitioned.send_many([b"6", b"7"], keys=["a", "b"], transaction=transaction)
        other.send(b"x", transaction=transaction)
    assert taken(consumer) == []
    aborted.abort()
    committed.commit()
    assert sorted(taken(consumer)) == [b"%d" % number for number in range(8)]
    assert seen(client, "t") == [b"x"]


def test_messages_in_chunks_are_seen_whole_or_not(open_client: OpenClient) -> None:
    client = open_client(broker_options=BrokerOptions(max_message_size=1000))
    consumer = consumer_of(client)
    producer = client.create_producer("t", chunking_enabled=True)
    aborted, committed = client.new_transaction(), client.new_transaction()
    producer.send(b"a" * 3000, transaction=aborted)
    producer.send(b"b" * 3000, transaction=committed)
    aborted.abort()
    committed.commit()
    assert taken(consumer) == [b"b" * 3000]
    assert backlog(client, "t") == 0


def test_interceptors_see_and_keep_the_transaction(client: pulsarx.Client) -> None:
    class Shouting(pulsarx.ProducerInterceptor):
        def before_send(self, producer: Any, message: Any) -> Any:
            message.content = message.content.upper()
            return message

    producer = client.create_producer("t", interceptors=[Shouting()])
    transaction = client.new_transaction()
    producer.send(b"a", transaction=transaction)
    producer.send_async(b"b", None, transaction=transaction)
    assert seen(client, "t") == []
    transaction.commit()
    assert seen(client, "t") == [b"A", b"B"]


def test_topics_that_keep_nothing_take_no_part(client: pulsarx.Client) -> None:
    producer = client.create_producer("non-persistent://public/default/n")
    transaction = client.new_transaction()
    with pytest.raises(errors.NotAllowedError, match="the topic keeps no messages"):
        producer.send(b"a", transaction=transaction)
    producer.send(b"b")
    with pytest.raises(errors.TransactionHasOperationFailed, match="the topic keeps no messages"):
        transaction.commit()


def test_a_transaction_of_another_folder_is_refused(client: pulsarx.Client) -> None:
    with pulsarx.Client("memory:") as other:
        transaction = other.new_transaction()
        with pytest.raises(errors.NotAllowedError, match="another folder"):
            client.create_producer("t").send(b"a", transaction=transaction)
    assert seen(client, "t") == []


# Ledgers ------------------------------------------------------------------------------------------

SMALL = BrokerOptions(managed_ledger_max_entries_per_ledger=3)


@pytest.mark.parametrize("durability", ["sync", "os"])
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_ledgers_roll_over_while_a_transaction_is_open(
    open_client: OpenClient, durability: str, end: str
) -> None:
    client = open_client(durability=durability, broker_options=SMALL)
    consumer = consumer_of(client)
    producer = client.create_producer("t")
    wanted = []
    transaction = client.new_transaction()
    producer.send(b"before")
    for number in range(20):
        is_in = number % 3 == 0
        producer.send(b"%d" % number, transaction=transaction if is_in else None)
        if not is_in or end == "commit":
            wanted.append(b"%d" % number)
    assert taken(consumer) == seen(client, "t") == [b"before"]
    getattr(transaction, end)()
    found = seen(client, "t")  # before it is acknowledged, and trimmed
    assert taken(consumer) == wanted
    assert found[-len(wanted) :] == wanted or end == "abort"
    client.close()
    client = open_client(durability=durability, broker_options=SMALL)
    assert seen(client, "t") == ([b"before", *wanted])[-len(seen(client, "t")) :]
    assert taken(consumer_of(client)) == []


def test_a_topic_with_an_open_transaction_is_not_unloaded_or_truncated(
    open_client: OpenClient,
) -> None:
    client = open_client()
    producer = client.create_producer("t")
    transaction = client.new_transaction()
    producer.send(b"a", transaction=transaction)
    producer.close()
    client.admin.topics.unload("t")
    with pytest.raises(errors.NotAllowedError, match=r"transaction \(0,0\) is open"):
        client.admin.topics.truncate("t")
    assert seen(client, "t") == []
    transaction.commit()
    client.admin.topics.unload("t")
    assert seen(client, "t") == [b"a"]


def test_a_topic_is_terminated_with_an_open_transaction(client: pulsarx.Client) -> None:
    producer = client.create_producer("t")
    transaction = client.new_transaction()
    producer.send(b"a", transaction=transaction)
    client.admin.topics.terminate("t")
    assert seen(client, "t") == []
    transaction.commit()
    assert seen(client, "t") == [b"a"]


def test_a_topic_is_deleted_with_an_open_transaction(client: pulsarx.Client) -> None:
    producer, other = client.create_producer("t"), client.create_producer("other")
    transaction = client.new_transaction()
    producer.send(b"a", transaction=transaction)
    other.send(b"b", transaction=transaction)
    client.admin.topics.delete("t", force=True)
    transaction.commit()
    assert seen(client, "other") == [b"b"]
    client.create_producer("t").send(b"c")
    assert seen(client, "t") == [b"c"]


def test_compaction_ends_in_front_of_an_open_transaction(client: pulsarx.Client) -> None:
    producer = client.create_producer("t")
    transaction, aborted = client.new_transaction(), client.new_transaction()
    producer.send(b"0", partition_key="k")
    producer.send(b"1", partition_key="k", transaction=transaction)
    producer.send(b"2", partition_key="k", transaction=aborted)
    aborted.abort()

    def compacted() -> list[bytes]:
        client.admin.topics.trigger_compaction("t")
        pulsarx.testing.inspect(client).settle()
        reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(60_000).data())
        return found

    assert compacted() == [b"0"]
    transaction.commit()
    assert compacted() == [b"1"]


def test_tables_hold_what_was_committed(client: pulsarx.Client) -> None:
    producer = client.create_producer("t")
    for number, end in enumerate(("commit", "abort", "commit", "abort", "")):
        transaction = client.new_transaction()
        producer.send_many([b"%d" % number, b"%d'" % number], transaction=transaction)
        producer.send(b"plain")
        if end:
            getattr(transaction, end)()
    table = client.read_table("t", schema=pulsarx.schema.BytesSchema())
    assert table.column("value").to_pylist() == [
        b"0", b"0'", b"plain", b"plain", b"2", b"2'", b"plain", b"plain",
    ]  # fmt: skip
    transaction.abort()


def test_messages_that_are_held_back_do_not_expire(open_client: OpenClient) -> None:
    clock = pulsarx.ManualClock()
    client = open_client(clock=clock)
    consumer = consumer_of(client)
    producer = client.create_producer("t")
    client.admin.topics.set_message_ttl("t", 1)
    transaction = client.new_transaction()
    producer.send(b"a", transaction=transaction)
    producer.send(b"b")
    clock.advance(30)
    client.admin.topics.expire_messages("t", "s", 1)
    assert backlog(client, "t") == 2
    client.admin.topics.remove_message_ttl("t")
    transaction.commit()
    assert taken(consumer) == [b"a", b"b"]


# Sequence ids -------------------------------------------------------------------------------------


def test_sequence_ids_of_aborted_messages_are_new_again(open_client: OpenClient) -> None:
    options = BrokerOptions(broker_deduplication_enabled=True)
    client = open_client(broker_options=options)
    producer = client.create_producer("t", producer_name="p")
    producer.send(b"6", sequence_id=6)
    aborted = client.new_transaction()
    producer.send(b"7", sequence_id=7, transaction=aborted)
    producer.send(b"8", sequence_id=8, transaction=aborted)
    assert producer.send(b"7", sequence_id=7, transaction=aborted) == NOTHING
    aborted.abort()
    transaction = client.new_transaction()
    assert producer.send(b"7!", sequence_id=7, transaction=transaction) != NOTHING
    transaction.commit()
    assert producer.send(b"7?", sequence_id=7) == NOTHING
    client.close()
    client = open_client(broker_options=options)
    producer = client.create_producer("t", producer_name="p")
    assert producer.send(b"7?", sequence_id=7) == NOTHING
    assert producer.send(b"8!", sequence_id=8) != NOTHING
    assert seen(client, "t") == [b"6", b"7!", b"8!"]


# Ends ---------------------------------------------------------------------------------------------


def test_a_block_commits_and_an_exception_aborts(client: pulsarx.Client) -> None:
    producer = client.create_producer("t")
    with client.new_transaction() as transaction:
        producer.send(b"a", transaction=transaction)
    with pytest.raises(ZeroDivisionError), client.new_transaction() as transaction:
        producer.send(b"b", transaction=transaction)
        raise ZeroDivisionError
    assert transaction.state() is TransactionState.ABORTED
    with client.new_transaction() as transaction:
        producer.send(b"c", transaction=transaction)
        transaction.abort()
    assert seen(client, "t") == [b"a"]


def put_result(told: queue.SimpleQueue[Any], result: Any, _: Any) -> None:
    told.put(result)


def test_an_end_is_taken_once(client: pulsarx.Client) -> None:
    producer = client.create_producer("t")
    for first in ("commit", "abort"):
        transaction = client.new_transaction()
        getattr(transaction, first)()
        for second in ("commit", "abort"):
            with pytest.raises(errors.InvalidTxnStatusError, match=f"it is {first.upper()}"):
                getattr(transaction, second)()
        with pytest.raises(errors.InvalidTxnStatusError, match="has ended"):
            producer.send(b"a", transaction=transaction)
        with pytest.raises(errors.InvalidTxnStatusError, match="has ended"):
            producer.send_many([b"a"], transaction=transaction)
        told: queue.SimpleQueue[Any] = queue.SimpleQueue()
        producer.send_async(b"a", partial(put_result, told), transaction=transaction)
        assert told.get(timeout=30) == pulsarx.Result.InvalidTxnStatusError
    producer.send(b"b")
    assert seen(client, "t") == [b"b"]


def test_numbers_go_on(open_client: OpenClient) -> None:
    client = open_client()
    found = [client.new_transaction().txn_id() for _ in range(3)]
    assert found == [(0, 0), (0, 1), (0, 2)]
    client.close()
    client = open_client()
    assert client.new_transaction().txn_id() > found[-1]


def test_one_that_takes_too_long_is_aborted(open_client: OpenClient) -> None:
    clock = pulsarx.ManualClock()
    client = open_client(clock=clock)
    producer = client.create_producer("t")
    transaction = client.new_transaction(timeout_millis=1000)
    producer.send(b"a", transaction=transaction)
    producer.send(b"b")
    clock.advance(0.9)
    assert transaction.state() is TransactionState.OPEN
    clock.advance(0.2)
    assert transaction.state() is TransactionState.TIME_OUT
    assert seen(client, "t") == [b"b"]
    for call in (transaction.commit, transaction.abort):
        with pytest.raises(errors.InvalidTxnStatusError, match="it is TIME_OUT"):
            call()
    with pytest.raises(errors.InvalidTxnStatusError):
        producer.send(b"c", transaction=transaction)


def test_a_send_that_failed_makes_the_commit_abort(open_client: OpenClient) -> None:
    client = open_client(broker_options=BrokerOptions(max_message_size=1000))
    producer, other = client.create_producer("t"), client.create_producer("other")
    transaction = client.new_transaction()
    other.send(b"a", transaction=transaction)
    with pytest.raises(errors.MessageTooBig):
        producer.send(b"x" * 2000, transaction=transaction)
    with pytest.raises(errors.TransactionHasOperationFailed, match="max_message_size"):
        transaction.commit()
    assert transaction.state() is TransactionState.ABORTED
    assert seen(client, "other") == []


def test_a_client_that_closes_aborts_its_own(folder: Path, open_client: OpenClient) -> None:
    stays, leaves = open_client(), open_client()
    mine, yours = stays.new_transaction(), leaves.new_transaction()
    stays.create_producer("a").send(b"a", transaction=mine)
    leaves.create_producer("b").send(b"b", transaction=yours)
    leaves.close()
    assert yours.state() is TransactionState.ABORTED
    assert mine.state() is TransactionState.OPEN
    mine.commit()
    assert (seen(stays, "a"), seen(stays, "b")) == ([b"a"], [])
    with pytest.raises(errors.InvalidTxnStatusError):
        yours.commit()


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "1", None, True])
def test_a_timeout_is_a_number_above_nothing(client: pulsarx.Client, wrong: Any) -> None:
    with pytest.raises(ValueError, match="timeout_millis is a number, 1 and more"):
        client.new_transaction(timeout_millis=wrong)


def test_what_is_no_transaction_is_refused(client: pulsarx.Client) -> None:
    producer = client.create_producer("t")
    for call in (producer.send, lambda *a, **n: producer.send_async(*a, None, **n)):
        with pytest.raises(TypeError):
            call(b"a", transaction="t")
    producer.send(b"b")
    assert seen(client, "t") == [b"b"]


def test_a_reader_of_the_folder_beside_the_owner_sees_no_more(
    folder: Path, open_client: OpenClient
) -> None:
    client = open_client()
    producer = client.create_producer("t")
    transaction, aborted = client.new_transaction(), client.new_transaction()
    producer.send(b"0")
    producer.send(b"a", transaction=transaction)
    producer.send(b"b", transaction=aborted)
    producer.send(b"1")
    with pulsarx.Client(folder, read_only=True) as beside:
        assert seen(beside, "t") == [b"0"]
        aborted.abort()
        assert seen(beside, "t") == [b"0"]
        transaction.commit()
        assert seen(beside, "t") == [b"0", b"a", b"1"]
        last = client.admin.topics.get_last_message_id("t")
        assert beside.admin.topics.get_last_message_id("t") == last
