"""Measures client_cost.py with both packages: in pairs, the official client on a broker and PulsarX
on a folder, each in a process of its own."""

from __future__ import annotations

import shutil
import statistics
from pathlib import Path

from fresh_process import run_fresh
from measurement import Measurement, shown

SCRIPT = str(Path(__file__).with_name("client_cost.py"))


def measure_sides(
    measurement: Measurement,
    folder: Path,
    url: str,
    row: str,
    verb: str,
    size: int,
    durability: str,
) -> None:
    """The row gets how many times the CPU time of a call the official client takes."""
    sizes = measurement.sizes
    count = min(sizes.messages, sizes.client_bytes // size)
    if verb == "send":
        count = min(count, sizes.client_sends)
    call = [verb, str(size), str(count)]
    found: dict[str, list[dict[str, float]]] = {"the official client": [], "PulsarX": []}
    theirs, ours = found.values()

    def turn() -> float:
        theirs.append(run_fresh(SCRIPT, "pulsar", url, *call))
        try:
            ours.append(run_fresh(SCRIPT, "pulsarx", str(folder), *call, durability))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return theirs[-1]["cpu"] / ours[-1]["cpu"]

    measurement.values(row, turn, sizes.client_rounds)
    for side, figures in found.items():
        cpu, elapsed = (
            shown(statistics.median(each[name] for each in figures)) for name in ("cpu", "elapsed")
        )
        measurement.add_note(f"{side} {cpu} of CPU in {elapsed}")
