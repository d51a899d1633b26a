"""A driver whose Pythons are slow to start. Run as a program:

    python slow_python.py FOLDER CHECKPOINT SETTINGS

SETTINGS: those of Spark, as JSON. Reads the topic `in` of FOLDER as a table, then as a stream into
the topic `out`; what became of each is the last line, JSON. SLOW in its environment has the module
that is slow, and the seconds; sitecustomize.py, which write_slow makes, waits for them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spark_steps import read, run_stream, small_session

SITE = """\
import os, sys, threading

module, _, seconds = os.environ.get("SLOW", "").partition("=")
if module and module in sys.orig_argv:
    threading.Event().wait(float(seconds))
"""


def write_slow(folder: Path) -> None:
    """A place for PYTHONPATH."""
    (folder / "sitecustomize.py").write_text(SITE)


def told(work: Callable[[], Any]) -> str:
    try:
        return str(work())
    except Exception as error:
        text = str(error)
        at = text.find("Python worker failed to connect back")
        return text[at : at + 300] if at >= 0 else text[-3000:]


def main(folder: Path, checkpoint: Path, settings: dict[str, str]) -> None:
    spark = small_session("slow", "local[1]", **settings)
    spark.sparkContext.setLogLevel("OFF")
    found = {
        "table": told(lambda: read(spark, folder, "in", columns="value").count()),
        "stream": told(lambda: len(run_stream(spark, folder, "in", "out", checkpoint))),
    }
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3]))
