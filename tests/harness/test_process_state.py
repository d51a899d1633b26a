"""Facts about what a run of tests inherits from who starts it, and tests leave to each other."""

from __future__ import annotations

import subprocess
import sys

import pytest
from source_files import ROOT

pytest_plugins = ["pytester"]

# As the worst of shells and supervisors start programs.
DEAF = """
import os, resource, signal, sys
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    try:
        signal.signal(number, signal.SIG_IGN)
    except OSError:
        pass  # the C library has it for itself
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
os.umask(0o077)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
os.close(0)
os.execv(sys.executable, [sys.executable, "-m", "pytest", *sys.argv[1:]])
"""
# Some that depend on it: on Ctrl-C here and in a child, other signals, the end of a child.
SAMPLE = [
    "tests/sharing/test_callers_that_read.py::"
    "test_a_receiver_that_reads_is_interrupted_while_another_thread_sends",
    "tests/api/offload/test_fetched_ledgers.py::"
    "test_ctrl_c_ends_the_wait_for_a_ledger_that_is_fetched[kind0]",
    "tests/api/client/test_interrupts.py::test_ctrl_c_ends_a_waiting_call[consumer.receive()]",
    "tests/api/functions/test_localrun.py::test_a_signal_ends_it_without_a_loss[15-ATLEAST_ONCE-kind0]",
    "tests/cli/test_processes.py::test_a_reader_that_leaves_ends_it_quietly",
    "tests/api/consuming/test_batch_receive.py",
]
PATIENCE_SECONDS = 240


@pytest.mark.standard
def test_what_a_run_inherits_changes_no_test() -> None:
    """Shells start what they do not wait for with Ctrl-C ignored."""
    with subprocess.Popen(
        [sys.executable, "-c", DEAF, "-q", "-n0", *SAMPLE],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as ran:  # fmt: skip
        try:
            shown, _ = ran.communicate(timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            ran.kill()
            shown, _ = ran.communicate()
    assert ran.returncode == 0, shown[-10_000:]


LEAKS = """
import gc, os, resource, signal
import pytest

def test_handler(): signal.signal(signal.SIGINT, signal.SIG_IGN)
def test_mask(): signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
def test_alarm(): signal.setitimer(signal.ITIMER_REAL, 1000)
def test_wakeup():
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write)
def test_collector(): gc.disable()
def test_limit():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
def test_folder(): os.chdir("/")
def test_folder_that_goes(tmp_path):
    os.chdir(tmp_path)
    os.rmdir(tmp_path)

def test_clean(request, monkeypatch, pytestconfig):
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert os.getcwd() == str(pytestconfig.rootpath)
    monkeypatch.chdir("/")

@pytest.fixture(scope="session")
def session():
    signal.signal(signal.SIGINT, lambda *_: None)

def test_first_of_a_session(session): pass
def test_behind_it(session):
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""


def test_a_test_that_leaves_something_behind_fails_and_no_other(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_leaks=LEAKS)
    pytester.makeconftest(
        "import process_state\n"
        "def pytest_configure(config):\n"
        "    config.pluginmanager.register(process_state.ProcessState())\n"
    )
    ran = pytester.runpytest("-p", "no:cacheprovider")
    ran.assert_outcomes(passed=11, errors=8)
    shown = ran.stdout.str()
    for text in (
        "test_handler has left behind: the handler of SIGINT is 1",
        "test_mask has left behind: blocked signals are {2}",
        "test_alarm has left behind: whether an alarm is set is True",
        "test_wakeup has left behind: the descriptor for signals is ",
        "test_collector has left behind: whether the collector runs is False",
        "test_limit has left behind: the limit of descriptors is (",
        "test_folder has left behind: the current folder is /",
        "test_folder_that_goes has left behind: the current folder is one that is gone",
    ):
        assert text in shown
