"""Facts about a folder that is read beside its owner, or without one."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess, let_all_read, run_program
from sleeping_thread import until_asleep
from topic_reading import numbers, open_paths, whole_topic

import pulsarx
from pulsarx import MessageId, errors
from pulsarx.broker.folder import data_directory
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.read_only_broker import ReadOnlyBroker

OWNER = """
import sys, pulsarx
from pulsarx.testing import inspect
options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=5)
def start():
    return pulsarx.Client(sys.argv[1], durability=sys.argv[2], broker_options=options)
client = start()
producers = {}
print("ready", flush=True)
for line in sys.stdin:
    verb, *words = line.split()
    if verb == "publish":
        topic, first, count = words[0], int(words[1]), int(words[2])
        if topic not in producers:
            producers[topic] = client.create_producer(topic)
        for number in range(first, first + count):
            producers[topic].send(b"%d" % number)
    elif verb == "batch":
        payloads = [b"%d" % number for number in range(int(words[1]))]
        client.create_producer(words[0]).send_many(payloads)
    elif verb == "subscribe":
        consumer = client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
    elif verb == "acknowledge":
        consumer.acknowledge_many(consumer.receive_many(int(words[0])))
    elif verb == "settle":
        inspect(client).settle()
    elif verb == "restart":
        client.close()
        client, producers = start(), {}
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


@pytest.fixture
def owner(folder: Path) -> Iterator[Owner]:
    with Owner(folder) as started:
        yield started


@pytest.fixture
def beside(owner: Owner, folder: Path) -> Iterator[pulsarx.Client]:
    owner.does("publish t 0 3")
    owner.does("settle")  # the next ledger is prepared
    with pulsarx.Client(folder, read_only=True) as client:
        yield client


def payload(reader: Any) -> bytes:
    found: bytes = reader.read_next(60_000).data()
    return found


def in_thread(reader: Any, found: list[Any]) -> threading.Thread:
    def run() -> None:
        try:
            found.append(payload(reader))
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    until_asleep(thread)
    return thread


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_a_reader_sees_what_the_owner_published_and_is_woken_by_more(
    folder: Path, durability: str
) -> None:
    with Owner(folder, durability) as owner:
        owner.does("publish t 0 3")
        with pulsarx.Client(folder, read_only=True) as client:
            reader = client.create_reader("t", MessageId.earliest)
            assert [payload(reader) for _ in range(3)] == numbers(3)
            assert not reader.has_message_available()
            for number in range(3, 30):
                found: list[Any] = []
                thread = in_thread(reader, found) if number % 5 < 2 else None
                owner.does(f"publish t {number} 1")
                if thread is not None:
                    thread.join(60)
                    assert found == [b"%d" % number]
                else:
                    assert payload(reader) == b"%d" % number


def test_a_reader_beside_follows_sealed_ledgers(owner: Owner, beside: pulsarx.Client) -> None:
    reader = beside.create_reader("t", MessageId.earliest)
    assert payload(reader) == b"0"
    owner.does("publish t 3 40")
    owner.does("settle")
    assert [payload(reader) for _ in range(42)] == numbers(42, 1)
    assert whole_topic(beside) == numbers(43)


def test_a_reader_beside_starts_at_ids_and_times(owner: Owner, beside: pulsarx.Client) -> None:
    owner.does("batch t 12")
    reader = beside.create_reader("t", MessageId.latest)
    assert not reader.has_message_available()
    last = reader.get_last_message_id()
    assert last.batch_index() == 11
    middle = MessageId(-1, last.ledger_id(), last.entry_id(), 5)
    reader.seek(middle)
    assert payload(reader) == b"6"
    reader.seek(MessageId.earliest)
    assert payload(reader) == b"0"
    reader.seek(0)
    assert payload(reader) == b"0"


def test_a_reader_misses_nothing_of_a_ledger_sealed_before_its_first_read(
    owner: Owner, beside: pulsarx.Client
) -> None:
    owner.does("publish sealed 0 3")
    reader = beside.create_reader("sealed", MessageId.earliest)
    owner.does("publish sealed 3 40")
    assert [reader.read_next(60_000).data() for _ in range(40)] == numbers(40)


def test_topics_made_later_are_seen(owner: Owner, beside: pulsarx.Client) -> None:
    with pytest.raises(errors.TopicNotFound, match="read_only"):
        beside.create_reader("later", MessageId.earliest)
    owner.does("publish later 0 7")
    assert whole_topic(beside, "later") == numbers(7)
    assert beside.admin.topics.get_list() == [
        "persistent://public/default/later",
        "persistent://public/default/t",
    ]


def test_statistics_can_be_read_beside(owner: Owner, beside: pulsarx.Client) -> None:
    owner.does("publish t 3 9")
    owner.does("subscribe")
    owner.does("settle")
    found = beside.admin.topics.stats("t")
    assert (found["messages"], found["entries"], found["publishers"]) == (12, 12, None)
    assert [each["entries"] for each in found["ledgers"]] == [5, 5, 2]
    assert list(found["subscriptions"]) == ["s"]
    assert found["storage_size"] > 0


def test_nothing_can_be_changed_beside(beside: pulsarx.Client, folder: Path) -> None:
    before = sorted(
        (path, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.name != "ends"
    )
    for call in (
        lambda: beside.create_producer("t"),
        lambda: beside.create_producer("new"),
        lambda: beside.subscribe("t", "s"),
        lambda: beside.admin.namespaces.set_retention("public/default", 1, 1),
    ):
        with pytest.raises(errors.OperationNotSupported, match="read_only"):
            call()
    whole_topic(beside)
    assert (
        sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.name != "ends")
        == before
    )


def test_trimmed_ledgers_are_passed_over_beside(owner: Owner, beside: pulsarx.Client) -> None:
    owner.does("subscribe")
    owner.does("publish t 3 40")
    owner.does("settle")
    reader = beside.create_reader("t", MessageId.earliest)
    late = beside.create_reader("t", MessageId.earliest)
    assert payload(reader) == b"0"
    owner.does("acknowledge 42")
    owner.does("settle")
    found = []
    while reader.has_message_available():
        found.append(payload(reader))
    assert found[-3:] == numbers(3, 40)
    assert found == sorted(found, key=int)
    while late.has_message_available():
        last = payload(late)
    assert last == b"42"


def test_a_reader_waits_on_through_the_death_and_return_of_the_owner(folder: Path) -> None:
    with Owner(folder) as owner:
        owner.does("publish t 0 3")
        client = pulsarx.Client(folder, read_only=True)
        reader = client.create_reader("t", MessageId.earliest)
        assert [payload(reader) for _ in range(3)] == numbers(3)
        found: list[Any] = []
        thread = in_thread(reader, found)
        owner.kill()
    with pytest.raises(errors.Timeout):
        client.create_reader("t", MessageId.latest).read_next(100)
    with Owner(folder) as owner:
        owner.does("publish t 3 8")
        thread.join(60)
        assert found == [b"3"]
        assert [payload(reader) for _ in range(7)] == numbers(7, 4)
        client.close()


def test_a_reader_waits_on_through_a_restart_of_the_owner(
    owner: Owner, beside: pulsarx.Client
) -> None:
    reader = beside.create_reader("t", MessageId.earliest)
    assert [payload(reader) for _ in range(3)] == numbers(3)
    for start in (3, 6, 9):
        found: list[Any] = []
        thread = in_thread(reader, found)
        owner.does("restart")
        owner.does(f"publish t {start} 3")
        thread.join(60)
        assert found == [b"%d" % start]
        assert [payload(reader) for _ in range(2)] == numbers(2, start + 1)


def test_a_reader_that_came_before_any_owner_sees_the_first_message(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        client.create_reader("t", MessageId.earliest).close()
    with pulsarx.Client(folder, read_only=True) as client:
        found: list[Any] = []
        thread = in_thread(client.create_reader("t", MessageId.earliest), found)
        with Owner(folder) as owner:
            owner.does("publish t 0 1")
            thread.join(60)
        assert found == [b"0"]


@pytest.mark.parametrize("killed", [False, True])
def test_without_an_owner_everything_whole_is_read(folder: Path, killed: bool) -> None:
    with Owner(folder) as owner:
        owner.does("publish t 0 13")
        owner.does("settle")
        if killed:
            owner.kill()
    if not killed:
        run_program("import sys, pulsarx; pulsarx.Client(sys.argv[1]).close()", folder)
    with pulsarx.Client(folder, read_only=True) as client:
        assert whole_topic(client) == numbers(13)
        assert client.admin.topics.stats("t")["messages"] == 13
        with pytest.raises(errors.OperationNotSupported):
            client.create_producer("t")
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == numbers(13)


def test_reading_needs_no_right_to_write(folder: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")
    program = """
import os, sys, pulsarx
with pulsarx.Client(sys.argv[1], read_only=True) as client:  # while its modules can be read
    client.create_reader("t", pulsarx.MessageId.earliest).read_next(60_000).data()
os.setuid(65534)
with pulsarx.Client(sys.argv[1], read_only=True) as client:
    reader = client.create_reader("t", pulsarx.MessageId.earliest)
    for _ in range(6):
        print(reader.read_next(60_000).data().decode(), flush=True)
"""
    with Owner(folder) as owner:
        owner.does("publish t 0 3")
        owner.does("settle")  # the next ledger is prepared
        let_all_read(folder)
        with ChildProcess(program, folder) as reader:
            assert [reader.line() for _ in range(3)] == ["0", "1", "2"]
            owner.does("publish t 3 1")
            assert reader.line() == "3"
            owner.does("publish t 4 2")
            assert [reader.line() for _ in range(2)] == ["4", "5"]
            reader.end()


def test_a_read_only_client_of_the_owner_itself_shares_its_broker(folder: Path) -> None:
    with pulsarx.Client(folder) as owner, pulsarx.Client(folder, read_only=True) as client:
        owner.create_producer("t").send(b"x")
        assert whole_topic(client) == [b"x"]
        with pytest.raises(errors.OperationNotSupported):
            client.create_producer("t")


def test_closing_beside_leaves_no_descriptor(beside: pulsarx.Client, folder: Path) -> None:
    reader = beside.create_reader("t", MessageId.earliest)
    payload(reader)
    beside.close()
    with pytest.raises(errors.AlreadyClosed):
        reader.read_next(0)
    left = open_paths()
    assert [path for path in left if str(folder) in path] == []
    with pytest.raises(errors.AlreadyClosed):
        beside.create_reader("t", MessageId.earliest)


def test_statistics_of_many_topics_list_no_folder_for_each(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Each listed the catalogue several times, and the cursors for each subscription: 95 s for
    10,000 topics."""
    with pulsarx.Client(folder) as client:
        for number in range(20):
            client.subscribe(f"t{number}", "s")
            client.create_producer(f"t{number}").send(b"x")
    listed: list[str] = []
    names_in = os.listdir

    def counted(path: str) -> list[str]:
        listed.append(path)
        return names_in(path)

    with pulsarx.Client(folder, read_only=True) as client:
        monkeypatch.setattr(os, "listdir", counted)
        for _ in range(2):
            for number in range(20):
                stats = client.admin.topics.stats(f"t{number}")
                assert stats["subscriptions"]["s"]["msg_backlog"] == 1
        monkeypatch.undo()
        assert len([each for each in listed if str(each).startswith(str(folder))]) <= 2
        with pulsarx.Client(folder) as owner:
            consumer = owner.subscribe("t3", "s")
            consumer.acknowledge(consumer.receive())
            owner.subscribe("t4", "new")
            stats = client.admin.topics.stats("t3")
            assert stats["subscriptions"]["s"]["msg_backlog"] == 0
            assert set(client.admin.topics.stats("t4")["subscriptions"]) == {"s", "new"}


def test_what_an_owner_publishes_that_is_not_seen_comes_too(
    owner: Owner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever cannot tell whether an owner lives takes its ledgers for whole as they are."""
    monkeypatch.setattr(DataDirectory, "owner", lambda _: None)
    owner.does("publish t 0 3")
    with pulsarx.Client(folder, read_only=True) as client:
        reader = client.create_reader("t", MessageId.earliest)
        assert [payload(reader) for _ in range(3)] == numbers(3)
        for first, count in ((3, 1), (4, 1), (5, 9)):
            owner.does(f"publish t {first} {count}")
            owner.does("settle")  # the places of ledgers that are full go to others
            assert [payload(reader) for _ in range(count)] == numbers(count, first)


def taken_for_a_dead_owners(folder: Path) -> tuple[pulsarx.Client, Any]:
    """A client that was opened when no owner was seen, and a reader that has read all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DataDirectory, "owner", lambda _: None)
        client = pulsarx.Client(folder, read_only=True)
        reader = client.create_reader("t", MessageId.earliest)
        assert [payload(reader) for _ in range(3)] == numbers(3)
        assert not reader.has_message_available()
    return client, reader


def test_a_ledger_that_filled_up_since_it_was_taken_for_a_dead_owners_is_read(
    owner: Owner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was empty then, and is sealed behind the look at the catalogue that has it as open: its
    place among the published ends is another's by now."""
    owner.does("publish t 0 3")
    owner.does("settle")  # the next ledger is prepared
    client, reader = taken_for_a_dead_owners(folder)
    refresh = ReadOnlyBroker.refresh
    left = iter(["publish t 6 7", "settle"])

    def refresh_just_before(broker: ReadOnlyBroker) -> bool:
        found = refresh(broker)
        for what in left:
            owner.does(what)
        return found

    with client:
        owner.does("publish t 3 3")
        assert payload(reader) == b"3"
        monkeypatch.setattr(ReadOnlyBroker, "refresh", refresh_just_before)
        assert [payload(reader) for _ in range(9)] == numbers(9, 4)
        assert not list(left)


def test_a_ledger_that_was_taken_for_a_dead_owners_is_read_on(owner: Owner, folder: Path) -> None:
    owner.does("publish t 0 3")
    client, reader = taken_for_a_dead_owners(folder)
    with client:
        owner.does("publish t 3 1")  # to the same ledger
        assert payload(reader) == b"3"
        owner.does("publish t 4 10")
        assert [payload(reader) for _ in range(10)] == numbers(10, 4)


def test_an_owner_is_not_taken_for_dead_where_no_descriptor_is_left(
    owner: Owner, beside: pulsarx.Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    with monkeypatch.context() as patch:
        patch.setattr(data_directory, "owner_lock_query", refuse)
        with pytest.raises(errors.StorageError, match=r"look for the owner in .*LOCK: Too many"):
            pulsarx.Client(folder, read_only=True)
        reader = beside.create_reader("t", MessageId.earliest)  # which has seen its owner
        assert [payload(reader) for _ in range(3)] == numbers(3)
        owner.does("publish t 3 10")
        assert [payload(reader) for _ in range(10)] == numbers(10, 3)
