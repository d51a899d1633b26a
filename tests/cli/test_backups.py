"""What `pulsarx backup`, `restore` and `salvage` do with folders of all kinds."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import Owner, invoke, process, rows

pytestmark = pytest.mark.standard


def test_a_folder_is_copied_and_restored(folder: Path, tmp_path: Path) -> None:
    (copied,) = rows(invoke(folder, "backup", str(tmp_path / "copy")))
    (restored,) = rows(invoke(tmp_path / "copy", "restore", str(tmp_path / "restored")))
    for found in (copied, restored):
        assert (found["topics"], found["subscriptions"], found["messages"]) == (2, 1, 6)
        assert found["damage"] == []
    (peeked, *_) = rows(invoke(tmp_path / "restored", "peek", "orders", "-s", "billing"))
    assert peeked["data"] == "order 0"


def test_it_is_copied_beside_its_owner(folder: Path, owner: Owner, tmp_path: Path) -> None:
    done: Any = process(folder, "backup", str(tmp_path / "copy"))
    assert rows(done)[0]["messages"] == 6
    refused = invoke(folder, "restore", str(tmp_path / "restored"))
    assert refused.exit_code == 1
    assert f"process {owner.pid} has it open" in refused.stderr


@pytest.mark.parametrize("name", ["backup", "restore"])
def test_what_cannot_be_copied_is_named(folder: Path, tmp_path: Path, name: str) -> None:
    before = sorted(os.listdir(tmp_path))
    refused = invoke(tmp_path / "missing", name, str(tmp_path / "target"))
    assert refused.exit_code == 1 and "missing does not exist" in refused.stderr
    refused = invoke(folder, name, str(folder.parent))
    assert refused.exit_code == 1 and "Nothing was changed" in refused.stderr
    assert invoke(folder, name).exit_code == 2
    assert sorted(os.listdir(tmp_path)) == before


def test_damage_is_told_and_may_be_allowed(folder: Path, tmp_path: Path) -> None:
    invoke(folder, "backup", str(tmp_path / "copy"))
    for ledger in (tmp_path / "copy" / "ledgers").rglob("*.ledger"):
        ledger.unlink()
    refused = invoke(tmp_path / "copy", "restore", str(tmp_path / "restored"))
    assert refused.exit_code == 1 and "Nothing was restored" in refused.stderr
    arguments = ("restore", str(tmp_path / "restored"), "--allow-damage")
    (found,) = rows(invoke(tmp_path / "copy", *arguments))
    assert found["missing_messages"] == 6
    assert {each["what"] for each in found["damage"]} == {"ledger"}
    arguments = ("restore", str(tmp_path / "again"), "--allow-damage", "--format", "table")
    shown = invoke(tmp_path / "copy", *arguments).stdout
    assert "is missing" in " ".join(shown.split()) and "{" not in shown


def test_a_folder_without_its_catalogue_is_salvaged(folder: Path, tmp_path: Path) -> None:
    shutil.rmtree(folder / "catalogue")
    refused = invoke(folder, "check")
    assert refused.exit_code in (1, 3)
    assert "pulsarx salvage" in refused.stdout + refused.stderr
    done = invoke("elsewhere", "salvage", str(folder), str(tmp_path / "made"))
    assert done.exit_code == 3  # the catalogue itself is not whole
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    topics = {each["topic"]: each for each in lines if "ledgers" in each and "topic" in each}
    orders = topics["persistent://public/default/orders"]
    assert (orders["messages"], orders["subscriptions"]) == (5, ["billing"])
    assert any("set_retention" in each.get("assumed", "") for each in lines)
    assert [each["what"] for each in lines if "what" in each] == ["catalogue"]
    assert (lines[-1]["found"], lines[-1]["damage"], lines[-1]["messages"]) == (2, 1, 6)
    (peeked, *_) = rows(invoke(tmp_path / "made", "peek", "orders", "-s", "billing"))
    assert peeked["data"] == "order 0"
    arguments = ("salvage", str(folder), str(tmp_path / "again"), "--format", "table")
    shown = invoke("elsewhere", *arguments).stdout
    assert "TOPIC" in shown and "ASSUMED" in shown and "WHAT" in shown and "{" not in shown


def test_a_whole_folder_is_salvaged_without_a_word(folder: Path, tmp_path: Path) -> None:
    done = invoke("elsewhere", "salvage", str(folder), str(tmp_path / "made"))
    assert done.exit_code == 0 and rows(done)[-1]["damage"] == 0


def test_what_cannot_be_salvaged_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    before = sorted(os.listdir(tmp_path))
    for source in ("nothing", "missing"):
        refused = invoke("elsewhere", "salvage", str(tmp_path / source), str(tmp_path / "made"))
        assert refused.exit_code == 1 and "salvage" in refused.stderr
    refused = invoke("elsewhere", "salvage", str(folder), str(folder.parent))
    assert refused.exit_code == 1 and "Nothing was changed" in refused.stderr
    assert invoke("elsewhere", "salvage", str(folder)).exit_code == 2
    assert sorted(os.listdir(tmp_path)) == before
