"""Writes what peers.json says into RESULTS.md, the README and docs/comparison.md: each figure is
how many times as fast as a peer PulsarX is, the median of the rounds, with their spread.

    PYTHONPATH=benchmarks python -m peers.table
"""

from __future__ import annotations

import json
import statistics
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.peer import IN_PROCESS, MODES, OVER_TCP, RAW
from reach import PEERS
from report import results_markdown

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FIGURES = HERE / "peers.json"
RESULTS = HERE.parent / "RESULTS.md"
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "comparison.md"
BEGIN = "<!-- peers: written by benchmarks/peers/table.py -->"
END = "<!-- /peers -->"

WORKS = {
    "publish_each": "publish, each confirmed before the next",
    "publish_stream": "publish, a call each, confirmed by the batch",
    "publish_batch": "publish, a batch a call",
    "publish_flight": "publish, one by one, 64 unconfirmed",
    "consume_each": "consume and acknowledge, a call each",
    "consume_batch": "consume and acknowledge, a batch at a time",
}
# What a peer without lists does with a batch: the best way it has.
INSTEAD = {
    "publish_batch": ("publish_stream", "publish_each"),
    "publish_stream": ("publish_each",),
    "consume_batch": ("consume_each",),
}
SIZES = {"100": "100 B", "1024": "1 KiB", "10240": "10 KiB"}
OURS = {IN_PROCESS: "PulsarX", OVER_TCP: "PulsarX, served", RAW: "PulsarX, served, raw"}
POLLED = "PulsarX polled"
BUSY = 1.0  # load of a machine that others use
BESIDES = {OVER_TCP: ("PulsarX", "checksum + pwrite in C")}
BOUNDS = ("checksum + pwrite in C", "an empty call for each")


@dataclass(frozen=True)
class Ratio:
    """How many times as fast as the other we are; below 1: slower."""

    median: float
    low: float
    high: float

    @property
    def text(self) -> str:
        return f"{number(self.median)} ({number(self.low)} to {number(self.high)})"


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 99.5 else f"{value:.2g}"


def time_text(nanoseconds: float) -> str:
    for unit, factor in (("ns", 1.0), ("µs", 1e3), ("ms", 1e6)):
        if nanoseconds < 1000 * factor:
            return f"{nanoseconds / factor:.3g} {unit}"
    return f"{nanoseconds / 1e9:.3g} s"


class Figures:
    """peers.json."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found

    @classmethod
    def read(cls) -> Figures:
        return cls(json.loads(FIGURES.read_text(encoding="utf-8")))

    def times(self, way: str, mode: str, size: str, peer: str) -> list[float]:
        """Nanoseconds a message, or of the best way instead; [] where it has none."""
        instead = INSTEAD.get(way, ()) if peer not in BOUNDS else ()
        for each in (way, *instead):
            row = self.found["turns"].get(f"{each}, {mode}", {}).get(size, {})
            if row.get(peer):
                return list(row[peer])
        return []

    def has_way(self, way: str, mode: str, peer: str) -> bool:
        return any(peer in row for row in self.found["turns"].get(f"{way}, {mode}", {}).values())

    def ratio(self, way: str, mode: str, size: str, ours: str, peer: str) -> Ratio | None:
        return _ratio(self.times(way, mode, size, ours), self.times(way, mode, size, peer))

    def hand_over(self, between: str, peer: str) -> Ratio | None:
        row = self.found["hand-over"][between]
        return _ratio(row[self.talker(between, peer)], row[peer])

    def talker(self, between: str, peer: str = "") -> str:
        """Ours; beside one that polls the one that does."""
        if " polled" in peer and POLLED in self.found["hand-over"][between]:
            return POLLED
        return "PulsarX, served" if between == OVER_TCP else "PulsarX"

    def peers(self, place: str) -> list[str]:
        """The others that were measured there, in the order of the run."""
        places = self.found["places"].items()
        return [name for name, where in places if where == place and name != OURS[place]]


def _ratio(ours: list[float], theirs: list[float]) -> Ratio | None:
    """Of turns of the same round."""
    found = [other / own for own, other in zip(ours, theirs)]
    return Ratio(statistics.median(found), min(found), max(found)) if found else None


def works_table(figures: Figures, place: str, mode: str) -> list[str]:
    ours = OURS[place]
    lines = ["| work | beside | " + " | ".join(SIZES.values()) + " |", "|---" * 5 + "|"]
    for way, work in WORKS.items():
        if not figures.has_way(way, mode, ours):
            continue
        times = [figures.times(way, mode, size, ours) for size in SIZES]
        texts = [time_text(statistics.median(each)) if each else "-" for each in times]
        lines.append(f"| {work} | {ours} itself | " + " | ".join(texts) + " |")
        for peer in [*figures.peers(place), *BESIDES.get(place, ())]:
            ratios = [figures.ratio(way, mode, size, ours, peer) for size in SIZES]
            if any(ratios):
                star = "" if figures.has_way(way, mode, peer) else " *"
                texts = [each.text if each else "-" for each in ratios]
                lines.append(f"| {work} | {peer}{star} | " + " | ".join(texts) + " |")
    return lines


def hand_over_table(figures: Figures) -> list[str]:
    lines = ["| between | beside | ratio | PulsarX | it |", "|---" * 5 + "|"]
    for between, row in figures.found["hand-over"].items():
        if figures.talker(between) not in row:
            continue
        for peer in row:
            ours = figures.talker(between, peer)
            ratio = figures.hand_over(between, peer)
            if not peer.startswith("PulsarX") and ratio is not None:
                own = time_text(statistics.median(row[ours]))
                theirs = time_text(statistics.median(row[peer]))
                lines.append(f"| {between} | {peer} | {ratio.text} | {own} | {theirs} |")
    return lines


def part(figures: Figures) -> str:
    """What RESULTS.md says."""
    found = figures.found
    lines = [f"## {PEERS.title}", "", *PEERS.text, ""]
    lines += [f"{found['rounds']} rounds in {found['minutes']:g} minutes, by `{PEERS.command}` on "]
    lines[-1] += f"{found['date']}."
    load = found["machine"]["load before"].split()[0]
    if float(load) > BUSY:
        lines[-1] += f" Others used the machine: its load was {load} before."
    for place in OURS:
        for mode in MODES:
            if any(figures.has_way(way, mode, OURS[place]) for way in WORKS):
                lines += ["", f"### {place[0].upper()}{place[1:]}, {mode}", ""]
                lines += works_table(figures, place, mode)
    lines += ["", "\\* It has no lists: what it does with a call for each.", ""]
    lines += ["### Hand-over of a message of 100 bytes, half of a round trip", ""]
    lines += hand_over_table(figures)
    if found["skipped"]:
        lines += ["", "### Skipped", ""]
        lines += [f"- {name}: {why}" for name, why in found["skipped"].items()]
    lines += ["", "### Machine", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in found["machine"].items()]
    return "\n".join(lines) + "\n"


def between(text: str, lines: list[str]) -> str:
    """The text with these lines between the marks."""
    before, begun, rest = text.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not begun or not ended:
        raise ValueError(f"no {BEGIN} and {END}")
    return f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}"


def cells(figures: Figures, size: str, places: tuple[str, ...]) -> dict[tuple[str, str], Ratio]:
    """(way and mode, peer) of the picture: no bounds, and not our own other ways."""
    found = {}
    for place in places:
        for peer in figures.peers(place):
            if peer in BOUNDS or peer.startswith("PulsarX"):
                continue
            for column in COLUMNS:
                ratio = figures.ratio(*column, size, OURS[place], peer)
                if ratio is not None:
                    found[", ".join(column), peer] = ratio
    return found


COLUMNS = (
    ("publish_each", "page cache"), ("publish_stream", "page cache"),
    ("publish_batch", "page cache"), ("publish_each", "flushed"), ("publish_batch", "flushed"),
    ("consume_each", "page cache"), ("consume_batch", "page cache"),
)  # fmt: skip


def summary(figures: Figures) -> list[str]:
    """The paragraph of the README: what was counted, and where others are ahead."""
    counted: dict[str, Ratio] = {}
    for size in SIZES:
        for place in OURS:
            for (column, peer), ratio in cells(figures, size, (place,)).items():
                counted[f"{column}, {peer}, {size}"] = ratio
    behind: dict[str, list[float]] = {}
    for name, ratio in counted.items():
        if ratio.median < 1:
            behind.setdefault(name.split(", ")[2], []).append(ratio.median)
    ahead = sum(ratio.median >= 1 for ratio in counted.values())
    text = f"PulsarX is ahead in {ahead} of {len(counted)} comparisons, of 100 B, 1 KiB and 10 KiB."
    others = [
        f"{peer} in {len(ratios)} (up to {number(1 / min(ratios))} times as fast)"
        for peer, ratios in sorted(behind.items(), key=lambda item: -len(item[1]))
    ]
    text += " Ahead of it are " + ", ".join(others) + "." if others else ""
    row = figures.found["hand-over"].get("processes", {})
    pairs = (("iceoryx2 with events", "PulsarX"), ("iceoryx2 polled", POLLED))
    ratios = [
        _ratio(row[f"{floor}, nothing stored"], row[ours])
        for floor, ours in pairs
        if ours in row and f"{floor}, nothing stored" in row
    ]
    if len(ratios) == len(pairs):
        asleep, awake = (number(each.median) for each in ratios if each is not None)
        text += f" From one process to another a message takes {asleep} times as long as by"
        text += f" iceoryx2, which stores nothing; {awake} where both keep a core busy."
    return textwrap.wrap(text, 110, break_long_words=False, break_on_hyphens=False)


def outputs(figures: Figures | None = None) -> dict[Path, str]:
    """Each file as it should be by the figures."""
    figures = figures or Figures.read()
    before = RESULTS.read_text(encoding="utf-8")
    return {
        RESULTS: results_markdown(before, PEERS, part(figures)),
        README: between(README.read_text(encoding="utf-8"), summary(figures)),
        PAGE: between(PAGE.read_text(encoding="utf-8"), hand_over_table(figures)),
    }


def main() -> int:
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
