"""A class holds one noun: no extension type has more than 25 fields, no Python class more than 55
methods.

Fields of which each caller needs a third are those of several objects; a struct by value that has a
meaning counts as one. The second number is what is reached, and may only become smaller.
"""

from __future__ import annotations

import ast
import re

import pytest
from source_files import LIBRARY, files, shown, statements, without_strings

FIELDS_MAX = 25
METHODS_MAX = 55
# Written by a tool: one for each policy and what is done with it.
WRITTEN = {"PolicyMethods"}

CLASS = re.compile(r"cdef class (\w+)")
FIELD = re.compile(r"cdef (?:public |readonly )?[\w.]+(?: ?\*+ ?| |\[\w+\] )+(.+)")


def fields(text: str) -> dict[str, int]:
    """How many fields each extension type has that is declared in a contract or a body."""
    found: dict[str, int] = {}
    name = ""
    lines = without_strings(text).splitlines()
    for number, statement, _ in statements(lines):
        indent = len(lines[number]) - len(lines[number].lstrip())
        if indent == 0:
            match = CLASS.match(statement)
            name = match[1] if match else ""
            if name:
                found[name] = 0
        elif name and indent == 4 and "(" not in statement:
            field = FIELD.match(statement)
            if field and "__weakref__" not in field[1]:
                found[name] += field[1].count(",") + 1
    return found


def methods(text: str) -> dict[str, int]:
    """How many methods each Python class has, properties included."""
    return {
        node.name: sum(
            isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) for each in node.body
        )
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    }


def largest(kind: str) -> list[tuple[int, str]]:
    """The classes, those that have most first."""
    suffixes, count = ({".pxd", ".pyx"}, fields) if kind == "fields" else ({".py"}, methods)
    found = [
        (number, f"{shown(path)}: {name}")
        for path in files(LIBRARY, suffixes)
        for name, number in count(path.read_text()).items()
        if name not in WRITTEN
    ]
    return sorted(found, reverse=True)


@pytest.mark.parametrize(("kind", "at_most"), [("fields", FIELDS_MAX), ("methods", METHODS_MAX)])
def test_no_class_holds_more(kind: str, at_most: int):
    wrong = [f"{where} has {number} {kind}" for number, where in largest(kind) if number > at_most]
    assert not wrong, "\n".join([f"at most {at_most}; is each still one noun?", *wrong])


def test_the_number_of_methods_is_what_is_reached():
    reached = largest("methods")[0][0]
    assert reached == METHODS_MAX, f"METHODS_MAX may become {reached}"


def test_fields_are_counted():
    text = '''
cdef class A(Base):
    """cdef int said"""
    cdef readonly int one                # cdef int two
    cdef public object two
    cdef const uint8_t* three
    cdef unsigned long four
    cdef int[3] five
    cdef int six, seven
    cdef pulsarx.Module eight
    cdef object __weakref__

    cdef int method(self) except -1
    cdef inline int other(self):
        cdef int local
        return 0

cdef struct B:
    int x

cdef class C:
    cdef Timer timer_at(self, uint64_t due_ms,
                        bint more)
    cdef int x
'''
    assert fields(text) == {"A": 8, "C": 1}


def test_methods_are_counted():
    text = "class A:\n    x = 1\n    def f(self): ...\n    async def g(self): ...\n"
    assert methods(text) == {"A": 2}
