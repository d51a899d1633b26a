"""A table view: the last value of each key, and who is told of updates."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest
from topic_reading import OpenClient

import pulsarx
from pulsarx import schema
from pulsarx.broker.topics.topic import Topic

WAIT_SECONDS = 60


class Updates:
    """A listener that keeps what it is told, and can be waited for."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Any]] = []
        self.changed = threading.Condition()

    def __call__(self, key: str, value: Any) -> None:
        with self.changed:
            self.told.append((key, value))
            self.changed.notify_all()

    def wait_for(self, count: int) -> list[tuple[str, Any]]:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.told) >= count, WAIT_SECONDS)
            return list(self.told)


def test_a_view_holds_the_last_value_of_each_key(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    for number in range(10):
        producer.send(b"%d" % number, partition_key=f"k{number % 3}")
    view = memory_client.create_table_view("t")
    assert len(view) == 3
    assert view.get("k0") == b"9"
    assert view.get("k1") == b"7"
    assert view["k2"] == b"8"
    assert sorted(view.keys()) == ["k0", "k1", "k2"] == sorted(view)
    assert sorted(view.items()) == [("k0", b"9"), ("k1", b"7"), ("k2", b"8")]
    assert sorted(view.values()) == [b"7", b"8", b"9"]
    assert "k1" in view


def test_a_key_that_is_not_there_has_no_value(memory_client: pulsarx.Client) -> None:
    view = memory_client.create_table_view("t")
    assert view.get("k") is None
    assert view.get("k", b"other") == b"other"
    assert "k" not in view
    with pytest.raises(KeyError):
        view["k"]


def test_messages_without_a_key_are_ignored(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    producer.send(b"keyless")
    producer.send(b"v", partition_key="k")
    view = memory_client.create_table_view("t")
    assert view.items() == [("k", b"v")]


@pytest.mark.parametrize("nothing", [None, b""])
def test_a_message_without_content_removes_its_key(
    memory_client: pulsarx.Client, nothing: bytes | None
) -> None:
    producer = memory_client.create_producer("t")
    producer.send(b"v", partition_key="gone")
    producer.send(b"v", partition_key="stays")
    producer.send(nothing, partition_key="gone")
    view = memory_client.create_table_view("t")
    assert view.items() == [("stays", b"v")]
    updates = Updates()
    view.for_each_and_listen(updates)
    producer.send(nothing, partition_key="stays")
    assert updates.wait_for(2) == [("stays", b"v"), ("stays", b"")]
    assert len(view) == 0


def test_the_view_follows_the_topic(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    producer.send(b"1", partition_key="a")
    view = memory_client.create_table_view("t")
    updates = Updates()
    view.for_each_and_listen(updates)
    producer.send(b"2", partition_key="a")
    producer.send(b"3", partition_key="b")
    assert updates.wait_for(3) == [("a", b"1"), ("a", b"2"), ("b", b"3")]
    assert view.get("a") == b"2"


def test_for_each_tells_what_is_there_and_nothing_later(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    producer.send(b"1", partition_key="a")
    view = memory_client.create_table_view("t")
    once, all_of_them = Updates(), Updates()
    view.for_each(once)
    view.for_each_and_listen(all_of_them)
    producer.send(b"2", partition_key="a")
    all_of_them.wait_for(2)
    assert once.told == [("a", b"1")]


def test_what_a_callback_of_for_each_raises_comes_out(memory_client: pulsarx.Client) -> None:
    memory_client.create_producer("t").send(b"1", partition_key="a")
    view = memory_client.create_table_view("t")
    with pytest.raises(ZeroDivisionError):
        view.for_each(lambda key, value: 1 // 0)


def test_what_a_listener_raises_at_an_update_is_logged_and_others_are_told(
    memory_client: pulsarx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    producer = memory_client.create_producer("t")
    view = memory_client.create_table_view("t")
    updates = Updates()
    with caplog.at_level(logging.ERROR, "pulsarx"):
        view.for_each_and_listen(lambda key, value: 1 // 0)
        view.for_each_and_listen(updates)
        producer.send(b"1", partition_key="a")
        updates.wait_for(1)
    raised = [each for each in caplog.records if "listener of a table view" in each.message]
    assert len(raised) == 1
    assert view.get("a") == b"1"


def test_a_listener_that_raises_at_what_is_there_is_not_added(
    memory_client: pulsarx.Client,
) -> None:
    producer = memory_client.create_producer("t")
    producer.send(b"1", partition_key="a")
    view = memory_client.create_table_view("t")
    updates, told = Updates(), []

    def listen(key: str, value: Any) -> None:
        told.append(value)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        view.for_each_and_listen(listen)
    view.for_each_and_listen(updates)
    producer.send(b"2", partition_key="a")
    updates.wait_for(2)
    assert told == [b"1"]


@pytest.mark.parametrize("callback", [None, 7])
def test_a_callback_that_cannot_be_called_is_refused(
    memory_client: pulsarx.Client, callback: Any
) -> None:
    view = memory_client.create_table_view("t")
    with pytest.raises(TypeError):
        view.for_each(callback)
    with pytest.raises(TypeError):
        view.for_each_and_listen(callback)


def test_no_update_is_lost_or_told_twice_when_a_listener_is_added(
    memory_client: pulsarx.Client,
) -> None:
    """The pass over what is there and the first update must meet without a gap."""
    count = 3000
    producer = memory_client.create_producer("t", batching_enabled=True, block_if_queue_full=True)
    view = memory_client.create_table_view("t")

    def publish() -> None:
        for number in range(count):
            producer.send_async(b"%d" % number, None, partition_key="k")
        producer.flush()

    thread = threading.Thread(target=publish)
    thread.start()
    listeners = []
    while thread.is_alive() and len(listeners) < 50:
        listener = Updates()
        view.for_each_and_listen(listener)
        listeners.append(listener)
    thread.join()
    for listener in listeners:
        with listener.changed:
            assert listener.changed.wait_for(
                lambda told=listener.told: told and told[-1][1] == b"%d" % (count - 1), WAIT_SECONDS
            )
        numbers = [int(value) for _, value in listener.told]
        assert numbers == list(range(numbers[0], count))


def test_a_view_of_a_partitioned_topic_holds_all_partitions(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic("p", 4)
    producer = memory_client.create_producer("p")
    wanted = {f"k{number}": b"%d" % number for number in range(40)}
    for key, value in wanted.items():
        producer.send(value, partition_key=key)
    view = memory_client.create_table_view("p")
    assert dict(view.items()) == wanted


def test_a_view_takes_up_new_partitions(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic("p", 1)
    view = memory_client.create_table_view("p")
    updates = Updates()
    view.for_each_and_listen(updates)
    memory_client.admin.topics.update_partitioned_topic("p", 3)
    producer = memory_client.create_producer("p-partition-2")
    producer.send(b"v", partition_key="k")
    assert updates.wait_for(1) == [("k", b"v")]


def test_values_are_decoded_by_the_schema(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t", schema=schema.StringSchema())
    producer.send("text", partition_key="k")
    view = memory_client.create_table_view("t", schema=schema.StringSchema())
    assert view.get("k") == "text"
    updates = Updates()
    view.for_each_and_listen(updates)
    producer.send(None, partition_key="k")
    assert updates.wait_for(2) == [("k", "text"), ("k", "")]


class Picky(schema.BytesSchema):
    def decode(self, data: bytes) -> bytes:
        if data == b"bad":
            raise UnicodeError("bad")
        return data


def test_a_value_that_the_schema_refuses_raises_when_it_is_asked_for(
    memory_client: pulsarx.Client,
) -> None:
    producer = memory_client.create_producer("t")
    producer.send(b"bad", partition_key="bad")
    producer.send(b"good", partition_key="good")
    view = memory_client.create_table_view("t", schema=Picky())
    assert view.get("good") == b"good"
    assert len(view) == 2
    for _ in range(2):
        with pytest.raises(UnicodeError, match="bad"):
            view.get("bad")


def test_a_view_with_another_schema_than_the_topic_is_refused(
    memory_client: pulsarx.Client,
) -> None:
    memory_client.create_producer("t", schema=schema.StringSchema()).send("x", partition_key="k")
    assert memory_client.create_table_view("t", schema=schema.StringSchema()).get("k") == "x"
    with pytest.raises(pulsarx.IncompatibleSchema):
        memory_client.create_table_view("t", schema=schema.Int32Schema())


def test_a_view_survives_a_restart_of_the_folder(open_client: OpenClient) -> None:
    client = open_client()
    client.create_producer("t").send(b"v", partition_key="k")
    client.close()
    view = open_client().create_table_view("t", "name")
    assert view.get("k") == b"v"
    assert "subscription_name='name'" in repr(view)
    assert view.topic() == "persistent://public/default/t"


def test_a_closed_view_stays_readable_and_follows_no_more(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    producer.send(b"1", partition_key="k")
    view = memory_client.create_table_view("t")
    other = memory_client.create_table_view("t")
    updates = Updates()
    other.for_each_and_listen(updates)
    view.close()
    producer.send(b"2", partition_key="k")
    updates.wait_for(2)
    assert view.get("k") == b"1"
    with pytest.raises(pulsarx.AlreadyClosed):
        view.close()
    with pytest.raises(pulsarx.AlreadyClosed):
        view.for_each_and_listen(updates)


def test_a_view_ends_with_its_client() -> None:
    client = pulsarx.Client("memory:")
    client.create_producer("t").send(b"1", partition_key="k")
    view = client.create_table_view("t")
    client.close()
    assert view.get("k") == b"1"
    view.close()
    with pytest.raises(pulsarx.AlreadyClosed):
        client.create_table_view("t")


def test_a_listener_may_make_a_view_and_add_listeners(memory_client: pulsarx.Client) -> None:
    """The one thread of the listeners is this one: nothing may wait for it."""
    producer = memory_client.create_producer("t")
    producer.send(b"1", partition_key="k")
    view = memory_client.create_table_view("t")
    inner = Updates()

    def listen(key: str, value: Any) -> None:
        if value == b"2":
            memory_client.create_table_view("t").for_each_and_listen(inner)
            view.for_each_and_listen(inner)

    view.for_each_and_listen(listen)
    producer.send(b"2", partition_key="k")
    producer.send(b"3", partition_key="k")
    told = inner.wait_for(3)  # the new view may have been made after the last message came
    assert ("k", b"2") in told
    assert ("k", b"3") in told


def test_a_view_holds_no_ledger_and_acknowledges_nothing(open_client: OpenClient) -> None:
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    client = open_client(broker_options=options)
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    view = client.create_table_view("t")
    updates = Updates()
    view.for_each_and_listen(updates)
    for number in range(10):
        producer.send(b"%d" % number, partition_key=f"k{number}")
    updates.wait_for(10)
    for number in range(10):
        message = consumer.receive(60_000)
        assert message.data() == b"%d" % number
        consumer.acknowledge(message)
    client.close()  # flushes what waits to be trimmed
    after = open_client(broker_options=options).create_table_view("t")
    assert len(view) == 10
    assert len(after) < 10


def test_a_view_beside_the_owner_is_refused(open_client: OpenClient, folder: Path) -> None:
    open_client()
    reading = open_client(read_only=True)
    with pytest.raises(pulsarx.OperationNotSupported, match="read_only"):
        reading.create_table_view("t")


def test_a_refused_view_leaves_nothing(memory_client: pulsarx.Client) -> None:
    with pytest.raises(pulsarx.InvalidTopicName):
        memory_client.create_table_view("a://b/c/d/e")
    with pytest.raises((ValueError, TypeError)):
        memory_client.create_table_view("t", schema=7)
    assert memory_client.admin.topics.get_list("public/default") == []


@pytest.mark.parametrize("partitions", [0, 2])
def test_a_topic_that_goes_while_it_is_opened_is_made_anew(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    """The call was refused with TopicNotFound, though it makes a topic that is missing."""
    topics = memory_client.admin.topics
    delete = topics.delete
    if partitions:
        topics.create_partitioned_topic("t", partitions)
        delete = topics.delete_partitioned_topic
    memory_client.create_producer("t").send(b"old", partition_key="k")
    reader_cursor = Topic.reader_cursor

    def deleting(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(Topic, "reader_cursor", reader_cursor)
        delete("t")
        return reader_cursor(*arguments, **named)

    monkeypatch.setattr(Topic, "reader_cursor", deleting)
    view = memory_client.create_table_view("t")
    updates = Updates()
    view.for_each_and_listen(updates)
    memory_client.create_producer("t").send(b"new", partition_key="k")
    assert updates.wait_for(1) == [("k", b"new")]
    assert topics.get_partitioned_topic_metadata("t") == {"partitions": 0}
