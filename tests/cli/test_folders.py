"""What each command does with folders of all kinds: free, owned, damaged, missing, none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from command_line import Owner, invoke, process, rows

from pulsarx.cli import COMMANDS

pytestmark = pytest.mark.standard

# Each command with arguments that succeed on the folder of the fixture, and whether it has to own
# the folder for longer than a request.
COMMAND_LINES = [
    ("ls", False),
    ("stats", False),
    ("stats orders", False),
    ("tail orders", False),
    ("read orders -m earliest --to-end", False),
    ("peek orders -s billing", False),
    ("produce orders -m new", True),
    ("consume orders -s billing", True),
    ("seek orders -s billing -m earliest", False),
    ("seek orders -s billing -t 3h", False),
    ("skip orders -s billing -n 1", False),
    ("clear orders -s billing", False),
    ("replay-dlq orders -s billing", True),
    ("topics list", False),
    ("topics list-partitioned-topics", False),
    ("topics create other", False),
    ("topics create-partitioned-topic other -p 2", False),
    ("topics get-partitioned-topic-metadata orders", False),
    ("topics truncate orders", False),
    ("topics terminate orders", False),
    ("topics unload orders", False),
    ("topics compact orders", False),
    ("topics compaction-status orders", False),
    ("topics last-message-id orders", False),
    ("topics get-backlog-size orders", False),
    ("topics stats orders", False),
    ("topics subscriptions orders", False),
    ("topics create-subscription orders -s audit", False),
    ("topics unsubscribe orders -s billing -f", False),
    ("topics peek-messages orders -s billing -n 2", False),
    ("topics reset-cursor orders -s billing -m latest", False),
    ("topics skip orders -s billing -n 1", False),
    ("topics clear-backlog orders -s billing", False),
    ("topics expire-messages orders -s billing -t 0", False),
    ("topics delete orders -f", False),
    ("topics set-message-ttl orders -ttl 3h", False),
    ("topics get-message-ttl orders", False),
    ("topics remove-message-ttl orders", False),
    ("subscriptions list orders", False),
    ("namespaces list public", False),
    ("namespaces topics public/default", False),
    ("namespaces policies public/default", False),
    ("namespaces create public/other", False),
    ("namespaces delete public/default -f", False),
    ("namespaces set-retention public/default -t 2d -s 10M", False),
    ("tenants list", False),
    ("tenants get public", False),
    ("tenants create acme -r alice", False),
    ("tenants update public -r alice", False),
    ("tenants delete public -f", False),
    ("schemas get orders --all-version", False),
    ("schemas delete orders", False),
]
LINES = [line for line, _ in COMMAND_LINES]


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_every_command_is_tried():
    tried = {line.split()[0] for line in LINES} | {"backup", "restore"}  # test_backups
    assert tried == {name for name, (place, _) in COMMANDS.items() if ":" in place}


@pytest.mark.parametrize("line", LINES)
def test_it_works_on_a_folder_that_nobody_owns(folder: Path, line: str):
    result = invoke(folder, *line.split())
    assert result.exit_code == 0, result.stderr
    assert not result.stderr


@pytest.mark.parametrize("line,has_to_own", COMMAND_LINES)
def test_it_works_beside_an_owner_or_says_who_that_is(
    folder: Path, owner: Owner, line: str, has_to_own: bool
):
    result = invoke(folder, *line.split())
    if has_to_own:
        assert result.exit_code == 1
        assert f"is owned by process {owner.pid}, and `pulsarx {line.split()[0]}`" in result.stderr
    else:
        assert result.exit_code == 0, result.stderr


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
    for path in (folder / "catalogue").iterdir():
        path.write_bytes(path.read_bytes()[:-5] + b"wrong")
    before = bytes_of(folder / "catalogue")
    result = invoke(folder, *line.split())
    assert result.exit_code == 1
    assert str(folder / "catalogue") in result.stderr
    assert bytes_of(folder / "catalogue") == before


@pytest.mark.parametrize(
    "line", ["ls", "stats", "tail orders", "peek orders -s billing", "tenants list"]
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
        ("http://localhost:8080", "not on URLs yet"),
        ("pulsar://localhost", "not on URLs yet"),
        ("memory:", "memory of a process"),
    ],
)
def test_urls_that_lead_to_no_folder_are_wrong_values(url: str, told: str):
    result = invoke(url, "ls")
    assert result.exit_code == 2
    assert told in result.stderr
