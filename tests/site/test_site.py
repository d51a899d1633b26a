"""The site: it builds without a warning, and its pages fit a phone."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from page_samples import ROOT

import pulsarx

CELL_SIZE_MAX = 80
PAGES = sorted((ROOT / "docs").rglob("*.md"))


@pytest.mark.standard
@pytest.mark.needs("sphinx", "myst_parser", "furo", "sphinx_click", "starlette")
def test_the_site_builds_without_a_warning(tmp_path: Path):
    """Links inside are checked by that; the search needs no server."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E"]
    places = ["-c", str(ROOT / "docs/site"), "-d", str(tmp_path / "trees")]
    site = tmp_path / "site"
    run = subprocess.run(
        [*command, *places, str(ROOT), str(site)], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    assert (site / "searchindex.js").stat().st_size > 100_000
    assert "url=docs/index.html" in (site / "index.html").read_text(encoding="utf-8")
    for page, texts in {
        "docs/reference/rest.html": ["/admin/v2/tenants", "Get the topics of a namespace"],
        "docs/reference/command-line.html": ["create-partitioned-topic", "--tls-certificate"],
        "docs/reference/api/consumer.html": ["negative_acknowledge", "ConsumerDeadLetterPolicy"],
        "docs/reference/api/messages.html": ["publish_timestamp"],
    }.items():
        text = re.sub(r"<[^>]*>", "", (site / page).read_text(encoding="utf-8"))
        assert not [each for each in texts if each not in text], page
    sidebar = (site / "docs/index.html").read_text(encoding="utf-8")
    for page in PAGES:
        name = page.relative_to(ROOT).with_suffix(".html")
        assert (site / name).exists(), name
        assert name.parent.name == "design" or f'{name.name}"' in sidebar, f"{name}: no way there"


@pytest.fixture
def made_pages(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(ROOT / "docs/site"))
    return importlib.import_module("made_pages")


def test_each_page_has_one_place_in_the_navigation(made_pages: ModuleType):
    pages = [
        "concepts/time", "concepts/zebras", "deployment", "design/README", "design/forks",
        "how-to-knit", "new/page", "options", "recipes/cron", "reference/api",
        "reference/api/client", "producers",
    ]  # fmt: skip
    found = made_pages.arranged(pages)
    assert found["Concepts"] == ["concepts/time", "concepts/zebras"]
    assert found["How to"] == ["producers", "how-to-knit"]
    assert found["Operation"] == ["deployment"]
    assert found["Reference"] == ["reference/api", "options"]
    assert found["Design"] == ["design/README"]
    assert found["More"] == ["new/page"]


def test_docstrings_become_markup(made_pages: ModuleType):
    lines = [
        "Open it.", "", "folder: where", "    it is.", "Raises Timeout.", "", "    code()", "",
    ]  # fmt: skip
    made_pages.as_markup(None, "function", "x", None, None, lines)
    text = "\n".join(lines)
    assert "- **folder**: where\n  it is.\n\nRaises Timeout." in text
    assert "::\n\n    code()" in text
    google = ["Open it.", "", "Args:", "    folder: where it is.", "", "Example:", "    code()"]
    made_pages.as_markup(None, "function", "x", None, None, google)
    assert google == [*google[:6], "    ::", "", "        code()"]
    assert google[:5] == ["Open it.", "", "Args:", "    folder: where it is.", ""]


def test_no_cell_of_a_table_is_a_paragraph():
    """On a phone a column is some twenty characters wide."""
    long = [
        f"{path.relative_to(ROOT)}: {cell.strip()[:60]}..."
        for path in PAGES
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
        for cell in re.split(r"(?<!\\)\|", line)[1:-1]
        if len(cell.strip()) > CELL_SIZE_MAX
    ]
    assert not long, "\n".join(long)


def test_the_reference_has_every_public_name():
    text = "\n".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "docs/reference/api").glob("*.rst")
    )
    whole = {name.partition(".")[2] for name in re.findall(r"automodule:: ([\w.]+)", text)}
    assert {"errors", "schema", "aio", "functions", "backups", "testing", "hashing"} <= whole
    named = set(re.findall(r":: pulsarx\.(\w+)$", text, re.MULTILINE))
    public = {*pulsarx.__all__, "Forwarder"} - set(pulsarx.errors.__all__) - {"__version__"}
    assert public == named - whole


def test_pages_have_one_title_each():
    for path in PAGES:
        text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert len(re.findall(r"^# ", text, re.MULTILINE)) == 1, path.name
