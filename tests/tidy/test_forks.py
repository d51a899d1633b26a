"""What a fork does stands in one list, `ground/fork`: no module has a hook of its own, and each
that is in the list names its steps."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from source_files import LIBRARY, ROOT, files, module_name

from pulsarx.ground.fork import BEFORE, IN_CHILD, at_fork

SUFFIXES = {".py", ".pyx", ".pxd"}
AT_FORK = re.compile(r'^at_fork\((?:__name__|"([\w.]+)")((?:.|\n)*?)\)$', re.MULTILINE)


def steps() -> dict[str, str]:
    """By module, below pulsarx: what it says to at_fork behind its name."""
    return {
        (name or module_name(path)).removeprefix("pulsarx."): rest
        for path in files(LIBRARY, SUFFIXES)
        for name, rest in AT_FORK.findall(path.read_text(encoding="utf-8"))
    }


def test_each_module_of_the_list_names_its_steps_and_no_other_does():
    assert sorted(steps()) == sorted(IN_CHILD)
    assert len(set(IN_CHILD)) == len(IN_CHILD)
    assert {module for module, rest in steps().items() if "before=" in rest} == set(BEFORE)


def test_no_module_has_a_hook_of_its_own():
    own = [
        str(path.relative_to(ROOT))
        for path in files((*LIBRARY, "python"), SUFFIXES)
        if "register_at_fork" in path.read_text(encoding="utf-8")
    ]
    assert set(own) == {"python/pulsarx/ground/fork.py"}


def test_a_module_that_is_not_in_the_list_is_refused():
    with pytest.raises(LookupError, match=r"other.* name it in pulsarx\.ground\.fork"):
        at_fork("pulsarx.other")
    with pytest.raises(LookupError, match="clock"):
        at_fork("pulsarx.clock", before=print)


def test_one_that_cannot_be_abandoned_keeps_no_other():
    program = """
import os
from pulsarx.ground.fork import at_fork

class Member:
    def __init__(self, name): self.name = name
    def abandon(self):
        os.write(1, self.name.encode())
        raise RuntimeError(f"of {self.name}")

class Kind:
    def members(self): return [Member("a"), Member("b")]

at_fork("pulsarx.clock", abandon=Kind())
child = os.fork()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert ended.stdout == b"ab"
    assert b"of a" in ended.stderr
