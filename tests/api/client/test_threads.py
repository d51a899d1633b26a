"""Facts about many threads on one topic."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pulsarx

PRODUCERS = 8


def run_all(tasks: list[Callable[[], None]]) -> None:
    """Run each in a thread; the first error of any is raised."""
    failures: list[BaseException] = []

    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    if failures:
        raise failures[0]


def check_order(found: list[bytes], each: int) -> None:
    """Every producer's numbers, each once and ascending."""
    by_producer: dict[bytes, list[int]] = {}
    for data in found:
        name, _, number = data.partition(b":")
        by_producer.setdefault(name, []).append(int(number))
    assert len(by_producer) == PRODUCERS
    for numbers in by_producer.values():
        assert numbers == list(range(each))


@pytest.mark.parametrize("batching", [False, True])
def test_the_order_of_each_of_eight_producers_holds(folder: Path, batching: bool) -> None:
    each = 40_000 if batching else 8_000
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=5_000)
    with pulsarx.Client(folder, durability="os", broker_options=options) as client:
        consumer = client.subscribe("t", "s")
        found: list[bytes] = []

        def publish(number: int) -> None:
            with client.create_producer(
                "t", batching_enabled=batching, block_if_queue_full=True
            ) as producer:
                for at in range(each):
                    producer.send_async(b"%d:%d" % (number, at), None)

        def consume() -> None:
            while len(found) < each * PRODUCERS:
                messages = consumer.receive_many(1000, 20_000)
                assert messages
                found.extend(message.data() for message in messages)
                consumer.acknowledge_many(messages)

        run_all([consume, *(partial(publish, number) for number in range(PRODUCERS))])
        check_order(found, each)
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 0


@pytest.mark.parametrize("shared", [False, True])
def test_concurrent_durable_sends_each_get_their_own_id(folder: Path, shared: bool) -> None:
    each = 150
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe("t", "s")
        common = client.create_producer("t", batching_enabled=True)
        ids: list[Any] = []

        def publish(number: int) -> None:
            producer = common if shared else client.create_producer("t")
            for at in range(each):
                ids.append((producer.send(b"%d:%d" % (number, at)), b"%d:%d" % (number, at)))

        run_all([partial(publish, number) for number in range(PRODUCERS)])
        found = {}
        while messages := consumer.receive_many(1000, 0):
            found.update({message.message_id(): message.data() for message in messages})
        assert found == dict(ids)
        check_order(list(found.values()), each)


def test_callbacks_and_flushes_from_many_threads_all_end(folder: Path) -> None:
    told: list[Any] = []
    with pulsarx.Client(folder) as client:
        producer = client.create_producer(
            "t", batching_enabled=True, block_if_queue_full=True, max_pending_messages=50
        )

        def publish() -> None:
            for at in range(400):
                producer.send_async(b"%d" % at, lambda result, message_id: told.append(result))
                if at % 100 == 0:
                    producer.flush()

        run_all([publish] * PRODUCERS)
        producer.flush()
    assert told == [pulsarx.Result.Ok] * (PRODUCERS * 400)


def test_acknowledging_in_one_thread_while_receiving_in_another(folder: Path) -> None:
    count = 30_000
    with pulsarx.Client(folder, durability="os") as client:
        consumer = client.subscribe("t", "s")
        received: list[Any] = []
        ready = threading.Semaphore(0)

        def receive() -> None:
            for _ in range(count):
                received.append(consumer.receive(60_000))
                ready.release()

        def acknowledge() -> None:
            for at in range(count):
                ready.acquire()
                consumer.acknowledge(received[at])

        def publish() -> None:
            producer = client.create_producer("t", batching_enabled=True)
            producer.send_many([b"%d" % at for at in range(count)])

        run_all([receive, acknowledge, publish])
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 0


def test_clients_open_and_close_in_many_threads(folder: Path) -> None:
    def open_and_use() -> None:
        for number in range(20):
            with pulsarx.Client(folder, durability="os") as client:
                client.create_producer(f"t{number % 3}").send(b"x")

    run_all([open_and_use] * 4)
    with pulsarx.Client(folder) as client:
        stored = [
            client.admin.topics.stats(topic)["messages"] for topic in client.admin.topics.get_list()
        ]
    assert sum(stored) == 80
