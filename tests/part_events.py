"""Tells tools/run_tests.py what a part of the tests meets: lines of JSON over a descriptor.

key         in lines about         value
collected   the part               how many tests it has
finished                           true, when it has run them
began       a test                 its name
test        one that is over       its name
outcome                            passed, failed, skipped
seconds                            it took, with what was set up for it
text                               of one that failed, what it saw; of one that was skipped, why
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

VARIABLE = "PULSARX_TEST_EVENTS"


class PartEvents:
    """A plugin of pytest. Tests that start processes do not give them the descriptor."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._process = os.getpid()  # a forked child writes nothing
        self._seconds = 0.0
        self._outcome, self._text = "passed", ""

    def _tell(self, **event: Any) -> None:
        if os.getpid() == self._process:
            data = json.dumps(event).encode() + b"\n"
            while data:
                data = data[os.write(self._descriptor, data) :]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._tell(collected=len(session.items))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell(test=report.nodeid, outcome="failed", seconds=0, text=report.longreprtext)
        elif report.skipped:
            self._tell(test=report.nodeid, outcome="skipped", seconds=0, text=_reason(report))

    def pytest_sessionfinish(self) -> None:
        self._tell(finished=True)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._seconds, self._outcome, self._text = 0.0, "passed", ""
        self._tell(began=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds += report.duration
        if report.failed:
            self._outcome = "failed"
            sections = "".join(f"\n--- {name}\n{text}" for name, text in report.sections)
            self._text += f"{report.longreprtext}{sections}"
        elif report.skipped and self._outcome == "passed":
            self._outcome, self._text = "skipped", _reason(report)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._tell(
            test=nodeid, outcome=self._outcome, seconds=round(self._seconds, 3), text=self._text
        )


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(getattr(report, "wasxfail", report.longreprtext))


def register(config: pytest.Config) -> None:
    """Where run_tests.py listens."""
    if descriptor := os.environ.pop(VARIABLE, ""):
        config.pluginmanager.register(PartEvents(int(descriptor)), "part-events")
