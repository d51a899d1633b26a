"""Facts about messages that are to be delivered again while something is wrong: damage beside them,
a full disk, a file that does not open, a seek, a change of type."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from damaged_batch import damage as damage_batch
from given_up import GivenUp
from support.consumer_types import ALL_TYPES
from topic_reading import OpenClient
from type_steps import check, join, keys_between, publish, publish_batch, take, take_messages

import pulsarx
from pulsarx import ConsumerType, MessageId, errors
from pulsarx.broker.ledgers.ledger_list import LedgerList
from pulsarx.enumerations import SubscriptionMode
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

SHARING = pytest.mark.parametrize("kind", [ConsumerType.Shared, ConsumerType.KeyShared])
ALL = pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
)


def damage(folder: Path, payload: bytes) -> None:
    """The entry of this payload has another byte and the checksum of before."""
    (path,) = [
        each for each in folder.rglob("*") if each.is_file() and payload in each.read_bytes()
    ]
    data = bytearray(path.read_bytes())
    data[data.index(payload)] ^= 1
    path.write_bytes(data)


def receive_past_damage(consumer: Any) -> list[Any]:
    found: list[Any] = []
    while True:
        try:
            found.append(consumer.receive(0))
        except errors.CorruptDataError:
            pass
        except errors.Timeout:
            return found


@SHARING
def test_a_damaged_entry_takes_no_neighbour_with_it_when_they_come_again(
    open_client: OpenClient, folder: Path, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    """What lay behind the damage used to be taken for lost on its way to its second delivery."""
    client = open_client()
    join(client, kind).close()
    publish(client, "a:before", "b:damaged", "c:behind", "d:last")
    client.close()
    damage(folder, b"b:damaged")
    consumer = join(open_client(clock=manual_clock), kind)
    messages = receive_past_damage(consumer)
    assert len(messages) == 3
    for message in messages:
        consumer.negative_acknowledge(message)
    manual_clock.advance(60)
    assert sorted(take(consumer)) == ["a:before", "c:behind", "d:last"]
    check(consumer)


@ALL
def test_a_full_disk_loses_counts_and_no_redelivery(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    """A message whose redelivery could not be counted used to wait for ever."""
    client = open_client(clock=manual_clock)
    consumer = join(client, kind)
    publish_batch(client, *(f"k{each}:{each}" for each in range(600)))
    messages = take_messages(consumer)
    # So that no record of the cursor continues the one before.
    for message in messages[1::2]:
        consumer.acknowledge(message)
    for message in messages[::2]:
        consumer.negative_acknowledge(message)
    with fault_plan() as plan:
        for operation in ("write", "allocate", "flush", "rename"):
            plan.fail(operation, error=errno.ENOSPC, sticky=True)
        manual_clock.advance(60)
        found = take_messages(consumer)
    assert sorted(int(each.data().split(b":")[1]) for each in found) == list(range(0, 600, 2))
    assert {each.redelivery_count() for each in found} == {1}
    check(consumer)


def doomed(consumer: Any, clock: pulsarx.ManualClock) -> list[Any]:
    """Have what is there given up at its first redelivery; the messages, on their way from now
    on."""
    dead = GivenUp()
    consumer.set_dead_letters(1, dead)
    for _ in range(2):
        for message in take_messages(consumer):
            consumer.negative_acknowledge(message)
        clock.advance(60)
    return dead.messages


@ALL
def test_a_seek_beyond_a_dead_message_is_not_undone_when_it_is_revived(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    """It used to be delivered although the seek had acknowledged it."""
    consumer = join(clocked_client, kind)
    publish(clocked_client, "k:dead")
    [message] = doomed(consumer, manual_clock)
    consumer.seek(MessageId.latest)
    dead = doomed(consumer, manual_clock)
    consumer.receiver.revive(message)
    manual_clock.advance(3600)
    assert take(consumer) == dead == []
    check(consumer)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("before", [ConsumerType.Shared, ConsumerType.Exclusive])
def test_a_message_revived_under_key_shared_goes_where_its_key_belongs(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    before: ConsumerType,
    batch: bool,
) -> None:
    """A message buried by a consumer of another type used to have no key."""
    keys = [keys_between(0, 32767, 1)[0], keys_between(32768, 65535, 1)[0]]
    consumer = join(clocked_client, before)
    (publish_batch if batch else publish)(clocked_client, *(f"{key}:dead" for key in keys))
    dead = doomed(consumer, manual_clock)
    assert len(dead) == 2
    receiver = consumer.receiver
    consumer.close()
    first, second = (join(clocked_client, ConsumerType.KeyShared, name) for name in "ab")
    publish(clocked_client, *(f"{key}:alive" for key in keys))
    owners = [take(first), take(second)]
    for message in dead:
        receiver.revive(message)
    manual_clock.advance(60)
    came = [take(first), take(second)]
    for alive, again in zip(owners, came, strict=True):
        assert [each.replace("alive", "dead") for each in alive] == again
    check(first)


@SHARING
def test_a_message_that_cannot_be_read_when_it_is_given_up_is_given_up_later(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    kind: ConsumerType,
) -> None:
    """It used to be neither delivered nor given up, until a restart."""
    consumer = join(clocked_client, kind)
    publish(clocked_client, "a:one", "b:two")
    for message in take_messages(consumer):
        consumer.negative_acknowledge(message)
    manual_clock.advance(60)
    dead = GivenUp()
    consumer.set_dead_letters(1, dead)
    for message in take_messages(consumer):
        consumer.negative_acknowledge(message)

    def refuse(self: LedgerList, ledger_id: int) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(LedgerList, "span_of", refuse)
        manual_clock.advance(60)
    manual_clock.advance(3600)
    assert sorted(dead.payloads()) == [b"a:one", b"b:two"]
    check(consumer)


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Failover])
def test_a_seek_that_fails_forgets_no_negative_acknowledgement(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    """Its timer was gone, and nothing else led back to the message."""
    client = open_client(clock=manual_clock)
    consumer = join(client, kind)
    publish(client, "one", "two")
    for message in take_messages(consumer):
        consumer.negative_acknowledge(message)
    with fault_plan() as plan:
        for operation in ("write", "allocate", "flush", "rename"):
            plan.fail(operation, error=errno.ENOSPC, sticky=True)
        with pytest.raises(errors.StorageError):
            consumer.seek(MessageId.latest)
    manual_clock.advance(60)
    assert take(consumer) == ["one", "two"]


def test_who_waits_is_told_that_another_gave_up_a_damaged_batch(
    open_client: OpenClient, folder: Path
) -> None:
    """The rest of the batch counted against the limit of the subscription; nobody woke the others
    when it was passed over."""
    client = open_client()
    join(client, ConsumerType.Shared).close()
    publish_batch(client, *(f"message-{each}" for each in range(6)))
    publish(client, "behind")
    client.close()
    damage_batch(folder)
    options = pulsarx.BrokerOptions(max_unacked_messages_per_subscription=6)
    client = open_client(broker_options=options)
    first = join(client, ConsumerType.Shared, "a")
    second = join(client, ConsumerType.Shared, "b")  # by now everything is with the first
    assert take(second) == []
    told: list[bool] = []
    for _ in range(3):
        first.receive(0)
    second.watch(lambda: told.append(True))
    with pytest.raises(errors.CorruptDataError):
        first.receive(0)
    assert told
    assert take(second) == ["behind"]
    check(second)


def test_who_waits_is_told_that_what_kept_it_waiting_was_trimmed(
    manual_clock: pulsarx.ManualClock,
) -> None:
    """A non-durable subscription holds no ledger; its limit was free again and nobody knew."""
    options = pulsarx.BrokerOptions(
        managed_ledger_max_entries_per_ledger=2, max_unacked_messages_per_subscription=2
    )
    client = pulsarx.Client("memory:told", clock=manual_clock, broker_options=options)
    durable = client.subscribe("t", "durable")
    consumer = join(client, ConsumerType.Shared, subscription_mode=SubscriptionMode.NonDurable)
    publish(client, "0", "1", "2", "3", "4")
    assert take(consumer) == ["0", "1"]
    assert take(consumer) == []
    told: list[bool] = []
    messages = take_messages(durable, 2)
    consumer.watch(lambda: told.append(True))
    for message in messages:
        durable.acknowledge(message)
    inspect(client).settle()
    assert told
    assert take(consumer) == ["2", "3"]
    check(consumer)
    client.close()


@ALL
def test_a_delay_without_end_is_no_delay_of_nothing(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    """The sum with the time of day wrapped around, and the message came at the next deadline."""
    consumer = join(clocked_client, kind, negative_ack_redelivery_delay_ms=2**63 - 1)
    publish(clocked_client, "a:one", "b:two")
    first, second = take_messages(consumer)
    consumer.acknowledge(first)
    consumer.negative_acknowledge(second)
    consumer.dispatcher.deadlines_due()
    manual_clock.advance(86_400)
    assert take(consumer) == []
    consumer.redeliver_unacknowledged_messages()
    assert take(consumer) == ["b:two"]
    check(consumer)


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Failover])
def test_a_file_that_does_not_open_when_reading_begins_anew_is_read_later(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    kind: ConsumerType,
) -> None:
    """Reading went on where it was: what had been nacked came no more."""
    consumer = join(clocked_client, kind)
    publish(clocked_client, "one", "two", "three")
    first, second, _ = take_messages(consumer)
    consumer.acknowledge(first)
    consumer.negative_acknowledge(second)

    def refuse(self: LedgerList, ledger_id: int) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(LedgerList, "span_of", refuse)
        manual_clock.advance(60)
    assert take(consumer) == ["two", "three"]
