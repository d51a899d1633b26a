"""Runs the programs in scripts/ and reads what they print.

A program is written for the official client: it imports `pulsar`, opens PULSAR_URL and prints the
same at every run. NAME.txt beside it holds what it prints on a real Pulsar. A comment
`# partitions: TOPIC=N` in it asks for a partitioned topic before it starts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent / "scripts"
NAMES = sorted(each.stem for each in SCRIPTS.glob("*.py"))
PROGRAM_SECONDS = 120
_PARTITIONS = re.compile(r"^# partitions: (\S+)=(\d+)$", re.MULTILINE)
# The official client logs to the standard output.
_LOG = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [A-Z]+ +\[.*\n?", re.MULTILINE)


def partitioned_topics(name: str) -> dict[str, int]:
    """Topics that must be there before this program starts, with their numbers of partitions."""
    found = _PARTITIONS.findall((SCRIPTS / f"{name}.py").read_text())
    return {topic: int(count) for topic, count in found}


def expected(name: str) -> str:
    """What Pulsar and the official client made it print."""
    return (SCRIPTS / f"{name}.txt").read_text()


def output_of(name: str, before: list[str], url: str) -> str:
    """What the program prints, and how it ends if not well."""
    command = [sys.executable, *before, str(SCRIPTS / f"{name}.py")]
    environment = {**os.environ, "PULSAR_URL": url, "PYTHONIOENCODING": "utf-8"}
    ran = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=PROGRAM_SECONDS,
    )
    told = _LOG.sub("", ran.stdout)
    return told if ran.returncode == 0 else f"{told}ended with {ran.returncode}\n{ran.stderr}"
