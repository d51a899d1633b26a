"""Facts about functions whose process is killed: no input is lost, and with EFFECTIVELY_ONCE the
output, the publication, the state and the acknowledgement of an input are there, or none of them.

The function runs in a forked process, which is killed at a file operation, each time a later one,
and started again until it has done all.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seeds import seeds
from support.topics import backlog
from support.waiting import wait_until
from topic_reading import whole_topic

import pulsarx
from pulsarx import InitialPosition, MessageId
from pulsarx._pycore.ground import file_system
from pulsarx.functions import Context, FunctionRunner, input_transactions
from pulsarx.functions.function_instance import FunctionInstance
from pulsarx.functions.input_transactions import InputTransactions

COUNT = 30
SUBSCRIPTION, STATE = "public/default/f", "public/default/function-state-f"
OPTIONS = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=4)
EXPECTED = [b"%d!" % number for number in range(COUNT)]


def exclaim(value: int, context: Context) -> str | None:
    context.incr_counter("seen", 1)
    context.put_state("last", f"{value}")
    context.publish("audit", f"{value}!")
    return f"{value}!"


def prepare(folder: Path) -> None:
    """Half of the inputs in batches."""
    with pulsarx.Client(folder, broker_options=OPTIONS) as client:
        for topic in ("out", "audit"):
            client.create_producer(topic).close()
        client.subscribe("in", SUBSCRIPTION, initial_position=InitialPosition.Earliest).close()
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
                while backlog(client, SUBSCRIPTION, "in") and not runner.wait(0.002):
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


def check_whole(client: pulsarx.Client) -> int:
    """All of the first inputs counts, and nothing of the others: how many."""
    found = whole_topic(client, "out")
    assert found == EXPECTED[: len(found)]
    assert whole_topic(client, "audit") == found
    options: dict[str, Any] = {"inputs": ["nothing"], "subs_name": "look", "name": "f"}
    with FunctionRunner(client, exclaim, **options) as runner:
        assert (runner.get_counter("seen") or 0) == len(found)
        last = runner.get_state("last")
        assert last == (b"%d" % (len(found) - 1) if found else None)
    client.create_producer("in").close()
    assert backlog(client, SUBSCRIPTION, "in") == COUNT - len(found)
    return len(found)


def check_folder(folder: Path) -> int:
    with pulsarx.Client(folder, broker_options=OPTIONS) as client:
        return check_whole(client)


@pytest.mark.standard
@pytest.mark.parametrize("operation", ["write", "flush"])
@pytest.mark.parametrize("step", [3, 7, 23])
def test_effectively_once_all_of_an_input_counts_or_nothing(
    tmp_path: Path, operation: str, step: int
) -> None:
    folder = tmp_path / "data"
    prepare(folder)
    call = kills = 0
    while not run(folder, "EFFECTIVELY_ONCE", dies_at(operation, call := call + step)):
        kills += 1
        check_folder(folder)
    assert kills > 0
    assert check_folder(folder) == COUNT


STEPS = ("_send", "_acknowledge", "_commit", "_tell")


def die_at_step(name: str, number: int, *, behind: bool) -> Callable[[], object]:
    """At a step of the number-th transaction, each of at most three inputs."""

    def install() -> None:
        input_transactions.INPUTS_MAX = 3
        step = getattr(InputTransactions, name)
        calls: list[None] = []

        def dies(*arguments: Any) -> None:
            calls.append(None)
            if len(calls) == number and not behind:
                os.kill(os.getpid(), signal.SIGKILL)
            step(*arguments)
            if len(calls) == number:
                os.kill(os.getpid(), signal.SIGKILL)

        setattr(InputTransactions, name, dies)

    return install


@pytest.mark.standard
@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_effectively_once_a_kill_at_a_step_of_a_transaction(
    tmp_path: Path, name: str, behind: bool
) -> None:
    folder = tmp_path / "data"
    prepare(folder)
    before = 0
    for number in (1, 3, 2):
        assert not run(folder, "EFFECTIVELY_ONCE", die_at_step(name, number, behind=behind))
        found = check_folder(folder)
        assert found > before or number == 1
        before = found
    assert run(folder, "EFFECTIVELY_ONCE", lambda: None)
    assert check_folder(folder) == COUNT


def run_beside(folder: Path, before: Callable[[], object]) -> int:
    """Start the function in a process beside the owner."""
    child = os.fork()
    if child:
        return child
    status = 2
    try:
        client = pulsarx.Client(folder)
        before()
        options: dict[str, Any] = {"processing_guarantees": "EFFECTIVELY_ONCE", "name": "f"}
        with FunctionRunner(client, exclaim, inputs=["in"], output="out", **options) as runner:
            runner.wait()
        status = 1
    finally:
        os._exit(status)


def consumers(client: pulsarx.Client) -> list[Any]:
    subscriptions = client.admin.topics.stats("in")["subscriptions"]
    found: list[Any] = subscriptions[SUBSCRIPTION]["consumers"] if subscriptions else []
    return found


@pytest.mark.standard
@pytest.mark.parametrize("name", STEPS)
def test_a_kill_beside_the_owner(tmp_path: Path, name: str) -> None:
    """What it had begun is given back at once."""
    folder = tmp_path / "data"
    prepare(folder)
    with pulsarx.Client(folder, broker_options=OPTIONS) as client:
        for behind in (False, True):
            child = run_beside(folder, die_at_step(name, 2, behind=behind))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
            wait_until(lambda: not client.admin.transactions.get_transactions())
            wait_until(lambda: not client.admin.topics.stats(STATE)["publishers"])
            wait_until(lambda: not consumers(client))
            check_whole(client)
        with FunctionRunner(
            client, exclaim, name="f", inputs=["in"], output="out",
            processing_guarantees="EFFECTIVELY_ONCE",
        ) as runner:  # fmt: skip
            wait_until(lambda: not backlog(client, SUBSCRIPTION, "in") or runner.wait(0))
        assert check_whole(client) == COUNT


@pytest.mark.long
@pytest.mark.parametrize("seed", seeds(20))
def test_effectively_once_kills_at_random(tmp_path: Path, seed: int) -> None:
    """At any moment, by the clock."""
    draw = random.Random(seed)
    folder = tmp_path / "data"
    prepare(folder)
    kills = 0

    def dies_soon() -> None:
        end = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL))
        end.daemon = True
        input_transactions.INPUTS_MAX = at_most
        end.start()

    while True:
        # Later and later, so that it comes to an end on a busy machine too.
        delay, at_most = draw.uniform(0, 0.03 + 0.01 * kills), draw.choice([1, 2, 5, 1000])
        if run(folder, "EFFECTIVELY_ONCE", dies_soon):
            break
        kills += 1
        check_folder(folder)
    assert check_folder(folder) == COUNT


@pytest.mark.standard
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


@pytest.mark.standard
def test_a_kill_between_output_and_acknowledgement(tmp_path: Path) -> None:
    """At least once there are outputs twice then."""
    folder = tmp_path / "data"
    prepare(folder)
    for number in (1, 4, 2):
        assert not run(folder, "ATLEAST_ONCE", die_before_acknowledging(number))
    assert run(folder, "ATLEAST_ONCE", lambda: None)
    found = outputs(folder)
    assert set(found) == set(EXPECTED)
    assert len(found) > len(EXPECTED)


@pytest.mark.standard
def test_a_function_goes_on_when_the_owner_is_killed(tmp_path: Path) -> None:
    """What it had begun is done again, in this process, which owns the folder then."""
    folder = tmp_path / "data"
    prepare(folder)
    told, tell = os.pipe()
    owner = os.fork()
    if owner == 0:
        client = pulsarx.Client(folder, broker_options=OPTIONS)
        client.create_producer("owned")
        os.write(tell, b"!")
        signal.pause()
    assert os.read(told, 1) == b"!"
    calls: list[int] = []

    def kills(value: int, context: Context) -> str | None:
        calls.append(value)
        if len(calls) == 10:
            os.kill(owner, signal.SIGKILL)
            os.waitpid(owner, 0)
        return exclaim(value, context)

    with pulsarx.Client(folder, broker_options=OPTIONS) as client:
        options: dict[str, Any] = {"processing_guarantees": "EFFECTIVELY_ONCE", "name": "f"}
        with FunctionRunner(client, kills, inputs=["in"], output="out", **options) as runner:
            wait_until(lambda: not backlog(client, SUBSCRIPTION, "in") or runner.wait(0))
        assert check_whole(client) == COUNT
    os.close(told)
    os.close(tell)
