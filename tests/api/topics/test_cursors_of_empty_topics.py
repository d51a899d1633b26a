"""Facts about the cursors of topics that never had a message: they have no file, and get it before
the first ledger, so that one that is missing later was lost."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import threading
from pathlib import Path

import pytest
from damaged_ledgers import data_of, receive_all
from staged_ledgers import stage
from topic_reading import OpenClient
from type_steps import publish

import pulsarx
from pulsarx import InitialPosition, MessageId, errors
from pulsarx._pycore.ground import file_system
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

OPERATIONS = ("open", "write", "flush", "rename", "link", "flush_directory", "map")


def cursor_files(folder: Path) -> list[str]:
    return sorted(each.name for each in (folder / "cursors").iterdir())


def test_a_cursor_has_its_file_from_the_first_ledger_on(
    open_client: OpenClient, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = open_client()
    client.subscribe("t", "a").close()
    assert cursor_files(folder) == []
    client.close()
    client = open_client()
    client.subscribe("t", "b").close()
    assert cursor_files(folder) == []
    publish(client, "0", "1")
    assert len(cursor_files(folder)) == 2
    consumers = [client.subscribe("t", name) for name in "ab"]
    for consumer in consumers:
        consumer.acknowledge(consumer.receive(0))
    client.close()
    client = open_client()
    for name in "ab":
        assert data_of(receive_all(client.subscribe("t", name))[0]) == ["1"]
    assert caplog.records == []


def test_a_cursor_lost_behind_the_first_ledger_is_said(
    open_client: OpenClient, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = open_client()
    consumer = client.subscribe("t", "s")
    publish(client, "0", "1")
    consumer.acknowledge(consumer.receive(0))
    client.close()
    for name in cursor_files(folder):
        (folder / "cursors" / name).unlink()
    assert data_of(receive_all(open_client().subscribe("t", "s"))[0]) == ["0", "1"]
    assert [each for each in caplog.records if "s is missing" in each.getMessage()]


def test_a_consumer_of_a_pattern_makes_no_file_for_topics_without_messages(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client()
    for number in range(20):
        client.admin.topics.create_non_partitioned_topic(f"t{number}")
    publish(client, "old", topic="t7")
    consumer = client.subscribe(re.compile("t.*"), "s")
    assert len(cursor_files(folder)) == 1  # of t7
    for number in range(20):
        publish(client, str(number), topic=f"t{number}")
    assert len(cursor_files(folder)) == 20
    assert sorted(data_of(receive_all(consumer)[0])) == sorted(map(str, range(20)))


def test_a_moved_or_deleted_subscription_of_an_empty_topic_is_like_others(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client()
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Latest)
    consumer.seek(MessageId.earliest)
    consumer.seek(MessageId.latest)
    client.subscribe("t", "gone").unsubscribe()
    client.admin.topics.skip_all_messages("t", "s")
    publish(client, "0")
    assert data_of(receive_all(consumer)[0]) == ["0"]
    assert len(cursor_files(folder)) == 1


@pytest.mark.parametrize("operation", ["rename", "map"])
def test_a_refused_cursor_file_refuses_the_first_message_and_not_the_next(
    open_client: OpenClient, folder: Path, operation: str
) -> None:
    client = open_client()
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    with fault_plan() as plan:
        plan.fail(operation, 1, error=errno.EIO)
        with pytest.raises(errors.StorageError):
            producer.send(b"refused")
    assert cursor_files(folder) == []
    producer.send(b"0")
    assert len(cursor_files(folder)) == 1
    assert data_of(receive_all(consumer)[0]) == ["0"]


def test_an_attach_that_a_refused_cursor_file_ends_is_expected_no_more(
    open_client: OpenClient, folder: Path
) -> None:
    """Subscriptions that had their files already waited for its ledgers."""
    client = open_client()
    consumers = [client.subscribe(topic, "s") for topic in "ab"]
    files = [stage(folder, topic, [b"0"]) for topic in "ab"]
    with fault_plan() as plan:
        plan.fail("rename", 2, error=errno.ENOSPC)
        with pytest.raises(errors.StorageFullError):
            attach(folder, Transaction("app", 1), files)
    tracker = inspect(client).subscription("a", "s").tracker
    for ledger_id in tracker.ledger_ids:
        with pytest.raises(pulsarx.PulsarException):
            tracker.acknowledge_messages(ledger_id, 0)
    attach(folder, Transaction("app", 1), files)
    assert [data_of(receive_all(each)[0]) for each in consumers] == [["0"], ["0"]]


@pytest.mark.parametrize("first", ["subscription", "ledger"])
def test_a_subscription_made_while_the_first_ledger_comes_has_its_file(
    open_client: OpenClient, folder: Path, first: str
) -> None:
    """One of the two is stopped at its commit while the other begins."""
    client = open_client()
    producer = client.create_producer("t")
    steps = [lambda: client.subscribe("t", "s"), lambda: producer.send(b"0")]
    if first == "ledger":
        steps.reverse()
    begun = threading.Event()

    def second() -> None:
        begun.set()
        steps[1]()

    with fault_plan() as plan:
        plan.stall("link")
        threads = [threading.Thread(target=steps[0]), threading.Thread(target=second)]
        threads[0].start()
        while not plan.stalled():
            pass
        threads[1].start()
        begun.wait()
        plan.release()
        for each in threads:
            each.join()
    assert len(cursor_files(folder)) == 1
    assert inspect(client).subscription("t", "s").tracker.is_kept


@pytest.mark.standard
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_kill_leaves_a_subscription_that_misses_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, operation: str
) -> None:
    """Of a subscription of an empty topic, its first message and an acknowledgement."""
    found = set()
    for call in range(1, 200):
        folder = tmp_path / str(call)
        with pulsarx.Client(folder) as client:
            client.admin.topics.create_non_partitioned_topic("t")
        child = os.fork()
        if child == 0:
            status = 2
            try:
                client = pulsarx.Client(folder)
                client.admin.topics.get_list()
                file_system.faults_install()
                file_system.faults_add(operation, call, kind="kill")
                consumer = client.subscribe("t", "s")
                (folder / "subscribed").touch()
                producer = client.create_producer("t")
                producer.send(b"0")
                (folder / "sent").touch()
                producer.send(b"1")
                consumer.acknowledge(consumer.receive(0))
                status = 0
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL)
        steps = {each for each in ("subscribed", "sent") if (folder / each).exists()}
        for each in steps:
            (folder / each).unlink()
        with pulsarx.Client(folder) as client:
            names = client.admin.topics.get_subscriptions("t")
            assert "subscribed" not in steps or names == ["s"]
            got = data_of(receive_all(client.subscribe("t", "s"))[0]) if names else []
            assert "sent" not in steps or "0" in got or status == 0
            found.add((len(names), len(got)))
        assert caplog.records == []
        shutil.rmtree(folder)
        if status == 0:
            break
    assert (1, 1) in found  # it went on to the end
