"""Facts about a Python of which a private part is not there, or not known: the library is imported
and used all the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pulsarx
from pulsarx.ground.linked_modules import NEWEST_PYTHON

ROOT = Path(__file__).resolve().parents[3]
SOURCES = [
    path
    for folder in ("python/pulsarx", "spark", "src")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".py", ".pyx") and "compat" not in path.parts
]
IMPORT = re.compile(r"^ *(?:from (_\w+) import (\([^)]*\)|[^#\n]*)|import (_\w+))", re.MULTILINE)
DOCUMENTED = {"__future__", "_thread"}


def private_names() -> dict[str, set[str]]:
    """What the library imports from modules of the interpreter that are private."""
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        for source, names, module in IMPORT.findall(path.read_text(encoding="utf-8")):
            name = source or module
            if name in sys.stdlib_module_names and name not in DOCUMENTED:
                plain = re.sub(r"#.*", "", names)
                words = [re.split(r"\s+as\s+", each.strip("() \n"))[0] for each in plain.split(",")]
                found.setdefault(name, set()).update(word for word in words if word)
    return found


PRIVATE = private_names()
HIDE = """
import sys
# What Python itself takes from there, it has by now.
import asyncio, collections, contextlib, ctypes, importlib.machinery, importlib.util, json, logging
import queue, socket, threading, types, weakref

def hide(module, name):
    if not name:
        sys.modules[module] = None
        return
    rest = types.ModuleType(module)
    vars(rest).update(vars(__import__(module)))
    del vars(rest)[name]
    sys.modules[module] = rest
"""
USE = """
import pulsarx
from pulsarx import aio

with pulsarx.Client(sys.argv[1]) as client:
    consumer = client.subscribe("t", "s")
    client.create_producer("t").send(b"one")
    consumer.acknowledge(consumer.receive(60_000))

    async def send():
        async with await aio.Client.open(sys.argv[1]) as other:
            producer = await other.create_producer("t")
            await producer.send(b"two")

    asyncio.run(send())
    assert consumer.receive(60_000).data() == b"two"
    if sys.argv[2:]:
        import subprocess
        subprocess.run([sys.executable, "-c", sys.argv[2], sys.argv[1]], check=True)
        assert consumer.receive(60_000).data() == b"three"
"""
GUEST = """
with pulsarx.Client(sys.argv[1]) as client:
    client.create_producer("t").send(b"three")
"""


def run(program: str, *arguments: object) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(pulsarx.__file__).parent.parent)}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_private_names_are_found() -> None:
    assert {"_frozen_importlib", "_frozen_importlib_external", "_imp"} <= set(PRIVATE)
    assert "_fix_co_filename" in PRIVATE["_imp"]
    assert "cache_from_source" in PRIVATE["_frozen_importlib_external"]


@pytest.mark.standard
@pytest.mark.parametrize(
    ("module", "name"),
    [(module, name) for module, names in PRIVATE.items() for name in ["", *sorted(names)]],
)
def test_the_library_is_used_where_a_private_part_of_python_is_missing(
    folder: Path, module: str, name: str
) -> None:
    hidden = HIDE + f"hide({module!r}, {name!r})\n"
    beside = [hidden + "import pulsarx\n" + GUEST] if module == "_socket" else []
    run(hidden + USE, folder, *beside)


@pytest.mark.standard
def test_a_python_newer_than_those_that_are_tested_imports_by_its_own_loader(
    folder: Path,
) -> None:
    newer = (
        HIDE + f"sys.version_info = ({NEWEST_PYTHON[0]}, {NEWEST_PYTHON[1] + 1}, 0, 'final', 0)\n"
    )
    told = """
import pulsarx.clock, pulsarx._core.crc32c
print(type(pulsarx.clock.__loader__).__module__, type(pulsarx.clock.__loader__).__name__)
print(pulsarx._core.__path__[-1] == pulsarx.ground.linked_modules.LIBRARY)
"""
    assert run(newer + told).split() == ["_frozen_importlib_external", "SourceFileLoader", "True"]
    run(newer + USE, folder)


def test_the_newest_python_is_one_that_wheels_are_tested_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    newest = f"cp{NEWEST_PYTHON[0]}{NEWEST_PYTHON[1]}-*"
    assert newest in project["tool"]["cibuildwheel"]["build"]
