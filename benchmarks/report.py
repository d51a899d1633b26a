"""Turns what the benchmarks found into the table of a group's promises, and into RESULTS.md."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from reach import GROUPS, Group, Row
from reasons import REASONS


@dataclass(frozen=True)
class Result:
    """What one benchmark found for a row."""

    values: list[float]
    note: str

    @property
    def median(self) -> float:
        return statistics.median(self.values)


def results_of(report: dict[str, Any]) -> dict[str, Result]:
    """Row name to result, out of what pytest-benchmark wrote."""
    found = {}
    for benchmark in report.get("benchmarks", []):
        info = benchmark["extra_info"]
        if info.get("values"):
            found[info["row"]] = Result(info["values"], info["note"])
    return found


def missing(group: Group, results: dict[str, Result]) -> list[Row]:
    return [row for row in group.rows if row.name not in results and not row.is_skipped]


def verdict(row: Row, result: Result | None) -> str:
    if result is None:
        return f"skipped: no {row.needs}" if row.is_skipped else "MISSING"
    if not row.promised:
        return "no promise"
    if row.is_stretched(result.median):
        return "met, stretch too"
    return "met" if row.is_met(result.median) else "MISSED"


def cells(row: Row, result: Result | None) -> list[str]:
    """Claim, limit, median, spread, share of the limit, verdict."""
    limit = f"{'≤' if row.at_most else '≥'} {row.limit:g} {row.unit}"
    if row.stretch is not None:
        limit += f", stretch {row.stretch:g}"
    if result is None:
        return [row.claim, limit, "-", "-", "-", verdict(row, None)]
    spread = f"{number(min(result.values))} to {number(max(result.values))}"
    share = f"{result.median / row.limit:.0%}" if row.limit else "-"
    return [row.claim, limit, number(result.median), spread, share, verdict(row, result)]


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


HEAD = ["claim", "limit", "median", "spread", "of limit", "verdict"]


def table_for_terminal(group: Group, results: dict[str, Result]) -> str:
    rows = [["row", *HEAD]]
    rows += [[row.name, *cells(row, results.get(row.name))] for row in group.rows]
    widths = [max(len(line[column]) for line in rows) for column in range(len(rows[0]))]
    lines = []
    for line in rows:
        texts = [cell.ljust(width) for cell, width in zip(line, widths)]
        lines.append("  ".join(texts).rstrip())
    notes = [f"{row.name}: {results[row.name].note}" for row in group.rows if row.name in results]
    return "\n".join([*lines, "", *notes, "", summary(group, results)])


def summary(group: Group, results: dict[str, Result]) -> str:
    found = [verdict(row, results.get(row.name)) for row in group.rows if row.promised]
    met = sum(text.startswith("met") for text in found)
    text = f"{met} of {len(found)} met, {found.count('MISSED')} missed"
    absent = [row.name for row in missing(group, results)]
    return f"{text}, without a figure: {', '.join(absent)}" if absent else text


HEADING = """# What was promised, and what was measured

Written by `make bench`, `make bench-official`, `make oracle` and `make bench-spark`, each its part;
do not edit. Each value is the median of pairs: floor and path measured in turns, so that noise
slows both.
"""


def results_markdown(before: str, group: Group, part: str) -> str:
    """The text of RESULTS.md: what it was, with another part for one group."""
    parts = {each.name: part_of(before, each) for each in GROUPS.values()} | {group.name: part}
    texts = [
        f"{_begin(each)}\n{parts[each.name] or _absent(each)}{_end(each)}\n"
        for each in GROUPS.values()
    ]
    return "\n".join([HEADING, *texts])


def part_of(text: str, group: Group) -> str:
    """What RESULTS.md says about a group; empty: nothing."""
    _, begun, behind = text.partition(f"{_begin(group)}\n")
    found, ended, _ = behind.partition(_end(group))
    return found if begun and ended else ""


def _begin(group: Group) -> str:
    return f"<!-- {group.name} -->"


def _end(group: Group) -> str:
    return f"<!-- end of {group.name} -->"


def _absent(group: Group) -> str:
    return f"## {group.title}\n\nNot measured yet: `{group.command}`.\n"


def group_markdown(
    group: Group, results: dict[str, Result], machine: list[tuple[str, str]], date: str
) -> str:
    """What RESULTS.md says about a group that was measured."""
    lines = [
        f"## {group.title}",
        "",
        *group.text,
        "",
        f"{summary(group, results)}, by `{group.command}` on {date}.",
        "",
        "| row | " + " | ".join([*HEAD, "prototype"]) + " |",
        "|---" * (len(HEAD) + 2) + "|",
    ]
    for row in group.rows:
        texts = [row.name, *cells(row, results.get(row.name)), row.prototype or "-"]
        lines.append("| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |")
    failed = [row for row in group.rows if verdict(row, results.get(row.name)) == "MISSED"]
    if failed:
        lines += ["", "### Where a figure is missed: why, and what would reach it", ""]
        lines += [f"- **{row.name}**: {REASONS.get(row.name, 'not looked into')}" for row in failed]
    lines += ["", "### Floors and details", ""]
    lines += [f"- **{row.name}** ({row.file}): {results[row.name].note}" for row in group.rows
              if row.name in results]  # fmt: skip
    lines += ["", "### Machine", "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in machine]
    return "\n".join(lines) + "\n"
