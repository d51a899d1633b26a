"""Facts about readers of other processes, as the owner of their folder sees them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sharing_process import SharingProcess

import pulsarx
from pulsarx.broker.topics.read_only_topic import ReadOnlyTopic
from pulsarx.listening import listener_loop
from pulsarx.processes.guest import topic as guest_topic
from pulsarx.processes.guest.partitions import GuestPartitions


def test_a_topic_that_another_process_reads_is_not_deleted_as_inactive(
    folder: Path, processes: list[SharingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was, beside its reader."""
    monkeypatch.setattr(guest_topic, "_LOOK_MS", 50)
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.close()")
    owner.run(
        "options = pulsarx.BrokerOptions(\n"
        " broker_delete_inactive_topics_enabled=True,\n"
        " broker_delete_inactive_topics_frequency_seconds=2)"
    )
    owner.run("client = pulsarx.Client(sys.argv[1], broker_options=options)")
    with pulsarx.Client(folder) as client:
        topics = client.admin.topics
        topics.create_non_partitioned_topic("read")
        reader = client.create_reader("read", pulsarx.MessageId.earliest)
        topics.create_non_partitioned_topic("unread")
        pause = threading.Event()
        while "persistent://public/default/unread" in topics.get_list("public/default"):
            pause.wait(0.1)
        assert "persistent://public/default/read" in topics.get_list("public/default")
        reader.close()
        while topics.get_list("public/default"):
            pause.wait(0.1)


def test_a_table_view_holds_all_partitions(folder: Path, processes: list[SharingProcess]) -> None:
    """It could not be made in a process beside the owner: AttributeError."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.admin.topics.create_partitioned_topic('t', 2)")
    owner.run("p = client.create_producer('t')")
    owner.run("for n in range(10): p.send(b'%d' % n, partition_key=f'k{n}')")
    with pulsarx.Client(folder) as client:
        view = client.create_table_view("t")
        assert dict(view.items()) == {f"k{number}": b"%d" % number for number in range(10)}
        owner.run("client.admin.topics.update_partitioned_topic('t', 4)")
        owner.run("p = client.create_producer('t')")
        owner.run("for n in range(10, 40): p.send(b'%d' % n, partition_key=f'k{n}')")
        pause = threading.Event()
        for _ in range(6000):
            if len(view) == 40:
                break
            pause.wait(0.01)
        assert dict(view.items()) == {f"k{number}": b"%d" % number for number in range(40)}


@pytest.mark.parametrize("make", ["create_table_view", "subscribe", "create_producer"])
def test_a_partitioned_topic_that_goes_while_it_is_opened_is_made_anew(
    folder: Path, processes: list[SharingProcess], monkeypatch: pytest.MonkeyPatch, make: str
) -> None:
    """NotAllowedError: one of its partitions was to be made, without the topic."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.admin.topics.create_partitioned_topic('t', 2)")
    partition = GuestPartitions.partition
    asked: list[int] = []

    def deleting(topic: GuestPartitions, index: int) -> ReadOnlyTopic:
        asked.append(index)
        if asked == [0, 1]:
            owner.run("client.admin.topics.delete_partitioned_topic('t', force=True)")
        return partition(topic, index)

    monkeypatch.setattr(GuestPartitions, "partition", deleting)
    with pulsarx.Client(folder) as client:
        arguments = ["t", "s"] if make == "subscribe" else ["t"]
        made = getattr(client, make)(*arguments)
        assert asked[:2] == [0, 1]
        assert client.admin.topics.get_partitioned_topic_metadata("t") == {"partitions": 0}
        made.close()


@pytest.mark.parametrize("partitions", [0, 2])
def test_listeners_of_a_deleted_topic_end(
    folder: Path,
    processes: list[SharingProcess],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    partitions: int,
) -> None:
    """They tried again each second, for ever, and said in the log that they could not."""
    monkeypatch.setattr(listener_loop, "AGAIN_MS", 10)
    owner = SharingProcess(folder)
    processes.append(owner)
    deletes = "delete"
    if partitions:
        owner.run(f"client.admin.topics.create_partitioned_topic('t', {partitions})")
        deletes = "delete_partitioned_topic"
    owner.run("client.create_producer('t').send(b'1', partition_key='k') and None")
    came = threading.Semaphore(0)
    with pulsarx.Client(folder) as client:
        client.create_reader(
            "t", pulsarx.MessageId.earliest, reader_listener=lambda *_: came.release()
        )
        view = client.create_table_view("t")
        assert came.acquire(timeout=60)
        owner.run(f"client.admin.topics.{deletes}('t', force=True)")
        client.create_producer("other").send(b"1")  # the folder is looked at once more
        threading.Event().wait(0.5)  # in which they would have tried
        assert view["k"] == b"1"
    assert "tried again soon" not in caplog.text
