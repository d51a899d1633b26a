"""Facts about acknowledgements in transactions that are open, and what a commit makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.clients import OpenClient
from support.consumer_types import ALL_TYPES
from support.topics import backlog, filled
from transacted_steps import StandIn, messages_of, texts_of
from type_steps import KEY_SHARED, check, join, publish_batch, statistics

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, errors
from pulsarx.testing import inspect

EXCLUSIVE, FAILOVER, SHARED = ConsumerType.Exclusive, ConsumerType.Failover, ConsumerType.Shared
IN_ORDER = [EXCLUSIVE, FAILOVER]

THREE_A_LEDGER = BrokerOptions(managed_ledger_max_entries_per_ledger=3)
of_all_types = pytest.mark.parametrize("kind", ALL_TYPES)
of_types_in_order = pytest.mark.parametrize("kind", IN_ORDER)


def acknowledged(client: pulsarx.Client, kind: ConsumerType, count: int = 5) -> tuple[Any, StandIn]:
    """A consumer of `count` messages that has received all, and acknowledged the second and the
    third in a transaction."""
    filled(client, count)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge(messages[1], transaction)
    consumer.acknowledge(messages[2].message_id(), transaction=transaction)
    return consumer, transaction


def entries_of_ledgers(client: pulsarx.Client) -> list[int]:
    """Of the ledgers that are not trimmed."""
    inspect(client).settle()
    return [each["entries"] for each in client.admin.topics.stats("t")["ledgers"]]


# Pending ------------------------------------------------------------------------------------------


@of_all_types
def test_a_pending_message_does_not_come_again_for_any_reason(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    filled(clocked_client, 5)
    options = {"unacked_messages_timeout_ms": 20_000}
    consumer = join(clocked_client, kind, **options)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge(messages[1], transaction)
    consumer.acknowledge(messages[2], transaction)
    others = ["0", "3", "4"]
    manual_clock.advance(30)
    assert texts_of(consumer) == others  # overdue
    for message in messages:
        consumer.negative_acknowledge(message)
    manual_clock.advance(70)
    assert texts_of(consumer) == others
    consumer.redeliver_unacknowledged_messages()
    assert texts_of(consumer) == others
    consumer.close()
    consumer = join(clocked_client, kind, **options)
    assert texts_of(consumer) == others
    consumer.seek(pulsarx.MessageId.earliest)
    assert texts_of(consumer) == others
    check(consumer)
    consumer.close()
    for another in ALL_TYPES:
        consumer = join(clocked_client, another, **options)
        assert texts_of(consumer) == others
        consumer.close()
    transaction.commit()
    assert backlog(clocked_client) == 3


@of_types_in_order
def test_what_is_pending_cumulatively_does_not_come_again_for_any_reason(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    filled(clocked_client, 5)
    consumer = join(clocked_client, kind, unacked_messages_timeout_ms=20_000)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge_cumulative(messages[2], transaction)
    manual_clock.advance(30)
    assert texts_of(consumer) == ["3", "4"]
    for message in messages:
        consumer.negative_acknowledge(message)
    manual_clock.advance(70)
    assert texts_of(consumer) == ["3", "4"]
    consumer.redeliver_unacknowledged_messages()
    assert texts_of(consumer) == ["3", "4"]
    consumer.seek(pulsarx.MessageId.earliest)
    assert texts_of(consumer) == ["3", "4"]
    consumer.close()
    for another in ALL_TYPES:
        consumer = join(clocked_client, another)
        assert texts_of(consumer) == ["3", "4"]
        check(consumer)
        consumer.close()
    transaction.commit()
    assert backlog(clocked_client) == 2


def test_a_pending_message_stays_with_nobody_when_the_active_consumer_changes(
    client: pulsarx.Client,
) -> None:
    filled(client, 5)
    first, second = join(client, FAILOVER, "a"), join(client, FAILOVER, "b")
    messages = messages_of(first)
    transaction = StandIn()
    first.acknowledge(messages[3], transaction)
    first.close()
    assert texts_of(second) == ["0", "1", "2", "4"]


def test_an_acknowledged_message_goes_to_no_other_consumer(client: pulsarx.Client) -> None:
    filled(client, 6)
    first = join(client, SHARED, "a")
    messages = messages_of(first)
    second = join(client, SHARED, "b")
    transaction = StandIn()
    first.acknowledge_many(messages[2:4], transaction)
    first.close()
    assert texts_of(second) == ["0", "1", "4", "5"]
    check(second)


@of_all_types
def test_a_message_that_waits_in_the_queue_is_not_handed_out(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    ids = filled(client, 4)
    consumer = join(client, kind)
    assert texts_of(consumer, 1) == ["0"]
    consumer.acknowledge(ids[2], StandIn())
    assert texts_of(consumer) == ["1", "3"]
    check(consumer)


@of_all_types
def test_a_message_that_was_not_read_is_not_handed_out(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(client, kind)
    ids = filled(client, 4)
    consumer.acknowledge(ids[2], StandIn())
    assert texts_of(consumer) == ["0", "1", "3"]
    check(consumer)


@of_all_types
def test_parts_of_a_batch_are_pending(client: pulsarx.Client, kind: ConsumerType) -> None:
    """Case 29: another index of the same batch is nobody's yet."""
    publish_batch(client, "k:0", "k:1", "j:2", "k:3")
    consumer = join(client, kind)
    messages = messages_of(consumer)
    one, other = StandIn(), StandIn()
    consumer.acknowledge(messages[0], one)
    consumer.acknowledge(messages[1], other)
    consumer.close()
    consumer = join(client, kind)
    assert texts_of(consumer) == ["j:2", "k:3"]
    one.commit()
    other.abort()
    assert texts_of(consumer) == ["k:1"]
    check(consumer)


@of_all_types
def test_what_is_pending_is_in_the_backlog_and_not_in_the_mark_delete_position(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    ids = filled(client, 3)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    before = statistics(client)["mark_delete_position"]
    transaction = StandIn()
    consumer.acknowledge_many(messages, transaction)
    assert backlog(client) == 3
    assert statistics(client)["mark_delete_position"] == before
    transaction.commit()
    assert backlog(client) == 0
    assert statistics(client)["mark_delete_position"] == (
        ids[-1].ledger_id(),
        ids[-1].entry_id(),
    )


@of_all_types
def test_what_is_pending_is_not_counted_as_unacknowledged_of_its_consumer(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer, transaction = acknowledged(client, kind)
    assert statistics(client)["unacked_messages"] == 3
    transaction.abort()
    assert len(messages_of(consumer)) == 2
    assert statistics(client)["unacked_messages"] == 5


@of_types_in_order
def test_what_is_pending_cumulatively_is_not_counted_as_unacknowledged(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    filled(client, 5)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge_cumulative(messages[2], transaction)
    assert statistics(client)["unacked_messages"] == 2
    transaction.abort()
    assert statistics(client)["unacked_messages"] == 2  # the others are not handed out yet
    assert len(messages_of(consumer)) == 3
    assert statistics(client)["unacked_messages"] == 5


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
def test_a_pending_message_makes_room_for_others_at_once(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    """Case 37."""
    filled(client, 4)
    client.admin.topics.set_max_unacked_messages_per_consumer("t", 2)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    assert [each.data() for each in messages] == [b"0", b"1"]
    consumer.acknowledge_many(messages, StandIn())
    assert texts_of(consumer) == ["2", "3"]
    check(consumer)


def test_a_pending_message_lets_the_next_of_its_key_go_to_another_consumer(
    client: pulsarx.Client,
) -> None:
    publish_batch(client, *(f"k:{number}" for number in range(3)))
    first = join(client, KEY_SHARED, "a")
    messages = messages_of(first)
    transaction = StandIn()
    first.acknowledge_many(messages, transaction)
    check(first)
    transaction.commit()
    check(first)
    assert backlog(client) == 0


def test_transactions_survive_that_the_cursor_is_written_anew(folder: Path) -> None:
    """What is pending is unacknowledged in the file of the cursor."""
    client = pulsarx.Client(folder, durability="os")
    filled(client, 5)
    consumer = join(client, SHARED)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge_many(messages[1:3], transaction)
    owner = transaction.enlisted[0]
    owner.core.locked(owner.tracker.fold)
    client.close()
    with pulsarx.Client(folder, durability="os") as client:
        assert texts_of(join(client, SHARED)) == ["0", "1", "2", "3", "4"]


# Committing ---------------------------------------------------------------------------------------


@of_all_types
def test_a_commit_acknowledges_for_good(
    open_client: OpenClient, folder: Path, kind: ConsumerType
) -> None:
    client = open_client()
    consumer, transaction = acknowledged(client, kind)
    transaction.commit()
    assert backlog(client) == 3
    check(consumer)
    consumer.redeliver_unacknowledged_messages()
    assert texts_of(consumer) == ["0", "3", "4"]
    client.close()
    assert texts_of(join(open_client(), kind)) == ["0", "3", "4"]


@of_types_in_order
def test_a_cumulative_acknowledgement_is_committed(
    open_client: OpenClient, kind: ConsumerType
) -> None:
    client = open_client()
    filled(client, 5)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge_cumulative(messages[1], transaction)
    consumer.acknowledge_cumulative(messages[2].message_id(), transaction)
    transaction.commit()
    assert backlog(client) == 2
    client.close()
    assert texts_of(join(open_client(), kind)) == ["3", "4"]


@of_types_in_order
def test_single_and_cumulative_acknowledgements_of_a_transaction_are_committed(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    filled(client, 6)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge(messages[0], transaction)
    consumer.acknowledge(messages[4], transaction)
    consumer.acknowledge_cumulative(messages[2], transaction)
    consumer.acknowledge(messages[1], transaction)
    transaction.commit()
    consumer.redeliver_unacknowledged_messages()
    assert texts_of(consumer) == ["3", "5"]


def test_a_commit_lets_a_ledger_be_trimmed(open_client: OpenClient) -> None:
    client = open_client(broker_options=THREE_A_LEDGER)
    consumer = join(client, SHARED)
    filled(client, 4)
    transaction = StandIn()
    consumer.acknowledge_many(messages_of(consumer, 3), transaction)
    assert entries_of_ledgers(client) == [3, 1]
    transaction.commit()
    assert entries_of_ledgers(client) == [1]


def test_a_committed_message_in_chunks_is_acknowledged_with_all_its_chunks(
    open_client: OpenClient,
) -> None:
    """Case 48."""
    client = open_client(broker_options=BrokerOptions(max_message_size=4096))
    for kind in ALL_TYPES:
        topic = f"chunks-{kind.name}"
        producer = client.create_producer(topic, chunking_enabled=True)
        producer.send(b"a" * 10_000)
        producer.send(b"b")
        consumer = join(client, kind, topic=topic)
        large, small = messages_of(consumer)
        transaction = StandIn()
        consumer.acknowledge(large, transaction)
        transaction.abort()
        (again,) = messages_of(consumer)
        assert again.data() == b"a" * 10_000
        transaction = StandIn()
        consumer.acknowledge(again, transaction)
        consumer.close()
        consumer = join(client, kind, topic=topic)
        assert texts_of(consumer) == ["b"]
        transaction.commit()
        consumer.close()
        consumer = join(client, kind, topic=topic)
        (small,) = messages_of(consumer)
        consumer.acknowledge(small)
        assert backlog(client, topic=topic) == 0


@of_types_in_order
def test_a_committed_cumulative_acknowledgement_has_the_chunks_of_its_message(
    open_client: OpenClient, kind: ConsumerType
) -> None:
    client = open_client(broker_options=BrokerOptions(max_message_size=4096))
    producer = client.create_producer("t", chunking_enabled=True)
    producer.send(b"a" * 10_000)
    producer.send(b"b")
    consumer = join(client, kind)
    large, _ = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge_cumulative(large, transaction)
    transaction.abort()
    (large,) = messages_of(consumer)
    assert large.redelivery_count() == 1
    transaction = StandIn()
    consumer.acknowledge_cumulative(large, transaction)
    transaction.commit()
    assert backlog(client) == 1


# Conflicts ----------------------------------------------------------------------------------------


def collides(call: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(errors.TransactionConflict) as raised:
        call(*arguments, **named)
    return errors.detail_of(raised.value)


@of_all_types
def test_what_is_acknowledged_or_pending_collides(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    """Cases 26 and 27."""
    consumer, transaction = acknowledged(client, kind)
    consumer.redeliver_unacknowledged_messages()
    zero, three, _ = messages_of(consumer)
    consumer.acknowledge(zero)
    other = StandIn()
    text = collides(consumer.acknowledge, zero, other)
    assert "it is acknowledged already" in text and str(other) in text
    consumer.acknowledge(three, other)
    text = collides(consumer.acknowledge, three, transaction)
    assert str(transaction) in text and f"in transaction {other}, which" in text
    assert "message 3 of ledger" in text
    assert "in this transaction already" in collides(consumer.acknowledge, three, other)
    transaction.commit()
    other.abort()
    assert texts_of(consumer) == ["3"]
    check(consumer)


@of_all_types
def test_of_a_list_that_collides_nothing_is_pending(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    """Case 30."""
    filled(client, 5)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    consumer.acknowledge(messages[3])
    transaction = StandIn()
    collides(consumer.acknowledge_many, messages, transaction)
    collides(consumer.acknowledge_many, [messages[1], messages[1]], transaction)
    assert statistics(client)["unacked_messages"] == 4
    owner = transaction.enlisted[0]
    assert owner.transaction_acks(transaction) == {"individual": [], "cumulative": None}
    consumer.redeliver_unacknowledged_messages()
    assert texts_of(consumer) == ["0", "1", "2", "4"]
    check(consumer)


@of_types_in_order
def test_cumulative_acknowledgements_collide(client: pulsarx.Client, kind: ConsumerType) -> None:
    """Case 31, and the stronger rules for single ones."""
    filled(client, 8)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    consumer.acknowledge_cumulative(messages[0])
    one, other = StandIn(), StandIn()
    assert "acknowledged already" in collides(consumer.acknowledge_cumulative, messages[0], one)
    consumer.acknowledge_cumulative(messages[3], one)
    collides(consumer.acknowledge_cumulative, messages[2], one)
    collides(consumer.acknowledge_cumulative, messages[3], one)
    assert str(one) in collides(consumer.acknowledge_cumulative, messages[5], other)
    assert str(one) in collides(consumer.acknowledge, messages[2], other)
    consumer.acknowledge(messages[5], other)
    assert str(other) in collides(consumer.acknowledge_cumulative, messages[6], one)
    consumer.acknowledge_cumulative(messages[4], one)
    one.commit()
    consumer.acknowledge_cumulative(messages[6], other)
    other.commit()
    assert backlog(client) == 1


@of_all_types
def test_a_message_that_is_trimmed_collides(open_client: OpenClient, kind: ConsumerType) -> None:
    client = open_client(broker_options=THREE_A_LEDGER)
    consumer = join(client, kind)
    gone, *_, last = filled(client, 4)
    consumer.acknowledge_many(messages_of(consumer, 3))
    assert entries_of_ledgers(client) == [1]
    collides(consumer.acknowledge, gone, StandIn())
    transaction = StandIn()
    collides(consumer.acknowledge_many, [last, gone], transaction)
    assert transaction.enlisted == []


@of_all_types
def test_a_plain_acknowledgement_takes_the_place_of_a_pending_one(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    """Case 28."""
    filled(client, 5)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge_many(messages[1:3], transaction)
    consumer.acknowledge(messages[1])
    assert backlog(client) == 4
    owner = transaction.enlisted[0]
    transaction.abort()
    assert texts_of(consumer) == ["2"]
    assert (
        owner.core.locked(
            lambda: owner.tracker.acknowledged_count(messages[0].message_id().ledger_id())
        )
        == 1
    )
    check(consumer)


@of_types_in_order
def test_a_plain_cumulative_acknowledgement_takes_the_place_of_pending_ones(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    filled(client, 6)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    one, other = StandIn(), StandIn()
    consumer.acknowledge_cumulative(messages[1], one)
    consumer.acknowledge(messages[2], other)
    consumer.acknowledge(messages[4], other)
    consumer.acknowledge_cumulative(messages[3])
    one.abort()
    other.abort()
    assert texts_of(consumer) == ["4"]
    consumer.acknowledge_cumulative(messages[4], StandIn())  # nothing is in its way


@of_all_types
def test_what_was_acknowledged_plainly_is_void_after_a_seek_as_well(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    filled(client, 3)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge_many(messages[:2], transaction)
    consumer.acknowledge(messages[0])
    consumer.seek(pulsarx.MessageId.earliest)
    assert texts_of(consumer) == ["0", "2"]
    transaction.commit()
    assert backlog(client) == 2


def test_a_cumulative_acknowledgement_under_a_plain_one_is_void_after_a_seek(
    client: pulsarx.Client,
) -> None:
    filled(client, 4)
    consumer = join(client, EXCLUSIVE)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge_cumulative(messages[1], transaction)
    consumer.acknowledge_cumulative(messages[2])
    consumer.seek(pulsarx.MessageId.earliest)
    assert texts_of(consumer) == ["0", "1", "2", "3"]
    transaction.commit()
    assert backlog(client) == 4


@of_all_types
def test_messages_that_expire_are_acknowledged_whatever_is_pending(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    client = clocked_client
    consumer, transaction = acknowledged(client, kind)
    manual_clock.advance(60)
    client.admin.topics.expire_messages("t", "s", 30)
    assert backlog(client) == 0
    transaction.abort()
    assert texts_of(consumer) == []
    consumer.close()
    consumer, transaction = acknowledged(client, kind)
    client.admin.topics.skip_all_messages("t", "s")
    assert backlog(client) == 0
    transaction.commit()
    assert backlog(client) == 0
    check(consumer)


# Refusals -----------------------------------------------------------------------------------------


def test_a_subscription_is_enlisted_once_before_its_first_acknowledgement(
    client: pulsarx.Client,
) -> None:
    filled(client, 4)
    consumer = join(client, SHARED)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge(messages[0], transaction)
    consumer.acknowledge_many(messages[1:], transaction)
    assert [each.name for each in transaction.enlisted] == ["s"]
    ended = StandIn()
    ended.end()
    with pytest.raises(errors.InvalidTxnStatusError):
        consumer.acknowledge(messages[0], ended)
    transaction.commit()
    with pytest.raises(errors.InvalidTxnStatusError):
        consumer.acknowledge(messages[0], transaction)
    assert [each.name for each in transaction.enlisted] == ["s"]


def test_nothing_is_acknowledged_in_a_transaction_whose_end_has_begun(
    client: pulsarx.Client,
) -> None:
    filled(client, 3)
    consumer = join(client, SHARED)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge(messages[0], transaction)
    (owner,) = transaction.enlisted
    ledger_id = messages[0].message_id().ledger_id()
    found = {"individual": [[ledger_id, 0, 1]], "cumulative": None}
    assert owner.transaction_acks(transaction) == found
    with pytest.raises(errors.InvalidTxnStatusError):
        consumer.acknowledge(messages[1], transaction)
    owner.commit_transaction(transaction)
    owner.commit_transaction(transaction)  # it does nothing any more
    assert backlog(client) == 2


@pytest.mark.parametrize("kind", [SHARED, KEY_SHARED])
def test_messages_that_are_shared_are_not_acknowledged_cumulatively(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    """Case 36."""
    filled(client, 2)
    consumer = join(client, kind)
    (message, _) = messages_of(consumer)
    transaction = StandIn()
    with pytest.raises(errors.InvalidConfiguration):
        consumer.acknowledge_cumulative(message, transaction)
    assert transaction.enlisted == []


def test_a_topic_that_is_not_persistent_has_no_acknowledgements_in_transactions(
    client: pulsarx.Client,
) -> None:
    consumer = client.subscribe("non-persistent://public/default/t", "s")
    client.create_producer("non-persistent://public/default/t").send(b"0")
    message = consumer.receive(0)
    for call in (consumer.acknowledge, consumer.acknowledge_cumulative):
        with pytest.raises(errors.NotAllowedError):
            call(message, StandIn())
    with pytest.raises(errors.NotAllowedError):
        consumer.acknowledge_many([message], StandIn())


@of_all_types
def test_after_unsubscribing_an_end_does_nothing(
    client: pulsarx.Client, kind: ConsumerType
) -> None:
    """Case 52."""
    for end in ("commit", "abort"):
        consumer, transaction = acknowledged(client, kind, 3)
        consumer.unsubscribe()
        getattr(transaction, end)()
        consumer = join(client, kind)
        assert len(messages_of(consumer)) >= 3
        consumer.unsubscribe()


# Other consumers ----------------------------------------------------------------------------------


def test_partitions_acknowledge_in_the_transaction(client: pulsarx.Client) -> None:
    """Case 35, the stronger form."""
    client.admin.topics.create_partitioned_topic("p", 2)
    filled(client, 6, topic="p")
    consumer = join(client, EXCLUSIVE, topic="p")
    messages = messages_of(consumer)
    last: dict[str, Any] = {}
    for message in messages:
        last[message.topic_name()] = message
    one, other = last.values()
    transaction = StandIn()
    consumer.acknowledge_cumulative(one, transaction)
    assert [each.topic.name for each in transaction.enlisted] == [one.topic_name()]
    transaction.abort()
    again = messages_of(consumer)
    assert {each.topic_name() for each in again} == {one.topic_name()}
    transaction = StandIn()
    consumer.acknowledge_many(again, transaction)
    consumer.acknowledge(other, transaction)
    assert len(transaction.enlisted) == 2
    transaction.commit()
    consumer.redeliver_unacknowledged_messages()
    assert {each.topic_name() for each in messages_of(consumer)} == {other.topic_name()}


def test_interceptors_are_told(client: pulsarx.Client) -> None:
    told: list[Any] = []

    class Listens(pulsarx.ConsumerInterceptor):
        def on_acknowledge(self, consumer: Any, message_id: Any, exception: Any) -> None:
            told.append((message_id, type(exception)))

    ids = filled(client, 2)
    consumer = join(client, SHARED, interceptors=[Listens()])
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge_many(messages, transaction)
    collides(consumer.acknowledge, messages[0], transaction)
    none = type(None)
    assert told == [(ids[0], none), (ids[1], none), (ids[0], errors.TransactionConflict)]


def test_columns_are_acknowledged_in_a_transaction(client: pulsarx.Client) -> None:
    pytest.importorskip("pyarrow")
    filled(client, 4)
    consumer = join(client, SHARED)
    columns = consumer.receive_arrow(3, 0)
    transaction = StandIn()
    consumer.acknowledge_many(columns, transaction)
    collides(consumer.acknowledge_many, columns, transaction)
    consumer.redeliver_unacknowledged_messages()
    assert texts_of(consumer) == ["3"]
    transaction.abort()
    assert texts_of(consumer) == ["0", "1", "2"]


# Records ------------------------------------------------------------------------------------------


@of_types_in_order
def test_what_a_record_says_is_acknowledged_once(
    open_client: OpenClient, folder: Path, kind: ConsumerType
) -> None:
    client = open_client()
    filled(client, 8)
    consumer = join(client, kind)
    messages = messages_of(consumer)
    transaction = StandIn()
    consumer.acknowledge_cumulative(messages[1], transaction)
    consumer.acknowledge_many([messages[4], messages[5], messages[7]], transaction)
    ledger_id = messages[0].message_id().ledger_id()
    (owner,) = transaction.enlisted
    data = owner.transaction_acks(transaction)
    assert data == {
        "individual": [[ledger_id, 4, 2], [ledger_id, 7, 1]],
        "cumulative": [ledger_id, 2],
    }
    client.close()
    client = open_client()
    consumer = join(client, kind)
    joined = StandIn()
    consumer.acknowledge(consumer.receive(0), joined)
    (owner,) = joined.enlisted
    joined.abort()
    for _ in range(2):
        owner.apply_acks(data)
        assert texts_of(consumer) == ["2", "3", "6"] or not texts_of(consumer)
        assert backlog(client) == 3
    owner.apply_acks({"individual": [[ledger_id + 100, 0, 5]], "cumulative": [ledger_id + 90, 3]})
    assert backlog(client) == 3
