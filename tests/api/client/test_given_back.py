"""Facts about what a client, a consumer and a subscription give back when they are closed, and not
when Python's collector comes: descriptors, mappings, blocks of the disk."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess, run_program
from support.forgotten_clients import close_forgotten
from support.waiting import wait_until

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId


@pytest.fixture(autouse=True)
def collector_is_off() -> Iterator[None]:
    close_forgotten()
    gc.disable()
    yield
    gc.enable()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def deleted_files() -> list[str]:
    """What is mapped of files that are deleted."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return [line for line in maps if line.endswith("(deleted)\n") and ".ledger" in line]


def test_closed_clients_of_memory_keep_no_descriptor() -> None:
    def use() -> int:
        with pulsarx.Client("memory:") as client:
            client.create_producer("t").send(b"x")
            reader = client.create_reader("t", MessageId.earliest)
            assert reader.read_next(60_000).data() == b"x"
        return descriptors()

    first = use()
    assert max(use() for _ in range(10)) <= first


def test_closed_clients_of_memory_keep_nothing_of_files_mapped() -> None:
    """Each kept the table of its open ledgers, and 256 MiB of addresses for it, until the collector
    came."""

    def mapped() -> list[str]:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            return [line for line in maps if "/memfd:pulsarx" in line]

    before, producers = mapped(), []
    for _ in range(3):
        with pulsarx.Client("memory:") as client:
            producers.append(client.create_producer("t"))
            producers[-1].send(b"x")
            client.subscribe("t", "s")
            assert set(mapped()) - set(before)
        assert not set(mapped()) - set(before)


def mapped_ledgers() -> list[str]:
    """What is mapped of ledgers in memory, to be read."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        return [line for line in maps if "/memfd:pulsarx" in line and " r--s " in line]


@pytest.mark.parametrize("kind", ["consumer", "reader", "table view"])
def test_closed_clients_of_memory_keep_no_ledger_mapped(kind: str) -> None:
    """Readers kept what they had read in memory until the collector came."""
    before = mapped_ledgers()
    with pulsarx.Client("memory:") as client:
        client.create_producer("t").send(b"x", partition_key="k")
        if kind == "consumer":
            taker: Any = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
            taker.receive(60_000)
        elif kind == "reader":
            taker = client.create_reader("t", MessageId.earliest)
            taker.read_next(60_000)
        else:
            taker = client.create_table_view("t")
        assert set(mapped_ledgers()) - set(before)
    # A thread that fills a view may hold a message.
    wait_until(lambda: not set(mapped_ledgers()) - set(before))


@pytest.mark.parametrize("kind", ["reader", "reader of partitions", "table view"])
def test_closed_readers_keep_no_ledger_mapped_while_their_client_stays(
    kind: str, folder: Path
) -> None:
    def is_mapped() -> bool:
        with open("/proc/self/maps", encoding="utf-8") as maps:
            return any(f"{folder}/ledgers/" in line for line in maps)

    with pulsarx.Client(folder, durability="os") as client:
        if kind == "reader of partitions":
            client.admin.topics.create_partitioned_topic("t", 2)
        client.create_producer("t").send(b"x", partition_key="k")
    with pulsarx.Client(folder, durability="os") as client:  # the ledger is sealed
        if kind == "table view":
            reader: Any = client.create_table_view("t")
        else:
            reader = client.create_reader("t", MessageId.earliest)
            reader.read_next(60_000)
        assert is_mapped()
        reader.close()
        wait_until(lambda: not is_mapped())  # a thread of the client may have it in hand


OWNER = """
import sys, pulsarx
with pulsarx.Client(sys.argv[1]) as client:
    client.create_producer("t").send(b"1")
    print("up", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.standard
def test_closed_clients_beside_the_owner_keep_no_descriptor(folder: Path) -> None:
    def use() -> int:
        with pulsarx.Client(folder) as client:
            client.create_producer("t").send(b"x")
            consumer = client.subscribe("t", "s", ConsumerType.Shared)
            consumer.acknowledge(consumer.receive(60_000))
        return descriptors()

    with pulsarx.Client(folder) as client:
        client.subscribe("t", "s", ConsumerType.Shared)
    with ChildProcess(OWNER, folder) as owner:
        assert owner.line() == "up"
        first = max(use() for _ in range(3))
        assert max(use() for _ in range(10)) <= first


MANY_SUBSCRIPTIONS = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
import pulsarx
from pulsarx import ConsumerType, InitialPosition
NAMES = [f"s{number}" for number in range(300)]
for _ in range(2):  # made, and opened again
    with pulsarx.Client(sys.argv[1], durability="sync") as client:
        producer = client.create_producer("t")
        consumers = [
            client.subscribe("t", name, ConsumerType.Shared,
                             initial_position=InitialPosition.Earliest)
            for name in NAMES
        ]
        producer.send(b"x")
        for consumer in consumers:
            consumer.acknowledge(consumer.receive(60_000))
        for consumer in consumers[::2]:
            consumer.close()
        assert len(client.admin.topics.stats("t")["subscriptions"]) == 300
        assert len(os.listdir("/proc/self/fd")) < 64
with pulsarx.Client(sys.argv[1]) as client:
    found = client.admin.topics.stats("t")["subscriptions"]
    assert {each["msg_backlog"] for each in found.values()} == {0}
"""


@pytest.mark.standard
def test_subscriptions_need_no_descriptor_each(folder: Path) -> None:
    """Each had its cursor's file open, so that a process ended at the limit of open files."""
    run_program(MANY_SUBSCRIPTIONS, folder)


SUBSCRIPTIONS_WITHOUT_CONSUMERS = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
import pulsarx
with pulsarx.Client(sys.argv[1], durability="os") as client:
    producer = client.create_producer("t")
    for number in range(10_000):
        client.admin.topics.create_subscription("t", f"s{number}", pulsarx.MessageId.earliest)
    producer.send(b"x")
    assert len(os.listdir("/proc/self/fd")) < 32
with pulsarx.Client(sys.argv[1], durability="os") as client:  # each is opened again
    found = client.admin.topics.stats("t")["subscriptions"]
    assert (len(found), {each["msg_backlog"] for each in found.values()}) == (10_000, {1})
    with client.subscribe("t", "s9999") as last:
        last.acknowledge(last.receive(60_000))
    assert len(os.listdir("/proc/self/fd")) < 32
"""


@pytest.mark.long
def test_ten_thousand_subscriptions_need_no_descriptors(folder: Path) -> None:
    run_program(SUBSCRIPTIONS_WITHOUT_CONSUMERS, folder)


@pytest.mark.parametrize("kind", [*ConsumerType.__members__.values(), "reader"])
def test_what_a_deletion_closes_gives_its_mappings_back(open_client: Any, kind: Any) -> None:
    """The disk got the blocks of a deleted ledger back when the client was closed."""
    client = open_client(durability="os")
    producer = client.create_producer("t")
    if kind == "reader":
        taker = client.create_reader("t", MessageId.earliest)
    else:
        earliest = InitialPosition.Earliest
        taker = client.subscribe("t", "s", kind, initial_position=earliest)
    for _ in range(10):
        producer.send(bytes(1000))
    take = taker.read_next if kind == "reader" else taker.receive
    for _ in range(5):
        take(60_000)
    client.admin.topics.delete("t", force=True)
    with pytest.raises(pulsarx.AlreadyClosed):
        take(0)
    producer = None
    gc.collect()
    wait_until(lambda: deleted_files() == [])  # the background may have it in hand
