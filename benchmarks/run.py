"""`make bench` and its like: measure promises of reach.py, print each as met or missed.

    python benchmarks/run.py [--group core|official|real_pulsar|transactions|serve|spark] [--quick]
                             [-k EXPRESSION] [--add] [--results FILE] [--messages COUNT]
                             [--pulsar-url URL] [--java-classpath PATH]

Ends with 1 when a row has no figure, with 0 otherwise: a missed figure is a result, a missing one
is not. When all rows are there, and the run was neither quick nor of another size, it writes the
part of its group in RESULTS.md, and leaves the other part as it is.
--group: core, the library alone; official, beside the official client; real_pulsar, the same on the
Pulsar at --pulsar-url; transactions, of the Java client at --java-classpath there; serve, over TCP;
or spark, which takes minutes, and is skipped with a word where there is no PySpark or no Java.
--quick: small sizes and few rounds, to see that everything runs; no 10 GB.
-k: only some benchmarks, as for pytest; the other rows are missing then.
--add: write the rows that were measured into the part that RESULTS.md has, with their date.
--messages: for the group spark instead of 5 million, and 4 times as many instead of 20 million.
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
from reach import GROUPS, REAL_PULSAR, SPARK, TRANSACTIONS, Group
from report import (
    group_markdown,
    missing,
    part_of,
    results_markdown,
    results_of,
    table_for_terminal,
    with_rows,
)
from spark_process import spark_is_missing

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--group", choices=GROUPS, default="core")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("-k", dest="only", default="")
    parser.add_argument("--add", action="store_true")
    parser.add_argument("--results", type=Path, default=HERE / "RESULTS.md")
    parser.add_argument("--messages", type=int)
    parser.add_argument("--pulsar-url")
    parser.add_argument("--java-classpath")
    options = parser.parse_args()
    needs = {"pulsar_url": (REAL_PULSAR, TRANSACTIONS), "java_classpath": (TRANSACTIONS,)}
    for name, groups in needs.items():
        if (GROUPS[options.group] in groups) != (getattr(options, name) is not None):
            option = f"--{name.replace('_', '-')}"
            known = ", ".join(each.name for each in groups)
            parser.error(f"{option} belongs to --group {known}: {REAL_PULSAR.command}")
    return options


def measure(group: Group, options: argparse.Namespace) -> dict[str, object]:
    """Run the benchmarks; what pytest-benchmark wrote, {} when it wrote nothing."""
    report = ROOT / "build" / "bench" / f"report-{os.getpid()}.json"
    report.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pytest", *(str(HERE / name) for name in group.files)]
    command += ["-q", "--benchmark-only", "--benchmark-quiet", f"--benchmark-json={report}"]
    command += ["--quick"] if options.quick else []
    command += ["-k", options.only] if options.only else []
    command += [f"--spark-messages={options.messages}"] if options.messages else []
    command += [f"--pulsar-url={options.pulsar_url}"] if options.pulsar_url else []
    command += [f"--java-classpath={options.java_classpath}"] if options.java_classpath else []
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
    group = GROUPS[options.group]
    lacking = spark_is_missing() if group is SPARK else ""
    if lacking:
        print(f"skipped, nothing was measured: {lacking}", file=sys.stderr)
        return 0
    machine = described(group.name)
    results = results_of(measure(group, options))
    print(table_for_terminal(group, results))
    if dict(machine)["build"] != "release":
        print(f"\nThe build is {dict(machine)['build']}, not release: these figures say nothing.")
    absent = missing(group, results)
    if absent and not (options.add and results):
        print(f"\nNo figure for: {', '.join(row.name for row in absent)}", file=sys.stderr)
        return 1
    if not options.quick and not options.messages:
        path: Path = options.results
        before = path.read_text() if path.exists() else ""
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        if options.add:
            part = with_rows(part_of(before, group), group, results, machine, date)
        else:
            part = group_markdown(group, results, machine, date)
        path.write_text(results_markdown(before, group, part))
        print(f"\nwritten: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
