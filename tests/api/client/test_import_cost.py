"""Facts about what importing the library costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pulsarx

EXPENSIVE = ("asyncio", "concurrent.futures", "dataclasses", "difflib", "enum", "inspect", "json",
             "logging", "numpy", "pyarrow", "pyspark", "random", "re", "typing", "urllib.parse",
             "uuid")  # fmt: skip


def test_importing_the_library_loads_nothing_expensive() -> None:
    program = (
        "import sys; before = set(sys.modules); import pulsarx; "
        "print(*sorted(set(sys.modules) - before))"
    )
    # Isolated: what site packages load at the start is not ours.
    found = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(pulsarx.__file__).parent.parent)},
    )
    assert found.returncode == 0, found.stderr
    assert set(found.stdout.split()).isdisjoint(EXPENSIVE)
