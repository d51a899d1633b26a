"""Facts about small ledgers that are merged: everything about them is as it was, but the files."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest
from damaged_ledgers import fill, flip
from support.dying_owners import dies_at
from topic_reading import numbers, read_all, whole_topic

import pulsarx
import pulsarx.backups
from pulsarx import BrokerOptions, MessageId, errors
from pulsarx.broker.scan.lease import lease
from pulsarx.broker.scan.plan import plan
from pulsarx.broker.scan.read_range import read_range
from pulsarx.broker.topics import ledger_merge
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

OPTIONS = BrokerOptions(managed_ledger_max_entries_per_ledger=2)
COUNT = 20
ALL = numbers(COUNT)
OPERATIONS = ("write", "flush", "flush_directory", "link", "unlink")
MERGED = {"ledgers": COUNT // 2 - 1, "files": 1}  # all but the open one


def opened(folder: Path, **options: Any) -> pulsarx.Client:
    return pulsarx.Client(folder, broker_options=OPTIONS, **options)


def publish(client: pulsarx.Client, values: list[bytes], topic: str = "t") -> list[MessageId]:
    """Two to a ledger; those before the last one are sealed."""
    with client.create_producer(topic) as producer:
        found = [producer.send(value) for value in values]
    inspect(client).settle()
    return found


def prepare(folder: Path) -> list[MessageId]:
    with opened(folder) as client:
        client.admin.namespaces.set_retention("public/default", -1, -1)
        client.admin.topics.create_non_partitioned_topic("t")
        return publish(client, ALL)


def files(folder: Path) -> set[int]:
    return {int(path.stem) for path in (folder / "ledgers").rglob("*.ledger")}


def named_files(client: pulsarx.Client) -> set[int]:
    return {
        each.file_id
        for topic in inspect(client).catalogue.state.topics.values()
        for each in topic.ledgers
    }


def test_what_a_job_has_leased_is_not_merged(tmp_path: Path) -> None:
    """Tasks of other hosts may have the file mapped over a network file system."""
    clock = pulsarx.ManualClock()
    with opened(tmp_path, clock=clock) as client:
        client.admin.namespaces.set_retention("public/default", -1, -1)
        publish(client, ALL)
        topic = "persistent://public/default/t"
        ids = [each["ledger_id"] for each in client.admin.topics.stats("t")["ledgers"]]
        lease(tmp_path, "job", {topic: ids[2:4]}, 60_000)
        assert client.admin.topics.merge_ledgers("t") == {"ledgers": COUNT // 2 - 3, "files": 1}
        assert {ids[2], ids[3]} < files(tmp_path)
        clock.advance(61)
        assert client.admin.topics.merge_ledgers("t") == {"ledgers": 2, "files": 1}
        assert whole_topic(client) == ALL


def test_what_is_leased_while_it_is_merged_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as client:
        client.admin.namespaces.set_retention("public/default", -1, -1)
        publish(client, ALL)
        ids = [each["ledger_id"] for each in client.admin.topics.stats("t")["ledgers"]]
        write = ledger_merge._Merge._write

        def leasing(merge: Any, whole: Any) -> None:
            write(merge, whole)
            lease(tmp_path, "job", {"persistent://public/default/t": ids[1:3]}, 60_000)

        monkeypatch.setattr(ledger_merge._Merge, "_write", leasing)
        assert client.admin.topics.merge_ledgers("t") == {"ledgers": COUNT // 2 - 3, "files": 1}
        assert {ids[1], ids[2]} < files(tmp_path)
        assert whole_topic(client) == ALL


def without_readers(client: pulsarx.Client) -> dict[str, Any]:
    """The statistics of topic t, but for readers, which have read on."""
    found: dict[str, Any] = client.admin.topics.stats("t")
    return {name: figures for name, figures in found.items() if name != "readers"}


def test_merged_ledgers_are_read_under_the_ids_they_had(tmp_path: Path) -> None:
    with opened(tmp_path) as client:
        client.admin.namespaces.set_retention("public/default", -1, -1)
        ids = publish(client, ALL)
        reader = client.create_reader("t", MessageId.earliest)
        assert [reader.read_next().data() for _ in range(3)] == ALL[:3]
        reading = pulsarx.Client(tmp_path, read_only=True)
        beside = reading.create_reader("t", MessageId.earliest)
        assert beside.read_next().data() == ALL[0]
        before = without_readers(client)
        assert client.admin.topics.merge_ledgers("t") == MERGED
        assert len(files(tmp_path)) < 5 and files(tmp_path) >= named_files(client)
        # One that is in the middle, new ones, those beside the owner, and from any id.
        assert [message.data() for message in reader.read_many(100, 0)] == ALL[3:]
        assert [message.message_id() for message in read_all(client)] == ids
        assert [message.data() for message in beside.read_many(100, 0)] == ALL[1:]
        reading.close()
        assert without_readers(client) == before
        with pulsarx.Client(tmp_path, read_only=True) as other:
            assert [message.message_id() for message in read_all(other)] == ids
        for at in (0, 7, 13):
            one = client.create_reader("t", ids[at], start_message_id_inclusive=True)
            assert one.read_next().data() == ALL[at]
        assert client.admin.topics.merge_ledgers("t") == {"ledgers": 0, "files": 0}
    with opened(tmp_path) as client:
        assert [message.message_id() for message in read_all(client)] == ids
        publish(client, [b"more"] * 4)
        assert client.admin.topics.merge_ledgers("t")["files"] == 1
        assert whole_topic(client) == ALL + [b"more"] * 4
    assert pulsarx.backups.check(tmp_path).damage == []


def test_cursors_and_retention_do_not_notice(tmp_path: Path) -> None:
    """Acknowledged one by one behind the merge, the file goes with the last of its ledgers."""
    with opened(tmp_path) as client:
        consumer = client.subscribe("t", "s", pulsarx.ConsumerType.Shared)
        publish(client, ALL)
        first = [consumer.receive() for _ in range(5)]
        consumer.acknowledge(first[1])
        assert client.admin.topics.merge_ledgers("t") == MERGED
        (merged_id,) = (
            inspect(client).catalogue.state.topics["persistent://public/default/t"].merged
        )
        rest = [consumer.receive() for _ in range(COUNT - 5)]
        assert [message.data() for message in first + rest] == ALL
        for message in [first[0], *first[2:], *rest[:-2]]:
            assert merged_id in files(tmp_path)
            consumer.acknowledge(message)
        client.admin.topics.stats("t")
        inspect(client).topic("t").trim()
        assert merged_id not in files(tmp_path)
        assert inspect(client).catalogue.state.deletions == {}
        assert files(tmp_path) >= named_files(client)
    with opened(tmp_path) as client:
        consumer = client.subscribe("t", "s", pulsarx.ConsumerType.Shared)
        assert [consumer.receive().data() for _ in range(2)] == ALL[-2:]


def test_a_job_that_was_planned_before_reads_all_of_it(tmp_path: Path) -> None:
    prepare(tmp_path)
    with opened(tmp_path) as client:
        planned = plan(inspect(client).broker, "t", columns=["value"])
        assert client.admin.topics.merge_ledgers("t")["files"] == 1
        found = [row for each in planned for row in _values(each)]
        assert found == ALL
        again = plan(inspect(client).broker, "t", columns=["value"])
        assert {each.path for each in again} != {each.path for each in planned}
        assert [row for each in again for row in _values(each)] == ALL
        client.admin.topics.delete("t", force=True)
        with pytest.raises(errors.FolderError, match="removed by retention"):
            _values(planned[0])


def _values(planned: Any) -> list[bytes]:
    pyarrow = pytest.importorskip("pyarrow")
    found: list[bytes] = []
    for batch in read_range(planned):
        found += pyarrow.record_batch(batch).column(0).to_pylist()
    return found


def test_a_backup_has_them(tmp_path: Path) -> None:
    prepare(tmp_path / "data")
    with opened(tmp_path / "data") as client:
        client.admin.topics.merge_ledgers("t")
        contents = pulsarx.backups.backup(tmp_path / "data", tmp_path / "copy")
    assert (contents.messages, contents.damage) == (COUNT, [])
    restored = pulsarx.backups.restore(tmp_path / "copy", tmp_path / "again")
    assert (restored.messages, restored.damage) == (COUNT, [])
    with opened(tmp_path / "again") as client:
        assert whole_topic(client) == ALL


def test_a_deleted_topic_leaves_no_merged_file(tmp_path: Path) -> None:
    prepare(tmp_path)
    with opened(tmp_path) as client:
        client.admin.topics.merge_ledgers("t")
        client.admin.topics.delete("t", force=True)
        inspect(client).settle()
        assert files(tmp_path) == set()
        assert inspect(client).catalogue.state.deletions == {}


def test_what_is_damaged_stays_as_it_is(tmp_path: Path) -> None:
    """A flipped bit is told by each reader, before a merge and behind it."""
    ids = prepare(tmp_path)
    broken = ids[4].ledger_id()
    path = tmp_path / "ledgers" / f"{broken & 255:02x}" / f"{broken}.ledger"
    flip(path, 0, "payload")
    with opened(tmp_path) as client:
        merged = client.admin.topics.merge_ledgers("t")
        assert merged["ledgers"] == COUNT // 2 - 1 and broken in files(tmp_path)
    (damage,) = pulsarx.backups.check(tmp_path).damage
    assert (damage.ledger_id, damage.messages) == (broken, 1)


def test_damage_in_a_merged_file_is_of_one_ledger(tmp_path: Path) -> None:
    ids = prepare(tmp_path)
    with opened(tmp_path) as client:
        client.admin.topics.merge_ledgers("t")
        (merged_id,) = (
            inspect(client).catalogue.state.topics["persistent://public/default/t"].merged
        )
        records = inspect(client).catalogue.state.topics["persistent://public/default/t"].ledgers
        third = records[2]
    path = tmp_path / "ledgers" / f"{merged_id & 255:02x}" / f"{merged_id}.ledger"
    at = third.merged_at + 4096 + 80
    fill(path, at, at + 4, 7)
    (damage,) = pulsarx.backups.check(tmp_path).damage
    assert (damage.ledger_id, damage.messages) == (third.ledger_id, 1)
    assert ids[4].ledger_id() == third.ledger_id


def test_files_that_could_not_be_removed_go_when_the_merged_one_has_gone(tmp_path: Path) -> None:
    """The catalogue forgot them with it, and they stayed for ever."""
    stayed = 0
    for call in range(1, 8):
        folder = tmp_path / str(call)
        with opened(folder) as client:
            consumer = client.subscribe("t", "s")
            publish(client, ALL)
            with fault_plan() as plan_of_faults:
                plan_of_faults.fail("unlink", call=call, error=errno.EBUSY)
                assert client.admin.topics.merge_ledgers("t") == MERGED
            stayed += bool(files(folder) - named_files(client))
            consumer.acknowledge_cumulative([consumer.receive() for _ in ALL][-1])
            inspect(client).settle()
        with opened(folder) as client:
            client.admin.topics.stats("t")
            inspect(client).settle()
            assert files(folder) == named_files(client)
            assert inspect(client).catalogue.state.deletions == {}
    assert stayed > 1


def test_in_memory_there_is_nothing_to_merge() -> None:
    with pulsarx.Client("memory:", broker_options=OPTIONS) as client:
        client.create_reader("t", MessageId.earliest)
        publish(client, ALL)
        assert client.admin.topics.merge_ledgers("t") == {"ledgers": 0, "files": 0}
        with pytest.raises(ValueError, match="size_max is 0"):
            client.admin.topics.merge_ledgers("t", 0)
        with pytest.raises(errors.TopicNotFound):
            client.admin.topics.merge_ledgers("missing")


def check(folder: Path) -> None:
    """What a next owner finds."""
    with opened(folder) as client:
        assert whole_topic(client) == ALL
        inspect(client).settle()
        # What was left on the way is gone, and nothing that is needed.
        assert files(folder) == named_files(client)
        client.admin.topics.merge_ledgers("t")
        assert whole_topic(client) == ALL
        assert files(folder) == named_files(client) and len(files(folder)) < 5
        assert inspect(client).catalogue.state.deletions == {}
    assert pulsarx.backups.check(folder).damage == []


def merge(client: pulsarx.Client) -> object:
    return client.admin.topics.merge_ledgers("t")


@pytest.mark.standard
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_killed_merge_loses_nothing(tmp_path: Path, operation: str) -> None:
    prepare(tmp_path / "before")
    for call in range(1, 100):
        folder = tmp_path / "data"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "before", folder)
        died = dies_at(folder, opened, merge, operation, call)
        check(folder)
        if not died:
            return
    raise AssertionError("the sweep did not end")


@pytest.mark.standard
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_refused_merge_loses_nothing(tmp_path: Path, operation: str, error: int) -> None:
    prepare(tmp_path / "before")
    for call in range(1, 100):
        folder = tmp_path / "data"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "before", folder)
        with opened(folder) as client:
            client.admin.topics.stats("t")
            inspect(client).settle()
            with fault_plan() as plan_of_faults:
                plan_of_faults.fail(operation, call=call, error=error)
                try:
                    client.admin.topics.merge_ledgers("t")
                except errors.PulsarException:
                    pass
                ended = plan_of_faults.calls(operation) < call
            assert whole_topic(client) == ALL
        check(folder)
        if ended:
            return
    raise AssertionError("the sweep did not end")
