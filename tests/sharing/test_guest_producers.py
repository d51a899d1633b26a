"""Facts about producers of processes that do not own the folder: what they are told is what a
producer of the owner's process is told."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from sharing_process import SharingProcess
from support.message_ids import parts
from support.waiting import wait_until

import pulsarx
from pulsarx import BatchingType, MessageId, ProducerAccessMode, Result, errors
from pulsarx.processes.guest.owner_connection import GuestConnection
from pulsarx.processes.guest.producers import GuestProducer

pytestmark = pytest.mark.standard

NOWHERE = (-1, -1, -1, -1)
ONE_DAY_MS = 86_400_000


def stored(client: pulsarx.Client, topic: str = "t") -> list[tuple[bytes, tuple[int, ...]]]:
    """Contents and ids of what a topic holds."""
    with client.create_reader(topic, MessageId.earliest) as reader:
        found = []
        while reader.has_message_available():
            message = reader.read_next(60_000)
            found.append((message.data(), parts(message.message_id())))
        return found


@pytest.fixture
def deduplicating(client: pulsarx.Client) -> pulsarx.Client:
    client.admin.topics.create_non_partitioned_topic("t")
    client.admin.topics.set_deduplication("t", True)
    return client


def test_the_clusters_of_a_message_stay_in_its_metadata(
    folder: Path, client: pulsarx.Client
) -> None:
    producer = client.create_producer("t", batching_enabled=True)
    producer.send(b"payload-1", replication_clusters=["a", "bb"])
    producer.send(b"payload-2", disable_replication=True)
    (content,) = (
        each
        for path in (folder / "ledgers").rglob("*")
        if path.is_file() and b"payload-1" in (each := path.read_bytes())
    )
    # Pulsar's field 7, replicate_to, in the metadata in front of the payload.
    first, second = content.index(b"payload-1"), content.index(b"payload-2")
    assert bytes.fromhex("3a0161 3a026262") in content[first - 60 : first]
    assert b"\x3a\x09__local__" in content[second - 60 : second]


# What statistics say of them ----------------------------------------------------------------------


def publisher(client: pulsarx.Client, topic: str = "t") -> dict[str, Any]:
    (found,) = client.admin.topics.stats(topic)["publishers"]
    return dict(found)


@pytest.mark.parametrize("deduplicates", [False, True])
@pytest.mark.parametrize("topic", ["t", "non-persistent://public/default/t"])
def test_statistics_say_the_last_sequence_id(
    client: pulsarx.Client, topic: str, deduplicates: bool
) -> None:
    """It was -1 for producers of other processes."""
    client.create_producer(topic).close()
    if deduplicates and "non-" not in topic:
        client.admin.topics.set_deduplication(topic, True)
    producer = client.create_producer(topic, batching_enabled=True)
    assert publisher(client, topic)["last_sequence_id"] == -1
    producer.send(b"alone")
    assert publisher(client, topic)["last_sequence_id"] == 0
    for _ in range(5):
        producer.send_async(b"batch", None)
    producer.flush()
    assert publisher(client, topic)["last_sequence_id"] == producer.last_sequence_id() == 5
    producer.send(b"own", sequence_id=70)
    assert publisher(client, topic)["last_sequence_id"] == 70
    compressed = client.create_producer(
        "by key", batching_enabled=True, batching_type=BatchingType.KeyBased,
        compression_type=pulsarx.CompressionType.LZ4,
    )  # fmt: skip
    for number in range(12):
        compressed.send_async(b"x", None, partition_key=str(number % 3))
    compressed.flush()
    assert publisher(client, "by key")["last_sequence_id"] == 11


def test_statistics_say_how_many_chunks_come(client: pulsarx.Client) -> None:
    """It was 0 for producers of other processes."""
    producer = client.create_producer("t", chunking_enabled=True)
    large = bytes(6 << 20)
    for body in [large, large, large, b"small"]:
        producer.send(body)
    found = client.admin.topics.stats("t")
    # Chunks, of which large has two.
    assert found["chunked_message_rate"] == pytest.approx(6 / 60)
    assert found["publishers"][0]["chunked_message_rate"] == pytest.approx(6 / 60)
    assert found["publishers"][0]["last_sequence_id"] == 3
    # Of what is published entries are counted, as in Pulsar: large has two chunks.
    assert (found["messages"], found["msg_in_counter"]) == (7, 7)


# Having a topic to oneself ------------------------------------------------------------------------

EXCLUSIVE = {"access_mode": ProducerAccessMode.Exclusive, "producer_name": "holder"}


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_new_partitions_are_kept_for_who_has_the_others(
    client: pulsarx.Client, domain: str
) -> None:
    """A producer of another process got them only when it was there first."""
    topic = f"{domain}://public/default/t"
    client.admin.topics.create_partitioned_topic(topic, 2)
    holder = client.create_producer(topic, **EXCLUSIVE)
    client.admin.topics.update_partitioned_topic(topic, 4)
    for partition in (2, 3):
        with pytest.raises(errors.ProducerBusy, match="holder has it to itself"):
            client.create_producer(f"{topic}-partition-{partition}")
        with pytest.raises(errors.ProducerFenced):
            client.create_producer(
                f"{topic}-partition-{partition}", access_mode=ProducerAccessMode.Exclusive
            )
    last = f"{topic}-partition-3"
    wait_until(lambda: client.admin.topics.stats(last)["publishers"])
    assert publisher(client, last)["producer_name"] == "holder"
    assert publisher(client, last)["access_mode"] == "Exclusive"
    holder.send(b"x")
    holder.close()
    client.create_producer(f"{topic}-partition-2").send(b"x")
    client.create_producer(last, access_mode=ProducerAccessMode.Exclusive).send(b"x")


def test_a_holder_that_goes_before_it_has_a_new_partition_leaves_it_to_others(
    client: pulsarx.Client,
) -> None:
    client.admin.topics.create_partitioned_topic("t", 2)
    holder = client.create_producer("t", **EXCLUSIVE)
    client.admin.topics.update_partitioned_topic("t", 3)
    holder.close()
    client.create_producer("t-partition-2", access_mode=ProducerAccessMode.Exclusive).send(b"x")


def test_who_has_some_partitions_alone_is_kept_no_new_ones(client: pulsarx.Client) -> None:
    client.admin.topics.create_partitioned_topic("t", 2)
    client.create_producer("t-partition-0", **EXCLUSIVE)
    client.create_producer("t-partition-1", access_mode=ProducerAccessMode.Exclusive)
    client.admin.topics.update_partitioned_topic("t", 3)
    client.create_producer("t-partition-2").send(b"x")


@pytest.mark.parametrize("topic", ["t", "non-persistent://public/default/t"])
def test_a_producer_that_is_fenced_out_is_not_connected(client: pulsarx.Client, topic: str) -> None:
    """That of another process heard of it when it sent."""
    old = client.create_producer(
        topic, batching_enabled=True, batching_max_publish_delay_ms=ONE_DAY_MS
    )
    old.send(b"stored")
    told: list[Result] = []
    old.send_async(b"open", lambda result, _: told.append(result))
    new = client.create_producer(topic, access_mode=ProducerAccessMode.ExclusiveWithFencing)
    wait_until(lambda: told)
    assert told == [Result.ProducerFenced]
    assert not old.is_connected()
    with pytest.raises(errors.ProducerFenced):
        old.send(b"late")
    new.send(b"new")
    old.close()
    assert new.is_connected()
    if topic == "t":
        assert [content for content, _ in stored(client)] == [b"stored", b"new"]


# Duplicates ---------------------------------------------------------------------------------------


def test_a_duplicate_leaves_the_last_sequence_id_as_it_is(deduplicating: pulsarx.Client) -> None:
    """It was the duplicate's, in a process beside the owner."""
    producer = deduplicating.create_producer("t")
    producer.send(b"10", sequence_id=10)
    assert parts(producer.send(b"7", sequence_id=7)) == NOWHERE
    assert producer.last_sequence_id() == 10
    producer.send(b"11")
    assert producer.last_sequence_id() == 11


def test_without_deduplication_it_is_that_of_the_last_message(client: pulsarx.Client) -> None:
    producer = client.create_producer("t")
    for sequence_id in (10, 7):
        producer.send(b"x", sequence_id=sequence_id)
        assert producer.last_sequence_id() == sequence_id
    batching = client.create_producer("t", batching_enabled=True)
    for _ in range(3):
        batching.send_async(b"x", None)
    batching.flush()
    assert batching.last_sequence_id() == 2


@pytest.mark.parametrize("kind", [BatchingType.Default, BatchingType.KeyBased])
@pytest.mark.parametrize("known", [[1], [0, 1, 2, 3], [0, 2, 4], []])
def test_of_a_batch_each_message_is_told_what_became_of_it(
    deduplicating: pulsarx.Client, kind: BatchingType, known: list[int]
) -> None:
    """Beside the owner, duplicates were told the id of an entry, and the others that of a message
    that stood elsewhere in the batch."""
    with deduplicating.create_producer("t", "p") as producer:
        for number in known:
            producer.send(b"%d" % number, sequence_id=number)
    producer = deduplicating.create_producer(
        "t", "p", batching_enabled=True, batching_type=kind,
        batching_max_publish_delay_ms=ONE_DAY_MS,
    )  # fmt: skip
    told: dict[int, tuple[Result, tuple[int, ...]]] = {}

    def tell(number: int) -> Any:
        return lambda result, found: told.update({number: (result, parts(found))})

    for number in range(5):
        producer.send_async(b"%d" % number, tell(number), partition_key="k", sequence_id=number)
    producer.flush()
    highest = max(known, default=-1)
    places = dict(stored(deduplicating))
    assert list(told) == list(range(5))
    assert told == {
        number: (Result.Ok, NOWHERE if number <= highest else places[b"%d" % number])
        for number in range(5)
    }
    assert producer.last_sequence_id() == 4
    assert len(places) == len({*known, *range(highest + 1, 5)})


def test_a_send_that_closes_a_batch_is_told_its_own_place(deduplicating: pulsarx.Client) -> None:
    with deduplicating.create_producer("t", "p") as producer:
        producer.send(b"1", sequence_id=1)
    producer = deduplicating.create_producer(
        "t", "p", batching_enabled=True, batching_max_publish_delay_ms=ONE_DAY_MS
    )
    producer.send_async(b"again", None, sequence_id=1)
    producer.send_async(b"2", None, sequence_id=2)
    found = producer.send(b"3", sequence_id=3)
    assert stored(deduplicating)[-1] == (b"3", parts(found))
    assert parts(producer.send(b"again", sequence_id=3)) == NOWHERE


def test_of_many_each_is_told_what_became_of_it(deduplicating: pulsarx.Client) -> None:
    with deduplicating.create_producer("t", "p") as producer:
        producer.send(b"before", sequence_id=3)
    producer = deduplicating.create_producer("t", "p", initial_sequence_id=1)  # goes on with 2
    found = producer.send_many([b"%d" % number for number in range(2, 8)])
    places = dict(stored(deduplicating))
    assert [parts(each) for each in found] == [
        NOWHERE, NOWHERE, *(places[b"%d" % number] for number in range(4, 8))
    ]  # fmt: skip
    again = deduplicating.create_producer("u", "p", initial_sequence_id=1)
    again.close()
    producer.close()
    again = deduplicating.create_producer("t", "p", initial_sequence_id=1)
    found = again.send_many([b"%d" % number for number in range(2, 8)], keys=["k"] * 6)
    assert [parts(each) for each in found] == [NOWHERE] * 6


def test_rows_tell_the_place_of_the_last_that_is_new(deduplicating: pulsarx.Client) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    with deduplicating.create_producer("t", "p") as producer:
        producer.send(b"before", sequence_id=3)
    rows = pyarrow.table({"value": [b"%d" % number for number in range(2, 8)]})
    with deduplicating.create_producer("t", "p", initial_sequence_id=1) as producer:
        last = producer.send_arrow(rows)
        assert last is not None
        assert stored(deduplicating)[-1] == (b"7", parts(last))
    with deduplicating.create_producer("t", "p", initial_sequence_id=1) as producer:
        assert producer.send_arrow(rows) is None


# Quotas -------------------------------------------------------------------------------------------


def fill(
    client: pulsarx.Client, policy: str, owner: pulsarx.Client | None = None, **options: Any
) -> pulsarx.Producer:
    """A producer of a topic whose backlog is larger than its quota, which has stopped it.

    owner: the client of the producer, where that is another one."""
    topics = client.admin.topics
    topics.create_non_partitioned_topic("t")
    topics.create_subscription("t", "s", MessageId.earliest)
    topics.set_backlog_quota("t", limit_size=1000, policy=policy)
    producer = (owner or client).create_producer("t", **options)
    # The check that stops those who are there comes once a second, on a busy machine later. It
    # stops them in the order in which they came.
    with client.create_producer("t", send_timeout_millis=300) as filling:
        pause = threading.Event()
        for _ in range(1000):
            try:
                filling.send(bytes(2000))
            except errors.ProducerBlockedQuotaExceededException:
                return producer
            except errors.Timeout as error:
                if "its quota is" in error.detail:
                    return producer
            pause.wait(0.05)
    raise AssertionError("it never happened")


def test_a_send_that_a_quota_holds_says_so(client: pulsarx.Client) -> None:
    """Beside the owner it said that the owner had gone."""
    producer = fill(client, "producer_request_hold", send_timeout_millis=2000)
    count = client.admin.topics.stats("t")["messages"]
    for _ in range(2):
        with pytest.raises(errors.Timeout) as caught:
            producer.send(b"held")
        assert "persistent://public/default/t: the backlog has" in caught.value.detail
        assert "its quota is 1000" in caught.value.detail
        assert "no room for 2000 ms, which is send_timeout_millis" in caught.value.detail
        assert "nothing was stored" in caught.value.detail
    assert producer.is_connected()
    client.admin.topics.skip_all_messages("t", "s")
    pause = threading.Event()
    tries = 0
    while tries < 100:
        tries += 1
        try:
            producer.send(b"there is room")
            break
        except errors.Timeout:  # one of these may be stored all the same
            pause.wait(0.1)
    assert count + 1 <= client.admin.topics.stats("t")["messages"] <= count + tries


def test_a_producer_that_a_quota_shut_is_not_connected(client: pulsarx.Client) -> None:
    """Beside the owner it said that it was, and each send was refused."""
    producer = fill(client, "producer_exception")
    for _ in range(2):
        with pytest.raises(errors.ProducerBlockedQuotaExceededException):
            producer.send(b"refused")
        assert not producer.is_connected()
    client.admin.topics.skip_all_messages("t", "s")
    with pytest.raises(errors.ProducerBlockedQuotaExceededException):
        producer.send(b"refused")
    client.create_producer("t").send(b"another one")


def test_what_has_timed_out_is_not_stored_though_the_owner_reads_nothing_meanwhile(
    folder: Path, processes: list[SharingProcess]
) -> None:
    """More than an owner reads ahead waited for the publish rate: so it did not hear what had timed
    out, and stored it when its turn came. Meanwhile it heard nothing else of the process either."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.admin.topics.create_non_partitioned_topic('t')")
    owner.run("client.admin.topics.set_publish_rate('t', 2)")
    with pulsarx.Client(folder) as client:
        hasty = client.create_producer("t", send_timeout_millis=6000, chunking_enabled=True)
        told: dict[int, Result] = {}

        def send(number: int, size: int) -> None:
            payload = (b"%d" % number).ljust(size)
            hasty.send_async(payload, lambda result, _: told.__setitem__(number, result))

        for number in range(40):
            send(number, 6_000_000 if number == 17 else 1_000_000)
        hasty.flush()
        assert set(told) == set(range(40))
        client.create_producer("another").send(b"")
        client.admin.topics.remove_publish_rate("t")
        hasty.send(b"40")
        found = [int(payload) for payload, _ in stored(client)]
        confirmed = [number for number, result in told.items() if result == Result.Ok]
        assert {*confirmed, 40} <= set(found)
        # Some may just have been stored when their sends timed out, two each second.
        assert len(found) - len({*confirmed, 40}) <= 10
        assert found == sorted(found)


# An owner that stops when a guest says that it has heard of its producer being closed.
STOPS = """
import os, signal
from pulsarx.sessions.producers import SessionProducers
stops, end = [], SessionProducers.end
def stop(producers, values):
    if stops:
        stops.clear()
        os.kill(os.getpid(), signal.SIGSTOP)
    end(producers, values)
SessionProducers.end = stop
"""


def test_a_producer_comes_again_to_an_owner_that_was_stopped_meanwhile(
    folder: Path, processes: list[SharingProcess]
) -> None:
    """It had asked once, and asked no more: each of its sends timed out from then on."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run(STOPS)
    owner.run("client.close()")
    owner.run("options = pulsarx.BrokerOptions(backlog_quota_check_interval_in_seconds=1)")
    owner.run("client = pulsarx.Client(sys.argv[1], broker_options=options)")
    with (
        pulsarx.Client(folder) as patient,
        pulsarx.Client(folder, operation_timeout_seconds=4) as client,
    ):
        producer = fill(patient, "producer_request_hold", owner=client)
        count = client.admin.topics.stats("t")["messages"]
        owner.run("stops.append(True)")
        told: list[Result] = []
        producer.send_async(b"held", lambda result, _: told.append(result))
        os.waitid(os.P_PID, owner.pid, os.WSTOPPED)
        for _ in range(2):
            with pytest.raises(errors.Timeout):  # as what its producer had asked before
                client.create_producer("t")
        os.kill(owner.pid, signal.SIGCONT)
        client.admin.topics.skip_all_messages("t", "s")
        producer.flush()
        assert told == [Result.Ok]
        assert client.admin.topics.stats("t")["messages"] == count + 1


def test_a_producer_comes_to_a_topic_that_was_unloaded_just_when_it_was_found(
    folder: Path, processes: list[SharingProcess]
) -> None:
    """It was told that there is no such topic."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.create_producer('t').send(b'0') and None")
    owner.run("from pulsarx.broker.topics.producer_registry import ProducerRegistry")
    owner.run("add, unloads = ProducerRegistry.add, [True]")
    owner.run(
        "def unload(registry, *arguments, **options):\n"
        "    if unloads:\n"
        "        unloads.clear()\n"
        "        client.admin.topics.unload('t')\n"
        "    return add(registry, *arguments, **options)\n"
        "ProducerRegistry.add = unload"
    )
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send(b"1")
        assert [payload for payload, _ in stored(client)] == [b"0", b"1"]


@pytest.mark.parametrize("made", [
    "",
    "client.admin.topics.create_partitioned_topic('t', 3)",
    "client.admin.topics.create_non_partitioned_topic('t')",
])  # fmt: skip
@pytest.mark.parametrize("mode", [ProducerAccessMode.Shared, ProducerAccessMode.Exclusive])
@pytest.mark.parametrize("is_known", [False, True], ids=["before", "behind"])
def test_a_producer_comes_to_a_topic_that_was_deleted_just_when_it_was_found(
    folder: Path,
    processes: list[SharingProcess],
    monkeypatch: pytest.MonkeyPatch,
    made: str,
    mode: ProducerAccessMode,
    is_known: bool,
) -> None:
    """It was refused with NotAllowedError, as a topic that is named as a partition; or, where the
    owner knew it already, with TopicNotFound, and stayed registered on the topic that came next.
    """
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.admin.topics.create_partitioned_topic('t', 2)")
    register, first = GuestProducer._register, [True]

    def register_while_it_goes(producer: GuestProducer, connection: GuestConnection) -> None:
        if not first:
            register(producer, connection)
            return
        first.clear()
        if is_known:
            register(producer, connection)
        owner.run("client.admin.topics.delete_partitioned_topic('t', force=True)")
        if made:
            owner.run(made)
        if not is_known:
            register(producer, connection)

    monkeypatch.setattr(GuestProducer, "_register", register_while_it_goes)
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t", access_mode=mode)
        producer.send(b"1")
        assert [payload for payload, _ in stored(client)] == [b"1"]
        producer.close()
        client.create_producer("t", access_mode=ProducerAccessMode.Exclusive)


# Waiting for a turn -------------------------------------------------------------------------------


def test_closing_a_client_ends_its_waiting(client: pulsarx.Client, folder: Path) -> None:
    """Beside the owner it waited for ever, where another client of the process stayed open."""
    there = client.create_producer("t")
    mine = pulsarx.Client(folder)
    told: list[str] = []

    def wait() -> None:
        try:
            mine.create_producer("t", access_mode=ProducerAccessMode.WaitForExclusive)
        except errors.AlreadyClosed:
            told.append("closed")

    waits = threading.Thread(target=wait, daemon=True)
    waits.start()
    waits.join(0.5)
    assert waits.is_alive()
    mine.close()
    waits.join(60)
    assert told == ["closed"]
    there.close()
    client.create_producer("t", access_mode=ProducerAccessMode.Exclusive)


def test_a_send_that_has_timed_out_waiting_for_the_publish_rate_is_not_stored_later(
    folder: Path, processes: list[SharingProcess]
) -> None:
    """Its caller was told Timeout, and it was stored all the same when its turn came."""
    owner = SharingProcess(folder)
    processes.append(owner)
    owner.run("client.admin.topics.create_non_partitioned_topic('t')")
    owner.run("client.admin.topics.set_publish_rate('t', 1)")
    with pulsarx.Client(folder) as client:
        hasty = client.create_producer("t", send_timeout_millis=6000)
        told: dict[int, Result] = {}

        def send(number: int) -> None:
            payload = b"%d" % number
            hasty.send_async(payload, lambda result, _: told.__setitem__(number, result))

        for number in range(16):
            send(number)
        hasty.flush()
        assert set(told) == set(range(16))
        assert set(told.values()) == {Result.Ok, Result.Timeout}
        client.admin.topics.remove_publish_rate("t")
        hasty.send(b"16")
        found = [int(payload) for payload, _ in stored(client)]
        confirmed = [number for number, result in told.items() if result == Result.Ok]
        assert {*confirmed, 16} <= set(found)
        # Some may just have been stored when their sends timed out, one each second.
        assert len(found) - len({*confirmed, 16}) <= 5
        assert found == sorted(found)
        # What waits no longer than it may is stored when its turn comes.
        client.admin.topics.set_publish_rate("t", 2)
        patient = client.create_producer("t")
        for number in range(17, 21):
            patient.send_async(b"%d" % number, None)
        patient.flush()
        assert [int(payload) for payload, _ in stored(client)] == [*found, 17, 18, 19, 20]
