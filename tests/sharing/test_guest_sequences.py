"""Facts about sequence ids in processes that do not own the folder: a producer's own ids may lie
below what its topic knows of its name, and none of those messages is a duplicate."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sharing_process import SharingProcess
from sleeping_thread import until_asleep

import pulsarx
from pulsarx import BatchingType, MessageId, errors

pytestmark = pytest.mark.standard

ONE_DAY_MS = 86_400_000
LARGE = bytes(12_000_000)  # three chunks


@pytest.fixture
def owner(folder: Path, processes: list[SharingProcess]) -> SharingProcess:
    found = SharingProcess(folder, durability="os")
    processes.append(found)
    found.run("client.admin.topics.create_non_partitioned_topic('t')")
    return found


@pytest.fixture
def client(folder: Path, owner: SharingProcess) -> Iterator[pulsarx.Client]:
    """Of this process, beside the owner."""
    with pulsarx.Client(folder) as made:
        yield made


def stop(owner: SharingProcess) -> None:
    os.kill(owner.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, owner.pid, os.WSTOPPED)


def contents(client: pulsarx.Client, topic: str = "t") -> list[bytes]:
    with client.create_reader(topic, MessageId.earliest) as reader:
        found = []
        while reader.has_message_available():
            found.append(reader.read_next(60_000).data())
        return found


def come_far(client: pulsarx.Client, topic: str = "t", name: str = "n") -> None:
    """The name has come further than its next producer will, as that is not told."""
    with client.create_producer(topic, name) as before:
        before.send(b"before", sequence_id=1_000_000)


# An owner whose answers get lost from when `mute` holds something.
MUTES = """
from pulsarx.sessions.server import Server
mute, open_session = [], Server.open_session
def opened(server, write, *rest, **given):
    return open_session(server, lambda data: None if mute else write(data), *rest, **given)
Server.open_session = opened
"""


class Duplicates:
    """Counts what was told that it is one."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, result: pulsarx.Result, found: Any) -> None:
        assert result == pulsarx.Result.Ok
        self.count += found.ledger_id() < 0


@pytest.mark.parametrize("ids", [(None, None), (5, None), (5, 6)])
def test_a_message_that_waited_for_room_is_no_duplicate_of_a_later_one(
    client: pulsarx.Client, owner: SharingProcess, ids: tuple[int | None, int | None]
) -> None:
    """Its chunks went out behind that one with a lower id: its send succeeded, and it was lost."""
    client.admin.topics.set_deduplication("t", True)
    producer = client.create_producer(
        "t", chunking_enabled=True, max_pending_messages=3, block_if_queue_full=True
    )
    told = Duplicates()
    first, second = ids
    stop(owner)
    producer.send_async(b"first", told)
    waiting = threading.Thread(
        target=producer.send_async, args=(LARGE, told), kwargs={"sequence_id": first}
    )
    waiting.start()
    until_asleep(waiting)
    producer.send_async(b"later", told, sequence_id=None if first is None else second)
    os.kill(owner.pid, signal.SIGCONT)
    waiting.join(60)
    producer.flush()
    expected = 1 if second is not None else 0  # 5 behind 6, as their user wanted it
    assert told.count == expected
    found = contents(client)
    assert found == [b"first", b"later", LARGE][: 3 - expected]
    assert producer.send(b"again", sequence_id=producer.last_sequence_id()).ledger_id() < 0
    producer.send(b"last")
    assert contents(client) == [*found, b"last"]


def test_deduplication_that_is_turned_on_drops_nothing_of_busy_producers(
    client: pulsarx.Client,
) -> None:
    """What was numbered between two steps went out behind them: thousands of messages were lost."""
    for round_number in range(6):
        topic = f"t{round_number}"
        come_far(client, topic)
        producer = client.create_producer(
            topic,
            "n",
            batching_enabled=True,
            batching_max_publish_delay_ms=ONE_DAY_MS,
            batching_max_messages=100_000,
            # However long turning it on takes, there are no more than can be sent in time.
            max_pending_messages=1_000_000,
            block_if_queue_full=True,
            send_timeout_millis=0,
        )
        told, sends = Duplicates(), [True]

        def send(producer: Any = producer, told: Any = told, sends: Any = sends) -> None:
            while sends[0]:
                producer.send_async(b"x", told, properties={"a": "b"})

        threads = [threading.Thread(target=send) for _ in range(4)]
        for each in threads:
            each.start()
        client.admin.topics.set_deduplication(topic, True)
        for _ in range(3):  # until it has heard of that
            client.admin.topics.stats(topic)
        sends[0] = False
        for each in threads:
            each.join(60)
        producer.flush()
        assert told.count == 0
        producer.close()


def test_what_an_owner_was_sent_before_it_told_duplicates_is_none_for_the_next_one(
    client: pulsarx.Client, owner: SharingProcess
) -> None:
    """It had deduplication turned on, and was killed before the others heard of it: what it had not
    answered was sent to the next owner, taken for duplicates, and lost."""
    come_far(client)
    producer = client.create_producer("t", "n")
    told = Duplicates()
    producer.send(b"0")
    owner.run("from pulsarx.broker.topics.policy_effects import KeptPolicyEffects")
    owner.run("from pulsarx.sessions.producer import SessionProducer")
    owner.run("SessionProducer.publish = lambda *arguments: None")  # it has not come to that
    owner.run("KeptPolicyEffects.apply_deduplication = lambda effects: os._exit(9)")
    producer.send_async(b"1", told)
    producer.send_async(b"2", told, sequence_id=7)
    owner.ask("client.admin.topics.set_deduplication('t', True)")
    producer.flush()
    assert told.count == 0
    producer.send_async(b"3", told)
    producer.flush()
    assert told.count == 0
    assert contents(client) == [b"before", b"0", b"1", b"2", b"3"]
    assert producer.send(b"again", sequence_id=producer.last_sequence_id()).ledger_id() < 0


def test_duplicates_that_an_owner_has_not_answered_are_duplicates_for_the_next_one(
    client: pulsarx.Client, owner: SharingProcess
) -> None:
    client.admin.topics.set_deduplication("t", True)
    producer = client.create_producer("t", "n")
    for sequence_id in (0, 10):
        producer.send(b"%d" % sequence_id, sequence_id=sequence_id)
    told = Duplicates()
    stop(owner)
    producer.send_async(b"again", told, sequence_id=10)
    producer.send_async(b"11", told)
    producer.send_async(b"again", told, sequence_id=11)
    owner.kill()
    producer.flush()
    assert told.count == 2
    assert contents(client) == [b"0", b"10", b"11"]


@pytest.mark.parametrize("way", ["alone", "batch", "by key", "chunks"])
def test_a_duplicate_in_front_of_what_a_dead_owner_stored_succeeds(
    folder: Path, owner: SharingProcess, way: str
) -> None:
    """It failed with a ConnectError; so did one in chunks, and a batch that was stored without its
    duplicates."""
    owner.run("client.admin.topics.set_deduplication('t', True)")
    owner.run(MUTES)
    with pulsarx.Client(folder) as client:
        kill_behind_a_duplicate(client, owner, way)


def kill_behind_a_duplicate(client: pulsarx.Client, owner: SharingProcess, way: str) -> None:
    kind = BatchingType.KeyBased if way == "by key" else BatchingType.Default
    producer = client.create_producer(
        "t",
        "n",
        batching_enabled=way.startswith("b"),
        chunking_enabled=way == "chunks",
        batching_type=kind,
        batching_max_publish_delay_ms=ONE_DAY_MS,
    )
    size = len(LARGE) if way == "chunks" else 0
    producer.send(b"10", sequence_id=10, partition_key="k")
    told = Duplicates()
    owner.run("mute.append(True)")

    def send_until_stored(numbers: list[int], count: int) -> threading.Thread:
        for number in numbers:
            content = (b"%d" % number).ljust(size)
            producer.send_async(content, told, sequence_id=number, partition_key="k")
        flushing = threading.Thread(target=producer.flush)
        flushing.start()
        pause = threading.Event()
        while owner.run("client.admin.topics.stats('t')['messages']") < count:
            pause.wait(0.01)
        return flushing

    flushing = [send_until_stored([10, 12, 13], 3), send_until_stored([14], 4)]
    owner.kill()
    for each in flushing:
        each.join(60)
    # Which of a batch were duplicates was known to the dead one alone.
    assert told.count == (3 if way.startswith("b") else 1)
    assert [each.strip() for each in contents(client)] == [b"10", b"12", b"13", b"14"]


def test_batches_by_key_that_are_duplicates_in_front_of_what_is_stored_succeed(
    folder: Path, owner: SharingProcess
) -> None:
    """The second of those that went out together failed with ConnectError."""
    owner.run("client.admin.topics.set_deduplication('t', True)")
    owner.run(MUTES)
    with pulsarx.Client(folder) as client:
        producer = client.create_producer(
            "t",
            "n",
            batching_enabled=True,
            batching_type=BatchingType.KeyBased,
            batching_max_publish_delay_ms=ONE_DAY_MS,
        )
        told = Duplicates()

        def send(*numbers: int) -> threading.Thread:
            for number in numbers:
                key = "odd" if number % 2 else "even"
                producer.send_async(b"%d" % number, told, sequence_id=number, partition_key=key)
            flushing = threading.Thread(target=producer.flush)
            flushing.start()
            return flushing

        send(0, 1, 2, 3).join(60)
        owner.run("mute.append(True)")
        waiting = [send(0, 1, 2, 3)]
        until_asleep(waiting[0])
        waiting.append(send(4, 5))
        pause = threading.Event()
        while owner.run("client.admin.topics.stats('t')['messages']") < 6:
            pause.wait(0.01)
        owner.kill()
        for each in waiting:
            each.join(60)
        assert told.count == 4
        assert sorted(contents(client)) == [b"%d" % number for number in range(6)]


def test_a_message_of_which_a_chunk_cannot_be_stored_fails_and_is_new_when_it_is_sent_again(
    client: pulsarx.Client, owner: SharingProcess
) -> None:
    """It was told as stored, because its last chunk was; and what was sent in its place was taken
    for a duplicate."""
    client.admin.topics.set_deduplication("t", True)
    producer = client.create_producer("t", "n", chunking_enabled=True)
    producer.send(LARGE, sequence_id=1)
    owner.run("from pulsarx.testing.faults import fault_plan")
    owner.run("faults = fault_plan()")
    owner.run("plan = faults.__enter__()")
    owner.run("plan.fail('write', call=2)")
    with pytest.raises(errors.BrokerPersistenceError, match="refused"):
        producer.send(LARGE, sequence_id=2)
    assert contents(client) == [LARGE]
    assert producer.send(LARGE, sequence_id=2).ledger_id() > 0
    assert contents(client) == [LARGE, LARGE]


def test_what_waits_for_the_publish_rate_is_no_duplicate(client: pulsarx.Client) -> None:
    """The owner had it, and had not published it yet when it heard that it may tell duplicates: it
    was lost."""
    come_far(client)
    client.admin.topics.set_publish_rate("t", 1, 0)
    producer = client.create_producer("t", "n")
    told = Duplicates()
    for number in range(6):
        producer.send_async(b"%d" % number, told)
    client.admin.topics.set_deduplication("t", True)
    for _ in range(20):  # until it has heard of that
        client.admin.topics.stats("t")
    client.admin.topics.remove_publish_rate("t")
    producer.flush()
    assert told.count == 0
    assert contents(client) == [b"before", *(b"%d" % number for number in range(6))]
    assert producer.send(b"again", sequence_id=1_000_000).ledger_id() < 0


def test_a_name_that_another_producer_had_meanwhile_makes_no_duplicates(
    owner: SharingProcess, folder: Path, processes: list[SharingProcess]
) -> None:
    """That one came to the next owner first, went further, and left: what the dead one had not
    answered was lost."""
    owner.run("client.admin.topics.set_deduplication('t', True)")
    guest = SharingProcess(folder)
    processes.append(guest)
    guest.run("p, ids = client.create_producer('t', 'n'), []")
    guest.run("p.send(b'0') and None")
    stop(owner)
    guest.run("p.send_async(b'1', lambda result, found: ids.append(found.ledger_id() < 0))")
    stop(guest)
    owner.kill()
    with pulsarx.Client(folder, durability="os") as client:
        come_far(client)
        os.kill(guest.pid, signal.SIGCONT)
        guest.run("p.flush()")
        assert guest.run("ids") == [False]
        guest.run("p.send(b'2') and None")
        assert contents(client) == [b"0", b"before", b"1", b"2"]
        assert guest.run("p.send(b'again', sequence_id=1_000_000).ledger_id() < 0")
