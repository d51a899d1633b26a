"""What a process inherits, and what tests of one process share: handlers of signals, which of them
are blocked, limits, the current folder. A run begins as in a terminal, and each test leaves it so.

Shells, nohup and CI runners start programs with signals ignored or blocked: Python then makes no
handler for Ctrl-C, the exit status of a child is lost, and whatever a test starts inherits it. The
handler for Ctrl-C that Spark leaves behind hid that from the tests that ran behind it.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import gc
import os
import resource
import signal
from collections.abc import Generator
from contextlib import suppress

import pytest
from support.waiting import wait_until

FILES_MIN = 1024  # descriptors; what a terminal gives at least
UMASK = 0o022
# Ignored by Python itself, and not by what it starts.
IGNORED = {signal.SIGPIPE, signal.SIGXFSZ}
WATCHED = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGCHLD, signal.SIGPIPE,
    signal.SIGUSR1, signal.SIGUSR2,
)  # fmt: skip


def begin_anew() -> None:
    """As a terminal starts a program. In the main thread."""
    for number in signal.valid_signals() - IGNORED:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MIN if hard == resource.RLIM_INFINITY else min(hard, FILES_MIN)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    os.umask(UMASK)


class State:
    """Of this process, as it is now. In the main thread."""

    def __init__(self) -> None:
        # Not those of `signal`, which make members of enumerations: this is done for each test.
        self.handlers = tuple(_signal.getsignal(each) for each in WATCHED)
        self.blocked = _signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self.wakeup = signal.set_wakeup_fd(-1)
        if self.wakeup != -1:
            signal.set_wakeup_fd(self.wakeup, warn_on_full_buffer=False)
        self.has_alarm = signal.getitimer(signal.ITIMER_REAL)[0] > 0
        self.collects = gc.isenabled()
        self.files = resource.getrlimit(resource.RLIMIT_NOFILE)
        try:
            self.folder = os.getcwd()
        except FileNotFoundError:
            self.folder = "one that is gone"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and vars(self) == vars(other)

    def changes_to(self, after: State) -> list[str]:
        """What is not as it was, in words."""
        found = [
            f"the handler of {number.name} is {handler}"
            for number, before, handler in zip(WATCHED, self.handlers, after.handlers, strict=True)
            if handler != before
        ]
        words = {
            "blocked": "blocked signals are",
            "wakeup": "the descriptor for signals is",
            "has_alarm": "whether an alarm is set is",
            "collects": "whether the collector runs is",
            "files": "the limit of descriptors is",
            "folder": "the current folder is",
        }
        for name, text in words.items():
            if getattr(self, name) != getattr(after, name):
                found.append(f"{text} {getattr(after, name)}")
        return found

    def restore(self) -> None:
        for number, handler in zip(WATCHED, self.handlers, strict=True):
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self.blocked)
        signal.set_wakeup_fd(self.wakeup)
        if not self.has_alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)
        (gc.enable if self.collects else gc.disable)()
        resource.setrlimit(resource.RLIMIT_NOFILE, self.files)
        os.chdir(self.folder)


class ProcessState:
    """Fails a test that leaves something behind. What a fixture for several tests leaves, as that
    of Spark's session does, is taken back behind the test that it was made for."""

    def __init__(self) -> None:
        begin_anew()
        self.clean = self.made = State()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        self.made = State()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, object, object]:
        result = yield
        after = State()
        if not after.collects and self.clean.collects:
            # A thread that opens or closes a folder pauses the collector for a moment.
            with suppress(AssertionError):
                wait_until(gc.isenabled)
            after = State()
        if after == self.clean:
            return result
        self.clean.restore()
        if after != self.made:
            text = "; ".join(self.clean.changes_to(after))
            pytest.fail(f"{item.nodeid} has left behind: {text}", pytrace=False)
        return result
