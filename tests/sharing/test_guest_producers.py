"""Facts about producers of processes that do not own the folder: what they are told is what a
producer of the owner's process is told."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import BatchingType, MessageId, ProducerAccessMode, Result, errors

pytestmark = pytest.mark.standard

NOWHERE = (-1, -1, -1, -1)
ONE_DAY_MS = 86_400_000


def parts(message_id: MessageId) -> tuple[int, int, int, int]:
    return (
        message_id.ledger_id(),
        message_id.entry_id(),
        message_id.partition(),
        message_id.batch_index(),
    )


def stored(client: pulsarx.Client, topic: str = "t") -> list[tuple[bytes, tuple[int, ...]]]:
    """Contents and ids of what a topic holds."""
    with client.create_reader(topic, MessageId.earliest) as reader:
        found = []
        while reader.has_message_available():
            message = reader.read_next(60_000)
            found.append((message.data(), parts(message.message_id())))
        return found


@pytest.fixture
def deduplicating(client: pulsarx.Client) -> pulsarx.Client:
    client.admin.topics.create_non_partitioned_topic("t")
    client.admin.topics.set_deduplication("t", True)
    return client


# Duplicates ---------------------------------------------------------------------------------------


def test_a_duplicate_leaves_the_last_sequence_id_as_it_is(deduplicating: pulsarx.Client) -> None:
    """It was the duplicate's, in a process beside the owner."""
    producer = deduplicating.create_producer("t")
    producer.send(b"10", sequence_id=10)
    assert parts(producer.send(b"7", sequence_id=7)) == NOWHERE
    assert producer.last_sequence_id() == 10
    producer.send(b"11")
    assert producer.last_sequence_id() == 11


def test_without_deduplication_it_is_that_of_the_last_message(client: pulsarx.Client) -> None:
    producer = client.create_producer("t")
    for sequence_id in (10, 7):
        producer.send(b"x", sequence_id=sequence_id)
        assert producer.last_sequence_id() == sequence_id
    batching = client.create_producer("t", batching_enabled=True)
    for _ in range(3):
        batching.send_async(b"x", None)
    batching.flush()
    assert batching.last_sequence_id() == 2


@pytest.mark.parametrize("kind", [BatchingType.Default, BatchingType.KeyBased])
@pytest.mark.parametrize("known", [[1], [0, 1, 2, 3], [0, 2, 4], []])
def test_of_a_batch_each_message_is_told_what_became_of_it(
    deduplicating: pulsarx.Client, kind: BatchingType, known: list[int]
) -> None:
    """Beside the owner, duplicates were told the id of an entry, and the others that of a message
    that stood elsewhere in the batch."""
    with deduplicating.create_producer("t", "p") as producer:
        for number in known:
            producer.send(b"%d" % number, sequence_id=number)
    producer = deduplicating.create_producer(
        "t", "p", batching_enabled=True, batching_type=kind,
        batching_max_publish_delay_ms=ONE_DAY_MS,
    )  # fmt: skip
    told: dict[int, tuple[Result, tuple[int, ...]]] = {}

    def tell(number: int) -> Any:
        return lambda result, found: told.update({number: (result, parts(found))})

    for number in range(5):
        producer.send_async(b"%d" % number, tell(number), partition_key="k", sequence_id=number)
    producer.flush()
    highest = max(known, default=-1)
    places = dict(stored(deduplicating))
    assert list(told) == list(range(5))
    assert told == {
        number: (Result.Ok, NOWHERE if number <= highest else places[b"%d" % number])
        for number in range(5)
    }
    assert producer.last_sequence_id() == 4
    assert len(places) == len({*known, *range(highest + 1, 5)})


def test_a_send_that_closes_a_batch_is_told_its_own_place(deduplicating: pulsarx.Client) -> None:
    with deduplicating.create_producer("t", "p") as producer:
        producer.send(b"1", sequence_id=1)
    producer = deduplicating.create_producer(
        "t", "p", batching_enabled=True, batching_max_publish_delay_ms=ONE_DAY_MS
    )
    producer.send_async(b"again", None, sequence_id=1)
    producer.send_async(b"2", None, sequence_id=2)
    found = producer.send(b"3", sequence_id=3)
    assert stored(deduplicating)[-1] == (b"3", parts(found))
    assert parts(producer.send(b"again", sequence_id=3)) == NOWHERE


def test_of_many_each_is_told_what_became_of_it(deduplicating: pulsarx.Client) -> None:
    with deduplicating.create_producer("t", "p") as producer:
        producer.send(b"before", sequence_id=3)
    producer = deduplicating.create_producer("t", "p", initial_sequence_id=1)  # goes on with 2
    found = producer.send_many([b"%d" % number for number in range(2, 8)])
    places = dict(stored(deduplicating))
    assert [parts(each) for each in found] == [
        NOWHERE, NOWHERE, *(places[b"%d" % number] for number in range(4, 8))
    ]  # fmt: skip
    again = deduplicating.create_producer("u", "p", initial_sequence_id=1)
    again.close()
    producer.close()
    again = deduplicating.create_producer("t", "p", initial_sequence_id=1)
    found = again.send_many([b"%d" % number for number in range(2, 8)], keys=["k"] * 6)
    assert [parts(each) for each in found] == [NOWHERE] * 6


def test_rows_tell_the_place_of_the_last_that_is_new(deduplicating: pulsarx.Client) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    with deduplicating.create_producer("t", "p") as producer:
        producer.send(b"before", sequence_id=3)
    rows = pyarrow.table({"value": [b"%d" % number for number in range(2, 8)]})
    with deduplicating.create_producer("t", "p", initial_sequence_id=1) as producer:
        last = producer.send_arrow(rows)
        assert last is not None
        assert stored(deduplicating)[-1] == (b"7", parts(last))
    with deduplicating.create_producer("t", "p", initial_sequence_id=1) as producer:
        assert producer.send_arrow(rows) is None


# Quotas -------------------------------------------------------------------------------------------


def fill(client: pulsarx.Client, policy: str, **options: Any) -> pulsarx.Producer:
    """A producer of a topic whose backlog is larger than its quota."""
    topics = client.admin.topics
    topics.create_non_partitioned_topic("t")
    topics.create_subscription("t", "s", MessageId.earliest)
    topics.set_backlog_quota("t", limit_size=1000, policy=policy)
    producer = client.create_producer("t", **options)
    pause = threading.Event()
    for _ in range(100):
        producer.send(bytes(2000))
        try:
            client.create_producer("t").close()
        except errors.PulsarException:
            break
        pause.wait(0.05)
    # The check that stops those who are there comes once a second.
    pause.wait(1.5)
    return producer


def test_a_send_that_a_quota_holds_says_so(client: pulsarx.Client) -> None:
    """Beside the owner it said that the owner had gone."""
    producer = fill(client, "producer_request_hold", send_timeout_millis=700)
    count = client.admin.topics.stats("t")["messages"]
    for _ in range(2):
        with pytest.raises(errors.Timeout) as caught:
            producer.send(b"held")
        assert "persistent://public/default/t: the backlog has" in caught.value.detail
        assert "its quota is 1000" in caught.value.detail
        assert "no room for 700 ms, which is send_timeout_millis" in caught.value.detail
        assert "nothing was stored" in caught.value.detail
    assert producer.is_connected()
    client.admin.topics.skip_all_messages("t", "s")
    pause = threading.Event()
    for _ in range(100):
        try:
            producer.send(b"there is room")
            break
        except errors.Timeout:
            pause.wait(0.1)
    assert client.admin.topics.stats("t")["messages"] == count + 1


def test_a_producer_that_a_quota_shut_is_not_connected(client: pulsarx.Client) -> None:
    """Beside the owner it said that it was, and each send was refused."""
    producer = fill(client, "producer_exception")
    for _ in range(2):
        with pytest.raises(errors.ProducerBlockedQuotaExceededException):
            producer.send(b"refused")
        assert not producer.is_connected()
    client.admin.topics.skip_all_messages("t", "s")
    with pytest.raises(errors.ProducerBlockedQuotaExceededException):
        producer.send(b"refused")
    client.create_producer("t").send(b"another one")


# Waiting for a turn -------------------------------------------------------------------------------


def test_closing_a_client_ends_its_waiting(client: pulsarx.Client, folder: Path) -> None:
    """Beside the owner it waited for ever, where another client of the process stayed open."""
    there = client.create_producer("t")
    mine = pulsarx.Client(folder)
    told: list[str] = []

    def wait() -> None:
        try:
            mine.create_producer("t", access_mode=ProducerAccessMode.WaitForExclusive)
        except errors.AlreadyClosed:
            told.append("closed")

    waits = threading.Thread(target=wait, daemon=True)
    waits.start()
    waits.join(0.5)
    assert waits.is_alive()
    mine.close()
    waits.join(60)
    assert told == ["closed"]
    there.close()
    client.create_producer("t", access_mode=ProducerAccessMode.Exclusive)
