"""Writes the list of metrics in docs/monitoring.md from the table in `rest/metric_table.py`. A tidy
test compares.

    .venv/bin/python tools/write_metrics.py
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from pulsarx.rest.metric_table import COUNTER, LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsarx.rest.metric_table import Level, Metric

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/monitoring.md"
BEGIN = "<!-- metrics: written by tools/write_metrics.py -->"
END = "<!-- /metrics -->"
WIDTH = 110


def list_text(levels: Iterable[Level] = LEVELS) -> str:
    """The list, a section for each level. No table: long names fit no phone beside a text."""
    found = [BEGIN]
    for level in levels:
        labels = ", ".join(f"`{each}`" for each in level.labels)
        found += ["", f"### {level.title}", "", f"Labels: {labels}.", ""]
        for each in level.metrics:
            found += textwrap.wrap(_line(each), WIDTH, subsequent_indent="  ")
    return "\n".join([*found, "", END])


def _line(metric: Metric) -> str:
    kind = ", counter" if metric.kind == COUNTER else ""
    alert = f" Alert: `{metric.alert}`." if metric.alert else ""
    return f"- `{metric.name}` ({metric.unit}{kind}): {metric.meaning}.{alert}"


def page_text(text: str, levels: Iterable[Level] = LEVELS) -> str:
    """The page with this list between its marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page lacks {BEGIN} or {END}")
    return before + list_text(levels) + after


def main() -> int:
    PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
