"""Facts about backups: what a copy of a folder in use holds, and what is restored of it."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from support.copied_topics import numbers, publish, read, subscribed

import pulsarx
from pulsarx import BrokerOptions, MessageId, errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.backups import backup, restore
from pulsarx.schema import JsonSchema, Record, String
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

SMALL = BrokerOptions(managed_ledger_max_entries_per_ledger=5)
WAIT = 60.0


class Item(Record):
    name = String()


def opened(folder: Path, options: BrokerOptions = SMALL) -> pulsarx.Client:
    return pulsarx.Client(folder, durability="os", broker_options=options)


def contents(folder: Path, topic: str = "t") -> list[bytes]:
    with opened(folder) as client:
        return read(client, topic)


def test_a_copy_beside_its_owner_holds_what_was_confirmed(tmp_path: Path) -> None:
    with opened(tmp_path / "f") as client:
        publish(client, 0, 23)
        consumer = subscribed(client)
        for _ in range(3):
            consumer.acknowledge(consumer.receive())
        found = backup(tmp_path / "f", tmp_path / "b")
        publish(client, 23, 30)  # the owner goes on
        assert read(client) == numbers(0, 30)
    assert (found.topics, found.subscriptions, found.messages) == (1, 1, 23)
    assert found.bytes == sum(
        each.stat().st_size for each in (tmp_path / "b").rglob("*") if each.is_file()
    )
    proved = restore(tmp_path / "b", tmp_path / "r")
    assert (proved.topics, proved.subscriptions, proved.messages) == (1, 1, 23)
    assert proved.damage == []
    with opened(tmp_path / "r") as client:
        assert read(client) == numbers(0, 23)
        consumer = subscribed(client)
        assert [each.data() for each in consumer.receive_many(50, 0)] == numbers(3, 23)
        publish(client, 23, 25)
        assert [each.data() for each in consumer.receive_many(50, 0)] == numbers(23, 25)


def test_the_copy_itself_can_be_opened(tmp_path: Path) -> None:
    with opened(tmp_path / "f") as client:
        publish(client, 0, 8)
        backup(tmp_path / "f", tmp_path / "b")
    assert contents(tmp_path / "b") == numbers(0, 8)


def test_a_folder_without_an_owner_is_copied(tmp_path: Path) -> None:
    with opened(tmp_path / "f") as client:
        publish(client, 0, 8)
        subscribed(client)
    backup(tmp_path / "f", tmp_path / "b")
    restore(tmp_path / "b", tmp_path / "r")
    assert contents(tmp_path / "r") == numbers(0, 8)
    assert contents(tmp_path / "f") == numbers(0, 8)


CHILD = """
import sys
import pulsarx
client = pulsarx.Client(sys.argv[1], durability="os")
producer = client.create_producer("t", batching_enabled=False)
consumer = client.subscribe("t", "s")
for number in range(10):
    producer.send(b"%d" % number)
for _ in range(4):
    consumer.acknowledge(consumer.receive())
print("sent")
sys.stdin.readline()
for number in range(10, 15):
    producer.send(b"%d" % number)
print("sent")
sys.stdin.readline()
"""


@pytest.mark.standard
def test_another_process_is_the_owner_and_may_be_killed(tmp_path: Path) -> None:
    with ChildProcess(CHILD, tmp_path / "f") as child:
        assert child.line() == "sent"
        assert backup(tmp_path / "f", tmp_path / "living").messages == 10
        child.tell("go on")
        assert child.line() == "sent"
        child.kill()
    assert backup(tmp_path / "f", tmp_path / "dead").messages == 15
    for name, end in (("living", 10), ("dead", 15)):
        assert restore(tmp_path / name, tmp_path / f"r-{name}").messages == end
        assert contents(tmp_path / f"r-{name}") == numbers(0, end)
        with opened(tmp_path / f"r-{name}") as client:
            got = client.subscribe("t", "s").receive_many(50, 0)
            assert [each.data() for each in got] == numbers(4, end)


@pytest.mark.standard
def test_each_copy_is_a_moment_of_a_topic_in_use(tmp_path: Path) -> None:
    """Whatever is published, acknowledged and trimmed meanwhile: no gap, no acknowledgement of a
    message it does not hold, nothing missing that was confirmed before."""
    stop = threading.Event()
    sent = [0]
    with opened(tmp_path / "f") as client:
        producer = client.create_producer("t", batching_enabled=False)
        consumer = subscribed(client)

        def work() -> None:
            while not stop.is_set():
                producer.send(b"%d" % sent[0])
                sent[0] += 1
                message = consumer.receive()
                if sent[0] % 100 != 0:
                    consumer.acknowledge(message)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            for turn in range(5):
                before = sent[0]
                backup(tmp_path / "f", tmp_path / f"b{turn}")
                after = sent[0]
                restore(tmp_path / f"b{turn}", tmp_path / f"r{turn}")
                with opened(tmp_path / f"r{turn}") as restored:
                    found = [int(each) for each in read(restored)]
                    left = subscribed(restored).receive_many(1_000_000, 0)
                    first = found[0] if found else before
                    assert found == list(range(first, first + len(found)))
                    assert before <= first + len(found) <= after + 1
                    unacknowledged = {int(each.data()) for each in left}
                    kept = set(range(99, before, 100))
                    assert kept <= unacknowledged <= set(found)
        finally:
            stop.set()
            worker.join()


def test_what_is_trimmed_meanwhile_is_in_the_copy(tmp_path: Path) -> None:
    with opened(tmp_path / "f") as client:
        publish(client, 0, 40)
        consumer = subscribed(client)
        messages = consumer.receive_many(40, 0)
        seen: list[int] = []

        def acknowledge_all(done: int, total: int) -> None:
            if not seen:
                consumer.acknowledge_many(messages)
                publish(client, 40, 41)
                inspect(client).settle()
            seen.append(done)

        backup(tmp_path / "f", tmp_path / "b", progress=acknowledge_all)
        assert seen == sorted(seen)
        inspect(client).settle()
        assert read(client) == numbers(40, 41)  # the lease has ended with the copy
    restore(tmp_path / "b", tmp_path / "r")
    assert contents(tmp_path / "r")[:40] == numbers(0, 40)


def test_a_topic_that_is_deleted_meanwhile_is_left_out(tmp_path: Path) -> None:
    with opened(tmp_path / "f") as client:
        publish(client, 0, 40)
        publish(client, 0, 40, "gone")
        seen: list[int] = []

        def delete(done: int, total: int) -> None:
            if not seen:
                seen.append(done)
                client.admin.topics.delete("gone", force=True)

        found = backup(tmp_path / "f", tmp_path / "b", progress=delete)
    assert found.topics == 1
    assert restore(tmp_path / "b", tmp_path / "r").topics == 1
    assert contents(tmp_path / "r") == numbers(0, 40)


def test_topics_that_are_deleted_and_made_without_pause_do_not_keep_it_from_ending(
    tmp_path: Path,
) -> None:
    """It began again for each of them, and gave up."""
    topics = iter(range(100, 200))
    with opened(tmp_path / "f") as client:
        publish(client, 0, 40)
        subscribed(client).close()
        for number in range(40):
            publish(client, number, number + 1, f"x{number}")
        client.admin.topics.create_partitioned_topic("p", 2)
        publish(client, 0, 2, "p-partition-1")
        left = iter(range(39, -1, -1))  # those that are not copied yet

        def exchange(done: int, total: int) -> None:
            number = next(left, None)
            if number is not None:
                client.admin.topics.delete(f"x{number}", force=True)
                publish(client, 0, 1, f"x{next(topics)}")
            if number == 37:
                client.admin.topics.delete_partitioned_topic("p", force=True)

        found = backup(tmp_path / "f", tmp_path / "b", progress=exchange)
    files = [path for path in (tmp_path / "b" / "ledgers").rglob("*") if path.is_file()]
    assert len(files) == found.ledgers
    assert len(list((tmp_path / "b" / "cursors").iterdir())) == found.subscriptions == 1
    restored = restore(tmp_path / "b", tmp_path / "r")
    assert (restored.topics, restored.damage) == (found.topics, [])
    assert contents(tmp_path / "r") == numbers(0, 40)
    with opened(tmp_path / "r") as client:
        kept = {name.rpartition("/")[2] for name in client.admin.topics.get_list("public/default")}
        assert {"t", "x0"} <= kept
        assert not any(name.startswith("p") for name in kept)
        assert read(client, "x0") == numbers(0, 1)


def test_a_ledger_that_is_sealed_meanwhile_is_copied_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pulsarx.backups.folder_view import FolderView

    with opened(tmp_path / "f") as client:
        publish(client, 0, 3)
        published = FolderView.published

        def then_it_is_sealed(self: FolderView, ledger: Any) -> Any:
            found = published(self, ledger)
            publish(client, 3, 12)
            inspect(client).settle()
            return found

        monkeypatch.setattr(FolderView, "published", then_it_is_sealed)
        backup(tmp_path / "f", tmp_path / "b")
    monkeypatch.undo()
    restore(tmp_path / "b", tmp_path / "r")
    assert contents(tmp_path / "r") == numbers(0, 5)


def test_partitions_schemas_policies_and_namespaces_are_in_it(tmp_path: Path) -> None:
    with opened(tmp_path / "f") as client:
        client.admin.tenants.create_tenant("mine")
        client.admin.namespaces.create_namespace("mine/n")
        client.admin.topics.create_partitioned_topic("mine/n/p", 2)
        client.create_producer("t", schema=JsonSchema(Item)).send(Item(name="a"))
        client.admin.topics.set_retention("t", 60, 7)
        producer = client.create_producer("mine/n/p")
        for number in range(4):
            producer.send(b"%d" % number)
        backup(tmp_path / "f", tmp_path / "b")
    restore(tmp_path / "b", tmp_path / "r")
    with opened(tmp_path / "r") as client:
        assert client.admin.topics.get_partitioned_topic_metadata("mine/n/p") == {"partitions": 2}
        assert client.admin.topics.get_retention("t") == (60, 7)
        assert sorted(read(client, "mine/n/p")) == numbers(0, 4)
        reader = client.create_reader("t", MessageId.earliest, JsonSchema(Item))
        assert reader.read_next(0).value().name == "a"


def test_what_is_sent_again_behind_a_restored_copy_is_a_duplicate(tmp_path: Path) -> None:
    """And what the copy does not hold is none, though the snapshot was renewed meanwhile."""
    options = BrokerOptions(
        managed_ledger_max_entries_per_ledger=5,
        broker_deduplication_enabled=True,
        broker_deduplication_entries_interval=3,
    )
    seen: list[int] = []
    with opened(tmp_path / "f", options) as client:
        producer = client.create_producer("t", "p", batching_enabled=False)
        for number in range(20):
            producer.send(b"%d" % number, sequence_id=number)

        def send_more(done: int, total: int) -> None:
            if len(seen) < 30:
                number = 20 + len(seen)
                producer.send(b"%d" % number, sequence_id=number)
                inspect(client).settle()
            seen.append(done)

        backup(tmp_path / "f", tmp_path / "b", progress=send_more)
    restore(tmp_path / "b", tmp_path / "r")
    with opened(tmp_path / "r", options) as client:
        held = read(client)
        assert held == numbers(0, len(held)) and 20 <= len(held) < 50
        with client.create_producer("t", "p", batching_enabled=False) as producer:
            for number in range(50):
                producer.send(b"%d" % number, sequence_id=number)
        assert read(client) == numbers(0, 50)


def test_a_compacted_topic_is_in_it(tmp_path: Path) -> None:
    with opened(tmp_path / "f") as client:
        with client.create_producer("t", batching_enabled=False) as producer:
            for number in range(30):
                producer.send(b"%d" % number, partition_key=f"k{number % 3}")
        client.admin.topics.trigger_compaction("t")
        inspect(client).settle()
        assert client.admin.topics.compaction_status("t")["status"] == "SUCCESS"
        backup(tmp_path / "f", tmp_path / "b")
    assert restore(tmp_path / "b", tmp_path / "r").damage == []
    with opened(tmp_path / "r") as client:
        reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
        assert [each.data() for each in reader] == numbers(27, 30)


def test_a_subscription_on_a_topic_without_messages_is_in_it(tmp_path: Path) -> None:
    with opened(tmp_path / "f") as client:
        subscribed(client).close()
        backup(tmp_path / "f", tmp_path / "b")
    assert restore(tmp_path / "b", tmp_path / "r").subscriptions == 1
    with opened(tmp_path / "r") as client:
        publish(client, 0, 2)
        assert [each.data() for each in subscribed(client).receive_many(5, 0)] == numbers(0, 2)


# What is refused ---------------------------------------------------------------------------------


def test_a_target_that_is_in_use_is_refused(tmp_path: Path) -> None:
    opened(tmp_path / "f").close()
    (tmp_path / "b").mkdir()
    backup(tmp_path / "f", tmp_path / "b")  # an empty folder is none
    before = sorted((tmp_path / "b").rglob("*"))
    with pytest.raises(errors.FolderError, match="Nothing was changed"):
        backup(tmp_path / "f", tmp_path / "b")
    with pytest.raises(errors.FolderError, match="Nothing was changed"):
        restore(tmp_path / "f", tmp_path / "b")
    assert sorted((tmp_path / "b").rglob("*")) == before
    (tmp_path / "file").touch()
    with pytest.raises(errors.FolderError):
        backup(tmp_path / "f", tmp_path / "file")
    with pytest.raises(errors.FolderError, match="inside"):
        backup(tmp_path / "f", tmp_path / "f" / "b")
    with pytest.raises(errors.FolderError, match="above"):
        backup(tmp_path / "f", tmp_path / "missing" / "b")
    assert left_over(tmp_path) == []


def left_over(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir() if each.name.endswith(".unfinished")]


def test_what_is_no_folder_of_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    for source in (tmp_path / "f", tmp_path / "missing"):
        with pytest.raises(errors.FolderError):
            backup(source, tmp_path / "b")
        with pytest.raises(errors.FolderError):
            restore(source, tmp_path / "b")
    assert sorted(os.listdir(tmp_path)) == ["f"]


def test_a_backup_that_somebody_has_opened_is_not_restored(tmp_path: Path) -> None:
    opened(tmp_path / "f").close()
    with opened(tmp_path / "f"), pytest.raises(errors.FolderOwnedError) as raised:
        restore(tmp_path / "f", tmp_path / "r")
    assert raised.value.pid == os.getpid()
    assert not (tmp_path / "r").exists() and left_over(tmp_path) == []


def test_restoring_changes_nothing_of_the_backup(tmp_path: Path) -> None:
    with opened(tmp_path / "f") as client:
        publish(client, 0, 8)
        subscribed(client)
        backup(tmp_path / "f", tmp_path / "b")
    files = {each: each.read_bytes() for each in (tmp_path / "b").rglob("*") if each.is_file()}
    restore(tmp_path / "b", tmp_path / "r")
    assert files == {
        each: each.read_bytes() for each in (tmp_path / "b").rglob("*") if each.is_file()
    }


def damaged(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("what", ["entry", "open entry", "missing", "cursor", "sequences"])
def test_a_damaged_backup_is_not_restored(tmp_path: Path, what: str) -> None:
    options = BrokerOptions(
        managed_ledger_max_entries_per_ledger=5, broker_deduplication_enabled=True
    )
    with opened(tmp_path / "f", options) as client:
        publish(client, 0, 8)
        consumer = subscribed(client)
        consumer.acknowledge(consumer.receive())
    with opened(tmp_path / "f", options) as client:
        publish(client, 8, 10)
        backup(tmp_path / "f", tmp_path / "b")
    ledgers = sorted((tmp_path / "b" / "ledgers").rglob("*.ledger"))
    if what == "entry":
        damaged(ledgers[0], 4096 + 40)
    elif what == "open entry":
        damaged(ledgers[-1], 4096 + 40)
    elif what == "missing":
        ledgers[0].unlink()
    elif what == "cursor":
        (found,) = (tmp_path / "b" / "cursors").iterdir()
        damaged(found, 20)
    else:
        (found,) = (tmp_path / "b" / "deduplication").iterdir()
        damaged(found, 90)
    with pytest.raises(errors.CorruptDataError, match="allow_damage"):
        restore(tmp_path / "b", tmp_path / "r")
    assert not (tmp_path / "r").exists() and left_over(tmp_path) == []
    found_damage = restore(tmp_path / "b", tmp_path / "r", allow_damage=True).damage
    assert found_damage, what
    with opened(tmp_path / "r", options) as client:
        assert client.admin.topics.get_list()


# Interrupted -------------------------------------------------------------------------------------


def test_a_copy_that_is_interrupted_when_it_has_its_name_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "f") as client:
        publish(client, 0, 40)
        rename = os.rename

        def then_ctrl_c(source: str, target: str) -> None:
            rename(source, target)
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "rename", then_ctrl_c)
        with pytest.raises(KeyboardInterrupt):
            backup(tmp_path / "f", tmp_path / "b")
        monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "f"]
    assert restore(tmp_path / "b", tmp_path / "r").messages == 40


def test_a_target_that_leads_into_the_folder_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "f") as client:
        publish(client, 0, 1)
        (tmp_path / "by").symlink_to(tmp_path / "f")
        with pytest.raises(errors.FolderError, match="inside of it"):
            backup(tmp_path / "f", tmp_path / "by" / "b")
    assert not (tmp_path / "f" / "b").exists()


def test_an_interrupted_copy_leaves_nothing(tmp_path: Path) -> None:
    class Stop(BaseException):
        pass

    def stop(done: int, total: int) -> None:
        raise Stop

    with opened(tmp_path / "f") as client:
        publish(client, 0, 8)
        before = sorted(os.listdir(tmp_path))
        with pytest.raises(Stop):
            backup(tmp_path / "f", tmp_path / "b", progress=stop)
        assert sorted(os.listdir(tmp_path)) == before
        assert not inspect(client).catalogue.state.leases  # nothing is held back
        backup(tmp_path / "f", tmp_path / "b")
        with pytest.raises(Stop):
            restore(tmp_path / "b", tmp_path / "r", progress=stop)
        assert sorted(os.listdir(tmp_path)) == sorted([*before, "b"])


def test_progress_is_told_in_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(tmp_path / "f") as client:
        publish(client, 0, 8)
        told: list[tuple[int, int]] = []
        backup(tmp_path / "f", tmp_path / "b", progress=lambda *each: told.append(each))
        assert [done for done, _ in told] == sorted(done for done, _ in told)
        assert told[-1][0] == told[-1][1] > 0
        assert all(done < total for done, total in told[:-1])
    restore(tmp_path / "b", tmp_path / "r", progress=True)
    assert "bytes" in capsys.readouterr().err
    with pytest.raises(ValueError, match="progress"):
        backup(tmp_path / "f", tmp_path / "c", progress="yes")


KILLED = """
import sys
from pulsarx.backups import backup
def wait(done, total):
    print("copying")
    sys.stdin.readline()
backup(sys.argv[1], sys.argv[2], progress=wait)
"""


@pytest.mark.standard
def test_a_killed_copy_leaves_what_can_be_removed(tmp_path: Path) -> None:
    with opened(tmp_path / "f") as client:
        publish(client, 0, 8)
        with ChildProcess(KILLED, tmp_path / "f", tmp_path / "b") as child:
            assert child.line() == "copying"
            child.kill()
        assert not (tmp_path / "b").exists() and len(left_over(tmp_path)) == 1
        with pytest.raises(errors.FolderError):
            pulsarx.Client(tmp_path / left_over(tmp_path)[0], read_only=True)
        backup(tmp_path / "f", tmp_path / "b")
        publish(client, 8, 9)
        assert read(client) == numbers(0, 9)
    restore(tmp_path / "b", tmp_path / "r")
    assert contents(tmp_path / "r") == numbers(0, 8)


# What the system refuses --------------------------------------------------------------------------

PATCHED = ("mkdir", "fsync", "pread", "write", "open")  # calls of Python's os
PLANNED = ("open", "write", "flush", "flush_directory", "size", "read")  # those of the core


@pytest.mark.standard
@pytest.mark.parametrize("work, error", [(backup, errno.ENOSPC), (restore, errno.EIO)])
@pytest.mark.parametrize("operation", [*PATCHED, *(f"core {each}" for each in PLANNED)])
def test_whatever_call_is_refused_it_is_said_as_one_of_ours_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, work: Any, error: int
) -> None:
    """A folder, the catalogue and the marker of a copy that could not be made came out as bare
    OSErrors."""
    with opened(tmp_path / "f") as client:
        client.admin.namespaces.set_deduplication("public/default", True)
        publish(client, 0, 12)
        subscribed(client).close()
    control_plane.load("pulsarx.backups.copying")
    real = getattr(os, operation, None)
    refused, happened, call = 0, True, 0
    while happened:
        call += 1
        count, left = 0, call
        # A copy of its own: without an owner each backup commits a lease.
        source, target = tmp_path / f"f{call}", tmp_path / "b"
        shutil.copytree(tmp_path / "f", source)

        def refuse(path: Any, *arguments: Any, **options: Any) -> Any:
            nonlocal count, left
            count, left = count + 1, left - 1
            if left == 0:
                raise OSError(error, os.strerror(error), path)
            return real(path, *arguments, **options)

        with fault_plan() as plan, monkeypatch.context() as patch:
            if real is None:
                plan.fail(operation.removeprefix("core "), call, error=error)
            else:
                patch.setattr(os, operation, refuse)
            try:
                found = work(source, target)
            except errors.CorruptDataError:
                assert work is restore  # what was copied could not be read
                refused += 1
            except (errors.StorageError, errors.FolderError):
                refused += 1
            else:
                assert found.messages == 12
            if real is None:
                count = plan.calls(operation.removeprefix("core "))
            happened = count >= call
        shutil.rmtree(source)
        made = [each.name for each in tmp_path.iterdir() if each.name != "f"]
        assert made in ([], ["b"])
        if made:
            assert restore(target, tmp_path / "r").messages == 12
            shutil.rmtree(target)
            shutil.rmtree(tmp_path / "r")
    assert refused


def test_an_error_of_the_callers_progress_is_its_own(tmp_path: Path) -> None:
    """It came out as a StorageError of the copy."""
    with opened(tmp_path / "f") as client:
        publish(client, 0, 3)

    def tell(done: int, total: int) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        backup(tmp_path / "f", tmp_path / "b", progress=tell)
    assert [each.name for each in tmp_path.iterdir()] == ["f"]
