"""How many functions of Python a call of the control plane enters: what a loop over many topics
waits for, and what a reader of the code has to follow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pulsarx
from pulsarx.topic_name import TopicName

PROGRAM = """
import gc, sys, threading
import pulsarx
entered, on = [], False
def profile(frame, event, _):
    if on and event == "call":
        entered.append(frame.f_code.co_filename)
threading.setprofile(profile)  # the control plane has a thread of its own
with pulsarx.Client(sys.argv[1], durability="os") as client:
    kept = [client.create_producer(f"t{number}") for number in range(5)]
    gc.disable()
    sys.setprofile(profile)
    on = True
    kept.append(client.create_producer("new"))
    on = False
    sys.setprofile(None)
changes = sum(one != other for one, other in zip(entered, entered[1:]))
print(len(entered), changes)
"""
FUNCTIONS_MAX, CHANGES_OF_FILE_MAX = 150, 90


@pytest.mark.standard
def test_a_producer_on_a_new_topic_enters_few_functions(folder: Path) -> None:
    """They were 232, with 150 changes of file between them."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(pulsarx.__file__).parent.parent)},
    )
    functions, changes = map(int, ran.stdout.split())
    assert 0 < functions <= FUNCTIONS_MAX
    assert 0 < changes <= CHANGES_OF_FILE_MAX


@pytest.mark.parametrize("call", ["create_producer", "subscribe"])
def test_a_call_makes_the_name_of_its_topic_once(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Subscribing to a new topic looked for it 12 times: each question about policies made it of
    its text anew."""
    asked: list[str] = []
    original = TopicName.of

    def noted(name: str) -> TopicName:
        asked.append(name)
        return original(name)

    monkeypatch.setattr(TopicName, "of", noted)
    arguments = ("new", "s") if call == "subscribe" else ("new",)
    getattr(memory_client, call)(*arguments)
    assert asked == ["new"]
