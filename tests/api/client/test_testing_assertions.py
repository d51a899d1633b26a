"""Facts about the assertions of pulsarx.testing: when they hold, and what they say when not."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import testing
from pulsarx.schema import StringSchema
from pulsarx.testing import aio as aio_testing

SHARED = pulsarx.ConsumerType.Shared


def failure(call: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        call(*arguments, **named)
    return str(caught.value)


@pytest.fixture
def orders(pulsar_client: pulsarx.Client) -> pulsarx.Client:
    """Three orders, two of ada's."""
    producer = pulsar_client.create_producer("orders")
    producer.send(b"one", partition_key="ada", properties={"kind": "new", "by": "web"})
    producer.send(b"two", partition_key="bob")
    producer.send(b"two", partition_key="ada")
    return pulsar_client


# published ----------------------------------------------------------------------------------------


def test_published_gives_the_messages_that_are_expected(orders: pulsarx.Client):
    [first] = testing.published(orders, "orders", b"one")
    assert first.partition_key() == "ada"
    assert [each.data() for each in testing.published(orders, "orders", b"two", b"one")] == [
        b"two",
        b"one",
    ]
    assert len(testing.published(orders, "orders")) == 3
    assert len(testing.published(orders, "orders", key="ada")) == 2
    testing.published(orders, "orders", b"one", properties={"kind": "new"})
    testing.published(orders, "orders", b"one", b"two", key="ada", only=True)
    testing.published(orders, "orders", lambda message: message.data().startswith(b"t"))


def test_what_fits_several_is_expected_in_whatever_order(pulsar_client: pulsarx.Client):
    """A function took the first message that it held for, which then was missing."""

    def anything(message: Any) -> bool:
        return True

    def of_ada(message: Any) -> bool:
        return bool(message.partition_key() == "ada")

    producer = pulsar_client.create_producer("t")
    for text, key in ((b"a", "ada"), (b"b", "bob"), (b"b", "ada"), (b"c", "cyd")):
        producer.send(text, partition_key=key)

    def found(*expected: Any) -> list[tuple[bytes, str]]:
        taken = testing.published(pulsar_client, "t", *expected)
        return [(each.data(), each.partition_key()) for each in taken]

    assert found(anything, b"a") == [(b"b", "bob"), (b"a", "ada")]
    assert found(anything, anything, b"a", b"c")[2:] == [(b"a", "ada"), (b"c", "cyd")]
    # The value and the first function give up what they have, one for the other.
    assert found(
        b"b",
        b"b",
        anything,
        of_ada,
    )[3] == (b"a", "ada")
    assert found(b"b", of_ada, of_ada) == [(b"b", "bob"), (b"a", "ada"), (b"b", "ada")]
    text = failure(testing.published, pulsar_client, "t", of_ada, of_ada, of_ada, anything)
    assert "missing 1 of 4:\n  a message for which of_ada holds\n" in text
    text = failure(testing.published, pulsar_client, "t", *[anything] * 5, only=True)
    assert "missing 1 of 5:" in text and "not expected" not in text


def test_published_says_what_is_missing_and_what_was_there(orders: pulsarx.Client):
    text = failure(testing.published, orders, "orders", b"one", b"three", b"two", b"two", b"two")
    assert "missing 2 of 5:\n  b'three'\n  b'two'\n" in text  # each message counts once
    assert "there were 3:" in text and "key 'ada' properties" in text and "'kind': 'new'" in text
    text = failure(testing.published, orders, "orders", b"one", key="bob")
    assert "orders with key 'bob'" in text and "missing 1 of 1" in text
    assert "there was 1:" in text and "and 2 with other keys or properties" in text
    text = failure(testing.published, orders, "orders", key="eve")
    assert "any message" in text and "there were none" in text
    text = failure(testing.published, orders, "orders", b"one", only=True)
    assert "not expected 2:" in text and text.count("b'two'") == 4

    def is_large(message: Any) -> bool:
        return bool(len(message.data()) > 100)

    assert "a message for which is_large holds" in failure(
        testing.published, orders, "orders", is_large
    )
    text = failure(testing.published, orders, "bills", b"one")
    assert "there is no topic bills; there are persistent://public/default/orders" in text


def test_values_are_compared_by_a_schema(pulsar_client: pulsarx.Client):
    producer = pulsar_client.create_producer("texts", schema=StringSchema())
    producer.send("eins")
    testing.published(pulsar_client, "texts", "eins", schema=StringSchema())
    text = failure(testing.published, pulsar_client, "texts", "zwei", schema=StringSchema())
    assert "missing 1 of 1:\n  'zwei'" in text and "'eins'" in text


def test_a_failure_is_short_where_there_is_much(pulsar_client: pulsarx.Client):
    producer = pulsar_client.create_producer("orders")
    producer.send_many([b"x" * 10_000] * 100)
    text = failure(testing.published, pulsar_client, "orders", b"y")
    assert "... and 80 more" in text and len(text) < 8_000


def test_what_waits_for_the_clock_is_told(pulsar_client: pulsarx.Client):
    producer = pulsar_client.create_producer("orders", batching_enabled=True)
    producer.send_async(b"one", None)
    text = failure(testing.published, pulsar_client, "orders", b"one")
    assert "the clock stands still; what is due next comes in 10 ms" in text


def test_a_client_that_only_reads_can_be_asked(tmp_path: Path):
    with pulsarx.Client(tmp_path / "data", durability="os") as client:
        client.create_producer("orders").send(b"one")
    with pulsarx.Client(tmp_path / "data", read_only=True) as client:
        testing.published(client, "orders", b"one")
        assert "missing" in failure(testing.published, client, "orders", b"two")


# acknowledged -------------------------------------------------------------------------------------


def test_acknowledged_holds_for_what_the_subscription_is_done_with(pulsar_client: pulsarx.Client):
    consumer = pulsar_client.subscribe("orders", "billing", SHARED, consumer_name="till")
    producer = pulsar_client.create_producer("orders")
    for text in (b"one", b"two", b"three"):
        producer.send(text, partition_key=text.decode())
    consumer.acknowledge(consumer.receive())
    kept = consumer.receive()
    testing.acknowledged(pulsar_client, "orders", "billing", b"one")
    testing.acknowledged(pulsar_client, "orders", "billing", key="one")
    text = failure(testing.acknowledged, pulsar_client, "orders", "billing", b"one", b"two")
    assert "subscription 'billing'" in text and "not acknowledged 1:" in text
    assert "key 'two' b'two'" in text and "b'one'" not in text
    assert "2 are not acknowledged in all; consumer 'till' has " in text
    text = failure(testing.acknowledged, pulsar_client, "orders", "billing")
    assert "not acknowledged 2:" in text and "b'three'" in text
    text = failure(testing.acknowledged, pulsar_client, "orders", "billing", b"four")
    assert "not on the topic 1:\n  b'four'" in text
    text = failure(testing.acknowledged, pulsar_client, "orders", "shipping")
    assert "has no subscription 'shipping'; it has billing" in text
    assert "there is no topic bills" in failure(
        testing.acknowledged, pulsar_client, "bills", "billing"
    )
    consumer.acknowledge(kept)
    consumer.acknowledge(consumer.receive())
    testing.acknowledged(pulsar_client, "orders", "billing")
    consumer.close()
    producer.send(b"late")
    assert "it has no consumer" in failure(testing.acknowledged, pulsar_client, "orders", "billing")


def test_however_many_are_not_acknowledged(pulsar_client: pulsarx.Client):
    """More than 1,000 of them, or 16 MiB, were an error."""
    consumer = pulsar_client.subscribe("orders", "billing", SHARED)
    producer = pulsar_client.create_producer("orders")
    producer.send_many([b"%d" % each for each in range(2345)])
    first = consumer.receive()
    consumer.acknowledge(first)
    testing.acknowledged(pulsar_client, "orders", "billing", first.data())
    left = testing.unacknowledged(pulsar_client, "orders", "billing")
    assert [each.data() for each in left] == [b"%d" % each for each in range(1, 2345)]
    text = failure(testing.acknowledged, pulsar_client, "orders", "billing", b"0", b"2344")
    assert "not acknowledged 1:" in text and "2344 are not acknowledged in all" in text
    large = pulsar_client.create_producer("large")
    pulsar_client.subscribe("large", "billing")
    for _ in range(5):
        large.send(b"x" * (4 << 20))
    assert len(testing.unacknowledged(pulsar_client, "large", "billing")) == 5


@pytest.mark.pulsar_partitions(orders=3)
def test_partitions_are_looked_at_as_one_topic(pulsar_client: pulsarx.Client):
    consumer = pulsar_client.subscribe("orders", "billing", SHARED)
    producer = pulsar_client.create_producer("orders")
    for number in range(9):
        producer.send(b"%d" % number)
    testing.published(pulsar_client, "orders", *[b"%d" % each for each in range(9)], only=True)
    assert "not acknowledged 9:" in failure(
        testing.acknowledged, pulsar_client, "orders", "billing"
    )
    for _ in range(9):
        consumer.acknowledge(consumer.receive())
    testing.acknowledged(pulsar_client, "orders", "billing")


# eventually ---------------------------------------------------------------------------------------


def test_eventually_goes_as_far_as_it_must(
    pulsar_client: pulsarx.Client, pulsar_clock: pulsarx.ManualClock
):
    consumer = pulsar_client.subscribe("orders", "billing", SHARED)
    producer = pulsar_client.create_producer("orders")
    producer.send(b"late", deliver_after=timedelta(seconds=30))
    producer.send(b"later", deliver_after=timedelta(seconds=50))
    received: list[bytes] = []

    def comes() -> bool:
        received.extend(each.data() for each in consumer.receive_many(10, timeout_millis=0))
        return bool(received)

    begin = pulsar_clock.now_ms()
    assert testing.eventually(pulsar_clock, comes) is True
    assert received == [b"late"] and pulsar_clock.now_ms() == begin + 30_000
    testing.eventually(pulsar_clock, lambda: received)  # holds already: no time passes
    assert pulsar_clock.now_ms() == begin + 30_000


def test_eventually_brings_what_is_tried_again_by_listeners(
    pulsar_client: pulsarx.Client, pulsar_clock: pulsarx.ManualClock
):
    def work(consumer: Any, message: Any) -> None:
        if message.redelivery_count() < 2:
            consumer.negative_acknowledge(message)
        else:
            consumer.acknowledge(message)

    pulsar_client.subscribe(
        "orders", "billing", SHARED, message_listener=work, negative_ack_redelivery_delay_ms=20_000
    )
    pulsar_client.create_producer("orders").send(b"one")
    testing.eventually(
        pulsar_clock, lambda: testing.acknowledged(pulsar_client, "orders", "billing")
    )


def test_eventually_waits_for_threads_of_the_program(
    pulsar_client: pulsarx.Client, pulsar_clock: pulsarx.ManualClock
):
    go = threading.Event()

    def work() -> None:
        go.wait()
        pulsar_client.create_producer("orders").send(b"one")

    thread = threading.Thread(target=work)
    thread.start()

    def check() -> Any:
        go.set()
        return testing.published(pulsar_client, "orders", b"one")

    [message] = testing.eventually(pulsar_clock, check, seconds=0, timeout_seconds=300)
    assert message.data() == b"one"
    thread.join()


def test_eventually_says_why_it_gave_up(
    pulsar_client: pulsarx.Client, pulsar_clock: pulsarx.ManualClock
):
    producer = pulsar_client.create_producer("orders")
    pulsar_client.subscribe("orders", "billing", SHARED)
    producer.send(b"late", deliver_after=timedelta(seconds=90))

    def check() -> None:
        testing.published(pulsar_client, "orders", b"one")

    text = failure(testing.eventually, pulsar_clock, check, timeout_seconds=0)
    assert "not within 60 s of the clock, which is at 2024-01-01T00:01:00+00:00 (" in text
    assert "missing 1 of 1:\n  b'one'" in text and "b'late'" in text
    text = failure(testing.eventually, pulsar_clock, lambda: False, seconds=1, timeout_seconds=0)
    assert text.endswith("the check returned False")
    with pytest.raises(ZeroDivisionError):  # a mistake is no failure of the check
        testing.eventually(pulsar_clock, lambda: 1 / 0)
    with pytest.raises(TypeError, match="a ManualClock is advanced, not Client"):
        testing.eventually(pulsar_client, check)  # type: ignore[arg-type]


# asyncio ------------------------------------------------------------------------------------------


def test_coroutines_have_the_same_assertions(
    pulsar_aio_client: Any, pulsar_client: pulsarx.Client, pulsar_clock: pulsarx.ManualClock
):
    async def main() -> None:
        consumer = await pulsar_aio_client.subscribe("orders", "billing", SHARED)

        async def work() -> None:
            async for message in consumer:
                await consumer.acknowledge(message)

        working = asyncio.create_task(work())
        producer = await pulsar_aio_client.create_producer("orders")
        await producer.send(b"now")
        await producer.send(b"late", deliver_after=timedelta(minutes=30))
        await aio_testing.published(pulsar_aio_client, "orders", b"now", b"late", only=True)

        async def done() -> None:
            await aio_testing.acknowledged(pulsar_aio_client, "orders", "billing", b"late")

        begin = pulsar_clock.now_ms()
        await aio_testing.eventually(pulsar_clock, done, seconds=3600, timeout_seconds=300)
        assert pulsar_clock.now_ms() >= begin + 30 * 60_000
        await aio_testing.eventually(pulsar_clock, lambda: True)
        await aio_testing.drain(pulsar_aio_client, "orders", timeout_seconds=300)
        assert await aio_testing.unacknowledged(pulsar_client, "orders", "billing") == []
        assert len(await aio_testing.messages(pulsar_client, "orders")) == 2
        assert await aio_testing.dead_letters(pulsar_client, "orders", "billing") == []
        with pytest.raises(AssertionError, match="missing 1 of 1"):
            await aio_testing.published(pulsar_aio_client, "orders", b"three")
        with pytest.raises(AssertionError, match="the check returned False"):
            await aio_testing.eventually(pulsar_clock, lambda: False, timeout_seconds=0)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await consumer.close()
        await producer.close()
        await aio_testing.clean(pulsar_aio_client)
        assert pulsar_client.admin.topics.get_list() == []

    asyncio.run(main())


# Brokers, namespaces, cleaning --------------------------------------------------------------------


def test_each_broker_is_empty_and_has_a_clock_of_its_own():
    with testing.broker() as first, testing.broker() as second:
        first.client.create_producer("orders").send(b"one")
        assert second.client.admin.topics.get_list() == []
        assert first.url != second.url and first.clock is not second.clock
        with pulsarx.Client(first.url) as client:
            testing.published(client, "orders", b"one")
        first.clock.advance(seconds=5)
        assert first.clock.now_ms() == second.clock.now_ms() + 5000
    with pytest.raises(pulsarx.AlreadyClosed):
        first.client.create_producer("orders")


def test_a_broker_makes_the_same_choices_by_the_same_seed():
    names = []
    for seed in ("a", "a", "b"):
        options = pulsarx.BrokerOptions(max_message_size=10)
        with testing.broker(seed=seed, options=options) as made:
            names.append(made.client.subscribe("orders", "billing").consumer_name())
            with pytest.raises(pulsarx.MessageTooBig):
                made.client.create_producer("orders").send(bytes(11))
    assert names[0] == names[1] != names[2]


def test_a_namespace_is_deleted_with_all_that_is_in_it(pulsar_client: pulsarx.Client):
    with testing.namespace(pulsar_client) as first, testing.namespace(pulsar_client) as second:
        assert first != second
        producer = pulsar_client.create_producer(f"{first}/orders")
        producer.send(b"one")
        pulsar_client.subscribe(f"{first}/orders", "billing")
        testing.published(pulsar_client, f"{first}/orders", b"one")
    assert pulsar_client.admin.namespaces.get_namespaces("public") == ["public/default"]


def test_cleaning_deletes_what_nobody_uses_and_empties_the_rest(pulsar_client: pulsarx.Client):
    topics = pulsar_client.admin.topics
    topics.create_partitioned_topic("parts", 2)
    topics.create_partitioned_topic("used-parts", 2)
    pulsar_client.create_producer("parts").close()
    parts = pulsar_client.create_producer("used-parts")
    producer = pulsar_client.create_producer("orders")
    consumer = pulsar_client.subscribe("orders", "billing", SHARED)
    pulsar_client.subscribe("orders", "left", SHARED).close()
    pulsar_client.create_producer("non-persistent://public/default/clicks").close()
    for each in (producer, parts):
        each.send_many([b"one", b"two"])
    late = pulsar_client.create_producer("orders")
    late.send(b"three", deliver_after=timedelta(minutes=1))
    testing.clean(pulsar_client)
    base = "persistent://public/default/"
    assert sorted(topics.get_list()) == [
        f"{base}orders", f"{base}used-parts-partition-0", f"{base}used-parts-partition-1",
    ]  # fmt: skip
    assert testing.messages(pulsar_client, "orders") == []
    assert testing.messages(pulsar_client, "used-parts") == []
    assert topics.get_subscriptions("orders") == ["billing"]
    producer.send(b"next")
    message = consumer.receive(timeout_millis=60_000)
    assert message.data() == b"next"  # nothing of before
    consumer.acknowledge(message)
    testing.published(pulsar_client, "orders", b"next", only=True)


def test_cleaning_may_be_of_some_namespaces(pulsar_client: pulsarx.Client):
    with testing.namespace(pulsar_client) as name:
        for topic in ("orders", f"{name}/orders"):
            pulsar_client.create_producer(topic).close()
        testing.clean(pulsar_client, name)
        assert pulsar_client.admin.topics.get_list(name) == []
        assert len(pulsar_client.admin.topics.get_list()) == 1
