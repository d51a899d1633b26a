"""Keeps the garbage collector off what a Spark worker holds anyway. Called where a task begins."""

from __future__ import annotations

import gc
import os
import sys

_frozen_in = 0  # the process; asking how much is frozen takes 5 ms there, and each task would


def freeze_heap() -> None:
    """Take what this worker process has loaded out of every later collection; once a process.

    PySpark collects the whole heap behind each task: the modules of pyspark, pandas and pyarrow,
    20 to 50 ms a time, as much as a task of some ten megabytes takes. Garbage that is in it now
    would stay, but PySpark has just collected. In any other process nothing happens.
    """
    global _frozen_in
    if _frozen_in == os.getpid():
        return
    _frozen_in = os.getpid()
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name == "pyspark.daemon":
        gc.freeze()
