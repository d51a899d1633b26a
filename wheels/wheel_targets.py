"""What wheels are made for: the Pythons, C libraries and processors of [tool.cibuildwheel].

pyproject.toml is the one place that says them; make_wheels and the tests read it here.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
C_LIBRARIES = {"manylinux": "gnu", "musllinux": "musl"}


@dataclass(frozen=True, order=True)
class Target:
    """One wheel: a CPython on a platform."""

    minor: int  # 12 of Python 3.12
    family: str  # manylinux, musllinux
    machine: str
    level: str  # 2_28: the C library, that version or a later one

    @property
    def python(self) -> str:
        return f"3.{self.minor}"

    @property
    def tag(self) -> str:
        """Of the interpreter and of its ABI."""
        return f"cp3{self.minor}"

    @property
    def platform(self) -> str:
        return f"{self.family}_{self.level}_{self.machine}"

    @property
    def identifier(self) -> str:
        """Its name, as cibuildwheel has it."""
        return f"{self.tag}-{self.family}_{self.machine}"

    @property
    def triple(self) -> str:
        """For the compiler."""
        library = C_LIBRARIES[self.family]
        version = f".{self.level.replace('_', '.')}" if library == "gnu" else ""
        return f"{self.machine}-linux-{library}{version}"

    @property
    def library(self) -> str:
        """What its Python looks for first."""
        library = C_LIBRARIES[self.family]
        return f"_linked.cpython-3{self.minor}-{self.machine}-linux-{library}.so"


def targets() -> list[Target]:
    """All of them, in the order of Pythons."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["cibuildwheel"]
    minors = [int(found) for found in re.findall(r"\bcp3(\d+)-\*", str(settings["build"]))]
    found = []
    for minor in minors:
        for family in C_LIBRARIES:
            for machine in settings["linux"]["archs"]:
                image = settings["linux"][f"{family}-{machine}-image"]
                found.append(Target(minor, family, machine, image.removeprefix(f"{family}_")))
    return sorted(found)


def chosen(patterns: list[str]) -> list[Target]:
    """Those whose identifier holds one of the patterns, in their order; all where there is none.

    Raises ValueError, which names those that there are.
    """
    every = targets()
    names = " ".join(each.identifier for each in every)
    for pattern in patterns:
        if not any(pattern in each.identifier for each in every):
            raise ValueError(f"{pattern} is none of the wheels there are: {names}")
    found = [each for name in patterns for each in every if name in each.identifier]
    return list(dict.fromkeys(found)) if patterns else every
