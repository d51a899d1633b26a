"""Scenes in which threads truly overlap, in sections without the interpreter's lock. Each asserts
what must hold; under the thread sanitizer none of its accesses may race.

The native ones call the core alone (core_races.pyx): where Python is between two calls its lock
orders them, and hides a race.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from compiled_modules import compiled_module
from sharing_process import SharingProcess
from support.waiting import wait_until

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, InitialPosition, MessageId, errors
from pulsarx._pycore.ground.owner_link import OwnerLink
from pulsarx.testing.inspection import inspect

PATIENCE = 120.0
SWITCH_SECONDS = 1e-5  # how often threads of Python take turns
Task = Callable[[], object]


def core_races() -> Any:
    """The native part."""
    return compiled_module(Path(__file__).parent / "core_races.pyx")


def run_all(tasks: list[Task], begin: Callable[[], object] | None = None) -> list[Any]:
    """Run each in a thread, begun at one barrier unless they have one; their results. The first
    error of any is raised."""
    barrier = threading.Barrier(len(tasks))
    results: list[Any] = [None] * len(tasks)
    failures: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            (begin or barrier.wait)()
            results[number] = tasks[number]()
        except BaseException as error:
            failures.append(error)

    threads = [
        threading.Thread(target=guarded, args=(each,), daemon=True) for each in range(len(tasks))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    if failures:
        raise failures[0]
    assert not any(thread.is_alive() for thread in threads), "a thread does not end"
    return results


def nothing() -> None:
    """Native threads have a barrier of their own."""


@contextmanager
def short_turns() -> Iterator[None]:
    """Threads of Python give the interpreter's lock up as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


# Of the core alone --------------------------------------------------------------------------------


def growing_ledgers(folder: Path, count: int, durable: bool = False) -> None:
    """Two publish and roll over, one flushes, readers of both ledgers sleep on the topic's event
    and on the slots; what is full is sealed meanwhile."""
    first = max(count // 2, 1)
    scene = core_races().GrowingLedgers(8, first, durable)
    tasks = [
        partial(scene.publish, count, durable),
        partial(scene.publish, count, True),
        partial(scene.flush, count),
        scene.settle,
        partial(scene.read, 0, first),
        partial(scene.read, 1, 2 * count - first),
        partial(scene.look, 0, first),
        partial(scene.look, 1, 2 * count - first),
    ]
    found = run_all(tasks, nothing)
    assert found == [count, count, True, True, first, 2 * count - first, True, True]


def then_wake(scene: Any, task: Task) -> object:
    """For one behind which there is nothing to read any more."""
    found = task()
    scene.wake_all()
    return found


def closing_ledger(folder: Path, count: int) -> None:
    """A ledger is closed while others append, flush and read."""
    scene = core_races().GrowingLedgers(5, 1 << 30, False)
    tasks = [
        partial(scene.publish, count, False),
        partial(scene.publish, count, True),
        partial(scene.flush, 1 << 30),
        partial(scene.read, 0, 1 << 30),
        partial(then_wake, scene, partial(scene.close, count)),
    ]
    found = run_all(tasks, nothing)
    assert max(found[:2]) <= count


def failing_calls(folder: Path, count: int, writes: bool = False) -> None:
    """A flush fails while others append, wait for their turn and read: the ledger is poisoned.
    writes: before that a write fails, so that the next ledger takes the entries."""
    native = core_races()
    scene = native.GrowingLedgers(5, 1 << 30, False)
    native.fail_calls(max(count // 2, 2), max(count // 3, 1) if writes else 0)
    try:
        durable = partial(scene.publish, 1 << 20, True)
        tasks = [partial(then_wake, scene, durable) for _ in range(3)]
        tasks += [partial(scene.publish, count, False), partial(scene.read, 0, 1 << 30)]
        found = run_all(tasks, nothing)
    finally:
        native.fail_no_more()
    assert all(each < 1 << 20 for each in found[:3])


def takers(folder: Path, count: int, one: bool = False) -> None:
    """Four take what one puts, asleep on one event, or on two."""
    count = min(count, 4096)
    scene = core_races().Takers(5)
    takes = [partial(scene.take, count, one) for _ in range(4)]
    run_all([partial(scene.put, count, one), *takes], nothing)
    assert scene.total == count * (count - 1) // 2


def switched_ledgers(folder: Path, count: int, durable: bool = False) -> None:
    """Transactions over two topics end while others publish there: who looks at both at one moment
    sees each in both or in none, and nobody sleeps on."""
    scene = core_races().SwitchedLedgers(6, durable)
    tasks = [
        partial(scene.transact, count),
        partial(scene.publish, 0, durable),
        partial(scene.publish, 1, durable),
        partial(scene.read, 0, count),
        partial(scene.read, 1, count),
        partial(scene.compare, count),
    ]
    assert run_all(tasks, nothing) == [2 * count, True, True, count, count, 0]


# Of the library -----------------------------------------------------------------------------------


def small(entries: int = 40) -> BrokerOptions:
    return BrokerOptions(managed_ledger_max_entries_per_ledger=entries)


def publishing(folder: Path, count: int, durability: str = "os") -> None:
    """Producers with and without batches, consumers of every kind, a reader, all at a time, over
    many ledgers; everything comes once, and is acknowledged meanwhile."""
    kinds = [ConsumerType.Exclusive, ConsumerType.Shared, ConsumerType.KeyShared]
    kinds.append(ConsumerType.Failover)
    with pulsarx.Client(folder, durability=durability, broker_options=small()) as client:
        total = 3 * count
        consumers = [client.subscribe("t", each.name, each) for each in kinds]
        others = [client.subscribe("t", each.name, each) for each in kinds[1:]]
        reader = client.create_reader("t", MessageId.earliest)
        taken: dict[str, list[bytes]] = {each.name: [] for each in kinds}

        def send(name: bytes, batching: bool) -> None:
            with client.create_producer(
                "t", batching_enabled=batching, block_if_queue_full=True
            ) as producer:
                for each in range(count):
                    payload = b"%s:%d" % (name, each)
                    if batching:
                        producer.send_async(payload, None, partition_key=str(each % 7))
                    else:
                        producer.send(payload, partition_key=str(each % 7))

        def consume(consumer: Any, name: str) -> None:
            while len(taken[name]) < total:
                try:
                    message = consumer.receive(200)
                except errors.Timeout:
                    continue
                if name == "Exclusive":
                    consumer.acknowledge_cumulative(message)
                else:
                    consumer.acknowledge(message)
                taken[name].append(message.data())

        def read() -> None:
            for _ in range(total):
                reader.read_next(60_000)

        def look() -> None:
            while any(len(each) < total for each in taken.values()):
                client.admin.topics.stats("t")

        tasks: list[Task] = [partial(send, name, name == b"a") for name in (b"a", b"b", b"c")]
        tasks += [
            partial(consume, each, kind.name) for each, kind in zip(consumers, kinds, strict=True)
        ]
        tasks += [
            partial(consume, each, kind.name) for each, kind in zip(others, kinds[1:], strict=True)
        ]
        with short_turns():
            run_all([*tasks, read, look])
        for each in taken.values():
            assert len(each) == len(set(each)) == total


def telling(folder: Path, count: int) -> None:
    """Listeners, futures, a consumer of several topics and one with a timeout, all told of the same
    messages by watchers, the pool of work and the clock."""
    options = small(100)
    with pulsarx.Client(folder, durability="interval", broker_options=options) as client:
        counts = {"listener": 0, "future": 0, "several": 0, "nacked": 0}
        lock = threading.Lock()

        def heard(consumer: pulsarx.Consumer, message: pulsarx.Message) -> None:
            consumer.acknowledge(message)
            with lock:
                counts["listener"] += 1

        for number in range(2):
            client.subscribe("t", f"listener{number}", ConsumerType.Shared, message_listener=heard)
        asked = client.subscribe("t", "future", ConsumerType.Shared)
        several = client.subscribe(["t", "u"], "several", ConsumerType.Shared)
        nacked = client.subscribe(
            "t", "nacked", ConsumerType.Shared, negative_ack_redelivery_delay_ms=10
        )

        def send(topic: str) -> None:
            with client.create_producer(topic) as producer:
                for each in range(count):
                    producer.send(b"%d" % each, deliver_after=None)

        def ask() -> None:
            waiting = [asked.receive_async() for _ in range(8)]
            while counts["future"] < count:
                message = waiting.pop(0).result(60)
                asked.acknowledge(message)
                counts["future"] += 1
                waiting.append(asked.receive_async())
            for each in waiting:
                each.cancel()

        def take_several() -> None:
            while counts["several"] < 2 * count:
                several.acknowledge(several.receive(60_000))
                counts["several"] += 1

        def refuse() -> None:
            refused: set[int] = set()
            while counts["nacked"] < count:
                message = nacked.receive(60_000)
                number = int(message.data())
                if number % 5 == 0 and number not in refused:
                    refused.add(number)
                    nacked.negative_acknowledge(message)
                    continue
                nacked.acknowledge(message)
                counts["nacked"] += 1

        with short_turns():
            run_all([partial(send, "t"), partial(send, "u"), ask, take_several, refuse])
        wait_until(lambda: counts["listener"] == 2 * count, "a listener was not told")


def trimming(folder: Path, count: int) -> None:
    """Retention removes ledgers while readers map them, cursors are flushed, and members come and
    go."""
    with pulsarx.Client(folder, durability="sync", broker_options=small(10)) as client:
        done = threading.Event()
        first = client.create_producer("t")
        first.send(b"first")

        def send() -> None:
            try:
                for each in range(count):
                    first.send(b"%d" % each)
            finally:
                done.set()

        def consume() -> None:
            with client.subscribe("t", "s", initial_position=InitialPosition.Earliest) as consumer:
                for _ in range(count):
                    consumer.acknowledge(consumer.receive(60_000))

        def read() -> None:
            while not done.is_set():
                with client.create_reader("t", MessageId.earliest) as reader:
                    while not done.is_set() and reader.has_message_available():
                        reader.read_next(60_000)

        def trim() -> None:
            while not done.is_set():
                inspect(client).topic("persistent://public/default/t").trim()

        def come_and_go() -> None:
            while not done.is_set():
                client.create_producer("t", batching_enabled=True).close()

        client.subscribe("t", "s", initial_position=InitialPosition.Earliest).close()
        with short_turns():
            run_all([send, consume, read, read, trim, come_and_go])


def closing(folder: Path, count: int) -> None:
    """A client is closed while its calls are running, and the next one finds what was confirmed."""
    client = pulsarx.Client(folder, durability="sync", broker_options=small())
    confirmed: list[bytes] = []
    numbers = iter(range(10**9))
    producer = client.create_producer("t")
    batched = client.create_producer("t", batching_enabled=True, block_if_queue_full=True)
    consumer = client.subscribe("t", "s", ConsumerType.Shared)
    reader = client.create_reader("t", MessageId.earliest)
    client.admin.namespaces.set_retention("public/default", -1, -1)

    def send() -> None:
        payload = b"%d" % next(numbers)
        producer.send(payload)
        confirmed.append(payload)

    def until_closed(call: Task) -> None:
        try:
            while True:
                call()
        except errors.AlreadyClosed:
            pass

    def close() -> None:
        wait_until(lambda: len(confirmed) >= count, "nothing is confirmed")
        client.close()

    calls: list[Task] = [
        send,
        send,
        lambda: batched.send_async(b"batched", None) or batched.flush(),
        lambda: consumer.acknowledge(consumer.receive()),
        lambda: consumer.acknowledge(consumer.receive_async().result(60)),
        reader.read_next,
        lambda: client.admin.topics.stats("t"),
    ]
    with short_turns():
        run_all([close, *(partial(until_closed, each) for each in calls)])
    with (
        pulsarx.Client(folder) as again,
        again.create_reader("t", MessageId.earliest) as stored,
    ):
        found = set()
        while stored.has_message_available():
            found.add(stored.read_next(60_000).data())
    assert set(confirmed) <= found


def transacting(folder: Path, count: int, durability: str = "os") -> None:
    """Transactions over two topics, one after the other and two at a time, are committed and
    aborted while others publish there, over many small ledgers: consumers and readers get all that
    counts, asleep until it comes."""
    options = small(4)
    with pulsarx.Client(folder, durability=durability, broker_options=options) as client:
        client.admin.namespaces.set_retention("public/default", -1, -1)
        topics = ("t", "u")
        readers = [client.create_reader(each, MessageId.earliest) for each in topics]
        consumers = [client.subscribe(each, "s", ConsumerType.Shared) for each in topics]
        total = 2 * count + 2 * ((count + 1) // 2)  # plain ones, and what is committed

        def send(topic: str, name: bytes) -> None:
            with client.create_producer(topic) as producer:
                for each in range(count):
                    producer.send(b"%s:%d" % (name, each))

        def transact(name: bytes) -> None:
            producers = [client.create_producer(each) for each in topics]
            for number in range(count):
                transaction = client.new_transaction()
                end = "aborted" if number % 2 else "committed"
                for producer in producers:
                    content = b"%s:%s:%d" % (name, end.encode(), number)
                    producer.send(content, transaction=transaction)
                (transaction.abort if number % 2 else transaction.commit)()

        def take(consumer: Any) -> None:
            taken = set()
            for _ in range(total):
                message = consumer.receive(60_000)
                consumer.acknowledge(message)
                taken.add(message.data())
            assert len(taken) == total and not any(b"aborted" in each for each in taken)

        def read(reader: Any) -> None:
            found = {reader.read_next(60_000).data() for _ in range(total)}
            assert len(found) == total and not any(b"aborted" in each for each in found)

        with short_turns():
            run_all([
                *(partial(send, each, name) for each in topics for name in (b"a", b"b")),
                *(partial(transact, name) for name in (b"x", b"y")),
                *(partial(take, each) for each in consumers),
                *(partial(read, each) for each in readers),
            ])  # fmt: skip


def linked(folder: Path, count: int) -> None:
    """Threads send over one connection, whose reading threads do what comes."""
    ours, theirs = socket.socketpair()
    for each in (ours, theirs):
        each.setblocking(False)
    links = OwnerLink(ours.fileno()), OwnerLink(theirs.fileno())
    size = 300
    got = [0, 0]
    sending = [2, 2]
    lock = threading.Lock()

    def send(at: int) -> None:
        for _ in range(count):
            links[at].write(b"x" * size)
        with lock:
            sending[at] -= 1
        links[at].wake()

    def read(at: int) -> None:
        """Until all has come, and the other end has taken all."""
        taken = bytearray(1 << 12)
        while got[at] < 2 * count * size or sending[at]:
            got[at] += max(links[at].wait(taken, True, -1), 0)
        while links[at].unsent:
            links[at].wait(taken, True, 1)  # it may have gone when the thread begins to sleep

    def wake() -> None:
        for _ in range(count):
            links[0].wake()

    with short_turns():
        sends = [partial(send, at) for at in (0, 0, 1, 1)]
        run_all([*sends, partial(read, 0), partial(read, 1), wake])
    for each in links:
        each.end()
    ours.close()
    theirs.close()
    assert got == [2 * count * size] * 2


def guests(folder: Path, count: int) -> None:
    """This process owns a folder and publishes from several threads; another one publishes and
    consumes there, asleep on the published ends and on its connection."""
    with (
        pulsarx.Client(folder, durability="os", broker_options=small()) as client,
        SharingProcess(folder) as guest,
    ):
        guest.run("consumer = client.subscribe('t', 's', pulsarx.ConsumerType.Shared)")
        guest.run("reader = client.create_reader('t', MessageId.earliest)")
        guest.run("producer = client.create_producer('t')")
        here = client.subscribe("t", "here", ConsumerType.Shared)
        total = 3 * count

        def send() -> None:
            with client.create_producer("t") as producer:
                for each in range(count):
                    producer.send(b"%d" % each)

        def take() -> None:
            for _ in range(total):
                here.acknowledge(here.receive(60_000))

        def elsewhere() -> None:
            guest.run(
                f"import threading\n"
                f"def read():\n"
                f"    for _ in range({total}): reader.read_next(60000)\n"
                f"def send():\n"
                f"    for _ in range({count}): producer.send(b'there')\n"
                f"threads = [threading.Thread(target=each) for each in (read, send)]\n"
                f"for each in threads: each.start()\n"
                f"for _ in range({total}): consumer.acknowledge(consumer.receive(60000))\n"
                f"for each in threads: each.join()\n"
            )

        with short_turns():
            run_all([send, send, take, elsewhere])
        guest.run("client.close()")


SCENES: dict[str, tuple[Callable[[Path, int], None], int]] = {
    # name: the scene, and what it does in a round of a campaign
    "ledgers": (growing_ledgers, 20_000),
    "durable ledgers": (partial(growing_ledgers, durable=True), 4_000),
    "a ledger that is closed": (closing_ledger, 20_000),
    "a flush that fails": (failing_calls, 400),
    "a write and a flush that fail": (partial(failing_calls, writes=True), 400),
    "switched ledgers": (switched_ledgers, 2_000),
    "durable switched ledgers": (partial(switched_ledgers, durable=True), 1_000),
    "takers of two events": (takers, 4_000),
    "takers that are woken one by one": (partial(takers, one=True), 4_000),
    "publishing": (publishing, 400),
    "durable publishing": (partial(publishing, durability="sync"), 200),
    "publishing at intervals": (partial(publishing, durability="interval"), 400),
    "telling": (telling, 200),
    "trimming": (trimming, 300),
    "transacting": (transacting, 60),
    "durable transacting": (partial(transacting, durability="sync"), 40),
    "transacting at intervals": (partial(transacting, durability="interval"), 60),
    "closing": (closing, 100),
    "a connection": (linked, 2_000),
    "guests": (guests, 200),
}
UNDER_SANITIZER = "thread" in os.environ.get("PULSARX_SANITIZE", "")
