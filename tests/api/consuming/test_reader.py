"""Facts about readers."""

from __future__ import annotations

import threading

import pytest
from sleeping_thread import until_asleep
from topic_reading import OpenClient, numbers, read

import pulsarx
from pulsarx import MessageId, errors
from pulsarx.testing import inspect

FIVE_A_LEDGER = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=5)


def publish(
    client: pulsarx.Client, count: int, *, batched: bool, start: int = 0
) -> list[MessageId]:
    producer = client.create_producer("t", batching_max_messages=7)
    if batched:
        ids: list[MessageId] = producer.send_many(numbers(count, start))
    else:
        ids = [producer.send(payload) for payload in numbers(count, start)]
    producer.close()
    return ids


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(("inclusive", "offset"), [(False, 1), (True, 0)])
def test_a_reader_begins_behind_its_start_id_or_at_it(
    memory_client: pulsarx.Client, batched: bool, inclusive: bool, offset: int
) -> None:
    ids = publish(memory_client, 30, batched=batched)
    for start in (0, 6, 7, 10, 29):
        reader = memory_client.create_reader("t", ids[start], start_message_id_inclusive=inclusive)
        assert read(reader) == numbers(30)[start + offset :]


def test_a_reader_begins_at_the_ends(memory_client: pulsarx.Client) -> None:
    publish(memory_client, 10, batched=True)
    first = memory_client.create_reader("t", MessageId.earliest)
    last = memory_client.create_reader("t", MessageId.latest)
    assert read(first) == numbers(10)
    assert not last.has_message_available()
    publish(memory_client, 3, batched=False, start=10)
    assert read(first) == read(last) == numbers(3, 10)


def test_a_reader_survives_restarts_by_an_id_kept_as_bytes(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    kept = publish(client, 40, batched=True)[17].serialize()
    client.close()
    client = open_client(broker_options=FIVE_A_LEDGER)
    assert read(client.create_reader("t", MessageId.deserialize(kept))) == numbers(22, 18)


def test_a_reader_goes_across_ledgers(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    reader = client.create_reader("t", MessageId.earliest)
    ids = publish(client, 33, batched=False)
    assert len({each.ledger_id() for each in ids}) == 7
    assert read(reader) == numbers(33)
    for start in range(33):
        assert (
            client.create_reader("t", ids[start], start_message_id_inclusive=True)
            .read_next(0)
            .data()
            == b"%d" % start
        )


def test_a_reader_follows_while_ledgers_roll_over(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    reader = client.create_reader("t", MessageId.earliest)
    producer = client.create_producer("t")
    for payload in numbers(50):
        producer.send(payload)
        assert reader.read_next(60_000).data() == payload
        assert not reader.has_message_available()


def test_available_means_that_a_read_returns_at_once(memory_client: pulsarx.Client) -> None:
    reader = memory_client.create_reader("t", MessageId.earliest)
    assert not reader.has_message_available()
    with pytest.raises(errors.Timeout):
        reader.read_next(0)
    publish(memory_client, 2, batched=True)
    for payload in numbers(2):
        assert reader.has_message_available()
        assert reader.has_message_available()
        assert reader.read_next(0).data() == payload
    assert not reader.has_message_available()


def test_a_reader_inside_a_batch_has_what_is_left_of_it(memory_client: pulsarx.Client) -> None:
    ids = publish(memory_client, 7, batched=True)
    assert memory_client.create_reader("t", ids[5]).has_message_available()
    assert not memory_client.create_reader("t", ids[6]).has_message_available()
    reader = memory_client.create_reader("t", ids[5])
    assert read(reader) == [b"6"]


@pytest.mark.parametrize("inclusive", [False, True])
def test_a_seek_of_a_reader_goes_as_that_of_a_consumer(
    memory_client: pulsarx.Client, inclusive: bool
) -> None:
    ids = publish(memory_client, 100, batched=True)
    reader = memory_client.create_reader(
        "t", MessageId.latest, start_message_id_inclusive=inclusive
    )
    reader.seek(ids[50])
    assert read(reader) == numbers(100)[50 if inclusive else 51 :]
    reader.seek(MessageId.earliest)
    assert read(reader) == numbers(100)
    reader.seek(MessageId.latest)
    assert read(reader) == (numbers(1, 99) if inclusive else [])
    with pytest.raises(ValueError, match="invalid seek_arg type"):
        reader.seek(1.5)  # type: ignore[arg-type]


def test_a_seek_of_a_reader_to_a_time(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    times = []
    for number in range(5):
        times.append(manual_clock.now_ms())
        publish(clocked_client, 1, batched=False, start=number)
        manual_clock.advance(1)
    reader = clocked_client.create_reader("t", MessageId.latest)
    reader.seek(times[2])
    assert read(reader) == numbers(3, 2)


def test_a_reader_needs_an_id(memory_client: pulsarx.Client) -> None:
    with pytest.raises(ValueError):
        memory_client.create_reader("t", None)  # type: ignore[arg-type]


@pytest.mark.border(left_out="readers read ahead")
def test_readers_do_not_hold_ledgers_and_pass_over_what_is_trimmed(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    consumer = client.subscribe("t", "s")
    publish(client, 23, batched=False)
    inspect(client).settle()
    reader = client.create_reader("t", MessageId.earliest)
    late = client.create_reader("t", MessageId.earliest)
    assert reader.read_next(0).data() == b"0"
    messages = consumer.receive_many(100)
    consumer.acknowledge_cumulative(messages[21])
    consumer.close()
    inspect(client).settle()
    assert read(late) in (numbers(3, 20), numbers(5) + numbers(3, 20))
    # It has its ledger mapped and reads it to the end, then goes on where the topic begins now.
    assert read(reader) == numbers(4, 1) + numbers(3, 20)


def test_a_start_id_in_a_trimmed_ledger_begins_at_what_is_left(open_client: OpenClient) -> None:
    client = open_client(broker_options=FIVE_A_LEDGER)
    consumer = client.subscribe("t", "s")
    ids = publish(client, 23, batched=False)
    consumer.acknowledge_cumulative(consumer.receive_many(100)[21])
    consumer.close()
    assert read(client.create_reader("t", ids[3]))[-3:] == numbers(3, 20)


@pytest.mark.border(left_out="readers read ahead")
def test_several_readers_are_independent(memory_client: pulsarx.Client) -> None:
    readers = [
        memory_client.create_reader("t", MessageId.earliest, reader_name="same") for _ in range(3)
    ]
    publish(memory_client, 5, batched=False)
    for reader in readers:
        assert read(reader) == numbers(5)
    assert memory_client.admin.topics.stats("t")["subscriptions"] == {}


def test_a_waiting_read_is_ended_by_a_close(memory_client: pulsarx.Client) -> None:
    reader = memory_client.create_reader("t", MessageId.earliest)
    found: list[Exception] = []

    def wait() -> None:
        try:
            reader.read_next()
        except errors.AlreadyClosed as error:
            found.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    until_asleep(thread)
    reader.close()
    thread.join(60)
    assert len(found) == 1


@pytest.mark.border(left_out="last id in a batch", of="*create_reader*")
@pytest.mark.parametrize("asked_by", ["create_reader", "seek"])
@pytest.mark.parametrize("batched", [False, True])
def test_latest_inclusive_is_the_last_message(
    memory_client: pulsarx.Client, batched: bool, asked_by: str
) -> None:
    """It used to be the end, as without inclusive."""
    latest = pulsarx.MessageId.latest
    start = latest if asked_by == "create_reader" else pulsarx.MessageId.earliest
    with memory_client.create_producer("t") as producer:
        empty = memory_client.create_reader("t", latest, start_message_id_inclusive=True)
        assert not empty.has_message_available()
        for number in (b"1", b"2"):
            producer.send(number)
        producer.send_many([b"3", b"4"]) if batched else producer.send(b"4")
        reader = memory_client.create_reader("t", start, start_message_id_inclusive=True)
        if asked_by == "seek":
            reader.seek(latest)
        assert reader.has_message_available()
        assert reader.read_next(60_000).data() == b"4"
        producer.send(b"5")
        assert reader.read_next(60_000).data() == b"5"
        exclusive = memory_client.create_reader("t", latest)
        assert not exclusive.has_message_available()
        assert empty.read_next(60_000).data() == b"1"
