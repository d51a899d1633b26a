"""Facts about object stores that are read without the folder: what was offloaded there, to where,
and what a reader gets while it changes."""

from __future__ import annotations

import json
import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from offload_steps import LOOK_SECONDS, SENT, Store, ids_and_values, offload, offloaded, publish

import pulsarx
from pulsarx import ManualClock, errors
from pulsarx.backups import backup, restore
from pulsarx.broker.offload import history_writer, offload_monitor
from pulsarx.broker.offload.history_writer import keep_history
from pulsarx.broker.offload.stored_broker import StoredBroker
from pulsarx.broker.offload.stored_object import StoredObject
from pulsarx.broker.offload.topic_history import document_of
from pulsarx.broker.scan.plan import plan
from pulsarx.broker.scan.read_range import read_range
from pulsarx.schema import JsonSchema, Long, Record
from pulsarx.testing import inspect

TOPIC = "persistent://public/default/t"
STORED = 30  # messages of the three full ledgers


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "data", tmp_path / "a store")


def url_of(store: Store) -> str:
    return store.place.as_uri()


def histories(store: Store) -> list[Path]:
    return sorted(store.place.rglob("*.json"))


def read(url: str, topic: str = "t") -> list[tuple[str, bytes]]:
    with pulsarx.Client(url, read_only=True) as client:
        return ids_and_values(client, topic)


def look(client: pulsarx.Client, clock: ManualClock) -> None:
    """An owner that has topics open looks at the store."""
    client.admin.topics.stats("t")
    clock.advance(LOOK_SECONDS)


# Reading


def test_what_was_offloaded_is_read_without_the_folder(
    store: Store, manual_clock: ManualClock
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        before = ids_and_values(client)
        assert offload(client)["status"] == "SUCCESS"
        assert read(url_of(store)) == before[:STORED]  # beside its owner
        manual_clock.advance(LOOK_SECONDS)
    shutil.rmtree(store.folder)
    for url in (url_of(store), str(store.place), url_of(store) + "/"):
        assert read(url) == before[:STORED]
    with pulsarx.Client(url_of(store), read_only=True) as client:
        assert client.admin.topics.get_list("public/default") == [TOPIC]
        assert client.admin.topics.stats("t")["messages"] == STORED
        table = client.read_table("t", schema=pulsarx.schema.BytesSchema())
        assert table["value"].to_pylist() == SENT[:STORED]
        reader = client.create_reader("t", pulsarx.MessageId.from_text(before[12][0]))
        assert reader.read_next(0).data() == SENT[13]
        with pytest.raises(errors.TopicNotFound, match="as far as it was offloaded"):
            client.create_reader("other", pulsarx.MessageId.earliest)
        with pytest.raises(errors.PulsarException):
            client.create_producer("t")


def test_a_store_that_was_moved_is_read_by_its_new_url(
    store: Store, manual_clock: ManualClock, tmp_path: Path
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
    elsewhere = store.place.rename(tmp_path / "elsewhere")
    found = read(elsewhere.as_uri())
    assert [value for _, value in found] == SENT[:STORED]


def test_schemas_are_in_the_store(store: Store, manual_clock: ManualClock) -> None:
    class Reading(Record):
        number = Long(required=True)

    with store.open(manual_clock) as client:
        producer = client.create_producer("t", schema=JsonSchema(Reading))
        for number in range(30):
            producer.send(Reading(number=number))
        offloaded(client, manual_clock)
    with pulsarx.Client(url_of(store), read_only=True) as client:
        assert client.read_table("t")["number"].to_pylist() == list(range(20))


def test_aborted_messages_are_not_there(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        producer = client.create_producer("t")
        kept = []
        for number in range(8):
            transaction = client.new_transaction()
            for part in range(4):
                producer.send(b"%d.%d" % (number, part), transaction=transaction)
            if number % 2:
                transaction.commit()
                kept += [b"%d.%d" % (number, part) for part in range(4)]
            else:
                transaction.abort()
        publish(client, values=SENT[:20])
        expected = ids_and_values(client)
        assert [value for _, value in expected][:16] == kept
        offloaded(client, manual_clock)
    found = read(url_of(store))
    assert len(found) > 16 and found == expected[: len(found)]
    broker = StoredBroker(url_of(store))
    assert _values(broker) == [value for _, value in found]
    broker.close()


def _values(broker: StoredBroker) -> list[bytes]:
    """As a job reads them."""
    pa = pytest.importorskip("pyarrow")
    return [
        value.as_py()
        for each in plan(broker, "t")
        for batch in read_range(each, ["value"])
        for value in pa.record_batch(batch).column(0)
    ]


def test_partitions_are_read_and_those_without_objects_are_empty(
    store: Store, manual_clock: ManualClock
) -> None:
    with store.open(manual_clock) as client:
        client.admin.topics.create_partitioned_topic("p", 3)
        for partition, count in ((0, 35), (2, 15)):
            publish(client, f"p-partition-{partition}", SENT[:count])
            offloaded(client, manual_clock, f"p-partition-{partition}")
    with pulsarx.Client(url_of(store), read_only=True) as client:
        assert len(client.get_topic_partitions("p")) == 3
        found = [len(ids_and_values(client, f"p-partition-{each}")) for each in range(3)]
        assert found == [30, 0, 10]
        table = client.read_table("p", schema=pulsarx.schema.BytesSchema())
        assert sorted(table["value"].to_pylist()) == sorted(SENT[:30] + SENT[:10])
    broker = StoredBroker(url_of(store), ["p"])
    told = broker.ends_told([f"persistent://public/default/p-partition-{at}" for at in range(2)])
    assert "its history ends with ledger" in told[0] and "nothing of it was offloaded" in told[1]
    broker.close()


def test_merged_ledgers_are_read(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        before = ids_and_values(client)
        inspect(client).settle()
        assert client.admin.topics.merge_ledgers("t")["files"] == 1
        offloaded(client, manual_clock)
        assert len(store.objects()) == 1
    assert read(url_of(store)) == before[:STORED]


@pytest.mark.needs("fsspec")
def test_stores_of_fsspec_are_read(store: Store, manual_clock: ManualClock) -> None:
    url = "memory://histories/of a test"
    with store.open(manual_clock, offload_url=url) as client:
        publish(client)
        offloaded(client, manual_clock)
        broker = StoredBroker(url)
        assert _values(broker) == SENT[:STORED]
        broker.close()


# Changes


def test_what_retention_removed_is_gone_before_its_object(
    store: Store, manual_clock: ManualClock
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        broker = StoredBroker(url_of(store))
        ranges = plan(broker, "t")
        client.admin.topics.truncate("t")
        manual_clock.advance(LOOK_SECONDS)
        assert store.objects() == histories(store) == []
        with pytest.raises(errors.TopicNotFound):
            read(url_of(store))
        with pytest.raises(errors.FolderError, match="Retention has removed it since the range"):
            list(read_range(ranges[0], ["value"]))
        broker.close()


def test_objects_stay_while_the_store_still_names_them(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        consumer = client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
        for _ in range(20):
            last = consumer.receive(60_000)
        consumer.acknowledge_cumulative(last)
        inspect(client).settle()
        with monkeypatch.context() as patch:
            patch.setattr(StoredObject, "put", _refused)
            manual_clock.advance(LOOK_SECONDS)
        assert len(store.objects()) == 3
        assert [value for _, value in read(url_of(store))] == SENT[:STORED]
        manual_clock.advance(LOOK_SECONDS)
        assert len(store.objects()) == 1
        assert [value for _, value in read(url_of(store))] == SENT[20:STORED]


def test_a_topic_that_is_deleted_is_deleted_there(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        for topic in ("t", "u"):
            publish(client, topic)
            offloaded(client, manual_clock, topic)
        client.admin.topics.delete("t", force=True)
        manual_clock.advance(LOOK_SECONDS)
        publish(client, "t", SENT[:5])
        manual_clock.advance(LOOK_SECONDS)
    with pulsarx.Client(url_of(store), read_only=True) as client:
        assert client.admin.topics.get_list("public/default") == [TOPIC[:-1] + "u"]


def test_a_history_that_says_the_same_is_not_written_again(
    store: Store, manual_clock: ManualClock
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        (first,) = histories(store)
        publish(client, values=SENT[:7])
        manual_clock.advance(LOOK_SECONDS)
    with store.open(manual_clock) as client:
        look(client, manual_clock)
        assert histories(store) == [first]
        publish(client)
        offloaded(client, manual_clock)
        (second,) = histories(store)
        assert second.name > first.name
        whole = ids_and_values(client)
    found = read(url_of(store))
    assert len(found) > 60 and found == whole[: len(found)]


def test_ledgers_that_were_offloaded_before_get_their_history(
    store: Store, manual_clock: ManualClock
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
    for each in histories(store):
        shutil.rmtree(each.parents[1])
    with pytest.raises(errors.FolderError, match="not a PulsarX data directory"):
        read(url_of(store))
    with pytest.raises(errors.FolderError, match=r"no history of topics.*offload_url"):
        StoredBroker(url_of(store))
    with store.open(manual_clock) as client:
        look(client, manual_clock)
    assert len(read(url_of(store))) == STORED


def test_a_damaged_ledger_in_between_is_told(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        inspect(client).settle()
        path = min(store.sealed(client), key=lambda each: int(each.stem))
    data = bytearray(path.read_bytes())
    data[4300] ^= 255
    path.write_bytes(data)
    with store.open(manual_clock) as client:
        offloaded(client, manual_clock)
        assert len(store.objects()) == 3  # two full ones, and the one of five
    broker = StoredBroker(url_of(store))
    assert f"damaged ledgers are not there: {path.stem}" in broker.ends_told([TOPIC])[0]
    first, *others = plan(broker, "t")
    with pytest.raises(errors.FolderError, match="it was not offloaded, though others behind it"):
        list(read_range(first, ["value"]))
    assert all(list(read_range(each, ["value"])) for each in others)
    broker.close()


def _body(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes().partition(b"\n")[2])["body"]
    return found


def test_histories_of_partitions_tell_of_the_whole_topic(
    store: Store, manual_clock: ManualClock
) -> None:
    """Partitions that were made since, and those of a topic of the same name before, were not told
    apart from what was there."""
    with store.open(manual_clock) as client:
        client.admin.topics.create_partitioned_topic("p", 2)
        for partition in range(2):
            publish(client, f"p-partition-{partition}")
            assert offload(client, f"p-partition-{partition}")["status"] == "SUCCESS"
        assert {_body(each)["partitions"] for each in histories(store)} == {2}
    with store.open(manual_clock) as client:
        client.admin.topics.update_partitioned_topic("p", 4)
        publish(client, "p-partition-2")
        assert offload(client, "p-partition-2")["status"] == "SUCCESS"
        publish(client)
        offload(client)
        topics = inspect(client).catalogue.state.topics
        ids = {name.rpartition("/")[2]: topics[name].topic_id for name in topics}
    found = [_body(each) for each in histories(store)]
    told = sorted(
        (each["record"][1].rpartition("/")[2], each["partitions"], each["whole_id"])
        for each in found
    )
    expected = [(f"p-partition-{at}", 4, ids["p"]) for at in range(3)]
    assert told == [*expected, ("t", 0, ids["t"])]


def test_what_is_deleted_while_the_owner_looks_is_gone_before_its_objects(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store told for ever of a topic whose objects had gone."""

    def deleting(runtime: Any, topic: str, urls: list[str]) -> Any:
        behind = keep_history(runtime, topic, urls)
        if not deleted:
            deleted.append(topic)
            client.admin.topics.delete(topic, force=True)
        return behind

    deleted: list[str] = []
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        publish(client, "u", SENT[:5])
        monkeypatch.setattr(offload_monitor, "keep_history", deleting)
        manual_clock.advance(LOOK_SECONDS)
        assert deleted == [TOPIC]
        assert store.objects() == histories(store) == []


def test_a_history_that_the_store_makes_late_does_not_count(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had the number of one that was written since, and took its place."""
    late: list[tuple[StoredObject, bytes]] = []

    def put_late(there: StoredObject, data: bytes) -> None:
        late.append((there, data))
        _refused(there, data)

    with store.open(manual_clock) as client:
        publish(client)
        with monkeypatch.context() as patch:
            patch.setattr(StoredObject, "put", put_late)
            offload(client)
        publish(client)
        offload(client)
        (newest,) = histories(store)
        for there, data in late:
            assert there.location.rpartition("/")[2].partition("-1.")[2][:12] < newest.name[3:15]
            there.put(data)
        assert len(histories(store)) == 2
        assert len(read(url_of(store))) == 60
        client.admin.topics.delete("t", force=True)
        manual_clock.advance(LOOK_SECONDS)
        assert histories(store) == []
        for there, data in late:
            there.make_place()
            there.put(data)
    with store.open(manual_clock) as client:
        publish(client, "u", SENT[:5])
        manual_clock.advance(LOOK_SECONDS)
        assert histories(store) == []


def test_a_history_that_cannot_be_written_is_told(
    store: Store,
    manual_clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The run was a success, and nothing was in the log."""
    with store.open(manual_clock) as client:
        publish(client)
        with monkeypatch.context() as patch, caplog.at_level(logging.ERROR):
            patch.setattr(StoredObject, "put", _refused)
            found = offload(client)
        assert found["status"] == "ERROR"
        assert "its history in the store was not written, which is tried" in found["last_error"]
        assert "no route to host" in found["last_error"]
        assert f"{TOPIC}: its history was not written" in caplog.text
        assert len(store.objects()) == 3
        assert offload(client) == {"status": "SUCCESS", "last_error": ""}
    assert len(read(url_of(store))) == STORED


def test_closing_does_not_wait_for_histories(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for the store once for each topic that was to be offloaded."""
    size, listed = StoredObject.size, []

    def closing(there: StoredObject) -> int | None:
        monkeypatch.setattr(StoredObject, "size", size)
        monkeypatch.setattr(history_writer, "objects_below", lambda url: listed.append(url) or [])
        thread.start()
        while client_state.is_open:
            pass
        return size(there)

    client = store.open(manual_clock)
    client_state = inspect(client).runtime.state
    thread = threading.Thread(target=client.close)
    for topic in ("t", "u"):
        publish(client, topic)
    inspect(client).settle()
    runtime = inspect(client).runtime
    monkeypatch.setattr(StoredObject, "size", closing)
    asked = threading.Event()
    runtime.offloads.post(asked.wait)
    for topic in ("t", "u"):
        client.admin.topics.offload(topic, 0)
    asked.set()
    runtime.offloads.wait()
    thread.join()
    assert listed == []


def test_objects_of_others_are_passed_over(store: Store, manual_clock: ManualClock) -> None:
    """One stopped the monitor for all topics."""
    with store.open(manual_clock) as client:
        for topic in ("t", "u"):
            publish(client, topic)
            offload(client, topic)
        strange = [
            path.with_name(name)
            for path in histories(store)
            for name in ("copy.1.json", "-1.x.json", "-1.9", "0.1-.json")
        ]
        for each in strange:
            each.write_bytes(b"x")
        publish(client)
        offload(client)
        for topic in ("t", "u"):
            client.admin.topics.delete(topic, force=True)
        manual_clock.advance(LOOK_SECONDS)
        assert store.objects() == []
        assert histories(store) == sorted(path for path in strange if path.suffix == ".json")
    with store.open(manual_clock) as client:
        look_at_all(client, manual_clock)
        assert all(each.exists() for each in strange)


def look_at_all(client: pulsarx.Client, clock: ManualClock) -> None:
    publish(client, "another", SENT[:1])
    clock.advance(LOOK_SECONDS)


def test_a_failure_of_one_topic_leaves_the_others_be_looked_at(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(runtime: Any, topic: str, urls: list[str]) -> Any:
        if topic == TOPIC:
            raise ValueError("of a topic")
        return keep_history(runtime, topic, urls)

    with store.open(manual_clock) as client:
        for topic in ("t", "u"):
            publish(client, topic)
            offload(client, topic)
            client.admin.topics.delete(topic, force=True)
        with monkeypatch.context() as patch:
            patch.setattr(offload_monitor, "keep_history", failing)
            manual_clock.advance(LOOK_SECONDS)
        assert len(store.objects()) == 3 and len(histories(store)) == 1
        manual_clock.advance(LOOK_SECONDS)
        assert store.objects() == histories(store) == []


def test_a_topic_of_which_nothing_changed_costs_nothing(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def counted(state: Any, topic: str, *more: Any) -> Any:
        made.append(topic)
        return document_of(state, topic, *more)

    with store.open(manual_clock) as client:
        for topic in ("t", "u"):
            publish(client, topic)
            offloaded(client, manual_clock, topic)
        monkeypatch.setattr(history_writer, "document_of", counted)
        publish(client, "u")
        inspect(client).settle()
        manual_clock.advance(LOOK_SECONDS)
        assert made == [TOPIC[:-1] + "u"]


def test_a_run_does_not_wait_until_all_topics_are_looked_at(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look of an owner asks the store about each topic."""
    topics = [f"t{number}" for number in range(4)]
    seen: list[int] = []

    def asking(runtime: Any, topic: str, urls: list[str]) -> Any:
        if not seen:
            client.admin.topics.offload("u", 0)
        seen.append(len(store.objects()))
        return keep_history(runtime, topic, urls)

    with store.open(manual_clock) as client:
        for topic in topics:
            publish(client, topic, SENT[:15])
            offload(client, topic)
    with store.open(manual_clock) as client:
        publish(client, "u", SENT[:25])
        inspect(client).settle()
        monkeypatch.setattr(offload_monitor, "keep_history", asking)
        manual_clock.advance(LOOK_SECONDS)
    assert seen == [4, 6, 6, 6]


def test_a_store_that_is_not_used_any_more_tells_what_is_there(
    store: Store, manual_clock: ManualClock, tmp_path: Path
) -> None:
    """Its histories stayed as they were for ever."""
    new = (tmp_path / "another store").as_uri() + "/"
    with store.open(manual_clock) as client:
        for topic in ("t", "u"):
            publish(client, topic)
            offloaded(client, manual_clock, topic)
    with store.open(manual_clock, offload_url=new) as client:
        publish(client)
        offloaded(client, manual_clock)
        whole = ids_and_values(client)
        for url in (url_of(store), new):
            assert read(url) == whole[: len(read(url))]
            assert len(read(url)) > 60
        client.admin.topics.delete("u", force=True)
        consumer = client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
        for _ in range(len(SENT)):
            last = consumer.receive(60_000)
        consumer.acknowledge_cumulative(last)
        inspect(client).settle()
        manual_clock.advance(LOOK_SECONDS)
        assert store.objects() == histories(store) == []
        assert read(new) == whole[len(SENT) : len(SENT) + len(read(new))]


def test_a_store_that_is_not_mounted_is_not_taken_for_an_empty_one(
    store: Store, manual_clock: ManualClock, tmp_path: Path
) -> None:
    """What a look wrote there said that all messages were gone: they counted as acknowledged."""
    with store.open(manual_clock) as client:
        client.create_reader("t", pulsarx.MessageId.earliest).close()
        publish(client)
        before = ids_and_values(client)
        offloaded(client, manual_clock)
    away = store.place.rename(tmp_path / "not mounted")
    with store.open(manual_clock) as client:
        look(client, manual_clock)
        publish(client, "u")
        assert offload(client, "u")["status"] == "ERROR"
        assert not store.place.exists()
    away.rename(store.place)
    with store.open(manual_clock) as client:
        look(client, manual_clock)
        assert ids_and_values(client) == before


def test_a_store_that_is_gone_for_ever_keeps_no_other_back(
    store: Store, manual_clock: ManualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Runs ended as errors though all was stored, and objects stayed when the topic was deleted."""
    new = (tmp_path / "another store").as_uri() + "/"
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
    store.place.rename(tmp_path / "gone")
    with store.open(manual_clock, offload_url=new) as client:
        publish(client)
        assert offload(client) == {"status": "SUCCESS", "last_error": ""}
        look(client, manual_clock)
        assert f"{TOPIC}: " in caplog.text
        assert list((tmp_path / "another store").rglob("*.ledger"))
        client.admin.topics.delete("t", force=True)
        manual_clock.advance(LOOK_SECONDS)
        assert not [path for path in (tmp_path / "another store").rglob("*") if path.is_file()]
        assert not store.place.exists()


def test_two_names_of_a_store_are_one_place(
    store: Store, manual_clock: ManualClock, tmp_path: Path
) -> None:
    (tmp_path / "other name").symlink_to(store.place, target_is_directory=True)
    other = (tmp_path / "other name").as_uri()
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
    with store.open(manual_clock, offload_url=other) as client:
        publish(client, "u")
        offloaded(client, manual_clock, "u")
        look(client, manual_clock)
        assert len(read(other, "u")) == STORED
        publish(client)
        offloaded(client, manual_clock)
        consumer = client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
        for _ in range(len(SENT)):
            last = consumer.receive(60_000)
        consumer.acknowledge_cumulative(last)
        inspect(client).settle()
        manual_clock.advance(LOOK_SECONDS)
        assert len(read(other)) > 0
        assert len(read(other, "u")) == STORED


def test_histories_of_a_folder_before_its_backup_was_restored_are_set_aside(
    store: Store, manual_clock: ManualClock, tmp_path: Path
) -> None:
    """They told of messages that had the ids of others."""
    with store.open(manual_clock) as client:
        publish(client)
        backup(store.folder, tmp_path / "backup")
        offloaded(client, manual_clock)
    (path,) = histories(store)
    data = path.read_bytes()
    shutil.rmtree(store.folder)
    restore(tmp_path / "backup", store.folder)
    with store.open(manual_clock) as client:
        client.admin.topics.delete("t", force=True)
        publish(client, values=SENT[:5])
        manual_clock.advance(LOOK_SECONDS)
        with pytest.raises(errors.TopicNotFound):
            read(url_of(store))
    (aside,) = histories(store)
    assert aside.read_bytes() == data
    assert aside.parents[1].name == "superseded"
    path.parent.mkdir(parents=True, exist_ok=True)
    aside.rename(path)
    assert len(read(url_of(store))) == STORED


def test_a_history_with_more_objects_than_a_restored_backup_knows_is_set_aside(
    store: Store, manual_clock: ManualClock, tmp_path: Path
) -> None:
    """Nothing told any more what they were."""
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        backup(store.folder, tmp_path / "backup")
        publish(client)
        offloaded(client, manual_clock)
    (path,) = histories(store)
    data, whole = path.read_bytes(), read(url_of(store))
    shutil.rmtree(store.folder)
    restore(tmp_path / "backup", store.folder)
    with store.open(manual_clock) as client:
        look(client, manual_clock)
        publish(client, values=SENT[:5])
        offloaded(client, manual_clock)
    assert len(read(url_of(store))) < len(whole)
    (aside,) = [each for each in histories(store) if "superseded" in each.parts]
    assert aside.read_bytes() == data
    for each in histories(store):
        if each != aside:
            each.unlink()
    aside.rename(path)
    assert read(url_of(store)) == whole


# Kills and damage


def _refused(there: StoredObject, data: bytes) -> None:
    raise errors.StorageError(detail=f"write {there.location}: no route to host")


def _before(_: Callable[..., Any], *__: Any) -> None:
    raise OSError(5, "killed")


def _half(put: Callable[..., Any], there: StoredObject, data: bytes) -> None:
    put(there, data[: len(data) // 2])
    raise OSError(5, "killed")


def _behind(call: Callable[..., Any], *arguments: Any) -> None:
    call(*arguments)
    raise OSError(5, "killed")


@pytest.mark.parametrize(
    ("name", "dies"),
    [
        ("put", _before), ("put", _half), ("put", _behind),
        ("read_all", _before), ("remove", _before), ("remove", _behind),
    ],
)  # fmt: skip
def test_a_writer_that_dies_leaves_the_old_or_the_new(
    store: Store,
    manual_clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    dies: Callable[..., Any],
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
    with store.open(manual_clock) as client:
        publish(client, values=SENT[:25])  # behind a ledger of five: up to the end of another
        whole = ids_and_values(client)
        with monkeypatch.context() as patch:
            call = getattr(StoredObject, name)
            patch.setattr(StoredObject, name, lambda *given: dies(call, *given))
            client.admin.topics.offload("t", 0)
            inspect(client).settle()
        found = read(url_of(store))
        is_told = name == "remove" or dies is _behind
        assert len(found) == (55 if is_told else 30)
        assert found == whole[: len(found)]
    with store.open(manual_clock) as client:
        look(client, manual_clock)
        assert read(url_of(store)) == whole[:55]
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        assert len(histories(store)) == 1


def test_histories_that_are_damaged_or_newer_are_told(
    store: Store, manual_clock: ManualClock
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
    (path,) = histories(store)
    data = path.read_bytes()
    later = path.with_name("-1.999999999999.json")
    for broken in (b"", data[:-1], data.replace(b"persistent", b"Persistent"), b"\x00" * 99):
        later.write_bytes(broken)
        assert len(read(url_of(store))) == STORED
    later.write_bytes(data.replace(b"pulsarx-history 1 ", b"pulsarx-history 2 "))
    with pytest.raises(errors.NewerFormatError, match="Upgrade"):
        read(url_of(store))
    later.unlink()
    path.write_bytes(data[:-1])
    with pytest.raises(errors.CorruptDataError, match="no history of partition -1 is whole"):
        read(url_of(store))
    with store.open(manual_clock) as client:
        look(client, manual_clock)
    assert len(read(url_of(store))) == STORED


def test_objects_that_are_cut_or_others_are_damage(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
    first, second, third = store.objects()
    broker = StoredBroker(url_of(store))
    ranges = plan(broker, "t")
    first.write_bytes(first.read_bytes()[:4200])
    second.write_bytes(third.read_bytes())
    for each, path in ((ranges[0], first), (ranges[1], second)):
        with pytest.raises(errors.CorruptDataError, match=path.name):
            list(read_range(each, ["value"]))
    assert list(read_range(ranges[2], ["value"]))
    broker.close()


def test_a_history_that_changes_while_it_is_looked_for_is_found(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        read_all, changes = StoredObject.read_all, [True]

        def read_late(there: StoredObject) -> bytes | None:
            if changes:
                changes.clear()
                publish(client)
                offloaded(client, manual_clock)
            return read_all(there)

        monkeypatch.setattr(StoredObject, "read_all", read_late)
        broker = StoredBroker(url_of(store))
        assert len(_values(broker)) >= 60
        broker.close()


# Names


def test_the_folders_of_one_place_are_told_apart(
    store: Store, manual_clock: ManualClock, tmp_path: Path
) -> None:
    other = Store(tmp_path / "other", store.place)
    for each, topic in ((store, "t"), (other, "u")):
        with each.open(manual_clock) as client:
            publish(client, topic)
            offloaded(client, manual_clock, topic)
            place = f"{url_of(store)}/{inspect(client).broker.directory.folder_id}"
    with pytest.raises(errors.FolderError, match="histories of 2 folders; give that of one: file"):
        read(url_of(store))
    assert len(read(place, "u")) == STORED


def test_urls_that_cannot_be_read_are_refused() -> None:
    with pytest.raises(errors.OperationNotSupported, match="give read_only=True"):
        pulsarx.Client("s3://bucket/prefix")
    with pytest.raises(errors.InvalidUrl, match="credentials") as found:
        pulsarx.Client("s3a://key:s3cret@bucket/prefix", read_only=True)
    assert "s3cret" not in str(found.value)
