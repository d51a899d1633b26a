"""Draws the panels of deploy/grafana/pulsarx.json from their own queries on a real Prometheus that
scrapes a real `pulsarx serve`: docs/pictures/dashboard.svg.

    .venv/bin/python tests/deploy/draw_dashboard.py [SECONDS]

Orders come in, billing keeps up, and audit stops in the middle. Needs prometheus (apt-get install
prometheus) and matplotlib (extra spark-demo).
"""

from __future__ import annotations

import math
import re
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from prometheus import Prometheus, Served, expression_of, missing, panels

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs/pictures/dashboard.svg"
SECONDS = 120
STEP = 2  # seconds between two points
UNITS = {
    "cps": ("", 1), "short": ("", 1), "s": (" s", 1), "percentunit": (" %", 100),
    "bytes": ("B", 1), "Bps": ("B/s", 1),
}  # fmt: skip
COLUMNS, CELL_INCHES = 24, (0.38, 0.26)
COLOURS = {"green": "#2a7d2a", "orange": "#c77700", "red": "#b3261e", "": "#333333"}


def load(url: str, seconds: float) -> None:
    """Orders with a rate that swings, two subscriptions, and one that stops."""
    import pulsarx

    quiet = pulsarx.ConsoleLogger(pulsarx.LoggerLevel.Error)
    with pulsarx.Client(url, logger=quiet) as client:
        billing = client.subscribe("orders", "billing", pulsarx.ConsumerType.Shared)
        audit = client.subscribe("orders", "audit", pulsarx.ConsumerType.Shared)
        orders = client.create_producer("orders")
        returns = client.create_producer("returns")
        ended = threading.Event()

        def consume(consumer: Any, until: float) -> None:
            while not ended.is_set() and time.monotonic() < until:
                try:
                    consumer.acknowledge(consumer.receive(200))
                except pulsarx.Timeout:
                    pass

        began = time.monotonic()
        threads = [
            threading.Thread(target=consume, args=(billing, began + seconds)),
            threading.Thread(target=consume, args=(audit, began + seconds / 2)),
        ]
        for each in threads:
            each.start()
        pause = threading.Event()
        count = 0
        while (passed := time.monotonic() - began) < seconds:
            rate = 150 + 100 * math.sin(passed / 10)
            for _ in range(int(rate / 10)):
                orders.send_async(b"x" * 300, None)
            count += 1
            if count % 5 == 0:
                returns.send_async(b"x" * 300, None)
            orders.flush()
            pause.wait(0.1)
        ended.set()
        for each in threads:
            each.join()


def answers(prometheus: Prometheus, panel: Any, begin: float, end: float) -> list[Any]:
    """(label, times, values) of each line of a panel."""
    found = []
    for target in panel["targets"]:
        expression = expression_of(target["expr"], "10s")
        asked = {"query": expression, "start": str(begin), "end": str(end), "step": str(STEP)}
        for each in prometheus.ask("query_range", **asked)["result"]:
            label = re.sub(
                r"\{\{(\w+)\}\}",
                lambda match, labels=each["metric"]: labels.get(match[1], ""),
                target["legendFormat"],
            )
            times = [float(point[0]) - begin for point in each["values"]]
            values = [float(point[1]) for point in each["values"]]
            found.append((label.replace("persistent://public/default/", ""), times, values))
    return found


def text_of(value: float, unit: str) -> str:
    suffix, factor = UNITS[unit]
    value *= factor
    for limit, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{letter}{suffix}"
    return f"{value:.3g}{suffix if suffix.startswith(' ') or not suffix else ' ' + suffix}"


def colour_of(panel: Any, value: float) -> str:
    found = ""
    for step in panel["fieldConfig"]["defaults"].get("thresholds", {}).get("steps", []):
        if step["value"] is None or value >= step["value"]:
            found = step["color"]
    return COLOURS[found]


def draw(shown: list[tuple[Any, list[Any]]]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "pulsarx", "font.size": 7, "svg.fonttype": "none"}
    from matplotlib import pyplot, ticker

    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel, _ in shown)
    width, height = COLUMNS * CELL_INCHES[0], rows * CELL_INCHES[1]
    figure = pyplot.figure(figsize=(width, height))
    for panel, lines in shown:
        place, unit = panel["gridPos"], panel["fieldConfig"]["defaults"]["unit"]
        left, top = place["x"] / COLUMNS, 1 - place["y"] / rows
        wide, high = place["w"] / COLUMNS, place["h"] / rows
        is_plot = panel["type"] == "timeseries"
        room = (0.065, 0.03) if is_plot else (0.01, 0.005)
        axes = figure.add_axes(
            (left + room[0], top - high + room[1], wide - room[0] - 0.015, high - room[1] - 0.02)
        )
        axes.set_title(panel["title"], loc="left", fontsize=6.5, fontweight="bold")
        if is_plot:
            for label, times, values in lines:
                axes.plot(times, values, label=label, linewidth=1)
            axes.yaxis.set_major_formatter(
                ticker.FuncFormatter(lambda value, _, unit=unit: text_of(value, unit))
            )
            axes.grid(alpha=0.3)
            axes.set_ylim(bottom=min(0, *(min(each[2]) for each in lines)))
            axes.legend(fontsize=6, ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.1),
                        frameon=False)  # fmt: skip
            axes.spines[["top", "right"]].set_visible(False)
            continue
        axes.set_axis_off()
        for number, (label, _, values) in enumerate(lines):
            x = (number + 0.5) / len(lines)
            axes.text(x, 0.55, text_of(values[-1], unit), ha="center", va="center", fontsize=13,
                      color=colour_of(panel, values[-1]))  # fmt: skip
            axes.text(x, 0.1, label, ha="center", va="center", fontsize=6)
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, metadata={"Date": None})


def main(seconds: float) -> int:
    reason = missing()
    if reason:
        print(reason, file=sys.stderr)
        return 1
    folder = Path(tempfile.mkdtemp(prefix="pulsarx-dashboard-"))
    served = Served(folder)
    try:
        prometheus = Prometheus(served.http_url.removeprefix("http://"), interval="1s")
        try:
            prometheus.wait_until_scraped(2)
            begin = time.time()
            load(served.url, seconds)
            end = time.time()
            draw([(panel, answers(prometheus, panel, begin, end)) for panel in panels()])
        finally:
            prometheus.close()
    finally:
        served.close()
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
