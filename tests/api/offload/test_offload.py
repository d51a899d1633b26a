"""Facts about ledgers in an object store: who reads them, when files and objects go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from offload_steps import (
    COUNT,
    LOOK_SECONDS,
    SENT,
    Fetched,
    Store,
    ids_and_values,
    offload,
    offloaded,
    publish,
)
from support.consumer_types import ALL_TYPES
from topic_reading import whole_topic

import pulsarx
from pulsarx import ConsumerType, InitialPosition, ManualClock, MessageId, errors
from pulsarx.broker.catalogue.state import CatalogueState
from pulsarx.broker.offload.stored_object import StoredObject
from pulsarx.broker.scan.lease import lease
from pulsarx.broker.scan.ledger_range import LedgerRange
from pulsarx.broker.scan.plan import plan
from pulsarx.broker.scan.read_range import read_range
from pulsarx.broker.topics import ledger_merge
from pulsarx.testing import inspect


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "data", tmp_path / "a store")


def test_a_topic_reads_the_same_out_of_the_store(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        before = ids_and_values(client)
        stored = client.admin.topics.stats("t")
        assert offload(client)["status"] == "SUCCESS"
        # Three full ledgers of ten; the fourth is open.
        assert (len(store.objects()), store.files(client)) == (3, 3)
        manual_clock.advance(LOOK_SECONDS)
        assert (len(store.objects()), store.files(client)) == (3, 0)
        assert ids_and_values(client) == before
        now = client.admin.topics.stats("t")
        assert (now["messages"], now["storage_size"]) == (COUNT, stored["storage_size"])
    with store.open(manual_clock) as client:
        assert ids_and_values(client) == before
        assert store.files(client) == 1  # what was fetched was not kept
    with pulsarx.Client(store.folder, read_only=True) as client:
        assert client.admin.topics.offload_status("t") == {"status": "SUCCESS", "last_error": ""}
        assert ids_and_values(client) == before


@pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
)
def test_consumers_of_every_type_read_the_store(
    store: Store, manual_clock: ManualClock, kind: ConsumerType
) -> None:
    with store.open(manual_clock) as client:
        consumer = client.subscribe(
            "t", "s", kind, initial_position=InitialPosition.Earliest, receiver_queue_size=5
        )
        publish(client)
        got = [consumer.receive(60_000) for _ in range(12)]
        for message in got[:6]:
            consumer.acknowledge(message)
        consumer.close()
        offloaded(client, manual_clock)
        assert store.files(client) == 0
        consumer = client.subscribe("t", "s", kind)
        rest = [consumer.receive(60_000) for _ in range(COUNT - 6)]
        assert [each.data() for each in rest] == SENT[6:]
        consumer.acknowledge(rest[5].message_id())
        consumer.seek(got[3].message_id())
        assert consumer.receive(60_000).data() in SENT[3:]


def test_ids_and_times_are_found_in_the_store(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        producer = client.create_producer("t")
        ids = []
        for value in SENT:
            manual_clock.advance(1)
            ids.append(producer.send(value))
        middle = manual_clock.now_ms() - 20_500
        producer.close()
        offloaded(client, manual_clock)
        with_id = client.create_reader("t", ids[7])
        assert with_id.read_next(60_000).data() == SENT[8]
        by_time = client.create_reader("t", MessageId.earliest)
        by_time.seek(middle)
        assert by_time.read_next(60_000).data() == SENT[COUNT - 21]


@pytest.mark.standard
def test_other_processes_read_the_store(store: Store) -> None:
    program = """
import sys, pulsarx
with pulsarx.Client(sys.argv[1]) as client:
    for kind in (pulsarx.ConsumerType.Exclusive, pulsarx.ConsumerType.Shared):
        consumer = client.subscribe(
            "t", str(kind), kind, initial_position=pulsarx.InitialPosition.Earliest
        )
        print(b" ".join(consumer.receive(60_000).data() for _ in range(int(sys.argv[2]))).decode())
"""
    with pulsarx.Client(store.folder, broker_options=store.options()) as client:
        publish(client)
        offload(client)
        for path in store.sealed(client):
            path.unlink()
        with ChildProcess(program, store.folder, COUNT) as child:
            assert child.rest() == [b" ".join(SENT).decode()] * 2


def test_the_newest_bytes_stay(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        sizes = [each["size"] - 4096 for each in client.admin.topics.stats("t")["ledgers"]]
        # A byte less than the last three hold: the second is one of those to go, or partly.
        offload(client, threshold=sum(sizes[1:]))
        assert len(store.objects()) == 1
        offload(client, threshold=sum(sizes[1:]) - 1)
        assert len(store.objects()) == 2


def test_objects_go_with_their_ledgers(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        publish(client, "kept")
        offloaded(client, manual_clock)
        offloaded(client, manual_clock, "kept")
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        for _ in range(20):
            last = consumer.receive(60_000)
        consumer.acknowledge_cumulative(last)
        inspect(client).settle()
        manual_clock.advance(LOOK_SECONDS)
        assert len(store.objects()) == 1 + 3
        client.admin.topics.delete("t", force=True)
        manual_clock.advance(LOOK_SECONDS)
        assert len(store.objects()) == 3
        assert [each.topic for each in inspect(client).catalogue.state.offloads.values()] == (
            ["persistent://public/default/kept"] * 3
        )


def test_truncating_empties_the_store(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        client.admin.topics.truncate("t")
        manual_clock.advance(LOOK_SECONDS)
        assert store.objects() == []
        assert whole_topic(client) == []


def test_merged_ledgers_are_offloaded_as_one_file(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        before = ids_and_values(client)
        inspect(client).settle()
        assert client.admin.topics.merge_ledgers("t")["files"] == 1
        offloaded(client, manual_clock)
        assert (len(store.objects()), store.files(client)) == (1, 0)
        assert ids_and_values(client) == before
        with pulsarx.Client(store.folder, read_only=True) as other:
            assert ids_and_values(other) == before


def test_objects_of_files_that_were_merged_since_go(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.open(manual_clock, managed_ledger_offload_deletion_lag_ms=3_600_000) as client:
        publish(client)
        before = ids_and_values(client)
        offload(client)
        _merge_as_earlier_versions(client, monkeypatch)
        manual_clock.advance(LOOK_SECONDS)
        assert store.objects() == []
        assert ids_and_values(client) == before


def _merge_as_earlier_versions(client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those as well that are in the store."""
    with monkeypatch.context() as patch:
        patch.setattr(CatalogueState, "offload_of", lambda *_: None)
        assert client.admin.topics.merge_ledgers("t")["ledgers"] == 3


@pytest.mark.parametrize("lag_ms", [0, 3_600_000])
def test_ledgers_in_the_store_are_not_merged(
    store: Store, manual_clock: ManualClock, lag_ms: int
) -> None:
    """Where their files were still there, the store had nothing of the topic any more."""
    with store.open(manual_clock, managed_ledger_offload_deletion_lag_ms=lag_ms) as client:
        publish(client)
        offloaded(client, manual_clock)
        assert store.files(client) == (3 if lag_ms else 0)
        number = inspect(client).catalogue.state.number
        assert client.admin.topics.merge_ledgers("t") == {"ledgers": 0, "files": 0}
        assert inspect(client).catalogue.state.number == number  # no file was begun
        manual_clock.advance(LOOK_SECONDS)
        assert len(store.objects()) == 3
    with pulsarx.Client(store.place.as_uri(), read_only=True) as client:
        assert [value for _, value in ids_and_values(client)] == SENT[:30]


def test_ledgers_that_go_to_the_store_while_they_are_merged_stay_as_they_are(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = ledger_merge._Merge._write

    def offloading(merge: Any, whole: Any) -> None:
        write(merge, whole)
        assert offload(client)["status"] == "SUCCESS"

    with store.open(manual_clock, managed_ledger_offload_deletion_lag_ms=3_600_000) as client:
        publish(client)
        inspect(client).settle()
        monkeypatch.setattr(ledger_merge._Merge, "_write", offloading)
        assert client.admin.topics.merge_ledgers("t") == {"ledgers": 0, "files": 0}
        manual_clock.advance(LOOK_SECONDS)
        assert len(store.objects()) == store.files(client) == 3


def test_a_topic_is_compacted_out_of_the_store(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        producer = client.create_producer("t")
        for at, value in enumerate(SENT):
            producer.send(value, partition_key=str(at % 4))
        offloaded(client, manual_clock)
        client.admin.topics.trigger_compaction("t")
        inspect(client).settle()
        reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
        assert sorted(each.data() for each in reader.read_many(100, 0)) == SENT[-4:]


def test_the_file_of_leased_ledgers_stays(store: Store, manual_clock: ManualClock) -> None:
    """Tasks of other hosts may have it mapped over a network file system."""
    with store.open(manual_clock) as client:
        publish(client)
        topic = "persistent://public/default/t"
        ledgers = client.admin.topics.stats("t")["ledgers"]
        lease(store.folder, "job", {topic: [ledgers[1]["ledger_id"]] * 2}, 150_000)
        offloaded(client, manual_clock)
        assert len(store.objects()) == 3
        assert store.files(client) == 1
        manual_clock.advance(3 * LOOK_SECONDS)
        assert store.files(client) == 0
        assert whole_topic(client) == SENT


def test_partitions_are_offloaded(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        client.admin.topics.create_partitioned_topic("p", 2)
        publish(client, "p-partition-0")
        publish(client, "p-partition-1")
        offloaded(client, manual_clock, "p")
        assert len(store.objects()) == 6
        consumer = client.subscribe("p", "s", initial_position=InitialPosition.Earliest)
        assert sorted(consumer.receive(60_000).data() for _ in range(2 * COUNT)) == sorted(2 * SENT)


# Policies -----------------------------------------------------------------------------------------


def test_a_threshold_offloads_by_itself(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock, managed_ledger_offload_deletion_lag_ms=150_000) as client:
        publish(client)
        manual_clock.advance(LOOK_SECONDS)
        assert store.objects() == []
        client.admin.namespaces.set_offload_threshold("public/default", 0)
        manual_clock.advance(LOOK_SECONDS)
        assert len(store.objects()) == 3
        # After the lag, at the next look.
        manual_clock.advance(2 * LOOK_SECONDS)
        assert store.files(client) == 3
        manual_clock.advance(LOOK_SECONDS)
        assert store.files(client) == 0


def test_a_topic_has_policies_of_its_own(store: Store, manual_clock: ManualClock) -> None:
    with store.open(
        manual_clock, managed_ledger_offload_auto_trigger_size_threshold_bytes=0
    ) as client:
        topics = client.admin.topics
        for topic in ("t", "kept"):
            client.admin.topics.create_non_partitioned_topic(topic)
        topics.set_offload_threshold("kept", -1)
        topics.set_offload_deletion_lag("t", 1 << 40)
        assert topics.get_offload_threshold("kept") == -1
        assert topics.get_offload_deletion_lag("t") == 1 << 40
        publish(client)
        publish(client, "kept")
        manual_clock.advance(3 * LOOK_SECONDS)
        assert (len(store.objects()), store.files(client)) == (3, 6)
        topics.remove_offload_threshold("kept")
        topics.remove_offload_deletion_lag("t")
        assert topics.get_offload_threshold("kept") is None
        manual_clock.advance(2 * LOOK_SECONDS)
        assert (len(store.objects()), store.files(client)) == (6, 0)


def test_without_a_store_nothing_is_promised(manual_clock: ManualClock, folder: Path) -> None:
    with pulsarx.Client(folder, clock=manual_clock) as client:
        publish(client)
        for refused in (
            lambda: client.admin.topics.offload("t"),
            lambda: client.admin.topics.set_offload_threshold("t", 0),
            lambda: client.admin.namespaces.set_offload_deletion_lag("public/default", 0),
        ):
            with pytest.raises(errors.OperationNotSupported, match="offload_url"):
                refused()
        assert client.admin.topics.get_offload_threshold("t") is None
    with pulsarx.Client(
        "memory:offload", broker_options=pulsarx.BrokerOptions(offload_url="file:///tmp/x")
    ) as client:
        publish(client)
        with pytest.raises(errors.OperationNotSupported, match="memory"):
            client.admin.topics.offload("t")


@pytest.mark.parametrize(
    "url", ["bucket/prefix", "s3://", "s3://key:secret@bucket/prefix", 3, "://x"]
)
def test_a_url_that_is_none_is_refused(url: Any) -> None:
    with pytest.raises(ValueError, match="offload_url"):
        pulsarx.BrokerOptions(offload_url=url)


def test_numbers_out_of_range_are_refused(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        for wrong in (-2, True, 1.5):
            with pytest.raises(ValueError):
                client.admin.topics.set_offload_threshold("t", wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError):
            client.admin.topics.set_offload_deletion_lag("t", -1)
        with pytest.raises(ValueError):
            client.admin.topics.offload("t", -1)


def test_a_scheme_that_nobody_knows_is_an_error_of_the_run(
    store: Store, manual_clock: ManualClock
) -> None:
    with store.open(manual_clock, offload_url="nostore://bucket/x") as client:
        publish(client)
        found = offload(client)
        assert found["status"] == "ERROR"
        assert "nostore" in found["last_error"] or "fsspec" in found["last_error"]
        assert inspect(client).catalogue.state.offloads == {}
        assert whole_topic(client) == SENT


# Fetching as little as can be ---------------------------------------------------------------------


def test_statistics_fetch_nothing(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    batched = {"batching_enabled": True, "batching_max_publish_delay_ms": 60_000}
    with store.open(manual_clock) as client:
        consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
        producer = client.create_producer("t", batching_max_messages=4, **batched)
        for number in range(120):
            manual_clock.advance(1)
            producer.send_async(b"%d" % number, None)
        producer.close()
        for _ in range(50):
            message = consumer.receive(60_000)
        consumer.acknowledge_cumulative(message)
        consumer.close()
        now = client.admin.topics.stats("t")["subscriptions"]["s"]
        offloaded(client, manual_clock)
        assert store.files(client) == 0
    with store.open(manual_clock) as client:
        fetched = Fetched(monkeypatch)
        found = client.admin.topics.stats("t")["subscriptions"]["s"]
        assert fetched.calls == 0
        assert found["msg_backlog"] == now["msg_backlog"] == 70
        for name in ("backlog_entries", "backlog_size"):
            assert found[name] == pytest.approx(now[name], rel=0.1)
        ledger_id, entry_id = now["mark_delete_position"]
        assert found["mark_delete_position"][0] == ledger_id
        assert abs(found["mark_delete_position"][1] - entry_id) <= 1
        # By the time of the offload's look, and of the estimate.
        age = found["oldest_backlog_message_age_seconds"]
        assert abs(age - now["oldest_backlog_message_age_seconds"] - LOOK_SECONDS) <= 5


def test_what_is_too_old_as_a_whole_is_not_fetched(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.open(manual_clock) as client:
        client.subscribe("t", "s", initial_position=InitialPosition.Earliest).close()
        publish(client)
        offloaded(client, manual_clock)
    with store.open(manual_clock) as client:
        fetched = Fetched(monkeypatch)
        client.admin.topics.expire_messages("t", "s", 30)
        assert fetched.calls == 0
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 0


def test_acknowledging_by_id_fetches_no_ledger_again(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        fetched = Fetched(monkeypatch)
        consumer = client.subscribe(
            "t", "s", ConsumerType.Shared, initial_position=InitialPosition.Earliest
        )
        ids = [consumer.receive(60_000).message_id() for _ in range(COUNT)]
        assert fetched.calls == 3
        for each in ids:
            consumer.acknowledge(each)
        assert fetched.calls == 3
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 0


# Ranges -------------------------------------------------------------------------------------------


def values_of(ranges: list[LedgerRange]) -> list[bytes]:
    import pyarrow as pa

    return [
        value
        for each in ranges
        for block in read_range(each, ["value"])
        for value in pa.record_batch(block).column(0).to_pylist()
    ]


def test_a_range_fetches_its_own_bytes(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = [b"%06d" % n + bytes(2000) for n in range(3000)]
    with store.open(manual_clock, managed_ledger_max_entries_per_ledger=2800) as client:
        publish(client, values=values)
        offloaded(client, manual_clock)
        fetched = Fetched(monkeypatch)
        ranges = plan(inspect(client).broker, "t", target_bytes=1 << 20)
        assert len(ranges) > 5
        assert fetched.size < 100_000  # the index
        fetched.size = 0
        assert values_of(ranges[1:2]) == values[ranges[1].first_message : ranges[1].end_message]
        assert fetched.size < ranges[1].size + 10_000
        assert values_of(ranges) == values
        assert [LedgerRange.of_row(list(each.row())) for each in ranges] == ranges


def test_a_plan_outlives_the_move_to_the_store(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        inspect(client).settle()
        ranges = plan(inspect(client).broker, "t")
        offloaded(client, manual_clock)
        assert store.files(client) == 0
        assert values_of(ranges) == SENT


def test_a_plan_outlives_the_merging_of_what_was_in_the_store_and_on_disk(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks failed over an object that was gone, though the messages were there."""
    with store.open(manual_clock, managed_ledger_offload_deletion_lag_ms=1 << 40) as client:
        publish(client)
        offload(client)
        ranges = plan(inspect(client).broker, "t")
        _merge_as_earlier_versions(client, monkeypatch)
        manual_clock.advance(LOOK_SECONDS)
        assert store.objects() == []
        assert values_of(ranges) == SENT


def test_a_range_whose_object_is_gone_names_ledger_and_object(
    store: Store, manual_clock: ManualClock
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        ranges = plan(inspect(client).broker, "t")
        gone = store.objects()[0]
        gone.unlink()
        with pytest.raises(errors.StorageError, match=gone.name) as told:
            values_of(ranges)
        assert f"ledger {ranges[0].ledger_id} of persistent://public/default/t" in str(told.value)
        client.admin.topics.delete("t", force=True)
        manual_clock.advance(LOOK_SECONDS)
        with pytest.raises(errors.FolderError, match="removed by retention"):
            values_of(ranges)


def test_a_plan_of_whole_ledgers_asks_the_store_for_nothing(
    store: Store, manual_clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.open(manual_clock) as client:
        publish(client)
        offloaded(client, manual_clock)
        fetched = Fetched(monkeypatch)
        assert sum(each.message_count for each in plan(inspect(client).broker, "t")) == COUNT
        assert fetched.size == 0


@pytest.mark.needs("fsspec")
def test_stores_that_fsspec_knows_are_used(store: Store, manual_clock: ManualClock) -> None:
    with store.open(manual_clock, offload_url="memory://bucket/prefix") as client:
        publish(client)
        before = ids_and_values(client)
        offloaded(client, manual_clock)
        assert store.files(client) == 0
        assert ids_and_values(client) == before
        location = next(iter(inspect(client).catalogue.state.offloads.values())).location
        assert StoredObject(location).size()
        client.admin.topics.delete("t", force=True)
        manual_clock.advance(LOOK_SECONDS)
        assert StoredObject(location).size() is None
