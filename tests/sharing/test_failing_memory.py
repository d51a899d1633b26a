"""Memory that runs out anywhere in the process, in a thread of ours too: no call hangs, nothing
that was confirmed is lost, and what comes after it works."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from failing_memory import MEMORY_CAN_FAIL, compiled, environment

DRIVER = Path(__file__).resolve().parent / "failing_calls.py"
# Of some hundreds or thousands; all of them in a campaign.
OF_ALL = {"open": 12, "publish": 25, "receive": 20, "acknowledge": 12, "close": 30, "attach": 8,
          "take over": 8}  # fmt: skip

pytestmark = MEMORY_CAN_FAIL


@pytest.fixture(scope="module")
def failing_memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("failing_memory"))


# Which allocation a number is depends on how threads and processes take turns.
_OF_CHANCE = ("open", "close", "attach", "take over")


@pytest.mark.parametrize(
    "calls",
    [pytest.param(each, marks=pytest.mark.long if each in _OF_CHANCE else ()) for each in OF_ALL],
)
def test_one_allocation_that_fails_hangs_no_call_and_loses_nothing(
    tmp_path: Path, failing_memory: Path, calls: str
) -> None:
    """A thread that had no memory to begin was waited for for ever, by `close` in the end; and a
    `close` that had none left the folder locked."""
    done = subprocess.run(
        [sys.executable, str(DRIVER), str(tmp_path), calls, str(OF_ALL[calls])],
        env=environment(failing_memory),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout


LOADS = """
import sys
import pulsarx
from importlib.machinery import SourceFileLoader
compile_source, failures = SourceFileLoader.source_to_code, [SyntaxError("invalid syntax")]
def source_to_code(loader, *arguments, **options):
    if failures and loader.name.startswith("pulsarx."):
        raise failures.pop()
    return compile_source(loader, *arguments, **options)
SourceFileLoader.source_to_code = source_to_code
with pulsarx.Client(sys.argv[1]) as client:
    client.create_producer("t").send(b"x")
print(len(failures))
"""


def test_a_module_that_a_call_loads_without_memory_shows_no_syntax_error(tmp_path: Path) -> None:
    """Python's compiler says so of a source that is right where it finds no memory."""
    added = {"PYTHONPYCACHEPREFIX": str(tmp_path / "none"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LOADS, str(tmp_path / "data")],
        env=os.environ | added,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "0\n")
