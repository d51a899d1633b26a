"""Writes what spark_peers.json says as docs/spark-peers.md and its picture, by matplotlib: the same
figures make the same bytes.

    PYTHONPATH=benchmarks python -m spark_peers.page
"""

from __future__ import annotations

import json
import statistics
import sys
import textwrap
from pathlib import Path
from typing import Any

from peers.draw import PICTURES, TEXT, colour, drawing, svg, write_pictures
from peers.table import Ratio, _ratio, number
from spark_peers.run import (
    BARE_COPY,
    BARE_STREAM,
    COPIES_WITHOUT_TABLES,
    DROPPED,
    EMPTY,
    EMPTY_STREAM,
    FIGURES,
    GROUPED,
    IN_WORKER,
    PARTS_OF_WORKS,
    WHOLE,
    WORKS,
)

PAGE = PICTURES.parent / "spark-peers.md"
PICTURE = "spark-peers.svg"
OURS = "PulsarX"
PEERS = ("Parquet", "Delta", "Kafka")
ASKED = [(rows, size) for size in (100, 1024) for rows in (1_000_000, 5_000_000, 20_000_000)]
SIZES = {100: "100 B", 1024: "1 KiB"}
MEANS = {
    "write": "a DataFrame of keys and JSON values is appended",
    "read": "all values as typed columns: decoded by PulsarX itself, else by `from_json`",
    "count": "`count()` of all rows",
    "groupBy": "typed columns, the sum of one by another of 1,000 values",
    "stream": "the same read as a stream with trigger `availableNow`",
    "topic to topic": "a stream from one topic or table into another of the same kind",
    "upsert": "a tenth of the keys anew: `upsert_topic`, MERGE, written to Kafka",
    "read upserted": "the newest value of each key, aggregated",
}
WHY = {
    "write": "Rows go from Java to the Python workers that write ledgers; Parquet stays in Java.",
    "read": "Columns go from the Python worker to Java; Parquet is read and parsed in Java.",
    "count": "Footers are read by tasks in Python, and by Java of Parquet and Delta.",
    "groupBy": "All columns asked for are handed to Java before Spark aggregates them.",
    "stream": "Spark starts Python processes for the source before the batch begins, and asks them"
    " for offsets and partitions.",
    "topic to topic": "As of a stream, and each message crosses from Python to Java and back"
    " again.",
    "upsert": "Rows go through Python workers and a key each.",
    "read upserted": "A topic is a log: Spark groups all its messages by key, while Delta skips"
    " what its deletion vectors name. Compaction of the topic takes that from readers and table"
    " views, not from Spark, which reads ledgers.",
    "latency": "It was not profiled. Stores take one turn each, PulsarX first, in the coldest"
    " Java; in each trigger Spark asks a Python process for its offsets and partitions.",
}
BOUNDS = {
    "write": DROPPED,
    "stream": BARE_STREAM,
    "topic to topic": BARE_COPY,
    "read upserted": GROUPED,
}
HEAD = """# Spark beside Parquet, Delta and Kafka

The same works with the same JSON values (`id long, key string, amount double, text string`) in one
Spark application, in alternating rounds: how many times as long as PulsarX each of them takes, the
median of the rounds and their spread. Above 1 PulsarX is faster. `make bench-spark-peers` measures
it again, other sizes by `SPARK_PEERS_ARGS`.

![How many times as long as PulsarX others take](pictures/spark-peers.svg)
"""
TERMS = """## What is compared

- All keep keys and values, uncompressed, in 4 files, ledgers or partitions, and a task for each;
  `local[2]`, 4 GB for the driver, Unix domain sockets to Python workers. The page cache is warm
  but with 5 million rows of 1 KiB, of which memory does not hold all copies.
- PulsarX is read by `read_topic` with a `schema` and by `format("pulsarx")` in streams, written by
  `write_topic` and the sink. Parquet, Delta and Kafka are used through their own formats, and
  parsed by `from_json`.
- Exactly once are PulsarX, Parquet's file sink and Delta. Spark's Kafka sink is at least once: one
  broker, one replica, `acks=all`.
- No row but "PulsarX, flushed" waits for the device: Kafka, Parquet and Delta leave that to the
  system, so PulsarX is told so, too (`flush=False`). Its default is the flushed row.
- Latency: a producer sends a message each 10 ms; files and Delta get ten at a time, for they hold
  no single ones. Counted is the time from sending to when a micro-batch without a trigger
  interval has handed the row to a function of `foreachBatch`.
"""


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FIGURES.read_text(encoding="utf-8"))
    return found


def block_name(rows: int, size: int) -> str:
    return f"{rows} x {size}"


def spoken(name: str) -> str:
    rows, _, size = name.partition(" x ")
    count = f"{int(rows) // 1_000_000} million" if int(rows) >= 1_000_000 else f"{int(rows):,}"
    return f"{count} rows of {SIZES.get(int(size), size + ' B')}"


def ratio(seconds: dict[str, list[float]], peer: str, ours: str = OURS) -> Ratio | None:
    if peer not in seconds or ours not in seconds:
        return None
    return _ratio(seconds[ours], seconds[peer])


def seconds_text(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} s"


def others(block: dict[str, Any]) -> list[str]:
    return [peer for peer in PEERS if any(peer in row for row in block["seconds"].values())]


def works_of(block: dict[str, Any]) -> list[str]:
    return [work for work in WORKS if OURS in block["seconds"].get(work, {})]


def works_table(block: dict[str, Any]) -> list[str]:
    peers = [*others(block), "PulsarX, flushed"]
    lines = ["| work | PulsarX | " + " | ".join(peers) + " |", "|---" * (len(peers) + 2) + "|"]
    for work in works_of(block):
        row = block["seconds"][work]
        found = [ratio(row, peer) for peer in peers]
        texts = [each.text if each else "–" for each in found]
        lines.append(f"| {work} | {seconds_text(row[OURS])} | " + " | ".join(texts) + " |")
    return lines


def parts_text(block: dict[str, Any]) -> list[str]:
    """What bounds the works, and where the time of reading goes, measured part by part."""
    row = block["seconds"].get(PARTS_OF_WORKS)
    if not row:
        return []
    empty, worker, whole = (statistics.median(row[name]) for name in (EMPTY, IN_WORKER, WHOLE))
    text = (
        f"Of {whole:.2f} s of reading, {empty:.2f} s are what a job with an empty function takes; "
        f"{max(worker - empty, 0):.2f} s are reading and decoding in the worker, for `map_topic` "
        f"takes {worker:.2f} s; {max(whole - worker, 0):.2f} s are the way of the columns to Java."
    )
    return [
        "",
        "What Spark's own ways take without any topic, of the same rows:",
        "",
        "| way | takes |",
        "|---|---|",
        *(
            f"| {name} | {seconds_text(row[name])} |"
            for name in (EMPTY, DROPPED, EMPTY_STREAM, BARE_STREAM, BARE_COPY, GROUPED)
        ),
        "",
        *textwrap.wrap(text, 100),
    ]


def bound_text(block: dict[str, Any], work: str) -> str:
    """How much of a work Spark takes for itself."""
    found = block["seconds"].get(PARTS_OF_WORKS, {}).get(BOUNDS.get(work))
    if not found or block["dates"][work] != block["dates"][PARTS_OF_WORKS]:
        return ""  # of another run
    share = statistics.median(found) / statistics.median(block["seconds"][work][OURS])
    return f" {number(share)} of the time is that of {BOUNDS[work]}."


def slower(block: dict[str, Any]) -> list[str]:
    """Where one of them is faster, and why."""
    lines = []
    for work in works_of(block):
        found = {peer: ratio(block["seconds"][work], peer) for peer in PEERS}
        ahead = [
            f"{peer} takes {number(each.median)} times as long"
            for peer, each in found.items()
            if each and each.median < 1
        ]
        if ahead:
            text = f"- {work}: {', '.join(ahead)}. {WHY[work]}{bound_text(block, work)}"
            lines += textwrap.wrap(text, 100, subsequent_indent="  ")
    return ["", "Where others are faster:", "", *lines] if lines else []


def section(name: str, block: dict[str, Any]) -> list[str]:
    machine = block["machine"]
    lines = [f"## {spoken(name)[0].upper()}{spoken(name)[1:]}", ""]
    counts = {len(each) for row in block["seconds"].values() for each in row.values()}
    rounds = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else f"{max(counts)}"
    text = (
        f"{rounds} {'round' if rounds == '1' else 'rounds'} in {block['minutes']:g} minutes on "
        f"{' and '.join(sorted(set(block['dates'].values())))} UTC, on "
        f"{machine['processor']}, {machine['memory']} of memory, {machine['file system']}; its "
        f"load was {machine['load before']} before and {machine['load after']} after; "
        + ", ".join(f"{what} {version}" for what, version in block["versions"].items())
        + f", Java {machine['Java']}."
    )
    return [*lines, *textwrap.wrap(text, 100), "", *works_table(block), *parts_text(block),
            *slower(block), ""]  # fmt: skip


def latency_section(found: dict[str, Any]) -> list[str]:
    if not found:
        return []
    ms = found["ms"]
    load = found["machine"]["load before"]
    lines = [
        "## Latency of a micro-batch",
        "",
        f"{found['seconds']:g} s each on {found['date']} UTC",
    ]
    lines[-1] += f", the load was {load}. In brackets: how many times that of PulsarX."
    lines += ["", "| store | p50 | p99 | messages |", "|---" * 4 + "|"]
    for name, row in ms.items():
        cells = []
        for share in ("p50", "p99"):
            beside = "" if name == OURS else f" ({number(row[share] / ms[OURS][share])})"
            cells.append(f"{row[share]:.0f} ms{beside}")
        lines.append(f"| {name} | {' | '.join(cells)} | {row['messages']:,} |")
    ahead = [name for name, row in ms.items() if row["p50"] < ms[OURS]["p50"]]
    if ahead:
        lines += ["", f"Faster: {', '.join(ahead)}. {WHY['latency']}"]
    return [*lines, ""]


def unmeasured(found: dict[str, Any]) -> list[str]:
    lines = []
    for rows, size in ASKED:
        name, needed = block_name(rows, size), rows * size * COPIES_WITHOUT_TABLES >> 30
        if name not in found["blocks"]:
            lines.append(f"- {spoken(name)}: not measured yet; they need {needed} GiB of disk")
    for name, block in found["blocks"].items():
        absent = [work for work in WORKS if work not in block["seconds"]]
        if absent:
            lines.append(f"- {spoken(name)}: {', '.join(absent)}: not measured yet")
    lines += [f"- {name}: {why}" for name, why in found["skipped"].items()]
    if not found["latency"]:
        lines.append("- the latency of a micro-batch: not measured yet")
    return ["## Not measured", "", *lines, ""] if lines else []


def page(found: dict[str, Any]) -> str:
    means = [f"| {work} | {text} |" for work, text in MEANS.items()]
    lines = [HEAD]
    for name, block in found["blocks"].items():
        lines += section(name, block)
    lines += latency_section(found["latency"])
    lines += ["## Works", "", "| work | is |", "|---|---|", *means, "", TERMS]
    return "\n".join([*lines, *unmeasured(found)]).rstrip() + "\n"


def drawn(found: dict[str, Any]) -> str:
    """A cell for each work and peer: how many times as long as PulsarX it takes."""
    from matplotlib import pyplot

    blocks = found["blocks"]
    rows = [(name, peer) for name, block in blocks.items() for peer in others(block)]
    works = [work for work in WORKS if any(work in works_of(each) for each in blocks.values())]
    figure, axes = pyplot.subplots(figsize=(8.4, 1.3 + 0.36 * (len(rows) + len(blocks))))
    for across, work in enumerate(works):
        axes.text(across + 0.48, -0.15, work, ha="center", va="bottom", color=TEXT, fontsize=8.5)
    down, last = 0.0, ""
    for name, peer in rows:
        if name != last:
            axes.text(-0.1, down + 0.5, spoken(name), ha="right", va="center", weight="bold")
            down, last = down + 1, name
        axes.text(-0.1, down + 0.46, peer, ha="right", va="center", color=TEXT)
        for across, work in enumerate(works):
            each = ratio(blocks[name]["seconds"].get(work, {}), peer)
            shade = colour(each.median) if each else (0.95, 0.95, 0.95)
            axes.add_patch(pyplot.Rectangle((across, down), 0.96, 0.92, color=shade, lw=0))
            if each:
                axes.text(
                    across + 0.48, down + 0.46, f"{number(each.median)}×", ha="center",
                    va="center", color="white" if each.median >= 6 else TEXT,
                )  # fmt: skip
        down += 1
    axes.set_xlim(-2.6, len(works))
    axes.set_ylim(down + 0.9, -1.5)
    title = "Spark: how many times as long as PulsarX others take"
    axes.text(-2.6, -0.95, title, fontsize=12, weight="bold", color=TEXT)
    legend = "blue: PulsarX is faster; orange: the other is; grey: it has no such work"
    axes.text(0, down + 0.6, legend, fontsize=9, color=TEXT)
    axes.axis("off")
    figure.subplots_adjust(0.01, 0.01, 0.99, 0.99)
    return svg(figure)


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
