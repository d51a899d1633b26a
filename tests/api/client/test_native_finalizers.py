"""Facts about what runs when something is forgotten: no Python of the package, in which what a
signal handler raises would be lost."""

from __future__ import annotations

import ast
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import pulsarx
from pulsarx import ConsumerDeadLetterPolicy, ConsumerType, MessageId
from pulsarx.testing import inspect

pytestmark = pytest.mark.usefixtures("nothing_forgotten")

PACKAGE = Path(pulsarx.__file__).parent


def letters(client: pulsarx.Client) -> Any:
    policy = ConsumerDeadLetterPolicy(2)
    return client.subscribe("t", "s", ConsumerType.Shared, dead_letter_policy=policy)


def partitioned(client: pulsarx.Client) -> Any:
    client.admin.topics.create_partitioned_topic("p", 2)
    producer = client.create_producer("p")
    producer.send_many([b"x", b"y"])
    return producer


def columns(client: pulsarx.Client) -> Any:
    consumer = client.subscribe("t", "s")
    client.create_producer("t").send(b"x")
    return consumer.receive_arrow(1)


MAKE: dict[str, Callable[[pulsarx.Client], Any]] = {
    "producer": lambda client: client.create_producer("t"),
    "producer with an open batch": lambda client: batching(client),
    "partitioned producer": partitioned,
    "consumer": lambda client: client.subscribe("t", "s"),
    "Key_Shared consumer": lambda client: client.subscribe("t", "s", ConsumerType.KeyShared),
    "non-durable consumer": lambda client: client.subscribe(
        "t", "s", subscription_mode=pulsarx.SubscriptionMode.NonDurable
    ),
    "consumer of two topics": lambda client: client.subscribe(["t", "u"], "s"),
    "consumer with dead letters": letters,
    "reader": lambda client: client.create_reader("t", MessageId.earliest),
    "future": lambda client: client.subscribe("t", "s").receive_async(),
    "columns": columns,
    "manual clock": lambda _: pulsarx.ManualClock(),
}


def batching(client: pulsarx.Client) -> Any:
    producer = client.create_producer("t", batching_enabled=True)
    producer.send_async(b"x", None)
    return producer


def collect_all() -> None:
    """Also what a finalizer kept, as a task does that was not waited for."""
    for _ in range(5):
        gc.collect()


def frames_of(forget: Callable[[], object]) -> list[str]:
    """What Python of the package the main thread ran meanwhile."""
    found: list[str] = []

    def profile(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and (path.startswith(str(PACKAGE)) or "weakref" in path):
            found.append(f"{path}:{frame.f_lineno} {frame.f_code.co_name}")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        forget()
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize("name", MAKE)
def test_what_is_forgotten_runs_no_python_in_the_main_thread(name: str) -> None:
    with pulsarx.Client("memory:") as client:
        made = [MAKE[name](pulsarx.Client("memory:"))]  # with its client, which keeps consumers
        collect_all()  # what tests before have left may run anything
        assert frames_of(made.clear) == []
        assert frames_of(gc.collect) == []
        inspect(client).settle()


def test_a_client_that_is_forgotten_runs_no_python_in_the_main_thread(tmp_path: Path) -> None:
    for url in ("memory:", tmp_path / "data"):
        made = [pulsarx.Client(url)]
        made[0].create_producer("t").send(b"x")
        assert frames_of(made.clear) == []
        assert frames_of(gc.collect) == []


def test_no_module_has_a_finalizer_in_python() -> None:
    """A callback of a weak reference may be a PostLater, which is native, and nothing else."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            text = ast.unparse(node) if isinstance(node, (ast.Call, ast.FunctionDef)) else ""
            if isinstance(node, ast.FunctionDef) and node.name == "__del__":
                if path.name == "process_end.py":
                    continue  # of an object that the interpreter lets go of when it ends
                found.append(f"{path}:{node.lineno} __del__")
            if not isinstance(node, ast.Call):
                continue
            called = text.partition("(")[0]
            if called.rpartition(".")[2] in FINALIZERS:
                found.append(f"{path}:{node.lineno} {called}")
            if called in ("weakref.ref", "weakref.proxy") and len(node.args) > 1:
                callback = ast.unparse(node.args[1])
                if callback != "later" or "later = PostLater(" not in path.read_text():
                    found.append(f"{path}:{node.lineno} {text}")
    assert found == []


FINALIZERS = ("finalize", "WeakSet", "WeakValueDictionary", "WeakKeyDictionary", "WeakMethod")
