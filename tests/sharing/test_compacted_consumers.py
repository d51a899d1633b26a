"""Facts about consumers of other processes that read a topic as it was compacted."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from sharing_process import SharingProcess

import pulsarx
from pulsarx import InitialPosition, MessageId

pytestmark = pytest.mark.standard

KEYS = 10
PATIENCE_MS = 60_000


@pytest.fixture
def owner(owner: SharingProcess) -> SharingProcess:
    """Owns a folder of small ledgers, and knows how to publish and to compact."""
    owner.run("client.close()")
    owner.run("options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=3)")
    owner.run("client = pulsarx.Client(sys.argv[1], broker_options=options)")
    owner.run(
        "def publish(value):\n"
        " with client.create_producer('t') as producer:\n"
        f"  for number in range({KEYS}):\n"
        "   producer.send(value, partition_key=f'k{number}')"
    )
    owner.run(
        "def compact():\n"
        " topics = client.admin.topics\n"
        " topics.trigger_compaction('t')\n"
        " while topics.compaction_status('t')['status'] == 'RUNNING':\n"
        "  threading.Event().wait(0.02)\n"
        " assert topics.compaction_status('t')['status'] == 'SUCCESS'"
    )
    return owner


def subscribe(client: pulsarx.Client, **options: object) -> pulsarx.Consumer:
    return client.subscribe(
        "t", "s", initial_position=InitialPosition.Earliest, is_read_compacted=True, **options
    )


def pairs(consumer: pulsarx.Consumer, count: int) -> list[tuple[str, bytes]]:
    """What is received next, and acknowledged."""
    found = []
    for _ in range(count):
        message = consumer.receive(PATIENCE_MS)
        consumer.acknowledge(message)
        found.append((message.partition_key(), message.data()))
    return found


def each_key(value: bytes) -> list[tuple[str, bytes]]:
    return [(f"k{number}", value) for number in range(KEYS)]


def test_it_reads_survivors_whose_ledgers_were_trimmed(owner: SharingProcess, folder: Path) -> None:
    owner.run("publish(b'1'); publish(b'2'); compact()")
    with pulsarx.Client(folder) as client:
        consumer = subscribe(client)
        assert pairs(consumer, KEYS) == each_key(b"2")
        last = client.admin.topics.stats("t")["subscriptions"]["s"]
        assert last["msg_backlog"] == 0
        owner.run("publish(b'3')")
        assert pairs(consumer, KEYS) == each_key(b"3")
        consumer.seek(MessageId.earliest)
        assert pairs(consumer, 2 * KEYS) == each_key(b"2") + each_key(b"3")
        owner.run("compact()")
        consumer.seek(MessageId.earliest)
        first = consumer.receive(PATIENCE_MS)
        assert (first.partition_key(), first.data()) == ("k0", b"3")
        assert pairs(consumer, KEYS - 1) == each_key(b"3")[1:]
        consumer.seek(first.message_id())
        assert pairs(consumer, KEYS - 1) == each_key(b"3")[1:]


@pytest.mark.parametrize("received", [0, 2])
def test_a_compaction_meanwhile_hides_no_key(
    owner: SharingProcess, folder: Path, received: int
) -> None:
    """What was sent to it, and not read yet, may be neither there nor in the topic any more."""
    owner.run("publish(b'0'); publish(b'1'); compact()")
    with pulsarx.Client(folder) as client:
        consumer = subscribe(client, receiver_queue_size=4)
        state = dict(pairs(consumer, received))
        for value in range(2, 6):
            owner.run(f"publish(b'{value}'); compact()")
        while state != dict(each_key(b"5")):
            ((key, found),) = pairs(consumer, 1)
            assert found > state.get(key, b"")
            state[key] = found
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 0


def test_it_goes_on_under_the_next_owner(owner: SharingProcess, folder: Path) -> None:
    owner.run("publish(b'0'); publish(b'1'); compact()")
    with pulsarx.Client(folder) as client:
        consumer = subscribe(client, receiver_queue_size=4)
        assert pairs(consumer, 3) == each_key(b"1")[:3]
        held = consumer.receive(PATIENCE_MS)
        owner.kill()
        assert pairs(consumer, KEYS - 4) == each_key(b"1")[4:]
        consumer.acknowledge(held)
        with client.create_producer("t") as producer:
            producer.send(b"2", partition_key="k0")
        assert pairs(consumer, 1) == [("k0", b"2")]
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 0
        consumer.seek(MessageId.earliest)
        assert pairs(consumer, KEYS + 1) == [*each_key(b"1"), ("k0", b"2")]


def test_it_is_refused_beside_one_that_reads_all(owner: SharingProcess, folder: Path) -> None:
    owner.run("consumer = client.subscribe('t', 's', pulsarx.ConsumerType.Failover)")
    with pulsarx.Client(folder) as client, pytest.raises(pulsarx.ConsumerBusy):
        subscribe(client, consumer_type=pulsarx.ConsumerType.Failover)


def test_a_table_view_follows_what_is_compacted(owner: SharingProcess, folder: Path) -> None:
    owner.run("publish(b'0'); publish(b'1'); compact()")
    seen: list[tuple[str, bytes]] = []
    came = threading.Condition()

    def tell(key: str, value: bytes) -> None:
        with came:
            seen.append((key, value))
            came.notify_all()

    with pulsarx.Client(folder) as client:
        view = client.create_table_view("t")
        view.for_each_and_listen(tell)
        assert sorted(seen) == each_key(b"1")
        owner.run("publish(b'2'); compact()")
        with came:
            assert came.wait_for(lambda: len(seen) == 2 * KEYS, PATIENCE_MS / 1000)
        assert seen[KEYS:] == each_key(b"2")
        assert [view.get(key) for key, _ in each_key(b"2")] == KEYS * [b"2"]
