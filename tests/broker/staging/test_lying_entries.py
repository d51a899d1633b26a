"""Facts about entries that lie about their counts and sizes: they are refused at once where they
are attached, and cost their own messages, no time, no memory and no permit where they are read."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from damaged_ledgers import data_of, receive_all
from forged_ledgers import Forgery
from lying_entries import (
    BATCH,
    COMPRESSED,
    HUGE,
    MIXED_KEYS,
    PLAIN,
    entry,
    single,
    stage_entries,
)
from support.consumer_types import ALL_TYPES
from type_steps import check, join, publish, statistics

import pulsarx
from pulsarx import ConsumerType, InitialPosition, errors
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.broker.staging.sealed_writer import SealedLedgerWriter
from pulsarx.broker.staging.staged_file import StagedFile, identity, staged_path

Entries = list[tuple[bytes, int, int]]

TWO = single(b"a" * 10, b"k") + single(b"b" * 10, b"l")
SOUND: tuple[bytes, int, int] = (PLAIN, 1, 0)
SECOND_LONG = single(b"a" * 10) + single(b"b", payload_size=HUGE)
SECOND_HUGE = single(b"a" * 10) + single(b"b", size=0xFFFFFFFF)

# What it is: the liar among the entries, how many messages its frame counts, how many of them are
# there to be read, and how many are missing.
LIES: dict[str, tuple[tuple[bytes, int, int], int, int]] = {
    "metadata": ((entry(TWO, HUGE), 2, BATCH), 0, 2),
    "metadata of a compressed batch": ((entry(TWO, HUGE, 1, 40), 2, BATCH | COMPRESSED), 0, 2),
    "one more than there is": ((entry(TWO, 3), 3, BATCH), 2, 1),
    "more than there are": ((entry(TWO, 6), 6, BATCH), 2, 4),
    "frame": ((entry(TWO, 2), 5, BATCH), 0, 5),
    "frame of a compressed entry": ((entry(b"x", 0, 1, 1), 1000, COMPRESSED), 0, 1000),
    "size of a payload": ((entry(SECOND_LONG, 2), 2, BATCH), 1, 1),
    "size of a header": ((entry(SECOND_HUGE, 2), 2, BATCH), 1, 1),
    "no batch": ((entry(TWO), 2, 0), 0, 2),
}
ALL = pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
)
NOTHING_LARGE_KIB = 48 << 10


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    with pulsarx.Client(path) as client:
        client.admin.topics.create_non_partitioned_topic("t")
    return path


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are attached unseen, so that readers meet what `check` refuses."""
    monkeypatch.setattr(
        StagedFile,
        "check",
        lambda self, folder, *_: identity(staged_path(folder, self.job, self.name)),
    )


@pytest.fixture
def bounded() -> Iterator[None]:
    """Neither a second nor much memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.process_time()  # the machine may be busy
    yield
    assert time.process_time() - begin < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < NOTHING_LARGE_KIB


@pytest.mark.parametrize("mixed", [0, MIXED_KEYS])
@pytest.mark.parametrize("lie", LIES)
@ALL
def test_an_entry_that_lies_costs_its_own_messages_and_nothing_else(
    folder: Path, unchecked: None, bounded: None, kind: ConsumerType, lie: str, mixed: int
) -> None:
    """A count of 2^31 - 1 had the dispatcher remember as many messages."""
    (data, count, flags), found, missing = LIES[lie]
    entries: Entries = [SOUND, SOUND, (data, count, flags | mixed), SOUND, SOUND]
    with pulsarx.Client(folder) as client:
        holder = client.subscribe("t", "holder", initial_position=InitialPosition.Earliest)
        attach(folder, Transaction("x", 0), [stage_entries(folder, entries)])
        publish(client, "k:last")
        consumer = join(client, kind)
        messages, told = receive_all(consumer)
        assert len(messages) == found + 5
        assert data_of(messages).count("plain") == 4
        assert len(told) == 1, told
        words = f"{missing} messages are" if missing > 1 else "1 message is"
        assert f"{words} missing" in told[0]
        check(consumer)
        assert statistics(client)["msg_backlog"] == len(messages)
        consumer.acknowledge_many(messages)
        assert statistics(client)["msg_backlog"] == 0
        publish(client, "k:more")
        assert data_of(receive_all(consumer)[0]) == ["more"]
        check(consumer)
        consumer.unsubscribe()
        look_at_columns(join(client, kind), found)
        holder.close()


def look_at_columns(consumer: Any, found: int) -> None:
    rows = 0
    for _ in range(6):
        try:
            rows += len(consumer.receive_arrow(100, 0))
        except errors.CorruptDataError:
            pass
    assert rows == found + 6
    check(consumer)
    consumer.unsubscribe()


def frame(**fields: int) -> Any:
    def change(forgery: Forgery) -> None:
        forgery.frames[2].update(fields)

    return change


FRAMES = {
    "far ahead": frame(first_message=1 << 50),
    "ahead": frame(first_message=1 << 36),
    "a little ahead": frame(first_message=7),
    "back": frame(first_message=0),
    "count": frame(message_count=HUGE),
    "count of a compressed one": frame(message_count=HUGE, flags=COMPRESSED),
    "plausible count of a compressed one": frame(message_count=1 << 20, flags=COMPRESSED),
    "another entry": frame(entry_id=4),
    "an entry far ahead": frame(entry_id=1 << 60),
    "an entry before": frame(entry_id=0),
}


@pytest.mark.parametrize("lie", FRAMES)
@ALL
def test_a_frame_that_lies_about_its_place_costs_its_own_message(
    folder: Path, unchecked: None, bounded: None, kind: ConsumerType, lie: str
) -> None:
    """A first message of 2^50 raised MemoryError, again at every call, and nothing came behind."""
    with pulsarx.Client(folder) as client:
        file = stage_entries(folder, [SOUND] * 5, FRAMES[lie])
        attach(folder, Transaction("x", 0), [file])
        publish(client, "k:last")
        consumer = join(client, kind)
        messages, told = receive_all(consumer)
        assert data_of(messages) == ["plain"] * 4 + ["last"]
        assert len(told) == 1 and "1 message is missing" in told[0], told
        check(consumer)
        assert statistics(client)["msg_backlog"] == 5
        consumer.acknowledge_many(messages)
        assert statistics(client)["msg_backlog"] == 0
        publish(client, "k:more")
        assert data_of(receive_all(consumer)[0]) == ["more"]
        check(consumer)


def footer(**fields: int) -> Any:
    return lambda forgery: forgery.footer.update(fields)


@pytest.mark.parametrize("message_count", [6, 1 << 20, 1 << 36, 1 << 50, 1 << 61])
@ALL
def test_a_footer_that_counts_messages_nobody_wrote_costs_no_time_and_no_memory(
    folder: Path, unchecked: None, bounded: None, kind: ConsumerType, message_count: int
) -> None:
    with pulsarx.Client(folder) as client:
        file = stage_entries(folder, [SOUND] * 5, footer(message_count=message_count))
        attach(folder, Transaction("x", 0), [file])
        publish(client, "k:last")
        consumer = join(client, kind)
        messages, told = receive_all(consumer)
        assert data_of(messages) == ["plain"] * 5 + ["last"]
        assert len(told) == 1 and f"{message_count - 5} message" in told[0]
        check(consumer)


# Where they are refused --------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 4])
@pytest.mark.parametrize("lie", LIES)
def test_a_lie_in_the_first_or_last_entry_is_not_attached(
    folder: Path, bounded: None, lie: str, place: int
) -> None:
    entries = [SOUND] * 4
    entries.insert(place, LIES[lie][0])
    with pytest.raises(errors.CorruptDataError, match="damaged, nothing was attached"):
        attach(folder, Transaction("x", 0), [stage_entries(folder, entries)])


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_between_is_not_attached_by_who_reads_all(
    folder: Path, bounded: None, lie: str
) -> None:
    file = stage_entries(folder, [SOUND, LIES[lie][0], SOUND])
    with pytest.raises(errors.CorruptDataError, match="damaged, nothing was attached"):
        attach(folder, Transaction("x", 0), [file], thorough=True)


@pytest.mark.parametrize("message_count", [1 << 38, 1 << 50, 1 << 61])
def test_a_footer_that_cannot_be_is_not_attached(folder: Path, message_count: int) -> None:
    file = stage_entries(folder, [SOUND] * 5, footer(message_count=message_count))
    with pytest.raises(errors.CorruptDataError, match="damaged, nothing was attached"):
        attach(folder, Transaction("x", 0), [file])


@pytest.mark.parametrize("lie", LIES)
def test_a_task_that_appends_it_is_told_at_once(tmp_path: Path, bounded: None, lie: str) -> None:
    """It was stored, and every reader of the topic met it."""
    data, count, flags = LIES[lie][0]
    if lie in ("frame", "frame of a compressed entry", "no batch"):
        return  # the writer makes the frame itself
    with SealedLedgerWriter(str(tmp_path / "ledger"), folder_id="0" * 32) as writer:
        with pytest.raises(errors.CorruptDataError):
            writer.append_entry(data)
        writer.append_entry(PLAIN)
        assert writer.message_count == 1


# An index that lies ------------------------------------------------------------------------------


def index(place: int, **fields: int) -> Any:
    return lambda forgery: forgery.index[place].update(fields)


@pytest.mark.parametrize(
    "change",
    [
        index(1, offset=4097), index(1, offset=4104), index(1, offset=1 << 62), index(1, offset=8),
        index(1, entry_id=0), index(1, entry_id=1 << 60), index(1, first_message=0),
        index(1, first_message=1 << 50),
    ],
)  # fmt: skip
def test_an_index_that_cannot_be_is_damage_and_reading_goes_without_it(
    folder: Path, unchecked: None, change: Any
) -> None:
    """An offset beside the alignment raised NotAllowedError where a reader started."""
    file = stage_entries(folder, [SOUND] * 600, change)
    with pulsarx.Client(folder) as client:
        attach(folder, Transaction("x", 0), [file])
        [ledger] = client.admin.topics.stats("t")["ledgers"]
        for start in (0, 100, 255, 256, 300, 598):
            identity = pulsarx.MessageId(-1, ledger["ledger_id"], start)
            messages, told = receive_all(client.create_reader("t", identity))
            assert (len(messages), told) == (599 - start, [])


@pytest.mark.parametrize(
    "fields", [{"entry_id": 400}, {"first_message": 400}, {"offset": 4096 + 72 * 300}]
)
def test_an_index_of_other_entries_leads_nobody_astray(
    folder: Path, unchecked: None, fields: dict[str, int]
) -> None:
    file = stage_entries(folder, [SOUND] * 600, index(1, **fields))
    with pulsarx.Client(folder) as client:
        attach(folder, Transaction("x", 0), [file])
        [ledger] = client.admin.topics.stats("t")["ledgers"]
        for start in (0, 100, 255, 256, 300, 399, 400, 598):
            identity = pulsarx.MessageId(-1, ledger["ledger_id"], start)
            messages, told = receive_all(client.create_reader("t", identity))
            assert (len(messages), told) == (599 - start, [])
