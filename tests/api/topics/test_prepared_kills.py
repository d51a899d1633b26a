"""An owner that is killed at any file operation while ledgers are prepared, switched to and sealed
has lost nothing that it confirmed, and leaves a folder as good as before.

A program forks for each turn: the child publishes over tiny ledgers, and is killed in front of one
operation.
"""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest
from child_process import ChildProcess
from damaged_ledgers import data_of, frame_offsets, receive_all
from seeds import seeds
from topic_reading import whole_topic

import pulsarx
from pulsarx import MessageId

DYING = """
import os, sys
import pulsarx
from pulsarx.broker.requests.attach import Transaction
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

OPTIONS = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
parent = os.getpid()

def use(folder, durability, say):
    client = pulsarx.Client(folder, durability=durability, broker_options=OPTIONS)
    producer = client.create_producer("t")
    for number in range(10):
        producer.send(b"%d" % number)
        say(number)
        if number % 3 == 2:
            inspect(client).settle()
    client.close()

def child(folder, durability, op, call, pipe):
    def say(number):
        os.write(pipe, b"%d " % number)

    with fault_plan() as plan:
        plan.kill(op, call)
        use(folder, durability, say)
    os.write(pipe, b"| ")

# What a child would import otherwise, each again.
use("memory:", "os", lambda number: None)
for line in sys.stdin:
    folder, durability, op, call = line.split()
    out, into = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(out)
            child(folder, durability, op, int(call), into)
            status = 0
        finally:
            os._exit(status)
    os.close(into)
    text = b""
    while data := os.read(out, 65536):
        text += data
    os.close(out)
    _, status = os.waitpid(pid, 0)
    print(status, text.decode(), flush=True)
"""
OPERATIONS = [
    "open", "write", "allocate", "flush", "flush_directory", "link", "unlink", "make_directory",
    "map", "close",
]  # fmt: skip
CALLS_MAX = 400


class Killing:
    """Turns of the program."""

    def __init__(self, child: ChildProcess, root: Path, durability: str) -> None:
        self.child = child
        self.root = root
        self.durability = durability
        self.count = 0

    def turn(self, operation: str, call: int) -> bool:
        """Whether it was killed; looks at what it left."""
        self.count += 1
        folder = self.root / str(self.count)
        self.child.tell(f"{folder} {self.durability} {operation} {call}")
        status, *confirmed = self.child.line().split()
        lived = confirmed[-1:] == ["|"]
        assert int(status) == (0 if lived else signal.SIGKILL)
        if (folder / "PULSARX").exists():
            check(folder, [each for each in confirmed if each != "|"], (operation, call))
        return not lived


def check(folder: Path, confirmed: list[str], where: object) -> None:
    """In another process first, which changes nothing; then as the next owner, twice."""
    with pulsarx.Client(folder, read_only=True) as beside:
        try:
            reader = beside.create_reader("t", MessageId.earliest)
        except pulsarx.errors.TopicNotFound:
            assert confirmed == []
            return
        seen = whole(data_of(receive_all(reader)[0]), confirmed, where)
    for payload in ("again", "and again"):
        with pulsarx.Client(folder, durability="os") as client:
            reader = client.create_reader("t", MessageId.earliest)
            messages, told = receive_all(reader)
            assert told == [], where
            found = whole([each for each in data_of(messages) if "again" not in each], seen, where)
            client.create_producer("t").send(payload.encode())
            seen = found
            ledgers = client.admin.topics.stats("t")["ledgers"]
        paths = {int(path.stem): path for path in folder.glob("ledgers/*/*.ledger")}
        # Killed between the commit that forgets a ledger and its removal: it costs room.
        extra = paths.keys() - {each["ledger_id"] for each in ledgers}
        assert len(extra) <= 1 and len(paths) - len(extra) == len(ledgers), where
        assert all(len(frame_offsets(paths[each])) == 1 for each in extra), where
    with pulsarx.Client(folder) as client:
        assert whole_topic(client)[-2:] == [b"again", b"and again"], where


def whole(found: list[str], confirmed: list[str], where: object) -> list[str]:
    """What was published is there in its order, without a hole, and all that was confirmed."""
    assert found == [str(number) for number in range(len(found))], where
    assert found[: len(confirmed)] == confirmed, where
    return found


@pytest.mark.standard
@pytest.mark.parametrize("seed", seeds(1))
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_an_owner_killed_at_a_file_operation_lost_nothing(
    tmp_path: Path, durability: str, operation: str, seed: int
) -> None:
    """A sample of the calls of each operation; the one below tries them all."""
    draw = random.Random(f"{seed} {operation} {durability}")
    with ChildProcess(DYING) as child:
        killing = Killing(child, tmp_path, durability)
        last = 4
        while killing.turn(operation, last) and last < CALLS_MAX:
            last *= 2
        for call in draw.sample(range(1, last), min(6, last - 1)):
            killing.turn(operation, call)


@pytest.mark.long
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_an_owner_killed_at_every_file_operation_lost_nothing(
    tmp_path: Path, durability: str, operation: str
) -> None:
    with ChildProcess(DYING) as child:
        killing = Killing(child, tmp_path, durability)
        call = 1
        while killing.turn(operation, call) and call < CALLS_MAX:
            call += 1
    assert call > 1
