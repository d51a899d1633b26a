"""Facts about offloading that fails or is killed, and about objects that are damaged, gone or out
of reach: nothing is lost silently, and nothing that nobody needs is left."""

from __future__ import annotations

import _thread
import errno
import logging
import os
import threading
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest
from child_process import ChildProcess
from offload_steps import LOOK_SECONDS, SENT, Store, ids_and_values, offload, offloaded, publish
from topic_reading import whole_topic

import pulsarx
from pulsarx import InitialPosition, ManualClock, MessageId, errors
from pulsarx.backups import backup, check, copying, restore
from pulsarx.backups.folder_view import FolderView
from pulsarx.broker.ledgers import managed_ledger
from pulsarx.broker.offload import stored_object
from pulsarx.broker.offload.stored_object import StoredObject
from pulsarx.broker.offload.topic_offload import TopicOffload
from pulsarx.testing import inspect

LIMIT_SECONDS = 60


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
        raise errors.StorageError(detail="write: refused")

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
        got = [consumer.receive(60_000).data() for _ in range(10)]
        with pytest.raises(errors.CorruptDataError, match=gone.name) as told:
            consumer.receive(30_000)
        assert "10 messages" in str(told.value)
        got += [consumer.receive(30_000).data() for _ in range(15)]
        assert got == SENT[:10] + SENT[20:]
        damage = check(store.folder).damage
        assert [each.messages for each in damage] == [10]
        gone.write_bytes(data)
        assert whole_topic(client) == SENT


def test_an_object_that_was_cut_off_is_damage_of_what_is_missing(
    store: Store, manual_clock: ManualClock, tmp_path: Path
) -> None:
    """It was an error for ever, and no consumer came past it."""
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        cut = store.objects()[1]
        frame_size = (client.admin.topics.stats("t")["ledgers"][1]["size"] - 4096) // 10
        os.truncate(cut, 4096 + 4 * frame_size)
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        got = [consumer.receive(60_000).data() for _ in range(14)]
        with pytest.raises(errors.CorruptDataError, match="6 messages are missing"):
            consumer.receive(30_000)
        got += [consumer.receive(30_000).data() for _ in range(15)]
        assert got == SENT[:14] + SENT[20:]
        assert sum(each.messages for each in check(store.folder).damage) == 6
        backup(store.folder, tmp_path / "backup")
    restored = restore(tmp_path / "backup", tmp_path / "restored", allow_damage=True)
    assert restored.missing_messages == 6


@pytest.mark.needs("fsspec")
def test_an_object_that_is_gone_from_a_store_of_fsspec_is_told_and_passed(
    store: Store, manual_clock: ManualClock
) -> None:
    """Such a store says so without a number, which was an error for ever."""
    with store.open(manual_clock, offload_url="memory://bucket/gone") as client:
        publish(client)
        offloaded(client, manual_clock)
        offloads = inspect(client).catalogue.state.offloads
        StoredObject([each.location for each in offloads.values()][1]).remove()
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        got = [consumer.receive(60_000).data() for _ in range(10)]
        with pytest.raises(errors.CorruptDataError, match="10 messages are missing"):
            consumer.receive(30_000)
        got += [consumer.receive(30_000).data() for _ in range(15)]
        assert got == SENT[:10] + SENT[20:]


def test_a_local_disk_without_room_for_what_is_fetched_is_told_as_that(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was told as if the object could not be read."""

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        got = [consumer.receive(60_000).data() for _ in range(10)]
        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", full)
            with pytest.raises(errors.StorageFullError, match="on the local disk: No space left"):
                consumer.receive(30_000)
        got += [consumer.receive(30_000).data() for _ in range(len(SENT) - 10)]
        assert got == SENT


def test_a_store_out_of_reach_is_an_error_and_nothing_is_skipped(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise errors.StorageError(detail="read s3://bucket/x: no route to host")

    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        ledger_id = client.admin.topics.stats("t")["ledgers"][1]["ledger_id"]
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        got = [consumer.receive(60_000).data() for _ in range(10)]
        with monkeypatch.context() as patched:
            patched.setattr(StoredObject, "read_into", refuse)
            for _ in range(3):
                with pytest.raises(errors.StorageError, match="no route to host") as told:
                    consumer.receive(30_000)
                # Which ledger, and that it can be tried again.
                assert f"ledger {ledger_id} of persistent://public/default/t" in str(told.value)
                assert "No message was skipped; the next call tries again" in str(told.value)
            with pytest.raises(errors.StorageError, match="no route to host"):
                check(store.folder)
        got += [consumer.receive(30_000).data() for _ in range(len(SENT) - 10)]
        assert got == SENT


def test_a_store_that_is_not_mounted_is_no_damage(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        got = [consumer.receive(60_000).data() for _ in range(10)]
        aside = store.place.rename(store.place.with_name("unmounted"))
        for _ in range(2):
            with pytest.raises(errors.StorageError) as told:
                consumer.receive(30_000)
            assert not isinstance(told.value, errors.CorruptDataError)
        aside.rename(store.place)
        got += [consumer.receive(60_000).data() for _ in range(len(SENT) - 10)]
        assert got == SENT


def test_a_store_that_is_not_mounted_refuses_a_backup(
    store: Store, manual_clock: ManualClock, tmp_path: Path
) -> None:
    """There was one without the messages that were in the store."""
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        aside = store.place.rename(store.place.with_name("unmounted"))
        with pytest.raises(errors.StorageError, match="mount it"):
            backup(store.folder, tmp_path / "backup")
        assert not (tmp_path / "backup").exists()
        aside.rename(store.place)
        assert backup(store.folder, tmp_path / "backup").missing_messages == 0


def test_objects_that_nobody_needs_go_when_their_store_is_mounted_again(
    store: Store, manual_clock: ManualClock
) -> None:
    """They were forgotten, and stayed for ever."""
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        aside = store.place.rename(store.place.with_name("unmounted"))
        client.admin.topics.delete("t", force=True)
        manual_clock.advance(LOOK_SECONDS)
        aside.rename(store.place)
        assert len(store.objects()) == 3
        manual_clock.advance(LOOK_SECONDS)
        assert store.objects() == []
        assert inspect(client).catalogue.state.offloads == {}


def test_what_a_store_listed_before_does_not_stand_for_what_it_has(
    store: Store, manual_clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Stores of fsspec may answer out of a listing: a file went whose object was gone."""
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem

    class Listing(MemoryFileSystem):  # type: ignore[misc]
        protocol = "listing"
        store: ClassVar[dict[str, Any]] = {}
        known: ClassVar[dict[str, Any]] = {}

        def info(self, path: str, **more: Any) -> Any:
            if path not in self.known:
                self.known[path] = super().info(path, **more)
            return self.known[path]

        def invalidate_cache(self, path: str | None = None) -> None:
            self.known.clear()

    fsspec.register_implementation("listing", Listing, clobber=True)
    with store.open(manual_clock, offload_url="listing://bucket/x") as client:
        publish(client)
        offload(client)
        location = next(iter(inspect(client).catalogue.state.offloads.values())).location
        assert StoredObject(location).size()
        del Listing.store[next(name for name in Listing.store if name in location)]
        with caplog.at_level(logging.WARNING):
            manual_clock.advance(LOOK_SECONDS)
        assert "is not there" in caplog.text
        assert store.files(client) == 1
        assert whole_topic(client) == SENT


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


@pytest.mark.parametrize("step", ["size", "write"])
def test_ledgers_that_are_merged_during_a_run_are_offloaded_as_they_are_then(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The run failed over a file that was gone, or ended without a word."""
    whole = getattr(StoredObject, step)

    def merging(*arguments: Any) -> Any:
        monkeypatch.setattr(StoredObject, step, whole)
        assert client.admin.topics.merge_ledgers("t") == {"ledgers": 3, "files": 1}
        return whole(*arguments)

    with store.open(manual_clock) as client:
        publish(client)
        before = ids_and_values(client)
        inspect(client).settle()
        monkeypatch.setattr(StoredObject, step, merging)
        offloaded(client, manual_clock)
        assert len(store.objects()) == len(inspect(client).catalogue.state.offloads) == 1
        assert store.files(client) == 0
        assert ids_and_values(client) == before


def test_a_file_that_goes_to_the_store_while_its_ledger_is_trimmed_is_no_missing_one(
    store: Store,
    manual_clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An error in the log asked for the file, and nothing was trimmed at that look."""
    look_at = managed_ledger.look_at

    def released(topic: str, path: str, *more: Any) -> int:
        os.unlink(path)
        return look_at(topic, path, *more)

    with store.open(manual_clock) as client:
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        publish(client)
        offload(client)
        got = [consumer.receive(60_000) for _ in SENT]
        monkeypatch.setattr(managed_ledger, "look_at", released)
        consumer.acknowledge_cumulative(got[-1])
        inspect(client).settle()
        assert [each["state"] for each in client.admin.topics.stats("t")["ledgers"]] == ["open"]
    assert caplog.text == ""


def test_a_topic_that_nobody_uses_goes_while_a_run_of_it_begins(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run waited for the background, which waited for the end of the run, for ever."""
    entered, begins, reached = threading.Event(), threading.Event(), threading.Event()
    size, stop = StoredObject.size, TopicOffload.stop_soon

    class Lane:
        """The roll-over lane, which a run waits for first."""

        def __init__(self, lane: Any) -> None:
            self._lane = lane

        def wait(self, *arguments: Any) -> Any:
            if begins.is_set():
                reached.set()
            return self._lane.wait(*arguments)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._lane, name)

    def waiting(stored: StoredObject) -> int | None:
        entered.set()  # by the run of the other topic, which goes first
        assert begins.wait(LIMIT_SECONDS)
        return size(stored)

    def stopping(run: TopicOffload) -> None:
        begins.set()
        assert reached.wait(LIMIT_SECONDS)
        stop(run)

    with store.open(manual_clock) as client:
        topics = client.admin.topics
        publish(client, "other")
        publish(client)
        topics.set_retention("t", 0, 0)
        inspect(client).settle()
        topics.set_inactive_topic_policies("t", "delete_when_no_subscriptions", 30, True)
        with monkeypatch.context() as patched:
            patched.setattr(StoredObject, "size", waiting)
            patched.setattr(TopicOffload, "stop_soon", stopping)
            runtime = inspect(client).broker.runtime
            patched.setattr(runtime, "roll_overs", Lane(runtime.roll_overs))
            topics.offload("other", 0)
            assert entered.wait(LIMIT_SECONDS)
            topics.offload("t", 0)
            manual_clock.advance(LOOK_SECONDS)
        assert client.admin.topics.get_list("public/default") == [
            "persistent://public/default/other"
        ]
        manual_clock.advance(LOOK_SECONDS)
        assert len(store.objects()) == 3


def test_a_topic_is_deleted_while_its_run_waits_for_the_store(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleting waited for the store, too. The run takes back what it had begun."""
    entered, goes_on = threading.Event(), threading.Event()
    write = StoredObject.write

    def waiting(*arguments: Any) -> None:
        entered.set()
        assert goes_on.wait(LIMIT_SECONDS)
        write(*arguments)

    with store.open(manual_clock) as client:
        publish(client)
        monkeypatch.setattr(StoredObject, "write", waiting)
        client.admin.topics.offload("t", 0)
        assert entered.wait(LIMIT_SECONDS)
        client.admin.topics.delete("t", force=True)
        publish(client)
        goes_on.set()
        inspect(client).settle()
        assert store.objects() == []
        assert inspect(client).catalogue.state.offloads == {}
        assert offload(client)["status"] == "SUCCESS"
        assert len(store.objects()) == 3


def test_what_a_library_below_fsspec_raises_is_an_error_of_storage(
    store: Store, manual_clock: ManualClock
) -> None:
    """It came out of `receive` as it was, and ended the look of the minute for all topics."""
    import fsspec
    from fsspec.implementations.memory import MemoryFileSystem

    class NoCredentials(Exception):
        """As botocore raises, which is no OSError."""

    class Refusing(MemoryFileSystem):  # type: ignore[misc]
        protocol = "refusing"
        refuses = False

        def _open(self, *arguments: Any, **more: Any) -> Any:
            if self.refuses:
                raise NoCredentials("unable to locate credentials")
            return super()._open(*arguments, **more)

    fsspec.register_implementation("refusing", Refusing, clobber=True)
    with store.open(manual_clock, offload_url="refusing://bucket/x") as client:
        publish(client)
        offloaded(client, manual_clock)
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        got = [consumer.receive(60_000).data() for _ in range(10)]
        Refusing.refuses = True
        with pytest.raises(errors.StorageError, match="NoCredentials: unable to locate"):
            consumer.receive(30_000)
        Refusing.refuses = False
        got += [consumer.receive(30_000).data() for _ in range(len(SENT) - 10)]
        assert got == SENT


# Threads that fetch -------------------------------------------------------------------------------


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several requests for each ledger, and so several threads."""
    monkeypatch.setattr(stored_object, "CHUNK_SIZE", 1024)


@pytest.mark.usefixtures("in_parts")
def test_where_no_thread_can_be_started_the_caller_fetches(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was a RuntimeError, behind which threads that had begun wrote on."""
    start = _thread.start_new_thread

    def refused(function: Any, arguments: tuple[Any, ...], *rest: Any) -> Any:
        if "pulsarx-offload-read" in arguments:
            raise RuntimeError("can't start new thread")
        return start(function, arguments, *rest)

    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        monkeypatch.setattr(_thread, "start_new_thread", refused)
        assert whole_topic(client) == SENT


@pytest.mark.usefixtures("in_parts")
def test_an_interrupted_copy_writes_into_no_other_file(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Threads that fetched went on, under a number that was another file's by then."""
    put = StoredObject._put
    goes_on, interrupted = threading.Event(), threading.Event()
    fetching: list[threading.Event] = []

    def waiting(stored: StoredObject, descriptor: int, data: bytes, at: int) -> None:
        if threading.current_thread() is threading.main_thread():
            while not fetching:
                pass
            interrupted.set()
            raise KeyboardInterrupt
        ended = threading.Event()
        fetching.append(ended)
        try:
            assert interrupted.wait(LIMIT_SECONDS)
            assert goes_on.wait(LIMIT_SECONDS)
            put(stored, descriptor, data, at)
        finally:
            ended.set()

    class Interrupted(stored_object.OwnThread):
        """The caller is interrupted where it waits for it, if it got no chunk to fetch."""

        def join(self) -> None:
            while not fetching:
                pass
            interrupted.set()
            raise KeyboardInterrupt

    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        with monkeypatch.context() as patched:
            patched.setattr(StoredObject, "_put", waiting)
            patched.setattr(stored_object, "OwnThread", Interrupted)
            with pytest.raises(KeyboardInterrupt):
                backup(store.folder, tmp_path / "backup")
            files = [(tmp_path / f"other {number}").open("w+b") for number in range(20)]
            goes_on.set()
            for each in fetching:
                assert each.wait(LIMIT_SECONDS)
        for file in files:
            assert file.read() == b""
            file.close()
        assert os.listdir(tmp_path / "data") and not (tmp_path / "backup").exists()


@pytest.mark.usefixtures("in_parts")
def test_a_lease_is_renewed_while_a_large_object_is_copied(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It was when an object had come as a whole, and could have ended before."""
    renewed: list[str] = []
    monkeypatch.setattr(copying, "RENEW_MS", -1)
    monkeypatch.setattr(FolderView, "renew", lambda view, job, _: renewed.append(job))
    with store.open(manual_clock) as client:
        publish(client, values=[bytes(3000)] * 30)
        offloaded(client, manual_clock)
        # Alone in its thread, so that it makes all requests.
        monkeypatch.setattr(stored_object, "_REQUESTS", 1)
        backup(store.folder, tmp_path / "backup")
    assert len(renewed) > 2 * 30  # KiB of two ledgers


@pytest.mark.usefixtures("in_parts")
def test_what_a_progress_raises_while_an_object_is_copied_comes_out_as_it_is(
    store: Store, manual_clock: ManualClock, tmp_path: Path
) -> None:
    def progress(done: int, total: int) -> None:
        raise LookupError("of the caller")

    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        with pytest.raises(LookupError, match="of the caller"):
            backup(store.folder, tmp_path / "backup", progress=progress)
    assert {each.name for each in tmp_path.iterdir()} == {"data", "store"}
