"""Staged files that lie although every checksum holds: those that can be told are not attached, and
those that cannot harm nobody but who reads them."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from child_process import ChildProcess
from forged_ledgers import Forgery, forge
from lying_entries import describe
from seeds import seeds
from staged_ledgers import stage

import pulsarx
from pulsarx import errors
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.broker.staging.staged_file import StagedFile

Change = Callable[[Forgery], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    with pulsarx.Client(path) as client:
        client.admin.topics.create_non_partitioned_topic("t")
    return path


def test_a_forgery_that_changes_nothing_is_the_file(folder: Path) -> None:
    file = stage(folder, "t", [b"%d" % number * 50 for number in range(600)])
    path = folder / "staging" / "job" / file.name
    before = path.read_bytes()
    forge(path, lambda _: None)
    assert path.read_bytes() == before


def forged(folder: Path, change: Change, topic: str = "t") -> StagedFile:
    """Such a file, and a description of it by the same hand."""
    file = stage(folder, topic, [b"%d" % number * 50 for number in range(600)])
    return describe(folder, file.name, change, topic)


def footer(**fields: int) -> Change:
    return lambda forgery: forgery.footer.update(fields)


def frame(number: int, **fields: int) -> Change:
    return lambda forgery: forgery.frames[number].update(fields)


def index(number: int, **fields: int) -> Change:
    return lambda forgery: forgery.index[number].update(fields)


AT_THE_ENDS = [
    footer(entry_count=601), footer(entry_count=599), footer(entry_count=0),
    footer(message_count=601), footer(message_count=1), footer(entry_count=1 << 61),
    footer(message_count=1 << 61), footer(first_publish_ms=1_900_000_000_000),
    footer(last_publish_ms=1), frame(0, entry_id=1), frame(0, first_message=5),
    frame(-1, entry_id=700), frame(-1, message_count=1 << 31), frame(-1, first_message=1 << 60),
    frame(-1, publish_time_ms=0),
]  # fmt: skip
BETWEEN = [
    frame(5, entry_id=700), frame(5, message_count=1 << 31), frame(5, message_count=2),
    frame(5, first_message=1 << 50), frame(5, first_message=0), frame(5, entry_id=4),
    frame(5, publish_time_ms=1 << 62), index(1, offset=4097), index(1, offset=4104),
    index(1, offset=1 << 62), index(1, first_message=400), index(1, entry_id=1 << 60),
    footer(digest=7), footer(last_publish_ms=1 << 60),
]  # fmt: skip


@pytest.mark.parametrize("change", AT_THE_ENDS)
def test_a_lie_about_the_ends_is_refused(folder: Path, change: Change) -> None:
    with pytest.raises(errors.CorruptDataError, match="damaged, nothing was attached"):
        attach(folder, Transaction("query", 0), [forged(folder, change)])
    with pulsarx.Client(folder) as client:
        assert client.admin.topics.stats("t")["messages"] == 0


@pytest.mark.parametrize("change", BETWEEN)
def test_a_lie_between_is_refused_by_who_reads_all(folder: Path, change: Change) -> None:
    with pytest.raises(errors.CorruptDataError, match="damaged, nothing was attached"):
        attach(folder, Transaction("query", 0), [forged(folder, change)], thorough=True)


READING = """
import json, sys, threading
import pulsarx
from pulsarx import errors
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.broker.scan.plan import plan
from pulsarx.broker.scan.read_range import read_range
from pulsarx.broker.staging.staged_file import StagedFile, identity, staged_path
from pulsarx.testing import inspect
StagedFile.check = lambda self, folder, *_: identity(staged_path(folder, self.job, self.name))
folder = sys.argv[1]
files = [StagedFile.of_document(each) for each in json.loads(sys.stdin.readline())]
client = pulsarx.Client(folder, durability="os")
topics = [file.topic for file in files]

def attempt(step):
    try:
        return step()
    except (errors.PulsarException, ValueError, MemoryError) as error:
        return None

def consume(topic, kind, acknowledge, start):
    try:
        consumer = client.subscribe(
            topic, kind.name, kind, initial_position=pulsarx.InitialPosition.Earliest
        )
    except errors.StorageError:
        print("no subscription", topic, flush=True)
        return
    attempt(lambda: start(consumer))
    for turn in range(1200):
        message = attempt(lambda: consumer.receive(5))
        if message is None:
            break
        if acknowledge == 1 or acknowledge == 2 and turn % 2:
            attempt(lambda: consumer.acknowledge(message))
        elif acknowledge == 3 and turn % 50 == 0:
            attempt(lambda: consumer.acknowledge_cumulative(message))
        elif turn % 7 == 0:
            consumer.negative_acknowledge(message)
    attempt(consumer.close)

kinds = pulsarx.ConsumerType
for topic, file in zip(topics, files):
    if attempt(lambda: attach(folder, Transaction(file.name, 0), [file])) is None:
        print("refused", file.name, flush=True)
        continue
    consume(topic, kinds.Exclusive, 3, lambda consumer: None)
    consume(topic, kinds.Shared, 2, lambda consumer: consumer.seek(1_700_000_000_300))
    consume(topic, kinds.KeyShared, 1, lambda consumer: None)
    consume(topic, kinds.Failover, 0, lambda consumer: None)
    attempt(lambda: client.admin.topics.stats(topic))
    reader = client.create_reader(topic, pulsarx.MessageId.earliest)
    attempt(lambda: reader.seek(1_700_000_000_500))
    for _ in range(700):
        if attempt(lambda: reader.read_next(5)) is None:
            break
    for part in attempt(lambda: plan(inspect(client).broker, [topic])) or ():
        attempt(lambda: [each for each in read_range(part)])
    client.create_producer(topic).send(b"end")
    print(file.name, flush=True)
inspect(client).settle()
client.close()
with pulsarx.Client(folder) as again:
    for topic in topics:
        attempt(lambda: again.admin.topics.stats(topic))
print("whole")
"""


@pytest.mark.standard
def test_lies_that_nobody_noticed_end_no_process(folder: Path) -> None:
    changes = [*AT_THE_ENDS, *BETWEEN]
    with pulsarx.Client(folder) as client:
        for number in range(len(changes)):
            client.admin.topics.create_non_partitioned_topic(f"t{number}")
    files = [forged(folder, change, f"t{number}") for number, change in enumerate(changes)]
    assert read_all(folder, files) == [*(file.name for file in files), "whole"]


def read_all(folder: Path, files: list[StagedFile]) -> list[str]:
    """What the program says that attaches the files and reads them in every way."""
    with ChildProcess(READING, os.path.realpath(folder)) as child:
        child.tell(json.dumps([file.document() for file in files]))
        return child.end()


# With the bits that a value of it may have.
FIELDS = {
    "footer": {"digest": 32, "entry_count": 63, "message_count": 63, "first_publish_ms": 63,
               "last_publish_ms": 63},
    "frame": {"entry_id": 63, "durable_count": 63, "first_message": 63, "publish_time_ms": 63,
              "deliver_at_ms": 63, "message_count": 32, "sticky_hash": 32, "flags": 32},
    "index": {"offset": 63, "entry_id": 63, "first_message": 63, "publish_max_ms": 63},
}  # fmt: skip


def random_lies(chance: random.Random) -> Change:
    """One to three fields anywhere, near what they were or at the border of what they can say."""

    def change(forgery: Forgery) -> None:
        records = {"footer": [forgery.footer], "frame": forgery.frames, "index": forgery.index}
        for _ in range(chance.randint(1, 3)):
            kind = chance.choice(list(FIELDS))
            name, bits = chance.choice(list(FIELDS[kind].items()))
            record = chance.choice(records[kind])
            near = record[name] + chance.choice([-64, -8, -1, 1, 8, 64, 4096])
            border = chance.choice([0, 1, (1 << bits) - 1, 1 << chance.randrange(bits)])
            record[name] = chance.choice([max(near, 0) % (1 << bits), border])

    return change


@pytest.mark.standard
@pytest.mark.parametrize("seed", seeds(1))
def test_random_lies_end_no_process(folder: Path, seed: int) -> None:
    """Refused, or noticed by who reads it; never the end of the process, or of other topics."""
    chance = random.Random(seed)
    files = []
    for number in range(12):
        with pulsarx.Client(folder) as client:
            client.admin.topics.create_non_partitioned_topic(f"t{number}")
        try:
            files.append(forged(folder, random_lies(chance), f"t{number}"))
        except (errors.StorageError, ValueError):
            pass  # its writer could not have described it
    lines = [line for line in read_all(folder, files) if not line.startswith("no subscription")]
    names = [file.name for file in files]
    assert [line.split()[-1] for line in lines] == [*names, "whole"]
