"""What each command does with folders of all kinds: free, owned, damaged, missing, none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from command_line import Owner, invoke, process, rows

import pulsarx
from pulsarx.cli.commands import COMMANDS

pytestmark = pytest.mark.standard

# Each command with arguments that succeed on the folder of the fixture.
LINES = [
    "ls",
    "stats",
    "stats orders",
    "tail orders",
    "read orders -m earliest --to-end",
    "peek orders -s billing",
    "produce orders -m new",
    "consume orders -s billing",
    "seek orders -s billing -m earliest",
    "seek orders -s billing -t 3h",
    "skip orders -s billing -n 1",
    "clear orders -s billing",
    "replay-dlq orders -s billing",
    "topics list",
    "topics list-partitioned-topics",
    "topics create other",
    "topics create-partitioned-topic other -p 2",
    "topics get-partitioned-topic-metadata orders",
    "topics truncate orders",
    "topics terminate orders",
    "topics unload orders",
    "topics compact orders",
    "topics compaction-status orders",
    "topics last-message-id orders",
    "topics get-backlog-size orders",
    "topics get-message-id-by-index orders -i 3",
    "topics stats orders",
    "topics subscriptions orders",
    "topics create-subscription orders -s audit",
    "topics unsubscribe orders -s billing -f",
    "topics peek-messages orders -s billing -n 2",
    "topics reset-cursor orders -s billing -m latest",
    "topics skip orders -s billing -n 1",
    "topics clear-backlog orders -s billing",
    "topics expire-messages orders -s billing -t 1",
    "topics delete orders -f",
    "topics set-message-ttl orders -ttl 3h",
    "topics get-message-ttl orders",
    "topics remove-message-ttl orders",
    "subscriptions list orders",
    "subscriptions delayed orders -s billing",
    "namespaces list public",
    "namespaces topics public/default",
    "namespaces policies public/default",
    "namespaces create public/other",
    "namespaces delete public/default -f",
    "namespaces set-retention public/default -t 2d -s 10M",
    "tenants list",
    "tenants get public",
    "tenants create acme -r alice",
    "tenants update public -r alice",
    "tenants delete public -f",
    "schemas get orders --all-version",
    "schemas delete orders",
    "transactions ls",
    "check",
    "top --once -i 0.1",
    "perf produce orders -m 1 -r 0",
    "perf consume orders -ss billing -m 1",
]
# Those of the subscription that the owner has a consumer of.
BUSY = ["consume orders -s billing", "perf consume orders -ss billing -m 1"]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_every_command_is_tried():
    elsewhere = {  # in tests of their own
        "backup", "restore", "salvage", "console", "init", "sql", "forward", "fetch",
    }  # fmt: skip
    tried = {line.split()[0] for line in LINES} | elsewhere
    assert tried == {name for name, (place, _) in COMMANDS.items() if ":" in place}


@pytest.mark.parametrize("line", LINES)
def test_it_works_on_a_folder_that_nobody_owns(folder: Path, line: str):
    result = invoke(folder, *line.split())
    assert result.exit_code == 0, result.stderr
    assert not result.stderr


@pytest.mark.parametrize("line", LINES)
def test_it_works_beside_an_owner(folder: Path, owner: Owner, line: str):
    result = invoke(folder, *line.split())
    if line in BUSY:
        assert result.exit_code == 1
        assert "ConsumerBusy" in result.stderr
    else:
        assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("line", ["produce orders -m new", "perf produce orders -m 1"])
def test_an_owner_that_shares_with_nobody_is_named(folder: Path, line: str):
    with pulsarx.Client(folder, exclusive=True):
        result = process(folder, *line.split())
    assert result.returncode == 1
    assert f"is owned by process {os.getpid()}" in result.stderr
    assert f"`pulsarx {line.split()[0]}`" in result.stderr


@pytest.mark.parametrize("line", LINES)
def test_a_missing_folder_is_not_made(tmp_path: Path, line: str):
    missing = tmp_path / "missing"
    result = invoke(missing, *line.split())
    assert result.exit_code == 1
    assert f"{missing} does not exist" in result.stderr
    assert not missing.exists()


@pytest.mark.parametrize("line", LINES)
def test_a_folder_of_something_else_stays_as_it_is(tmp_path: Path, line: str):
    result = invoke(tmp_path, *line.split())
    assert result.exit_code == 1
    assert "not a PulsarX data directory" in result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("line", LINES)
def test_a_file_is_no_folder(tmp_path: Path, line: str):
    file = tmp_path / "file"
    file.write_text("something")
    result = invoke(file, *line.split())
    assert result.exit_code == 1
    assert f"{file} is a file" in result.stderr
    assert file.read_text() == "something"


@pytest.mark.parametrize("line", LINES)
def test_a_damaged_catalogue_is_named_and_left_alone(folder: Path, line: str):
    for path in (folder / "catalogue").iterdir():  # both copies that a file holds
        path.write_bytes(b"wrong" + path.read_bytes()[5:-5] + b"wrong")
    before = bytes_of(folder / "catalogue")
    result = invoke(folder, *line.split())
    assert result.exit_code == (3 if line == "check" else 1)
    assert str(folder / "catalogue") in (result.stdout if line == "check" else result.stderr)
    assert bytes_of(folder / "catalogue") == before


@pytest.mark.parametrize(
    "line",
    [
        "ls",
        "stats",
        "top --once -i 0.1",
        "check",
        "tail orders",
        "peek orders -s billing",
        "tenants list",
    ],
)
def test_looking_at_a_folder_that_nobody_owns_writes_nothing(folder: Path, line: str):
    """The request of a process used to own the folder for a moment, which is a commit, also where
    it only asked."""
    before = bytes_of(folder)
    assert invoke(folder, *line.split()).exit_code == 0
    assert bytes_of(folder) == before


def test_the_folder_is_that_of_the_option_else_of_the_variable_else_the_current_one(
    folder: Path, tmp_path: Path
):
    assert rows(process(folder, "tenants", "list"))  # PULSARX_URL
    assert rows(process(tmp_path, "tenants", "list", "--url", str(folder)))
    assert rows(process(tmp_path, "--url", str(folder), "tenants", "list"))
    assert rows(process(tmp_path, "tenants", "--url", folder.as_uri(), "list"))
    shutil.copytree(folder, tmp_path / "copy")
    assert invoke(".", "ls").exit_code == 1


@pytest.mark.parametrize(
    "url,told",
    [
        ("http://localhost:8080/x", "nothing behind it"),
        ("pulsar://localhost", "works on a folder"),
        ("memory:", "memory of a process"),
    ],
)
def test_urls_that_lead_to_no_folder_are_wrong_values(url: str, told: str):
    result = invoke(url, "ls")
    assert result.exit_code == 2
    assert told in result.stderr
