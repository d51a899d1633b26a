"""`make bench`: measures every promise of reach.py and prints it as met or missed.

    python benchmarks/run.py [--quick] [-k EXPRESSION] [--results FILE]

Ends with 1 when a row has no figure, with 0 otherwise: a missed figure is a result, a missing one
is not. Writes RESULTS.md when all rows are there and the run was not a quick one.
--quick: small sizes and few rounds, to see that everything runs; no 10 GB.
-k: only some benchmarks, as for pytest; the other rows are missing then.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

from machine import described
from reach import FILES
from report import missing, results_markdown, results_of, table_for_terminal

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("-k", dest="only", default="")
    parser.add_argument("--results", type=Path, default=HERE / "RESULTS.md")
    return parser.parse_args()


def measure(quick: bool, only: str) -> dict[str, object]:
    """Run the benchmarks; what pytest-benchmark wrote, {} when it wrote nothing."""
    report = ROOT / "build" / "bench" / f"report-{os.getpid()}.json"
    report.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pytest", *(str(HERE / name) for name in FILES)]
    command += ["-q", "--benchmark-only", "--benchmark-quiet", f"--benchmark-json={report}"]
    command += ["--quick"] if quick else []
    command += ["-k", only] if only else []
    # One row that fails must not take the others with it, so what pytest answers is no answer.
    subprocess.run(command, cwd=ROOT, check=False)
    try:
        found: dict[str, object] = json.loads(report.read_text())
    except (OSError, ValueError):
        found = {}
    report.unlink(missing_ok=True)
    return found


def main() -> int:
    options = arguments()
    machine = described()
    results = results_of(measure(options.quick, options.only))
    print(table_for_terminal(results))
    if dict(machine)["build"] != "release":
        print(f"\nThe build is {dict(machine)['build']}, not release: these figures say nothing.")
    absent = missing(results)
    if absent:
        print(f"\nNo figure for: {', '.join(row.name for row in absent)}", file=sys.stderr)
        return 1
    if not options.quick:
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        options.results.write_text(results_markdown(results, machine, date))
        print(f"\nwritten: {options.results}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
