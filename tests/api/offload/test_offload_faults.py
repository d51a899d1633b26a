"""Facts about offloading that fails or is killed, and about objects that are damaged, gone or out
of reach: nothing is lost silently, and nothing that nobody needs is left."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from offload_steps import LOOK_SECONDS, SENT, Store, ids_and_values, offload, offloaded, publish
from topic_reading import whole_topic

import pulsarx
from pulsarx import InitialPosition, ManualClock, MessageId, errors
from pulsarx.backups import backup, check, restore
from pulsarx.broker.offload.stored_object import StoredObject
from pulsarx.testing import inspect


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "data", tmp_path / "store")


@pytest.mark.parametrize("step", ["write", "matches"])
def test_a_run_that_fails_leaves_nothing(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: Any) -> Any:
        if step == "matches":
            return False
        raise errors.StorageError("write: refused")

    with store.open(manual_clock) as client:
        publish(client)
        with monkeypatch.context() as patched:
            patched.setattr(StoredObject, step, fail)
            found = offload(client)
        assert found["status"] == "ERROR"
        assert found["last_error"]
        assert store.objects() == []
        assert inspect(client).catalogue.state.offloads == {}
        assert whole_topic(client) == SENT
        offloaded(client, manual_clock)
        assert len(store.objects()) == 3


@pytest.mark.standard
@pytest.mark.parametrize("step", ["size", "write", "matches", "after"])
def test_a_kill_leaves_all_of_it_or_none(store: Store, step: str) -> None:
    program = """
import os, sys, pulsarx
from pulsarx.broker.offload.stored_object import StoredObject
from pulsarx.broker.offload import topic_offload
step = sys.argv[3]
if step == "after":
    topic_offload.life_log.info = lambda *_: os._exit(0)
else:
    whole = getattr(StoredObject, step)
    def dies(*arguments):
        whole(*arguments)
        os._exit(0)
    setattr(StoredObject, step, dies)
options = pulsarx.BrokerOptions(offload_url=sys.argv[2])
client = pulsarx.Client(sys.argv[1], broker_options=options)
client.admin.topics.offload("t")
while True:
    pass
"""
    manual_clock = ManualClock(time.time_ns() // 1_000_000)
    with store.open(manual_clock) as client:
        publish(client)
    with ChildProcess(program, store.folder, store.place.as_uri(), step) as child:
        child.rest()
    left = {"size": 0, "write": 1, "matches": 1, "after": 1}[step]
    assert len(store.objects()) == left
    with store.open(manual_clock) as client:
        whole_topic(client)  # opens it
        manual_clock.advance(2 * LOOK_SECONDS)
        assert len(store.objects()) == (1 if step == "after" else 0)
        offloaded(client, manual_clock)
        assert store.files(client) == 0
        assert whole_topic(client) == SENT
        assert len(store.objects()) == len(inspect(client).catalogue.state.offloads) == 4


def test_a_damaged_ledger_is_not_offloaded(
    store: Store, manual_clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        inspect(client).settle()
        path = store.sealed(client)[0]
        data = bytearray(path.read_bytes())
        data[5000] ^= 1
        path.write_bytes(data)
        offloaded(client, manual_clock)
        assert store.sealed(client) == [path]
        assert "damaged and not offloaded" in caplog.text


def test_a_damaged_object_is_damage_of_its_messages(
    store: Store, manual_clock: ManualClock
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        damaged = store.objects()[1]
        data = bytearray(damaged.read_bytes())
        data[4096 + 100] ^= 1
        damaged.write_bytes(data)
        reader = client.create_reader("t", MessageId.earliest)
        got: list[bytes] = []
        failures = 0
        while len(got) < len(SENT) - 1:
            try:
                got.append(reader.read_next(30_000).data())
            except errors.CorruptDataError:
                failures += 1
        assert failures == 1
        assert got == SENT[:10] + SENT[11:]
    contents = check(store.folder)
    assert len(contents.damage) == 1


def test_an_object_that_is_gone_is_told_and_passed(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        gone = store.objects()[1]
        data = gone.read_bytes()
        gone.unlink()
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        got = [consumer.receive(30_000).data() for _ in range(10)]
        with pytest.raises(errors.CorruptDataError, match=gone.name) as told:
            consumer.receive(30_000)
        assert "10 messages" in str(told.value)
        got += [consumer.receive(30_000).data() for _ in range(15)]
        assert got == SENT[:10] + SENT[20:]
        damage = check(store.folder).damage
        assert [each.messages for each in damage] == [10]
        gone.write_bytes(data)
        assert whole_topic(client) == SENT


def test_a_store_out_of_reach_is_an_error_and_nothing_is_skipped(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise errors.StorageError("read s3://bucket/x: no route to host")

    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        got = [consumer.receive(30_000).data() for _ in range(10)]
        with monkeypatch.context() as patched:
            patched.setattr(StoredObject, "read_into", refuse)
            for _ in range(3):
                with pytest.raises(errors.StorageError, match="no route to host"):
                    consumer.receive(30_000)
            with pytest.raises(errors.StorageError, match="no route to host"):
                check(store.folder)
        got += [consumer.receive(30_000).data() for _ in range(len(SENT) - 10)]
        assert got == SENT


def test_a_store_that_is_not_mounted_is_no_damage(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        got = [consumer.receive(30_000).data() for _ in range(10)]
        aside = store.place.rename(store.place.with_name("unmounted"))
        for _ in range(2):
            with pytest.raises(errors.StorageError) as told:
                consumer.receive(30_000)
            assert not isinstance(told.value, errors.CorruptDataError)
        aside.rename(store.place)
        got += [consumer.receive(30_000).data() for _ in range(len(SENT) - 10)]
        assert got == SENT


def test_a_file_stays_whose_object_is_not_there(
    store: Store, manual_clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offload(client)
        store.objects()[0].unlink()
        with caplog.at_level(logging.WARNING):
            manual_clock.advance(LOOK_SECONDS)
            manual_clock.advance(LOOK_SECONDS)
        assert store.files(client) == 1
        assert caplog.text.count("is not there") == 1
        assert whole_topic(client) == SENT


def test_without_the_option_objects_are_read_and_kept(
    store: Store, manual_clock: ManualClock
) -> None:
    """A copy of a folder is opened so: the objects are the other one's as well."""
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
    with pulsarx.Client(store.folder, clock=manual_clock) as client:
        assert whole_topic(client) == SENT
        client.admin.topics.delete("t", force=True)
        manual_clock.advance(LOOK_SECONDS)
    assert len(store.objects()) == 3
    with store.open(manual_clock) as client:
        publish(client, "other")
        manual_clock.advance(LOOK_SECONDS)
        assert store.objects() == []


def test_a_backup_holds_what_is_in_the_store(store: Store, tmp_path: Path) -> None:
    clock = ManualClock()
    with store.open(clock) as client:
        publish(client)
        client.subscribe("t", "s", initial_position=InitialPosition.Earliest).close()
        before = ids_and_values(client)
        offloaded(client, clock)
        contents = backup(store.folder, tmp_path / "backup")
        assert (contents.messages, contents.damage) == (len(SENT), [])
        client.admin.topics.delete("t", force=True)
        clock.advance(LOOK_SECONDS)
        assert store.objects() == []
    restored = restore(tmp_path / "backup", tmp_path / "restored")
    assert restored.damage == []
    with pulsarx.Client(tmp_path / "restored") as client:
        assert ids_and_values(client) == before
        assert inspect(client).catalogue.state.offloads == {}


def test_closing_ends_a_run(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two chunks; what was begun goes."""
    client = store.open(manual_clock)
    publish(client)
    inspect(client).settle()
    whole = StoredObject.write

    def closing(stored: StoredObject, path: str, size: int, go_on: Any) -> None:
        inspect(client).topic("t").offload._stopped = True
        whole(stored, path, size, go_on)

    monkeypatch.setattr(StoredObject, "write", closing)
    assert offload(client) == {
        "status": "ERROR",
        "last_error": "it was stopped: the topic was closed, emptied or deleted",
    }
    assert inspect(client).catalogue.state.offloads == {}
    client.close()
    assert store.objects() == []
