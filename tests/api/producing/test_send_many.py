"""Facts about send_many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from topic_reading import numbers, read_all, whole_topic

import pulsarx
from pulsarx import BatchingType, errors
from pulsarx.testing import fault_plan


@pytest.mark.parametrize("batching", [False, True])
def test_send_many_returns_an_id_for_each_message_in_order(
    memory_client: pulsarx.Client, batching: bool
) -> None:
    producer = memory_client.create_producer("t", batching_enabled=batching)
    ids = producer.send_many(numbers(2500))
    messages = read_all(memory_client)
    assert [message.data() for message in messages] == numbers(2500)
    assert [message.message_id() for message in messages] == ids
    assert producer.last_sequence_id() == 2499


def test_send_many_takes_keys_properties_and_event_times(memory_client: pulsarx.Client) -> None:
    memory_client.create_producer("t").send_many(
        numbers(3),
        keys=["a", None, "c"],
        properties=[None, {"p": "q"}, {}],
        event_timestamps=[None, 5, 6],
    )
    found = [
        (message.partition_key(), message.properties(), message.event_timestamp())
        for message in read_all(memory_client)
    ]
    assert found == [("a", {}, 0), ("", {"p": "q"}, 5), ("c", {}, 6)]


def test_send_many_takes_any_iterable_and_nothing_at_all(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    assert producer.send_many([]) == []
    assert len(producer.send_many(payload for payload in numbers(3))) == 3
    assert len(producer.send_many((b"3", None))) == 2
    assert whole_topic(memory_client) == [*numbers(4), b""]


def test_send_many_keeps_the_order_with_an_open_batch(clocked_client: pulsarx.Client) -> None:
    producer = clocked_client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=10**6
    )
    producer.send_async(b"0", None)
    producer.send_many(numbers(2, 1))
    producer.send(b"3")
    assert whole_topic(clocked_client) == numbers(4)


@pytest.mark.parametrize(
    ("bad", "expected"),
    [("text", TypeError), (b"x" * 101, errors.MessageTooBig)],
    ids=["wrong type", "too big"],
)
def test_send_many_publishes_what_came_before_an_error_and_says_how_many(
    bad: Any, expected: type[Exception]
) -> None:
    options = pulsarx.BrokerOptions(max_message_size=100)
    with pulsarx.Client("memory:partial", broker_options=options) as client:
        producer = client.create_producer("t", batching_max_messages=4)
        with pytest.raises(expected) as caught:
            producer.send_many([*numbers(10), bad, b"after"])
        assert "10 of 12 messages were published" in caught.value.__notes__
        producer.send(b"10")
        assert whole_topic(client) == numbers(11)
        assert [message.sequence_id() for message in read_all(client)] == list(range(11))


@pytest.mark.border(left_out="codes of errors")
@pytest.mark.parametrize("batching", [BatchingType.Default, BatchingType.KeyBased])
def test_send_many_says_of_a_failed_flush_what_it_left_unconfirmed(
    tmp_path: Path, batching: BatchingType
) -> None:
    """It said that all were published, of which no reader ever saw one."""
    client = pulsarx.Client(tmp_path / "data")
    producer = client.create_producer("t", batching_enabled=True, batching_type=batching)
    producer.send(b"0")
    with fault_plan() as plan:
        plan.fail("flush")
        with pytest.raises(errors.LedgerPoisonedError) as caught:
            producer.send_many(numbers(3))
    assert caught.value.__notes__ == ["0 of 3 messages were published"]
    assert whole_topic(client) == [b"0"]
    with pytest.raises(errors.LedgerPoisonedError):
        client.close()


@pytest.mark.parametrize("column", ["keys", "properties", "event_timestamps"])
def test_send_many_refuses_columns_of_another_length(
    memory_client: pulsarx.Client, column: str
) -> None:
    with pytest.raises(ValueError, match=column):
        memory_client.create_producer("t").send_many(numbers(3), **{column: [None]})
    assert whole_topic(memory_client) == []


def test_send_many_counts_large_batches_apart(memory_client: pulsarx.Client) -> None:
    sent = [bytes([number]) * 60_000 for number in range(20)]
    assert len(memory_client.create_producer("t").send_many(sent)) == 20
    assert whole_topic(memory_client) == sent


def test_send_many_sends_the_values_behind_a_missing_one(memory_client: pulsarx.Client) -> None:
    """All that came behind None in the same batch were stored as messages without a value."""
    memory_client.create_producer("t").send_many([b"one", None, b"three", None, b"five"])
    found = [None if m.has_null_value() else m.value() for m in read_all(memory_client)]
    assert found == [b"one", None, b"three", None, b"five"]
