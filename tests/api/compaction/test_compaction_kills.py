"""Facts about compactions that are killed, run out of space, or meet damage: the old result is
left, or the new one, and nothing else."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from compaction_steps import Pairs, compact, compacted, pairs_of, publish, read_compacted, survivors
from damaged_ledgers import fill, flip, frame_offsets, receive_all
from support.dying_owners import dies_at
from topic_reading import OpenClient, whole_topic

import pulsarx
from pulsarx import InitialPosition, MessageId
from pulsarx._pycore.ranges.entry_codec import crc32c
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

OPTIONS = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=4)
FIRST: Pairs = [(f"k{n % 5}", b"%d" % n) for n in range(10)]
SECOND: Pairs = [("k1", b"new"), ("k2", b""), ("x", b"1"), ("x", b"2")]
ALL = [value for _, value in FIRST + SECOND]
OLD: Pairs = [(f"k{n % 5}", b"%d" % n) for n in range(5, 10)] + SECOND
NEW: Pairs = [("k0", b"5"), ("k3", b"8"), ("k4", b"9"), ("k1", b"new"), ("x", b"2")]
OPERATIONS = ("write", "flush", "flush_directory", "link", "unlink")


def opened(folder: Path, durability: str = "sync") -> pulsarx.Client:
    return pulsarx.Client(folder, broker_options=OPTIONS, durability=durability)


def prepare(folder: Path) -> None:
    """Compacted once, and more was published since."""
    with opened(folder) as client:
        publish(client, FIRST)
        compacted(client)
        publish(client, SECOND)


def ledger_files(folder: Path) -> set[int]:
    return {int(path.stem) for path in (folder / "ledgers").rglob("*.ledger")}


def known_files(client: pulsarx.Client) -> set[int]:
    """Ledgers that the catalogue knows."""
    found: set[int] = set()
    for topic in inspect(client).catalogue.state.topics.values():
        found.update(each.ledger_id for each in topic.ledgers)
        if topic.compaction is not None and topic.compaction.ledger_id:
            found.add(topic.compaction.ledger_id)
    return found


def check(folder: Path) -> bool:
    """What a next owner finds; whether it is the new result."""
    with opened(folder) as client:
        found = survivors(client)
        assert found in (OLD, NEW)
        assert whole_topic(client) == ALL
        inspect(client).settle()
        # What was left on the way is gone, and nothing that is needed.
        assert ledger_files(folder) == known_files(client)
        compacted(client)
        assert survivors(client) == NEW
        inspect(client).settle()
        assert ledger_files(folder) == known_files(client)
        assert inspect(client).catalogue.state.deletions == {}
    assert not list((folder / "orphans").glob("*")) or not (folder / "orphans").exists()
    return found == NEW


@pytest.mark.standard
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_killed_compaction_leaves_the_old_result_or_the_new_one(
    tmp_path: Path, operation: str
) -> None:
    prepare(tmp_path / "before")
    found = []
    for call in range(1, 100):
        folder = tmp_path / "data"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "before", folder)
        died = dies_at(folder, opened, compact, operation, call)
        found.append(check(folder))
        if not died:
            assert found[-1]
            return
    raise AssertionError("the sweep did not end")


@pytest.mark.standard
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_refused_operation_leaves_the_old_result_or_the_new_one(
    tmp_path: Path, operation: str, error: int
) -> None:
    prepare(tmp_path / "before")
    for call in range(1, 100):
        folder = tmp_path / "data"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "before", folder)
        with opened(folder) as client:
            client.admin.topics.stats("t")
            inspect(client).settle()
            with fault_plan() as plan:
                plan.fail(operation, call=call, error=error)
                status = compact(client)
                ended = plan.calls(operation) < call
            assert survivors(client) == (NEW if status["status"] == "SUCCESS" else OLD)
            assert bool(status["last_error"]) == (status["status"] == "ERROR")
            assert whole_topic(client) == ALL
        check(folder)
        if ended:
            return
    raise AssertionError("the sweep did not end")


def test_a_full_disk_leaves_the_old_result(tmp_path: Path) -> None:
    prepare(tmp_path)
    with opened(tmp_path) as client:
        inspect(client).settle()
        with fault_plan() as plan:
            plan.fail("write", error=errno.ENOSPC, sticky=True)
            plan.fail("allocate", error=errno.ENOSPC, sticky=True)
            status = compact(client)
        assert status["status"] == "ERROR" and "space" in status["last_error"]
        failed = client.admin.topics.stats("t")["compaction"]["last_compaction_failed_timestamp"]
        assert failed > 0
        assert survivors(client) == OLD
        assert ledger_files(tmp_path) == known_files(client)
        compacted(client)
        assert survivors(client) == NEW
        assert client.admin.topics.compaction_status("t")["last_error"] == ""


@pytest.mark.parametrize("ends_by", ["close", "unload", "truncate", "delete"])
def test_a_running_compaction_ends_with_its_topic(tmp_path: Path, ends_by: str) -> None:
    prepare(tmp_path)
    client = opened(tmp_path)
    client.admin.topics.stats("t")
    inspect(client).settle()
    with fault_plan() as plan:
        plan.stall("flush")
        client.admin.topics.trigger_compaction("t")
        while not plan.stalled():
            pass
        ending = {
            "close": client.close,
            "unload": lambda: client.admin.topics.unload("t"),
            "truncate": lambda: client.admin.topics.truncate("t"),
            "delete": lambda: client.admin.topics.delete("t", force=True),
        }[ends_by]
        thread = threading.Thread(target=ending)
        thread.start()
        plan.release()
        thread.join()
    if ends_by != "close":
        inspect(client).settle()
        client.close()
    with opened(tmp_path) as client:
        if ends_by in ("close", "unload"):
            assert survivors(client) in (OLD, NEW)
            assert whole_topic(client) == ALL
            compacted(client)
            assert survivors(client) == NEW
        elif ends_by == "truncate":
            assert survivors(client) == []
        else:
            assert client.admin.topics.get_list() == []
        inspect(client).settle()
        assert ledger_files(tmp_path) == known_files(client)


# Damage -------------------------------------------------------------------------------------------


def compacted_path(folder: Path) -> Path:
    with opened(folder) as client:
        client.admin.topics.stats("t")
        [topic] = inspect(client).catalogue.state.topics.values()
        assert topic.compaction is not None
        path = inspect(client).directory.ledger_path(topic.compaction.ledger_id)
    return Path(str(path))


@pytest.mark.parametrize("part", ["frame", "payload"])
@pytest.mark.parametrize("entry", [0, 2, 4])
def test_damage_in_the_compacted_ledger_is_told_once_and_read_past(
    tmp_path: Path, part: str, entry: int
) -> None:
    prepare(tmp_path)
    offset = flip(compacted_path(tmp_path), entry, part)
    with opened(tmp_path) as client:
        reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
        messages, told = receive_all(reader)
        assert pairs_of(messages) == OLD[:entry] + OLD[entry + 1 :]
        [text] = told
        assert f"from offset {offset} on" in text and "1 message is missing" in text
        # It is not lost to those who do not read compacted.
        assert whole_topic(client) == ALL
        consumer = client.subscribe(
            "t", "s", is_read_compacted=True, initial_position=InitialPosition.Earliest
        )
        for expected in (1, 0):
            messages, told = receive_all(consumer)
            assert pairs_of(messages) == OLD[:entry] + OLD[entry + 1 :]
            assert len(told) == expected
            consumer.redeliver_unacknowledged_messages()
        consumer.acknowledge_cumulative(messages[-1])
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 0
        status = compact(client)
        assert status["status"] == "ERROR" and "cannot be compacted" in status["last_error"]


def test_several_damaged_places_are_counted(tmp_path: Path) -> None:
    prepare(tmp_path)
    path = compacted_path(tmp_path)
    offsets = frame_offsets(path)
    fill(path, offsets[1] + 8, offsets[3] + 8, 0xFF)
    with opened(tmp_path) as client:
        reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
        messages, told = receive_all(reader)
        assert pairs_of(messages) == [OLD[0], *OLD[4:]]
        assert len(told) == 1 and "3 messages are missing" in told[0]


@pytest.mark.parametrize("cut", [0, 1])
def test_a_compacted_ledger_that_was_cut_is_told(tmp_path: Path, cut: int) -> None:
    prepare(tmp_path)
    path = compacted_path(tmp_path)
    os.truncate(path, frame_offsets(path)[3] + cut)
    with opened(tmp_path) as client:
        reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
        messages, told = receive_all(reader)
        assert pairs_of(messages) == OLD[:3] + OLD[5:]
        assert len(told) == 1 and "2 messages are missing" in told[0]


@pytest.mark.parametrize("other", ["missing", "foreign"])
def test_a_compacted_ledger_that_is_gone_is_told_as_lost(tmp_path: Path, other: str) -> None:
    prepare(tmp_path)
    path = compacted_path(tmp_path)
    content = path.read_bytes()
    path.unlink()
    if other == "foreign":
        with opened(tmp_path / "other") as client:
            publish(client, FIRST)
        shutil.copy(next((tmp_path / "other" / "ledgers").rglob("*.ledger")), path)
    with opened(tmp_path) as client:
        reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
        messages, told = receive_all(reader)
        assert pairs_of(messages) == OLD[5:]
        assert len(told) == 1 and "5 messages are missing" in told[0]
        assert compact(client)["status"] == "ERROR"
        assert whole_topic(client) == ALL
    path.write_bytes(content)
    with opened(tmp_path) as client:
        assert survivors(client) == OLD


def test_damage_in_the_topic_refuses_its_compaction(tmp_path: Path) -> None:
    """What cannot be read may be the last message of a key: the old result stays."""
    prepare(tmp_path)
    with opened(tmp_path) as client:
        state = inspect(client).catalogue.state
        [topic] = state.topics.values()
        client.admin.topics.stats("t")
        last = inspect(client).directory.ledger_path(topic.ledgers[-1].ledger_id)
    flip(Path(str(last)), 0, "payload")
    with opened(tmp_path) as client:
        status = compact(client)
        assert status["status"] == "ERROR" and "cannot be compacted" in status["last_error"]
        reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
        assert pairs_of(receive_all(reader)[0])[:5] == OLD[:5]


def test_a_batch_that_cannot_be_decoded_is_copied_whole(open_client: OpenClient) -> None:
    """Who reads it is told, as in the topic itself."""
    client = open_client()
    publish(client, [("a", b"1"), ("b", b"2")], batching_enabled=True)
    ledger = inspect(client).ledger("t")
    writer: Any = ledger.tail.writer
    [record] = ledger.ledgers()
    span = ledger.span(record)
    lying = bytearray(span.file.entry(4096, span.end)[1][:-1])  # the second message is cut
    lying[2:6] = crc32c(bytes(lying[6:])).to_bytes(4, "big")
    writer.append(bytes(lying), message_count=2, publish_time_ms=1, flags=1)
    publish(client, [("a", b"3")])
    compacted(client)
    reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
    messages, told = receive_all(reader)
    assert [message.data() for message in messages] == [b"2", b"1", b"3"]
    assert len(told) == 1


def test_power_cuts_after_a_compaction_lose_nothing_of_it(tmp_path: Path) -> None:
    """Everything a result names is durable before the catalogue names it."""
    with opened(tmp_path, durability="os") as client:
        publish(client, FIRST)
        with fault_plan() as plan:
            compacted(client)
            flushes, directories = plan.calls("flush"), plan.calls("flush_directory")
        # The topic's ledgers, the new file; its folder, and the commits.
        assert flushes >= 2 and directories >= 2
        assert read_compacted(client)
