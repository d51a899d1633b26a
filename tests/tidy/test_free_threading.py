"""No module says that it works without the GIL: docs/design/threads.md counts what that guards. A
free-threaded Python switches it on when it loads a module that does not say so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from build_mode import build_mode
from source_files import ROOT, files

SAYS_SO = re.compile(r"freethreading_compatible|Py_MOD_GIL_NOT_USED", re.IGNORECASE)


def test_no_source_says_that_it_works_without_the_gil() -> None:
    found = [path for path in files() if SAYS_SO.search(path.read_text("utf-8"))]
    assert found == [Path(__file__)]


def test_cython_does_not_say_it_for_modules_that_are_silent() -> None:
    options = pytest.importorskip("Cython.Compiler.Options")
    directives = options.get_directive_defaults() | build_mode().directives
    assert directives["freethreading_compatible"] is False


def test_every_generated_module_takes_the_answer_that_it_needs_the_gil() -> None:
    generated = ROOT / "build" / "c"
    sources = [
        path
        for path in sorted((generated / "src").rglob("*.c"))
        if (ROOT / path.relative_to(generated)).with_suffix(".pyx").exists()
    ]
    if not sources:
        pytest.skip("no generated C here: it lies beside the sources, or nothing was built")
    for path in sources:
        text = path.read_text("utf-8")
        assert "{Py_mod_gil, __Pyx_FREETHREADING_COMPATIBLE}" in text, path
        assert not re.search(r"#define CYTHON_FREETHREADING_COMPATIBLE\b", text), path
