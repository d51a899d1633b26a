"""Attaching more files than one request holds: they are listed in a file of the staging area."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from attach_steps import catalogue, contents, folder_of_topics, nothing_stays_open
from child_process import ChildProcess
from staged_ledgers import PREFIX, stage, staged_names

import pulsarx
from pulsarx import errors
from pulsarx.broker.control import control_frame
from pulsarx.broker.requests import attach as attaching
from pulsarx.broker.requests.attach import Transaction, attach, attached
from pulsarx.broker.requests.owner_request import TIMEOUT_MS, ask_owner
from pulsarx.broker.staging import file_list
from pulsarx.broker.staging.file_list import listed_files
from pulsarx.broker.staging.new_schema import NewSchema
from pulsarx.broker.staging.staged_file import StagedFile
from pulsarx.broker.staging.staging import collect_staging
from pulsarx.enumerations import SchemaType
from pulsarx.schema.schema import SchemaInfo

__all__ = ["folder_of_topics", "nothing_stays_open"]  # fixtures

OWNER = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
client.close()
"""
COUNT = 30


@pytest.fixture
def few_in_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a request held less than the description of three files."""
    monkeypatch.setattr(attaching, "_FILES_IN_REQUEST_MAX", 2)
    monkeypatch.setattr(control_frame, "FRAME_SIZE_MAX", 1000)


def some_files(folder: Path) -> list[StagedFile]:
    return [stage(folder, "tu"[number % 2], [b"%d" % number]) for number in range(COUNT)]


def commit_count(folder: Path) -> int:
    return catalogue(folder).state.number


@pytest.mark.usefixtures("few_in_a_request")
@pytest.mark.parametrize("owner", ["another process", "this process", "none"])
def test_more_files_than_a_request_holds_are_attached_by_one_commit(
    folder: Path, owner: str
) -> None:
    """Beside an owner they were refused when all of them were written."""
    files = some_files(folder)
    schema = NewSchema(PREFIX + "t", 0, SchemaInfo(SchemaType.STRING, "t", ""))
    with contextlib.ExitStack() as owners:
        if owner == "another process":
            assert owners.enter_context(ChildProcess(OWNER, folder)).line() == "ready"
        elif owner == "this process":
            owners.enter_context(pulsarx.Client(folder))
        before = commit_count(folder)
        result = attach(folder, Transaction("query", 3), files, schemas=[schema])
        again = attach(folder, Transaction("query", 3), files, schemas=[schema])
        # Whoever owns the folder for a request begins an epoch, which is a commit.
        assert commit_count(folder) == before + (2 if owner == "none" else 1)
    assert (result.ledger_count, result.already, again.already) == (COUNT, False, True)
    assert again == result
    assert contents(folder, "t", "u") == [
        [b"%d" % number for number in range(first, COUNT, 2)] for first in (0, 1)
    ]
    assert len(catalogue(folder).state.schemas[PREFIX + "t"]) == 1
    assert not staged_names(folder) and os.listdir(folder / "staging") == []


def test_few_files_need_no_list(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    whole = attaching.ask_owner

    def ask(folder: Any, verb: str, *given: Any) -> Any:
        asked.append(verb)
        return whole(folder, verb, *given)

    monkeypatch.setattr(attaching, "ask_owner", ask)
    monkeypatch.setattr(attaching, "_FILES_IN_REQUEST_MAX", 2)
    for batch, count in enumerate((0, 2, 3)):
        files = [stage(folder, "t", [b"x"]) for _ in range(count)]
        attach(folder, Transaction("query", batch), files)
    assert asked == ["ledgers.attach", "ledgers.attach", "ledgers.attach_list"]


def test_very_many_files_are_waited_for_longer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []
    answer = attached_answer()

    def ask(folder: Any, verb: str, arguments: Any, timeout_ms: int, known: Any) -> Any:
        waits.append(timeout_ms)
        return answer

    monkeypatch.setattr(attaching, "ask_owner", ask)
    file = stage(folder, "t", [b"x"])
    for files in ([file], [file] * 20_000):
        attach(folder, Transaction("query", 0), files)
    attach(folder, Transaction("query", 0), [file], timeout_ms=7)
    assert waits[0] < TIMEOUT_MS + 100 and waits[1] > 2 * TIMEOUT_MS and waits[2] == 7


def attached_answer() -> dict[str, Any]:
    names = attaching.AttachResult.__slots__
    return dict.fromkeys(names, 0) | {"already": False, "application": "query"}


# What is refused ----------------------------------------------------------------------------------


def ask(folder: Path, listed: dict[str, Any], **changed: Any) -> None:
    arguments = {"application": "query", "batch_id": 0, "thorough": False}
    ask_owner(folder, "ledgers.attach_list", arguments | listed | changed)


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def shortened(path: Path) -> None:
    path.write_bytes(b"".join(lines_of(path)[:-1]))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def lengthened(path: Path) -> None:
    path.write_bytes(path.read_bytes() + lines_of(path)[0])


def swapped(path: Path) -> None:
    path.write_bytes(b"".join(reversed(lines_of(path))))


def other_bytes(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"host":"', b'"host":"x', 1))


def no_json(path: Path) -> None:
    path.write_bytes(b"[" * 100_000 + b"\n")


def endless(path: Path) -> None:
    path.write_bytes(b" " * (1 << 20))


def gone(path: Path) -> None:
    path.unlink()


def link(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def linked_area(path: Path) -> None:
    moved = path.parent.parent.parent / "elsewhere"
    path.parent.rename(moved)
    path.parent.symlink_to(moved)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (shortened, errors.CorruptDataError), (cut, errors.CorruptDataError),
        (lengthened, errors.CorruptDataError), (swapped, errors.CorruptDataError),
        (other_bytes, errors.CorruptDataError), (no_json, errors.CorruptDataError),
        (endless, errors.CorruptDataError), (gone, errors.StorageError),
        (link, errors.StorageError), (linked_area, errors.StorageError),
        (pipe, errors.StorageError), (folder_instead, errors.StorageError),
    ],
)  # fmt: skip
def test_a_list_that_is_not_what_was_written_attaches_nothing(
    folder: Path, change: Callable[[Path], None], kind: type[Exception]
) -> None:
    files = [stage(folder, "t", [b"%d" % number]) for number in range(3)]
    before = commit_count(folder)
    with pulsarx.Client(folder), listed_files(folder, files) as listed:
        change(folder / "staging" / listed["job"] / listed["name"])
        with pytest.raises(kind, match=r"Nothing was attached\. Call again"):
            ask(folder, listed)
        assert attached(folder, Transaction("query", 0)) is None
    assert commit_count(folder) == before + 1
    assert attach(folder, Transaction("query", 0), files).ledger_count == 3


@pytest.mark.parametrize(
    ("document", "text"),
    [
        (7, "describes no staged file"),
        ({}, "describes no staged file"),
        ({"topic": "t"}, "not written in full"),
        ({"job": ".."}, "is a path"),
        ({"size": True}, "is no number"),
    ],
)
def test_a_line_that_describes_no_file_attaches_nothing(
    folder: Path, document: Any, text: str
) -> None:
    file = stage(folder, "t", [b"1"])
    if document:
        document = document if document == 7 else {**file.document(), **document}
    with listed_files(folder, [file]) as listed:
        line = json.dumps(document).encode() + b"\n"
        (folder / "staging" / listed["job"] / listed["name"]).write_bytes(line)
        with pytest.raises(ValueError, match=text):
            ask(folder, listed, checksum=crc32(line))
    assert attached(folder, Transaction("query", 0)) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"job": ".."}, {"job": "a/b"}, {"name": "../PULSARX"}, {"count": 0}, {"count": -1},
        {"count": file_list.FILES_MAX + 1}, {"batch_id": -1}, {"count": True}, {"checksum": "x"},
    ],
)  # fmt: skip
def test_a_request_that_names_no_list_is_refused(folder: Path, changed: dict[str, Any]) -> None:
    files = [stage(folder, "t", [b"1"])]
    with listed_files(folder, files) as listed, pytest.raises(ValueError):
        ask(folder, listed, **changed)
    assert attached(folder, Transaction("query", 0)) is None


def test_too_many_files_are_refused_before_anything_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attaching, "_FILES_IN_REQUEST_MAX", 2)
    monkeypatch.setattr(file_list, "FILES_MAX", 3)
    files = [stage(folder, "t", [b"1"]) for _ in range(4)]
    with pytest.raises(ValueError, match="attach 4 files at once; at most 3"):
        attach(folder, Transaction("query", 0), files)
    assert attach(folder, Transaction("query", 0), files[1:]).ledger_count == 3


@pytest.mark.parametrize(
    ("number", "kind"), [(28, errors.StorageFullError), (13, errors.StorageError)]
)
def test_a_list_that_cannot_be_written_is_told_and_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
) -> None:
    files = some_files(folder)

    def refuse(path: str, _: Any) -> int:
        Path(path).write_bytes(b"half of it")
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr(attaching, "_FILES_IN_REQUEST_MAX", 2)
    with monkeypatch.context() as patch:
        patch.setattr(file_list, "_write", refuse)
        with pytest.raises(kind, match="Nothing was attached"):
            attach(folder, Transaction("query", 0), files)
    assert os.listdir(folder / "staging") == ["job"]
    assert attach(folder, Transaction("query", 0), files).ledger_count == COUNT


def test_the_list_of_a_killed_process_is_collected_by_age(folder: Path) -> None:
    program = """
import os, sys
from pulsarx.broker.staging.file_list import listed_files
with listed_files(sys.argv[1], []) as listed:
    os._exit(9)
"""
    with ChildProcess(program, folder) as child:
        child.rest()
    (area,) = (folder / "staging").iterdir()
    assert collect_staging(folder, 3_600_000) == [] and area.exists()
    for path in (*area.iterdir(), area):
        os.utime(path, (1, 1))
    assert len(collect_staging(folder, 3_600_000)) == 1
    assert not area.exists()


def test_files_of_many_topics_are_each_looked_up_in_their_own(folder: Path) -> None:
    """One that is there already is found among them."""
    file = stage(folder, "u", [b"1"], name="first")
    os.link(folder / "staging" / "job" / file.name, folder / "spare")
    attach(folder, Transaction("other", 0), [file])
    rest = [stage(folder, "t", [b"2"]), stage(folder, "u", [b"3"])]
    os.link(folder / "spare", folder / "staging" / "job" / file.name)
    with pytest.raises(errors.NotAllowedError, match=f"topic {PREFIX}u has it already"):
        attach(folder, Transaction("query", 0), [*rest, file])
    assert contents(folder, "t", "u") == [[], [b"1"]]
