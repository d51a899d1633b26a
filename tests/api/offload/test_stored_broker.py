"""Facts about what a reader makes of the histories in an object store that are old, damaged, or of
several lives of a topic."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from offload_steps import SENT, Store, ids_and_values, offloaded, publish

import pulsarx
from pulsarx import ManualClock, MessageId, errors
from pulsarx.broker.offload.stored_broker import StoredBroker
from pulsarx.broker.offload.stored_object import StoredObject, _stores
from pulsarx.broker.offload.topic_history import encode
from pulsarx.testing import inspect

HEAD = "persistent://public/default/"
TOPIC = f"{HEAD}t"
STORED = 30  # messages of the three full ledgers


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "data", tmp_path / "a store")


def url_of(store: Store) -> str:
    return store.place.as_uri()


def history(store: Store, topic: str) -> Path:
    """The one of a topic."""
    (found,) = [each for each in store.place.rglob("*.json") if _name(each) == f"{HEAD}{topic}"]
    return found


def _name(path: Path) -> str:
    return str(json.loads(path.read_bytes().partition(b"\n")[2])["body"]["record"][1])


def change(path: Path, **fields: Any) -> None:
    """Have a history say something else; None: as if it had not been written."""
    document = json.loads(path.read_bytes().partition(b"\n")[2])
    body = document["body"] | fields
    document["body"] = {name: each for name, each in body.items() if each is not None}
    path.write_bytes(encode(document))


def rows(client: pulsarx.Client, topic: Any = "t", **options: Any) -> list[bytes]:
    table = client.read_table(topic, schema=pulsarx.schema.BytesSchema(), **options)
    found: list[bytes] = table["value"].to_pylist()
    return found


# Partitions


def test_partitions_that_came_later_are_read(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        client.admin.topics.create_partitioned_topic("p", 4)
        for each in range(4):
            publish(client, f"p-partition-{each}")
            offloaded(client, manual_clock, f"p-partition-{each}")
    for each in range(2):  # of an owner that went before it wrote them anew
        change(history(store, f"p-partition-{each}"), partitions=2)
    with pulsarx.Client(url_of(store), read_only=True) as client:
        assert len(client.get_topic_partitions("p")) == 4
        assert len(rows(client, "p")) == 4 * STORED
    broker = StoredBroker(url_of(store), ["p"])
    assert broker.catalogue.state.topics[f"{HEAD}p"].partition_count == 4
    broker.close()


@pytest.mark.parametrize("is_known", [True, False])
def test_a_topic_that_was_made_again_is_read_without_the_one_before(
    store: Store, manual_clock: ManualClock, tmp_path: Path, is_known: bool
) -> None:
    def make(values: dict[int, bytes]) -> int:
        client.admin.topics.create_partitioned_topic("p", 3)
        for each, value in values.items():
            publish(client, f"p-partition-{each}", [value] * 10)
            publish(client, f"p-partition-{each}", [value])
            offloaded(client, manual_clock, f"p-partition-{each}")
        found: int = inspect(client).catalogue.state.topics[f"{HEAD}p"].topic_id
        return found

    left = tmp_path / "left"
    with store.open(manual_clock) as client:
        first = make({1: b"old"})
        inspect(client).settle()
        shutil.copytree(store.place, left)
        client.admin.topics.delete_partitioned_topic("p", force=True)
        manual_clock.advance(60)
        second = make({0: b"new", 2: b"new"})
    shutil.copytree(left, store.place, dirs_exist_ok=True)  # as by an owner that could not tidy
    change(history(store, "p-partition-0"), whole_id=second)
    change(history(store, "p-partition-1"), whole_id=first if is_known else None)
    change(history(store, "p-partition-2"), whole_id=second if is_known else None)
    with pulsarx.Client(url_of(store), read_only=True) as client:
        assert rows(client, "p") == [b"new"] * 20
        assert client.admin.topics.stats("p-partition-1")["messages"] == 0
    broker = StoredBroker(url_of(store), ["p"])
    assert "nothing of it was offloaded" in broker.ends_told([f"{HEAD}p-partition-1"])[0]
    broker.close()


# Damage


def test_a_history_that_is_damaged_refuses_its_topic_alone(
    store: Store, manual_clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with store.open(manual_clock) as client:
        client.admin.topics.create_partitioned_topic("p", 2)
        for topic in ("t", "u", "p-partition-0", "p-partition-1"):
            publish(client, topic)
            offloaded(client, manual_clock, topic)
    for path in [history(store, topic) for topic in ("u", "p-partition-1")]:
        path.write_bytes(path.read_bytes()[:-1])
    with pulsarx.Client(url_of(store), read_only=True) as client:
        assert "no history of partition 1 is whole" in caplog.text
        assert len(ids_and_values(client)) == len(rows(client)) == STORED
        assert client.admin.topics.get_list("public/default") == [TOPIC]
        calls: tuple[Callable[[str], object], ...] = (
            lambda topic: client.create_reader(topic, MessageId.earliest),
            client.admin.topics.stats,
            client.admin.schemas.get_all_schemas,
            client.get_topic_partitions,
            lambda topic: rows(client, topic),
        )
        for call in calls:
            for topic in ("u", "p-partition-0"):
                with pytest.raises(
                    errors.CorruptDataError, match=f"{HEAD}[up].*: read .* is whole"
                ):
                    call(topic)
        with pytest.raises(errors.TopicNotFound):
            client.create_reader("other", MessageId.earliest)
        with pytest.raises(errors.CorruptDataError, match="in place of a pattern"):
            rows(client, re.compile("t"))
    for wanted in (["u"], None):
        with pytest.raises(errors.CorruptDataError, match="is whole"):
            StoredBroker(url_of(store), wanted).catalogue.state.topics[f"{HEAD}u"]


def _gone(path: Path) -> None:
    path.unlink()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4200])


def _another(path: Path) -> None:
    data = bytearray(path.read_bytes())
    shutil.copy(max(path.parent.glob("*.ledger")), path)
    assert path.read_bytes() != data


@pytest.mark.parametrize("happens", [_gone, _cut, _another])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_tables_are_not_read_over_what_is_missing(
    store: Store, manual_clock: ManualClock, number: int, happens: Callable[[Path], None]
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        publish(client, values=SENT[:15])
        ids = [MessageId.from_text(each) for each, _ in ids_and_values(client)]
        offloaded(client, manual_clock)
    path = store.objects()[number]
    happens(path)
    with pulsarx.Client(url_of(store), read_only=True) as client:
        for _ in range(2):
            with pytest.raises(errors.CorruptDataError, match=re.escape(path.name)):
                rows(client)
        with pytest.raises(errors.CorruptDataError, match=re.escape(path.name)):
            client.scan("t", schema=pulsarx.schema.BytesSchema()).to_arrow()
        if happens is _gone and number:
            with pytest.raises(errors.CorruptDataError, match="retention has removed it since"):
                rows(client)
        assert rows(client, start=ids[30]) == SENT[30:] + SENT[:5]


def test_tables_are_not_read_over_a_ledger_that_was_not_offloaded(
    store: Store, manual_clock: ManualClock
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        inspect(client).settle()
        path = sorted(store.sealed(client), key=lambda each: int(each.stem))[1]
    data = bytearray(path.read_bytes())
    data[4300] ^= 255
    path.write_bytes(data)
    with store.open(manual_clock) as client:
        offloaded(client, manual_clock)
    with (
        pulsarx.Client(url_of(store), read_only=True) as client,
        pytest.raises(errors.CorruptDataError, match=f"read ledger {path.stem} of"),
    ):
        rows(client)


def test_times_beyond_those_of_calendars_are_told(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
    broker = StoredBroker(url_of(store))
    for time_ms in (1764430000000 * 1000, 1 << 62):  # what another client says is kept
        broker.histories[TOPIC].record.ledgers[-1].last_publish_ms = time_ms
        assert f"published until {time_ms} ms after 1970" in broker.ends_told([TOPIC])[0]
    broker.close()


# Places


def test_a_place_may_have_a_name_like_a_folder(tmp_path: Path, manual_clock: ManualClock) -> None:
    store = Store(tmp_path / "data", tmp_path / ("ab" * 16))
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        folder_id = inspect(client).broker.directory.folder_id
    for root in (url_of(store), str(store.place), f"{url_of(store)}/{folder_id}"):
        with pulsarx.Client(root, read_only=True) as client:
            assert len(ids_and_values(client)) == STORED
    with pytest.raises(errors.FolderError, match="no history of topics"):
        StoredBroker(f"{url_of(store)}/{'cd' * 16}")


def test_a_store_is_connected_to_once_for_all_topics(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.open(manual_clock) as client:
        for topic in ("t", "u", "v"):
            publish(client, topic)
            offloaded(client, manual_clock, topic)
    opened: list[str] = []
    open_store = StoredObject._open_store

    def counted(stored: StoredObject, url: str) -> Any:
        opened.append(url)
        return open_store(stored, url)

    monkeypatch.setattr(StoredObject, "_open_store", counted)
    _stores.clear()
    with pulsarx.Client(url_of(store), read_only=True) as client:
        for topic in ("t", "u", "v"):
            assert len(rows(client, topic)) == STORED
    assert len(opened) == 1
