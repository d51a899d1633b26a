"""Measures every axis of growth, each point in processes of their own, up and down in turns, and
writes growth.json.

    PYTHONPATH=benchmarks python -m growth.run [--only AXIS,...] [--rounds 3] [--large]

--large: the points that need an hour and a disk, too. A point for which the disk has no room is
left out with a word.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from fresh_process import print_figures, run_fresh
from growth.axes import AXES, HERE, Axis
from machine import described

FIGURES = HERE / "growth.json"
SCRATCH = HERE.parent / "scratch"


def child(name: str, point: int) -> None:
    """Measure one point, in this process."""
    axis = next(each for each in AXES if each.name == name)
    SCRATCH.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="growth-", dir=SCRATCH))
    try:
        print_figures(**axis.measure(point, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def has_room(axis: Axis, point: int) -> bool:
    wanted = axis.bytes_a_point * point * 3 // 2
    return shutil.disk_usage(HERE).free > max(wanted, 4 << 30)


def measured(axis: Axis, rounds: int, *, large: bool) -> dict[str, Any]:
    """{what: {point: [of each round]}}."""
    points = [each for each in axis.points if large or each < axis.large]
    found: dict[str, Any] = {}
    for turn in range(rounds):
        for point in points if turn % 2 == 0 else reversed(points):
            if not has_room(axis, point):
                print(f"{axis.name} {point}: left out, the disk has no room", file=sys.stderr)
                continue
            took = run_fresh("-m", "growth.run", "--child", axis.name, "--point", str(point))
            print(
                axis.name, point, {each: round(value) for each, value in took.items()}, flush=True
            )
            for what, value in took.items():
                found.setdefault(what, {}).setdefault(str(point), []).append(value)
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--child", default="")
    parser.add_argument("--point", type=int, default=0)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.point)
        return 0
    known = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {"axes": {}}
    chosen = set(filter(None, given.only.split(","))) or {each.name for each in AXES}
    for axis in AXES:
        if axis.name in chosen:
            known["axes"][axis.name] = measured(axis, given.rounds, large=given.large)
            known["machine"] = described()
            known["date"] = datetime.date.today().isoformat()
            FIGURES.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
