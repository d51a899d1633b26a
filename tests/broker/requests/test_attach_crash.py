"""Attaching, with a death at every call and several processes at once."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import pytest
from attach_steps import catalogue, contents, folder_of_topics, nothing_stays_open, publish
from child_process import ChildProcess
from crashing_broker import dies_at
from seeds import calls, seeds
from staged_ledgers import PREFIX, stage

import pulsarx
from pulsarx import errors
from pulsarx.broker.requests import attach as attaching
from pulsarx.broker.requests.attach import Transaction, attach, attached

__all__ = ["folder_of_topics", "nothing_stays_open"]  # fixtures

SEEDS = [None, -1, *seeds(2)]


@pytest.mark.standard
@pytest.mark.parametrize("seed", SEEDS)
def test_a_crash_at_every_call_leaves_all_or_nothing(
    folder: Path, tmp_path: Path, seed: int | None
) -> None:
    files = [stage(folder, f"p-partition-{index}", [b"%d" % index]) for index in range(3)]
    names = [f"p-partition-{index}" for index in range(3)]
    shutil.copytree(folder, tmp_path / "before")
    outcomes = set()
    for call in calls(seed, SEEDS):
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "before", folder)
        attaching_now = partial(attach, folder, Transaction("query", 0), files)
        if not dies_at(call, seed, folder, attaching_now):
            # What was reported is kept, whatever happens afterwards.
            assert contents(folder, *names) == [[b"0"], [b"1"], [b"2"]]
            break
        known = attached(folder, Transaction("query", 0))
        state = catalogue(folder).state
        counts = [len(state.topics[PREFIX + name].ledgers) for name in names]
        assert counts == ([0, 0, 0] if known is None else [1, 1, 1]), call
        outcomes.add(known is not None)
        if seed == -1:
            publish(folder, "t")  # takes the id of the first file that was linked
        again = attach(folder, Transaction("query", 0), files)
        assert again.already == (known is not None)
        assert again.ledger_count == 3
        assert contents(folder, *names) == [[b"0"], [b"1"], [b"2"]], call
    assert outcomes == {True, False}
    assert call > 20


@pytest.mark.standard
def test_the_sweep_finds_a_missing_flush(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pulsarx.broker.staging.ledger_attachment.flush_directories", lambda *_: None
    )
    with pytest.raises((AssertionError, errors.StorageError)):
        test_a_crash_at_every_call_leaves_all_or_nothing(folder, tmp_path, None)


DYING = """
import os, sys
from pulsarx._pycore.ground import file_system
step, count = sys.argv[2], int(sys.argv[3])

Whole = file_system.FileSystem
class Dying(Whole):
    armed = False
    left = count

def dying(name):
    whole = getattr(Whole, name)
    def call(self, *arguments, **named):
        if Dying.armed and name == step:
            Dying.left -= 1
            if Dying.left == 0:
                os.kill(os.getpid(), 9)
        return whole(self, *arguments, **named)
    return call

for name in ("link_or_copy", "take_name", "create", "unlink", "flush_directory"):
    setattr(Dying, name, dying(name))
file_system.FileSystem = Dying
import pulsarx
client = pulsarx.Client(sys.argv[1])
producer = client.create_producer("t")
producer.send(b"before")
Dying.armed = True
print("ready", flush=True)
sys.stdin.readline()
"""

STEPS = [
    ("link_or_copy", 1), ("link_or_copy", 2), ("take_name", 1), ("flush_directory", 1),
    ("flush_directory", 2), ("create", 1), ("flush_directory", 4),
    ("unlink", 1), ("unlink", 2), ("unlink", 3),
]  # fmt: skip


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize(("step", "count"), STEPS)
def test_an_owner_killed_while_it_attaches_is_replaced_and_all_of_it_comes_once(
    folder: Path, step: str, count: int, listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attaching, "_FILES_IN_REQUEST_MAX", 0 if listed else 2)
    files = [stage(folder, "t", [b"1"]), stage(folder, "u", [b"2"])]
    with ChildProcess(DYING, folder, step, count) as owner:
        assert owner.line() == "ready"
        result = attach(folder, Transaction("query", 0), files)
        assert result.ledger_count == 2
        assert owner._process.wait(60) == -9
    assert contents(folder, "t", "u") == [[b"before", b"1"], [b"2"]]
    assert attach(folder, Transaction("query", 0), files) == result


ATTACHING = """
import sys
sys.path[:0] = sys.argv[3:]
from pathlib import Path
from staged_ledgers import stage
from pulsarx.broker.requests import attach as attaching
from pulsarx.broker.requests.attach import Transaction, attach
folder, who = Path(sys.argv[1]), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for batch in range(8):
    files = [stage(folder, topic, [b"%s-%d" % (who.encode(), batch)], who) for topic in "tu"]
    attach(folder, Transaction(who, batch), files)
"""


def test_several_jobs_and_a_client_that_comes_and_goes(folder: Path) -> None:
    """Without an owner each of them owns the folder in turn; nobody is refused."""
    tests = str(Path(__file__).parents[2] / "api")
    with (
        ChildProcess(ATTACHING, folder, "a", tests) as first,
        ChildProcess(ATTACHING, folder, "b", tests) as second,
    ):
        for each in (first, second):
            each.line()
        for each in (first, second):
            each.tell()
        for number in range(8):
            with pulsarx.Client(folder) as client:
                client.create_producer("t").send(b"c-%d" % number)
        first.end()
        second.end()
    found = contents(folder, "t", "u")
    for who in (b"a", b"b", b"c"):
        wanted = [who + b"-%d" % number for number in range(8)]
        assert [each for each in found[0] if each.startswith(who)] == wanted
        assert [each for each in found[1] if each.startswith(who)] == wanted[: 8 * (who != b"c")]
