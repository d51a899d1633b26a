"""Facts about partitioned topics that are read beside their owner, or without one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess, let_all_read
from sleeping_thread import until_asleep
from topic_reading import numbers, open_paths

import pulsarx
from pulsarx import MessageId, errors

WAIT = 60
PARTITIONS = 3
OWNER = """
import os, sys, pulsarx
from pulsarx.testing import inspect
options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=4)
client = pulsarx.Client(sys.argv[1], durability=sys.argv[2], broker_options=options)
admin = client.admin.topics
admin.create_partitioned_topic("t", 3)
print("ready", flush=True)
for line in sys.stdin:
    verb, *words = line.split()
    if verb == "publish":   # to the partitions in turn, or to one
        for number in range(int(words[0]), int(words[0]) + int(words[1])):
            index = int(words[2]) if len(words) > 2 else number % 3
            with client.create_producer(f"t-partition-{index}") as producer:
                sent = producer.send(b"%d" % number, partition_key="k")
        print(sent.serialize().hex())
    elif verb == "grow":
        admin.update_partitioned_topic("t", int(words[0]))
    elif verb == "delete":
        admin.delete_partitioned_topic("t", force=True)
    elif verb == "create":
        admin.create_partitioned_topic("t", int(words[0]))
    elif verb == "compact":
        for index in range(3):
            admin.trigger_compaction(f"t-partition-{index}")
        inspect(client).settle()
    print("done", flush=True)
client.close()
"""


class Owner(ChildProcess):
    """A live owner in another process."""

    def __init__(self, folder: Path, durability: str = "os") -> None:
        super().__init__(OWNER, folder, durability)
        assert self.line() == "ready"

    def does(self, what: str) -> None:
        self.tell(what)
        assert self.line() == "done"

    def publishes(self, what: str) -> MessageId:
        """The id of the last one."""
        self.tell(f"publish {what}")
        sent = MessageId.deserialize(bytes.fromhex(self.line()))
        assert self.line() == "done"
        return sent


@pytest.fixture
def owner(folder: Path) -> Iterator[Owner]:
    with Owner(folder) as started:
        yield started


@pytest.fixture
def beside(owner: Owner, folder: Path) -> Iterator[pulsarx.Client]:
    with pulsarx.Client(folder, read_only=True) as client:
        yield client


def read(reader: Any) -> list[int]:
    """What is there, in the order of the numbers."""
    found = []
    while reader.has_message_available():
        found.append(int(reader.read_next(0).data()))
    return sorted(found)


def in_thread(reader: Any, found: list[bytes]) -> threading.Thread:
    thread = threading.Thread(target=lambda: found.append(reader.read_next(WAIT * 1000).data()))
    thread.start()
    until_asleep(thread)
    return thread


@pytest.mark.parametrize("durability", ["sync", "os"])
def test_all_partitions_are_read_each_in_order(folder: Path, durability: str) -> None:
    with Owner(folder, durability) as owner, pulsarx.Client(folder, read_only=True) as client:
        owner.publishes("0 31")
        reader = client.create_reader("t", MessageId.earliest)
        assert reader.topic() == "persistent://public/default/t"
        messages = [reader.read_next(0) for _ in range(31)]
        for index in range(PARTITIONS):
            of_one = [each for each in messages if each.message_id().partition() == index]
            assert [int(each.data()) for each in of_one] == list(range(index, 31, PARTITIONS))
        assert not reader.has_message_available()
        with pytest.raises(errors.Timeout):
            reader.read_next(0)
        owner.publishes("31 20")
        assert read(reader) == list(range(31, 51))


@pytest.mark.parametrize("partition", range(PARTITIONS))
def test_a_waiting_read_is_woken_by_each_partition(
    owner: Owner, beside: pulsarx.Client, partition: int
) -> None:
    reader = beside.create_reader("t", MessageId.latest)
    for number in range(9):  # over more than two ledgers
        found: list[bytes] = []
        thread = in_thread(reader, found)
        owner.publishes(f"{number} 1 {partition}")
        thread.join(WAIT)
        assert found == [b"%d" % number]


def test_two_waiting_reads_each_get_a_message(owner: Owner, beside: pulsarx.Client) -> None:
    reader = beside.create_reader("t", MessageId.latest)
    found: list[bytes] = []
    threads = [in_thread(reader, found) for _ in range(2)]
    owner.publishes("0 2")
    for each in threads:
        each.join(WAIT)
    assert sorted(found) == numbers(2)


def test_lists_and_columns_are_waited_for_too(owner: Owner, beside: pulsarx.Client) -> None:
    reader = beside.create_reader("t", MessageId.latest)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(reader.read_many(10, WAIT * 1000)))
    thread.start()
    until_asleep(thread)
    owner.publishes("0 1")
    thread.join(WAIT)
    assert [each.data() for each in found] == [b"0"]
    thread = threading.Thread(target=lambda: found.append(reader.read_arrow(10, WAIT * 1000)))
    thread.start()
    until_asleep(thread)
    owner.publishes("1 1")
    thread.join(WAIT)
    assert len(found[-1]) == 1
    assert len(reader.read_arrow(10, 0)) == 0
    assert reader.read_many(10, 0) == []


def test_ids_and_times_are_started_at_and_sought(owner: Owner, beside: pulsarx.Client) -> None:
    fifth = owner.publishes("0 6")
    owner.publishes("6 3")
    reader = beside.create_reader("t", MessageId.earliest)
    assert read(reader) == list(range(9))
    reader.seek(fifth)
    assert read(reader) == [8]
    reader.seek(MessageId.earliest)
    assert read(reader) == list(range(9))
    reader.seek(0)
    assert read(reader) == list(range(9))
    reader.seek(1 << 62)
    assert read(reader) == []
    # Ledgers came in the order of the partitions.
    assert read(beside.create_reader("t", fifth)) == [8]
    inclusive = beside.create_reader("t", fifth, start_message_id_inclusive=True)
    assert read(inclusive) == [5, 8]


def test_a_seek_wakes_a_read_that_waits(owner: Owner, beside: pulsarx.Client) -> None:
    owner.publishes("0 1")
    reader = beside.create_reader("t", MessageId.latest)
    found: list[bytes] = []
    thread = in_thread(reader, found)
    reader.seek(MessageId.earliest)
    thread.join(WAIT)
    assert found == [b"0"]


def test_partitions_that_come_are_read_from_their_beginning(
    owner: Owner, beside: pulsarx.Client
) -> None:
    reader = beside.create_reader("t", MessageId.latest)
    owner.does("grow 5")
    owner.publishes("3 1 3")
    assert read(reader) == [3]
    owner.publishes("4 1 4")
    assert reader.read_next(0).data() == b"4"


def test_a_waiting_read_finds_partitions_that_come(owner: Owner, beside: pulsarx.Client) -> None:
    reader = beside.create_reader("t", MessageId.latest)
    found: list[bytes] = []
    thread = in_thread(reader, found)
    owner.does("grow 4")
    owner.publishes("7 1 3")
    thread.join(WAIT)
    assert found == [b"7"]


def test_compacted_partitions_are_read_as_compacted(owner: Owner, beside: pulsarx.Client) -> None:
    owner.publishes("0 9")
    owner.does("compact")
    reader = beside.create_reader("t", MessageId.earliest, is_read_compacted=True)
    assert read(reader) == [6, 7, 8]
    owner.publishes("9 1")
    assert read(reader) == [9]


def test_a_deleted_topic_is_not_mistaken_for_a_later_one(
    owner: Owner, beside: pulsarx.Client
) -> None:
    owner.publishes("0 3")
    reader = beside.create_reader("t", MessageId.earliest)
    assert read(reader) == [0, 1, 2]
    owner.does("delete")
    owner.does("create 5")
    owner.publishes("3 3")
    with pytest.raises(errors.TopicNotFound):
        reader.read_next(0)
    assert read(beside.create_reader("t", MessageId.earliest)) == [3, 4, 5]
    owner.does("delete")
    with pytest.raises(errors.TopicNotFound):
        beside.create_reader("t", MessageId.earliest)


def test_a_killed_owner_leaves_what_it_published(folder: Path) -> None:
    with Owner(folder) as owner:
        owner.publishes("0 20")
        client = pulsarx.Client(folder, read_only=True)
        reader = client.create_reader("t", MessageId.earliest)
        assert len([reader.read_next(0) for _ in range(10)]) == 10
        owner.kill()
    with client:
        assert len(read(reader)) == 10
        assert read(client.create_reader("t", MessageId.earliest)) == list(range(20))
        with pytest.raises(errors.Timeout):
            reader.read_next(1)


def test_it_writes_nothing_and_is_closed_with_its_client(
    owner: Owner, beside: pulsarx.Client, folder: Path
) -> None:
    owner.publishes("0 3")
    reader = beside.create_reader("t", MessageId.earliest)
    assert read(reader) == [0, 1, 2]
    found: list[Any] = []

    def wait() -> None:
        try:
            reader.read_next()
        except errors.AlreadyClosed as error:
            found.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    until_asleep(thread)
    beside.close()
    thread.join(WAIT)
    assert len(found) == 1
    assert [path for path in open_paths() if str(folder) in path] == []


def test_a_listener_is_refused(owner: Owner, beside: pulsarx.Client) -> None:
    with pytest.raises(errors.OperationNotSupported, match="reader_listener"):
        beside.create_reader("t", MessageId.earliest, reader_listener=print)


def test_a_client_of_the_owner_itself_follows_the_topic_as_the_owner_does(folder: Path) -> None:
    with pulsarx.Client(folder) as owner, pulsarx.Client(folder, read_only=True) as client:
        owner.admin.topics.create_partitioned_topic("t", 2)
        reader = client.create_reader("t", MessageId.latest)
        owner.admin.topics.update_partitioned_topic("t", 3)
        owner.create_producer("t-partition-2").send(b"7")
        assert read(reader) == [7]
        with pytest.raises(errors.TopicNotFound):
            client.create_reader("missing", MessageId.earliest)


def test_without_the_right_to_write_waiting_reads_look_again(folder: Path) -> None:
    """What another process publishes wakes nobody then."""
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    program = """
import os, sys, pulsarx
with pulsarx.Client(sys.argv[1], read_only=True) as client:  # while its modules can be read
    client.create_reader("t", pulsarx.MessageId.earliest).read_next(60_000).data()
os.setuid(65534)
with pulsarx.Client(sys.argv[1], read_only=True) as client:
    reader = client.create_reader("t", pulsarx.MessageId.earliest)
    for _ in range(7):
        print(reader.read_next(60_000).data().decode(), flush=True)
"""
    with Owner(folder) as owner:
        owner.publishes("0 3")
        let_all_read(folder)
        with ChildProcess(program, folder) as reader:
            assert sorted(reader.line() for _ in range(3)) == ["0", "1", "2"]
            for number in range(3, 7):
                owner.publishes(f"{number} 1")
                assert reader.line() == str(number)
            reader.end()
