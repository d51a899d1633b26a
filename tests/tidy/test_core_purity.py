"""src/core holds structures and nogil functions; none can raise or touch a Python object."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from source_files import ROOT, files, is_function, shown, statements, without_strings

# What only Python has.
PYTHON_WORDS = (
    r"^\s*(class|def|cpdef|raise|try|except|finally|assert|print|with|yield|lambda|async)\b"
    r"|\bcdef +class\b|\bwith +gil\b|\bexcept *[-+*?\d]|\bobject\b|<(bytes|str|list|dict)>"
    r"|^\s*cdef +(bytes|str|list|dict|tuple|set|bytearray)\b|\[ *::? *\d* *\]"
)
PYTHON_IN_C = (
    r"\b(Py[A-Z]\w*_\w+|_Py_\w+|__Pyx_(?:Raise\w*|AddTraceback|WriteUnraisable\w*|Err\w*|Py\w+"
    r"|GetItem\w*|GIVEREF|GOTREF|[A-Z]*DECREF|[A-Z]*INCREF|ErrFetch\w*))\s*\("
)


def complaints(name: str, text: str) -> list[str]:
    lines = without_strings(text).splitlines()
    found = []
    extern_indent = -1  # inside a block of C declarations while lines are deeper than this
    for number, statement, _ in statements(lines):
        indent = len(lines[number]) - len(lines[number].lstrip())
        if indent <= extern_indent:
            extern_indent = -1
        if re.match(r"cdef +extern\b", statement):
            extern_indent = indent
            continue
        where = f"{name}:{number + 1}"
        word = re.search(PYTHON_WORDS, statement)
        if word:
            found.append(f"{where}: {word.group().strip()!r} belongs to pycore")
        pointer = re.search(r"\(\* *\w*\) *\(", statement) and "=" not in statement
        if extern_indent < 0 and (is_function(statement) or pointer):
            found += _not_nogil(where, statement)
    return found


def _not_nogil(where: str, statement: str) -> list[str]:
    promised = statement.rsplit(")", 1)[-1]
    missing = [word for word in ("noexcept", "nogil") if word not in promised]
    return [f"{where}: not {word}: {statement}" for word in missing]


def functions_of_c(module: str, text: str) -> dict[str, str]:
    """The bodies of the core functions in generated C, those of pxd files it used included."""
    pattern = r"^static [^;{}]*?\b(__pyx_f_7pulsarx_5_core_\w+)\([^;{}]*\) *\{(.*?)^\}"
    return {
        match.group(1): match.group(2)
        for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL)
    }


def python_in_c(module: str, text: str) -> list[str]:
    return [
        f"{module}: {name} calls {match.group(1)}"
        for name, body in functions_of_c(module, text).items()
        for match in re.finditer(PYTHON_IN_C, body)
    ]


def generated() -> list[Path]:
    return sorted((ROOT / "build" / "c" / "src" / "core").glob("*.c"))


def test_the_source_of_the_core_is_free_of_python():
    wrong = []
    for path in files(("src/core",), {".pyx", ".pxd"}):
        wrong += complaints(shown(path), path.read_text())
    assert not wrong, "\n".join(wrong)


def test_the_compiled_core_calls_no_python():
    sources = [path for path in generated() if (ROOT / "src/core" / f"{path.stem}.pyx").exists()]
    if not sources:
        pytest.skip("no generated C here: it lies beside the sources, or nothing was built")
    wrong, seen = [], 0
    for path in sources:
        text = path.read_text()
        seen += len(functions_of_c(path.stem, text))
        wrong += python_in_c(path.stem, text)
    assert seen, "no function of the core found in the generated C: did Cython change its names?"
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "cdef int f(int x) nogil",
        "cdef int f(int x) noexcept:\n    return x",
        "cdef int f(\n    int x,\n) nogil:\n    return x",
        "cdef inline int f(int x):\n    return x",
        "cdef int f() except -1 nogil",
        "def f():\n    pass",
        "cdef class A:\n    pass",
        "cdef object x",
        "cdef void f(object x) noexcept nogil",
        "cdef void f(const uint8_t[:] x) noexcept nogil",
        "cdef struct A:\n    int (*write)(int x)",
        "cdef void f() noexcept nogil:\n    with gil:\n        pass",
        "cdef void f() noexcept nogil:\n    assert x",
    ],
)
def test_python_in_the_core_is_found(text: str):
    assert complaints("planted", text)


@pytest.mark.parametrize(
    "text",
    [
        '"""def and class and object in words."""',
        "cdef inline int f(int x) noexcept nogil:\n    return g(x)  # an object",
        "cdef extern from *:\n    int f(int x) nogil\n    void invariant(bint condition)",
        "cdef struct A:\n    int (*write)(int x) noexcept nogil\n    int size",
        "cdef int f(\n    int x,\n) noexcept nogil",
        "cdef int f() noexcept nogil:\n    cdef int x = <int>sizeof(A)\n    cdef A* a = g(x)",
    ],
)
def test_pure_source_is_let_through(text: str):
    assert not complaints("planted", text)


C_FUNCTION = "static int __pyx_f_7pulsarx_5_core_6crc32c_f(int x) {{\n  return {}(x);\n}}\n"


def test_a_call_of_python_in_generated_c_is_found():
    assert python_in_c("planted", C_FUNCTION.format("PyLong_FromLong"))
    assert python_in_c("planted", C_FUNCTION.format("__Pyx_RaiseUnexpectedTypeError"))
    assert not python_in_c("planted", C_FUNCTION.format("memcpy"))
