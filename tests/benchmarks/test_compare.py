"""What `make compare` says of two checkouts, and that it can run."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BENCHMARKS = ROOT / "benchmarks"
THREE_PERCENT = 1.03


@pytest.fixture
def ratios(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import paired_ratios

    return paired_ratios


def measured(
    slower_by: float, *, scatter: float = 0.03, luck: float = 0.02, seed: int = 1
) -> list[list[float]]:
    """Eight pairs of processes, three pairs of turns each. luck: how much two processes of the same
    program differ for as long as they live."""
    chance = random.Random(seed)
    groups = []
    for _ in range(8):
        of_these = (1 + slower_by) * (1 + chance.gauss(0, luck))
        groups.append([of_these * (1 + chance.gauss(0, scatter)) for _ in range(3)])
    return groups


def test_what_is_the_same_is_never_called_slower(ratios: ModuleType) -> None:
    for seed in range(60):
        found = ratios.verdict(measured(0, seed=seed), THREE_PERCENT)
        assert found.text in ("same", "unclear"), found
        noisy = ratios.verdict(measured(0, scatter=0.2, seed=seed), THREE_PERCENT)
        assert noisy.text != "slower", noisy


def test_what_is_slower_or_faster_by_a_tenth_is_noticed(ratios: ModuleType) -> None:
    for seed in range(20):
        assert ratios.verdict(measured(0.1, seed=seed), THREE_PERCENT).text == "slower"
        assert ratios.verdict(measured(-0.1, seed=seed), THREE_PERCENT).text == "faster"


def test_what_is_slower_within_its_limit_is_not_called_so(ratios: ModuleType) -> None:
    for seed in range(20):
        quiet = measured(0.02, scatter=0.005, luck=0.002, seed=seed)
        assert ratios.verdict(quiet, THREE_PERCENT).text != "slower"
        assert ratios.verdict(measured(0.05, seed=seed), 1.10).text != "slower"


def test_the_luck_of_one_pair_of_processes_is_no_verdict(ratios: ModuleType) -> None:
    """Its pairs agree with each other: taken for as many findings they would make a row slower."""
    lucky = [[1.0, 1.0, 1.0]] * 5 + [[1.2, 1.2, 1.2]] * 3
    found = ratios.verdict(lucky, THREE_PERCENT)
    assert (found.median, found.text) == (1.0, "unclear")


def test_what_is_nothing_on_both_sides_is_the_same(ratios: ModuleType) -> None:
    assert ratios.ratio(0, 0) == 1.0
    assert ratios.ratio(0, 5) == float("inf")
    assert ratios.verdict([[ratios.ratio(0, 0)] * 3] * 8, THREE_PERCENT).text == "same"
    assert ratios.verdict([[ratios.ratio(0, 9)] * 3] * 8, THREE_PERCENT).text == "slower"


def compare(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / "compare.py"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_this_clone_can_be_compared_with_itself(tmp_path: Path) -> None:
    """With turns of a message (a rate, a time) and with a program of its own (bytes)."""
    written = tmp_path / "compared.md"
    rows = "send,latency,timer_memory"
    done = compare(str(ROOT), "--quick", "--rows", rows, "--write", str(written))
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    for row in rows.split(","):
        assert "NO FIGURE" not in lines[row] and f"| {row} |" in written.read_text()
    assert " ns " in lines["send"] and "µs" in lines["latency"] and "MB" in lines["timer_memory"]


def test_a_row_that_cannot_be_measured_is_named_and_fails(tmp_path: Path) -> None:
    """Of a checkout whose benchmark fails."""
    for name in ("build", "benchmarks", "tools", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "setup.py").write_text("")
    broken = tmp_path / "benchmarks"
    broken.unlink()
    broken.mkdir()
    for path in BENCHMARKS.iterdir():
        if path.name not in ("bench_send.py", "scratch"):
            (broken / path.name).symlink_to(path)
    (broken / "bench_send.py").write_text('def bench_it(measurement):\n    assert "send" == "no"\n')
    done = compare(str(tmp_path), "--quick", "--rows", "send")
    assert done.returncode == 1
    assert "NO FIGURE" in done.stdout and "without a figure: send" in done.stdout
    assert 'assert "send" == "no"' in done.stderr


def test_what_is_no_checkout_and_what_is_no_row_is_refused() -> None:
    assert "neither a folder of this project nor a revision" in compare("no-such-thing").stderr
    assert "no row nothing; there are" in compare("HEAD", "--rows", "nothing").stderr
    assert "fewer than 20 pairs" in compare("HEAD", "--pairs", "10").stderr
