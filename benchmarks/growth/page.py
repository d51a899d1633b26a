"""Writes what growth.json says as docs/growth.md and its picture, by matplotlib: the same figures
make the same bytes.

    PYTHONPATH=benchmarks python -m growth.page
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from pathlib import Path
from typing import Any

from growth.axes import AXES, Axis
from growth.run import FIGURES
from peers.draw import PICTURES, TEXT, drawing, svg, write_pictures
from peers.table import time_text

PAGE = PICTURES.parent / "growth.md"
PICTURE = "growth.svg"
COLOURS = ("#2f6fb0", "#d67828", "#3f9142", "#8659a8", "#7a7f87")
CAPACITIES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
HEAD = """# Growth

What a message, or a call, costs when there is more of something: the curves are how many times
the cheapest point each point costs, so a flat one is what you want. Figures are medians of some
rounds of one run, each point in a process of its own, with durability `os` where nothing else is
said, on {processor}, {memory} of memory, {system} ({date}). `make bench-growth` measures them
again.

![What grows, and what does not](pictures/growth.svg)
"""

Curves = dict[str, dict[int, float]]


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    return found


def curves(found: dict[str, Any], axis: Axis) -> Curves:
    """Medians by what was measured, and point."""
    rows = found["axes"].get(axis.name, {})
    return {
        what: {int(point): statistics.median(values) for point, values in row.items()}
        for what, row in sorted(rows.items())
    }


def point_text(point: int) -> str:
    for size, name in ((1_000_000, " million"), (1000, ",000")):
        if point >= size and point % size == 0:
            return f"{point // size}{name}"
    return f"{point:,}"


def bytes_text(value: float) -> str:
    size, unit = next((each for each in CAPACITIES if value >= each[0]), CAPACITIES[-1])
    return f"{value / size:.3g} {unit}"


def value_text(what: str, value: float) -> str:
    return bytes_text(value) if what.endswith(" B") else time_text(value)


def size_text(axis: Axis, point: int) -> str:
    return bytes_text(point) if axis.unit == "bytes" else point_text(point)


def growth(values: dict[int, float]) -> dict[int, float]:
    """How many times the cheapest point each costs."""
    least = min(values.values())
    return {point: value / least if least else 1.0 for point, value in values.items()}


def drawn(found: dict[str, Any]) -> str:
    from matplotlib import pyplot

    across = 2
    down = math.ceil(len(AXES) / across)
    figure, panels = pyplot.subplots(down, across, figsize=(8.4, 2.5 * down))
    for axis, panel in zip(AXES, panels.flat):
        for colour, (what, values) in zip(COLOURS, times_of(curves(found, axis)).items()):
            ratio = growth(values)
            panel.plot(
                list(ratio), list(ratio.values()), marker="o", ms=3, lw=1.4, color=colour,
                label=what.removesuffix(" ns"),
            )  # fmt: skip
        panel.set_xscale("log")
        panel.set_yscale("log")
        low, high = panel.get_ylim()
        panel.set_ylim(min(low, 0.8), max(high, 12))
        panel.set_title(axis.name, fontsize=10, weight="bold", color=TEXT, loc="left")
        panel.set_xlabel(axis.unit, fontsize=8)
        panel.tick_params(labelsize=8)
        panel.legend(fontsize=7, frameon=False, loc="upper left")
    figure.subplots_adjust(0.06, 0.05, 0.98, 0.97, wspace=0.16, hspace=0.55)
    return svg(figure)


def times_of(found: Curves) -> Curves:
    return {what: values for what, values in found.items() if what.endswith(" ns")}


def section(found: dict[str, Any], axis: Axis) -> list[str]:
    rows = curves(found, axis)
    if not rows:
        return []
    points = sorted({point for values in rows.values() for point in values})
    lines = [f"## {axis.name.capitalize()}", "", axis.expect, ""]
    lines.append(f"| {axis.unit} | " + " | ".join(what.rpartition(" ")[0] for what in rows) + " |")
    lines.append("|---" * (len(rows) + 1) + "|")
    for point in points:
        cells = [
            value_text(what, values[point]) if point in values else "–"
            for what, values in rows.items()
        ]
        lines.append(f"| {size_text(axis, point)} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def page(found: dict[str, Any]) -> str:
    machine = dict(found["machine"])
    head = HEAD.format(date=found["date"], **{
        each: machine[each] for each in ("processor", "memory", "system")
    })  # fmt: skip
    sections = [line for axis in AXES for line in section(found, axis)]
    return "\n".join([head, *sections]).rstrip() + "\n"


def outputs() -> dict[Path, str]:
    """What there is to write, but for the picture."""
    return {PAGE: page(read())}


def picture() -> str:
    with drawing():
        return drawn(read())


def main() -> int:
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
    return write_pictures(lambda: {PICTURE: picture()})


if __name__ == "__main__":
    sys.exit(main())
