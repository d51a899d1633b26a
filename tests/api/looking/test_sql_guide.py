"""docs/sql.md is true: its Python runs, in the order of the text and in one process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "sql.md"


@pytest.mark.needs("duckdb")
def test_the_sql_guide_runs_as_it_stands(tmp_path: Path):
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text("utf-8"), re.M | re.S)
    script = tmp_path / "guide.py"
    script.write_text("\n".join(blocks), encoding="utf-8")
    run = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert len(blocks) == 9 and (run.returncode, run.stderr) == (0, "")
