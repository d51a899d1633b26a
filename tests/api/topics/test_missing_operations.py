"""Facts about file systems, kernels and sandboxes that lack an operation: hard links (exFAT, SMB,
virtiofs, 9p, many of FUSE), allocation, nameless files in memory, flushing of directories. Another
one takes its place; where there is none the text does not blame the rights of the user."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from staged_ledgers import stage
from topic_reading import whole_topic

import pulsarx
from pulsarx import errors
from pulsarx.broker.folder import data_directory
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.testing import inspect
from pulsarx.testing.faults import FaultPlan, fault_plan

SMALL = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
MISSING = [
    ("link", errno.EPERM),
    ("link", errno.EOPNOTSUPP),
    ("link", errno.ENOSYS),
    ("link", errno.EMLINK),
    ("allocate", errno.ENOSYS),
    ("allocate", errno.EOPNOTSUPP),
    ("allocate", errno.EPERM),
    ("flush_directory", errno.EINVAL),
    ("punch_hole", errno.EOPNOTSUPP),
]
UNKNOWN = {"link": errno.EPERM, "rename_new": errno.EINVAL}
# Says what was confirmed; killed in front of one call on a file, or not at all.
PUBLISHING = """
import errno, sys, pulsarx
from pulsarx.testing.faults import fault_plan
folder, operation, call = sys.argv[1], sys.argv[2], int(sys.argv[3])
with fault_plan() as plan:
    plan.fail("link", error=errno.EPERM, sticky=True)
    if operation != "rename_new":  # else a claim takes its place
        plan.fail("rename_new", error=errno.EINVAL, sticky=True)
    plan.kill(operation, call)
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    with pulsarx.Client(folder, broker_options=options) as client:
        producer = client.create_producer("t")
        for number in range(5):
            producer.send(b"%d" % number)
            print(number, flush=True)
print("closed", flush=True)
"""


def lived(folder: Path, durability: str = "sync") -> None:
    """A folder that is made, used in all ways that give files names, closed and opened again."""
    with pulsarx.Client(folder, broker_options=SMALL, durability=durability) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t")
        for number in range(10):
            producer.send(b"%d" % number)
            consumer.acknowledge(consumer.receive(60_000))
        inspect(client).catalogue.checkpoint()
    with pulsarx.Client(folder, durability=durability) as client:
        client.create_producer("u").send(b"later")
        assert whole_topic(client, "u") == [b"later"]
        consumer = client.subscribe("t", "s")
        with pytest.raises(errors.Timeout):
            consumer.receive(1)


def make_topics(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        for topic in "tu":
            client.create_producer(topic).close()


@pytest.mark.parametrize("durability", ["sync", "os"])
@pytest.mark.parametrize(("operation", "number"), MISSING)
def test_a_folder_lives_without_it(
    folder: Path, operation: str, number: int, durability: str
) -> None:
    with fault_plan() as plan:
        plan.fail(operation, error=number, sticky=True)
        lived(folder, durability)
    lived(folder.with_name("another"), durability)
    with pulsarx.Client(folder) as client:  # with the operation again
        client.create_producer("u").send(b"last")
        assert whole_topic(client, "u") == [b"later", b"last"]


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EPERM])
def test_memory_needs_no_files_of_the_kernel_without_a_name(number: int) -> None:
    with fault_plan() as plan:
        plan.fail("open_memory", error=number, sticky=True)
        with pulsarx.Client("memory:") as client:
            client.create_producer("t").send(b"x" * 100_000)
            assert whole_topic(client) == [b"x" * 100_000]


def miss(plan: FaultPlan, *operations: str) -> None:
    for operation in operations:
        plan.fail(operation, error=UNKNOWN[operation], sticky=True)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM])
def test_a_folder_lives_where_no_operation_tells_whether_a_name_is_taken(
    folder: Path, number: int
) -> None:
    """As on 9p and some of FUSE, and in sandboxes, which answer EPERM."""
    with fault_plan() as plan:
        miss(plan, "link")
        plan.fail("rename_new", error=number, sticky=True)
        lived(folder)


@pytest.mark.parametrize("missing", [["link"], ["link", "rename_new"]])
def test_no_two_commits_have_one_number_without_hard_links(
    folder: Path, missing: list[str]
) -> None:
    with fault_plan() as plan:
        miss(plan, *missing)
        with pulsarx.Client(folder) as client:
            files = inspect(client).catalogue._directory.files
            for name in ("first", "second"):
                files.create(f"{folder}/{name}", name.encode())
            files.take_name(f"{folder}/first", f"{folder}/name")
            with pytest.raises(FileExistsError):
                files.take_name(f"{folder}/second", f"{folder}/name")
            assert files.read(f"{folder}/name") == b"first"
            assert (folder / "second").exists()


def test_a_claim_that_was_left_refuses_as_a_name_does(folder: Path) -> None:
    with fault_plan() as plan:
        miss(plan, "link", "rename_new")
        with pulsarx.Client(folder) as client:
            files = inspect(client).catalogue._directory.files
            files.create(f"{folder}/third", b"third")
            files.create(f"{folder}/other.claim.tmp", b"")
            with pytest.raises(FileExistsError):
                files.take_name(f"{folder}/third", f"{folder}/other")
            assert not (folder / "other").exists() and (folder / "third").exists()


def test_an_owner_that_was_paused_replaces_no_commit_of_the_next(folder: Path) -> None:
    """Without hard links it looked for the name, and renamed: a claim kept out only who lived, and
    the lock is none on some of those file systems."""
    refused: list[OSError] = []
    with fault_plan() as plan:
        miss(plan, "link")
        with pulsarx.Client(folder) as client:
            files = inspect(client).catalogue._directory.files
            for name in ("paused", "next"):
                files.create(f"{folder}/{name}", name.encode())

            def go_on() -> None:
                try:
                    files.take_name(f"{folder}/paused", f"{folder}/name")
                except OSError as error:
                    refused.append(error)

            plan.stall("rename_new")
            paused = threading.Thread(target=go_on)
            paused.start()
            while not plan.stalled():
                assert paused.is_alive()
            for claim in folder.glob("*.claim.tmp"):
                claim.unlink()
            files.take_name(f"{folder}/next", f"{folder}/name")
            plan.release()
            paused.join()
            assert [type(each) for each in refused] == [FileExistsError]
            assert files.read(f"{folder}/name") == b"next"


def test_a_claim_of_one_that_was_killed_does_not_keep_a_folder_from_being_made(
    folder: Path,
) -> None:
    """The opening behind the kill failed."""
    folder.mkdir()
    (folder / "PULSARX.claim.tmp").touch()
    with fault_plan() as plan:
        miss(plan, "link", "rename_new")
        with pulsarx.Client(folder) as client:
            client.create_producer("t").send(b"x")
            assert whole_topic(client) == [b"x"]


@pytest.mark.parametrize("payload_size", [10, 3_000_000])
def test_staged_ledgers_are_copied_where_they_cannot_be_linked(
    folder: Path, payload_size: int
) -> None:
    make_topics(folder)
    payloads = [b"1" * payload_size, b"2" * payload_size]
    files = [stage(folder, "t", payloads), stage(folder, "u", payloads[:1])]
    with fault_plan() as plan:
        plan.fail("link", error=errno.EPERM, sticky=True)
        attach(folder, Transaction("query", 0), files)
    with pulsarx.Client(folder) as client:
        assert whole_topic(client, "t") == payloads
        assert whole_topic(client, "u") == payloads[:1]
    assert not list((folder / "staging").rglob("*.ledger"))


@pytest.mark.parametrize("operation", ["read", "write", "flush", "open"])
def test_an_attach_by_copy_that_fails_is_repeated_and_comes_once(
    tmp_path: Path, operation: str
) -> None:
    refused = 0
    for call in range(1, 8):
        folder = tmp_path / str(call)
        make_topics(folder)
        file = stage(folder, "t", [b"1"])
        with pulsarx.Client(folder), fault_plan() as plan:
            plan.fail("link", error=errno.EPERM, sticky=True)
            plan.fail(operation, call, error=errno.EIO)
            try:
                attach(folder, Transaction("query", 0), [file])
            except errors.PulsarException:
                refused += 1
        attach(folder, Transaction("query", 0), [file])
        with pulsarx.Client(folder) as client:
            assert whole_topic(client) == [b"1"]
    assert refused


def test_without_locks_the_file_system_is_named_and_not_the_user(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> int:
        raise OSError(errno.ENOLCK, "No locks available", path)

    monkeypatch.setattr(data_directory, "owner_lock_take", refuse)
    with pytest.raises(errors.FolderError, match="file system does not allow this") as refused:
        pulsarx.Client(folder)
    assert "writable" not in str(refused.value)


def test_without_mappings_the_file_system_is_named(folder: Path) -> None:
    with fault_plan() as plan:
        plan.fail("map", error=errno.ENODEV, sticky=True)
        with pytest.raises(errors.StorageError, match="file system does not allow this"):
            pulsarx.Client(folder)


@pytest.mark.standard
@pytest.mark.parametrize("operation", ["open", "rename", "rename_new", "unlink", "write", "flush"])
def test_kills_lose_nothing_where_there_are_no_hard_links(tmp_path: Path, operation: str) -> None:
    call = 0
    said: list[str] = []
    while "closed" not in said:
        call += 1
        assert call < 300
        folder = tmp_path / str(call)
        with ChildProcess(PUBLISHING, folder, operation, call) as child:
            said = child.rest()
        with pulsarx.Client(folder, broker_options=SMALL) as client:
            found: list[Any] = whole_topic(client)
            confirmed = [line.encode() for line in said if line != "closed"]
            assert found[: len(confirmed)] == confirmed
            assert len(found) <= len(confirmed) + 1
            client.create_producer("t").send(b"after")
        assert not [path.name for path in folder.rglob("*.tmp")]
    assert call > 2
