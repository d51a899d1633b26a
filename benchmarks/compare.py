"""`make compare BASE=...`: is a row of RESULTS.md slower than in another checkout?

    python benchmarks/compare.py BASE [--head CHECKOUT] [--group core|official|spark]
                                 [--rows a,b,...] [--pairs COUNT] [--write FILE] [--quick]

BASE, CHECKOUT: a folder with this project, or a revision of this clone, which is built in
build/compare. Without --head BASE is compared with the files that lie here.

For each row both sides measure in turns, A B B A and so on; each pair of turns gives a ratio. Both
sides run in processes of their own that live for some pairs of every row and are then replaced: a
process that lives for one turn would measure its start, and one that lives for all of them would
measure where its memory happened to lie (paired_ratios.py). Rows whose verdict is unclear get up
to three times as many pairs. Each side runs its own benchmarks, with the sizes of this one; a row
whose benchmark is not the same file on both sides is marked.

Ends with 1 when a row is slower with confidence (3 %; 10 % in SCATTERING), or has no figure.
--quick: three pairs of small sizes, to see that everything runs; it ends with 1 only where a figure
is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from checkout import ROOT, Checkout, CheckoutError, checkout
from measurement import FULL, QUICK, Sizes, shown
from paired_ratios import SLOWER, UNCLEAR, Verdict, ratio, verdict
from reach import BY_NAME, GROUPS, REAL_PULSAR, ROWS, SPARK, TRANSACTIONS, Group, Row
from spark_process import spark_is_missing

HERE = Path(__file__).resolve().parent
PLUGIN = HERE / "compared"

LIMIT = 1.03
# Durability waits for the device, and many threads for whom the kernel lets run.
SCATTERING = {"bench_durable.py": 1.10, **dict.fromkeys(SPARK.files, 1.10)}

PAIRS_A_PROCESS = 3
WARM_UPS = 1
PAIRS_MIN = 20
MORE = 3  # times as many pairs at most, where the verdict is unclear
# A turn shall take some tens of milliseconds, a few at most a second.
SIZES = replace(
    FULL,
    cold_messages=300 * 1024,
    folder_bytes=(100_000_000, 1_000_000_000),
    held=200_000,
    delayed=200_000,
    timers=2_000_000,
    idle_seconds=0.5,
    idle_topics=2_000,
    idle_subscriptions=200,
    spark_messages=1_000_000,
    spark_messages_large=4_000_000,
    spark_batches=5,
)


def sizes_of(quick: bool) -> dict[str, Any]:
    turns = PAIRS_A_PROCESS + WARM_UPS
    sizes: Sizes = replace(QUICK if quick else SIZES, spark_warmups=0)
    # Floors make room for so many turns.
    return asdict(replace(sizes, rounds=turns, cold_rounds=turns, delayed_rounds=turns))


class SideError(Exception):
    """A side that does not measure; the text says why."""


class Side:
    """One checkout's process, which measures a turn of a row when it is asked to."""

    def __init__(self, tested: Checkout, group: Group, rows: list[str], quick: bool) -> None:
        self.tested = tested
        self.failures: list[str] = []
        read, self._write = os.pipe()
        self._read, write = os.pipe()
        settings: dict[str, Any] = {"read": read, "write": write, "tree": tested.tree}
        settings |= {"rows": rows, "sizes": sizes_of(quick)}
        environment = tested.environment | {"PULSARX_COMPARE": json.dumps(settings)}
        environment["PYTHONPATH"] += f"{os.pathsep}{PLUGIN}"
        files = [path for name in group.files if (path := tested.benchmarks / name).exists()]
        # Not the path of its pytest.ini, which would put the library in front by another name.
        command = [sys.executable, "-m", "pytest", "-q", "-o", "pythonpath=."]
        command += ["-p", "turn_by_turn", *map(str, files)]
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed by close()
        self._process = subprocess.Popen(
            command,
            cwd=tested.folder,
            env=environment,
            pass_fds=[read, write],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        os.close(read)
        os.close(write)
        self._answers = os.fdopen(self._read)
        self.row = ""  # which it could measure now; empty: no more rows
        self.seconds = False  # whether what it measures is a time, and no other figure
        self._next_row()

    def turn(self) -> float:
        self._ask("turn")
        answer = self._answer()
        if "value" not in answer:
            self._failed(answer)
            raise SideError(f"{self.tested.described} cannot measure {self.row}")
        return float(answer["value"])

    def advance(self) -> None:
        """Go to the next row it could measure."""
        self._ask("next")
        self._next_row()

    def _next_row(self) -> None:
        while True:
            answer = self._answer()
            if not answer or "ready" in answer:
                break
            self._failed(answer)
        self.row = str(answer.get("ready", ""))
        self.seconds = bool(answer.get("seconds"))

    def _failed(self, answer: dict[str, Any]) -> None:
        self.failures.append(str(answer.get("failed", self._said())))

    def _ask(self, what: str) -> None:
        try:
            os.write(self._write, f"{what}\n".encode())
        except BrokenPipeError:
            pass  # its answer will be that there is none

    def _answer(self) -> dict[str, Any]:
        line = self._answers.readline()
        found: dict[str, Any] = json.loads(line) if line else {}
        return found

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read()[-3000:]

    def close(self) -> None:
        """End it, in good order when it has measured all its rows."""
        os.close(self._write)
        self._answers.close()
        try:
            code = self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        # 5: no row of these files is asked for.
        if code not in (0, 1, 5) and not self.failures:
            self.failures.append(self._said())
        self._log.close()


@dataclass
class Figures:
    """What was measured for a row: (base, now) of each pair, pairs of processes apart."""

    row: Row
    groups: list[list[tuple[float, float]]] = field(default_factory=list)
    seconds: bool = False

    @property
    def pair_count(self) -> int:
        return sum(map(len, self.groups))

    def verdict(self) -> Verdict:
        limit = SCATTERING.get(self.row.file, LIMIT)
        return verdict([[self._ratio(*pair) for pair in group] for group in self.groups], limit)

    def _ratio(self, base: float, now: float) -> float:
        more_is_better = not self.seconds and not self.row.at_most
        return ratio(now, base) if more_is_better else ratio(base, now)

    def medians(self) -> tuple[float, float]:
        pairs = [pair for group in self.groups for pair in group]
        return statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)

    def shown(self, value: float) -> str:
        if self.seconds:
            return shown(value)
        unit = "times" if self.row.unit.startswith("of the") else self.row.unit
        return f"{value:.4g} {unit}"


class Comparison:
    """Two checkouts and what their turns have found."""

    def __init__(self, options: argparse.Namespace, base: Checkout, head: Checkout) -> None:
        self.options = options
        self.sides = (base, head)
        self.group: Group = GROUPS[options.group]
        known = _text(base.benchmarks / "reach.py")
        asked = options.rows or [row.name for row in self.group.rows]
        self.rows = [name for name in asked if f'"{name}"' in known]
        self.new = [name for name in asked if name not in self.rows]
        self.figures = {name: Figures(BY_NAME[name]) for name in self.rows}
        self.failures: list[str] = []
        self.generation = 0

    def run(self) -> None:
        """Measure all rows, then again and again those that are unclear."""
        # An odd number of pairs a process begins with the other side each time.
        wanted = 1 if self.options.quick else -(-self.options.pairs // PAIRS_A_PROCESS)
        for turn in range(wanted):
            self._generation(self.rows, f"{turn + 1} of {wanted}")
            self.rows = [name for name in self.rows if self.figures[name].groups]
        most = 0 if self.options.quick else (MORE - 1) * wanted
        for turn in range(most):
            unclear = [n for n in self.rows if self.figures[n].verdict().text == UNCLEAR]
            if not unclear:
                break
            self._generation(unclear, f"{turn + 1} of at most {most} more, for {len(unclear)} rows")

    def _generation(self, rows: list[str], name: str) -> None:
        """One pair of processes, which measures some pairs of each of the rows."""
        began = time.monotonic()
        order = (0, 1) if self.generation % 2 == 0 else (1, 0)
        self.generation += 1
        opened: dict[int, Side] = {}
        try:
            for index in order:
                opened[index] = Side(self.sides[index], self.group, rows, self.options.quick)
            sides = (opened[0], opened[1])
            while sides[0].row and sides[1].row:
                self._measure(sides)
        finally:
            for side in opened.values():
                side.close()
                self.failures += [f"{side.tested.described}: {text}" for text in side.failures]
        seconds = time.monotonic() - began
        print(f"compared, {name}: {seconds:.0f} s", file=sys.stderr, flush=True)

    def _measure(self, sides: tuple[Side, Side]) -> None:
        """Some pairs of the row at which both are; one that only one side has is left out."""
        base, head = sides
        if base.row != head.row:
            places = [self._place(side.row) for side in sides]
            (base if places[0] < places[1] else head).advance()
            return
        pairs = []
        try:
            for _ in range(WARM_UPS):
                base.turn(), head.turn()
            for number in range(PAIRS_A_PROCESS):
                if (self.generation + number) % 2:
                    found = base.turn(), head.turn()
                else:
                    found = (head.turn(), base.turn())[::-1]
                pairs.append(found)
            self.figures[base.row].groups.append(pairs)
            self.figures[base.row].seconds = base.seconds
        except SideError as error:
            self.failures.append(str(error))
        base.advance()
        head.advance()

    def _place(self, row: str) -> int:
        """Where a row comes: benchmarks run in the order of their files."""
        order = [each.name for each in ROWS]
        return self.group.files.index(BY_NAME[row].file) * len(order) + order.index(row)

    def differing(self) -> set[str]:
        """The files whose benchmarks are not the same on both sides."""
        return {
            name
            for name in self.group.files
            if len({_text(side.benchmarks / name) for side in self.sides}) > 1
        }

    def slower(self) -> list[str]:
        return [name for name in self.rows if self.figures[name].verdict().text == SLOWER]

    def missing(self) -> list[str]:
        return [name for name, figures in self.figures.items() if not figures.groups]

    def table(self) -> list[list[str]]:
        differing = self.differing()
        lines = [["row", "base", "now", "now / base", "95 % between", "limit", "pairs", "verdict"]]
        for name, figures in self.figures.items():
            if not figures.groups:
                lines.append([name, *["-"] * 6, "NO FIGURE"])
                continue
            found = figures.verdict()
            limit = f"{found.limit - 1:.0%}"
            text = found.text.upper() if found.text == SLOWER else found.text
            if figures.row.file in differing:
                text += ", benchmarks differ"
            between = f"{found.low:.3f} to {found.high:.3f}"
            values = [figures.shown(value) for value in figures.medians()]
            cells = [name, *values, f"{found.median:.3f}", between, limit]
            lines.append([*cells, str(figures.pair_count), text])
        return lines


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def table_for_terminal(lines: list[list[str]]) -> str:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines
    )


def markdown(comparison: Comparison, lines: list[list[str]], summary: str) -> str:
    from machine import described

    base, head = comparison.sides
    # Where it ran; what each side is has just been said.
    machine = [pair for pair in described(comparison.group.name) if pair[0] != "revision"]
    return "\n".join(
        [
            f"# {head.described} compared with {base.described}",
            "",
            "| " + " | ".join(lines[0]) + " |",
            "|---" * len(lines[0]) + "|",
            *("| " + " | ".join(line) + " |" for line in lines[1:]),
            "",
            summary,
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {value} |" for name, value in machine),
            "",
        ]
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("base")
    parser.add_argument("--head", default=str(ROOT))
    # A broker that others load too says nothing about two checkouts.
    groups = [name for name in GROUPS if name not in (REAL_PULSAR.name, TRANSACTIONS.name)]
    parser.add_argument("--group", choices=groups, default="core")
    parser.add_argument("--rows", type=lambda text: [name for name in text.split(",") if name])
    parser.add_argument("--pairs", type=int, default=24)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    known = {row.name for row in GROUPS[options.group].rows}
    unknown = sorted(set(options.rows or ()) - known)
    if unknown:
        parser.error(f"no row {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    if options.pairs < PAIRS_MIN:
        parser.error(f"fewer than {PAIRS_MIN} pairs say nothing")
    return options


def main() -> int:
    options = arguments()
    lacking = spark_is_missing() if options.group == SPARK.name else ""
    if lacking:
        print(f"nothing was compared: {lacking}", file=sys.stderr)
        return 1
    try:
        comparison = Comparison(options, checkout(options.base), checkout(options.head))
    except CheckoutError as error:
        print(error, file=sys.stderr)
        return 1
    comparison.run()
    for text in comparison.failures:
        print(f"\n{text}", file=sys.stderr)
    lines = comparison.table()
    missing, slower = comparison.missing(), comparison.slower()
    summary = f"slower: {', '.join(slower) or 'none'}"
    summary += f"; without a figure: {', '.join(missing)}" if missing else ""
    summary += f"; not in the base: {', '.join(comparison.new)}" if comparison.new else ""
    print(f"{table_for_terminal(lines)}\n\n{summary}")
    if options.write:
        options.write.write_text(markdown(comparison, lines, summary))
        print(f"written: {options.write}")
    return int(bool(missing) or bool(slower and not options.quick))


if __name__ == "__main__":
    sys.exit(main())
