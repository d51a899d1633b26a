"""What `pulsarx check` tells of folders of all kinds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Owner, invoke, on_terminal, process, rows

pytestmark = pytest.mark.standard


def first_ledger(folder: Path) -> Path:
    return min(folder.rglob("*.ledger"), key=lambda path: int(path.stem))


def test_a_whole_folder_is_one_line(folder: Path) -> None:
    for result in (invoke(folder, "check"), invoke("elsewhere", "check", str(folder))):
        (found,) = rows(result)
        assert found["damage"] == found["missing_messages"] == 0
        assert (found["topics"], found["subscriptions"], found["messages"]) == (2, 1, 6)


def test_it_is_checked_beside_its_owner(folder: Path, owner: Owner) -> None:
    owner.send("one more")
    (found,) = rows(process(folder, "check"))
    assert (found["messages"], found["damage"]) == (7, 0)


def test_damage_is_a_line_each_and_a_status_of_its_own(folder: Path) -> None:
    path = first_ledger(folder)
    with open(path, "r+b") as file:
        file.seek(4096 + 80)
        file.write(b"\xff\xff")
    result = process(folder, "check")
    assert result.returncode == 3
    place, found = (json.loads(line) for line in result.stdout.splitlines())
    assert (place["what"], place["file"]) == ("entries", str(path.relative_to(folder)))
    assert (place["ledger_id"], place["entry_id"]) == (int(path.stem), 0)
    assert (place["offset"], place["entries"], place["messages"]) == (4096, 1, 1)
    assert (found["damage"], found["missing_messages"]) == (1, 1)
    status, shown = on_terminal(folder, "check")
    assert status == 3
    assert "entry 0 of ledger" in shown and "MESSAGES" in shown
    assert "Checking" in shown


def test_a_folder_that_cannot_be_read_has_the_status_of_a_failure(tmp_path: Path) -> None:
    assert invoke(tmp_path, "check").exit_code == 1
    assert invoke(tmp_path, "check", str(tmp_path / "missing")).exit_code == 1
    assert invoke(tmp_path, "check", "one", "two").exit_code == 2
