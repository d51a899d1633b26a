"""A pytest plugin: a benchmark measures one turn of its row whenever compare.py asks for one.

compare.py runs it in a process for each checkout, with the benchmarks of that checkout. It depends
on nothing of theirs but `Measurement` and the two sizes in their conftest, so that a checkout from
before this plugin can be compared too.

It talks in lines of JSON over the two pipes whose numbers are in PULSARX_COMPARE. It says
{"ready": row, "seconds": ...} when a row could be measured (seconds: what it measures is a time),
then answers each "turn" with {"value": ...} until it is told "next"; {"failed": text} says that a
benchmark failed.
"""

from __future__ import annotations

import gc
import importlib.util
import inspect
import json
import os
import time
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


class Pipes:
    """What compare.py says, and what it is told."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.incoming = os.fdopen(settings["read"], "r")
        self.outgoing = os.fdopen(settings["write"], "w")

    def tell(self, **message: Any) -> None:
        self.outgoing.write(json.dumps(message) + "\n")
        self.outgoing.flush()

    def told(self) -> str:
        line = self.incoming.readline().strip()
        if not line:
            pytest.exit("compare.py is gone", returncode=1)
        return line


SETTINGS: dict[str, Any] = json.loads(os.environ.pop("PULSARX_COMPARE"))
ROWS: list[str] = SETTINGS["rows"]
PIPES = Pipes(SETTINGS)


def serve(row: str, turn: Callable[[], float], *, seconds: bool) -> None:
    """Measure turns as long as compare.py asks for more; then the benchmark ends there."""
    if row not in ROWS:
        pytest.skip(f"{row} is not compared")
    PIPES.tell(ready=row, seconds=seconds)
    while PIPES.told() == "turn":
        gc.collect()
        PIPES.tell(value=turn())
    pytest.skip(f"{row} has been compared")


def turn_by_turn(measurement: type[Any]) -> type[Any]:
    """The Measurement of a checkout, which measures when it is asked for it."""

    class TurnByTurn(measurement):  # type: ignore[misc, valid-type]
        def pairs(
            self,
            row: str,
            floor: Callable[[], object],
            path: Callable[[], object],
            *,
            before: Callable[[], object] | None = None,
            between: Callable[[], object] | None = None,
            path_count: int = 1,
            **_: Any,
        ) -> None:
            """The value of a turn is the path's time a message; the floor is not compared."""

            def turn() -> float:
                # All of a turn is run: a floor may leave behind what the next turn begins with.
                if before is not None:
                    before()
                floor()
                if between is not None:
                    between()
                began = time.perf_counter()
                path()
                return (time.perf_counter() - began) / path_count

            serve(row, turn, seconds=True)

        def values(self, row: str, turn: Callable[[], float], *_: Any, **__: Any) -> None:
            serve(row, turn, seconds=False)

    return TurnByTurn


def conftest_of(config: pytest.Config) -> ModuleType:
    for plugin in config.pluginmanager.get_plugins():
        if getattr(plugin, "FULL", None) and getattr(plugin, "Measurement", None):
            assert isinstance(plugin, ModuleType)
            return plugin
    raise pytest.UsageError("the benchmarks of this checkout have no Measurement in their conftest")


def pytest_configure(config: pytest.Config) -> None:
    library = importlib.util.find_spec("pulsarx")
    origin = str(library and library.origin)
    if not origin.startswith(SETTINGS["tree"]):
        raise pytest.UsageError(f"pulsarx would come from {origin}, not from {SETTINGS['tree']}")
    found: Any = conftest_of(config)
    known = {field.name for field in fields(found.FULL)}
    sizes = {name: value for name, value in SETTINGS["sizes"].items() if name in known}
    found.FULL = replace(found.FULL, **sizes)
    found.Measurement = turn_by_turn(found.Measurement)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave only benchmarks that name a row to be compared, if each row is named by one."""
    functions: dict[pytest.Item, Any] = {item: item.function for item in items}
    sources = {item: inspect.getsource(function) for item, function in functions.items()}
    wanted = [item for item in items if any(f'"{row}"' in sources[item] for row in ROWS)]
    if all(any(f'"{row}"' in sources[item] for item in wanted) for row in ROWS):
        items[:] = wanted


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        PIPES.tell(failed=f"{Path(report.nodeid).name}: {report.longreprtext}")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        PIPES.tell(failed=f"{report.nodeid}: {report.longreprtext}")
