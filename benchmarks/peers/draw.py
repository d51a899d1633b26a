"""Draws what peers.json says, for the README and docs/comparison.md, by matplotlib: the same
figures make the same bytes.

    PYTHONPATH=benchmarks python -m peers.draw [FOLDER]
"""

from __future__ import annotations

import importlib.util
import io
import math
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peers import get
from peers.table import COLUMNS, OURS, SIZES, Figures, cells, number, time_text

PICTURES = Path(__file__).resolve().parent.parent.parent / "docs" / "pictures"
HEADS = {
    "publish_each, page cache": "one by one", "publish_stream, page cache": "a call each",
    "publish_batch, page cache": "in lists", "publish_each, flushed": "one by one",
    "publish_batch, flushed": "in lists", "consume_each, page cache": "a call each",
    "consume_batch, page cache": "in lists",
}  # fmt: skip
GROUPS = (("publish, page cache", 0, 3), ("publish to the device", 3, 5), ("consume", 5, 7))
AHEAD, BEHIND, TEXT = (47, 111, 176), (214, 120, 40), "#1c2733"
STYLE = {
    "svg.fonttype": "none", "svg.hashsalt": "pulsarx", "font.family": "sans-serif",
    "font.size": 10, "path.simplify": True, "axes.spines.top": False, "axes.spines.right": False,
}  # fmt: skip


def colour(ratio: float) -> tuple[float, float, float]:
    """White where both are as fast, full at ten times."""
    share = min(abs(math.log10(ratio)), 1.0) * 0.85
    full = AHEAD if ratio >= 1 else BEHIND
    return tuple((255 + (part - 255) * share) / 255 for part in full)  # type: ignore[return-value]


def svg(figure: Any) -> str:
    """A line for each shape, and no more digits than one sees."""
    about = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata=about)
    short = re.sub(r'\s*\n(?=[LMz"])', " ", text.getvalue())
    short = re.sub(r"(\d\.\d\d)\d+(?![^<>]*</text>)", r"\1", short)
    return "\n".join(line.strip() for line in short.splitlines()) + "\n"


def works(figures: Figures, size: str) -> str:
    """A cell for each peer and work: how many times as fast PulsarX is."""
    from matplotlib import pyplot

    found = {place: cells(figures, size, (place,)) for place in OURS}
    rows = [
        (place, peer) for place in OURS for peer in dict.fromkeys(peer for _, peer in found[place])
    ]
    figure, axes = pyplot.subplots(figsize=(8.4, 1.65 + 0.36 * len(rows)))
    for across, column in enumerate(", ".join(each) for each in COLUMNS):
        axes.text(across + 0.5, -0.25, HEADS[column], ha="center", va="bottom", color=TEXT)
        for down, (place, peer) in enumerate(rows):
            ratio = found[place].get((column, peer))
            shade = colour(ratio.median) if ratio else (0.95, 0.95, 0.95)
            axes.add_patch(
                pyplot.Rectangle((across, down), 0.96, 0.92, color=shade, lw=0, clip_on=False)
            )
            if ratio:
                strong = ratio.median >= 6
                axes.text(
                    across + 0.48, down + 0.48, f"{number(ratio.median)}×", ha="center",
                    va="center", color="white" if strong else TEXT,
                )  # fmt: skip
    for name, first, last in GROUPS:
        axes.text((first + last) / 2, -0.85, name, ha="center", va="bottom", weight="bold")
        axes.plot([first, last - 0.04], [-0.8, -0.8], color=TEXT, lw=0.8)
    for down, (place, peer) in enumerate(rows):
        beside = "" if place == "in process" else ", over TCP"
        axes.text(-0.1, down + 0.48, f"{peer}{beside}", ha="right", va="center", color=TEXT)
    axes.set_xlim(-2.1, len(COLUMNS))
    axes.set_ylim(len(rows) + 0.5, -2.2)
    legend = "blue: PulsarX is ahead; orange: the other is; over TCP: beside pulsarx serve"
    axes.text(0, len(rows) + 0.35, legend, fontsize=9, color=TEXT)
    axes.text(
        -2.1, -1.75, f"How many times as fast as others PulsarX is, messages of {SIZES[size]}",
        fontsize=12, weight="bold", color=TEXT,
    )  # fmt: skip
    axes.axis("off")
    figure.subplots_adjust(0.01, 0.01, 0.99, 0.99)
    return svg(figure)


def hand_over(figures: Figures) -> str:
    """Bars of times, those of PulsarX in its colour; each group has a scale of its own."""
    from matplotlib import pyplot

    groups = {
        between: {name: statistics.median(times) for name, times in row.items()}
        for between, row in figures.found["hand-over"].items()
        if row
    }
    count = sum(len(row) for row in groups.values())
    figure, axes = pyplot.subplots(figsize=(8.4, 0.5 + 0.3 * (count + 1.5 * len(groups))))
    down = 0.4
    for between, row in groups.items():
        head = f"between {between}".replace("between over", "over")
        axes.text(0, down, head, weight="bold", color=TEXT)
        for name, time in sorted(row.items(), key=lambda item: item[1]):
            down += 1
            ours = name.startswith("PulsarX")
            shade = [part / 255 for part in (AHEAD if ours else (150, 160, 170))]
            width = time / max(row.values()) * 5
            axes.barh(down - 0.15, width, left=4, color=shade, height=0.7)
            axes.text(3.9, down, name, ha="right", color=TEXT)
            axes.text(4.05 + width, down, time_text(time), color=TEXT)
        down += 1.5
    axes.set_xlim(0, 10)
    axes.set_ylim(down - 1, -1)
    title = "Time of a message of 100 bytes, from sending to receiving it"
    axes.text(0, -0.6, title, fontsize=12, weight="bold", color=TEXT)
    axes.axis("off")
    figure.subplots_adjust(0.01, 0.01, 0.99, 0.99)
    return svg(figure)


def outputs(figures: Figures | None = None) -> dict[str, str]:
    """Each picture by its name."""
    figures = figures or Figures.read()
    with drawing():
        found = {f"peers-{size}.svg": works(figures, size) for size in SIZES}
        return found | {"peers-hand-over.svg": hand_over(figures)}


@contextmanager
def drawing() -> Iterator[None]:
    """What is drawn meanwhile looks as our other pictures."""
    import matplotlib

    matplotlib.use("svg")
    with matplotlib.rc_context(STYLE):
        yield


def write_pictures(drawn: Callable[[], dict[str, str]], folder: Path = PICTURES) -> int:
    """Write pictures by their names; where there is no matplotlib, say so."""
    get.use_packages()
    if importlib.util.find_spec("matplotlib") is None:
        print("no picture was drawn: matplotlib is not installed", file=sys.stderr)
        return 0
    for name, text in drawn().items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


def main() -> int:
    return write_pictures(outputs, *map(Path, sys.argv[1:2]))


if __name__ == "__main__":
    sys.exit(main())
