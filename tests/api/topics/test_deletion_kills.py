"""Facts about deleting and terminating when the owner dies on the way: it is done, or nothing is.

The owner is a forked process that dies at a file operation, at each one in turn.
"""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from topic_reading import whole_topic

import pulsarx
from pulsarx import InitialPosition, MessageId, errors
from pulsarx._pycore.ground import file_system
from pulsarx.testing.faults import fault_plan

OPTIONS = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=3)
OPERATIONS = ("open", "write", "flush", "link", "unlink", "flush_directory", "close")
Work = Callable[[pulsarx.Client], object]


def opened(folder: Path) -> pulsarx.Client:
    return pulsarx.Client(folder, broker_options=OPTIONS)


def dies_at(folder: Path, operation: str, call: int, work: Work) -> bool:
    """Do the work in an owner that is killed in front of the call-th operation, in whatever thread
    that is; False: it had no such call."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            client = opened(folder)
            client.admin.topics.get_list()
            file_system.faults_install()
            file_system.faults_add(operation, call, kind="kill")
            work(client)
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), "the work failed"
    return status != 0


def left_files(folder: Path) -> list[str]:
    found = [*(folder / "ledgers").rglob("*.ledger"), *(folder / "cursors").iterdir()]
    return sorted(each.name for each in found)


def prepare(folder: Path) -> None:
    """Topic t: several ledgers, two subscriptions; topic p: two partitions; topic u."""
    with opened(folder) as client:
        client.admin.topics.create_partitioned_topic("p", 2)
        for topic in ("t", "u", "p"):
            for name in ("a", "b"):
                client.subscribe(topic, name).close()
            with client.create_producer(topic) as producer:
                for number in range(8):
                    producer.send(b"%d" % number)


def contents(client: pulsarx.Client) -> dict[str, list[bytes]]:
    return {name: whole_topic(client, name) for name in client.admin.topics.get_list()}


def sweep(
    tmp_path: Path, operation: str, work: Work, check: Callable[[pulsarx.Client, Path], bool]
) -> set[bool]:
    """Die at each call of the operation in turn; what the checks found."""
    if not (tmp_path / "before").exists():
        prepare(tmp_path / "before")
    found = set()
    for call in range(1, 200):
        folder = tmp_path / "data"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(tmp_path / "before", folder)
        died = dies_at(folder, operation, call, work)
        with opened(folder) as client:
            found.add(check(client, folder))
        if not died:
            return found
    raise AssertionError("the sweep did not end")


@pytest.mark.standard
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_killed_deletion_leaves_all_or_nothing(tmp_path: Path, operation: str) -> None:
    before: dict[str, list[bytes]] = {}

    def delete(client: pulsarx.Client) -> bool:
        client.admin.topics.delete("t")
        return True

    def check(client: pulsarx.Client, folder: Path) -> bool:
        """Whether it was deleted."""
        found = contents(client)
        gone = "persistent://public/default/t" not in found
        expected = {name: data for name, data in before.items() if not (gone and name[-1] == "t")}
        assert found == expected
        if not gone:
            assert client.admin.topics.get_subscriptions("t") == ["a", "b"]
            client.admin.topics.delete("t")
        client.close()
        assert left_files(folder) == others
        return gone

    prepare(tmp_path / "before")
    shutil.copytree(tmp_path / "before", tmp_path / "model")
    with opened(tmp_path / "model") as client:
        before |= contents(client)
        client.admin.topics.delete("t")
    others = left_files(tmp_path / "model")
    assert True in sweep(tmp_path, operation, delete, check)


@pytest.mark.standard
@pytest.mark.parametrize("operation", ["open", "write", "link", "unlink"])
def test_a_killed_deletion_of_partitions_leaves_all_or_nothing(
    tmp_path: Path, operation: str
) -> None:
    def delete(client: pulsarx.Client) -> bool:
        client.admin.topics.delete_partitioned_topic("p")
        return True

    def check(client: pulsarx.Client, folder: Path) -> bool:
        topics = client.admin.topics
        gone = topics.get_partitioned_topic_list() == []
        assert len(topics.get_list()) == (2 if gone else 4)
        if not gone:
            assert topics.partitioned_stats("p")["messages"] == 8
            topics.delete_partitioned_topic("p")
        topics.delete("t")
        topics.delete("u")
        client.close()
        assert left_files(folder) == []
        return gone

    assert True in sweep(tmp_path, operation, delete, check)


@pytest.mark.standard
@pytest.mark.parametrize("operation", ["link", "unlink"])
def test_a_killed_deletion_of_a_namespace_leaves_all_or_nothing(
    tmp_path: Path, operation: str
) -> None:
    def delete(client: pulsarx.Client) -> bool:
        client.admin.namespaces.delete_namespace("public/default", force=True)
        return True

    def check(client: pulsarx.Client, folder: Path) -> bool:
        gone = client.admin.namespaces.get_namespaces() == []
        if not gone:
            assert len(contents(client)) == 4
            delete(client)
        client.close()
        assert left_files(folder) == []
        return gone

    assert True in sweep(tmp_path, operation, delete, check)


@pytest.mark.standard
@pytest.mark.parametrize("operation", ["flush_directory", "link"])
def test_a_killed_termination_is_one_or_is_none(tmp_path: Path, operation: str) -> None:
    def terminate(client: pulsarx.Client) -> bool:
        producer = client.create_producer("t")
        producer.send(b"8")
        producer.send(b"9")
        client.admin.topics.terminate("t")
        return True

    def check(client: pulsarx.Client, folder: Path) -> bool:
        found = whole_topic(client)
        assert found == [b"%d" % number for number in range(len(found))]
        assert len(found) >= 8
        try:
            client.create_producer("t").send(b"more")
        except errors.TopicTerminated:
            assert len(found) == 10
            assert client.admin.topics.terminate("t") == client.admin.topics.get_last_message_id(
                "t"
            )
            return True
        return False

    assert True in sweep(tmp_path, operation, terminate, check)


@pytest.mark.standard
@pytest.mark.parametrize("operation", ["link", "unlink"])
def test_a_killed_truncation_acknowledges_before_it_removes(tmp_path: Path, operation: str) -> None:
    def truncate(client: pulsarx.Client) -> bool:
        client.admin.topics.truncate("t")
        return True

    def check(client: pulsarx.Client, folder: Path) -> bool:
        left = whole_topic(client)
        assert left == [b"%d" % number for number in range(8 - len(left), 8)]
        client.create_producer("t").send(b"new")
        consumer = client.subscribe("t", "a")
        received = [each.data() for each in consumer.receive_many(20, 1000)]
        assert received[-1] == b"new"
        assert received[:-1] in ([], left)
        return left == []

    assert True in sweep(tmp_path, operation, truncate, check)


@pytest.mark.parametrize("operation", ["open", "link"])
def test_a_deletion_that_the_disk_refuses_changes_nothing(tmp_path: Path, operation: str) -> None:
    prepare(tmp_path / "data")
    with opened(tmp_path / "data") as client:
        before = contents(client)
        consumer = client.subscribe("t", "a")
        with fault_plan() as plan:
            plan.fail(operation, error=errno.ENOSPC, sticky=True)
            with pytest.raises(errors.StorageFullError):
                client.admin.topics.delete("t", force=True)
        assert contents(client) == before
        assert len(consumer.receive_many(10, 1000)) == 8
        client.create_producer("t").send(b"8")
        client.admin.topics.delete("t", force=True)
        assert len(contents(client)) == 3


def test_a_file_that_cannot_be_removed_is_removed_by_the_next_owner(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prepare(tmp_path / "data")
    with opened(tmp_path / "data") as client:
        with fault_plan() as plan:
            plan.fail("unlink", error=errno.EIO, sticky=True)
            client.admin.topics.delete("t")
        assert "which is gone, stay" in caplog.text
        assert "persistent://public/default/t" not in client.admin.topics.get_list()
        count = len(left_files(tmp_path / "data"))
    with opened(tmp_path / "data") as client:
        client.create_reader("u", MessageId.earliest).close()
    assert len(left_files(tmp_path / "data")) < count
    with opened(tmp_path / "data") as client:
        for topic in ("u", "p-partition-0", "p-partition-1"):
            client.subscribe(topic, "x", initial_position=InitialPosition.Earliest).close()
        client.admin.namespaces.delete_namespace("public/default", force=True)
    assert left_files(tmp_path / "data") == []
