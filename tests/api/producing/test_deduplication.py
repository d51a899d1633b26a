"""Facts about messages that are sent again on topics with deduplication."""

from __future__ import annotations

import errno
import random
import threading
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from seeds import new_seed, scaled
from support.message_ids import parts
from topic_reading import ONE_DAY_MS, OpenClient, Told, numbers, read_all, whole_topic

import pulsarx
from pulsarx import BatchingType, BrokerOptions, CompressionType, Result, errors
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan
from pulsarx.topic_name import TopicName

NAMESPACE = "public/default"
NOWHERE = (-1, -1, -1, -1)
ON = BrokerOptions(broker_deduplication_enabled=True)


@pytest.fixture
def deduplicating(open_client: OpenClient) -> Any:
    return open_client(broker_options=ON)


@pytest.fixture(params=["sync", "interval", "os"])
def any_deduplicating(open_client: OpenClient, request: pytest.FixtureRequest) -> Any:
    return open_client(broker_options=ON, durability=request.param)


def producer_of(client: pulsarx.Client, kind: str = "single", **options: Any) -> Any:
    options.setdefault("producer_name", "p")
    if kind != "single":
        options |= {"batching_enabled": True, "batching_max_publish_delay_ms": ONE_DAY_MS}
    if kind == "keys":
        options["batching_type"] = BatchingType.KeyBased
    return client.create_producer(options.pop("topic", "t"), **options)


KINDS = ["single", "batch", "keys"]


# Sending again -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_sent_again_succeeds_and_is_not_stored(any_deduplicating: Any, kind: str) -> None:
    producer = producer_of(any_deduplicating, kind)
    first = producer.send(b"1", sequence_id=1)
    assert parts(first) != NOWHERE
    assert parts(producer.send(b"again", sequence_id=1)) == NOWHERE
    told = Told()
    producer.send_async(b"again", told, sequence_id=1)
    producer.send_async(b"2", told, sequence_id=2)
    producer.send_async(b"again", told, sequence_id=2)
    producer.send_async(b"3", told, sequence_id=3)
    producer.flush()
    assert [result for result, _ in told.results] == [Result.Ok] * 4
    assert [parts(found) == NOWHERE for _, found in told.results if found] == [
        True, False, True, False,
    ]  # fmt: skip
    assert whole_topic(any_deduplicating) == [b"1", b"2", b"3"]


def test_every_lower_id_is_a_duplicate_seen_or_not(deduplicating: Any) -> None:
    producer = producer_of(deduplicating)
    producer.send(b"10", sequence_id=10)
    assert parts(producer.send(b"7", sequence_id=7)) == NOWHERE
    assert producer.last_sequence_id() == 10
    assert whole_topic(deduplicating) == [b"10"]


def test_without_deduplication_all_is_stored(open_client: OpenClient) -> None:
    client = open_client()
    producer = producer_of(client)
    for _ in range(3):
        producer.send(b"x", sequence_id=1)
    assert len(whole_topic(client)) == 3


def test_names_are_told_apart(deduplicating: Any) -> None:
    for name in ("a", "b"):
        producer_of(deduplicating, producer_name=name).send(name.encode(), sequence_id=5)
    assert whole_topic(deduplicating) == [b"a", b"b"]


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.ZLib])
@pytest.mark.parametrize("kind", ["batch", "keys"])
def test_a_batch_is_stored_without_its_duplicates(
    deduplicating: Any, kind: str, compression: CompressionType
) -> None:
    producer = producer_of(deduplicating, kind, compression_type=compression)
    for number in (0, 1, 2, 1, 3, 0, 4, 4, 5):
        producer.send_async(b"%d" % number, None, partition_key=f"{number % 2}", sequence_id=number)
    producer.flush()
    assert sorted(whole_topic(deduplicating)) == numbers(6)


@pytest.mark.parametrize("kind", ["batch", "keys"])
def test_of_a_batch_the_duplicates_are_told_to_their_callbacks(
    deduplicating: Any, kind: str
) -> None:
    producer = producer_of(deduplicating, kind)
    told = Told()
    for number in (0, 1, 2, 1, 3, 0, 4, 4, 5):
        producer.send_async(b"x", told, partition_key=f"{number % 2}", sequence_id=number)
    producer.flush()
    assert [result for result, _ in told.results] == [Result.Ok] * 9
    assert len([1 for _, found in told.results if found and parts(found) == NOWHERE]) == 3


def test_of_batches_by_key_it_is_decided_in_the_order_of_sending(deduplicating: Any) -> None:
    """Their ids interleave: by batch, what another key sent before would be dropped."""
    producer = producer_of(deduplicating, "keys")
    for number in range(20):
        producer.send_async(b"%d" % number, None, partition_key=f"{number % 3}")
    producer.flush()
    assert sorted(map(int, whole_topic(deduplicating))) == list(range(20))


def test_a_duplicate_of_an_open_batch_waits_for_it(open_client: OpenClient) -> None:
    client = open_client(broker_options=ON, durability="sync")
    producer = producer_of(client, "batch")
    producer.send(b"0", sequence_id=0)  # opens the ledger
    order: list[str] = []
    with fault_plan() as plan:
        plan.stall("flush")
        producer.send_async(b"x", lambda *_: order.append("first"), sequence_id=1)
        producer.send_async(b"x", lambda *_: order.append("second"), sequence_id=1)
        while not plan.stalled():
            pass
        assert order == []
        plan.release()
        producer.flush()
    assert order == ["first", "second"]


@pytest.mark.border(left_out="codes of errors")
def test_a_duplicate_of_what_failed_is_new(deduplicating: Any) -> None:
    producer = producer_of(deduplicating)
    producer.send(b"0")
    with fault_plan() as plan:
        for op in ("write", "allocate"):
            plan.fail(op, error=errno.ENOSPC, sticky=True)
        with pytest.raises(errors.StorageFullError):
            producer.send(b"1" * 3_000_000, sequence_id=1)
    assert parts(producer.send(b"1", sequence_id=1)) != NOWHERE
    assert parts(producer.send(b"1", sequence_id=1)) == NOWHERE
    assert whole_topic(deduplicating) == [b"0", b"1"]


@pytest.mark.border(left_out="codes of errors")
@pytest.mark.parametrize("how", ["send", "send_async", "send_arrow", "another producer"])
@pytest.mark.parametrize("late", [False, True])
def test_what_could_not_be_flushed_is_no_duplicate_that_succeeds(
    open_client: OpenClient, how: str, late: bool
) -> None:
    """Nobody knows whether it is on the device, and so it was lost by a power cut, where its first
    send had failed and the second one succeeded."""
    client = open_client(durability="sync", broker_options=ON)
    producer = producer_of(client)
    producer.send(b"0", sequence_id=0)
    with fault_plan() as plan:
        plan.fail("flush", late=late)
        with pytest.raises(errors.LedgerPoisonedError):
            producer.send(b"1", sequence_id=1)
    if how in ("send_arrow", "another producer"):
        with pytest.raises(errors.LedgerPoisonedError):
            producer.close()
        producer = producer_of(client, initial_sequence_id=0)
    with pytest.raises(errors.LedgerPoisonedError, match="open it again"):
        if how == "send_arrow":
            pyarrow = pytest.importorskip("pyarrow")
            producer.send_arrow(pyarrow.table({"value": [b"1"]}))
        elif how == "send_async":
            producer.send_async(b"1", None, sequence_id=1)
        else:
            producer.send(b"1", sequence_id=1)
    with pytest.raises(errors.LedgerPoisonedError):
        client.close()
    client = open_client(broker_options=ON)
    producer_of(client).send(b"1", sequence_id=1)
    assert whole_topic(client) == [b"0", b"1"]


@pytest.mark.border(left_out="codes of errors")
def test_batches_by_key_of_which_some_failed_can_be_sent_again(deduplicating: Any) -> None:
    producer = producer_of(deduplicating, "keys", batching_max_allowed_size_in_bytes=20_000_000)
    producer.send(b"first", partition_key="a", sequence_id=0)
    big = b"x" * 2_000_000
    told = Told()
    for number in range(1, 5):  # two batches, of which the second is too large for the disk
        data = big if number % 2 == 0 else b"%d" % number
        producer.send_async(data, told, partition_key="ab"[number % 2], sequence_id=number)
    with fault_plan() as plan:
        plan.fail("allocate", call=1, error=errno.ENOSPC, sticky=True)
        plan.fail("write", call=2, error=errno.ENOSPC, sticky=True)
        with pytest.raises(errors.StorageFullError):
            producer.flush()
    producer.flush()  # the callbacks have run then
    failed = [number for number, (result, _) in enumerate(told.results) if result != Result.Ok]
    assert 0 < len(failed) < 4
    for number in range(1, 5):
        producer.send(b"%d" % number, partition_key="ab"[number % 2], sequence_id=number)
    found = [each.sequence_id() for each in read_all(deduplicating)]
    assert sorted(found) == [0, 1, 2, 3, 4]


def test_send_many_and_tables_tell_duplicates_too(open_client: OpenClient) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    client = open_client(broker_options=ON)
    producer_of(client).send_many(numbers(5))
    again = producer_of(client, initial_sequence_id=-1)  # from the first one on
    ids = again.send_many(numbers(8))
    assert [parts(each) == NOWHERE for each in ids] == [True] * 5 + [False] * 3
    again.close()
    again = producer_of(client, initial_sequence_id=-1)
    again.send_arrow(pyarrow.table({"value": numbers(10)}))
    again.send_async(b"10", None)
    again.close()
    again = producer_of(client, "batch", initial_sequence_id=-1)
    for data in numbers(12):
        again.send_async(data, None)
    again.close()
    assert whole_topic(client) == numbers(12)


def test_a_message_without_an_id_of_its_own_is_never_a_duplicate(deduplicating: Any) -> None:
    """Its user did not say where ids begin, so the producer goes on above all that it has sent."""
    producer = producer_of(deduplicating, "batch")
    producer.send(b"0", sequence_id=100)
    producer.send(b"1")
    producer.send_async(b"2", None)
    producer.send_many([b"3", b"4"])
    producer.flush()
    assert whole_topic(deduplicating) == numbers(5)
    assert producer.last_sequence_id() == 104


# Coming again ------------------------------------------------------------------------------------


@pytest.mark.parametrize("restart", [False, True])
def test_a_producer_that_comes_again_goes_on_behind_its_last_id(
    open_client: OpenClient, restart: bool
) -> None:
    client = open_client(broker_options=ON)
    producer = producer_of(client)
    assert producer.last_sequence_id() == -1
    producer.send(b"0", sequence_id=41)
    producer.close()
    if restart:
        client.close()
        client = open_client(broker_options=ON)
    producer = producer_of(client)
    assert producer.last_sequence_id() == 41
    assert parts(producer.send(b"again", sequence_id=41)) == NOWHERE
    producer.send(b"1")
    assert producer.last_sequence_id() == 42
    producer.close()
    producer = producer_of(client, initial_sequence_id=10)
    assert producer.last_sequence_id() == 10
    assert parts(producer.send(b"again")) == NOWHERE  # the ids are its user's
    assert whole_topic(client) == numbers(2)


@pytest.mark.border(left_out="several topics")
def test_partitions_go_on_each_for_itself(open_client: OpenClient) -> None:
    client = open_client(broker_options=ON)
    client.admin.topics.create_partitioned_topic("x", 3)
    for _ in range(2):
        producer = producer_of(client, topic="x")
        for number in range(30):
            producer.send(b"%d" % number, partition_key=f"{number}")
        producer.close()
        client.close()
        client = open_client(broker_options=ON)
    count = sum(len(whole_topic(client, f"x-partition-{index}")) for index in range(3))
    assert count == 60


# Turning it on and off ---------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["namespace", "topic"])
def test_turned_on_it_knows_what_the_topic_holds(open_client: OpenClient, level: str) -> None:
    client = open_client(durability="sync")
    producer = producer_of(client, "batch")
    for number in range(5):
        producer.send_async(b"%d" % number, None)
    producer.flush()
    producer.send_async(b"5", None, sequence_id=5)
    assert client.admin.topics.stats("t")["deduplication_status"] == "Disabled"
    if level == "topic":
        client.admin.topics.set_deduplication("t", True)
        assert client.admin.topics.get_deduplication("t") is True
    else:
        client.admin.namespaces.set_deduplication(NAMESPACE, True)
        assert client.admin.namespaces.get_deduplication(NAMESPACE) is True
    assert client.admin.topics.stats("t")["deduplication_status"] == "Enabled"
    for number in range(7):
        producer.send(b"%d" % number, sequence_id=number)
    assert whole_topic(client) == numbers(7)
    client.close()
    client = open_client(durability="sync")
    again = producer_of(client)
    assert again.last_sequence_id() == 6
    assert parts(again.send(b"x", sequence_id=6)) == NOWHERE


def test_turned_on_it_knows_what_waits_in_batches_by_key(open_client: OpenClient) -> None:
    """The next send raised a TypeError, and what was in the first batch was stored twice: batches
    know the ids of their messages while there is deduplication alone."""
    client = open_client()
    producer = producer_of(client, "keys")
    told = Told()
    for sequence_id, key in enumerate("aba"):
        producer.send_async(b"%d" % sequence_id, told, partition_key=key, sequence_id=sequence_id)
    client.admin.topics.set_deduplication("t", True)
    producer.send_async(b"3", told, partition_key="a", sequence_id=3)
    producer.flush()
    for sequence_id, key in enumerate("abac"):
        assert parts(producer.send(b"again", partition_key=key, sequence_id=sequence_id)) == NOWHERE
    assert [result for result, _ in told.results] == [Result.Ok] * 4
    assert sorted(whole_topic(client)) == [b"0", b"1", b"2", b"3"]


@pytest.mark.border(left_out="batches wait at the client")
def test_turned_on_while_batches_by_key_cannot_be_stored_it_is_told(
    open_client: OpenClient,
) -> None:
    client = open_client()
    producer = producer_of(client, "keys")
    told = Told()
    producer.send(b"0", partition_key="a", sequence_id=0)
    producer.send_async(b"1", told, partition_key="a", sequence_id=1)
    producer.send_async(b"2", None, partition_key="b", sequence_id=2)
    broker = inspect(client).broker
    broker.policies.set_topic_policy(TopicName.of(producer.topic()), "deduplication", True)
    with fault_plan() as plan:
        plan.fail("write", error=errno.ENOSPC, sticky=True)
        broker.topics.apply_policies()
    with pytest.raises(errors.StorageFullError):
        producer.flush()
    assert [result for result, _ in told.results] == [Result.BrokerPersistenceError]
    assert parts(producer.send(b"1", partition_key="a", sequence_id=1)) != NOWHERE
    assert parts(producer.send(b"2", partition_key="b", sequence_id=2)) != NOWHERE
    assert whole_topic(client) == [b"0", b"1", b"2"]


@pytest.mark.border(left_out="deduplication turned on")
def test_turned_on_what_has_no_id_of_its_own_is_not_dropped(open_client: OpenClient) -> None:
    """A name that was used before had come further than its producer of now."""
    client = open_client()
    producer_of(client).send(b"0", sequence_id=99)
    producer = producer_of(client)
    client.admin.topics.set_deduplication("t", True)
    producer.send(b"1")
    assert whole_topic(client) == numbers(2)


def test_turned_off_it_forgets(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_non_partitioned_topic("t")
    client.admin.topics.set_deduplication("t", True)
    producer = producer_of(client)
    producer.send(b"x", sequence_id=5)
    client.admin.topics.set_deduplication("t", False)
    producer.send(b"x", sequence_id=5)
    assert len(whole_topic(client)) == 2
    client.close()
    client = open_client()
    assert producer_of(client).last_sequence_id() == -1


def test_turned_off_while_it_is_closed_it_forgets(open_client: OpenClient, folder: Path) -> None:
    client = open_client()
    client.admin.namespaces.set_deduplication(NAMESPACE, True)
    producer_of(client).send(b"x", sequence_id=5)
    client.close()
    assert list((folder / "deduplication").iterdir())
    client = open_client()
    client.admin.namespaces.set_deduplication(NAMESPACE, False)
    assert not list((folder / "deduplication").iterdir())


def test_a_topic_wins_over_its_namespace_and_that_over_the_broker(deduplicating: Any) -> None:
    admin = deduplicating.admin
    admin.topics.create_non_partitioned_topic("t")

    def status() -> str:
        return str(admin.topics.stats("t")["deduplication_status"])

    assert (status(), admin.topics.get_deduplication("t")) == ("Enabled", None)
    admin.namespaces.set_deduplication(NAMESPACE, False)
    assert status() == "Disabled"
    admin.topics.set_deduplication("t", True)
    assert status() == "Enabled"
    admin.topics.remove_deduplication("t")
    assert status() == "Disabled"
    admin.namespaces.remove_deduplication(NAMESPACE)
    assert status() == "Enabled"
    assert admin.namespaces.get_deduplication(NAMESPACE) is None


@pytest.mark.border(left_out="several topics")
def test_a_partitioned_topic_sets_it_for_its_partitions(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic("x", 2)
    client.admin.topics.set_deduplication("x", True)
    figures = client.admin.topics.partitioned_stats("x")["partitions"].values()
    assert [each["deduplication_status"] for each in figures] == ["Enabled"] * 2
    client.admin.topics.update_partitioned_topic("x", 3)
    assert client.admin.topics.stats("x-partition-2")["deduplication_status"] == "Enabled"


@pytest.mark.border(left_out="verbs of an owner")
def test_bad_arguments_are_refused(open_client: OpenClient, folder: Path) -> None:
    client = open_client()
    client.create_producer("t")
    with pytest.raises(ValueError, match="enabled"):
        client.admin.topics.set_deduplication("t", 1)
    with pytest.raises(errors.TopicNotFound):
        client.admin.topics.set_deduplication("nowhere", True)
    with pytest.raises(errors.TopicNotFound):
        client.admin.topics.get_deduplication("nowhere")
    with pytest.raises(errors.TopicNotFound):
        client.admin.namespaces.set_deduplication("public/nowhere", True)
    with pulsarx.Client(folder, read_only=True) as other:
        assert other.admin.topics.get_deduplication("t") is None
        for call in (
            lambda: other.admin.topics.set_deduplication("t", True),
            lambda: other.admin.topics.remove_deduplication("t"),
            lambda: other.admin.namespaces.set_deduplication(NAMESPACE, True),
            lambda: other.admin.namespaces.remove_deduplication(NAMESPACE),
        ):
            with pytest.raises(errors.OperationNotSupported):
                call()


@pytest.mark.standard
def test_turned_on_and_off_while_all_send_nothing_is_lost(open_client: OpenClient) -> None:
    client = open_client()
    client.create_producer("t").close()
    names = "abcd"
    over = threading.Event()
    sent: dict[str, int] = {}
    hundreds = {name: threading.Semaphore(0) for name in names}  # that each may send
    sends = {name: threading.Event() for name in names}

    def work(name: str) -> None:
        producer = producer_of(client, "batch" if name > "b" else "single", producer_name=name)
        number = 0
        while not over.is_set():
            if number % 100 == 0:
                hundreds[name].acquire()
            producer.send_async(f"{name}{number}".encode(), None)
            sends[name].set()
            number += 1
            if number % 500 == 0:
                producer.flush()
        producer.close()
        sent[name] = number

    threads = [threading.Thread(target=work, args=[name]) for name in names]
    for thread in threads:
        thread.start()
    for number in range(12):
        for name in names:
            sends[name].clear()
            hundreds[name].release(5)
        for name in names:
            sends[name].wait()
        client.admin.topics.set_deduplication("t", number % 2 == 0)
    over.set()
    for name in names:
        hundreds[name].release()
    for thread in threads:
        thread.join()
    found = whole_topic(client)
    assert len(found) == len(set(found)) == sum(sent.values())


# Snapshots ---------------------------------------------------------------------------------------


def test_what_was_trimmed_is_known_all_the_same(folder: Path) -> None:
    options = ON.replace(managed_ledger_max_entries_per_ledger=5)
    for round_number in range(3):
        with pulsarx.Client(folder, broker_options=options, durability="os") as client:
            consumer = client.subscribe("t", "s")
            producer = producer_of(client)
            assert producer.last_sequence_id() == 30 * round_number - 1
            for number in range(30):
                producer.send(b"x", sequence_id=30 * round_number + number)
            while messages := consumer.receive_many(100, 0):
                consumer.acknowledge_cumulative(messages[-1])
            inspect(client).settle()
            inspect(client).topic("t").trim()
            assert len(whole_topic(client)) < 10
            for number in range(30):
                assert parts(producer.send(b"x", sequence_id=number)) == NOWHERE


def test_names_are_forgotten_when_they_are_silent_for_too_long(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    options = ON.replace(broker_deduplication_producer_inactivity_timeout_minutes=60)
    client = open_client(broker_options=options, clock=manual_clock)
    for name in ("old", "young", "there"):
        producer = producer_of(client, producer_name=name)
        producer.send(b"x", sequence_id=5)
        if name == "old":
            producer.close()
            manual_clock.advance(59 * 60)
        if name == "young":
            producer.close()
    manual_clock.advance(130)
    producer.send(b"y")  # something that a snapshot is written for
    manual_clock.advance(130)
    last = {}
    for name in ("old", "young"):
        last[name] = producer_of(client, producer_name=name).last_sequence_id()
    assert last == {"old": -1, "young": 5}
    assert parts(producer.send(b"x", sequence_id=5)) == NOWHERE


def test_of_too_many_names_the_longest_silent_are_forgotten(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    options = ON.replace(broker_deduplication_max_number_of_producers=3)
    client = open_client(broker_options=options, clock=manual_clock)
    for number in range(5):
        producer_of(client, producer_name=f"{number}").send(b"x", sequence_id=5)
        manual_clock.advance(1)
    client.close()
    client = open_client(broker_options=options, clock=manual_clock)
    known = [
        name for name in "4321" if producer_of(client, producer_name=name).last_sequence_id() >= 0
    ]
    assert known == ["4", "3", "2"]


def test_a_name_is_not_forgotten_while_its_producer_comes(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot of that moment forgot it, and what was sent again after a restart was stored
    twice."""
    options = ON.replace(broker_deduplication_max_number_of_producers=1)
    client = open_client(broker_options=options, clock=manual_clock)
    there = producer_of(client, producer_name="there")
    topic = inspect(client).topic("t")
    with monkeypatch.context() as patch:
        patch.setattr(type(topic), "instruct", lambda self, _: self.deduplication.snapshot())
        producer = producer_of(client, producer_name="coming")
    producer.send(b"x", sequence_id=5)
    there.close()
    manual_clock.advance(1)  # it is the one to be forgotten by now
    client.close()
    client = open_client(broker_options=options, clock=manual_clock)
    producer_of(client, producer_name="coming").send(b"x", sequence_id=5)
    assert whole_topic(client) == [b"x"]


@pytest.mark.parametrize("cut", [0, 10, -5])
def test_a_damaged_snapshot_is_told_and_the_topic_read_instead(
    folder: Path, cut: int, caplog: pytest.LogCaptureFixture
) -> None:
    with pulsarx.Client(folder, broker_options=ON) as client:
        producer_of(client).send_many(numbers(10))
    (snapshot,) = (folder / "deduplication").iterdir()
    snapshot.write_bytes(snapshot.read_bytes()[:cut])
    with pulsarx.Client(folder, broker_options=ON) as client:
        assert producer_of(client).last_sequence_id() == 9
    assert "damaged" in caplog.text


SEND_AND_DIE = """
import os, sys, pulsarx
folder, durability, kind = sys.argv[1:4]
options = pulsarx.BrokerOptions(
    broker_deduplication_enabled=True,
    broker_deduplication_entries_interval=7,
    managed_ledger_max_entries_per_ledger=40,
)
client = pulsarx.Client(folder, durability=durability, broker_options=options)
producer = client.create_producer(
    "t", "p", batching_enabled=kind != "single", batching_max_messages=9,
    batching_type=getattr(pulsarx.BatchingType, "KeyBased" if kind == "keys" else "Default"),
    block_if_queue_full=True, initial_sequence_id=-1,
)
# From the start again, as a program that does not know how far it came.
for number in range(100_000):
    producer.send_async(
        b"%d" % number, None, partition_key="%d" % (number * 7 % 5), sequence_id=number
    )
    if number % 100 == 0:
        producer.flush()
        os.write(1, b"%d\\n" % number)
"""


@pytest.mark.standard
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("durability", ["sync", "os"])
def test_killed_at_any_moment_nothing_is_stored_twice_or_refused(
    folder: Path, durability: str, kind: str
) -> None:
    chance = random.Random(new_seed())
    confirmed = -1
    for _ in range(scaled(5)):
        with ChildProcess(SEND_AND_DIE, folder, durability, kind) as child:
            for _ in range(chance.randrange(1, 8)):
                line = int(child.line())
            child.kill()
            confirmed = max([confirmed, line, *map(int, child.rest())])
        with pulsarx.Client(folder, broker_options=ON) as client:
            found = [int(each) for each in whole_topic(client)]
        assert len(found) == len(set(found)), "something is stored twice"
        assert set(range(confirmed + 1)) <= set(found)
    with pulsarx.Client(folder, broker_options=ON) as client:
        kind = "keys" if kind == "keys" else "batch"
        producer = producer_of(client, kind, block_if_queue_full=True)
        end = max(found) + 50
        for number in range(end):
            producer.send_async(
                b"%d" % number, None, partition_key=f"{number * 7 % 5}", sequence_id=number
            )
        producer.close()
        found = [int(each) for each in whole_topic(client)]
    assert sorted(found) == list(range(end)), "something new was refused"


# Statistics and letters --------------------------------------------------------------------------


def test_statistics_tell_the_last_id_of_each_publisher(deduplicating: Any) -> None:
    producer = producer_of(deduplicating)
    producer.send(b"x", sequence_id=17)
    figures = deduplicating.admin.topics.stats("t")
    assert figures["deduplication_status"] == "Enabled"
    assert [
        (each["producer_name"], each["last_sequence_id"]) for each in figures["publishers"]
    ] == [("p", 17)]


@pytest.mark.long
def test_duplicates_are_told_behind_what_was_sent_before_them(open_client: OpenClient) -> None:
    """One that came just when the message in front of it had become durable was told first; between
    processes that ended the connection."""
    client = open_client(broker_options=ON, durability="sync")
    producer = producer_of(client, max_pending_messages=1000, block_if_queue_full=True)
    flushing = client.create_producer("t")
    goes_on = [True]

    def flush() -> None:
        while goes_on[0]:
            flushing.send(b"")

    threads = [threading.Thread(target=flush) for _ in range(2)]
    for each in threads:
        each.start()
    told: list[tuple[int, int]] = []
    for number in range(scaled(400_000)):
        for turn in range(12):
            at = number, turn
            producer.send_async(b"", lambda *_, at=at: told.append(at), sequence_id=number)
        if number % 200 == 0:
            producer.flush()
            assert told == sorted(told)
            told.clear()
    goes_on[0] = False
    for each in threads:
        each.join()
