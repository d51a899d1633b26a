"""100 columns. A reminder, which fails nothing: 800 lines a file, 60 a function. Docstrings of
Python are not counted: that of a public call says all about it.

A file is as long as its noun; what is longer than most may hold two, and the reader decides.
"""

from __future__ import annotations

import ast
import warnings

import pytest
from source_files import docstring_lines, files, functions, shown

LINES_A_FILE = 800
LINES_A_FUNCTION = 60
COLUMNS_MAX = 100


class LongSourceWarning(UserWarning):
    """A file or function longer than most."""


def too_wide(name: str, text: str) -> list[str]:
    return [
        f"{name}:{number}: {len(line)} columns"
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > COLUMNS_MAX and len(line.split()) > 1  # one word cannot be broken
    ]


def reminders(name: str, text: str, suffix: str) -> list[str]:
    found = []
    line_count = len(text.splitlines())
    if suffix == ".py":
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        nodes = [each for each in ast.walk(ast.parse(text)) if isinstance(each, kinds)]
        line_count -= sum(map(docstring_lines, nodes))
    if line_count > LINES_A_FILE:
        found.append(f"{name}: {line_count} lines")
    for function in functions(text, suffix):
        if function.line_count > LINES_A_FUNCTION:
            where = f"{name}:{function.line}: {function.name}"
            found.append(f"{where} has {function.line_count} lines")
    return found


def test_lines_are_short():
    wrong = []
    for path in files():
        wrong += too_wide(shown(path), path.read_text())
    assert not wrong, "\n".join(wrong)


@pytest.mark.standard
def test_long_files_and_functions_are_remarked_on():
    found = []
    for path in files():
        found += reminders(shown(path), path.read_text(), path.suffix)
    if found:
        text = f"does each still hold one noun?\n{chr(10).join(found)}"
        warnings.warn(text, LongSourceWarning, stacklevel=1)


CYTHON_BODY = '    """Some\ntext."""\n' + "    x += 1\n\n" * 30
LONG_FUNCTIONS = [
    (".py", "class A:\n    def f(self):\n" + "        pass\n" * 60),
    (".pyx", "cdef int f(\n    int x,\n) noexcept nogil:\n" + CYTHON_BODY + "y = 1\n"),
    (".pyx", "cdef class A:\n    def f(self):\n" + "        pass\n" * 60),
    (".pxd", "cdef inline void f() noexcept nogil:\n" + "    pass\n" * 60),
]
SHORT_FUNCTIONS = [
    (".py", 'def f():\n    """Long.\n' + "\n" * 60 + '    """\n' + "    pass\n" * 59),
    (".py", "def f():\n" + "    pass\n" * 59),
    (
        ".pyx",
        "cdef int f() noexcept nogil:\n" + "    pass\n" * 59 + "\n\ncdef int g():\n    pass\n",
    ),
    (".pxd", "cdef extern from *:\n" + "    int f(int x)\n" * 70),
    (".pxd", "cdef struct A:\n" + "    int x\n" * 70),
]


@pytest.mark.parametrize(("suffix", "text"), LONG_FUNCTIONS)
def test_a_long_function_is_found(suffix: str, text: str):
    assert reminders("planted", text, suffix)


@pytest.mark.parametrize(("suffix", "text"), SHORT_FUNCTIONS)
def test_a_short_function_is_let_through(suffix: str, text: str):
    assert not reminders("planted", text, suffix)


def test_a_long_file_and_a_wide_line_are_found():
    assert reminders("planted", "x = 1\n" * 801, ".py")
    assert not reminders("planted", "x = 1\n" * 800, ".py")
    assert too_wide("planted", "x = 1\n# " + "x" * 99) == ["planted:2: 101 columns"]
    assert not too_wide("planted", "# " + "x" * 98)


@pytest.mark.standard
def test_a_reminder_is_shown_and_fails_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(f"{__name__}.LINES_A_FILE", 10)
    with pytest.warns(LongSourceWarning, match=r"tests/tidy/test_sizes.py: \d+ lines"):
        test_long_files_and_functions_are_remarked_on()
