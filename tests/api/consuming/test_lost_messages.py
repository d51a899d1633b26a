"""Facts about messages that cannot be read any more: damage is told once, with what it costs, and
nothing waits for them."""

from __future__ import annotations

import errno
import logging
import random
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from damaged_ledgers import data_of, fill, flip, frame_offsets, ledger_paths, receive_all
from topic_reading import OpenClient
from type_steps import check, join, publish, publish_batch, statistics

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, MessageId, errors
from pulsarx.enumerations import SubscriptionMode
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

TOPIC = "persistent://public/default/t"
COUNT = 10
SHARING = [ConsumerType.Shared, ConsumerType.KeyShared]
KINDS = [ConsumerType.Exclusive, ConsumerType.Failover, *SHARING]
ALL = pytest.mark.parametrize("kind", KINDS)
PARTS = pytest.mark.parametrize("part", ["frame", "payload"])


def texts_without(*missing: int, count: int = COUNT) -> list[str]:
    return [str(number) for number in range(count) if number not in missing]


def fill_topic(open_client: OpenClient, folder: Path, acknowledged: int = 0) -> Path:
    """Ten keyed messages, one an entry; subscription s acknowledged the first. Its ledger file."""
    client = open_client()
    consumer = join(client, ConsumerType.Exclusive)
    publish(client, *(f"k{number % 3}:{number}" for number in range(COUNT)))
    for _ in range(acknowledged):
        consumer.acknowledge(consumer.receive(0))
    client.close()
    [path] = ledger_paths(folder)
    return path


def ledger_ids(client: pulsarx.Client) -> list[int]:
    return [each["ledger_id"] for each in client.admin.topics.stats("t")["ledgers"]]


def said(caplog: pytest.LogCaptureFixture, *words: str) -> int:
    """How many lines of the log have all the words."""
    return sum(all(word in record.getMessage() for word in words) for record in caplog.records)


@PARTS
@pytest.mark.parametrize("at", [0, 5, 9])
@ALL
def test_damage_where_a_consumer_resumes_is_told_once_and_costs_nobody_else(
    open_client: OpenClient,
    folder: Path,
    caplog: pytest.LogCaptureFixture,
    kind: ConsumerType,
    at: int,
    part: str,
) -> None:
    """A damaged frame at the place where a consumer resumed was passed over without a word, and the
    backlog counted its message for ever."""
    path = fill_topic(open_client, folder, acknowledged=at)
    offset = flip(path, at, part)
    client = open_client()
    consumer = join(client, kind)
    messages, told = receive_all(consumer)
    assert sorted(data_of(messages)) == texts_without(*range(at + 1))
    [text] = told
    assert f"entry {at} at offset {offset} of ledger {path.stem} " in text
    assert "1 message is missing and counts as acknowledged" in text
    inspect(client).settle()
    assert said(caplog, "subscription s", f"entry {at} at offset {offset}", "1 message") == 1
    assert statistics(client)["msg_backlog"] == COUNT - at - 1
    assert statistics(client)["backlog_entries"] == COUNT - at - 1
    check(consumer)
    consumer.acknowledge_many(messages)
    found = statistics(client)
    assert (found["msg_backlog"], found["backlog_entries"]) == (0, 0)
    assert found["mark_delete_position"] == (int(path.stem), COUNT - 1)
    caplog.clear()
    client.close()
    again = open_client()
    assert receive_all(join(again, kind)) == ([], [])
    assert statistics(again)["msg_backlog"] == 0
    assert not said(caplog, f"offset {offset}")


@ALL
def test_what_was_told_is_not_told_after_a_kill_either(
    open_client: OpenClient, folder: Path, kind: ConsumerType
) -> None:
    path = fill_topic(open_client, folder)
    flip(path, 0, "frame")
    flip(path, 4, "payload")
    client = open_client()
    consumer = join(client, kind)
    messages, told = receive_all(consumer)
    assert len(told) == 2 and len(messages) == COUNT - 2
    consumer.close()
    second = join(client, kind)
    messages, told = receive_all(second)
    assert (len(messages), told) == (COUNT - 2, [])
    check(second)


@ALL
def test_damaged_entries_that_follow_each_other_are_told_as_one(
    open_client: OpenClient, folder: Path, kind: ConsumerType
) -> None:
    path = fill_topic(open_client, folder)
    offsets = frame_offsets(path)
    fill(path, offsets[3], offsets[7], 255)
    messages, told = receive_all(join(open_client(), kind))
    assert sorted(data_of(messages)) == texts_without(3, 4, 5, 6)
    [text] = told
    assert f"entries 3 to 6 at offset {offsets[3]} of" in text
    assert "4 messages are missing" in text


@PARTS
@ALL
def test_of_a_batch_only_what_was_not_acknowledged_is_missing(
    open_client: OpenClient, folder: Path, kind: ConsumerType, part: str
) -> None:
    client = open_client()
    consumer = join(client, ConsumerType.Exclusive)
    publish_batch(client, *(f"k:{number}" for number in range(6)))
    publish(client, "k:behind")
    consumer.acknowledge_many(consumer.receive_many(6)[1::2])
    client.close()
    [path] = ledger_paths(folder)
    flip(path, 0, part)
    client = open_client()
    consumer = join(client, kind)
    messages, told = receive_all(consumer)
    assert data_of(messages) == ["behind"]
    assert len(told) == 1 and "3 messages are missing" in told[0]
    assert statistics(client)["msg_backlog"] == 1
    assert statistics(client)["backlog_entries"] == 1
    check(consumer)


# Readers and seeks -------------------------------------------------------------------------------


@PARTS
def test_a_reader_that_starts_in_damage_is_told(
    open_client: OpenClient, folder: Path, part: str
) -> None:
    """It began with the next message that could be read, without a word."""
    path = fill_topic(open_client, folder)
    offset = flip(path, 4, part)
    client = open_client()
    starts = {
        "at": client.create_reader(
            "t", MessageId(-1, int(path.stem), 4), start_message_id_inclusive=True
        ),
        "behind": client.create_reader("t", MessageId(-1, int(path.stem), 3)),
    }
    for reader in starts.values():
        messages, told = receive_all(reader)
        assert data_of(messages) == texts_without(0, 1, 2, 3, 4)
        assert len(told) == 1
        assert f"entry 4 at offset {offset}" in told[0] and "1 message is missing" in told[0]
    reader = client.create_reader("t", MessageId.latest)
    assert receive_all(reader) == ([], [])
    reader.seek(MessageId(-1, int(path.stem), 3))
    assert len(receive_all(reader)[1]) == 1
    reader.seek(MessageId(-1, int(path.stem), 4))  # behind it
    assert receive_all(reader)[1] == []


def test_a_reader_that_seeks_a_time_at_damage_is_told(
    open_client: OpenClient, folder: Path
) -> None:
    clock = pulsarx.ManualClock()
    client = open_client(clock=clock)
    start_ms = clock.now_ms()
    for number in range(4):
        publish(client, str(number))
        clock.advance(1)
    client.close()
    [path] = ledger_paths(folder)
    flip(path, 2, "frame")
    client = open_client(clock=clock)
    reader = client.create_reader("t", MessageId.latest)
    consumer = join(client, ConsumerType.Exclusive)
    for one in (reader, consumer):
        one.seek(start_ms + 2000)
        messages, told = receive_all(one)
        assert data_of(messages) == ["3"]
        assert len(told) == 1 and "1 message is missing" in told[0]


@ALL
def test_a_seek_back_over_damage_tells_it_again(
    open_client: OpenClient, folder: Path, kind: ConsumerType
) -> None:
    path = fill_topic(open_client, folder)
    flip(path, 2, "frame")
    client = open_client()
    consumer = join(client, kind)
    assert len(receive_all(consumer)[1]) == 1
    consumer.seek(MessageId(-1, int(path.stem), 1))
    messages, told = receive_all(consumer)
    assert sorted(data_of(messages)) == texts_without(0, 1, 2)
    assert len(told) == 1
    check(consumer)


def test_beside_the_owner_damage_is_told_with_what_it_costs(
    open_client: OpenClient, folder: Path
) -> None:
    path = fill_topic(open_client, folder)
    offset = flip(path, 0, "frame")
    client = open_client(read_only=True)
    reader = client.create_reader("t", MessageId.earliest)
    messages, told = receive_all(reader)
    assert data_of(messages) == texts_without(0)
    assert len(told) == 1 and f"offset {offset}" in told[0] and "1 message is missing" in told[0]


def test_damage_in_an_open_ledger_is_told_with_what_it_costs(
    open_client: OpenClient, folder: Path
) -> None:
    """The last published entries are damaged while their owner lives."""
    client = open_client()
    consumer = join(client, ConsumerType.Shared)
    publish_batch(client, "a", "b", "c")
    publish(client, "d")
    [path] = ledger_paths(folder)
    offsets = frame_offsets(path)
    with open(path, "r+b") as file:
        file.seek(offsets[0] + 20)
        file.write(b"\xff")
        file.seek(offsets[1] + 20)
        file.write(b"\xff")
    messages, told = receive_all(consumer)
    assert messages == [] and len(told) == 1 and "4 messages are missing" in told[0]
    publish(client, "e")
    assert data_of(receive_all(consumer)[0]) == ["e"]
    check(consumer)


# Ids ---------------------------------------------------------------------------------------------


def test_acknowledging_the_id_of_a_damaged_entry_acknowledges_no_neighbour(
    open_client: OpenClient, folder: Path
) -> None:
    """The entry behind the damage was taken for it."""
    path = fill_topic(open_client, folder)
    flip(path, 2, "frame")
    flip(path, 6, "frame")
    flip(path, 7, "frame")
    client = open_client()
    consumer = join(client, ConsumerType.Exclusive)
    consumer.acknowledge(MessageId(-1, int(path.stem), 2))
    assert statistics(client)["msg_backlog"] == COUNT - 1
    with pytest.raises(errors.CorruptDataError, match="cannot be read"):
        consumer.acknowledge(MessageId(-1, int(path.stem), 7))
    messages, told = receive_all(consumer)
    assert sorted(data_of(messages)) == texts_without(2, 6, 7)
    assert len(told) == 1 and "2 messages are missing" in told[0]


# Whole ledgers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("harm", ["missing", "cut", "short"])
@ALL
def test_a_ledger_that_is_not_there_is_told_with_what_it_costs(
    open_client: OpenClient,
    folder: Path,
    caplog: pytest.LogCaptureFixture,
    kind: ConsumerType,
    harm: str,
) -> None:
    """Its messages stayed in the backlog, and nothing behind it was ever trimmed. Where the file is
    missing nothing is trimmed that it could be put back for."""
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=4)
    client = open_client(broker_options=options)
    join(client, ConsumerType.Exclusive).close()
    publish(client, *(f"k{number % 3}:{number}" for number in range(COUNT)))
    client.close()
    paths = ledger_paths(folder)
    missing = [4, 5, 6, 7] if harm != "short" else [6, 7]
    if harm == "missing":
        paths[1].unlink()
    else:
        end = 0 if harm == "cut" else frame_offsets(paths[1])[2] + 16
        with open(paths[1], "r+b") as file:
            file.truncate(end)
    client = open_client(broker_options=options)
    consumer = join(client, kind)
    messages, told = receive_all(consumer)
    assert sorted(data_of(messages)) == texts_without(*missing)
    assert len(told) == 1 and f"ledger {paths[1].stem} of " in told[0]
    assert f"{len(missing)} messages are missing" in told[0]
    assert statistics(client)["msg_backlog"] == len(messages)
    check(consumer)
    consumer.acknowledge_many(messages)
    assert statistics(client)["msg_backlog"] == 0
    inspect(client).settle()
    if harm == "missing":
        text = f"nothing from ledger {paths[1].stem} on is trimmed"
        assert said(caplog, text, str(paths[1]), "put an empty one in its place") == 1
        assert ledger_ids(client) == [int(path.stem) for path in paths[1:]]
        paths[1].write_bytes(b"")
    client.close()
    client = open_client()
    assert receive_all(join(client, kind)) == ([], [])
    inspect(client).topic(TOPIC).trim()
    assert ledger_ids(client) == [int(paths[-1].stem)]
    assert not paths[1].exists()


def test_a_seek_by_time_survives_a_ledger_that_cannot_be_read(
    open_client: OpenClient, folder: Path
) -> None:
    """It raised, and a consumer could not get beyond the ledger."""
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=4)
    client = open_client(broker_options=options)
    publish(client, *(str(number) for number in range(COUNT)))
    client.close()
    ledger_paths(folder)[0].unlink()
    client = open_client()
    reader = client.create_reader("t", MessageId.latest)
    reader.seek(1)
    messages, told = receive_all(reader)
    assert data_of(messages) == texts_without(0, 1, 2, 3)
    assert len(told) == 1 and "4 messages are missing" in told[0]
    assert client.admin.topics.stats("t")["messages"] == COUNT


def test_the_last_message_of_a_topic_is_named_though_its_ledger_cannot_be_read(
    open_client: OpenClient, folder: Path
) -> None:
    path = fill_topic(open_client, folder)
    path.unlink()
    reader = open_client().create_reader("t", MessageId.earliest)
    with pytest.raises(errors.CorruptDataError):
        reader.has_message_available()
    assert not reader.has_message_available()


# Redelivery --------------------------------------------------------------------------------------


@PARTS
@pytest.mark.parametrize("kind", SHARING)
def test_a_message_that_is_damaged_when_it_comes_again_is_told_and_not_waited_for(
    open_client: OpenClient,
    folder: Path,
    manual_clock: pulsarx.ManualClock,
    kind: ConsumerType,
    part: str,
) -> None:
    """It was dropped without a word and stayed in the backlog."""
    client = open_client(clock=manual_clock)
    consumer = join(client, kind)
    publish(client, *(f"k{number % 3}:{number}" for number in range(COUNT)))
    messages = receive_all(consumer)[0]
    [path] = ledger_paths(folder)
    offset = frame_offsets(path)[4]
    at = offset + 20 if part == "frame" else frame_offsets(path)[5] - 8
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(b"\xfe")
    for message in messages:
        consumer.negative_acknowledge(message)
    manual_clock.advance(60)
    messages, told = receive_all(consumer)
    assert sorted(data_of(messages)) == texts_without(4)
    assert len(told) == 1 and f"offset {offset}" in told[0] and "1 message is missing" in told[0]
    assert statistics(client)["msg_backlog"] == COUNT - 1
    check(consumer)


def test_statistics_that_meet_damage_say_it_in_the_log(
    open_client: OpenClient, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = fill_topic(open_client, folder)
    offset = flip(path, 0, "frame")
    client = open_client()
    consumer = join(client, ConsumerType.Shared)
    assert statistics(client)["msg_backlog"] >= COUNT - 1
    inspect(client).settle()
    assert said(caplog, "subscription s", f"offset {offset}", "1 message") == 1
    assert len(receive_all(consumer)[0]) == COUNT - 1
    assert statistics(client)["msg_backlog"] == COUNT - 1
    inspect(client).settle()
    assert said(caplog, f"offset {offset}") == 1


def test_a_list_of_messages_that_ends_at_damage_says_it_once(
    open_client: OpenClient, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = fill_topic(open_client, folder)
    offset = flip(path, 4, "frame")
    client = open_client()
    for receive in (
        join(client, ConsumerType.Exclusive).receive_many,
        client.create_reader("t", MessageId.earliest).read_many,
        client.create_reader("t", MessageId.earliest).read_arrow,
    ):
        caplog.clear()
        assert len(receive(100, 0)) == 4
        inspect(client).settle()
        assert said(caplog, f"entry 4 at offset {offset}", "1 message is missing") == 1
        assert len(receive(100, 0)) == 5
        inspect(client).settle()
        assert said(caplog, f"offset {offset}") == 1


def test_a_listener_goes_on_behind_damage_that_the_log_tells_once(
    open_client: OpenClient, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = fill_topic(open_client, folder)
    offset = flip(path, 4, "frame")
    clock = pulsarx.ManualClock()
    client = open_client(clock=clock)
    heard: list[Any] = []
    done = threading.Event()

    def listen(_: Any, message: Any) -> None:
        heard.append(message)
        if len(heard) == COUNT - 1:
            done.set()

    join(client, ConsumerType.Exclusive, message_listener=listen)
    assert done.wait(60)
    assert data_of(heard) == texts_without(4)
    inspect(client).settle()
    assert said(caplog, f"offset {offset}") == 1


# What stands in the way --------------------------------------------------------------------------


def test_a_loss_that_cannot_be_written_down_is_told_again(
    open_client: OpenClient, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = open_client()
    consumer = join(client, ConsumerType.Shared)
    publish_batch(client, *(str(number) for number in range(64 * 300)))
    publish(client, "damaged", "behind")
    # Far enough from each other for a record each, until the tail of the cursor is full.
    for message in receive_all(consumer)[0][0 : 64 * 256 : 64]:
        consumer.acknowledge(message)
    consumer.close()
    client.close()
    [path] = ledger_paths(folder)
    flip(path, len(frame_offsets(path)) - 3, "frame")
    client = open_client()
    with fault_plan() as plan:
        plan.fail("rename", error=errno.ENOSPC, sticky=True)
        consumer = join(client, ConsumerType.Shared)
        told = receive_all(consumer)[1]
        assert len(told) == 1 and "1 message is missing;" in told[0]
        check(consumer)
    assert said(caplog, "the cursor could not be written") == 1
    client.close()
    told = receive_all(join(open_client(), ConsumerType.Shared))[1]
    assert len(told) == 1 and "1 message is missing and counts as acknowledged" in told[0]


def test_a_non_durable_subscription_and_a_reader_are_each_told(
    open_client: OpenClient, folder: Path
) -> None:
    path = fill_topic(open_client, folder)
    flip(path, 3, "frame")
    client = open_client()
    consumers: list[Any] = [
        join(client, ConsumerType.Shared, subscription_mode=SubscriptionMode.NonDurable),
        join(client, ConsumerType.Shared),
        client.create_reader("t", MessageId.earliest),
        client.create_reader("t", MessageId.earliest),
    ]
    for consumer in consumers:
        messages, told = receive_all(consumer)
        assert (len(messages), len(told)) == (COUNT - 1, 1)


# Whatever is damaged ------------------------------------------------------------------------------


def harm(chance: random.Random, path: Path) -> None:
    """Some bytes of a sealed ledger, in front of its index, are not what was written."""
    offsets = frame_offsets(path)
    start = chance.randrange(offsets[0], offsets[-1])
    kind = chance.choice(["bit", "zeros", "ones", "cut", "gone", "whole"])
    if kind == "bit":
        fill(path, start, start + 1, path.read_bytes()[start] ^ 1 << chance.randrange(8))
    elif kind == "cut":
        with open(path, "r+b") as file:
            file.truncate(chance.choice([0, start]))
    elif kind == "gone":
        path.unlink()
    elif kind != "whole":
        fill(
            path, start, min(start + chance.randrange(1, 400), offsets[-1]), -(kind == "ones") % 256
        )


@pytest.mark.parametrize("seed", range(12))
@ALL
def test_what_comes_and_what_is_told_missing_is_all_there_was(
    open_client: OpenClient, folder: Path, kind: ConsumerType, seed: int
) -> None:
    chance = random.Random(f"{kind} {seed}")
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=7)
    client = open_client(broker_options=options)
    consumer = join(client, kind)
    expected = set()
    for number in range(24):
        payloads = [
            f"k{chance.randrange(5)}:{number}.{each}" for each in range(chance.choice([1, 1, 4, 9]))
        ]
        expected.update(data.partition(":")[2] for data in payloads)
        (publish if len(payloads) == 1 else publish_batch)(client, *payloads)
    for message in receive_all(consumer)[0]:
        if chance.random() < 0.3:
            consumer.acknowledge(message)
            expected.remove(message.data().decode().partition(":")[2])
    client.close()
    for path in ledger_paths(folder):
        harm(chance, path)
    missing = 0
    for _ in range(2):
        client = open_client(broker_options=options)
        consumer = join(client, kind)
        messages, told = receive_all(consumer)
        came = data_of(messages)
        assert len(came) == len(set(came)) and expected.issuperset(came)
        assert all("counts as ack" in text or "count as ack" in text for text in told)
        missing += sum(
            int(re.search(r"(\d+) messages? (?:is|are) missing", text)[1]) for text in told
        )  # type: ignore[index]
        assert len(expected) == len(came) + missing
        assert statistics(client)["msg_backlog"] == len(came)
        check(consumer)
        kept = chance.sample(messages, len(messages) // 2)
        consumer.acknowledge_many(kept)
        expected = set(came) - set(data_of(kept))  # and nothing is told a second time
        missing = 0
        client.close()
    client = open_client(broker_options=options)
    consumer = join(client, kind)
    messages, told = receive_all(consumer)
    assert told == [] and set(data_of(messages)) == expected
    consumer.acknowledge_many(messages)
    assert statistics(client)["msg_backlog"] == statistics(client)["backlog_entries"] == 0
    inspect(client).settle()
    left = ledger_ids(client)
    assert len(left) <= 1 or not (folder / f"ledgers/{left[0]:02x}/{left[0]}.ledger").exists()


def test_damage_is_told_where_there_was_no_memory_to_tell_it(
    open_client: OpenClient, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What was to be told was forgotten when the job ran again."""
    failures = [MemoryError()]

    def without_memory(record: logging.LogRecord) -> bool:
        if failures and "damage: " in record.msg:
            raise failures.pop()
        return True

    offset = flip(fill_topic(open_client, folder), 5, "frame")
    client, logger = open_client(), logging.getLogger("pulsarx")
    logger.addFilter(without_memory)
    try:
        receive_all(join(client, ConsumerType.Exclusive))
        inspect(client).settle()
    finally:
        logger.removeFilter(without_memory)
    assert not failures
    assert said(caplog, "subscription s", f"offset {offset}") == 1


def test_damage_is_told_behind_a_text_that_a_filter_of_the_program_refused(
    open_client: OpenClient, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A text that could not be logged stayed in front of all later ones for ever."""
    path = fill_topic(open_client, folder)
    flip(path, 2, "frame")
    flip(path, 6, "frame")
    client = open_client()

    def refuse(record: logging.LogRecord) -> bool:
        if "entry 2 " in record.getMessage() and "subscription s: damage" in record.getMessage():
            raise ValueError("a filter of the program")
        return True

    logger = logging.getLogger("pulsarx")
    logger.addFilter(refuse)
    try:
        receive_all(join(client, ConsumerType.Exclusive))
        inspect(client).settle()
    finally:
        logger.removeFilter(refuse)
    assert said(caplog, "subscription s: damage", "entry 6 ") == 1
    # What is missing counts as acknowledged, which is kept though the text was refused.
    assert statistics(client)["msg_backlog"] == COUNT - 2
