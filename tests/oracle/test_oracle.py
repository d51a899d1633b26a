"""Facts about the oracle itself; what it compares needs a real broker, see oracle.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import oracle
import pytest

HERE = Path(oracle.__file__).parent


@pytest.fixture(scope="module")
def names() -> list[str]:
    """Of all scenarios; they are imported elsewhere, so that none stays here."""
    code = "import json, run_scenarios as r; r.load(); print(json.dumps([*r.SCENARIOS]))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=HERE, stdout=subprocess.PIPE, check=True)
    return list(json.loads(done.stdout))


def test_there_are_many_scenarios(names: list[str]) -> None:
    assert len(names) >= 1000


def test_every_listed_difference_names_a_scenario(names: list[str]) -> None:
    listed = oracle.differences()
    assert listed
    for entry in listed:
        assert any(oracle.reason_for(name, {entry: ""}) for name in names), entry


@pytest.mark.parametrize(
    ("real", "own", "listed", "told"),
    [
        (1, 1, {}, 0),
        (1, 2, {}, 1),
        (1, 2, {"a.one": "reason"}, 0),
        (1, 2, {"a.*": "reason"}, 0),
        (1, 2, {"b.*": "reason"}, 2),
        (1, 1, {"a.one": "reason"}, 1),
    ],
)
def test_a_difference_is_listed_or_told(
    real: int, own: int, listed: dict[str, str], told: int
) -> None:
    assert len(oracle.judge({"a.one": real}, {"a.one": own}, listed, all_ran=True)) == told


@pytest.mark.standard
def test_some_scenarios_run_on_pulsarx(tmp_path: Path) -> None:
    some = ["reading.a_reader", "partitions.", "compacting.a_reader", "chunking.interwoven"]
    found = oracle.run("pulsarx", str(tmp_path / "folder"), some)
    assert len(found) > 40
    assert oracle.failed(found) == []
