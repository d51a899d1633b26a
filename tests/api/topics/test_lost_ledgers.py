"""Facts about ledgers whose file is not what the catalogue or a published end knows: nothing is
deleted, everything that is missing is told, and what can be read is."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import pytest
from child_process import ChildProcess
from damaged_ledgers import (
    Owner,
    data_of,
    fill,
    flip,
    frame_offsets,
    ledger_paths,
    receive_all,
)
from topic_reading import whole_topic
from type_steps import join, publish, statistics

import pulsarx
from pulsarx import ConsumerType, MessageId, errors
from pulsarx.backups import check
from pulsarx.randomness import Randomness
from pulsarx.testing import inspect

COUNT = 10
DURABILITIES = pytest.mark.parametrize("durability", ["sync", "interval", "os"])

LEAVE_OPEN = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1], durability=sys.argv[2])
for topic in sys.argv[3:]:
    client.subscribe(topic, "s", initial_position=pulsarx.InitialPosition.Earliest)
    producer = client.create_producer(topic)
    for number in range(10):
        producer.send(b"%s:%d" % (topic.encode(), number))
print("sent", flush=True)
sys.stdin.read()
"""


def leave_open(folder: Path, durability: str, *topics: str) -> list[Path]:
    """Ten messages on each topic, in ledgers whose owner was killed; their files."""
    with ChildProcess(LEAVE_OPEN, folder, durability, *(topics or ["t"])) as child:
        assert child.line() == "sent"
        child.kill()
    return ledger_paths(folder)


def all_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "ledgers").rglob("*.ledger")}


def kept_aside(folder: Path) -> list[str]:
    return os.listdir(folder / "orphans") if (folder / "orphans").exists() else []


def lines(caplog: pytest.LogCaptureFixture, *words: str) -> list[str]:
    """The lines of the log that have all the words."""
    texts = [record.getMessage() for record in caplog.records]
    return [text for text in texts if all(word in text for word in words)]


def number_texts(*missing: int) -> list[str]:
    return [str(number) for number in range(COUNT) if number not in missing]


# No header ---------------------------------------------------------------------------------------


@DURABILITIES
def test_an_open_ledger_that_lost_its_header_loses_no_message(
    folder: Path, durability: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It counted as never written, and the file was deleted with all its messages."""
    [path] = leave_open(folder, durability)
    fill(path, 0, 4096)
    for turn in range(2):
        with pulsarx.Client(folder, durability=durability) as client:
            assert data_of(receive_all(join(client, ConsumerType.Shared))[0]) == number_texts()
        assert len(lines(caplog, f"ledger {path.stem} has no header any more")) == (turn == 0)
        caplog.clear()
    assert path.exists() and kept_aside(folder) == []


def test_a_sealed_ledger_that_lost_its_header_loses_no_message(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    [path] = leave_open(folder, "sync")
    pulsarx.Client(folder).close()
    with pulsarx.Client(folder) as client:
        whole_topic(client)
    before = path.read_bytes()
    fill(path, 0, 4096)
    with pulsarx.Client(folder) as client:
        assert data_of(receive_all(join(client, ConsumerType.Shared))[0]) == number_texts()
        reader = client.create_reader("t", MessageId(-1, int(path.stem), 6))
        assert data_of(receive_all(reader)[0]) == ["7", "8", "9"]
        assert len(lines(caplog, f"ledger {path.stem} at {path} has no header")) == 1
    with pulsarx.Client(folder, read_only=True) as client:
        assert len(whole_topic(client)) == COUNT
    assert path.read_bytes() == bytes(4096) + before[4096:]


def test_what_is_damaged_besides_is_told(folder: Path) -> None:
    [path] = leave_open(folder, "sync")
    offsets = frame_offsets(path)
    fill(path, 0, offsets[2], 7)
    with pulsarx.Client(folder) as client:
        messages, told = receive_all(join(client, ConsumerType.Exclusive))
        assert data_of(messages) == number_texts(0, 1)
        assert len(told) == 1 and "2 messages are missing" in told[0]


# Nothing left ------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", ["empty", "zeros", "garbage", "nothing"])
@DURABILITIES
def test_an_open_ledger_of_which_nothing_can_be_read_is_told_with_what_was_published(
    folder: Path, caplog: pytest.LogCaptureFixture, durability: str, left: str
) -> None:
    """It was deleted as never written, without a word."""
    [path] = leave_open(folder, durability)
    size = path.stat().st_size
    content = {"empty": b"", "zeros": bytes(size), "garbage": b"no ledger " * 900}.get(left)
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pulsarx.Client(folder, durability=durability) as client:
        consumer = join(client, ConsumerType.KeyShared)
        publish(client, "t:later")
        messages, told = receive_all(consumer)
        assert data_of(messages) == ["later"]
        assert len(told) == 1 and f"ledger {path.stem} " in told[0]
        assert "10 messages are missing and count as acknowledged" in told[0]
        assert statistics(client)["msg_backlog"] == 1
    assert len(lines(caplog, f"ledger {path.stem} has no entry", "10 published messages")) == 1
    caplog.clear()
    with pulsarx.Client(folder, durability=durability) as client:
        consumer = join(client, ConsumerType.Exclusive)
        messages, told = receive_all(consumer)
        assert (data_of(messages), told) == (["later"], [])
        consumer.acknowledge_many(messages)
        publish(client, "t:last")
    with pulsarx.Client(folder, durability=durability) as client:
        inspect(client).topic("t").trim()
        assert receive_all(client.create_reader("t", MessageId.earliest))[1] == []
    assert not lines(caplog, "is lost")
    if content is not None:
        [name] = kept_aside(folder)
        assert (folder / "orphans" / name).read_bytes() == content
    assert not path.exists()


def test_what_was_published_is_known_after_several_owners_that_did_not_look(folder: Path) -> None:
    """Opening the folder started the table of published ends anew."""
    [path] = leave_open(folder, "sync", "t")
    leave_open(folder, "sync", "other")
    with pulsarx.Client(folder) as client:
        publish(client, "x", topic="third")
    path.write_bytes(b"")
    with pulsarx.Client(folder) as client:
        [told] = receive_all(client.create_reader("t", MessageId.earliest))[1]
        assert "10 messages are missing" in told
        assert len(whole_topic(client, "other")) == COUNT


def test_without_any_evidence_the_file_is_kept_all_the_same(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    [path] = leave_open(folder, "sync")
    size = path.stat().st_size
    path.write_bytes(bytes(size))
    (folder / "ends").unlink()
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == []
    assert len(lines(caplog, "number unknown, possibly none", f"ledger {path.stem} ")) == 1
    assert kept_aside(folder) == [path.name]


STALLED = """
import sys, threading, pulsarx
from pulsarx.testing.faults import fault_plan
with fault_plan() as plan:
    client = pulsarx.Client(sys.argv[1], durability="os")
    producer = client.create_producer("t")
    plan.stall("write", 3)  # behind the header and the commit
    threading.Thread(target=lambda: producer.send(bytes(9000)), daemon=True).start()
    while not plan.stalled():
        pass
    print("stalled", flush=True)
    sys.stdin.read()
"""


def test_a_ledger_that_was_only_begun_goes_without_a_word(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with ChildProcess(STALLED, folder) as child:
        assert child.line() == "stalled"
        child.kill()
    assert len(ledger_paths(folder)) == 1
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == []
        assert client.admin.topics.stats("t")["ledgers"] == []
    assert ledger_paths(folder) == [] and kept_aside(folder) == []
    assert not lines(caplog, "ledger")


# The end of a dead owner's ledger ----------------------------------------------------------------


@pytest.mark.parametrize("part", ["frame", "payload"])
def test_the_last_entry_that_was_flushed_is_damage_and_no_unfinished_write(
    folder: Path, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No later frame said that it was durable, so it was cut off; the published end does."""
    [path] = leave_open(folder, "sync")
    offset = flip(path, COUNT - 1, part)
    data = path.read_bytes()[offset : frame_offsets(path)[-1]]
    with pulsarx.Client(folder) as client:
        messages, told = receive_all(join(client, ConsumerType.Shared))
        assert data_of(messages) == number_texts(9)
        assert len(told) == 1 and f"offset {offset} of" in told[0] and "1 message" in told[0]
    assert len(lines(caplog, "is damaged: 1 entries from 9 on", f"offset {offset}")) == 1
    assert path.read_bytes()[offset : offset + len(data)] == data
    for _ in range(2):
        with pulsarx.Client(folder) as client:
            reader = client.create_reader("t", MessageId.earliest)
            messages, told = receive_all(reader)
            assert (len(messages), len(told)) == (9, 1)


@pytest.mark.parametrize("at", [0, 1, 40])
def test_a_flushed_ledger_that_was_cut_is_told_with_all_that_was_published(
    folder: Path, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    [path] = leave_open(folder, "sync")
    with open(path, "r+b") as file:
        file.truncate(frame_offsets(path)[6] + at)
    with pulsarx.Client(folder, read_only=True) as client:
        messages, told = receive_all(client.create_reader("t", MessageId.earliest))
        assert data_of(messages) == number_texts(6, 7, 8, 9)
        assert len(told) == 1 and "4 messages are missing" in told[0]
    for _ in range(2):
        with pulsarx.Client(folder) as client:
            messages, told = receive_all(client.create_reader("t", MessageId.earliest))
            assert data_of(messages) == number_texts(6, 7, 8, 9)
            assert len(told) == 1 and "4 messages are missing" in told[0]
    assert len(lines(caplog, "is damaged: 4 entries from 6 on")) == 1
    # It also said that no published message was known to be missing.
    assert not lines(caplog, "unfinished write")


@pytest.mark.parametrize("durability", ["interval", "os"])
def test_a_cut_tail_says_how_many_published_messages_it_costs(
    folder: Path, durability: str, caplog: pytest.LogCaptureFixture
) -> None:
    [path] = leave_open(folder, durability)
    fill(path, frame_offsets(path)[7], path.stat().st_size)
    with pulsarx.Client(folder, read_only=True) as client:
        messages, told = receive_all(client.create_reader("t", MessageId.earliest))
        assert data_of(messages) == number_texts(7, 8, 9)
        assert len(told) == 1 and "3 messages are missing" in told[0]
    with pulsarx.Client(folder, durability=durability) as client:
        assert len(whole_topic(client)) == 7
        assert receive_all(join(client, ConsumerType.Exclusive))[1] == []
    assert len(lines(caplog, "ends behind entry 6", "3 messages are missing", "not flushed")) == 1


@DURABILITIES
def test_beside_a_dead_owner_a_ledger_without_a_byte_is_told(folder: Path, durability: str) -> None:
    """It read as an empty topic."""
    [path] = leave_open(folder, durability)
    path.write_bytes(b"")
    with pulsarx.Client(folder, read_only=True) as client:
        messages, told = receive_all(client.create_reader("t", MessageId.earliest))
        assert messages == [] and len(told) == 1 and "10 messages are missing" in told[0]


@pytest.mark.parametrize("left", ["nothing", "another"])
@DURABILITIES
def test_beside_a_dead_owner_an_open_ledger_without_its_file_is_told_once(
    folder: Path, caplog: pytest.LogCaptureFixture, durability: str, left: str
) -> None:
    """Statistics, the last id and new readers at the end raised, each time, and no number of
    messages was known: the catalogue has none of an open ledger."""
    first, path = leave_open(folder, durability, "a", "t")
    path.unlink()
    if left == "another":
        shutil.copy(first, path)
    with pulsarx.Client(folder, read_only=True) as client:
        for _ in range(3):
            assert statistics(client)["msg_backlog"] == COUNT
            assert client.admin.topics.stats("t")["messages"] == COUNT
            last = client.admin.topics.get_last_message_id("t")
            assert (last.ledger_id(), last.entry_id()) == (int(path.stem), COUNT - 1)
            messages, told = receive_all(client.create_reader("t", MessageId.latest))
            assert messages == [] and len(told) == 1 and f"ledger {path.stem} " in told[0]
        messages, [told] = receive_all(client.create_reader("t", MessageId.earliest))
        assert messages == [] and "10 messages are missing" in told
        assert told.count(f"ledger {path.stem} of") == 1 and "the catalogue has" not in told
        assert data_of(receive_all(client.create_reader("a", MessageId.earliest))[0]) == (
            number_texts()
        )
    assert len(lines(caplog, f"nothing of ledger {path.stem} can be", "10 published")) == 1
    found = check(folder)
    assert (found.messages, found.missing_messages) == (2 * COUNT, COUNT)
    [damage] = found.damage
    assert damage.text.count(f"ledger {path.stem} of") == 1


def test_a_missing_ledger_beside_a_living_owner_is_told_once(folder: Path) -> None:
    """Every read raised, and no reader came beyond it."""
    with Owner(folder, 4) as owner:
        owner.publish(*number_texts())
        first, second, _ = ledger_paths(folder)
        second.unlink()
        with pulsarx.Client(folder, read_only=True) as client:
            messages, told = receive_all(client.create_reader("t", MessageId.earliest))
            assert data_of(messages) == number_texts(4, 5, 6, 7)
            assert len(told) == 1 and "4 messages are missing" in told[0]
            reader = client.create_reader("t", MessageId(-1, int(first.stem), 3))
            messages, told = receive_all(reader)
            assert (data_of(messages), len(told)) == (["8", "9"], 1)
            owner.publish("10")
            assert data_of(receive_all(reader)[0]) == ["10"]


def test_an_open_ledger_that_is_shorter_than_its_published_end_ends_no_reader(
    folder: Path,
) -> None:
    """The process died of a bus error."""
    with Owner(folder) as owner:
        owner.publish(*number_texts())
        with open(ledger_paths(folder)[0], "r+b") as file:
            file.truncate(0)
        with ChildProcess(READ_BESIDE, folder) as child:
            [text] = child.end()
        assert "its owner has published" in text and "10 messages are missing" in text


def test_an_entry_whose_owner_has_stored_the_end_and_not_yet_the_counts_is_read(
    folder: Path,
) -> None:
    """A reader that began with it at that moment told it as damaged, and passed it over."""
    with Owner(folder) as owner:
        owner.publish(*number_texts())
        [path] = ledger_paths(folder)
        with open(folder / "ends", "r+b") as ends:
            slots = list(struct.iter_unpack("<8Q", ends.read()))
            [at] = [at for at, slot in enumerate(slots) if at and slot[0] == int(path.stem)]
            assert slots[at][3:5] == (COUNT, COUNT)  # entries and messages, behind the end
            ends.seek(64 * at + 24)
            ends.write(struct.pack("<2Q", COUNT - 1, COUNT - 1))
        with pulsarx.Client(folder, read_only=True) as client:
            for start in (MessageId.earliest, MessageId(-1, int(path.stem), COUNT - 2)):
                messages, told = receive_all(client.create_reader("t", start))
                assert data_of(messages)[-1:] == [str(COUNT - 1)] and told == []


READ_BESIDE = """
import sys, pulsarx
from pulsarx import errors
client = pulsarx.Client(sys.argv[1], read_only=True)
reader = client.create_reader("t", pulsarx.MessageId.earliest)
try:
    reader.read_next(0)
except errors.CorruptDataError as error:
    print(error, flush=True)
"""


def test_the_file_of_a_lost_ledger_that_was_put_back_is_kept(folder: Path) -> None:
    """It was deleted when the ledger was trimmed, with everything that could have been read."""
    [path] = leave_open(folder, "sync")
    away = folder / "away"
    path.rename(away)
    with pulsarx.Client(folder) as client:
        # Else it may be trimmed as soon as the consumer was told, before the file is back.
        client.admin.topics.create_subscription("t", "holds", MessageId.earliest)
        consumer = client.subscribe("t", "s")
        client.create_producer("t").send(b"next")
        messages, told = receive_all(consumer)
        assert data_of(messages) == ["next"] and len(told) == 1
        before = away.read_bytes()
        path.parent.mkdir(exist_ok=True)
        away.rename(path)
        consumer.acknowledge(messages[0])
        client.admin.topics.delete_subscription("t", "holds")
        inspect(client).topic("t").trim()
        inspect(client).settle()
        assert not path.exists()
    [kept] = kept_aside(folder)
    assert (folder / "orphans" / kept).read_bytes() == before


# Another file ------------------------------------------------------------------------------------


def swap(one: Path, other: Path) -> None:
    aside = one.with_suffix(".aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def header_uuid(path: Path) -> str:
    return path.read_bytes()[16:32].hex()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_ledger_of_another_topic_is_refused_by_both_uuids(folder: Path, read_only: bool) -> None:
    """Each topic delivered the messages of the other."""
    paths = leave_open(folder, "sync", "a", "b")
    with pulsarx.Client(folder) as client:
        assert len(whole_topic(client, "a")) == len(whole_topic(client, "b")) == COUNT
    uuids = [header_uuid(path) for path in paths]
    swap(*paths)
    with pulsarx.Client(folder, read_only=read_only) as client:
        for topic, path in zip("ab", paths):
            messages, told = receive_all(client.create_reader(topic, MessageId.earliest))
            assert messages == [] and len(told) == 1
            assert str(path) in told[0] and all(uuid in told[0] for uuid in uuids)
            assert "10 messages are missing" in told[0]
    swap(*paths)
    with pulsarx.Client(folder, read_only=read_only) as client:
        assert whole_topic(client, "a") == [b"a:%d" % number for number in range(COUNT)]


@pytest.mark.parametrize("read_only", [False, True])
def test_recovery_touches_no_ledger_of_another_topic(
    folder: Path, read_only: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Each was sealed as the other's."""
    paths = leave_open(folder, "sync", "a", "b")
    swap(*paths)
    before = all_files(folder)
    with pulsarx.Client(folder, read_only=read_only) as client:
        for topic in "ab":
            reader = client.create_reader(topic, MessageId.earliest)
            messages, told = receive_all(reader)
            assert messages == [] and len(told) == 1 and "another file is in its place" in told[0]
            if not read_only:
                publish(client, "later", topic=topic)
                assert data_of(receive_all(reader)[0]) == ["later"]
                consumer = join(client, ConsumerType.Shared, topic=topic)
                assert [data_of(found) for found in receive_all(consumer)[:1]] == [["later"]]
                statistics(client, topic)
    for name, data in before.items():
        assert all_files(folder)[name] == data
    assert read_only or len(lines(caplog, "another file is in its place", str(paths[0]))) >= 1
    swap(*paths)
    with pulsarx.Client(folder) as client:
        for topic in "ab":
            expected = [b"%s:%d" % (topic.encode(), number) for number in range(COUNT)]
            assert whole_topic(client, topic)[:COUNT] == expected


def test_trimming_deletes_no_ledger_of_another_topic(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths = leave_open(folder, "sync", "a", "b")
    with pulsarx.Client(folder) as client:
        for topic in "ab":
            publish(client, "later", topic=topic)
    swap(*paths)
    before = all_files(folder)
    with pulsarx.Client(folder) as client:
        for topic in "ab":
            consumer = join(client, ConsumerType.Exclusive, topic=topic)
            messages, told = receive_all(consumer)
            assert data_of(messages) == ["later"] and len(told) == 1
            consumer.acknowledge_many(messages)
            assert statistics(client, topic)["msg_backlog"] == 0
        inspect(client).settle()
    for path in paths:
        assert all_files(folder)[path.name] == before[path.name]
        assert len(lines(caplog, f"nothing from ledger {path.stem} on is trimmed")) == 1
    swap(*paths)
    with pulsarx.Client(folder) as client:
        consumer = join(client, ConsumerType.Exclusive, topic="a")
        consumer.seek(MessageId.earliest)
        messages, told = receive_all(consumer)
        assert data_of(messages) == [*number_texts(), "later"] and told == []


def test_a_ledger_of_another_folder_is_refused(tmp_path: Path) -> None:
    """Two folders that were made by the same seed have ledgers of the same uuids."""
    paths = []
    for name in ("one", "other"):
        with pulsarx.Client(tmp_path / name, randomness=Randomness(7)) as client:
            publish(client, name)
        paths += ledger_paths(tmp_path / name)
    assert header_uuid(paths[0]) == header_uuid(paths[1])
    shutil.copy(paths[1], paths[0])
    with pulsarx.Client(tmp_path / "one") as client:
        [told] = receive_all(client.create_reader("t", MessageId.earliest))[1]
        assert "belongs to the data directory" in told and str(paths[0]) in told


def test_a_folder_whose_ledgers_are_not_mounted_is_refused(folder: Path) -> None:
    """Each of them would be taken for lost."""
    [path] = leave_open(folder, "sync")
    shutil.move(folder / "ledgers", folder.parent / "elsewhere")
    for _ in range(2):
        with pytest.raises(errors.FolderError, match="ledgers is empty"):
            pulsarx.Client(folder)
    shutil.rmtree(folder / "ledgers")
    shutil.move(folder.parent / "elsewhere", folder / "ledgers")
    with pulsarx.Client(folder) as client:
        assert len(whole_topic(client)) == COUNT


def test_a_prepared_ledger_without_a_file_hides_nothing_of_the_others(folder: Path) -> None:
    """Whoever read beside a dead owner asked for its file to know whether it counts, and so on:
    RecursionError."""
    with Owner(folder, 2) as owner:
        owner.publish("0", "1", "2")
    max(folder.rglob("*.ledger"), key=lambda path: int(path.stem)).unlink()  # nothing was in it
    with pulsarx.Client(folder, read_only=True) as client:
        assert client.admin.topics.stats("t")["messages"] == 3
        messages, told = receive_all(client.create_reader("t", MessageId.earliest))
        assert (data_of(messages), told) == (["0", "1", "2"], [])
    assert check(folder).messages == 3
