"""Checks the types that a program sees: `check_types.py [PYTHON]`. `make lint` calls.

Stubs of compiled modules say what these have (mypy's stubtest, on what is built). Given the Python
of an environment, every type of the PulsarX there is known, too, without that a type checker has to
guess (pyright --verifytypes).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from build_mode import ROOT

ALLOWED = ROOT / "tools" / "stubs_allowed.txt"
SHOWN = 20  # symbols
# Derived from what has no types: pyarrow, a compiled class that no caller in Python needs.
UNTYPED_BASES = (
    "pulsarx.tables.dataset.TopicDataset",
    "pulsarx.broker.subscriptions.counted_losses.CountedLosses",
)


class TypesError(Exception):
    """A type is wrong or missing; the text says which."""


def stubbed_modules() -> list[str]:
    found = []
    for folder, package in (("core", "pulsarx._core"), ("pycore", "pulsarx._pycore")):
        for path in sorted((ROOT / "src" / folder).rglob("*.pyi")):
            parts = path.relative_to(ROOT / "src" / folder).with_suffix("").parts
            found.append(".".join([package, *parts]))
    return found


def check_stubs() -> str:
    """A stub has no more than its module, and the arguments of its functions. It may have less: it
    is what callers in Python use, and the module has what those in Cython do."""
    modules = stubbed_modules()
    options = ("--mypy-config-file", "pyproject.toml", "--allowlist", str(ALLOWED))
    left_out = ("--ignore-missing-stub", "--ignore-disjoint-bases")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", *options, *left_out, *modules],
        cwd=ROOT,
        env=os.environ | {"MYPYPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise TypesError(f"stubtest: {done.stdout}{done.stderr}")
    return f"stubtest: {len(modules)} stubs say what their modules have"


def check_complete(python: Path) -> str:
    """python: of an environment where PulsarX and what its classes are derived from is."""
    if not (Path(sys.executable).parent / "pyright").exists():
        return "pyright is not installed: the types of the package are not checked for gaps"
    folder = python.parent.parent
    done = subprocess.run(
        [str(Path(sys.executable).parent / "pyright"), "--verifytypes", "pulsarx",
         "--ignoreexternal", "--outputjson"],
        cwd=folder,
        env=os.environ
        | {"VIRTUAL_ENV": str(folder), "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    try:
        found: dict[str, Any] = json.loads(done.stdout)["typeCompleteness"]
    except (ValueError, KeyError):
        said = f"{done.stdout}{done.stderr}".strip()[-500:]
        return f"pyright cannot run here, so types are not checked for gaps: {said}"
    gaps = list(_gaps(found))
    # One attribute without a type makes what has it partly unknown, and so on: those come last.
    gaps.sort(key=lambda gap: "partially unknown" in gap)
    if gaps:
        more = f"\n... {len(gaps) - SHOWN} more" if len(gaps) > SHOWN else ""
        raise TypesError("pyright --verifytypes:\n" + "\n".join(gaps[:SHOWN]) + more)
    counts = found["exportedSymbolCounts"]
    if not counts["withKnownType"]:
        raise TypesError(f"pyright --verifytypes finds nothing: {done.stdout[:500]}")
    return f"pyright --verifytypes: {counts['withKnownType']} symbols, all of a known type"


def _gaps(found: dict[str, Any]) -> Iterator[str]:
    for symbol in found["symbols"]:
        if symbol["isExported"] and not symbol["name"].startswith(UNTYPED_BASES):
            for each in symbol["diagnostics"]:
                if each["severity"] == "error":
                    yield f"{symbol['name']}: {' '.join(each['message'].split())}"


def main(arguments: list[str]) -> int:
    try:
        print(check_stubs())
        if arguments:
            print(check_complete(Path(arguments[0]).absolute()))
    except TypesError as error:
        print(f"check_types: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
