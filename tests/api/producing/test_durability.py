"""Facts about kills, full disks, failed flushes and damaged files."""

from __future__ import annotations

import errno
import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess, run_program
from seeds import new_seed, scaled
from topic_reading import drain, numbers, payloads, whole_topic

import pulsarx
from pulsarx import InitialPosition, MessageId, Result, errors
from pulsarx.testing.faults import fault_plan

KILLS = 7  # for each of the six kinds

PUBLISH_AND_CONSUME = """
import os, sys, pulsarx
folder, durability = sys.argv[1], sys.argv[2]
batching, number = sys.argv[3] == "True", int(sys.argv[4])
options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=40)
client = pulsarx.Client(folder, durability=durability, broker_options=options)
producer = client.create_producer(
    "t", batching_enabled=batching, batching_max_messages=9, block_if_queue_full=True
)
consumer = client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
def published(sent):
    def told(result, message_id):
        if result == pulsarx.Result.Ok:
            os.write(1, b"P %d\\n" % sent)
    return told
while True:
    producer.send_async(b"%d" % number, published(number))
    if number % 30 == 0:
        producer.flush()
    if number % 50 == 7:
        producer.send(b"%d" % (number + 1))
        os.write(1, b"P %d\\n" % (number + 1))
        number += 1
    if number % 5 == 0:
        for message in consumer.receive_many(10, 0):
            got = int(message.data())
            if got % 3:
                consumer.acknowledge(message)
                os.write(1, b"A %d\\n" % got)
    number += 1
"""


class KillHistory:
    """What the killed children said, over all kills of one folder."""

    def __init__(self) -> None:
        self.published: set[int] = set()
        self.acknowledged: set[int] = set()
        self.starts: list[int] = []

    def note(self, lines: list[str]) -> None:
        for line in lines:
            kind, _, number = line.partition(" ")
            if number:
                (self.published if kind == "P" else self.acknowledged).add(int(number))

    def check(self, stored: list[int], delivered: list[int]) -> None:
        assert self.published <= set(stored)
        # Of every child what is stored is a run from its first message on: nothing invented, no
        # gap, no disorder.
        previous = -1
        for number in stored:
            assert number > previous
            assert number == previous + 1 or number in self.starts
            previous = number
        assert delivered == sorted(delivered)
        assert not self.acknowledged & set(delivered)
        # A child may die between an acknowledgement and saying so.
        silent = set(stored) - set(delivered) - self.acknowledged
        assert len(silent) <= len(self.starts)


@pytest.mark.standard
@pytest.mark.parametrize("batching", [False, True])
@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_a_kill_at_any_moment_loses_nothing_and_invents_nothing(
    folder: Path, durability: str, batching: bool
) -> None:
    chance = random.Random(new_seed())
    with pulsarx.Client(folder) as client:
        client.admin.namespaces.set_retention("public/default", -1, -1)
    history = KillHistory()
    start = 0
    for _ in range(scaled(KILLS)):
        history.starts.append(start)
        with ChildProcess(PUBLISH_AND_CONSUME, folder, durability, batching, start) as child:
            lines = [
                child.line()
                for _ in range(chance.choice([1, 5, 50, 200, 500]) + chance.randrange(40))
            ]
            child.kill()
            history.note(lines + child.rest())
        with pulsarx.Client(folder) as client:
            stored = [int(each) for each in whole_topic(client)]
            with client.subscribe("t", "s") as consumer:
                history.check(stored, [int(each) for each in payloads(consumer)])
        start = stored[-1] + 1000


def test_a_kill_right_after_opening_leaves_a_folder_that_opens(folder: Path) -> None:
    program = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
made = []
steps = [
    lambda: client.create_producer("t"),
    lambda: client.subscribe("t", "s"),
    lambda: made[0].send(b"x"),
    lambda: client.admin.namespaces.set_retention("public/default", 1, 1),
    lambda: made[1].unsubscribe(),
]
for step in steps[:int(sys.argv[2])]:
    made.append(step())
os._exit(0)
"""
    for steps in range(6):
        run_program(program, folder, steps)
        with pulsarx.Client(folder, durability="os") as client:
            if steps:
                assert len(whole_topic(client)) == max(steps - 2, 0)


# Full disks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["allocate", "write"])
@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_a_full_disk_refuses_what_does_not_fit_and_keeps_the_rest(
    folder: Path, durability: str, operation: str
) -> None:
    big = b"x" * 100_000
    with pulsarx.Client(folder, durability=durability) as client:
        producer = client.create_producer("t")
        producer.send(b"first")
        stored = 1
        with fault_plan() as plan:
            plan.fail(operation, error=errno.ENOSPC, sticky=True)
            with pytest.raises(errors.StorageFullError, match="space"):
                for _ in range(1000):
                    producer.send(big)
                    stored += 1
            assert len(whole_topic(client)) == stored
            with pytest.raises(errors.StorageFullError):
                producer.send(big)
            told: list[Any] = []
            with suppress(errors.StorageFullError):  # with "interval" it is stored, and not flushed
                producer.send_async(big, lambda result, message_id: told.append(result))
                producer.flush()
            assert told == [Result.BrokerPersistenceError]
        producer.send(b"room again")
        producer.flush()
        found = whole_topic(client)
        assert (found[0], found[-1], len(found)) == (b"first", b"room again", stored + 1)
        assert Result.Ok not in told
    with pulsarx.Client(folder) as client:
        assert len(whole_topic(client)) == stored + 1


def test_a_full_disk_is_told_to_the_callbacks_of_a_batch(folder: Path) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer(
            "t", batching_enabled=True, batching_max_publish_delay_ms=10**7
        )
        producer.send(b"first")
        told: list[Any] = []
        with fault_plan() as plan:
            plan.fail("allocate", error=errno.ENOSPC, sticky=True)
            plan.fail("write", error=errno.ENOSPC, sticky=True)
            for _ in range(2):
                producer.send_async(
                    b"x" * 60_000, lambda result, message_id: told.append((result, message_id))
                )
            with pytest.raises(errors.StorageFullError):
                producer.flush()
        producer.flush()
        assert len(told) == 2
        assert all(result != Result.Ok and message_id is None for result, message_id in told)
        assert whole_topic(client) == [b"first"]


def test_a_full_disk_when_opening_names_the_folder_and_opens_later(folder: Path) -> None:
    with fault_plan() as plan:
        for operation in ("write", "allocate"):
            plan.fail(operation, error=errno.ENOSPC, sticky=True)
        with pytest.raises((errors.FolderError, errors.StorageError)):
            pulsarx.Client(folder)
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send(b"x")


# Failed flushes ----------------------------------------------------------------------------------


def close_poisoned(client: pulsarx.Client) -> None:
    """Closing may say again what happened; the folder is free after it."""
    try:
        client.close()
    except errors.StorageError:
        pass


@pytest.mark.parametrize("late", [False, True])
def test_after_a_failed_flush_no_later_success_hides_it(folder: Path, late: bool) -> None:
    client = pulsarx.Client(folder)
    producer = client.create_producer("t")
    other = client.create_producer("t")
    producer.send(b"0")
    with fault_plan() as plan:
        plan.fail("flush", late=late)
        with pytest.raises(errors.LedgerPoisonedError):
            producer.send(b"1")
        for _ in range(2):
            with pytest.raises(errors.LedgerPoisonedError, match="open it again"):
                producer.send(b"2")
            with pytest.raises(errors.LedgerPoisonedError):
                other.send_many([b"3"])
    assert whole_topic(client) == [b"0"]
    close_poisoned(client)
    with pulsarx.Client(folder) as client:
        found = whole_topic(client)
        assert found in ([b"0"], numbers(2))
        client.create_producer("t").send(b"works")
        assert whole_topic(client) == [*found, b"works"]


@pytest.mark.parametrize("batching", [False, True])
def test_a_failed_flush_is_told_to_callbacks_and_to_flush(folder: Path, batching: bool) -> None:
    client = pulsarx.Client(folder)
    producer = client.create_producer(
        "t", batching_enabled=batching, batching_max_publish_delay_ms=10**6
    )
    producer.send(b"0")
    told: list[Any] = []
    with fault_plan() as plan:
        plan.fail("flush", sticky=True)
        with pytest.raises(errors.LedgerPoisonedError):
            for payload in numbers(3):
                producer.send_async(payload, lambda result, message_id: told.append(result))
            producer.flush()
    with pytest.raises(errors.LedgerPoisonedError):
        producer.send_async(b"x", None)
        producer.flush()
    close_poisoned(client)
    assert told and Result.Ok not in told


def test_a_failed_flush_of_the_interval_stops_later_sends(folder: Path) -> None:
    client = pulsarx.Client(folder, durability="interval", flush_interval_ms=1)
    producer = client.create_producer("t")
    with fault_plan() as plan:
        producer.send(b"0")
        plan.fail("flush", sticky=True)
        with pytest.raises(errors.LedgerPoisonedError):
            for _ in range(10**6):
                producer.send(b"x")
    close_poisoned(client)
    with pulsarx.Client(folder) as client:
        assert whole_topic(client)[0] == b"0"


# Damaged files -----------------------------------------------------------------------------------

LEAVE_OPEN = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1], durability=sys.argv[2])
producer = client.create_producer("t")
client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
for number in range(10):
    producer.send(b"payload-%02d" % number)
os._exit(0)
"""


def left_open(folder: Path, durability: str) -> Path:
    """The ledger file of an owner that died; ten messages."""
    run_program(LEAVE_OPEN, folder, durability)
    (path,) = folder.rglob("*.ledger")
    return path


def overwrite(path: Path, marker: bytes, with_what: bytes, at: int = 0) -> int:
    """Change the file where marker stands; the offset."""
    data = path.read_bytes()
    assert data.count(marker) == 1
    offset = data.index(marker) + at
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(with_what)
    return offset


def expected_payloads(*missing: int) -> list[bytes]:
    return [b"payload-%02d" % number for number in range(10) if number not in missing]


def read_past_damage(reader: Any) -> tuple[list[bytes], list[str]]:
    found, told = [], []
    while True:
        try:
            found.append(reader.read_next(0).data())
        except errors.Timeout:
            return found, told
        except errors.CorruptDataError as error:
            told.append(str(error))


@pytest.mark.parametrize("durability", ["interval", "os"])
def test_a_torn_tail_is_cut_and_said_in_the_log(
    folder: Path, durability: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = left_open(folder, durability)
    overwrite(path, b"payload-09", bytes(10))
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == expected_payloads(9)
        client.create_producer("t").send(b"next")
        assert payloads(client.subscribe("t", "s")) == [*expected_payloads(9), b"next"]
    assert "unfinished write" in caplog.text
    assert path.stem in caplog.text


@pytest.mark.parametrize("sealed", [False, True])
def test_damage_in_the_middle_names_ledger_entry_and_offset_and_spares_the_others(
    folder: Path, sealed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = left_open(folder, "sync")
    if sealed:
        pulsarx.Client(folder).close()
    offset = overwrite(path, b"payload-04", b"X", at=3)
    for _ in range(2):
        with pulsarx.Client(folder) as client:
            found, told = read_past_damage(client.create_reader("t", MessageId.earliest))
            assert found == expected_payloads(4)
            assert len(told) == 1
            assert f"ledger {path.stem}" in told[0]
            assert "entry 4" in told[0]
            named = [
                int(word.strip(",;:")) for word in told[0].split() if word.strip(",;:").isdigit()
            ]
            assert any(offset - 200 < number <= offset for number in named)
            assert (
                client.create_reader("t", MessageId(-1, int(path.stem), 6)).read_next(0).data()
                == b"payload-07"
            )
    assert sealed or "damaged" in caplog.text


def test_a_consumer_gets_the_damage_once_and_then_what_is_behind_it(folder: Path) -> None:
    path = left_open(folder, "sync")
    overwrite(path, b"payload-04", b"X")
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s")
        assert [consumer.receive(0).data() for _ in range(4)] == expected_payloads()[:4]
        with pytest.raises(errors.CorruptDataError):
            consumer.receive(0)
        assert [message.data() for message in drain(consumer)] == expected_payloads()[5:]


def test_receive_many_loses_nothing_beside_the_damage(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = left_open(folder, "sync")
    overwrite(path, b"payload-04", b"X")
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s")
        assert [message.data() for message in drain(consumer)] == expected_payloads(4)
    assert caplog.text.count("entry 4 at offset") == 1


@pytest.mark.parametrize(
    "content",
    [None, b"", b"not a ledger" * 1000, bytes(8192)],
    ids=["missing", "empty", "foreign", "zeros"],
)
def test_a_foreign_ledger_file_harms_no_other_topic(folder: Path, content: bytes | None) -> None:
    with pulsarx.Client(folder) as client:
        client.create_producer("good").send(b"x")
    before = set(folder.rglob("*.ledger"))
    with pulsarx.Client(folder) as client:
        client.create_producer("bad").send(b"y")
    (path,) = set(folder.rglob("*.ledger")) - before
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pulsarx.Client(folder) as client:
        assert whole_topic(client, "good") == [b"x"]
        reader = client.create_reader("bad", MessageId.earliest)
        consumer = client.subscribe("bad", "s", initial_position=InitialPosition.Earliest)
        client.create_producer("bad").send(b"z")
        for read in (reader.read_next, consumer.receive):
            with pytest.raises(errors.CorruptDataError, match=f"ledger {path.stem}"):
                read(0)
            assert read(0).data() == b"z"


def test_a_truncated_sealed_ledger_says_so_and_keeps_what_is_there(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        for number in range(10):
            producer.send(b"payload-%02d" % number * 1000)
    (path,) = folder.rglob("*.ledger")
    with open(path, "r+b") as file:
        file.truncate(4096 + 50_000)
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        client.create_producer("t").send(b"next")
        found, told = [], []
        for _ in range(12):
            try:
                found.append(consumer.receive(0).data()[:10])
            except errors.CorruptDataError as error:
                told.append(str(error))
            except errors.Timeout:
                break
        assert found == [*expected_payloads()[:4], b"next"]
        assert told and all(f"ledger {path.stem}" in text for text in told)


def test_a_damaged_cursor_only_redelivers(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s")
        client.create_producer("t").send_many(numbers(10))
        consumer.acknowledge_many(consumer.receive_many(6))
    for path in (folder / "cursors").iterdir():
        path.write_bytes(bytes(byte ^ 0x55 for byte in path.read_bytes()))
    with pulsarx.Client(folder) as client:
        assert payloads(client.subscribe("t", "s"))[-4:] == numbers(4, 6)


def test_a_damaged_catalogue_is_named_and_nothing_is_changed(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send(b"x")
    path = sorted((folder / "catalogue").iterdir())[-1]
    good = path.read_bytes()
    spoiled = bytearray(good)
    spoiled[20] ^= 1
    spoiled[4096 + 20] ^= 1  # its second copy
    path.write_bytes(spoiled)
    with pytest.raises((errors.CatalogueError, errors.CorruptDataError), match=path.name):
        pulsarx.Client(folder)
    path.write_bytes(good)
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == [b"x"]


def test_unsealed_memory_of_a_dead_owner_is_read_beside(folder: Path) -> None:
    path = left_open(folder, "os")
    overwrite(path, b"payload-09", bytes(10))
    with pulsarx.Client(folder, read_only=True) as client:
        assert whole_topic(client) == expected_payloads(9)


def test_a_topic_whose_open_ledger_file_is_gone_works_on(tmp_path: Path) -> None:
    """It used to raise FileNotFoundError whenever the topic was used, and then nobody was told of
    the message that is missing."""
    folder = tmp_path / "data"
    program = """
import os, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
client.subscribe("t", "s")
client.create_producer("t").send(b"lost with its file")
print("sent", flush=True)
sys.stdin.read()
"""
    with ChildProcess(program, folder) as child:
        assert child.line() == "sent"
    for file in folder.glob("ledgers/*/*"):
        file.unlink()
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s")
        client.create_producer("t").send(b"later")
        with pytest.raises(errors.CorruptDataError, match="1 message is missing"):
            consumer.receive(0)
        assert consumer.receive(60_000).data() == b"later"


WAITING_FOR_SPACE = """
import signal, sys, threading, pulsarx
from pulsarx.testing.faults import fault_plan
signal.alarm(60)  # ends the process also where its interpreter is held up
client = pulsarx.Client(sys.argv[1], durability="os")
producer = client.create_producer("t", batching_enabled=False)
sent = [producer.send(b"makes the ledger")]
def publish():
    for _ in range(199):
        sent.append(producer.send(bytes(1000)))
with fault_plan() as plan:
    plan.stall("allocate")  # of the thread that prepares space
    thread = threading.Thread(target=publish)
    thread.start()
    while len(sent) < 50:
        threading.Event().wait(0.01)
    threading.Event().wait(0.2)
    plan.release()
    thread.join()
print(len(sent))
client.close()
"""


def test_other_threads_run_while_a_small_message_waits_for_space(tmp_path: Path) -> None:
    assert run_program(WAITING_FOR_SPACE, tmp_path / "data") == ["200"]
