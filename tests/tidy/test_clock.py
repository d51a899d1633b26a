"""Only system_time.pxd reads a clock, so that a test can hold time; no test sleeps."""

from __future__ import annotations

import ast
import re

import pytest
from source_files import LIBRARY, files, shown, without_strings

READS = {
    "time": "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time "
    "process_time_ns thread_time localtime gmtime ctime asctime clock_gettime clock_gettime_ns",
    "datetime": "now utcnow today",
}
C_READS = (
    r"\b(clock_gettime|gettimeofday|timespec_get|_?_rdtsc|CLOCK_\w+|PyTime_\w+|libc\.time"
    r"|(?:time|datetime)\.(?:now|utcnow|today|time|monotonic|perf_counter)\w*)\b"
)


def reads_of_a_clock(text: str, suffix: str) -> list[str]:
    if suffix in {".py", ".pyi"}:
        return _python_reads(text)
    code = without_strings(text)
    imports = r"^\s*(import|from) +(time|datetime|posix\.time)\b(?! import timedelta$)"
    if re.search(imports, code, re.MULTILINE):
        return ["imports a clock"]
    # C in a pxd is a string to Cython, so what only C can mean is sought in the whole text.
    named = re.findall(r"\b(?:clock_gettime|gettimeofday|timespec_get|_?_rdtsc)\b(?= *\()", text)
    return named + re.findall(C_READS, code)


def _python_reads(text: str) -> list[str]:
    tree = ast.parse(text)
    origin: dict[str, str] = {}  # local name -> module it belongs to
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in READS:
                    origin[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.ImportFrom) and node.module in READS:
            for alias in node.names:
                if alias.name in READS[node.module].split():
                    found.append(f"{node.module}.{alias.name}")
                origin[alias.asname or alias.name] = node.module
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            root = ast.unparse(node.value).split(".")[0]
            if root in origin and node.attr in READS[origin[root]].split():
                found.append(f"{origin[root]}: {ast.unparse(node)}")
    return found


def sleeps(text: str) -> bool:
    return (
        re.search(r"\b(time\.sleep|from time import .*\bsleep)\b", without_strings(text))
        is not None
    )


CLOCK = "src/pycore/ground/system_time.pxd"


def test_only_one_module_reads_a_clock():
    wrong = [
        f"{shown(path)}: {read}"
        for path in files(LIBRARY)
        if shown(path) != CLOCK
        for read in reads_of_a_clock(path.read_text(), path.suffix)
    ]
    assert not wrong, "\n".join(wrong)


def test_no_test_sleeps():
    wrong = [shown(path) for path in files(("tests",)) if sleeps(path.read_text())]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".py", "import time\nx = time.monotonic()"),
        (".py", "import time as t\ndef f(clock=t.time_ns): ..."),
        (".py", "from time import perf_counter as p"),
        (".py", "import datetime\ndatetime.datetime.now()"),
        (".py", "from datetime import datetime as d, UTC\nd.now(UTC)"),
        (".py", "from datetime import date\ndate.today()"),
        (".pyx", "from posix.time cimport clock_gettime, CLOCK_MONOTONIC"),
        (".pyx", "import time"),
        (".pxd", 'cdef extern from *:\n    """\n    clock_gettime(CLOCK_REALTIME, &now);\n    """'),
        (".h", "int f(void) { return gettimeofday(&now, 0); }"),
    ],
)
def test_a_read_of_a_clock_is_found(suffix: str, text: str):
    assert reads_of_a_clock(text, suffix)


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".py", "def f(self):\n    return self.clock.time() + timer.now()"),
        (".py", "from datetime import datetime\ndatetime.fromtimestamp(clock.now_ms() / 1000)"),
        (".pyx", "cdef int64_t publish_time = clock_now"),
    ],
)
def test_time_from_elsewhere_is_let_through(suffix: str, text: str):
    assert not reads_of_a_clock(text, suffix)


def test_a_sleep_is_found():
    assert sleeps("import time\n" + "time.sleep" + "(1)")
    assert not sleeps('"time.sleep is forbidden"')
