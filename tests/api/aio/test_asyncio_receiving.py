"""Facts about receiving in asyncio: order, cancelling, several loops, listeners."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from aio_loops import LOOPS, Run, run_in, turns, until
from topic_reading import numbers

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, aio, errors
from pulsarx._pycore.consume.loop_receives import LoopReceives

TYPES = [ConsumerType.Exclusive, ConsumerType.Shared, ConsumerType.KeyShared]


def opened(name: str, **options: Any) -> aio.Client:
    options.setdefault("durability", "os")
    return aio.Client(f"memory:{name}", **options)


async def send_all(producer: aio.Producer, contents: list[bytes]) -> None:
    await asyncio.gather(*[producer.send(each) for each in contents])


async def drained(consumer: aio.Consumer) -> list[bytes]:
    """What is there now."""
    found = []
    while (message := consumer._consumer.take_now()) is not None:
        found.append(message.data())
    return found


def test_messages_come_in_order_to_coroutines_in_order(run: Run) -> None:
    async def main() -> None:
        async with opened("order") as client:
            producer = await client.create_producer("t", batching_max_publish_delay_ms=0)
            consumer = await client.subscribe("t", "s")
            waiting = [asyncio.create_task(consumer.receive()) for _ in range(500)]
            await turns(2)
            await send_all(producer, numbers(1000))
            rest = [asyncio.create_task(consumer.receive()) for _ in range(500)]
            found = [message.data() for message in await asyncio.gather(*waiting, *rest)]
            assert found == numbers(1000)

    run(main())


def test_coroutines_receive_by_priority(run: Run) -> None:
    async def main() -> None:
        async with opened("priorities") as client:
            levels = {"urgent": 0, "normal": 1}
            consumer = await client.subscribe(["idle", *levels], "s", topic_priorities=levels)
            producers = [
                await client.create_producer(each) for each in ("idle", "normal", "urgent")
            ]
            for producer in producers:
                await producer.send(producer.topic().encode())
            found = [(await consumer.receive()).topic_name() for _ in producers]
            assert found == [each.topic() for each in reversed(producers)]

    run(main())


def test_sending_while_others_wait_for_nothing(run: Run) -> None:
    """1000 coroutines that wait need no thread."""

    async def main() -> None:
        async with opened("threads") as client:
            consumer = await client.subscribe("t", "s")
            before = set(threading.enumerate())
            waiting = [asyncio.create_task(consumer.receive()) for _ in range(1000)]
            await turns()
            assert not set(threading.enumerate()) - before
            for each in waiting:
                each.cancel()

    run(main())


@pytest.mark.parametrize("ticks", range(8))
@pytest.mark.parametrize("kind", TYPES)
def test_a_receive_that_is_cancelled_after_its_message_came_loses_nothing(
    run: Run, kind: ConsumerType, ticks: int
) -> None:
    async def main() -> None:
        async with opened("cancelled") as client:
            producer = await client.create_producer("t", batching_enabled=False)
            consumer = await client.subscribe("t", "s", kind)
            first = asyncio.create_task(consumer.receive())
            second = asyncio.create_task(consumer.receive())
            await turns(1)
            producer._producer.send(b"1")
            producer._producer.send(b"2")
            await turns(ticks)
            first.cancel()
            found = [] if first.done() else None
            (outcome,) = await asyncio.gather(first, return_exceptions=True)
            if found is None:
                assert isinstance(outcome, asyncio.CancelledError)
                assert (await second).data() == b"1"
                assert (await consumer.receive()).data() == b"2"
            else:
                assert outcome.data() == b"1"
                assert (await second).data() == b"2"
            assert not await drained(consumer)

    run(main())


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("seed", range(10))
def test_under_any_interleaving_of_cancelling_each_message_comes_once(
    run: Run, kind: ConsumerType, seed: int
) -> None:
    chance = random.Random(seed)

    async def main() -> None:
        async with opened("interleaved") as client:
            producer = await client.create_producer("t", batching_max_publish_delay_ms=0)
            consumer = await client.subscribe("t", "s", kind)
            found: list[bytes] = []
            tasks: list[asyncio.Task[Any]] = []
            sends = []
            sent = 0
            for _ in range(600):
                step = chance.randrange(5)
                if step == 0:
                    for _ in range(chance.randrange(1, 5)):
                        sends.append(asyncio.create_task(producer.send(b"%d" % sent)))
                        sent += 1
                elif step in (1, 2):
                    tasks.append(asyncio.create_task(consumer.receive()))
                elif step == 3 and tasks:
                    chance.choice(tasks).cancel()
                else:
                    await turns(chance.randrange(3))
            await producer.flush()
            await asyncio.gather(*sends)
            for each in tasks:
                each.cancel()
            for outcome in await asyncio.gather(*tasks, return_exceptions=True):
                if not isinstance(outcome, BaseException):
                    found.append(outcome.data())
            while len(found) < sent:
                found.append((await asyncio.wait_for(consumer.receive(), 60)).data())
            assert sorted(found) == sorted(b"%d" % number for number in range(sent))
            assert not await drained(consumer)

    run(main())


def test_a_receive_that_timed_out_has_taken_nothing(run: Run) -> None:
    async def main() -> None:
        async with opened("timed_out") as client:
            consumer = await client.subscribe("t", "s")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(consumer.receive(), 0.001)
            producer = await client.create_producer("t", batching_enabled=False)
            await send_all(producer, [b"x"])
            assert (await consumer.receive()).data() == b"x"

    run(main())


def test_the_end_of_a_loop_takes_no_message_along(run: Run) -> None:
    """A coroutine waited when its loop was closed, without being cancelled."""
    client = pulsarx.Client("memory:ended", durability="os")
    waiting = aio.Client("memory:ended", durability="os")
    loop = asyncio.new_event_loop()

    async def begin() -> aio.Consumer:
        consumer = await waiting.subscribe("t", "s")
        left.append(loop.create_task(consumer.receive()))
        await turns()
        return consumer

    left: list[Any] = []
    consumer = loop.run_until_complete(begin())
    loop.close()
    client.create_producer("t").send(b"x")
    left[0]._log_destroy_pending = False

    async def go_on() -> bytes:
        return (await consumer.receive()).data()  # type: ignore[no-any-return]

    assert run(go_on()) == b"x"
    left.clear()
    waiting.shutdown()
    client.shutdown()


@pytest.mark.parametrize("kind", [ConsumerType.Shared, ConsumerType.Exclusive])
def test_loops_in_several_threads_share_a_consumer(kind: ConsumerType) -> None:
    client = aio.Client("memory:loops", durability="os")

    async def begin() -> tuple[aio.Consumer, aio.Producer]:
        return await client.subscribe("t", "s", kind), await client.create_producer("t")

    consumer, producer = asyncio.run(begin())
    found: list[list[bytes]] = [[], [], []]

    def work(number: int) -> None:
        async def main() -> None:
            async for message in consumer:
                found[number].append(message.data())
                await consumer.acknowledge(message)
                if sum(map(len, found)) == 900:
                    await consumer.close()

        async def publish() -> None:
            await send_all(producer, numbers(300, number * 300))

        async def both() -> None:
            await asyncio.gather(main(), publish())

        run_in(LOOPS[number % len(LOOPS)])(both())

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
        assert not each.is_alive()
    assert sorted(each for part in found for each in part) == sorted(numbers(900))
    client.shutdown()


def test_closing_ends_what_waits(run: Run) -> None:
    async def main() -> None:
        async with opened("closing") as client:
            consumer = await client.subscribe("t", "s")
            reader = await client.create_reader("t", MessageId.earliest)
            several = await client.subscribe(["t", "u"], "several")
            waiting = [
                asyncio.create_task(each)
                for each in (consumer.receive(), reader.read_next(), several.receive())
            ]
            iterating = asyncio.create_task(anext(consumer, None))
            await turns()
            await client.close()
            for outcome in await asyncio.gather(*waiting, return_exceptions=True):
                assert isinstance(outcome, errors.AlreadyClosed)
            assert await iterating is None
            with pytest.raises(errors.AlreadyClosed):
                await consumer.receive()
            with pytest.raises(errors.AlreadyClosed):
                await client.close()

    run(main())


def test_ctrl_c_ends_the_loop_and_loses_nothing(run: Run) -> None:
    client = aio.Client("memory:ctrl_c", durability="os")
    consumers = []

    async def main() -> None:
        consumer = await client.subscribe("t", "s")
        consumers.append(consumer)
        asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGINT)
        await consumer.receive()

    async def go_on() -> bytes:
        producer = await client.create_producer("t", batching_enabled=False)
        await producer.send(b"x")
        return (await consumers[0].receive()).data()  # type: ignore[no-any-return]

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the run has
    try:
        with pytest.raises(KeyboardInterrupt):
            run(main())
    finally:
        signal.signal(signal.SIGINT, before)
    assert run(go_on()) == b"x"
    client.shutdown()


def test_a_child_is_told_and_its_parent_goes_on(run: Run) -> None:
    async def main() -> None:
        async with opened("forked") as client:
            consumer = await client.subscribe("t", "s")
            producer = await client.create_producer("t", batching_enabled=False)
            waiting = asyncio.create_task(consumer.receive())
            await turns()
            child = os.fork()
            if child == 0:
                asyncio._set_running_loop(None)

                async def try_it() -> int:
                    found = 1
                    try:
                        await consumer.receive()
                    except errors.ForkedError:
                        found += 2
                    try:
                        async for _ in consumer:
                            return 0
                    except errors.ForkedError:
                        found += 4
                    return found

                os._exit(asyncio.new_event_loop().run_until_complete(try_it()))
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            await producer.send(b"x")
            assert (await waiting).data() == b"x"

    run(main())


def test_others_run_between_messages_that_are_there(run: Run) -> None:
    """A coroutine that received what was there kept all others from running until the end."""

    async def main() -> None:
        async with opened("fair") as client:
            producer = await client.create_producer("t", batching_max_publish_delay_ms=0)
            consumer = await client.subscribe("t", "s")
            await send_all(producer, numbers(1000))
            ran_at = []

            async def receive_all() -> None:
                for number in range(1000):
                    assert (await consumer.receive()).data() == b"%d" % number
                    position[0] = number

            position = [0]

            async def other() -> None:
                await turns(1)
                ran_at.append(position[0])

            await asyncio.gather(receive_all(), other())
            assert ran_at[0] < 999

    run(main())


def test_batch_receive_ends_by_number_and_gives_back_when_cancelled(run: Run) -> None:
    async def main() -> None:
        policy = pulsarx.ConsumerBatchReceivePolicy(5, -1, -1)
        async with opened("batch") as client:
            producer = await client.create_producer("t", batching_max_publish_delay_ms=0)
            consumer = await client.subscribe("t", "s", batch_receive_policy=policy)
            await send_all(producer, numbers(8))
            assert [m.data() for m in await consumer.batch_receive()] == numbers(5)
            waiting = asyncio.create_task(consumer.batch_receive())
            await turns()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await send_all(producer, numbers(2, 8))
            assert [m.data() for m in await consumer.batch_receive()] == numbers(5, 5)

    run(main())


def test_batch_receive_ends_by_time_and_by_bytes(run: Run) -> None:
    async def main() -> None:
        async with opened("bounds") as client:
            producer = await client.create_producer("t", batching_max_publish_delay_ms=0)
            by_time = pulsarx.ConsumerBatchReceivePolicy(-1, -1, 1)
            by_size = pulsarx.ConsumerBatchReceivePolicy(-1, 10, -1)
            timed = await client.subscribe("t", "timed", batch_receive_policy=by_time)
            sized = await client.subscribe("t", "sized", batch_receive_policy=by_size)
            assert await timed.batch_receive() == []
            await send_all(producer, [b"1234", b"5678", b"9abc"])
            assert [m.data() for m in await sized.batch_receive()] == [b"1234", b"5678"]
            assert (await sized.receive()).data() == b"9abc"

    run(main())


def test_a_listener_may_be_a_coroutine_function(run: Run, manual_clock: Any) -> None:
    async def main() -> None:
        async with opened("listener", clock=manual_clock) as client:
            producer = await client.create_producer("t", batching_enabled=False)
            told: list[Any] = []

            async def listener(consumer: aio.Consumer, message: Any) -> None:
                await asyncio.sleep(0)
                told.append((message.data(), message.redelivery_count()))
                if message.redelivery_count() == 0 and message.data() == b"1":
                    raise ValueError("not this time")
                await consumer.acknowledge(message)

            consumer = await client.subscribe(
                "t", "s", ConsumerType.Shared, message_listener=listener
            )
            await send_all(producer, numbers(3))
            await until(lambda: len(told) == 3)
            await turns()
            manual_clock.advance(61)
            await until(lambda: len(told) == 4)
            assert told == [(b"0", 0), (b"1", 0), (b"2", 0), (b"1", 1)]
            for call in (consumer.receive, consumer.batch_receive, consumer.__anext__):
                with pytest.raises(errors.InvalidConfiguration):
                    await call()
            consumer.pause_message_listener()
            await producer.send(b"3")
            await turns(30)
            assert len(told) == 4
            consumer.resume_message_listener()
            await until(lambda: len(told) == 5)

    run(main())


def test_readers_iterate_seek_and_tell_whether_there_is_more(run: Run) -> None:
    async def main() -> None:
        async with opened("reader") as client:
            producer = await client.create_producer("t", batching_enabled=False)
            ids = [await producer.send(each) for each in numbers(3)]
            async with await client.create_reader("t", MessageId.earliest) as reader:
                found = []
                async for message in reader:
                    found.append(message.data())
                    if not await reader.has_message_available():
                        break
                assert found == numbers(3)
                await reader.seek(ids[0])
                assert (await reader.read_next()).data() == b"1"
                assert await reader.get_last_message_id() == ids[2]
            assert not reader.is_connected()
            read: list[bytes] = []
            listening = await client.create_reader(
                "t", MessageId.earliest, reader_listener=lambda _, each: read.append(each.data())
            )
            await until(lambda: read == numbers(3))
            await listening.close()

    run(main())


def test_a_reader_of_a_read_only_client_is_refused(tmp_path: Any, run: Run) -> None:
    async def main() -> None:
        async with aio.Client(tmp_path / "data") as client:
            await client.create_producer("t")
            reading = await aio.Client.open(tmp_path / "data", read_only=True)
            with pytest.raises(errors.OperationNotSupported):
                await reading.create_reader("t", MessageId.earliest)
            await reading.close()

    run(main())


def test_a_subscription_is_moved_told_of_and_deleted(run: Run) -> None:
    async def main() -> None:
        async with opened("moved") as client:
            producer = await client.create_producer("t", batching_enabled=False)
            consumer = await client.subscribe("t", "s")
            ids = [await producer.send(each) for each in numbers(4)]
            assert await consumer.get_last_message_id() == ids[3]
            received = [await consumer.receive() for _ in range(4)]
            await consumer.acknowledge_cumulative(received[1])
            await consumer.acknowledge([received[2]])
            consumer.redeliver_unacknowledged_messages()
            assert (await consumer.receive()).data() == b"3"
            await consumer.seek(ids[0])
            assert (await consumer.receive()).data() == b"1"
            assert consumer.subscription_name() == "s"
            await consumer.unsubscribe()
            assert not consumer.is_connected()
            assert "s" not in client.admin.topics.stats("t")["subscriptions"]

    run(main())


def test_a_table_view_tells_a_coroutine_function_in_order(run: Run) -> None:
    async def main() -> None:
        async with opened("table") as client:
            producer = await client.create_producer("t", batching_enabled=False)
            await producer.send(b"1", partition_key="a")
            told: list[Any] = []

            async def listener(key: str, value: Any) -> None:
                await asyncio.sleep(0)
                told.append((key, value))

            async with await client.create_table_view("t") as view:
                await view.for_each_and_listen(listener)
                assert told == [("a", b"1")] and dict(view.items()) == {"a": b"1"}
                for number in range(2, 5):
                    await producer.send(b"%d" % number, partition_key="a")
                await until(lambda: len(told) == 4)
                assert told[1:] == [("a", b"2"), ("a", b"3"), ("a", b"4")]
                assert view["a"] == b"4" and len(view) == 1 and "a" in view

    run(main())


def test_a_listener_that_is_called_no_more_is_waited_for_no_more(run: Run) -> None:
    """for_each_and_listen hung when the view was closed beside it, and when the listener's task
    was cancelled."""

    async def main() -> None:
        async with opened("table-end") as client:
            producer = await client.create_producer("t", batching_enabled=False)
            await producer.send(b"1", partition_key="a")

            async def cancelled(key: str, value: Any) -> None:
                raise asyncio.CancelledError

            closed: list[Any] = []

            async def closing(key: str, value: Any) -> None:
                await view.close()
                closed.append(key)

            async with await client.create_table_view("t") as other:
                await other.for_each_and_listen(cancelled)
            view = await client.create_table_view("t")
            await view.for_each_and_listen(closing)
            assert closed == ["a"]

    run(main())


@pytest.mark.parametrize("ticks", range(4))
def test_a_listener_whose_call_was_cancelled_is_called_no_more(run: Run, ticks: int) -> None:
    """It was called with every update that came."""

    async def main() -> None:
        async with opened("table-cancelled") as client:
            producer = await client.create_producer("t", batching_enabled=False)
            await producer.send(b"1", partition_key="a")
            view = await client.create_table_view("t")
            told: list[str] = []
            entered = asyncio.Event()

            async def listener(key: str, value: Any) -> None:
                told.append(key)
                entered.set()
                await asyncio.Event().wait()

            listening = asyncio.create_task(view.for_each_and_listen(listener))
            if ticks == 3:
                await entered.wait()
            else:
                await turns(ticks)
            listening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await listening
            before = len(told)
            await producer.send(b"2", partition_key="b")
            await until(lambda: "b" in view)
            await turns()
            assert len(told) == before
            assert len(asyncio.all_tasks()) == 1

    run(main())


def test_a_listener_of_a_closed_table_view_leaves_no_task(run: Run) -> None:
    """The task that would have called it waited for ever."""

    async def main() -> None:
        async with opened("table-closed") as client:
            view = await client.create_table_view("t")
            await view.close()
            with pytest.raises(errors.AlreadyClosed):
                await view.for_each_and_listen(print)
            await turns()
            assert len(asyncio.all_tasks()) == 1

    run(main())


@pytest.mark.parametrize("kind", ["consumer", "reader", "table view"])
def test_ctrl_c_in_a_call_of_a_listener_ends_the_loop(kind: str) -> None:
    """It was logged as an error of the listener, and the loop ran on."""

    def listener(*_: Any) -> None:
        raise errors.InterruptedByKeyboard(detail="stats")

    client = aio.Client("memory:listener-ctrl-c", durability="os")

    async def main() -> None:
        producer = await client.create_producer("t", batching_enabled=False)
        if kind == "consumer":
            await client.subscribe("t", "s", message_listener=listener)
        elif kind == "reader":
            await client.create_reader("t", MessageId.earliest, reader_listener=listener)
        else:
            await (await client.create_table_view("t")).for_each_and_listen(listener)
        await producer.send(b"x", partition_key="k")
        await asyncio.sleep(20)
        raise AssertionError("the loop ran on")

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    client.shutdown()


def test_a_batch_is_given_back_though_one_of_its_topics_was_deleted(run: Run) -> None:
    """A KeyError: what came from the other topics was held until the consumer closed."""

    async def main() -> None:
        clock = pulsarx.ManualClock()
        async with opened("pattern-end", clock=clock) as client:
            consumer = await client.subscribe(
                re.compile("persistent://public/default/t.*"),
                "s",
                ConsumerType.Shared,
                batch_receive_policy=pulsarx.ConsumerBatchReceivePolicy(5, -1, -1),
            )
            gone, stays = [
                await client.create_producer(topic, batching_enabled=False)
                for topic in ("t1", "t2")
            ]
            batch = asyncio.create_task(consumer.batch_receive())
            await turns(2)
            await gone.send(b"gone")
            await stays.send(b"stays")
            await until(lambda: unacked(client, "t1") == unacked(client, "t2") == 1)
            await gone.close()
            client.admin.topics.delete("t1", force=True)
            await asyncio.to_thread(clock.advance, 61)
            batch.cancel()
            with pytest.raises(asyncio.CancelledError):
                await batch
            assert await drained(consumer) == [b"stays"]

    run(main())


def unacked(client: aio.Client, topic: str) -> int:
    """What the subscription's consumer has and has not acknowledged."""
    count: int = client.admin.topics.stats(topic)["subscriptions"]["s"]["unacked_messages"]
    return count


def test_patterns_partitions_and_letters_go_the_same_way(run: Run) -> None:
    async def main() -> None:
        async with opened("kinds") as client:
            client.admin.topics.create_partitioned_topic("p", 3)
            assert len(await client.get_topic_partitions("p")) == 3
            earliest = InitialPosition.Earliest
            producer = await client.create_producer("p")
            consumer = await client.subscribe("p", "s", initial_position=earliest)
            matching = await client.subscribe(
                "persistent://public/default/p.*", "m", is_pattern_topic=True,
                initial_position=earliest,
            )  # fmt: skip
            await asyncio.gather(
                *[producer.send(each, partition_key=each.decode()) for each in numbers(60)]
            )
            for each in (consumer, matching):
                found = [await each.receive() for _ in range(60)]
                assert sorted(m.data() for m in found) == sorted(numbers(60))
                for message in found:
                    await each.acknowledge(message)
                again = [asyncio.create_task(each.receive()) for _ in range(3)]
                await turns()
                for task in again:
                    task.cancel()

    run(main())


def test_readers_of_partitions_and_of_volatile_topics_wait_and_end(run: Run) -> None:
    async def main() -> None:
        async with opened("readers") as client:
            client.admin.topics.create_partitioned_topic("p", 3)
            for topic in ("p", "non-persistent://public/default/n"):
                reader = await client.create_reader(topic, MessageId.latest)
                producer = await client.create_producer(topic, batching_enabled=False)
                waiting = [asyncio.create_task(reader.read_next()) for _ in range(6)]
                await turns()
                await send_all(producer, numbers(6))
                found = [message.data() for message in await asyncio.gather(*waiting)]
                assert sorted(found) == numbers(6)
                last = asyncio.create_task(reader.read_next())
                await turns()
                await reader.close()
                with pytest.raises(errors.AlreadyClosed):
                    await last

    run(main())


def test_without_a_receiver_queue_messages_come_one_by_one(run: Run) -> None:
    async def main() -> None:
        async with opened("zero") as client:
            consumer = await client.subscribe("t", "s", ConsumerType.Shared, receiver_queue_size=0)
            other = await client.subscribe("t", "s", ConsumerType.Shared)
            producer = await client.create_producer("t", batching_enabled=False)
            assert await consumer.batch_receive() == []
            waiting = asyncio.create_task(consumer.receive())
            await turns()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await send_all(producer, numbers(4))
            assert [(await other.receive()).data() for _ in range(4)] == numbers(4)
            await other.close()
            assert [(await consumer.receive()).data() for _ in range(4)] == numbers(4)

    run(main())


@pytest.mark.parametrize("call", ["open", "subscribe", "create_reader", "create_producer"])
def test_a_refused_call_logs_nothing(run: Run, caplog: Any, tmp_path: Any, call: str) -> None:
    """What was never made was given back: an AttributeError with its traceback in the log."""

    async def main() -> None:
        async with await aio.Client.open(tmp_path / "data", durability="os") as client:
            await client.subscribe("t", "s")
            there = await client.create_producer("t", "p")
            refused = {
                "open": (
                    errors.InvalidConfiguration,
                    partial(aio.Client.open, durability="sync"),
                    (tmp_path / "data",),
                ),
                "subscribe": (errors.ConsumerBusy, client.subscribe, ("t", "s")),
                "create_reader": (
                    errors.TopicNotFound,
                    client.create_reader,
                    ("persistent://no/such/topic", MessageId.earliest),
                ),
                "create_producer": (errors.ProducerBusy, client.create_producer, ("t", "p")),
            }
            kind, made, arguments = refused[call]
            with pytest.raises(kind):
                await made(*arguments)
            await turns()
            assert there.is_connected()
        # asyncio tells at any moment what tests before have left.
        assert not [each for each in caplog.records if each.name == "pulsarx"]

    run(main())


class Alarm(BaseException):
    """What a signal handler raises."""


class Interrupted:
    """A source of messages in which a signal handler raises, once in each place."""

    def __init__(self, source: Any, *places: str) -> None:
        self._source = source
        self.places = list(places)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def _pass(self, place: str) -> None:
        if place in self.places:
            self.places.remove(place)
            raise Alarm

    def take_now(self) -> Any:
        self._pass("take_now")
        return self._source.take_now()

    def watch(self, notify: Any) -> None:
        self._pass("watch")
        self._source.watch(notify)


@pytest.mark.parametrize("place", ["take_now", "watch"])
def test_a_receive_whose_beginning_a_signal_ended_keeps_no_message(run: Run, place: str) -> None:
    """Its turn stayed behind: the next message was kept for it, and later ones came too late, or
    nobody was told of them."""

    async def main() -> None:
        async with opened("alarm") as client:
            producer = await client.create_producer("t", batching_enabled=False)
            consumer = await client.subscribe("t", "s")
            consumer._receives.append(LoopReceives(Interrupted(consumer._source, place)))
            receives = consumer._here()
            with pytest.raises(Alarm):
                receives.wait()
            for content in numbers(3):
                await producer.send(content)
                message = await asyncio.wait_for(consumer.receive(), 60)
                assert message.data() == content

    run(main())


def test_a_signal_while_a_message_comes_leaves_no_receive_waiting(run: Run) -> None:
    """The coroutine slept on until another message came."""

    async def main() -> None:
        async with opened("alarm") as client:
            producer = await client.create_producer("t", batching_enabled=False)
            consumer = await client.subscribe("t", "s")
            source = Interrupted(consumer._source)
            consumer._receives.append(LoopReceives(source))
            waiting = asyncio.create_task(consumer.receive())
            await turns()
            source.places.append("take_now")
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda *_: None)
            await producer.send(b"x")
            assert (await asyncio.wait_for(waiting, 60)).data() == b"x"
            assert not source.places

    run(main())


def test_a_call_made_for_a_cancelled_coroutine_is_given_back(run: Run) -> None:
    async def main() -> None:
        async with opened("given_back") as client:
            for ticks in range(6):
                making = asyncio.create_task(client.subscribe("t", "s"))
                await turns(ticks)
                making.cancel()
                (outcome,) = await asyncio.gather(making, return_exceptions=True)
                if isinstance(outcome, aio.Consumer):
                    await outcome.close()
                while True:
                    try:
                        consumer = await client.subscribe("t", "s")
                        break
                    except errors.ConsumerBusy:
                        await asyncio.sleep(0)
                await consumer.unsubscribe()

    run(main())


def test_a_subscribe_that_was_cancelled_can_be_repeated_at_once(run: Run, tmp_path: Path) -> None:
    """It got ConsumerBusy from what was left of itself."""

    async def main() -> None:
        for url in ("memory:retried", tmp_path / "folder"):
            async with await aio.Client.open(url) as client:
                for number in range(30):
                    making = asyncio.create_task(client.subscribe("t", f"s{number}"))
                    await turns(number % 6)
                    making.cancel()
                    (outcome,) = await asyncio.gather(making, return_exceptions=True)
                    if isinstance(outcome, aio.Consumer):
                        await outcome.close()
                    await (await client.subscribe("t", f"s{number}")).close()

    run(main())


def test_a_producer_that_was_cancelled_can_be_made_again_at_once(run: Run) -> None:
    async def main() -> None:
        async with opened("retried_producer") as client:
            for number in range(30):
                making = asyncio.create_task(client.create_producer("t", "p"))
                await turns(number % 6)
                making.cancel()
                (outcome,) = await asyncio.gather(making, return_exceptions=True)
                if isinstance(outcome, aio.Producer):
                    await outcome.close()
                await (await client.create_producer("t", "p")).close()

    run(main())


class CountedLoop(asyncio.SelectorEventLoop):
    """Counts how often a file woke it."""

    wakes = 0

    def add_reader(self, fd: Any, callback: Any, *arguments: Any) -> None:
        def counted() -> None:
            self.wakes += 1
            callback(*arguments)

        super().add_reader(fd, counted)


def test_a_burst_wakes_its_loop_once() -> None:
    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        async with opened("wakes") as client:
            producer = await client.create_producer(
                "t", max_pending_messages=0, batching_max_publish_delay_ms=600_000
            )
            consumer = await client.subscribe("t", "s")
            waiting = [asyncio.create_task(consumer.receive()) for _ in range(1000)]
            await turns()
            before = loop.wakes
            await asyncio.gather(*[producer.send(b"x") for _ in range(1000)], *waiting)
            assert loop.wakes - before <= 2

    with asyncio.Runner(loop_factory=CountedLoop) as runner:
        runner.run(main())
