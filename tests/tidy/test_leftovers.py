"""No library without its source, no generated file in git, no file whose name says nothing."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from source_files import ROOT, files, shown

SAYS_NOTHING = {"utils", "util", "common", "helpers", "helper", "misc", "stuff"}
GENERATED = (
    r"(^|/)(build|dist|__pycache__|\.venv|[^/]*\.egg-info)/|\.(so|o|pyc|whl)$|^src/[^/]*/[^/]*\.c$"
)


def libraries_without_source(root: Path) -> list[str]:
    return [
        str(path.relative_to(root))
        for path in sorted(root.glob("src/*/*.so"))
        if not path.with_name(path.name.split(".")[0] + ".pyx").exists()
    ]


def generated(names: Iterable[str]) -> list[str]:
    return [name for name in names if re.search(GENERATED, name)]


def tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


def shared_names(core: Iterable[str], pycore: Iterable[str]) -> set[str]:
    return set(core) & set(pycore) - {"__init__"}


def test_no_library_is_without_its_source():
    assert not libraries_without_source(ROOT), "make clean removes them"


def test_nothing_generated_is_in_git():
    assert not generated(tracked())


def test_file_names_say_something():
    assert not [shown(path) for path in files() if path.stem in SAYS_NOTHING]


def test_core_and_pycore_share_no_file_name():
    core, pycore = ([p.stem for p in files((f,), {".pyx"})] for f in ("src/core", "src/pycore"))
    assert not shared_names(core, pycore)


def test_a_library_without_source_is_found(tmp_path: Path):
    folder = tmp_path / "src" / "core"
    folder.mkdir(parents=True)
    for name in ("gone.cpython-311-x86_64-linux-gnu.so", "here.abi3.so", "here.pyx"):
        (folder / name).touch()
    assert libraries_without_source(tmp_path) == ["src/core/gone.cpython-311-x86_64-linux-gnu.so"]


def test_a_generated_file_is_found():
    planted = ["src/core/a.c", "src/core/a.so", "build/x", "python/pulsarx.egg-info/PKG-INFO"]
    assert generated([*planted, "src/core/a.pyx", "tools/build_mode.py"]) == planted


def test_a_shared_name_is_found():
    assert shared_names(["__init__", "timer"], ["__init__", "timer"]) == {"timer"}
