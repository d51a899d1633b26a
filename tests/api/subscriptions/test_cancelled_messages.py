"""Facts about messages that are cancelled before they are due, and about the list of those that are
not due yet."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.clients import OpenClient
from support.topics import backlog

import pulsarx
from pulsarx import ConsumerType, InitialPosition, ManualClock, MessageId, errors
from pulsarx._pycore.ranges.entry_codec import crc32c, encode_batch
from pulsarx.testing import inspect, other_process

HOUR = timedelta(hours=1)
SHARED = pytest.mark.parametrize("kind", [ConsumerType.Shared, ConsumerType.KeyShared])


def subscribe(client: pulsarx.Client, name: str = "s", kind: Any = ConsumerType.Shared) -> Any:
    return client.subscribe("t", name, kind, initial_position=InitialPosition.Earliest)


def received(consumer: Any) -> list[bytes]:
    """What there is for it now."""
    found = []
    while True:
        try:
            found.append(consumer.receive(0).data())
        except pulsarx.Timeout:
            return found


def listed(client: pulsarx.Client, name: str = "s", **more: Any) -> list[MessageId]:
    found = client.admin.topics.get_delayed_messages("t", name, **more)
    return [each.message_id() for each in found]


@pytest.fixture
def clocked(open_client: OpenClient, manual_clock: ManualClock) -> pulsarx.Client:
    return open_client(clock=manual_clock)


# Cancelling ---------------------------------------------------------------------------------------


@SHARED
@pytest.mark.parametrize("is_read", [False, True], ids=["unread", "waiting"])
def test_a_cancelled_message_is_not_delivered(
    clocked: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType, is_read: bool
) -> None:
    consumer = subscribe(clocked, kind=kind)
    with clocked.create_producer("t") as producer:
        ids = [producer.send(b"%d" % each, deliver_after=HOUR) for each in range(3)]
        if is_read:
            assert received(consumer) == []
        assert producer.cancel(ids[1]) == ["s"]
    assert listed(clocked) == [ids[0], ids[2]]
    assert backlog(clocked) == 2
    manual_clock.advance(3600)
    assert received(consumer) == [b"0", b"2"]


def test_it_is_cancelled_for_subscriptions_that_are_not_durable_too(
    clocked: pulsarx.Client, manual_clock: ManualClock
) -> None:
    fleeting = clocked.subscribe(
        "t", "n", ConsumerType.Shared, subscription_mode=pulsarx.SubscriptionMode.NonDurable
    )
    with clocked.create_producer("t") as producer:
        assert producer.cancel(producer.send(b"0", deliver_after=HOUR)) == ["n"]
        consumer = subscribe(clocked)
        ids = [producer.send(b"%d" % each, deliver_after=HOUR) for each in (1, 2)]
        assert producer.cancel(ids[0]) == ["n", "s"]
    manual_clock.advance(3600)
    assert received(fleeting) == [b"2"]
    assert received(consumer) == [b"0", b"2"]  # it came later, and began in front of it


def test_a_restart_does_not_bring_it_back(
    open_client: OpenClient, manual_clock: ManualClock, clocked: pulsarx.Client
) -> None:
    subscribe(clocked)
    with clocked.create_producer("t") as producer:
        ids = [producer.send(b"%d" % each, deliver_after=HOUR) for each in range(4)]
    clocked.admin.topics.cancel_message("t", ids[0], "s")
    clocked.shutdown()
    client = open_client(clock=manual_clock)
    # Nobody has subscribed since: of which type it is is not known.
    assert listed(client) == ids[1:]
    assert client.admin.topics.cancel_message("t", ids[2]) == ["s"]
    consumer = subscribe(client)
    manual_clock.advance(3600)
    assert received(consumer) == [b"1", b"3"]


def test_each_subscription_is_told(clocked: pulsarx.Client, manual_clock: ManualClock) -> None:
    """One that has got it (an Exclusive one is given it at once) keeps it."""
    shared, exclusive = subscribe(clocked, "a"), subscribe(clocked, "b", ConsumerType.Exclusive)
    clocked.admin.topics.create_subscription("t", "c", MessageId.earliest)
    with clocked.create_producer("t") as producer:
        sent = producer.send(b"one", deliver_after=HOUR)
        assert exclusive.receive(60_000).data() == b"one"
        with pytest.raises(errors.NotAllowedError, match="for b it is delivered already"):
            clocked.admin.topics.cancel_message("t", sent, "b")
        assert producer.cancel(sent) == ["a", "c"]
        with pytest.raises(errors.NotAllowedError, match="for a it is acknowledged already"):
            clocked.admin.topics.cancel_message("t", sent, "a")
    manual_clock.advance(3600)
    assert received(shared) == []
    assert (backlog(clocked, "a"), backlog(clocked, "b"), backlog(clocked, "c")) == (0, 1, 0)


@SHARED
def test_what_is_due_is_not_cancelled(
    clocked: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    consumer = subscribe(clocked, kind=kind)
    with clocked.create_producer("t") as producer:
        sent = [producer.send(b"%d" % each, deliver_after=HOUR) for each in range(2)]
        assert received(consumer) == []
        manual_clock.advance(3600)
        for _ in range(2):
            with pytest.raises(errors.NotAllowedError, match="for s it is delivered already"):
                producer.cancel(sent[0])
            message = consumer.receive(5000)
        consumer.acknowledge(message)
        with pytest.raises(errors.NotAllowedError, match="for s it is acknowledged already"):
            producer.cancel(sent[1])


@SHARED
def test_it_is_either_cancelled_or_delivered(
    clocked: pulsarx.Client, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    """Whatever comes first: it is due while it is cancelled."""
    consumer = subscribe(clocked, kind=kind)
    with clocked.create_producer("t") as producer:
        for round_number in range(50):
            sent = producer.send(b"%d" % round_number, deliver_after=HOUR)
            assert received(consumer) == []
            outcome: list[object] = []
            both = threading.Barrier(2)
            thread = threading.Thread(target=cancel_at, args=(both, producer, sent, outcome))
            thread.start()
            both.wait(60)
            manual_clock.advance(3600)
            thread.join(60)
            expected = [] if outcome == [["s"]] else [b"%d" % round_number]
            assert expected == [] or isinstance(outcome[0], errors.NotAllowedError)
            assert received(consumer) == expected
            for _ in expected:
                consumer.acknowledge(sent)
            assert backlog(clocked) == 0


def cancel_at(both: threading.Barrier, producer: Any, sent: MessageId, outcome: list[Any]) -> None:
    both.wait(60)
    try:
        outcome.append(producer.cancel(sent))
    except errors.NotAllowedError as error:
        outcome.append(error)


def test_what_nobody_read_is_not_cancelled_when_it_is_due(
    clocked: pulsarx.Client, manual_clock: ManualClock
) -> None:
    with clocked.create_producer("t") as producer:
        clocked.admin.topics.create_subscription("t", "s", MessageId.earliest)
        sent = producer.send(b"one", deliver_after=HOUR)
        manual_clock.advance(3600)
        with pytest.raises(errors.NotAllowedError, match="for s it is due already"):
            producer.cancel(sent)


def test_one_message_of_a_batch_is_cancelled(
    clocked: pulsarx.Client, manual_clock: ManualClock
) -> None:
    """Our producers delay no batches; those of other clients may."""
    consumer = subscribe(clocked)
    payloads = [(b"%d" % each, {}) for each in range(4)]
    due = manual_clock.now_ms() + 3_600_000
    batch = inspect(clocked).append_entry("t", delayed_batch(payloads, due))
    place = (batch.ledger_id(), batch.entry_id())
    ids = [MessageId(-1, *place, each) for each in range(4)]
    assert clocked.admin.topics.cancel_message("t", ids[2]) == ["s"]
    assert listed(clocked) == [ids[0], ids[1], ids[3]]
    assert received(consumer) == []
    assert clocked.admin.topics.cancel_message("t", ids[0]) == ["s"]
    assert listed(clocked) == [ids[1], ids[3]]
    manual_clock.advance(3600)
    assert received(consumer) == [b"1", b"3"]
    with pytest.raises(errors.NotAllowedError, match="delivered"):
        clocked.admin.topics.cancel_message("t", MessageId(-1, *place, -1))


def delayed_batch(payloads: list[Any], deliver_at: int) -> bytes:
    entry = encode_batch(payloads, producer_name="p", publish_time_ms=1000)
    end = 10 + int.from_bytes(entry[6:10], "big")
    number = bytes((deliver_at >> shift) & 127 | 128 for shift in range(0, 42, 7))
    metadata = entry[10:end] + b"\x98\x01" + number + bytes([deliver_at >> 42])
    rest = len(metadata).to_bytes(4, "big") + metadata + entry[end:]
    return b"\x0e\x01" + crc32c(rest).to_bytes(4, "big") + rest


def test_all_of_a_batch_is_cancelled_by_the_id_of_its_entry(
    clocked: pulsarx.Client, manual_clock: ManualClock
) -> None:
    consumer = subscribe(clocked)
    payloads = [(b"%d" % each, {}) for each in range(3)]
    batch = delayed_batch(payloads, manual_clock.now_ms() + 3_600_000)
    found = inspect(clocked).append_entry("t", batch)
    whole = MessageId(-1, found.ledger_id(), found.entry_id(), -1)
    assert clocked.admin.topics.cancel_message("t", whole) == ["s"]
    manual_clock.advance(3600)
    assert received(consumer) == []
    assert backlog(clocked) == 0


def test_a_message_of_a_partitioned_topic_is_found_by_its_id(
    clocked: pulsarx.Client, manual_clock: ManualClock
) -> None:
    clocked.admin.topics.create_partitioned_topic("t", 3)
    consumer = subscribe(clocked)
    with clocked.create_producer("t") as producer:
        ids = [producer.send(b"%d" % each, deliver_after=HOUR) for each in range(6)]
        assert producer.cancel(ids[4]) == ["s"]
    partition = f"t-partition-{ids[0].partition()}"
    found = clocked.admin.topics.get_delayed_messages(partition, "s")
    assert ids[0] in [each.message_id() for each in found]
    place = (ids[0].ledger_id(), ids[0].entry_id())
    with pytest.raises(errors.OperationNotSupported, match="name the partition"):
        clocked.admin.topics.cancel_message("t", MessageId(-1, *place, -1))
    manual_clock.advance(3600)
    assert sorted(received(consumer)) == [b"0", b"1", b"2", b"3", b"5"]


def test_a_message_in_chunks_is_cancelled_as_a_whole(
    open_client: OpenClient, manual_clock: ManualClock
) -> None:
    options = pulsarx.BrokerOptions(max_message_size=1000)
    client = open_client(clock=manual_clock, broker_options=options)
    consumer = subscribe(client)
    with client.create_producer("t", chunking_enabled=True) as producer:
        large = producer.send(bytes(2500), deliver_after=HOUR)
        producer.send(b"small")
        assert received(consumer) == [b"small"]
        assert listed(client) == [MessageId(-1, large.ledger_id(), large.entry_id(), -1)]
        assert producer.cancel(large) == ["s"]
    manual_clock.advance(3600)
    assert received(consumer) == []
    assert backlog(client) == 1  # the small one


@pytest.mark.parametrize("name", ["s", None])
def test_what_cannot_be_cancelled_is_refused(clocked: pulsarx.Client, name: str | None) -> None:
    admin = clocked.admin.topics
    with clocked.create_producer("t") as producer:
        plain = producer.send(b"one")
        subscribe(clocked)
        with pytest.raises(errors.NotAllowedError, match="without a delay"):
            admin.cancel_message("t", plain, name)
        gone = MessageId(-1, plain.ledger_id(), 1000, -1)
        with pytest.raises(errors.NotAllowedError, match="no such message"):
            admin.cancel_message("t", gone, name)
    with pytest.raises(errors.AlreadyClosed):
        producer.cancel(plain)
    with pytest.raises(errors.SubscriptionNotFound):
        admin.cancel_message("t", plain, "other")
    with pytest.raises(errors.TopicNotFound):
        admin.cancel_message("other", plain, name)


def test_a_topic_without_subscriptions_has_none_to_cancel_for(clocked: pulsarx.Client) -> None:
    with clocked.create_producer("t") as producer:
        sent = producer.send(b"one", deliver_after=HOUR)
        with pytest.raises(errors.NotAllowedError, match="no subscription"):
            producer.cancel(sent)


@pytest.mark.standard
def test_a_guest_cancels_what_the_owner_has_not_delivered(folder: Path) -> None:
    with other_process(folder), pulsarx.Client(folder) as guest:
        consumer = subscribe(guest)
        with guest.create_producer("t") as producer:
            ids = [producer.send(b"%d" % each, deliver_after=HOUR) for each in range(3)]
            assert producer.cancel(ids[0]) == ["s"]
        assert listed(guest) == ids[1:]
        assert guest.admin.topics.cancel_message("t", ids[1], "s") == ["s"]
        assert listed(guest) == ids[2:]
        consumer.close()


# The list -----------------------------------------------------------------------------------------


def test_the_list_says_when_each_is_due_and_goes_on_behind_a_page(
    clocked: pulsarx.Client, manual_clock: ManualClock
) -> None:
    subscribe(clocked)
    began = manual_clock.now_ms()
    with clocked.create_producer("t") as producer:
        producer.send(b"at once")
        ids = [producer.send(b"x", deliver_at=began + 1000 * (10 - each)) for each in range(10)]
    found = clocked.admin.topics.get_delayed_messages("t", "s")
    assert [each.deliver_at() for each in found] == [
        began + 1000 * each for each in range(10, 0, -1)
    ]
    assert listed(clocked, count=4) == ids[:4]
    assert listed(clocked, count=4, behind=ids[3]) == ids[4:8]
    assert listed(clocked, count=4, behind=ids[9]) == []
    manual_clock.advance(5)
    assert listed(clocked) == ids[:5]
    for count in (0, 1001):
        with pytest.raises(ValueError, match="from 1 to 1000"):
            listed(clocked, count=count)


def test_what_was_delivered_is_not_listed(clocked: pulsarx.Client) -> None:
    consumer = subscribe(clocked, kind=ConsumerType.Exclusive)
    with clocked.create_producer("t") as producer:
        ids = [producer.send(b"x", deliver_after=HOUR) for _ in range(2)]
    consumer.receive(5000)
    assert listed(clocked) == ids[1:]


# By id --------------------------------------------------------------------------------------------


def test_a_message_is_looked_at_by_its_id(clocked: pulsarx.Client) -> None:
    with clocked.create_producer("t", batching_enabled=True) as producer:
        for each in range(3):
            producer.send_async(b"%d" % each, None)
        producer.flush()
        last = producer.send(b"3")
    place = (last.ledger_id(), 0)
    for index in range(3):
        found = clocked.admin.topics.get_message_by_id("t", MessageId(-1, *place, index))
        assert found is not None and found.data() == b"%d" % index
    found = clocked.admin.topics.get_message_by_id("t", last)
    assert found is not None and (found.data(), found.message_id()) == (b"3", last)
    assert clocked.admin.topics.get_message_by_id("t", MessageId(-1, place[0], 99, -1)) is None
