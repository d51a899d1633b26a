"""Facts about cursor files that are gone or damaged: the subscription begins where it was made, and
the log says what comes again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from child_process import ChildProcess
from damaged_ledgers import data_of, receive_all
from support.logged import lines
from topic_reading import OpenClient
from type_steps import publish, statistics

import pulsarx
from pulsarx import errors
from pulsarx.testing.faults import fault_plan


def cursor_files(folder: Path) -> list[Path]:
    return sorted((folder / "cursors").iterdir(), key=lambda path: int(path.name.split(".")[0]))


def fill_topic(folder: Path) -> Path:
    """Three messages, then subscription s, which acknowledges four of five more; its file."""
    with pulsarx.Client(folder) as client:
        client.subscribe("t", "holder")
        publish(client, "0", "1", "2")
        before = set(cursor_files(folder))
        consumer = client.subscribe("t", "s")
        [path] = set(cursor_files(folder)) - before
        publish(client, "3", "4", "5", "6", "7")
        consumer.acknowledge_many(consumer.receive_many(4, 0))
    return path


def test_a_missing_cursor_file_is_said_with_what_comes_again(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody was told."""
    path = fill_topic(folder)
    path.unlink()
    for turn in range(2):
        with pulsarx.Client(folder) as client:
            consumer = client.subscribe("t", "s")
            assert data_of(receive_all(consumer)[0]) == ["3", "4", "5", "6", "7"]
        said = lines(
            caplog, "subscription s is missing", str(path), "up to 5 acknowledged messages"
        )
        assert len(said) == (turn == 0)
        caplog.clear()


def test_a_missing_cursor_file_that_brings_nothing_again_does_not_say_so(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log spoke of up to 0 messages that are delivered again."""
    with pulsarx.Client(folder) as client:
        publish(client, "0")
        client.subscribe("t", "s")
    for path in cursor_files(folder):
        path.unlink()
    with pulsarx.Client(folder) as client:
        assert receive_all(client.subscribe("t", "s")) == ([], [])
    assert len(lines(caplog, "subscription s is missing")) == 1
    assert not lines(caplog, "delivered again")


def test_a_damaged_cursor_file_brings_nothing_from_before_the_subscription(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Everything the topic had was delivered."""
    path = fill_topic(folder)
    path.write_bytes(bytes(byte ^ 0x55 for byte in path.read_bytes()))
    for _ in range(2):
        with pulsarx.Client(folder) as client:
            consumer = client.subscribe("t", "s")
            assert data_of(receive_all(consumer)[0]) == ["3", "4", "5", "6", "7"]
    assert len(lines(caplog, "subscription s", "is damaged")) == 1
    assert not lines(caplog, "is missing")


def test_a_new_subscription_says_nothing(
    open_client: OpenClient, caplog: pytest.LogCaptureFixture
) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic("p", 1)
    consumer = client.subscribe("p", "s")
    client.create_producer("p").send(b"0")
    client.admin.topics.update_partitioned_topic("p", 3)
    client.close()
    client = open_client()
    consumer = client.subscribe("p", "s")
    producer = client.create_producer("p")
    for number in range(9):
        producer.send(b"%d" % number)
    assert len(receive_all(consumer)[0]) == 10
    client.close()
    open_client().subscribe("p", "s")
    assert caplog.records == []


def test_a_missing_cursor_file_of_a_partition_that_was_added_is_said(
    open_client: OpenClient, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic("p", 1)
    client.subscribe("p", "s").close()
    client.admin.topics.update_partitioned_topic("p", 2)
    consumer = client.subscribe("p", "s")
    for number in range(4):
        client.create_producer(f"p-partition-{number % 2}").send(b"%d" % number)
    consumer.acknowledge_many(receive_all(consumer)[0])
    client.close()
    for path in cursor_files(folder):
        path.unlink()
    client = open_client()
    consumer = client.subscribe("p", "s")
    assert len(receive_all(consumer)[0]) == 4
    assert len(lines(caplog, "subscription s is missing", "with the first message")) == 2


KILLED_BEFORE_THE_COMMIT = """
import sys, threading, pulsarx
from pulsarx.testing.faults import fault_plan
client = pulsarx.Client(sys.argv[1])
client.create_producer("t").send(b"0")
with fault_plan() as plan:
    plan.stall("link")
    threading.Thread(target=lambda: client.subscribe("t", "s"), daemon=True).start()
    while not plan.stalled():
        pass
    print("stalled", flush=True)
    sys.stdin.read()
"""


def test_a_kill_before_the_catalogue_names_a_cursor_leaves_no_position_behind(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The id is given out again, and with it the file would be another subscription's."""
    with ChildProcess(KILLED_BEFORE_THE_COMMIT, folder) as child:
        assert child.line() == "stalled"
        child.kill()
    [left] = cursor_files(folder)
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "other", initial_position=pulsarx.InitialPosition.Earliest)
        assert data_of(receive_all(consumer)[0]) == ["0"]
        assert os.listdir(folder / "orphans") == [left.name]
    assert caplog.records == []


@pytest.mark.parametrize("operation", ["create", "link"])
def test_a_subscription_that_cannot_be_made_leaves_no_cursor_file(
    open_client: OpenClient, folder: Path, operation: str
) -> None:
    client = open_client()
    publish(client, "0")
    with fault_plan() as plan:
        plan.fail("link" if operation == "link" else "allocate", error=28, sticky=True)
        with pytest.raises(errors.StorageFullError):
            client.subscribe("t", "s")
    assert cursor_files(folder) == []
    client.subscribe("t", "s")
    publish(client, "1")
    assert statistics(client)["msg_backlog"] == 1
