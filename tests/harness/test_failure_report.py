"""Facts about what is told of a test that fails, or takes too long."""

from __future__ import annotations

import failure_report
import pytest
from source_files import ROOT

pytest_plugins = ["pytester"]

CONFTEST = """
import failure_report, pytest
failure_report.LIMIT_SECONDS = {"quick": 2.0, "standard": 1000.0}
failure_report.PARTING_SECONDS = PARTING
def pytest_configure(config):
    config.pluginmanager.register(failure_report.FailureReport())
"""
PROGRAM = """
import os, sys, threading
def in_a_thread_of_the_child():
    entered.set()
    event.wait()
def in_the_child():
    os.write(1, b"well\\nnobody reads this\\n")  # at once
    sys.stdin.readline()
event, entered = threading.Event(), threading.Event()
threading.Thread(target=in_a_thread_of_the_child, daemon=True).start()
entered.wait()
print("an error", file=sys.stderr, flush=True)
in_the_child()
"""
FAILING = f"""
import threading
import pytest
from child_process import ChildProcess

PROGRAM = r'''{PROGRAM}'''

@pytest.fixture
def waiting_thread():
    event = threading.Event()
    def in_a_thread(): event.wait()
    thread = threading.Thread(target=in_a_thread, name="the thread")
    thread.start()
    yield
    event.set()
    thread.join()

@pytest.fixture
def child():
    with ChildProcess(PROGRAM) as child:
        assert child.line() == "well"
        yield child

def test_fixtures(waiting_thread, child, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/some.log").write_text("".join(f"line {{n}}\\n" for n in range(1000)))
    assert not child

def test_block():
    with ChildProcess(PROGRAM) as child:
        assert child.line() == "well"
        assert not child

def test_passes(child): pass
"""
HANGING = """
import signal, threading
import pytest

def for_ever(): threading.Event().wait()

@pytest.mark.quick
def test_hangs(): for_ever()
@pytest.mark.quick
def test_passes(): pass
@pytest.mark.standard
def test_may_take_longer(): threading.Event().wait(3.5)
@pytest.mark.quick
def test_is_deaf():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    for_ever()
"""
CHILD_TELLS = [
    "lives; nobody has read b'nobody reads this\\n'; it has said:",
    "an error",
    "in in_a_thread_of_the_child",
    "in in_the_child",
]


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    for name in ("LIMIT_SECONDS", "PARTING_SECONDS"):  # the conftest of this project sets them
        monkeypatch.setattr(failure_report, name, getattr(failure_report, name))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'tests'}:{ROOT / 'tests/api'}")
    pytester.makeconftest(CONFTEST.replace("PARTING\n", "300.0\n"))
    pytester.makeini("[pytest]\nmarkers =\n    quick\n    standard\n")
    return pytester


def sections_of(shown: str, test: str) -> dict[str, str]:
    """Of the report of one test."""
    found: dict[str, str] = {}
    title = ""
    _, _, report = shown.partition(f"_ {test} _")
    for line in report.splitlines()[1:]:
        if line.startswith(("___", "===")):
            break
        if line.startswith("----"):
            title = line.strip("- ")
        found[title] = found.get(title, "") + line + "\n"
    return found


def test_a_failure_shows_threads_processes_and_ends_of_logs(project: pytest.Pytester) -> None:
    project.makepyfile(FAILING)
    ran = project.runpytest("-p", "no:cacheprovider")
    ran.assert_outcomes(passed=1, failed=2)
    shown = ran.stdout.str()
    by_fixtures = sections_of(shown, "test_fixtures")
    assert "the thread, S (sleeping)" in by_fixtures["Threads"]
    assert "in in_a_thread\n" in by_fixtures["Threads"]
    for text in CHILD_TELLS:
        assert text in by_fixtures["Processes"]
    ends = by_fixtures["Ends of log files"]
    assert "folder/some.log" in ends and "line 999" in ends and "line 900\n" not in ends
    by_block = sections_of(shown, "test_block")[""]  # it is gone when the test has failed
    for text in CHILD_TELLS:
        assert text in by_block


@pytest.mark.standard
def test_what_takes_too_long_fails_and_says_where_it_was(project: pytest.Pytester) -> None:
    project.makepyfile(HANGING)
    ran = project.runpytest_subprocess("-p", "no:cacheprovider", "-k", "not deaf", timeout=120)
    ran.assert_outcomes(passed=2, failed=1)
    report = sections_of(ran.stdout.str(), "test_hangs")
    assert "Failed: it took more than 2 s" in report[""]
    assert "MainThread, S (sleeping)" in report["Threads"]
    assert "in for_ever\n" in report["Threads"]


SLOW_TO_TELL = """
@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    if call.when == "call":
        threading.Event().wait(4)
    return (yield)
"""


@pytest.mark.standard
def test_pytest_is_not_interrupted_between_the_parts_of_a_test(project: pytest.Pytester) -> None:
    """What was raised there ended the run of all tests."""
    slow = CONFTEST.replace("PARTING\n", "300.0\n") + SLOW_TO_TELL
    project.makeconftest(f"import threading\nimport pytest\n{slow}")
    project.makepyfile("import pytest\n@pytest.mark.quick\ndef test_passes(): pass\n")
    ran = project.runpytest_subprocess("-p", "no:cacheprovider", timeout=120)
    assert ran.parseoutcomes()["passed"] == 1
    assert "INTERNALERROR" not in ran.stdout.str()


@pytest.mark.standard
def test_what_cannot_be_interrupted_ends_its_process_and_says_where_it_was(
    project: pytest.Pytester,
) -> None:
    project.makeconftest(CONFTEST.replace("PARTING\n", "1.0\n"))
    project.makepyfile(HANGING)
    ran = project.runpytest_subprocess("-p", "no:cacheprovider", "-k", "deaf", timeout=120)
    assert ran.ret == pytest.ExitCode.INTERNAL_ERROR
    said = ran.stderr.str()
    assert "::test_is_deaf took more than 2 s, and cannot be interrupted" in said
    assert "in for_ever\n" in said
