"""500 lines a file, 60 a function, 100 columns. What does not fit wants to be two."""

from __future__ import annotations

import pytest
from source_files import files, functions, shown

LINES_A_FILE_MAX = 500
LINES_A_FUNCTION_MAX = 60
COLUMNS_MAX = 100


def complaints(name: str, text: str, suffix: str) -> list[str]:
    lines = text.splitlines()
    found = []
    if len(lines) > LINES_A_FILE_MAX:
        found.append(f"{name}: {len(lines)} lines")
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS_MAX:
            found.append(f"{name}:{number}: {len(line)} columns")
    for function in functions(text, suffix):
        if function.line_count > LINES_A_FUNCTION_MAX:
            where = f"{name}:{function.line}: {function.name}"
            found.append(f"{where} has {function.line_count} lines")
    return found


def test_files_functions_and_lines_are_short():
    wrong = []
    for path in files():
        wrong += complaints(shown(path), path.read_text(), path.suffix)
    assert not wrong, "\n".join(wrong)


CYTHON_BODY = '    """Some\ntext."""\n' + "    x += 1\n\n" * 30
LONG_FUNCTIONS = [
    (".py", "class A:\n    def f(self):\n" + "        pass\n" * 60),
    (".pyx", "cdef int f(\n    int x,\n) noexcept nogil:\n" + CYTHON_BODY + "y = 1\n"),
    (".pyx", "cdef class A:\n    def f(self):\n" + "        pass\n" * 60),
    (".pxd", "cdef inline void f() noexcept nogil:\n" + "    pass\n" * 60),
]
SHORT_FUNCTIONS = [
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
    assert complaints("planted", text, suffix)


@pytest.mark.parametrize(("suffix", "text"), SHORT_FUNCTIONS)
def test_a_short_function_is_let_through(suffix: str, text: str):
    assert not complaints("planted", text, suffix)


def test_a_long_file_and_a_long_line_are_found():
    assert complaints("planted", "x = 1\n" * 501, ".py")
    assert complaints("planted", "# " + "x" * 99, ".pxd")
    assert not complaints("planted", "x = 1\n" * 500 + "#" * 0, ".py")
