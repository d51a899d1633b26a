"""No generated file in git, no file whose name says nothing."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

import pytest
from source_files import ROOT, files, shown

SAYS_NOTHING = {"utils", "util", "common", "helpers", "helper", "misc", "stuff"}
GENERATED = r"(^|/)(build|dist|__pycache__|\.venv|[^/]*\.egg-info)/|\.(so|o|pyc|whl)$|^src/.*\.c$"


def generated(names: Iterable[str]) -> list[str]:
    return [name for name in names if re.search(GENERATED, name)]


def tracked() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone")
    command = ["git", "-c", f"safe.directory={ROOT}", "ls-files"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


def shared_names(names: Iterable[str]) -> set[str]:
    found = list(names)
    return {name for name in found if found.count(name) > 1} - {"__init__"}


def test_nothing_generated_is_in_git():
    assert not generated(tracked())


def test_file_names_say_something():
    assert not [shown(path) for path in files() if path.stem in SAYS_NOTHING]


def test_compiled_modules_share_no_name():
    """They are linked into one library, where a module is known by its last name alone."""
    assert not shared_names(path.stem for path in files(("src/core", "src/pycore"), {".pyx"}))


def test_threads_are_own_threads():
    """One of `threading` may begin behind the end of the interpreter, and crash it; a finalizer
    that starts one then waits for ever; and where it goes, Python runs that loses an exception."""
    starts = re.compile(r"\bthreading\.Thread\(|\bstart_new_thread\(")
    found = {
        path.stem
        for path in files(("python", "spark", "src"), {".py", ".pyx"})
        if starts.search(path.read_text())
    }
    assert found == {"threads", "perf"}  # the last waits for its own, which are no daemons


def test_a_generated_file_is_found():
    planted = ["src/core/a.c", "src/core/a.so", "build/x", "python/pulsarx.egg-info/PKG-INFO"]
    assert generated([*planted, "src/core/a.pyx", "tools/build_mode.py"]) == planted


def test_a_shared_name_is_found():
    assert shared_names(["__init__", "timer", "__init__", "timer", "ring"]) == {"timer"}
