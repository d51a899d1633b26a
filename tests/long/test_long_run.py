"""The driver of the long run: it goes on where it was and keeps what failed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaigns import CAMPAIGNS, FUZZED, Campaign
from long_run import LongRun, Round, command, page_table, repeated, summary
from long_state import LongState
from seeds import seeds

ROOT = Path(__file__).resolve().parent.parent.parent
PLANTED = """
import os, time
import pytest
SEED = int(os.environ["PULSARX_TEST_SEED"])
def test_a(): assert SEED % {fails_at}
def test_b():
    print(os.environ["PULSARX_TEST_SCALE"])
    if {hangs}:
        open({there!r}, "w").close()
        while True: time.sleep(1)
"""


@pytest.fixture
def planted(tmp_path: Path) -> Iterator[Path]:
    """A file of tests that pytest finds no configuration for."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    path = tmp_path / "test_planted.py"
    path.write_text(PLANTED.format(fails_at=1 << 40, hangs=False, there=""))
    yield path


def run_of(folder: Path, *campaigns: Campaign, seed: int = 1) -> LongRun:
    return LongRun(LongState.load(folder, seed), campaigns, 1.0)


@pytest.mark.standard
def test_a_run_that_is_stopped_goes_on_where_it_was(tmp_path: Path, planted: Path) -> None:
    one = Campaign("one", "planted", (str(planted),), rounds=3)
    two = Campaign("two", "planted", (str(planted), "-k", "test_a"), rounds=1)
    first = run_of(tmp_path / "long", one, two)
    first.one_round(one)
    seeds_before = first.state.next_seed(one)
    again = LongRun(LongState.load(tmp_path / "long", None), (one, two), 1.0)
    assert again.state.seed == 1 and again.state.next_seed(one) == seeds_before
    assert again.state.least_done((one, two), 1.0) == two
    assert again.run()
    assert (again.state.of(one).rounds, again.state.of(two).rounds) == (3, 1)
    assert not again.has_failed
    assert run_of(tmp_path / "long", one, two).run()  # nothing is left to do
    assert "3 of 3" in summary(again.state, (one, two), 1.0)


COUNTING = """
import pytest
from counts import counted
def test_a(): counted(3, "images"); counted(2, "images"); counted(1, "points")
"""
SKIPPED = """
import pytest
def test_a(): pytest.skip("there is no compiler")
"""


@pytest.mark.standard
def test_what_tests_count_and_that_none_could_run_is_told(tmp_path: Path, planted: Path) -> None:
    (tmp_path / "pytest.ini").write_text(f"[pytest]\npythonpath = {ROOT / 'tests/long'}\n")
    planted.write_text(COUNTING)
    one = Campaign("one", "planted", (str(planted),), rounds=2)
    run = run_of(tmp_path / "long", one)
    run.one_round(one)
    run = run_of(tmp_path / "long", one)
    run.one_round(one)
    assert summary(run.state, (one,), 1.0).endswith("all passed, 10 images, 2 points")
    assert page_table(run.state, (one,))[-1] == (
        "| one | planted | 2 | 0 | all passed | 10 images, 2 points |"
    )
    planted.write_text(SKIPPED)
    two = Campaign("two", "planted", (str(planted),), rounds=1)
    run.one_round(two)
    assert "1 SKIPPED" in summary(run.state, (two,), 1.0)


def test_campaigns_of_one_kind_are_one_row_of_the_page(tmp_path: Path) -> None:
    state = LongState.load(tmp_path, 1)
    one, two = (Campaign(f"fuzz-{of}", f"any bytes: {of}", ("tests",), minutes=1) for of in "ab")
    state.of(one).rounds, state.of(two).rounds = 2, 3
    state.of(one).counts = state.of(two).counts = {"inputs": 500}
    left = Campaign("left", "what nothing has tried", ("tests",), rounds=1)
    assert page_table(state, (one, two, left))[4:] == [
        "| fuzz | any bytes | 5 | 0 | all passed | 1,000 inputs |",
        "",
        "Not begun: left.",
    ]


def test_no_two_rounds_have_one_seed(tmp_path: Path) -> None:
    state = LongState.load(tmp_path, 7)
    found = set()
    for each in CAMPAIGNS:
        for _ in range(50):
            found.add(state.next_seed(each))
            state.of(each).rounds += 1
    assert len(found) == 50 * len(CAMPAIGNS)
    assert max(found) < 1 << 30


@pytest.mark.standard
def test_what_fails_is_kept_with_its_seed_and_fails_the_run(tmp_path: Path, planted: Path) -> None:
    planted.write_text(PLANTED.format(fails_at=1, hangs=False, there=""))
    one = Campaign("one", "planted", (str(planted),), rounds=2, scale=3)
    run = run_of(tmp_path / "long", one)
    assert run.run() and run.has_failed
    (seed, name), _ = run.state.of(one).failed
    log = (tmp_path / "long" / "failures" / name).read_text()
    assert f"PULSARX_TEST_SEED={seed} PULSARX_TEST_SCALE=3" in log
    assert "assert (" in log and "1 failed, 1 passed" in log
    assert repeated(one, seed) in log
    assert "2 FAILED" in summary(run.state, (one,), 1.0)
    assert LongState.load(tmp_path / "long", None).of(one).failed  # a later run knows it too


@pytest.mark.standard
def test_a_budget_of_time_is_used_up(tmp_path: Path, planted: Path) -> None:
    one = Campaign("one", "planted", (str(planted),), minutes=0.01)
    run = run_of(tmp_path / "long", one)
    assert run.run()
    assert run.state.of(one).seconds >= 0.6
    assert run_of(tmp_path / "late", one).run(hours=0) is False


@pytest.mark.standard
def test_what_lacks_something_is_begun_once(tmp_path: Path, planted: Path) -> None:
    one = Campaign("one", "planted", (str(planted), "-rs"), minutes=1)
    planted.write_text("import pytest\ndef test_a(): pytest.skip('install this')\n")
    round_ = Round(one, 1)
    round_.run()
    assert round_.skipped and round_.why == "install this"
    run = run_of(tmp_path / "long", one)
    assert run.run() and run.state.of(one).rounds == 1
    assert "1 SKIPPED" in summary(run.state, (one,), 1.0)


def test_each_parser_that_is_fuzzed_has_a_campaign() -> None:
    targets = (ROOT / "tests" / "reliability" / "fuzz_targets.py").read_text()
    assert re.findall(r'^        Target\(\s*"([^"]+)"', targets, re.M) == list(FUZZED)


STOPPED = """
import sys
sys.path[:0] = {paths!r}
from pathlib import Path
from campaigns import Campaign
from long_state import LongState
from long_run import LongRun
one = Campaign("one", "planted", ({planted!r},), rounds=1)
LongRun(LongState.load(Path({folder!r}), 1), (one,), 1.0).run()
"""


@pytest.mark.standard
def test_a_round_that_is_interrupted_is_not_counted_and_leaves_no_process(
    tmp_path: Path, planted: Path
) -> None:
    there, folder = tmp_path / "there", tmp_path / "long"
    planted.write_text(PLANTED.format(fails_at=1 << 40, hangs=True, there=str(there)))
    paths = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    program = STOPPED.format(paths=paths, planted=str(planted), folder=str(folder))
    run = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    while not there.exists():
        assert run.poll() is None
        os.sched_yield()
    run.send_signal(signal.SIGINT)
    run.wait(30)
    assert not (folder / "state.json").exists()
    named = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if readable(path)]
    assert not [each for each in named if str(planted).encode() in each]


def readable(path: Path) -> bool:
    try:
        path.read_bytes()
        return True
    except OSError:
        return False


@pytest.mark.standard
def test_a_round_that_hangs_is_ended_and_fails(tmp_path: Path, planted: Path) -> None:
    planted.write_text(PLANTED.format(fails_at=1 << 40, hangs=True, there=str(tmp_path / "x")))
    for minutes in (0.05, 0.3, 2):  # a busy machine takes seconds to begin with the test
        one = Round(Campaign("one", "planted", (str(planted),), round_minutes_max=minutes), 1)
        one.run()
        assert not one.passed and f"did not end in {minutes} minutes".encode() in one.output
        if b"in test_b" in one.output:
            break
    assert b"in test_b" in one.output  # where it hung


def test_every_campaign_has_a_name_a_budget_and_tests_that_exist() -> None:
    assert len({each.name for each in CAMPAIGNS}) == len(CAMPAIGNS)
    for each in CAMPAIGNS:
        assert bool(each.rounds) != bool(each.minutes), each.name
        paths = [name for name in each.tests if name.startswith("tests")]
        assert paths and all((ROOT / name).exists() for name in paths), each.name
        assert "{" not in " ".join(command(each, 1)), each.name


def test_seeds_are_the_same_unless_a_campaign_says_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seeds.GIVEN", "")
    monkeypatch.setattr("seeds.SCALE", 1.0)
    assert seeds(3) == [0, 1, 2]
    monkeypatch.setattr("seeds.GIVEN", "500")
    monkeypatch.setattr("seeds.SCALE", 2.0)
    assert seeds(3) == [500, 501, 502, 503, 504, 505]
