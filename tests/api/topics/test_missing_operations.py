"""Facts about file systems, kernels and sandboxes that lack an operation: hard links (exFAT, SMB,
virtiofs, 9p, many of FUSE), allocation, nameless files in memory, flushing of directories. Another
one takes its place; where there is none the text does not blame the rights of the user."""

from __future__ import annotations

import errno
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
from pulsarx.testing.faults import fault_plan

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
# Says what was confirmed; killed in front of one call on a file, or not at all.
PUBLISHING = """
import errno, sys, pulsarx
from pulsarx.testing.faults import fault_plan
folder, operation, call = sys.argv[1], sys.argv[2], int(sys.argv[3])
with fault_plan() as plan:
    plan.fail("link", error=errno.EPERM, sticky=True)
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


def test_no_two_commits_have_one_number_without_hard_links(folder: Path) -> None:
    """A claim that was left, and a name that is taken, refuse as a hard link does."""
    with fault_plan() as plan:
        plan.fail("link", error=errno.EPERM, sticky=True)
        with pulsarx.Client(folder) as client:
            files = inspect(client).catalogue._directory.files
            for name in ("first", "second", "third"):
                files.create(f"{folder}/{name}", name.encode())
            files.take_name(f"{folder}/first", f"{folder}/name")
            with pytest.raises(FileExistsError):
                files.take_name(f"{folder}/second", f"{folder}/name")
            assert files.read(f"{folder}/name") == b"first"
            files.create(f"{folder}/other.claim.tmp", b"")
            with pytest.raises(FileExistsError):
                files.take_name(f"{folder}/third", f"{folder}/other")
            assert not (folder / "other").exists()
            assert (folder / "second").exists() and (folder / "third").exists()


def test_a_claim_of_one_that_was_killed_does_not_keep_a_folder_from_being_made(
    folder: Path,
) -> None:
    """The opening behind the kill failed."""
    folder.mkdir()
    (folder / "PULSARX.claim.tmp").touch()
    with fault_plan() as plan:
        plan.fail("link", error=errno.EPERM, sticky=True)
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
@pytest.mark.parametrize("operation", ["open", "rename", "unlink", "write", "flush"])
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
