"""Facts about what importing the library costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pulsarx

EXPENSIVE = ("asyncio", "concurrent.futures", "dataclasses", "difflib", "enum", "importlib",
             "inspect", "json", "logging", "numpy", "pyarrow", "pyspark", "random", "re", "typing",
             "urllib.parse", "uuid", "warnings")  # fmt: skip


def loaded_by(program: str) -> set[str]:
    """The modules that a program loads beside those that Python starts with."""
    program = f"import sys; before = set(sys.modules); {program}; print(*set(sys.modules) - before)"
    # Isolated: what site packages load at the start is not ours.
    found = subprocess.run(
        [sys.executable, "-S", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(pulsarx.__file__).parent.parent)},
    )
    assert found.returncode == 0, found.stderr
    return set(found.stdout.split())


def test_importing_the_library_loads_what_is_asked_for() -> None:
    assert loaded_by("import pulsarx") - {"__future__"} == {"pulsarx", "pulsarx.errors"}
    message_id = loaded_by("import pulsarx; pulsarx.MessageId")
    assert "pulsarx.message_id" in message_id and "pulsarx.client" not in message_id


def test_importing_all_of_the_library_loads_nothing_expensive() -> None:
    assert loaded_by("from pulsarx import *").isdisjoint(EXPENSIVE)


def test_opening_a_folder_loads_nothing_expensive_and_not_what_a_producer_needs(
    folder: Path,
) -> None:
    for _ in range(2):  # an empty one, and one with a catalogue
        loaded = loaded_by(f"import pulsarx; pulsarx.Client({str(folder)!r}).close()")
        assert loaded.isdisjoint((*EXPENSIVE, "struct", "weakref"))
        assert "pulsarx.options.members" not in loaded and "pulsarx.message_id" not in loaded


def test_every_public_name_is_there() -> None:
    assert set(pulsarx.__all__) <= set(dir(pulsarx))
    for name in pulsarx.__all__:
        assert getattr(pulsarx, name) is not None
    assert pulsarx.schema.BytesSchema
    with pytest.raises(AttributeError, match="no attribute 'Clint'"):
        pulsarx.Clint
