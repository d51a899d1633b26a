"""Docstrings of the library begin with a subject that is a role or a thing, or with a verb: someone
who does not know the code understands "The consumers of a topic" and not "Those of a topic"."""

from __future__ import annotations

import re

from source_files import LIBRARY, ROOT, files, shown

DOCSTRING = re.compile(r'^[ \t]*"""\s*(\w+)', re.MULTILINE)
WITHOUT_SUBJECT = {"What", "As", "Those", "Where", "Of", "Who"}


def faults(text: str) -> list[int]:
    """The lines of docstrings that begin without a subject."""
    return [
        text.count("\n", 0, found.start(1)) + 1
        for found in DOCSTRING.finditer(text)
        if found[1] in WITHOUT_SUBJECT
    ]


def test_docstrings_begin_with_a_subject_or_a_verb():
    wrong = []
    for path in [*files(LIBRARY), *sorted((ROOT / "python").glob("*.py"))]:
        lines = faults(path.read_text(encoding="utf-8"))
        wrong += [f"{shown(path)}:{line}" for line in lines]
    assert not wrong


def test_a_docstring_without_a_subject_is_found():
    assert faults('"""Those of a topic."""\n') == [1]
    assert faults('class A:\n    def b(self):\n        """\n        As c."""\n') == [4]
    assert not faults('"""The consumers of a topic."""\n"""Offsets."""\nx = """As is."""\n')
