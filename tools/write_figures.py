"""Draws the plots of the README and of docs/comparison.md, and writes their lists of figures, out
of benchmarks/RESULTS.md: no figure is typed. A test compares.

    .venv/bin/python tools/write_figures.py
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from drawing import COLOURS, FAINT, Drawing
from write_policies import between

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks/RESULTS.md"
README = ROOT / "README.md"
PAGE = ROOT / "docs/comparison.md"
PICTURES = ROOT / "docs/pictures"
BEGIN = "<!-- figures: written by tools/write_figures.py -->"
END = "<!-- /figures -->"
UNITS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
WIDTH = 480


@dataclass(frozen=True)
class Pair:
    """Two times for the same work, as the details of a row have them. `before` stands in front of a
    time there."""

    row: str
    work: str
    other: str
    before_other: str
    before_ours: str = "PulsarX"


OFFICIAL = "the official client"
ON_PULSAR = "pulsar-client"
PLOTS: dict[str, tuple[str, list[Pair]]] = {
    "readme.svg": (
        "time for a message of 100 bytes",
        [
            Pair("real_pulsar_send_async_100", "publish, CPU", ON_PULSAR, OFFICIAL),
            Pair("real_pulsar_receive_100", "receive and acknowledge, CPU", ON_PULSAR, OFFICIAL),
            Pair(
                "durable_many", "store on the device, 1,000 at a time", "LMDB", "LMDB, a message",
                "a message",
            ),
        ],
    ),
    "lmdb.svg": (
        "time for a message, stored 1,000 at a time",
        [
            Pair(
                "durable_many", "store on the device", "LMDB", "LMDB, a message", "a message"
            ),
        ],
    ),
    "real-pulsar.svg": (
        "CPU time of the client for a message",
        [
            Pair(f"real_pulsar_{call}_{size}", f"{work}, {shown}", ON_PULSAR, OFFICIAL)
            for call, work in [
                ("send", "send and wait"),
                ("send_async", "send_async"),
                ("receive", "receive, acknowledge"),
            ]
            for size, shown in [(100, "100 bytes"), (1024, "1 KiB"), (10240, "10 KiB")]
        ],
    ),
    "schemas.svg": (
        "time for a record",
        [
            Pair(f"schema_{kind}_{verb}", f"{verb} {shown}", "pulsar-client", OFFICIAL, "a record")
            for kind, shown in [("json", "JSON"), ("avro", "Avro")]
            for verb in ("encode", "decode")
        ],
    ),
    "spark.svg": (
        "time for a message or row in Spark",
        [
            Pair("spark_map_uds", "map", "Parquet", "parquet map", "topic map"),
            Pair("spark_save_uds", "write", "Parquet", "Parquet", "save"),
            Pair("spark_topic_parquet", "read", "Parquet", "parquet", "topic"),
        ],
    ),
}  # fmt: skip


README_WORDS = {
    "real_pulsar_send_async_100": "CPU time to publish than `pulsar-client` with a Pulsar server",
    "real_pulsar_receive_100": "CPU time to receive and acknowledge than that",
    "durable_many": "time to store 1,000 messages on the device than LMDB",
}


@dataclass(frozen=True)
class Figure:
    """What was measured of a pair: times in nanoseconds, and the median of their ratios."""

    pair: Pair
    other: float
    ours: float
    ratio: str


def figure(text: str, pair: Pair) -> Figure:
    """Raise ValueError where the row, or a time of it, is not there."""
    row = re.search(rf"^\| {pair.row} \|(.*)\|$", text, re.MULTILINE)
    note = re.search(rf"^- \*\*{pair.row}\*\* \([^)]*\): (.*)$", text, re.MULTILINE)
    if row is None or note is None:
        raise ValueError(f"{RESULTS.name} has no row {pair.row}")
    median = row[1].split("|")[2].strip()
    return Figure(
        pair,
        _time(note[1], pair.before_other, pair),
        _time(note[1], pair.before_ours, pair),
        median,
    )


def _time(note: str, before: str, pair: Pair) -> float:
    found = re.findall(rf"(?:^|, ){re.escape(before)} ([\d.]+) (ns|µs|ms|s)\b", note)
    if not found:
        raise ValueError(f"{RESULTS.name}, {pair.row}: no time behind {before!r} in {note!r}")
    number, unit = found[-1]  # "LMDB, a message" has "a message" in it, and comes first
    return float(number) * UNITS[unit]


def shown(nanoseconds: float) -> str:
    for unit in ("s", "ms", "µs"):
        if nanoseconds >= UNITS[unit]:
            return f"{nanoseconds / UNITS[unit]:.3g} {unit}"
    return f"{nanoseconds:.3g} ns"


def plot(title: str, figures: list[Figure]) -> str:
    """Bars side by side; the longer one of each pair has the whole width."""
    drawing = Drawing(WIDTH, 52 + 74 * len(figures), title)
    drawing.text(16, 28, title, bold=True)
    left, whole = 170, WIDTH - 170 - 90
    for at, each in enumerate(figures):
        y = 48 + at * 74
        drawing.text(16, y + 13, each.pair.work, size=13, fill=FAINT)
        longest = max(each.other, each.ours)
        sides = [("PulsarX", each.ours, COLOURS[0]), (each.pair.other, each.other, COLOURS[5])]
        for line, (name, time, colour) in enumerate(sides):
            top = y + 20 + line * 22
            width = max(time / longest * whole, 2)
            drawing.text(16, top + 14, name, size=13)
            drawing.box(left, top, width, 18, colour)
            drawing.text(left + width + 6, top + 14, shown(time), size=13)
    return drawing.svg()


def list_of(figures: list[Figure]) -> list[str]:
    """The figures of a plot as items."""
    return [
        f"- {each.pair.work}: PulsarX {shown(each.ours)}, {each.pair.other} {shown(each.other)}\n"
        f"  (row `{each.pair.row}`, median ratio {each.ratio})"
        for each in figures
    ]


def outputs(text: str | None = None) -> dict[Path, str]:
    """Each file as it should be by the results."""
    if text is None:
        text = RESULTS.read_text(encoding="utf-8")
    found: dict[Path, str] = {}
    figures = {name: [figure(text, each) for each in pairs] for name, (_, pairs) in PLOTS.items()}
    for name, (title, _) in PLOTS.items():
        found[PICTURES / name] = plot(title, figures[name])
    readme = README.read_text(encoding="utf-8")
    found[README] = between(readme, BEGIN, END, list_of_readme(figures["readme.svg"]))
    page = PAGE.read_text(encoding="utf-8")
    for name, items in figures.items():
        begin = BEGIN.replace("figures:", f"figures {name}:")
        if begin in page:
            page = between(page, begin, END, list_of(items))
    found[PAGE] = page
    return found


def list_of_readme(figures: list[Figure]) -> list[str]:
    return [
        f"- **{each.ratio} times** less {README_WORDS[each.pair.row]}:\n"
        f"  {shown(each.ours)} a message, not {shown(each.other)}"
        for each in figures
    ]


def main() -> int:
    PICTURES.mkdir(exist_ok=True)
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
