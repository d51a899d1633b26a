"""Facts about opening, sharing and closing clients."""

from __future__ import annotations

import gc
import inspect
import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from child_process import ChildProcess, run_program
from topic_reading import drain, numbers, open_paths, payloads, whole_topic

import pulsarx
from pulsarx import errors
from pulsarx.ground.client_owner import Leave
from pulsarx.producing.topic_producer import TopicProducer

OWNER = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
client.close()
print("closed", flush=True)
"""


@pytest.mark.parametrize("spell", [str, os.fspath, Path, lambda path: f"file://{quote(str(path))}"])
def test_a_folder_is_opened_however_it_is_written(
    folder: Path, spell: Callable[[Path], Any]
) -> None:
    with pulsarx.Client(spell(folder)) as client:
        client.create_producer("t").send(b"kept")
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == [b"kept"]


def test_memory_is_forgotten_with_its_last_client() -> None:
    with pulsarx.Client("memory:") as first:
        with pulsarx.Client("memory:") as second:
            first.create_producer("t").send(b"x")
            assert whole_topic(second) == [b"x"]
        assert whole_topic(first) == [b"x"]
    with pulsarx.Client("memory:") as client:
        assert whole_topic(client) == []


def test_memories_of_other_names_are_apart() -> None:
    with pulsarx.Client("memory:a") as first, pulsarx.Client("memory:b") as second:
        first.create_producer("t").send(b"a")
        assert whole_topic(first) == [b"a"]
        assert whole_topic(second) == []


def test_two_clients_of_a_folder_share_one_broker(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    with pulsarx.Client(folder) as first, pulsarx.Client(tmp_path / "link") as second:
        consumer = second.subscribe("t", "s")
        first.create_producer("t").send(b"x")
        assert consumer.receive(0).data() == b"x"
        with pytest.raises(errors.ConsumerBusy):
            first.subscribe("t", "s")


def test_a_client_that_closes_leaves_the_others_of_its_folder_alone(folder: Path) -> None:
    first, second = pulsarx.Client(folder), pulsarx.Client(folder)
    producer = second.create_producer("t")
    first.close()
    producer.send(b"x")
    assert whole_topic(second) == [b"x"]
    second.close()


@pytest.mark.parametrize(
    "options",
    [
        {"durability": "os"},
        {"flush_interval_ms": 7},
        {"clock": pulsarx.ManualClock()},
        {"broker_options": pulsarx.BrokerOptions(max_message_size=100)},
    ],
)
def test_a_second_client_with_other_options_is_refused(
    folder: Path, options: dict[str, Any]
) -> None:
    with pulsarx.Client(folder) as client:
        with pytest.raises(errors.InvalidConfiguration) as caught:
            pulsarx.Client(folder, **options)
        (name,) = caught.value.conflicts
        assert name in {**options, "max_message_size": 100}
        assert name in caught.value.detail
        client.create_producer("t").send(b"still works")
    pulsarx.Client(folder, **options).close()


def test_a_second_process_that_wants_it_alone_is_told_who_owns_the_folder(folder: Path) -> None:
    with ChildProcess(OWNER, folder) as owner:
        assert owner.line() == "open"
        with pytest.raises(errors.FolderOwnedError) as caught:
            pulsarx.Client(folder, exclusive=True)
        assert str(owner.pid) in str(caught.value)
        assert isinstance(caught.value, errors.ConnectError)
        owner.tell()
        assert owner.line() == "closed"
        pulsarx.Client(folder).close()


def test_a_killed_owner_leaves_no_lock(folder: Path) -> None:
    with ChildProcess(OWNER, folder) as owner:
        owner.line()
        owner.kill()
    pulsarx.Client(folder).close()


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"precious")
    for read_only in (False, True):
        with pytest.raises(errors.FolderError, match="is a file"):
            pulsarx.Client(path, read_only=read_only)
    assert path.read_bytes() == b"precious"


def test_a_folder_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"data")
    with pytest.raises(errors.FolderError, match="precious"):
        pulsarx.Client(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_a_folder_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    program = """
import os, sys, pulsarx
pulsarx.Client(sys.argv[2]).close()  # modules are loaded while they can be read
if os.getuid() == 0:
    os.setuid(65534)
try:
    pulsarx.Client(sys.argv[1])
except pulsarx.errors.FolderError as error:
    print(error)
"""
    made, missing = tmp_path / "made", tmp_path / "missing"
    pulsarx.Client(made).close()
    for path in [*tmp_path.parents, tmp_path]:
        if path.stat().st_uid == os.getuid() and "pytest" in str(path):
            path.chmod(0o755)
    for path in (made, missing):
        made.chmod(0o555)
        (text,) = run_program(program, path, tmp_path / "other")
        assert str(path) in text
        assert "denied" in text
    made.chmod(0o755)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_folder_of_a_newer_format_is_refused(folder: Path, read_only: bool) -> None:
    from pulsarx.broker.folder.folder_marker import FORMAT_VERSION, MARKER_NAME, marker_bytes

    pulsarx.Client(folder).close()
    (folder / MARKER_NAME).write_bytes(marker_bytes(FORMAT_VERSION + 1, "0" * 32))
    with pytest.raises(errors.NewerFormatError, match="Upgrade"):
        pulsarx.Client(folder, read_only=read_only)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_folder_made_before_the_first_release_is_refused_untouched(
    folder: Path, read_only: bool
) -> None:
    pulsarx.Client(folder).close()
    marker = folder / "PULSARX"
    lines = ["PulsarX data directory", "format 1", "folder 5d0f6a2c8f0e4f1b9f6a3c1d2e4b7a90"]
    marker.write_text("\n".join([*lines, "crc32 b0312504", ""]))
    before = {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}
    said = r"made before the first release.*Nothing was changed\. Read it with the version"
    with pytest.raises(errors.FolderError, match=said):
        pulsarx.Client(folder, read_only=read_only)
    assert {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()} == before


def test_a_missing_folder_is_not_made_by_reading(folder: Path) -> None:
    with pytest.raises(errors.FolderError):
        pulsarx.Client(folder, read_only=True)
    assert not folder.exists()


@pytest.mark.parametrize("name", ["", "a/b", "persistent://a", "non-existent://a/b/c", "a//b"])
def test_an_invalid_topic_name_is_refused_everywhere(
    memory_client: pulsarx.Client, name: str
) -> None:
    with pytest.raises(errors.InvalidTopicName):
        memory_client.create_producer(name)
    with pytest.raises(errors.InvalidTopicName):
        memory_client.subscribe(name, "s")
    with pytest.raises(errors.InvalidTopicName):
        memory_client.create_reader(name, pulsarx.MessageId.earliest)


def test_a_topic_of_a_missing_namespace_is_not_found(memory_client: pulsarx.Client) -> None:
    with pytest.raises(errors.TopicNotFound, match="nowhere"):
        memory_client.create_producer("persistent://public/nowhere/t")


def test_short_and_full_names_are_one_topic(memory_client: pulsarx.Client) -> None:
    memory_client.create_producer("t").send(b"x")
    assert whole_topic(memory_client, "persistent://public/default/t") == [b"x"]
    assert memory_client.get_topic_partitions("t") == ["persistent://public/default/t"]


def test_auto_creation_can_be_off() -> None:
    options = pulsarx.BrokerOptions(allow_auto_topic_creation=False)
    with (
        pulsarx.Client("memory:off", broker_options=options) as client,
        pytest.raises(errors.TopicNotFound, match="allow_auto_topic_creation"),
    ):
        client.create_producer("t")
    options = pulsarx.BrokerOptions(allow_auto_subscription_creation=False)
    with (
        pulsarx.Client("memory:off", broker_options=options) as client,
        pytest.raises(errors.SubscriptionNotFound, match="allow_auto_subscription_creation"),
    ):
        client.subscribe("t", "s")


# Using things after they were closed -------------------------------------------------------------

CLIENT_CALLS: dict[str, Callable[[Any], Any]] = {
    "create_producer": lambda each: each.create_producer("t"),
    "subscribe": lambda each: each.subscribe("t", "s"),
    "create_reader": lambda each: each.create_reader("t", pulsarx.MessageId.earliest),
    "get_topic_partitions": lambda each: each.get_topic_partitions("t"),
    "admin": lambda each: each.admin,
    "close": lambda each: each.close(),
}
PRODUCER_CALLS: dict[str, Callable[[Any], Any]] = {
    "send": lambda each: each.send(b"x"),
    "send_async": lambda each: each.send_async(b"x", None),
    "send_many": lambda each: each.send_many([b"x"]),
    "flush": lambda each: each.flush(),
    "close": lambda each: each.close(),
}
CONSUMER_CALLS: dict[str, Callable[[Any], Any]] = {
    "receive": lambda each: each.receive(),
    "receive with timeout": lambda each: each.receive(10),
    "receive_many": lambda each: each.receive_many(1),
    "batch_receive": lambda each: each.batch_receive(),
    "acknowledge": lambda each: each.acknowledge(pulsarx.MessageId(-1, 1, 0)),
    "acknowledge_cumulative": lambda each: each.acknowledge_cumulative(pulsarx.MessageId(-1, 1, 0)),
    "acknowledge_many": lambda each: each.acknowledge_many([]),
    "seek": lambda each: each.seek(pulsarx.MessageId.earliest),
    "seek by time": lambda each: each.seek(0),
    "unsubscribe": lambda each: each.unsubscribe(),
    "get_last_message_id": lambda each: each.get_last_message_id(),
    "close": lambda each: each.close(),
}
READER_CALLS: dict[str, Callable[[Any], Any]] = {
    "read_next": lambda each: each.read_next(),
    "read_next with timeout": lambda each: each.read_next(10),
    "read_many": lambda each: each.read_many(1),
    "has_message_available": lambda each: each.has_message_available(),
    "get_last_message_id": lambda each: each.get_last_message_id(),
    "seek": lambda each: each.seek(pulsarx.MessageId.earliest),
    "close": lambda each: each.close(),
}
ALL_CALLS = [
    (kind, name, call)
    for kind, calls in {
        "client": CLIENT_CALLS,
        "producer": PRODUCER_CALLS,
        "consumer": CONSUMER_CALLS,
        "reader": READER_CALLS,
    }.items()
    for name, call in calls.items()
]


def make_one_of_each(client: pulsarx.Client) -> dict[str, Any]:
    return {
        "client": client,
        "producer": client.create_producer("t"),
        "consumer": client.subscribe("t", "s"),
        "reader": client.create_reader("t", pulsarx.MessageId.earliest),
    }


@pytest.mark.parametrize("closed_by", ["itself", "its client", "the folder's last client"])
@pytest.mark.parametrize(
    ("kind", "name", "call"), ALL_CALLS, ids=[f"{kind}-{name}" for kind, name, _ in ALL_CALLS]
)
def test_every_call_after_close_says_already_closed(
    kind: str, name: str, call: Callable[[Any], Any], closed_by: str
) -> None:
    client = pulsarx.Client("memory:after-close")
    other = pulsarx.Client("memory:after-close") if closed_by == "its client" else None
    made = make_one_of_each(client)
    made["producer"].send(b"x")
    (made[kind] if closed_by == "itself" else client).close()
    if name == "close" and kind != "client" and closed_by != "itself":
        call(made[kind])  # as of the official client
        call(made[kind])
    else:
        with pytest.raises(errors.AlreadyClosed):
            call(made[kind])
    client.shutdown()
    if other is not None:
        other.close()


@pytest.mark.parametrize("kind", ["producer", "consumer", "reader"])
def test_names_can_be_asked_for_after_close(memory_client: pulsarx.Client, kind: str) -> None:
    made = make_one_of_each(memory_client)[kind]
    made.close()
    assert made.topic() == "persistent://public/default/t"
    assert not made.is_connected()
    assert "open=False" in repr(made)


def test_shutdown_may_be_called_again_and_again() -> None:
    client = pulsarx.Client("memory:")
    client.shutdown()
    client.shutdown()
    client.close()
    with pytest.raises(errors.AlreadyClosed):
        client.close()
    client.shutdown()


def test_messages_outlive_their_client(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s")
        client.create_producer("t").send(b"pinned", properties={"a": "b"}, partition_key="k")
        message = consumer.receive(0)
    for path in folder.rglob("*.ledger"):
        path.unlink()
    assert (message.data(), message.properties(), message.partition_key()) == (
        b"pinned",
        {"a": "b"},
        "k",
    )


def test_with_closes_everything() -> None:
    with pulsarx.Client("memory:with") as client:
        with (
            client.create_producer("t") as producer,
            client.subscribe("t", "s") as consumer,
            client.create_reader("t", pulsarx.MessageId.earliest) as reader,
        ):
            producer.send(b"x")
        assert not (producer.is_connected() or consumer.is_connected() or reader.is_connected())
    client.close()
    with pytest.raises(errors.AlreadyClosed):
        client.close()


def test_closing_inside_with_is_fine() -> None:
    with pulsarx.Client("memory:with") as client:
        with client.create_producer("t") as producer, client.subscribe("t", "s") as consumer:
            producer.close()
            consumer.close()
        client.close()


# Nothing sent is lost ----------------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_closing_in_the_middle_of_a_batch_loses_nothing(folder: Path, durability: str) -> None:
    client = pulsarx.Client(folder, durability=durability)
    producer = client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=10**6
    )
    for payload in numbers(10):
        producer.send_async(payload, None)
    client.close()
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == numbers(10)


def test_a_forgotten_client_loses_nothing_and_gives_the_folder_back(folder: Path) -> None:
    client = pulsarx.Client(folder)
    producer = client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=10**6
    )
    for payload in numbers(10):
        producer.send_async(payload, None)
    del client, producer
    gc.collect()
    with pulsarx.Client(folder, durability="os") as client:
        assert whole_topic(client) == numbers(10)


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_forgotten_client_is_waited_for_by_the_next_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    """That waited for the producer, which was forgotten with it, and not for what came of that: it
    met the folder still open with other options."""
    opened = threading.Event()
    for kind, name in ((TopicProducer, "close_forgotten"), (Leave, "__call__")):
        close = getattr(kind, name)
        monkeypatch.setattr(kind, name, lambda it, close=close: (opened.wait(0.1), close(it)))
    client = pulsarx.Client(folder)
    producer: Any = client.create_producer("t")
    for _ in range(kept):  # each keeps the one before, and lets it go when it is closed
        another: Any = client.create_producer("t")
        another.kept = producer
        producer = another
        del another
    del client, producer
    gc.collect()
    with pulsarx.Client(folder, durability="os"):
        opened.set()


def test_a_client_forgotten_in_a_cycle_loses_nothing(folder: Path) -> None:
    class Application:
        def __init__(self) -> None:
            self.client = pulsarx.Client(folder)
            self.producer = self.client.create_producer(
                "t", batching_enabled=True, batching_max_publish_delay_ms=10**6
            )
            self.consumer = self.client.subscribe("t", "s")
            self.myself = self

    application = Application()
    for payload in numbers(10):
        application.producer.send_async(payload, None)
    del application
    gc.collect()
    with pulsarx.Client(folder, durability="os") as client:
        assert whole_topic(client) == numbers(10)


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
@pytest.mark.parametrize(
    "ending", ["", "sys.exit(0)", "held = [client, producer]; held.append(held)"]
)
def test_leaving_the_interpreter_in_the_middle_of_a_batch_loses_nothing(
    folder: Path, durability: str, ending: str
) -> None:
    program = f"""
import sys, pulsarx
client = pulsarx.Client(sys.argv[1], durability={durability!r})
consumer = client.subscribe("t", "s")
producer = client.create_producer("t", batching_enabled=True, batching_max_publish_delay_ms=10**6)
told = []
for number in range(10):
    producer.send_async(b"%d" % number, lambda result, message_id: told.append(result))
{ending}
"""
    run_program(program, folder)
    with pulsarx.Client(folder) as client:
        assert payloads(client.subscribe("t", "s")) == numbers(10)
        assert all(
            path.name.endswith(".ledger")
            for path in (folder / "ledgers").rglob("*")
            if path.is_file()
        )


def test_an_uncaught_error_in_the_middle_of_a_batch_loses_nothing(folder: Path) -> None:
    program = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1])
producer = client.create_producer("t", batching_enabled=True, batching_max_publish_delay_ms=10**6)
producer.send_async(b"kept", None)
raise SystemError("on purpose")
"""
    with ChildProcess(program, folder) as child:
        child.rest()
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == [b"kept"]


# What is left behind -----------------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_close_leaves_no_descriptor_mapping_or_thread(folder: Path, durability: str) -> None:
    clock = pulsarx.ManualClock()
    before = set(threading.enumerate())
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=4)
    client = pulsarx.Client(folder, clock=clock, durability=durability, broker_options=options)
    producer = client.create_producer("t")
    consumer = client.subscribe("t", "s")
    for payload in numbers(30):
        producer.send_async(payload, lambda result, message_id: None)
    producer.flush()
    for message in drain(consumer)[:20]:
        consumer.acknowledge(message)
    del message
    client.close()
    gc.collect()
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert left <= {"pulsarx-control", "pulsarx-clock"}
    assert [name for name in open_paths() if str(folder) in name] == []
    del client, producer, consumer
    gc.collect()
    assert str(folder) not in Path("/proc/self/maps").read_text()


def test_an_idle_client_uses_no_cpu(folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s")
        client.create_producer("t").send(b"x")
        consumer.acknowledge(consumer.receive(0))
        found: list[float] = []
        # What ran before may be at its end in the first of them.
        while len(found) < 5 and (not found or min(found) >= 0.05):
            waiter = threading.Thread(target=consumer.receive_many, args=(1, 250))
            waiter.start()
            began = time.process_time()
            waiter.join()
            found.append(time.process_time() - began)
        assert min(found) < 0.05


def test_help_says_what_each_argument_of_subscribe_means_that_is_ours() -> None:
    """It named a class in which they were explained, and which nobody can find."""
    parameters = inspect.signature(pulsarx.Client.subscribe).parameters.values()
    ours = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    assert len(ours) > 5
    for name in ours:
        assert re.search(rf"^ +.*\b{name}\b.*:", pulsarx.Client.subscribe.__doc__ or "", re.M), name
