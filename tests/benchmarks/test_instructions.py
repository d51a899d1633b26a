"""`make instructions` counts what its table has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pulsarx

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_each_row_is_called_and_kept(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "instructions.py"), "--child", str(tmp_path / "folder")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(pulsarx.__file__).parent.parent)},
    )
    assert done.returncode == 0, done.stderr
    (empty, *names) = [json.loads(line)[0] for line in done.stdout.splitlines()]
    assert empty == "empty call"
    assert names == list(json.loads((BENCHMARKS / "instructions.json").read_text())["rows"])
    assert len(names) >= 19


def test_a_rise_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import instructions

    kept = tmp_path / "kept.json"
    kept.write_text(json.dumps({"place": instructions.place(), "rows": {"a": 100, "b": 100}}))
    monkeypatch.setattr(instructions, "KEPT", kept)
    monkeypatch.setattr(instructions.shutil, "which", lambda _: "/usr/bin/valgrind")
    monkeypatch.setattr(instructions, "counted", lambda: {"a": 103, "b": 104, "new": 7})
    assert instructions.main([]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "b: 100 to 104"
    monkeypatch.setattr(instructions, "place", lambda: "another machine")
    assert instructions.main([]) == 0
    assert "so nothing is compared here" in capsys.readouterr().out
    assert instructions.main(["--write"]) == 0
    assert json.loads(kept.read_text())["place"] == "another machine"
