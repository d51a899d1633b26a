"""Facts about what the operating system refuses: a full disk, a broken device. Every call says it
as an exception of the library, and nothing that was confirmed is lost by it."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from child_process import ChildProcess
from damaged_ledgers import data_of, receive_all
from type_steps import publish, statistics

import pulsarx
from pulsarx import BrokerOptions, InitialPosition, MessageId, errors
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

OPERATIONS = [
    "open", "write", "read", "allocate", "flush", "flush_directory", "rename", "link", "unlink",
    "make_directory", "size", "map",
]  # fmt: skip
ONE_ENTRY = BrokerOptions(managed_ledger_max_entries_per_ledger=1)


def use(folder: Path, refused: list[Exception]) -> list[str]:
    """Do a bit of everything, go on behind what is refused; what was confirmed as sent."""
    sent: list[str] = []
    try:
        client = pulsarx.Client(folder, broker_options=ONE_ENTRY)
    except errors.PulsarException as error:
        refused.append(error)
        return sent

    def send(payload: str) -> None:
        producer = client.create_producer("t")
        producer.send(payload.encode())
        sent.append(payload)

    def consume() -> None:
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        for message in consumer.receive_many(2, 0):
            consumer.acknowledge(message)
        consumer.close()

    steps = [
        lambda: client.admin.topics.create_partitioned_topic("p", 2),
        lambda: client.subscribe("t", "s").close(),
        *(lambda number=number: send(f"new {number}") for number in range(3)),
        consume,
        lambda: client.subscribe("t", "gone").close(),
        lambda: client.subscribe("t", "gone").unsubscribe(),
        lambda: client.create_reader("t", MessageId.earliest).read_many(9, 0),
        lambda: inspect(client).topic("t").trim(),
        lambda: inspect(client).settle(),
        client.close,
    ]
    for step in steps:
        try:
            step()
        except errors.PulsarException as error:
            refused.append(error)
    try:
        client.close()
    except errors.PulsarException as error:
        refused.append(error)
    return sent


@pytest.mark.standard
@pytest.mark.parametrize("sticky", [False, True])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_any_refused_call_is_said_as_one_of_ours_and_costs_no_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, operation: str, sticky: bool
) -> None:
    """A full disk under a new folder of ledgers, a cursor that could not be removed and a few more
    came out of send, subscribe and close as bare OSErrors."""
    call = 0
    happened = True
    while happened:
        call += 1
        folder = tmp_path / str(call)
        with pulsarx.Client(folder, broker_options=ONE_ENTRY) as client:
            client.subscribe("t", "holder").close()
            publish(client, "old 0", "old 1")
        refused: list[Exception] = []
        with fault_plan() as plan:
            plan.fail(operation, call, error=errno.ENOSPC, sticky=sticky)
            sent = use(folder, refused)
            happened = plan.calls(operation) >= call
        with pulsarx.Client(folder) as client:
            reader = client.create_reader("t", MessageId.earliest)
            found, told = receive_all(reader)
            assert told == []
            assert [each for each in data_of(found) if each in {"old 0", "old 1", *sent}] == [
                "old 0", "old 1", *sent,
            ]  # fmt: skip
    assert call > 1
    logged = [each.exc_info[0] for each in caplog.records if each.exc_info]
    assert not [each for each in logged if each is None or issubclass(each, OSError)]


def test_a_topic_that_could_not_be_opened_keeps_its_cursors(tmp_path: Path) -> None:
    """The names of the cursor files had been taken: the second try found none, said that they were
    missing and delivered everything again."""
    with pulsarx.Client(tmp_path / "data") as client:
        consumers = [client.subscribe("t", name) for name in "ab"]
        publish(client, "0", "1", "2")
        for consumer in consumers:
            consumer.acknowledge_many(consumer.receive_many(2, 0))
    with pulsarx.Client(tmp_path / "data") as client:
        with fault_plan() as plan:
            plan.fail("read", call=2)
            with pytest.raises(errors.StorageError, match="read cursor file"):
                client.subscribe("t", "a")
        for name in "ab":
            assert statistics(client, name=name)["msg_backlog"] == 1
            assert data_of(receive_all(client.subscribe("t", name))[0]) == ["2"]


def test_a_cursor_that_cannot_be_removed_is_said_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Unsubscribing raised an OSError, with the subscription gone already."""
    folder = tmp_path / "data"
    with pulsarx.Client(folder) as client:
        publish(client, "0")
        consumer = client.subscribe("t", "s")
        with fault_plan() as plan:
            plan.fail("unlink", sticky=True)
            consumer.unsubscribe()
        [line] = [record.getMessage() for record in caplog.records]
        assert "subscription s, which is gone, stay" in line and str(folder / "cursors") in line
        assert len(list((folder / "cursors").iterdir())) == 1
        caplog.clear()
        client.subscribe("t", "s").unsubscribe()
    assert caplog.records == []


def test_a_folder_of_ledgers_on_a_full_disk_is_a_full_disk(tmp_path: Path) -> None:
    """That the next ledger cannot be prepared is told to nobody; who needs it then is told."""
    with pulsarx.Client(tmp_path / "data", broker_options=ONE_ENTRY) as client:
        producer = client.create_producer("t")
        producer.send(b"0")
        inspect(client).settle()
        with fault_plan() as plan:
            plan.fail("make_directory", error=errno.ENOSPC, sticky=True)
            producer.send(b"1")
            inspect(client).settle()
            with pytest.raises(errors.StorageFullError, match=r"make the folder of .*ledger"):
                producer.send(b"-")
        producer.send(b"2")
        reader = client.create_reader("t", MessageId.earliest)
        assert data_of(receive_all(reader)[0]) == ["0", "1", "2"]


OPENED_BESIDE = """
import shutil, sys, threading, pulsarx
from pulsarx.testing.faults import fault_plan

def use(folder, **options):
    with pulsarx.Client(folder, **options) as client:
        client.create_reader("t", pulsarx.MessageId.earliest).read_next(1000)

def opened(folder, **options):
    call, stalled = 1, True
    while stalled:
        copy = f"{folder}-{call}-{len(options)}"
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*.sock"))
        with fault_plan() as plan:
            plan.stall("open", call)
            thread = threading.Thread(target=use, args=[copy], kwargs=options)
            thread.start()
            while thread.is_alive() and not plan.stalled():
                pass
            stalled = plan.stalled() > 0
            plan.release()
            thread.join()
        call += 1
        print(call, flush=True)

opened(sys.argv[1])
opened(sys.argv[1], read_only=True)
"""
KILLED_OWNER = """
import os, signal, sys, pulsarx
client = pulsarx.Client(sys.argv[1])
client.subscribe("t", "s")
client.create_producer("t").send(b"0")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.standard
def test_other_threads_go_on_while_a_file_is_opened(tmp_path: Path) -> None:
    """Ledgers, cursors and the ends were opened with the interpreter's lock in hand, so a slow file
    system stopped every thread of the process."""
    with ChildProcess(KILLED_OWNER, tmp_path / "data") as child:
        assert child.rest() == []
    with ChildProcess(OPENED_BESIDE, tmp_path / "data") as child:
        assert len(child.end()) > 10
