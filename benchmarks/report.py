"""Turns what the benchmarks found into the table of a group's promises, and into RESULTS.md."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from reach import BY_NAME, PARTS, Group, Row
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
    return _summed(group, {row.name: verdict(row, results.get(row.name)) for row in group.rows})


def _summed(group: Group, verdicts: dict[str, str]) -> str:
    found = [verdicts.get(row.name, "") for row in group.rows if row.promised]
    met = sum(text.startswith("met") for text in found)
    text = f"{met} of {len(found)} met, {found.count('MISSED')} missed"
    absent = [row.name for row in group.rows if verdicts.get(row.name) == "MISSING"]
    return f"{text}, without a figure: {', '.join(absent)}" if absent else text


HEADING = """# What was promised, and what was measured

Written by `make bench`, `make bench-official`, `make oracle`, `make bench-serve`,
`make bench-spark` and `make bench-peers`, each its part; do not edit. Each value is the median of
pairs: floor and path measured in turns, so that noise slows both.
"""


def results_markdown(before: str, group: Group, part: str) -> str:
    """The text of RESULTS.md: what it was, with another part for one group."""
    parts = {each.name: part_of(before, each) for each in PARTS} | {group.name: part}
    texts = [f"{_begin(each)}\n{parts[each.name] or _absent(each)}{_end(each)}\n" for each in PARTS]
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
    summed = f"{summary(group, results)}, by `{group.command}` on {date}."
    table = {row.name: _table_line(row, results.get(row.name)) for row in group.rows}
    reasons = {name: _reason(name) for name in table if _verdict_of(table[name]) == "MISSED"}
    notes = {row.name: _note(row, results[row.name]) for row in group.rows if row.name in results}
    described = [f"| {name} | {value} |" for name, value in machine]
    return _markdown(group, summed, table, reasons, notes, described)


def with_rows(
    before: str, group: Group, results: dict[str, Result], machine: list[tuple[str, str]], date: str
) -> str:
    """What RESULTS.md said about a group, with the rows that were measured since; their notes say
    when, and how busy the machine was."""
    sections = [text.splitlines() for text in before.split("\n### ")]
    lines = {lines[0]: lines[1:] for lines in sections[1:]}
    table = _by_name(sections[0], "| ", " |")
    if not table:
        return group_markdown(group, results, machine, date)
    reasons = _by_name(lines.get(MISSED_TITLE, []), "- **", "**")
    notes = _by_name(lines.get(NOTES_TITLE, []), "- **", "**")
    about = dict(machine)
    added = f"measured on {date}, revision {about['revision']}, load before {about['load before']}"
    for row in group.rows:
        if row.name in results:
            table[row.name] = _table_line(row, results[row.name])
            notes[row.name] = f"{_note(row, results[row.name])}; {added}"
            reasons.pop(row.name, None)
            if _verdict_of(table[row.name]) == "MISSED":
                reasons[row.name] = _reason(row.name)
    found = {row.name: "MISSING" for row in group.rows if not row.is_skipped}
    found |= {name: _verdict_of(line) for name, line in table.items()}
    by = next((line for line in sections[0] if f"by `{group.command}` on " in line), "")
    by = by.rpartition(f"by `{group.command}` on ")[2].partition(".")[0].partition(";")[0]
    summed = f"{_summed(group, found)}, by `{group.command}` on {by}; later rows say when."
    described = [line for line in lines.get("Machine", []) if line.startswith("| ")][1:]
    return _markdown(group, summed, table, reasons, notes, described)


MISSED_TITLE = "Where a figure is missed: why, and what would reach it"
NOTES_TITLE = "Floors and details"


def _markdown(
    group: Group,
    summed: str,
    table: dict[str, str],
    reasons: dict[str, str],
    notes: dict[str, str],
    machine: list[str],
) -> str:
    order = [row.name for row in group.rows]
    lines = [f"## {group.title}", "", *group.text, "", summed, ""]
    lines += ["| row | " + " | ".join([*HEAD, "prototype"]) + " |", "|---" * (len(HEAD) + 2) + "|"]
    lines += [table[name] for name in order if name in table]
    if reasons:
        lines += ["", f"### {MISSED_TITLE}", ""]
        lines += [reasons[name] for name in order if name in reasons]
    lines += ["", f"### {NOTES_TITLE}", "", *(notes[name] for name in order if name in notes)]
    lines += ["", "### Machine", "", "| | |", "|---|---|", *machine]
    return "\n".join(lines) + "\n"


def _table_line(row: Row, result: Result | None) -> str:
    texts = [row.name, *cells(row, result), row.prototype or "-"]
    return "| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |"


def _verdict_of(table_line: str) -> str:
    return table_line.rsplit(" | ", 2)[1]


def _reason(name: str) -> str:
    return f"- **{name}**: {REASONS.get(name, 'not looked into')}"


def _note(row: Row, result: Result) -> str:
    return f"- **{row.name}** ({row.file}): {result.note}"


def _by_name(lines: list[str], begin: str, end: str) -> dict[str, str]:
    """Lines by the row they begin with."""
    found = {}
    for line in lines:
        name = line.removeprefix(begin).partition(end)[0]
        if line.startswith(begin) and name in BY_NAME:
            found[name] = line
    return found
