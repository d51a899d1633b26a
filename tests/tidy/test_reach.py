"""What only tests reach is no part of the product: each module is reached from a public one."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from fnmatch import filter as matching

from source_files import LIBRARY, ROOT, files, module_name
from test_layers import cython_imports, python_imports

# Where users read what they may import.
PAGES = ("README.md", "docs/*.md", "spark/README.md", "examples/*.py", "python/*.py")
# What is found by its place: Python runs the first and, in processes that `pulsarx run` has a
# program start, the second; the others are modules of the alias (compat/alias.py).
BY_PLACE = (
    "pulsarx.__main__",
    "pulsarx.compat.startup.sitecustomize",
    "pulsarx.compat._pulsar",
    "pulsarx.compat.pulsar_asyncio",
    "pulsarx.compat.pulsar.*",
)


def named_by(text: str, module: str, suffix: str) -> Iterator[str]:
    """The names of modules that a file imports, at any time or for types alone, or has in a text by
    which one is loaded: "module", or "module:name"."""
    if suffix == ".py":
        found = python_imports(text, module, type_only=True)
        texts = [
            node.value
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
    else:
        found = cython_imports(text)
        texts = re.findall(r'"(pulsarx[.\w]*)"', text)
    for _, source, name, _ in found:
        yield source
        yield f"{source}.{name}"
    yield from (each.partition(":")[0] for each in texts)


def graph() -> dict[str, set[str]]:
    """The modules of the library, and those that each of them leads to; its package is one."""
    paths = [path for path in files(LIBRARY) if path.suffix in {".py", ".pyx", ".pxd"}]
    found: dict[str, set[str]] = {module_name(path): set() for path in paths}
    for path in paths:
        module = module_name(path)
        inside = f"{module}.__init__" if path.stem == "__init__" else module
        named = set(named_by(path.read_text(encoding="utf-8"), inside, path.suffix))
        found[module] |= named & found.keys()
        if "." in module:
            found[module].add(module.rpartition(".")[0])
    return found


def public(known: Iterable[str]) -> set[str]:
    """What users import or run, by the pages they read and by what is installed for them."""
    known = set(known)
    texts = [path.read_text(encoding="utf-8") for page in PAGES for path in sorted(ROOT.glob(page))]
    found = {name for text in texts for name in re.findall(r"pulsarx(?:\.\w+)*", text)}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found |= {place.partition(":")[0] for place in project["scripts"].values()}
    for each in BY_PLACE:
        assert matching(known, each), f"there is no {each}"
        found.update(matching(known, each))
    return found & known


def reached(leads_to: dict[str, set[str]], roots: Iterable[str]) -> set[str]:
    found: set[str] = set()
    ahead = set(roots)
    while ahead:
        found |= ahead
        ahead = {target for module in ahead for target in leads_to[module]} - found
    return found


def test_each_module_is_reached_from_a_public_one():
    leads_to = graph()
    unreached = leads_to.keys() - reached(leads_to, public(leads_to))
    assert not unreached, f"only tests reach these, so move them there: {sorted(unreached)}"


def test_what_nothing_leads_to_is_found():
    leads_to = {"a": {"b"}, "b": {"a", "c"}, "c": set(), "only_tests": {"a"}}
    assert reached(leads_to, {"a"}) == {"a", "b", "c"}


def test_each_way_to_name_a_module_counts():
    for text in (
        "import pulsarx.x",
        "from pulsarx import x",
        "def f():\n    from pulsarx.x import y",
        "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from pulsarx.x import Y",
        'PLACES = {"a": "pulsarx.x:name"}',
        'import_module("pulsarx.x")',
    ):
        assert "pulsarx.x" in named_by(text, "pulsarx.z", ".py"), text
    for text in (
        "from pulsarx.x cimport y",
        "from pulsarx cimport x",
        'def f():\n    __import__("pulsarx.x")',
    ):
        assert "pulsarx.x" in named_by(text, "pulsarx.z", ".pyx"), text
    assert "pulsarx.x" not in named_by('"""As pulsarx.x does."""', "pulsarx.z", ".py")
