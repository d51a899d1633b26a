"""Facts about sends and acknowledgements that are under way, or failed, when a transaction ends."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from support.clients import OpenClient
from support.waiting import wait_until
from transaction_steps import seen, taken

import pulsarx
from pulsarx import InitialPosition, MessageId, Result, aio, errors
from pulsarx.transaction import TransactionState


@pytest.fixture
def client(open_client: OpenClient) -> pulsarx.Client:
    return open_client()


def put(told: list[Any]) -> Any:
    return lambda result, _: told.append(result)


def in_thread(call: Any) -> tuple[threading.Thread, list[Any]]:
    """A call that goes on beside, and what it raised, or None."""
    found: list[Any] = []

    def run() -> None:
        try:
            call()
            found.append(None)
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, found


@pytest.mark.parametrize("has_joined", [False, True])
def test_a_commit_waits_for_sends_that_are_queued(client: pulsarx.Client, has_joined: bool) -> None:
    """It succeeded without them, or failed because of them."""
    producer, other = client.create_producer("t"), client.create_producer("u")
    transaction = client.new_transaction()
    other.send(b"u", transaction=transaction)
    if has_joined:
        producer.send(b"0", transaction=transaction)
    producer.hold("the quota")
    told: list[Any] = []
    for number in (1, 2):
        producer.send_async(b"%d" % number, put(told), transaction=transaction)
    thread, found = in_thread(transaction.commit)
    with pytest.raises(errors.InvalidTxnStatusError):
        wait_until(lambda: transaction.state() is TransactionState.COMMITTING)
        producer.send(b"late", transaction=transaction)
    assert thread.is_alive()
    producer.release()
    thread.join()
    assert found == [None]
    assert seen(client, "t") == [b"0", b"1", b"2"][not has_joined :]
    wait_until(lambda: told == [Result.Ok, Result.Ok])


def test_a_commit_waits_for_futures_that_are_queued(open_client: OpenClient) -> None:
    """With asyncio it waited for none of them."""
    served = open_client("memory:futures")
    served.admin.namespaces.set_publish_rate("public/default", 50, -1)

    async def main() -> list[Any]:
        client = aio.Client("memory:futures")
        producer = await client.create_producer("t", batching_enabled=False)
        transaction = await client.new_transaction()
        sends = [
            asyncio.ensure_future(producer.send(b"%d" % number, transaction=transaction))
            for number in range(60)
        ]
        await asyncio.sleep(0)
        await transaction.commit()
        found = await asyncio.gather(*sends, return_exceptions=True)
        await client.close()
        return found

    found = asyncio.run(main())
    assert all(isinstance(each, MessageId) for each in found)
    assert len(seen(served, "t")) == 60


def test_a_commit_waits_until_the_deadline_at_most(open_client: OpenClient) -> None:
    clock = pulsarx.ManualClock()
    client = open_client(clock=clock)
    producer = client.create_producer("t", send_timeout_millis=0)
    transaction = client.new_transaction(1000)
    producer.send(b"0", transaction=transaction)
    producer.hold("the quota")
    producer.send_async(b"1", None, transaction=transaction)
    thread, found = in_thread(transaction.commit)
    wait_until(lambda: transaction.state() is TransactionState.COMMITTING)
    clock.advance(1.1)
    thread.join(60)
    assert isinstance(found[0], errors.InvalidTxnStatusError)
    assert transaction.state() is TransactionState.TIME_OUT
    producer.release()
    producer.flush()
    assert seen(client, "t") == []


def test_an_abort_sends_nothing_that_is_queued(client: pulsarx.Client) -> None:
    producer = client.create_producer("t", send_timeout_millis=0)
    transaction = client.new_transaction()
    producer.send(b"0", transaction=transaction)
    producer.hold("the quota")
    told: list[Any] = []
    producer.send_async(b"1", put(told), transaction=transaction)
    producer.send_async(b"plain", None)
    transaction.abort()
    wait_until(lambda: told == [Result.InvalidTxnStatusError])
    producer.release()
    producer.flush()
    assert seen(client, "t") == [b"plain"]


@pytest.mark.parametrize("end", ["commit", "abort"])
def test_an_end_leaves_failures_of_plain_sends_to_the_next_flush(
    client: pulsarx.Client, end: str
) -> None:
    producer = client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=60_000
    )
    transaction = client.new_transaction()
    client.create_producer("u").send(b"u", transaction=transaction)
    producer.send(b"in", transaction=transaction)
    producer.send_async(b"plain", None)
    client.admin.topics.terminate("t")
    getattr(transaction, end)()
    with pytest.raises(errors.TopicTerminated):
        producer.flush()
    assert seen(client, "u") == ([b"u"] if end == "commit" else [])


def test_an_acknowledgement_that_failed_makes_the_commit_abort(client: pulsarx.Client) -> None:
    client.create_producer("in").send(b"0")
    consumer = client.subscribe("in", "s", initial_position=InitialPosition.Earliest)
    message = consumer.receive(0)
    unknown = MessageId(-1, 999, 5, -1)

    def closed() -> Any:
        other = client.subscribe("in", "other")
        other.close()
        return other

    with pulsarx.Client("memory:") as foreign:
        for call in (
            lambda txn: consumer.acknowledge(unknown, transaction=txn),
            lambda txn: consumer.acknowledge_cumulative(unknown, transaction=txn),
            lambda txn: closed().acknowledge(message, transaction=txn),
        ):
            transaction = client.new_transaction()
            with pytest.raises(errors.PulsarException):
                call(transaction)
            with pytest.raises(errors.TransactionHasOperationFailed):
                transaction.commit()
        transaction = foreign.new_transaction()
        with pytest.raises(errors.NotAllowedError):
            consumer.acknowledge(message, transaction=transaction)
        with pytest.raises(errors.TransactionHasOperationFailed):
            transaction.commit()
    assert taken(client.subscribe("in", "later", initial_position=InitialPosition.Earliest))


def test_what_is_no_transaction_is_told_where_one_comes_from(client: pulsarx.Client) -> None:
    producer = client.create_producer("t")
    producer.send(b"a")
    consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
    message = consumer.receive(0)
    several = client.subscribe(["t", "u"], "several", initial_position=InitialPosition.Earliest)
    of_several = several.receive(60_000)
    for call in (
        lambda: producer.send(b"b", transaction="t"),
        lambda: producer.send_async(b"b", None, transaction="t"),
        lambda: producer.send_many([b"b"], transaction="t"),
        lambda: consumer.acknowledge(message, transaction="t"),
        lambda: consumer.acknowledge_many([message], transaction="t"),
        lambda: consumer.acknowledge_cumulative(message, transaction="t"),
        lambda: several.acknowledge(of_several, transaction="t"),
    ):
        with pytest.raises(TypeError, match=r"Client\.new_transaction"):
            call()
    assert seen(client, "t") == [b"a"]


def test_messages_of_an_open_one_are_in_the_statistics(client: pulsarx.Client) -> None:
    producer = client.create_producer("t", batching_enabled=False)
    client.subscribe("t", "s")
    transaction = client.new_transaction()
    for _ in range(3):
        producer.send(b"x" * 100, transaction=transaction)
    for is_open in (True, False):
        found = client.admin.topics.stats("t")
        assert found["msg_in_counter"] == found["subscriptions"]["s"]["msg_backlog"] == 3
        assert found["bytes_in_counter"] >= 300 and found["backlog_size"] >= 300
        if is_open:
            transaction.commit()


def test_a_send_without_memory_makes_the_commit_abort(client: pulsarx.Client) -> None:
    class Poor(pulsarx.schema.StringSchema):
        def encode(self, value: Any) -> bytes:
            raise MemoryError("no room for it")

    producer, other = client.create_producer("t", schema=Poor()), client.create_producer("u")
    transaction = client.new_transaction()
    other.send(b"u", transaction=transaction)
    with pytest.raises(MemoryError):
        producer.send("a", transaction=transaction)
    with pytest.raises(errors.TransactionHasOperationFailed):
        transaction.commit()
    assert seen(client, "u") == []
