"""The pages in docs/ are true: each block of Python is a file, and its tests pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"


@pytest.mark.standard
def test_the_programs_of_the_page_about_testing_pass_their_tests(tmp_path: Path):
    text = (DOCS / "testing.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    for name, code in blocks:
        (tmp_path / name).write_text(code, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_pulsarx", "--strict-markers"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    assert f"{text.count('def test_')} passed" in run.stdout
