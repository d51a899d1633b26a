"""Which extras of pyproject.toml tests need, by their folders.

Those in tests/api/looking need `test-core`, and `test-api` and `test-looking` where there are such
extras: a folder says what it needs by having one of its name. All tests need `test`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

from build_mode import ROOT

FIRST = "test-core"
ALL = "test"


def all_extras() -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return {name: [" ".join(each.split()) for each in extras[name]] for name in extras}


def is_folder(asked: str) -> bool:
    """A file or folder of tests, and no extra."""
    return "/" in asked or asked == "tests"


def extras_of(path: str) -> list[str]:
    """What the tests in a file or folder need; `file::test` is one of them."""
    found = os.path.relpath(path.partition("::")[0], ROOT)
    folders = Path(found).parts[1:]
    if not folders:
        return [ALL]
    known = all_extras()
    return [
        FIRST,
        *(name for each in folders if (name := f"test-{each}") in known and name != FIRST),
    ]


def packages_of(extras: Iterable[str]) -> Iterator[str]:
    """The requirements of extras, and of those that they name of this project."""
    known = all_extras()
    for name in extras:
        for each in known[name]:
            if each.startswith("pulsarx["):
                yield from packages_of(each.removeprefix("pulsarx[").rstrip("]").split(","))
            else:
                yield each
