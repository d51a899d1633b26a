"""A process that fuzzes, which fuzzing.py starts:
`fuzz_process.py TARGET MODULES BUG <libFuzzer's options>`."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris  # type: ignore[import-untyped, unused-ignore]
from atheris import import_hook  # type: ignore[import-untyped, unused-ignore]

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "core"), str(HERE.parent)]


def lead_by(modules: list[str]) -> None:
    """atheris knows whole packages alone, and branches of all of ours lead astray."""
    finder = import_hook.AtherisMetaPathFinder
    find: Callable[..., Any] = finder.find_spec

    def find_spec(self: Any, name: str, *others: Any) -> Any:
        if any(name == each or name.startswith(f"{each}.") for each in modules):
            return find(self, name, *others)
        return None

    finder.find_spec = find_spec


def main() -> None:
    name, modules, bug = sys.argv[1:4]
    lead_by(modules.split(",") if modules else [])
    with atheris.instrument_imports(include=["pulsarx"]):
        import fuzz_targets

        target = fuzz_targets.TARGETS[name]
        fuzz_targets.decoders()
        logging.disable()
        target(b"")  # loads what it needs
    if bug:
        from fuzz_plants import PLANTS

        PLANTS[bug].plant()
    # What merges starts itself again by a shell, by the first of its arguments.
    itself = shlex.join([sys.executable, *sys.argv[:4]])
    atheris.Setup([itself, *sys.argv[4:]], target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
