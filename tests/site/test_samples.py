"""Every sample of every page runs as it stands: Python, tests and shell."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from flight_source import install_flights
from page_samples import ROOT, Page, samples

# Those that run in a session of Spark, in one process, or with tests of their own.
OPERATION = ("deployment", "monitoring", "security", "troubleshooting", "tuning", "upgrading")
ELSEWHERE = {
    "docs/spark.md": "tests/spark/test_spark_examples.py",
    "docs/spark-catalogues.md": "tests/spark/test_spark_examples.py",
    "docs/sql.md": "tests/api/looking/test_sql_guide.py",
    "docs/testing.md": "tests/api/client/test_howto.py",
    "docs/coming-from/testcontainers-pulsar.md": "tests/api/client/test_howto.py",
    **{f"docs/{name}.md": "tests/deploy/test_operation_pages.py" for name in OPERATION},
}
# Which program a sample of the shell needs beside ours.
PROGRAMS = ("openssl", "jq", "curl")
PAGES = [
    str(path.relative_to(ROOT))
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if samples(path.read_text(encoding="utf-8"))
]


@pytest.fixture(scope="module")
def with_flights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that finds some of the flights."""
    return install_flights(tmp_path_factory.mktemp("site"), flight_count=2500)


@pytest.mark.standard
@pytest.mark.parametrize("page", [each for each in PAGES if each not in ELSEWHERE])
def test_every_sample_runs(page: str, with_flights: dict[str, str], tmp_path: Path):
    found = samples((ROOT / page).read_text(encoding="utf-8"))
    for name in PROGRAMS:
        if any(f"{name} " in each.code for each in found if each.language == "sh"):
            if shutil.which(name) is None:
                pytest.skip(f"a sample of {page} needs {name}")
    whole = Page(tmp_path, os.environ | with_flights)
    whole.run(found)
    if any("arrived.most_common" in each.code for each in found):
        assert "('AA', 1250)" in whole.printed


def test_what_runs_elsewhere_is_there():
    for page, tests in ELSEWHERE.items():
        assert (ROOT / tests).exists() or page not in PAGES, f"nothing runs {page}"


def test_no_page_has_code_that_nothing_runs():
    """Indented code would be none of the samples; nor is a fence of an unknown language."""
    known = {
        "python",
        "python spark",
        "sh",
        "text",
        "toml",
        "json",
        "yaml",
        "ini",
        "diff",
        "mermaid",
    }
    known |= {"console"}  # of pages that have tests of their own
    for path in sorted((ROOT / "docs").rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        languages = set(re.findall(r"^```([^\n{]+)\n(?:.|\n)*?^```$", text, re.MULTILINE))
        assert languages <= known, f"{path.name}: {languages - known}"
        outside = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
        assert not re.search(r"(?:^|\n)\n    (?![-*\d ])\S", outside), f"{path.name}: indented code"


@pytest.mark.standard
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("```python\nraise ValueError\n```\n", "ValueError"),
        ("```sh\nfalse\necho not reached\n```\n", "false"),
        ("```sh\necho one\n```\n\n```text\ntwo\n```\n", "one"),
        ("```python\n# test_x.py\ndef test_x():\n    assert False\n```\n", "test_x"),
        ("<!-- runs until: ready -->\n```sh\necho gone\n```\n", "gone"),
    ],
)
def test_a_sample_that_fails_is_found(text: str, fault: str, tmp_path: Path):
    with pytest.raises(AssertionError, match=fault):
        Page(tmp_path, dict(os.environ)).run(samples(text))


@pytest.mark.standard
def test_samples_of_a_page_share_a_folder_and_what_is_exported(tmp_path: Path):
    text = (
        "```sh\nexport WORD=one\n```\n\n```python\n# words.py\nWORDS = ['one']\n```\n\n"
        "```sh\npython -c \"import os, words; print(os.environ['WORD'] in words.WORDS)\"\n```\n\n"
        "```text\nTrue\n```\n\n<!-- not run: it fails -->\n```sh\nfalse\n```\n"
    )
    Page(tmp_path, dict(os.environ)).run(samples(text))
