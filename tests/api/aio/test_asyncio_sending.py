"""Facts about sending in asyncio: order, waiting beside the loop, what ends the waiting."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest
from aio_loops import Run, turns, until
from topic_reading import numbers, whole_topic

import pulsarx
from pulsarx import (
    BatchingType,
    BrokerOptions,
    ConsumerType,
    MessageId,
    ProducerAccessMode,
    ProducerInterceptor,
    aio,
    errors,
)
from pulsarx.testing import fault_plan, inspect


def opened(name: str, **options: Any) -> aio.Client:
    options.setdefault("durability", "os")
    return aio.Client(f"memory:{name}", **options)


def sending(producer: aio.Producer, contents: list[bytes]) -> list[asyncio.Task[Any]]:
    return [asyncio.create_task(producer.send(each)) for each in contents]


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
@pytest.mark.parametrize("batching", [True, False])
def test_sends_in_flight_are_stored_in_order_and_have_ids(
    tmp_path: Any, run: Run, durability: str, batching: bool
) -> None:
    async def main() -> None:
        folder = tmp_path / "data"
        async with await aio.Client.open(folder, durability=durability) as client:
            producer = await client.create_producer("t", batching_enabled=batching)
            ids = await asyncio.gather(*sending(producer, numbers(500)))
            assert ids == sorted(ids) and len(set(ids)) == 500
            assert whole_topic(inspect(client).client) == numbers(500)
            await producer.flush()
            assert producer.last_sequence_id() == 499
            await producer.close()
            with pytest.raises(errors.AlreadyClosed):
                await producer.send(b"late")
            with pytest.raises(errors.AlreadyClosed):
                await producer.close()

    run(main())


@pytest.mark.parametrize("options", [
    {"batching_enabled": False},
    {"batching_enabled": True, "batching_max_messages": 2},
    {"batching_enabled": True, "batching_type": BatchingType.KeyBased},
])  # fmt: skip
def test_with_a_full_queue_sends_wait_in_order_and_the_loop_goes_on(
    tmp_path: Any, run: Run, options: dict[str, Any]
) -> None:
    async def main() -> None:
        async with aio.Client(tmp_path / "data", durability="sync") as client:
            producer = await client.create_producer(
                "t", max_pending_messages=3, block_if_queue_full=True, **options
            )
            await asyncio.gather(*sending(producer, numbers(200)))
            assert whole_topic(inspect(client).client) == numbers(200)

    run(main())


def test_a_full_queue_is_told_where_sends_are_not_to_wait(tmp_path: Any, run: Run) -> None:
    async def main() -> None:
        async with aio.Client(tmp_path / "data", durability="sync") as client:
            producer = await client.create_producer(
                "t", max_pending_messages=1, batching_enabled=False
            )
            tasks = sending(producer, numbers(200))
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            stored = [isinstance(each, MessageId) for each in outcomes]
            assert all(
                isinstance(each, (MessageId, errors.ProducerQueueIsFull)) for each in outcomes
            )
            assert len(whole_topic(inspect(client).client)) == sum(stored)

    run(main())


def test_chunks_wait_for_room(tmp_path: Any, run: Run) -> None:
    async def main() -> None:
        options = BrokerOptions(max_message_size=10_000)
        async with aio.Client(tmp_path / "data", broker_options=options) as client:
            producer = await client.create_producer(
                "t", chunking_enabled=True, batching_enabled=False, max_pending_messages=10,
                block_if_queue_full=True,
            )  # fmt: skip
            contents = [bytes([number]) * 35_000 for number in range(20)]
            ids = await asyncio.gather(*sending(producer, contents))
            assert whole_topic(inspect(client).client) == contents
            reader = await client.create_reader("t", MessageId.earliest)
            assert [(await reader.read_next()).message_id() for _ in ids] == ids

    run(main())


def test_the_memory_limit_lets_sends_of_several_producers_wait(tmp_path: Any, run: Run) -> None:
    async def main() -> None:
        async with aio.Client(tmp_path / "data", memory_limit_bytes=2000) as client:
            producers = [
                await client.create_producer(
                    "t", block_if_queue_full=True, batching_max_publish_delay_ms=1
                )
                for _ in range(3)
            ]
            contents = [number.ljust(500) for number in numbers(60)]
            await asyncio.gather(
                *[producers[at % 3].send(each) for at, each in enumerate(contents)]
            )
            found = whole_topic(inspect(client).client)
            assert sorted(found) == sorted(contents)
            for at in range(3):
                assert [each for each in found if each in contents[at::3]] == contents[at::3]

    run(main())


def test_the_publish_rate_holds_coroutines_and_not_the_loop(
    run: Run, manual_clock: pulsarx.ManualClock
) -> None:
    """A held send stopped the thread of the loop until the next period."""

    async def main() -> None:
        async with opened("rate", clock=manual_clock) as client:
            producer = await client.create_producer("t", batching_enabled=False)
            client.admin.topics.set_publish_rate("t", msgs=3)
            tasks = sending(producer, numbers(8))
            for expected in (3, 6):
                await until(lambda count=expected: sum(t.done() for t in tasks) == count)
                await turns()
                assert whole_topic(inspect(client).client) == numbers(expected)
                manual_clock.advance(0.999)
                assert whole_topic(inspect(client).client) == numbers(expected)
                manual_clock.advance(0.001)
            await asyncio.gather(*tasks)
            assert whole_topic(inspect(client).client) == numbers(8)
            assert client.admin.topics.stats("t")["publish_rate_limited_times"] == 2

    run(main())


def test_a_send_that_is_cancelled_while_it_is_held_stores_nothing(
    run: Run, manual_clock: pulsarx.ManualClock
) -> None:
    async def main() -> None:
        async with opened("held", clock=manual_clock) as client:
            producer = await client.create_producer("t", batching_enabled=False)
            client.admin.topics.set_publish_rate("t", msgs=1)
            tasks = sending(producer, numbers(3))
            await until(tasks[0].done)
            tasks[1].cancel()
            await turns()
            manual_clock.advance(1)
            await tasks[2]
            assert whole_topic(inspect(client).client) == [b"0", b"2"]

    run(main())


def test_a_held_send_times_out_on_the_clock(run: Run, manual_clock: pulsarx.ManualClock) -> None:
    async def main() -> None:
        async with opened("timeout", clock=manual_clock) as client:
            producer = await client.create_producer(
                "t", batching_enabled=False, send_timeout_millis=2500
            )
            client.admin.topics.set_publish_rate("t", msgs=1)
            tasks = sending(producer, numbers(5))
            for _ in range(5):
                await turns()
                manual_clock.advance(1)
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert [type(each) for each in outcomes] == 3 * [MessageId] + 2 * [errors.Timeout]
            assert whole_topic(inspect(client).client) == numbers(3)
            await producer.send(b"later")

    run(main())


def test_a_send_that_goes_while_the_one_before_it_times_out_is_not_lost(
    tmp_path: Any, run: Run, manual_clock: pulsarx.ManualClock, monkeypatch: Any
) -> None:
    """Room came while the error of the first was made, and another thread sent the first: the
    second was dropped from the queue instead, so nobody told its coroutine anything, and the first
    was told that nothing of it was stored."""

    async def main() -> None:
        async with await aio.Client.open(tmp_path / "data", clock=manual_clock) as client:
            producer = await client.create_producer(
                "t",
                batching_enabled=False,
                send_timeout_millis=1000,
                max_pending_messages=1,
                block_if_queue_full=True,
            )
            await producer.send(b"0")
            core, told = producer._producer, threading.Event()
            with fault_plan() as plan:
                plan.stall("flush")

                def timeout(detail: str) -> Exception:
                    monkeypatch.undo()
                    core.release()
                    while not plan.stalled():  # the first is stored; the second waits for room
                        pass
                    told.set()
                    return errors.Timeout(detail=detail)

                core.hold("a quota")
                tasks = sending(producer, [b"1", b"2"])
                await turns()
                inspect(client).runtime.completions.wait()  # both were tried
                monkeypatch.setattr(errors, "Timeout", timeout)
                advancing = asyncio.create_task(asyncio.to_thread(manual_clock.advance, 1))
                await until(told.is_set)
                await turns(2000)  # for what is done then with the queue
                plan.release()
                await advancing
            await asyncio.wait_for(asyncio.gather(*tasks), 60)
            assert whole_topic(inspect(client).client) == numbers(3)

    run(main())


KIB = b"k" * 1024


def test_a_quota_holds_coroutines_until_there_is_room(
    run: Run, manual_clock: pulsarx.ManualClock
) -> None:
    async def main() -> None:
        async with opened("quota", clock=manual_clock) as client:
            consumer = await client.subscribe("t", "s", ConsumerType.Shared)
            producer = await client.create_producer("t", batching_enabled=False)
            await asyncio.gather(*[producer.send(KIB) for _ in range(20)])
            client.admin.topics.set_backlog_quota(
                "t", limit_size=10_000, policy="producer_request_hold"
            )
            manual_clock.advance(61)
            tasks = sending(producer, numbers(3))
            await turns()
            assert not any(task.done() for task in tasks)
            for _ in range(20):
                await consumer.acknowledge(await consumer.receive())
            await turns()
            manual_clock.advance(61)
            await asyncio.gather(*tasks[:2])
            await tasks[2]
            assert [(await consumer.receive()).data() for _ in range(3)] == numbers(3)

    run(main())


@pytest.mark.parametrize("ended", ["producer", "client", "fence"])
def test_what_ends_a_producer_ends_its_held_sends(
    run: Run, manual_clock: pulsarx.ManualClock, ended: str
) -> None:
    async def main() -> None:
        async with opened("ended", clock=manual_clock) as client:
            producer = await client.create_producer("t", batching_enabled=False)
            client.admin.topics.set_publish_rate("t", msgs=1)
            tasks = sending(producer, numbers(3))
            await until(tasks[0].done)
            await turns()
            expected: type[Exception] = errors.AlreadyClosed
            if ended == "producer":
                await producer.close()
            elif ended == "client":
                await client.close()
            else:
                expected = errors.ProducerFenced
                mode = ProducerAccessMode.ExclusiveWithFencing
                await client.create_producer("t", access_mode=mode)
            for outcome in await asyncio.gather(*tasks[1:], return_exceptions=True):
                assert isinstance(outcome, expected)

    run(main())


@pytest.mark.parametrize("options", [
    {}, {"batching_type": BatchingType.KeyBased}, {"interceptors": [ProducerInterceptor()]},
    {"block_if_queue_full": True, "max_pending_messages": 1}, {"batching_enabled": False},
])  # fmt: skip
@pytest.mark.parametrize("partitions", [0, 3])
def test_what_is_awaited_goes_out_while_the_clock_stands_still(
    run: Run, manual_clock: pulsarx.ManualClock, options: dict[str, Any], partitions: int
) -> None:
    async def main() -> None:
        async with opened("still", clock=manual_clock) as client:
            if partitions:
                client.admin.topics.create_partitioned_topic("t", partitions)
            producer = await client.create_producer("t", **options)
            alone = asyncio.create_task(producer.send(b"alone"))
            await until(alone.done)
            together = sending(producer, numbers(10))
            await until(lambda: all(each.done() for each in together))
            assert isinstance(alone.result(), MessageId)
            assert all(isinstance(each.result(), MessageId) for each in together)
            found = whole_topic(inspect(client).client)
            assert sorted(found) == sorted([b"alone", *numbers(10)])

    run(main())


def test_sends_of_turns_that_follow_each_other_share_a_batch(
    run: Run, manual_clock: pulsarx.ManualClock
) -> None:
    async def main() -> None:
        async with opened("turns", clock=manual_clock) as client:
            producer = await client.create_producer("t")
            tasks = []
            for number in range(20):
                tasks.append(asyncio.create_task(producer.send(b"%d" % number)))
                await asyncio.sleep(0)
            ids = await asyncio.gather(*tasks)
            assert {each.batch_size() for each in ids} == {20}
            alone = [await producer.send(b"alone") for _ in range(2)]
            assert [each.entry_id() - ids[0].entry_id() for each in alone] == [1, 2]

    run(main())


def test_a_send_that_was_held_goes_out_as_soon_as_it_may(
    run: Run, manual_clock: pulsarx.ManualClock
) -> None:
    async def main() -> None:
        async with opened("freed", clock=manual_clock) as client:
            producer = await client.create_producer("t")
            client.admin.topics.set_publish_rate("t", msgs=2)
            await asyncio.gather(*sending(producer, numbers(2)))
            held = sending(producer, numbers(2))
            await turns()
            assert not any(task.done() for task in held)
            manual_clock.advance(1)
            await until(lambda: all(task.done() for task in held))

    run(main())


def test_a_batch_that_is_refused_is_told_to_those_who_await_it(
    run: Run, tmp_path: Any, manual_clock: pulsarx.ManualClock
) -> None:
    async def main() -> None:
        async with aio.Client(tmp_path / "data", clock=manual_clock, durability="os") as client:
            producer = await client.create_producer("t")
            await producer.send(b"one")
            with fault_plan() as plan:
                plan.fail("write", error=28)
                tasks = sending(producer, numbers(3))
                await until(lambda: all(task.done() for task in tasks))
            assert [type(each.exception()) for each in tasks] == [errors.StorageFullError] * 3
            await producer.send(b"two")
            assert whole_topic(inspect(client).client) == [b"one", b"two"]

    run(main())


def test_partitions_and_interceptors_wait_the_same_way(
    run: Run, manual_clock: pulsarx.ManualClock
) -> None:
    seen: list[bytes] = []
    told: list[Any] = []

    class Seen(ProducerInterceptor):
        def before_send(self, producer: Any, message: Any) -> Any:
            seen.append(message.content)
            return message

        def on_send_acknowledgement(self, producer: Any, message: Any, *ended: Any) -> None:
            told.append(message.content)

    async def main() -> None:
        async with opened("routed", clock=manual_clock) as client:
            client.admin.topics.create_partitioned_topic("p", 2)
            producer = await client.create_producer(
                "p", batching_enabled=False, interceptors=[Seen()]
            )
            client.admin.topics.set_publish_rate("p", msgs=2)
            tasks = sending(producer, numbers(8))
            await until(lambda: sum(task.done() for task in tasks) == 4)
            await turns()
            assert not all(task.done() for task in tasks)
            manual_clock.advance(1)
            await asyncio.gather(*tasks)
            assert seen == numbers(8) and sorted(told) == numbers(8)
            assert sorted(whole_topic(inspect(client).client, "p")) == numbers(8)

    run(main())


def test_errors_are_raised_where_the_send_is_awaited(run: Run) -> None:
    async def main() -> None:
        async with opened("errors", broker_options=BrokerOptions(max_message_size=100)) as client:
            for batching in (True, False):
                producer = await client.create_producer("t", batching_enabled=batching)
                with pytest.raises(errors.MessageTooBig, match="max_message_size is 100"):
                    await producer.send(b"x" * 101)
                with pytest.raises(TypeError):
                    await producer.send(b"x", {"a": 1})  # type: ignore[dict-item]
            with pytest.raises(errors.ProducerBusy):
                await client.create_producer("t", producer.producer_name())
            with pytest.raises(ValueError):
                await client.create_producer("t", batching_max_messages=0)

    run(main())


def test_what_is_described_reaches_the_consumer(run: Run, manual_clock: Any) -> None:
    async def main() -> None:
        async with opened("described", clock=manual_clock) as client:
            producer = await client.create_producer("t", batching_enabled=False)
            consumer = await client.subscribe("t", "s", ConsumerType.Shared)
            await producer.send(b"x", {"a": "b"}, "key", "order", 7, None, None, 1234)
            message = await consumer.receive()
            assert message.properties() == {"a": "b"} and message.partition_key() == "key"
            assert message.ordering_key() == "order" and message.event_timestamp() == 1234
            waiting = asyncio.create_task(consumer.receive())
            await producer.send(b"y", deliver_after=timedelta(seconds=5))
            await turns()
            assert not waiting.done()
            manual_clock.advance(6)
            assert (await waiting).data() == b"y"

    run(main())


def test_coroutines_wait_their_turn_for_an_exclusive_topic(run: Run) -> None:
    async def main() -> None:
        mode = ProducerAccessMode.WaitForExclusive
        async with opened("turn") as client:
            first = await client.create_producer("t", access_mode=mode)
            second = asyncio.create_task(client.create_producer("t", access_mode=mode))
            third = asyncio.create_task(client.create_producer("t", access_mode=mode))
            fourth = asyncio.create_task(client.create_producer("t", access_mode=mode))
            await turns(50)
            assert not second.done() and not third.done()
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)
            await first.close()
            done, _ = await asyncio.wait({third, fourth}, return_when=asyncio.FIRST_COMPLETED)
            await done.pop().result().send(b"x")
            await client.close()
            outcomes = await asyncio.gather(third, fourth, return_exceptions=True)
            assert {type(each) for each in outcomes} == {aio.Producer, errors.AlreadyClosed}

    run(main())


def test_a_coroutine_cancels_what_is_not_due_and_seeks_an_index(run: Run) -> None:
    async def main() -> None:
        async with opened("cancels") as client:
            consumer = await client.subscribe("t", "s", pulsarx.ConsumerType.Shared)
            producer = await client.create_producer("t", batching_enabled=False)
            late = await producer.send(b"late", deliver_after=timedelta(hours=1))
            await producer.send(b"one")
            assert await producer.cancel(late) == ["s"]
            with pytest.raises(errors.NotAllowedError):
                await producer.cancel(late)
            message = await consumer.receive()
            assert (message.data(), message.index()) == (b"one", 1)
            reader = await client.create_reader("t", pulsarx.MessageId.earliest)
            await reader.seek(pulsarx.MessageIndex(1))
            assert (await reader.read_next()).data() == b"one"
            await producer.close()
            with pytest.raises(errors.AlreadyClosed):
                await producer.cancel(late)

    run(main())
