"""Facts about transactions in asyncio."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aio_loops import Run
from topic_reading import whole_topic

import pulsarx
from pulsarx import ConsumerType, InitialPosition, aio, errors
from pulsarx.testing import inspect
from pulsarx.transaction import TransactionState


async def filled(client: aio.Client, count: int) -> aio.Consumer:
    producer = await client.create_producer("t")
    await asyncio.gather(*(producer.send(b"%d" % number) for number in range(count)))
    return await client.subscribe(
        "t", "s", ConsumerType.Shared, initial_position=InitialPosition.Earliest
    )


def seen(client: aio.Client, topic: str) -> list[bytes]:
    return whole_topic(inspect(client).client, topic)


def test_the_context_commits_what_was_sent_and_acknowledged(tmp_path: Any, run: Run) -> None:
    async def main() -> None:
        async with await aio.Client.open(tmp_path / "data") as client:
            consumer = await filled(client, 3)
            producer = await client.create_producer("results")
            async with await client.new_transaction() as txn:
                messages = [await consumer.receive() for _ in range(3)]
                ids = await asyncio.gather(
                    *(producer.send(each.data(), transaction=txn) for each in messages)
                )
                assert len(set(ids)) == 3
                await consumer.acknowledge(messages[0], transaction=txn)
                await consumer.acknowledge(messages[1:], transaction=txn)
                other = await client.new_transaction()
                with pytest.raises(errors.TransactionConflict):
                    await consumer.acknowledge(messages[0], transaction=other)
                assert seen(client, "results") == []
                assert txn.state() is TransactionState.OPEN
                assert txn.txn_id()[0] == 0
            assert txn.state() is TransactionState.COMMITTED
            assert sorted(seen(client, "results")) == [b"0", b"1", b"2"]
            stats = inspect(client).client.admin.topics.stats("t")
            assert stats["subscriptions"]["s"]["msg_backlog"] == 0

    run(main())


@pytest.mark.parametrize("leaves", ["raises", "cancelled", "aborts"])
def test_what_an_exception_leaves_is_aborted(tmp_path: Any, run: Run, leaves: str) -> None:
    async def main() -> None:
        async with await aio.Client.open(tmp_path / "data") as client:
            consumer = await filled(client, 1)
            producer = await client.create_producer("results")
            begun = asyncio.Event()
            made: list[aio.Transaction] = []

            async def transact() -> None:
                async with await client.new_transaction() as txn:
                    made.append(txn)
                    message = await consumer.receive()
                    await producer.send(message.data(), transaction=txn)
                    await consumer.acknowledge(message, transaction=txn)
                    begun.set()
                    if leaves == "raises":
                        raise KeyError
                    if leaves == "aborts":
                        await txn.abort()
                        return
                    await asyncio.Event().wait()

            task = asyncio.create_task(transact())
            await begun.wait()
            if leaves == "cancelled":
                task.cancel()
            (failure,) = await asyncio.gather(task, return_exceptions=True)
            expected = {"raises": KeyError, "cancelled": asyncio.CancelledError}
            assert type(failure) is expected.get(leaves, type(None))
            assert made[0].state() is TransactionState.ABORTED
            assert seen(client, "results") == []
            again = await consumer.receive()
            assert (again.data(), again.redelivery_count()) == (b"0", 1)
            with pytest.raises(errors.InvalidTxnStatusError):
                await made[0].commit()

    run(main())


def test_a_cumulative_acknowledgement_counts_with_the_commit(tmp_path: Any, run: Run) -> None:
    async def main() -> None:
        async with await aio.Client.open(tmp_path / "data") as client:
            await (await filled(client, 3)).unsubscribe()
            consumer = await client.subscribe("t", "x", initial_position=InitialPosition.Earliest)
            messages = [await consumer.receive() for _ in range(2)]
            txn = await client.new_transaction()
            await consumer.acknowledge_cumulative(messages[1], transaction=txn)
            await txn.commit()
            await consumer.close()
            consumer = await client.subscribe("t", "x")
            assert (await consumer.receive()).data() == b"2"

    run(main())


def test_a_transaction_of_threads_is_taken_too(tmp_path: Any, run: Run) -> None:
    async def main() -> None:
        async with await aio.Client.open(tmp_path / "data") as client:
            producer = await client.create_producer("t")
            with inspect(client).client.new_transaction() as txn:
                await producer.send(b"1", transaction=txn)  # type: ignore[arg-type]
            assert seen(client, "t") == [b"1"]

    run(main())


def test_the_arguments_are_checked(run: Run) -> None:
    async def main() -> None:
        async with aio.Client("memory:transactions") as client:
            with pytest.raises(ValueError, match="timeout_millis"):
                await client.new_transaction(timeout_millis=0)

    run(main())


def test_a_builder_sends_in_a_transaction() -> None:
    with pulsarx.Client("memory:built") as client:
        producer = client.create_producer("t")
        told: list[pulsarx.Result] = []
        with client.new_transaction() as txn:
            producer.new_message().value(b"1").transaction(txn).send()
            producer.new_message().value(b"2").transaction(txn).send_async(
                lambda result, _: told.append(result)
            )
            assert whole_topic(client) == []
        producer.flush()  # the commit does not wait for callbacks
        assert told == [pulsarx.Result.Ok]
        assert whole_topic(client) == [b"1", b"2"]
