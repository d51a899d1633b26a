"""Facts about closing while other threads are in the middle of everything."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from topic_reading import whole_topic

import pulsarx
from pulsarx import MessageId, errors

SMALL_LEDGERS = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=50)


def until_closed(call: Callable[[], object], failures: list[BaseException]) -> threading.Thread:
    """Call again and again in a thread until AlreadyClosed; other errors are failures."""

    def run() -> None:
        try:
            while True:
                call()
        except errors.AlreadyClosed:
            pass
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


@pytest.mark.standard
@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_a_client_closes_while_all_its_calls_are_running(
    folder: Path, durability: str, turn: int
) -> None:
    client = pulsarx.Client(folder, durability=durability, broker_options=SMALL_LEDGERS)
    client.admin.namespaces.set_retention("public/default", -1, -1)
    confirmed: list[bytes] = []
    failures: list[BaseException] = []
    single = client.create_producer("t")
    batched = client.create_producer("t", batching_enabled=True, block_if_queue_full=True)
    consumer = client.subscribe("t", "s")
    several = client.subscribe(["t", "u"], "several", pulsarx.ConsumerType.Shared)
    client.subscribe("t", "listening", message_listener=pulsarx.Consumer.acknowledge)
    reader = client.create_reader("t", MessageId.earliest)
    counts = iter(range(10**9))

    def send() -> None:
        payload = b"send %d" % next(counts)
        single.send(payload)
        confirmed.append(payload)

    def send_async() -> None:
        payload = b"async %d" % next(counts)

        def told(result: Any, message_id: Any) -> None:
            if result == pulsarx.Result.Ok:
                confirmed.append(payload)

        batched.send_async(payload, told)
        if not batched.is_connected():  # the callback was told
            raise errors.AlreadyClosed(detail="producer")

    def redeliver() -> None:
        consumer.redeliver_unacknowledged_messages()
        consumer.has_message()  # says when the consumer is closed

    def send_many() -> None:
        payloads = [b"many %d" % next(counts) for _ in range(30)]
        single.send_many(payloads)
        confirmed.extend(payloads)

    calls: list[Callable[[], object]] = [
        send,
        send_async,
        send_many,
        batched.flush,
        lambda: consumer.acknowledge(consumer.receive()),
        lambda: consumer.acknowledge_many(consumer.receive_many(10, 5)),
        redeliver,
        lambda: several.acknowledge(several.receive()),
        lambda: several.acknowledge_many(several.receive_many(10, 5)),
        lambda: several.negative_acknowledge(several.receive_async().result(30)),
        reader.read_next,
        lambda: client.admin.topics.stats("t"),
    ]
    threads = [until_closed(call, failures) for call in calls]
    threads[0].join(0.05 + turn / 20)
    client.close()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert [repr(each) for each in failures] == []
    with pulsarx.Client(folder) as again:
        stored = whole_topic(again)
    assert len(set(stored)) == len(stored)
    assert set(confirmed) <= set(stored)


def test_members_come_and_go_while_messages_flow(folder: Path) -> None:
    failures: list[BaseException] = []
    client = pulsarx.Client(folder, durability="os", broker_options=SMALL_LEDGERS)
    steady = client.create_producer("t")

    def come_and_go() -> None:
        producer = client.create_producer("t", batching_enabled=True)
        producer.send_async(b"x", None)
        client.create_reader("t", MessageId.earliest).read_next(5000)

    def subscribe() -> None:
        consumer = client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
        consumer.acknowledge_many(consumer.receive_many(100, 5))
        consumer.close()

    def unsubscribe() -> None:
        consumer = client.subscribe("t", "other")
        consumer.receive_many(10, 0)
        consumer.unsubscribe()

    calls: list[Callable[[], object]] = [
        lambda: steady.send(b"x"),
        come_and_go,
        come_and_go,
        subscribe,
        unsubscribe,
    ]
    threads = [until_closed(call, failures) for call in calls]
    threads[0].join(0.3)
    client.close()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert [repr(each) for each in failures] == []


@pytest.mark.standard
def test_ledgers_that_wait_for_their_seals_get_them_when_the_client_closes(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """However many they are: what one of them calls for begins when it is done, and not within."""
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=1)
    count = 600
    with pulsarx.Client(folder, durability="os", broker_options=options) as client:
        producer = client.create_producer("t")
        for number in range(count):
            producer.send(b"%d" % number)
    assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []
    with pulsarx.Client(folder, read_only=True) as client:
        assert [int(each) for each in whole_topic(client, "t")] == list(range(count))
