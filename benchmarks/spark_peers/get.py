"""Fetches what the comparison on Spark needs into build/spark_peers: the Spark that all peers run
on, Delta and the Kafka client as Python packages, jars by Maven. What cannot be had is named, and
that peer is skipped.

    PYTHONPATH=benchmarks python -m spark_peers.get
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from peers.get import run
from peers.peer import Missing

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "spark_peers"
PYTHON = BUILD / "python"
# The newest Spark that Delta is published for, and what goes with it.
SPARK = "4.2.0"
PACKAGES = (
    f"pyspark=={SPARK}", "delta-spark==4.4.0", "deltalake", "confluent-kafka",
    "pyarrow>=18", "numpy>=1.26", "pandas>=2.2,<3",
)  # fmt: skip
DELTA, CONNECTOR, BROKER = "delta", "connector", "broker"
JARS = {DELTA: "Delta", CONNECTOR: "Spark's Kafka source", BROKER: "Kafka"}


def get_packages() -> None:
    if not (PYTHON / "complete").exists():
        shutil.rmtree(PYTHON, ignore_errors=True)
        PYTHON.mkdir(parents=True)
        run(sys.executable, str(ROOT / "tools" / "packages.py"), str(PYTHON), *PACKAGES)
        (PYTHON / "complete").touch()


def get_jars(name: str) -> None:
    """What the pom.xml of that folder names, with what those need."""
    folder = BUILD / name
    if not folder.is_dir():
        part = folder.with_name(f"{name}.part")
        shutil.rmtree(part, ignore_errors=True)
        goal = ("dependency:copy-dependencies", "-DincludeScope=runtime")
        pom = str(HERE / name / "pom.xml")
        run("mvn", "-B", "-q", "-f", pom, *goal, f"-DoutputDirectory={part}")
        part.rename(folder)


def has_packages() -> bool:
    return (PYTHON / "complete").exists()


def missing_jars(*names: str) -> str:
    """Which of them are not there; "": they all are."""
    absent = [JARS[name] for name in names if not any((BUILD / name).glob("*.jar"))]
    return f"not fetched: {', '.join(absent)}" if absent else ""


def get_all() -> dict[str, str]:
    """Fetch all; why something could not be had, by its name."""
    failed = {}
    try:
        get_packages()
    except Missing as error:
        failed["Spark's packages"] = str(error)
    for name, what in JARS.items():
        try:
            get_jars(name)
        except Missing as error:
            failed[what] = str(error)
    return failed


if __name__ == "__main__":
    for name, why in get_all().items():
        print(f"{name} cannot be had: {why}", file=sys.stderr)
