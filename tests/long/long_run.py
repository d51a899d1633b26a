"""`make test-long`: the campaigns of campaigns.py, for hours.

    python tests/long/long_run.py [--only a,b] [--factor NUMBER] [--hours NUMBER] [--seed NUMBER]
                                  [--fresh] [--list] [--repeat CAMPAIGN SEED]

All campaigns take turns, so that each has had its share whenever the run is stopped. Stop it with
Ctrl-C, or as you like: it goes on where it was, but for the round it was in. What failed is kept in
build/long/failures, with its seed and the command that repeats it. Ends with 1 when a round has
failed, with 130 when it was stopped, and else with 0.

--only: some campaigns; fuzz stands for all whose names begin with fuzz-. --factor: so much of every
budget. --hours: stop after so many. --seed: that of a run before. --fresh: forget what was done.
--repeat: one round, its output shown. A campaign that lacks what it needs is begun once in a run.
tools/write_reliability.py writes what was done into RELIABILITY.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from campaigns import CAMPAIGNS, Campaign
from counts import FILE, counts_in
from long_state import LongState, Progress, wanted

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "build" / "long"
PAGE = "summary.md"  # in the folder; tools/write_reliability.py reads it


def environment(campaign: Campaign, seed: int) -> dict[str, str]:
    given = {"PULSARX_TEST_SEED": str(seed), "PULSARX_TEST_SCALE": f"{campaign.scale:g}"}
    return given | ({"PULSARX_SANITIZE": campaign.sanitizers} if campaign.sanitized else {})


def command(campaign: Campaign, seed: int) -> list[str]:
    started = [sys.executable]
    started += [str(ROOT / "tools" / "sanitized.py")] if campaign.sanitized else []
    started += ["-m", "pytest", "-q", f"--hypothesis-seed={seed}"]
    if not campaign.sanitized:
        # A round that hangs says where, before it is killed.
        seconds = max(campaign.round_minutes_max * 60 - 30, 1)
        started += ["-o", f"faulthandler_timeout={seconds:g}"]
    return [*started, *(each.format(seed=seed) for each in campaign.tests)]


def repeated(campaign: Campaign, seed: int) -> str:
    """What to type to see a round again."""
    given = " ".join(f"{name}={value}" for name, value in environment(campaign, seed).items())
    return f"{given} {shlex.join(command(campaign, seed))}"


class Round:
    """One run of pytest in a session of its own, so that all of it can be killed."""

    def __init__(self, campaign: Campaign, seed: int) -> None:
        self.campaign = campaign
        self.seed = seed
        self.output = b""
        self.seconds = 0.0
        self.passed = False
        self.counts: dict[str, int] = {}

    def run(self) -> None:
        """Raises KeyboardInterrupt when it is stopped; nothing of it lives on then."""
        with tempfile.TemporaryDirectory(prefix="pulsarx-long-") as folder:
            counts = Path(folder) / "counts"
            self._run({FILE: str(counts)})
            if counts.exists():
                self.counts = counts_in(counts.read_text())

    def _run(self, added: dict[str, str]) -> None:
        began = time.monotonic()
        child = subprocess.Popen(
            command(self.campaign, self.seed),
            cwd=ROOT,
            env=os.environ | environment(self.campaign, self.seed) | added,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            self.output, _ = child.communicate(timeout=self.campaign.round_minutes_max * 60)
            self.passed = child.returncode == 0
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            self.output, _ = child.communicate()
            text = f"\nIt did not end in {self.campaign.round_minutes_max} minutes.\n"
            self.output += text.encode()
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()
        self.seconds = time.monotonic() - began

    def keep(self, folder: Path) -> str:
        """Write what it said where it is found again; the name of the file."""
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{self.campaign.name}-{self.seed}.log"
        head = f"{self.campaign.name}: {self.campaign.what}\n{revision()}\n"
        head += f"{repeated(self.campaign, self.seed)}\n\n"
        (folder / name).write_bytes(head.encode() + self.output)
        return name

    @property
    def skipped(self) -> bool:
        """Whether there was none of its tests that could run."""
        return self.passed and " passed" not in self.last_line

    @property
    def why(self) -> str:
        """The sentence of what was skipped."""
        found = re.search(r"^SKIPPED \[.*?: (.*)$", self.output.decode(errors="replace"), re.M)
        return found[1] if found else self.last_line

    @property
    def last_line(self) -> str:
        lines = self.output.decode(errors="replace").strip().splitlines()
        return lines[-1].strip("= ") if lines else "it said nothing"


def revision() -> str:
    git = ["git", "-c", f"safe.directory={ROOT}", "describe", "--always", "--dirty"]
    done = subprocess.run(git, cwd=ROOT, capture_output=True, text=True, check=False)
    return f"revision {done.stdout.strip() or 'unknown'}"


def summary(state: LongState, campaigns: tuple[Campaign, ...], factor: float) -> str:
    lines = []
    for each in campaigns:
        done = state.of(each)
        budget = f"{each.minutes * factor:g} min" if each.minutes else str(wanted(each, factor))
        rounds = f"{done.rounds} of {budget}" if not each.minutes else f"{done.rounds} in {budget}"
        told = ", ".join([result(done), *counts_of(done)])
        lines.append(f"{each.name:20} {rounds:>12} {done.seconds / 60:7.1f} min  {told}")
        lines += [f"    seed {seed}: {state.folder}/failures/{log}" for seed, log in done.failed]
    return "\n".join(lines)


def result(done: Progress) -> str:
    if done.failed:
        return f"{len(done.failed)} FAILED"
    if not done.rounds:
        return "not begun"
    if done.skipped:
        return f"{done.skipped} SKIPPED"
    return "all passed"


def counts_of(done: Progress) -> list[str]:
    return [f"{number:,} {what}" for what, number in sorted(done.counts.items())]


def page_table(state: LongState, campaigns: tuple[Campaign, ...]) -> list[str]:
    """What was done, for RELIABILITY.md."""
    lines = [
        f"{time.strftime('%Y-%m-%d')}, {revision()}, on {os.cpu_count()} cores:",
        "",
        "| campaign | what it tries | rounds | minutes | came to | counted |",
        "|---|---|---|---|---|---|",
    ]
    others: list[str] = []
    for (name, what), among in groups(campaigns).items():
        done = Progress()
        for each in among:
            done.add(state.of(each))
        if not done.rounds:
            others.append(name)
            continue
        told = ", ".join(counts_of(done))
        lines.append(
            f"| {name} | {what} | {done.rounds} | {done.seconds / 60:.0f} | "
            f"{result(done)} | {told} |"
        )
    return [*lines, "", f"Not begun: {', '.join(others)}."] if others else lines


def groups(campaigns: tuple[Campaign, ...]) -> dict[tuple[str, str], list[Campaign]]:
    """By name and what they try; those of one kind, whose `what` ends with its object, in one."""
    found: dict[tuple[str, str], list[Campaign]] = {}
    for each in campaigns:
        what, mark, of = each.what.partition(": ")
        name = each.name.removesuffix(f"-{of}") if mark else each.name
        key = (name, what) if name != each.name else (each.name, each.what)
        found.setdefault(key, []).append(each)
    return found


class LongRun:
    """The loop over rounds. One at a time in a clone."""

    def __init__(self, state: LongState, campaigns: tuple[Campaign, ...], factor: float) -> None:
        self.state = state
        self.campaigns = campaigns
        self.factor = factor
        self.skipped: set[str] = set()  # in this run

    def run(self, hours: float | None = None) -> bool:
        """Until all is done, or the time is over; whether all is done."""
        end = None if hours is None else time.monotonic() + hours * 3600
        while campaign := self.state.least_done(self.left(), self.factor):
            if end is not None and time.monotonic() >= end:
                return False
            self.one_round(campaign)
        return True

    def left(self) -> list[Campaign]:
        return [each for each in self.campaigns if each.name not in self.skipped]

    def one_round(self, campaign: Campaign) -> None:
        done = self.state.of(campaign)
        one = Round(campaign, self.state.next_seed(campaign))
        say(f"{campaign.name}, round {done.rounds + 1}, seed {one.seed}")
        one.run()
        if not one.passed:
            done.failed.append((one.seed, one.keep(self.state.folder / "failures")))
        done.rounds += 1
        done.skipped += one.skipped
        done.seconds += one.seconds
        done.add_counts(one.counts)
        self.state.save()
        if one.skipped:
            self.skipped.add(campaign.name)
            say(f"    SKIPPED: {one.why}")
            return
        say(f"    {'passed' if one.passed else 'FAILED'}: {one.last_line}")

    @property
    def has_failed(self) -> bool:
        return any(self.state.of(each).failed for each in self.campaigns)


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def build_sanitizers(campaigns: tuple[Campaign, ...]) -> None:
    """A library for each kind that one of them asks for."""
    for chosen in sorted({each.sanitizers for each in campaigns if each.sanitized}):
        built = os.environ | {"PULSARX_SANITIZE": chosen}
        subprocess.run([ROOT / "tools" / "bootstrap", "test"], env=built, check=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--factor", type=float, default=1.0)
    parser.add_argument("--hours", type=float)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--repeat", nargs=2, metavar=("CAMPAIGN", "SEED"))
    options = parser.parse_args()
    known = {each.name: each for each in CAMPAIGNS}
    named = [options.repeat[0]] if options.repeat else options.only.split(",")
    chosen = [name for name in named if name] or list(known)
    for name in [each for each in chosen if each not in known]:
        if group := [each for each in known if each.startswith(f"{name}-")]:
            at = chosen.index(name)
            chosen[at : at + 1] = group
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        parser.error(f"no campaign {', '.join(unknown)}; there are {', '.join(known)}")
    options.campaigns = tuple(known[name] for name in chosen)
    return options


def main() -> int:
    options = arguments()
    campaigns: tuple[Campaign, ...] = options.campaigns
    if options.list:
        for each in campaigns:
            print(f"{each.name:20} {each.what}")
        return 0
    build_sanitizers(campaigns)
    if options.repeat:
        print(repeated(campaigns[0], int(options.repeat[1])), flush=True)
        given = os.environ | environment(campaigns[0], int(options.repeat[1]))
        line = command(campaigns[0], int(options.repeat[1]))
        return subprocess.call(line, cwd=ROOT, env=given)
    if options.fresh:
        shutil.rmtree(FOLDER, ignore_errors=True)
    state = LongState.load(FOLDER, options.seed)
    run = LongRun(state, campaigns, options.factor)
    say(f"seed {state.seed}, {revision()}, {sum(state.of(each).rounds for each in campaigns)} "
        "rounds were done before")  # fmt: skip
    try:
        whole = run.run(options.hours)
    except KeyboardInterrupt:
        whole = None
    print(f"\n{summary(state, campaigns, options.factor)}\n")
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / PAGE).write_text("\n".join(page_table(state, CAMPAIGNS)) + "\n")
    if whole:
        print("All is done. --fresh (LONG_ARGS=--fresh) begins anew, with another seed.")
    else:
        print("Stopped; the next run goes on here.")
    return 130 if whole is None else int(run.has_failed)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
