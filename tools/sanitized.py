"""Runs Python with the library that is built with sanitizers: `sanitized.py <Python's arguments>`.

`PULSARX_SANITIZE=address,undefined tools/bootstrap test` builds it; here too the variable chooses
which. Python itself is not built with sanitizers, so their libraries are loaded in front of it.

What they report is printed at the end, also what child processes did, whose end nobody may have
looked at. Ends with what Python ended with, with 1 when there is a report.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

DEFAULT = "address,undefined"
LIBRARIES = {"address": "asan", "undefined": "ubsan", "thread": "tsan"}
SUPPRESSIONS = Path(__file__).resolve().parent / "thread_suppressions.txt"


def library(sanitizer: str) -> str:
    command = [os.environ.get("CC", "gcc"), f"-print-file-name=lib{LIBRARIES[sanitizer]}.so"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def thread_options(log: str) -> str:
    """Each race of a run is told; a child that was forked while threads run is one more run. A
    thread remembers 2**17 accesses, so that the other side of a race has a stack."""
    return f"halt_on_error=0:die_after_fork=0:history_size=5:suppressions={SUPPRESSIONS}:{log}"


def environment(sanitizers: str, tree: Path, reports: Path) -> dict[str, str]:
    """For a process that shall run the library of the sanitizers."""
    paths = [str(tree), os.environ.get("PYTHONPATH", "")]
    log = f"log_path={reports}/report"
    common = f"halt_on_error=1:print_stacktrace=1:{log}"
    return os.environ | {
        "PULSARX_SANITIZE": sanitizers,
        "LD_PRELOAD": " ".join(library(each) for each in sanitizers.split(",")),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        # Python's own allocator gives out parts of arenas: reading past one is seen by nobody.
        "PYTHONMALLOC": "malloc",
        # Python leaks by design; and a size nobody has is answered as it is without sanitizers.
        "ASAN_OPTIONS": f"detect_leaks=0:allocator_may_return_null=1:{common}",
        "TSAN_OPTIONS": thread_options(log),
        "UBSAN_OPTIONS": common,
        # UBSan of GCC knows no log_path, and what pytest keeps of stderr until a test ends is lost
        # with the process; its handler of signals would hide the place from ASan.
        "PYTEST_ADDOPTS": "--capture=sys -p no:faulthandler",
    }


def main(arguments: list[str]) -> int:
    sanitizers = os.environ.setdefault("PULSARX_SANITIZE", DEFAULT)
    from build_mode import build_mode  # reads what was just set

    mode = build_mode()
    if not mode.library.exists():
        print(f"PULSARX_SANITIZE={sanitizers} tools/bootstrap test comes first", file=sys.stderr)
        return 1
    reports = mode.folder / f"reports-{os.getpid()}"
    reports.mkdir()
    try:
        command = [sys.executable, *arguments]
        code = subprocess.call(command, env=environment(sanitizers, mode.tree, reports))
        found = sorted(reports.iterdir())
        for report in found:
            print(f"\n{report.read_text(errors='replace')}", file=sys.stderr)
    finally:
        shutil.rmtree(reports)
    return code or bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
