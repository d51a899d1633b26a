"""Facts about functions whose process is killed: no input is lost, and EFFECTIVELY_ONCE none has
two outputs.

The function runs in a forked process, which is killed at a file operation, each time a later one,
and started again until it has done all.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.topics import backlog
from topic_reading import whole_topic

import pulsarx
from pulsarx import MessageId
from pulsarx._pycore.ground import file_system
from pulsarx.functions import Context, FunctionRunner
from pulsarx.functions.function_instance import FunctionInstance

pytestmark = pytest.mark.standard

COUNT = 30
OPTIONS = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=4)
EXPECTED = [b"%d!" % number for number in range(COUNT)]


def exclaim(value: int, context: Context) -> str | None:
    context.incr_counter("seen", 1)
    return f"{value}!"


def prepare(folder: Path) -> None:
    """Half of the inputs in batches."""
    with pulsarx.Client(folder, broker_options=OPTIONS) as client:
        client.create_producer("out").close()
        plain = client.create_producer("in")
        for number in range(COUNT // 2):
            plain.send(b"%d" % number)
        batched = client.create_producer("in", batching_enabled=True, batching_max_messages=5)
        for number in range(COUNT // 2, COUNT):
            batched.send_async(b"%d" % number, None)
        batched.flush()


def run(folder: Path, guarantees: str, before: Callable[[], object]) -> bool:
    """Run the function in a process until it has no input left; False: it was killed."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            client = pulsarx.Client(folder, broker_options=OPTIONS)
            before()
            options: dict[str, Any] = {"processing_guarantees": guarantees, "name": "f"}
            options |= {"inputs": ["in"], "output": "out", "subs_position": "Earliest"}
            with FunctionRunner(client, exclaim, **options) as runner:
                client.create_producer("in")  # the statistics are those of an open topic
                while backlog(client, "public/default/f", "in") and not runner.wait(0.002):
                    pass
            client.close()
            status = 0
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL), "the function failed"
    return status == 0


def dies_at(operation: str, call: int) -> Callable[[], object]:
    def install() -> None:
        file_system.faults_install()
        file_system.faults_add(operation, call, kind="kill")

    return install


def outputs(folder: Path) -> list[bytes]:
    with pulsarx.Client(folder, broker_options=OPTIONS) as client:
        return whole_topic(client, "out")


def seen(folder: Path) -> int:
    with (
        pulsarx.Client(folder, broker_options=OPTIONS) as client,
        FunctionRunner(client, exclaim, name="f", inputs=["nothing"]) as runner,
    ):
        return runner.get_counter("seen") or 0


@pytest.mark.parametrize("operation", ["write", "flush"])
@pytest.mark.parametrize("step", [3, 7, 23])
def test_effectively_once_each_input_has_one_output(
    tmp_path: Path, operation: str, step: int
) -> None:
    folder = tmp_path / "data"
    prepare(folder)
    call = kills = 0
    while not run(folder, "EFFECTIVELY_ONCE", dies_at(operation, call := call + step)):
        kills += 1
    assert kills > 0
    assert outputs(folder) == EXPECTED
    assert seen(folder) >= COUNT


@pytest.mark.parametrize("operation", ["write", "flush"])
def test_at_least_once_each_input_has_an_output(tmp_path: Path, operation: str) -> None:
    folder = tmp_path / "data"
    prepare(folder)
    call = kills = 0
    while not run(folder, "ATLEAST_ONCE", dies_at(operation, call := call + 7)):
        kills += 1
    assert kills > 0
    assert set(outputs(folder)) == set(EXPECTED)
    assert seen(folder) >= COUNT


def die_before_acknowledging(number: int) -> Callable[[], object]:
    """The output of the number-th input is stored, and nothing says that the input is done."""

    def install() -> None:
        acknowledge = FunctionInstance._acknowledge
        calls: list[MessageId] = []

        def dies(self: FunctionInstance, message: Any) -> None:
            calls.append(message.message_id())
            if len(calls) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            acknowledge(self, message)

        FunctionInstance._acknowledge = dies  # type: ignore[method-assign]

    return install


@pytest.mark.parametrize("guarantees", ["EFFECTIVELY_ONCE", "ATLEAST_ONCE"])
def test_a_kill_between_output_and_acknowledgement(tmp_path: Path, guarantees: str) -> None:
    """At least once there are outputs twice then; effectively once there are not."""
    folder = tmp_path / "data"
    prepare(folder)
    for number in (1, 4, 2):
        assert not run(folder, guarantees, die_before_acknowledging(number))
    assert run(folder, guarantees, lambda: None)
    found = outputs(folder)
    if guarantees == "EFFECTIVELY_ONCE":
        assert found == EXPECTED
    else:
        assert set(found) == set(EXPECTED)
        assert len(found) > len(EXPECTED)
