"""What the tidy tests look at: the source files, their import names, the functions in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGES = {"src/core": "pulsarx._core", "src/pycore": "pulsarx._pycore", "spark": "pulsarx.spark"}
PACKAGES["python/pulsarx"] = "pulsarx"
LIBRARY = tuple(PACKAGES)
EVERYWHERE = (*LIBRARY, "tests", "benchmarks", "examples", "tools", "wheels")
SUFFIXES = {".py", ".pyi", ".pyx", ".pxd", ".h"}


def files(folders: tuple[str, ...] = EVERYWHERE, suffixes: set[str] = SUFFIXES) -> list[Path]:
    """Every source file below the folders; what stands alone too when all are asked for."""
    found = [
        path
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in suffixes and path.is_file() and "scratch" not in path.parts
    ]
    alone = [ROOT / "setup.py", *sorted((ROOT / "python").glob("*.py"))]
    return [*found, *alone] if folders == EVERYWHERE else found


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


def module_name(path: Path) -> str:
    """The import name of a file of the library: src/core/crc32c.pyx is pulsarx._core.crc32c."""
    for folder, package in PACKAGES.items():
        if path.is_relative_to(ROOT / folder):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            return ".".join([package, *(part for part in parts if part != "__init__")])
    raise ValueError(path)


@dataclass
class Function:
    """One function: where it begins, its length, its header on one line, its body's lines."""

    name: str
    line: int
    line_count: int
    header: str


def functions(text: str, suffix: str) -> list[Function]:
    if suffix in {".py", ".pyi"}:
        return list(_python_functions(text))
    return list(_cython_functions(text)) if suffix in {".pyx", ".pxd"} else []


def _python_functions(text: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            line_count = (node.end_lineno or node.lineno) - node.lineno + 1 - docstring_lines(node)
            yield Function(node.name, node.lineno, line_count, "")


def docstring_lines(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef,
) -> int:
    """How many lines its docstring has."""
    first = node.body[0] if node.body else None
    if not isinstance(first, ast.Expr) or ast.get_docstring(node) is None:
        return 0
    return (first.end_lineno or first.lineno) - first.lineno + 1


def _cython_functions(text: str) -> Iterator[Function]:
    lines = without_strings(text).splitlines()
    for number, header, last_line in statements(lines):
        if not is_function(header) or not header.endswith(":"):
            continue
        indent = _indent(lines[number])
        end = last_line
        for following in range(last_line + 1, len(lines)):
            if lines[following].strip():
                if _indent(lines[following]) <= indent:
                    break
                end = following
        name = header.split("(")[0].split()[-1].lstrip("*")
        yield Function(name, number + 1, end - number + 1, header)


def is_function(header: str) -> bool:
    """Whether a Cython statement declares or defines a function."""
    if not re.match(r"(async def|def|cdef|cpdef)\b", header) or "(" not in header:
        return False
    before = header.split("(")[0]
    kinds = r"\b(class|struct|union|enum|extern|packed)\b"
    return "=" not in before and not re.search(kinds, before) and len(before.split()) >= 2


def statements(lines: list[str]) -> Iterator[tuple[int, str, int]]:
    """(index of the first line, the statement on one line, index of the last line)."""
    index = 0
    while index < len(lines):
        first, text = index, lines[index].split("#")[0].strip()
        while _open_brackets(text) > 0 and index + 1 < len(lines):
            index += 1
            text += " " + lines[index].split("#")[0].strip()
        if text:
            yield first, text, index
        index += 1


def without_strings(text: str) -> str:
    """The text with every string emptied, in the same lines: what is said is not code."""
    pattern = r'("""|\'\'\')(?:\\.|(?!\1).)*\1|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|#[^\n]*'

    def empty(match: re.Match[str]) -> str:
        found = match.group()
        if found.startswith("#"):
            return ""
        # The lines of a docstring stay, as something indented, so that it counts into its function.
        lines = found.split("\n")
        return '""' + "".join("\n" + " " * 200 + '""' for _ in lines[1:])

    return re.sub(pattern, empty, text, flags=re.DOTALL)


def _open_brackets(text: str) -> int:
    return sum(text.count(bracket) for bracket in "([{") - sum(text.count(b) for b in ")]}")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
