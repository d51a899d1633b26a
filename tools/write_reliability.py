"""Writes into RELIABILITY.md what the last `make test-long` came to.

.venv/bin/python tools/write_reliability.py
"""

from __future__ import annotations

import sys
from pathlib import Path

from write_policies import between

ROOT = Path(__file__).resolve().parent.parent
SUMMARY = ROOT / "build/long/summary.md"
PAGE = ROOT / "RELIABILITY.md"
BEGIN = "<!-- long run: written by tools/write_reliability.py -->"
END = "<!-- /long run -->"


def main() -> int:
    lines = SUMMARY.read_text(encoding="utf-8").splitlines()
    PAGE.write_text(
        between(PAGE.read_text(encoding="utf-8"), f"{BEGIN}\n", END, [*lines, ""]),
        encoding="utf-8",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
