"""Facts about what messages of transactions are to readers, statistics and other features."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from support.clients import OpenClient
from support.consumer_types import ALL_TYPES
from support.waiting import wait_until
from transaction_steps import backlog, seen, taken

import pulsarx
from pulsarx import ConsumerDeadLetterPolicy, ConsumerType, InitialPosition, MessageId
from pulsarx.transaction import TransactionState

NOTHING = MessageId()
EARLIEST = InitialPosition.Earliest
both_ends = pytest.mark.parametrize("end", ["commit", "abort"])


@pytest.fixture
def client(open_client: OpenClient) -> pulsarx.Client:
    return open_client()


def test_an_empty_one_is_committed_and_makes_no_topic(client: pulsarx.Client) -> None:
    transaction = client.new_transaction()
    transaction.commit()
    assert transaction.state() is TransactionState.COMMITTED
    assert client.admin.topics.get_list() == []


# The last message ---------------------------------------------------------------------------------


def test_the_last_message_is_the_one_in_front_of_an_open_transaction(
    client: pulsarx.Client,
) -> None:
    producer = client.create_producer("t")
    consumer = client.subscribe("t", "s", initial_position=EARLIEST)
    reader = client.create_reader("t", MessageId.earliest)
    plain = producer.send(b"m")
    with client.new_transaction() as transaction:
        sent = producer.send(b"t", transaction=transaction)
        assert reader.read_next(0).message_id() == plain
        assert not reader.has_message_available()
        assert reader.get_last_message_id() == consumer.get_last_message_id() == plain
    assert reader.has_message_available()
    assert reader.get_last_message_id() == consumer.get_last_message_id() == sent


@both_ends
def test_a_topic_whose_messages_are_open_or_aborted_has_no_last_message(
    client: pulsarx.Client, end: str
) -> None:
    producer = client.create_producer("t")
    reader = client.create_reader("t", MessageId.earliest)
    transaction = client.new_transaction()
    sent = [producer.send(b"%d" % at, transaction=transaction) for at in range(3)][-1]
    assert (reader.get_last_message_id(), reader.has_message_available()) == (NOTHING, False)
    getattr(transaction, end)()
    if end == "commit":
        assert (reader.get_last_message_id(), reader.has_message_available()) == (sent, True)
    else:
        assert (reader.get_last_message_id(), reader.has_message_available()) == (NOTHING, False)


@both_ends
def test_an_end_takes_no_entry_id(client: pulsarx.Client, end: str) -> None:
    """In Pulsar a marker lies between."""
    producer = client.create_producer("t")
    transaction = client.new_transaction()
    ids = [producer.send(b"%d" % at, transaction=transaction) for at in range(3)]
    getattr(transaction, end)()
    ids.append(producer.send(b"plain"))
    assert [each.entry_id() for each in ids] == [0, 1, 2, 3]


# Readers of all kinds -----------------------------------------------------------------------------


@both_ends
def test_a_table_view_has_what_was_committed(client: pulsarx.Client, end: str) -> None:
    producer = client.create_producer("t")
    producer.send(b"0", partition_key="before")
    view = client.create_table_view("t")
    transaction = client.new_transaction()
    producer.send(b"1", partition_key="k", transaction=transaction)
    producer.send(b"2", partition_key="k", transaction=transaction)
    with client.create_table_view("t") as another:
        assert view.items() == another.items() == [("before", b"0")]
    getattr(transaction, end)()
    producer.send(b"3", partition_key="behind")
    wait_until(lambda: "behind" in view)
    wanted = {"before": b"0", "behind": b"3"} | ({"k": b"2"} if end == "commit" else {})
    assert dict(view.items()) == wanted


def test_peeking_finds_what_was_committed(client: pulsarx.Client) -> None:
    """Whoever peeks sees no more than consumers do; Pulsar's client hides the others itself."""
    client.subscribe("t", "s")
    producer = client.create_producer("t")
    for content, end in ((b"committed", "commit"), (b"aborted", "abort"), (b"open", "")):
        transaction = client.new_transaction()
        sent = producer.send(content, transaction=transaction)
        if end:
            getattr(transaction, end)()
    (found,) = client.admin.topics.peek_messages("t", "s", 10)
    assert found.data() == b"committed"
    assert client.admin.topics.get_message_by_id("t", sent) is None


def compacted(client: pulsarx.Client) -> list[bytes]:
    client.admin.topics.trigger_compaction("t")
    pulsarx.testing.inspect(client).settle()
    reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(0).data())
    reader.close()
    return found


def test_compaction_keeps_the_last_message_of_a_key_whichever_ended_last(
    client: pulsarx.Client,
) -> None:
    producer = client.create_producer("t")
    transaction = client.new_transaction()
    producer.send(b"1", partition_key="k", transaction=transaction)
    producer.send(b"2", partition_key="k")
    producer.send(b"3", partition_key="j")
    assert compacted(client) == []  # all lies behind what is open
    transaction.commit()
    assert compacted(client) == [b"2", b"3"]


# Statistics ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("end", "left"), [("commit", 3), ("abort", 0)])
def test_messages_of_a_transaction_are_counted_without_its_end(
    client: pulsarx.Client, end: str, left: int
) -> None:
    """In Pulsar the marker is one more, and what was aborted stays until a consumer passes it."""
    client.subscribe("t", "s", initial_position=EARLIEST).close()
    producer = client.create_producer("t", batching_enabled=False)
    transaction = client.new_transaction()
    for _ in range(3):
        producer.send(b"a", transaction=transaction)
    found = client.admin.topics.stats("t")
    assert found["ongoing_txn_count"] == 1
    assert found["msg_in_counter"] == found["subscriptions"]["s"]["msg_backlog"] == 3
    getattr(transaction, end)()
    found = client.admin.topics.stats("t")
    assert found["ongoing_txn_count"] == 0
    assert (found["msg_in_counter"], found["subscriptions"]["s"]["msg_backlog"]) == (3, left)
    consumer = client.subscribe("t", "s")
    assert len(taken(consumer)) == left
    assert backlog(client, "t") == 0


WHAT_PASSES_OVER: dict[str, Any] = {
    "skip": lambda client, _: client.admin.topics.skip_messages("t", "s", 3),
    "skip all": lambda client, _: client.admin.topics.skip_all_messages("t", "s"),
    "expire": lambda client, _: client.admin.topics.expire_messages("t", "s", 1),
    "reset": lambda client, _: client.admin.topics.reset_cursor("t", "s", 2**52),
    "seek": lambda _, consumer: consumer.seek(MessageId.latest),
}


@pytest.mark.parametrize("kind", ALL_TYPES)
@pytest.mark.parametrize("how", WHAT_PASSES_OVER)
def test_what_is_held_back_is_not_passed_over(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    kind: ConsumerType,
    how: str,
) -> None:
    """In Pulsar it is acknowledged before anybody could see it."""
    client = clocked_client
    consumer = client.subscribe("t", "s", consumer_type=kind, initial_position=EARLIEST)
    producer = client.create_producer("t")
    producer.send(b"0")
    transaction = client.new_transaction()
    producer.send(b"1", transaction=transaction)
    producer.send(b"2")
    manual_clock.advance(30)
    WHAT_PASSES_OVER[how](client, consumer)
    assert backlog(client, "t") == 2
    transaction.commit()
    assert taken(consumer) == [b"1", b"2"]


# Other features -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("commits_after", "comes_after"), [(3.0, 0.0), (1.0, 1.0)])
def test_a_delayed_message_comes_when_it_is_committed_and_due(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    commits_after: float,
    comes_after: float,
) -> None:
    client = clocked_client
    consumer = client.subscribe("t", "s", consumer_type=ConsumerType.Shared)
    producer = client.create_producer("t")
    transaction = client.new_transaction()
    producer.send(b"later", deliver_after=timedelta(seconds=2), transaction=transaction)
    manual_clock.advance(commits_after)
    assert taken(consumer) == []
    transaction.commit()
    if comes_after:
        assert taken(consumer) == []
        manual_clock.advance(comes_after)
    assert taken(consumer) == [b"later"]


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_letters_are_outside_of_a_transaction_that_is_aborted(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    client = clocked_client
    letters: Any = client.subscribe("dead", "s")
    consumer = client.subscribe(
        "t",
        "s",
        consumer_type=kind,
        retry_enable=True,
        dead_letter_policy=ConsumerDeadLetterPolicy(
            1, dead_letter_topic="dead", retry_letter_topic="again"
        ),
    )
    again = client.subscribe("again", "watching")
    producer = client.create_producer("t")
    producer.send(b"retried")
    producer.send(b"pending")
    transaction = client.new_transaction()
    first, second = consumer.receive_many(2, 0)
    consumer.acknowledge(second, transaction=transaction)
    consumer.reconsume_later(first, 1)
    manual_clock.advance(1)
    once_more = consumer.receive(0)
    assert once_more.data() == b"retried"
    consumer.reconsume_later(once_more, 1)
    transaction.abort()
    assert taken(again) == [b"retried"]
    assert taken(letters) == [b"retried"]
    assert taken(consumer) == [b"pending"]


def test_a_message_that_is_aborted_is_never_a_letter(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    """What is acknowledged in a transaction does not come again, so nobody gives it up."""
    client = clocked_client
    policy = ConsumerDeadLetterPolicy(1, dead_letter_topic="dead")
    letters: Any = client.subscribe("dead", "s")
    consumer = client.subscribe(
        "t",
        "s",
        consumer_type=ConsumerType.Shared,
        dead_letter_policy=policy,
        negative_ack_redelivery_delay_ms=100,
    )
    producer = client.create_producer("t")
    producer.send(b"a")
    transaction = client.new_transaction()
    message = consumer.receive(0)
    consumer.acknowledge(message, transaction=transaction)
    for _ in range(3):
        consumer.negative_acknowledge(message)
        manual_clock.advance(1)
        assert taken(consumer) == []
    assert taken(letters) == []
    transaction.commit()
    assert seen(client, "dead") == []
