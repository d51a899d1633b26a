"""What statistics count since a topic was opened: messages published, and given to consumers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.consumer_types import ALL_TYPES

import pulsarx
from pulsarx import ConsumerType

VOLATILE = "non-persistent://public/default/t"


def stats(client: pulsarx.Client, topic: str = "t") -> dict[str, Any]:
    return client.admin.topics.stats(topic)


@pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
)
@pytest.mark.parametrize("topic", ["t", VOLATILE])
def test_what_a_consumer_is_given_is_counted(kind: ConsumerType, topic: str):
    with pulsarx.Client("memory:") as client:
        consumer = client.subscribe(topic, "s", kind)
        producer = client.create_producer(topic, batching_enabled=True)
        for number in range(10):
            producer.send_async(b"x", None, partition_key=str(number))
        producer.flush()
        for _ in range(10):
            consumer.receive(60_000)
        found = stats(client, topic)
        assert found["msg_in_counter"] == 10
        assert found["bytes_in_counter"] > 10
        subscription = found["subscriptions"]["s"]
        assert subscription["msg_out_counter"] == 10
        [figures] = subscription["consumers"]
        assert figures["msg_out_counter"] == 10
        assert figures["bytes_out_counter"] == subscription["bytes_out_counter"] > 10


def test_redeliveries_are_counted():
    with pulsarx.Client("memory:") as client:
        consumer = client.subscribe("t", "s", ConsumerType.Shared)
        client.create_producer("t").send(b"x")
        consumer.receive(60_000)
        consumer.redeliver_unacknowledged_messages()
        consumer.receive(60_000)
        assert stats(client)["subscriptions"]["s"]["msg_out_counter"] == 2


def test_a_subscription_counts_what_consumers_got_that_have_left():
    with pulsarx.Client("memory:") as client:
        client.create_producer("t").send(b"x")
        client.admin.topics.create_subscription("t", "s", pulsarx.MessageId.earliest)
        for _ in range(2):
            consumer = client.subscribe("t", "s")
            consumer.receive(60_000)
            consumer.close()
        found = stats(client)["subscriptions"]["s"]
        assert (found["msg_out_counter"], found["consumers"]) == (2, [])


def test_counters_begin_when_the_topic_is_opened_and_outlive_its_ledgers(tmp_path: Path):
    with pulsarx.Client(tmp_path) as client:
        producer = client.create_producer("t")
        producer.send(b"x")
        client.admin.topics.truncate("t")
        producer.send(b"y")
        found = stats(client)
        assert (found["msg_in_counter"], found["messages"]) == (2, 1)
        size = found["bytes_in_counter"]
        assert size > 2
    with pulsarx.Client(tmp_path) as client:
        found = stats(client)
        assert (found["msg_in_counter"], found["bytes_in_counter"], found["messages"]) == (0, 0, 1)
        client.create_producer("t").send(b"z")
        assert stats(client)["msg_in_counter"] == 1
    with pulsarx.Client(tmp_path, read_only=True) as client:
        assert stats(client)["msg_in_counter"] is None  # the owner alone counts


def test_counters_of_partitions_are_added_up():
    with pulsarx.Client("memory:") as client:
        client.admin.topics.create_partitioned_topic("p", 2)
        producer = client.create_producer("p")
        for number in range(4):
            producer.send(b"%d" % number)
        found = client.admin.topics.partitioned_stats("p")
        assert found["msg_in_counter"] == 4


def rates(figures: dict[str, Any], way: str) -> tuple[float | None, float | None]:
    return figures[f"msg_rate_{way}"], figures[f"msg_throughput_{way}"]


@pytest.mark.parametrize("topic", ["t", VOLATILE])
def test_rates_are_those_since_the_look_before_last(topic: str):
    clock = pulsarx.ManualClock()
    with pulsarx.Client("memory:", clock=clock) as client:
        consumer = client.subscribe(topic, "s")
        producer = client.create_producer(topic)

        def exchange(count: int) -> None:
            for _ in range(count):
                producer.send(b"x")
                consumer.receive(60_000)

        def shown() -> tuple[float, float]:
            found = stats(client, topic)
            subscription = found["subscriptions"]["s"]
            outs = [
                rates(each, "out") for each in (found, subscription, *subscription["consumers"])
            ]
            assert outs[0] == outs[1] == outs[2]
            return found["msg_rate_in"], found["msg_rate_out"]

        assert shown() == (0, 0)
        exchange(20)
        clock.advance(10)
        assert shown() == (2, 2)  # since the topic was opened
        found = stats(client, topic)
        assert found["msg_throughput_in"] == found["bytes_in_counter"] / 10
        subscription = found["subscriptions"]["s"]
        assert subscription["msg_throughput_out"] == subscription["bytes_out_counter"] / 10
        clock.advance(30)
        assert shown() == (0.5, 0.5)  # that look is taken note of
        exchange(30)
        clock.advance(30)
        assert shown() == (50 / 70, 50 / 70)  # and this one
        clock.advance(10)
        assert shown() == (30 / 40, 30 / 40)  # since the first of the two
        clock.advance(20)
        shown()
        clock.advance(60)
        assert shown() == (0, 0)


class SetClock(pulsarx.ManualClock):
    """Whose time of day can be set; how long something takes stays as it is."""

    set_by_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.set_by_ms

    def advance(self, seconds: float) -> None:
        set_by_ms, self.set_by_ms = self.set_by_ms, 0
        super().advance(seconds)
        self.set_by_ms = set_by_ms


@pytest.mark.parametrize("set_by", [-3600, 3600])
def test_rates_do_not_heed_that_the_time_of_day_is_set(set_by: int):
    """Set back, all that had come meanwhile counted as that of one second, for as long."""
    clock = SetClock()
    with pulsarx.Client("memory:", clock=clock) as client:
        producer = client.create_producer("t")
        for _ in range(2):
            stats(client)
            clock.advance(30)
        for _ in range(60):
            producer.send(b"x")
        clock.set_by_ms = set_by * 1000
        clock.advance(30)
        assert stats(client)["msg_rate_in"] == 60 / 90
        clock.advance(30)
        assert stats(client)["msg_rate_in"] == 60 / 90
        clock.advance(30)
        assert stats(client)["msg_rate_in"] == 0


def test_consumers_of_one_name_have_rates_of_their_own():
    """Each had those of one of them."""
    clock = pulsarx.ManualClock()
    with pulsarx.Client("memory:", clock=clock) as client:
        subscription = "t", "s", pulsarx.ConsumerType.Shared
        _both = [client.subscribe(*subscription, consumer_name="c") for _ in range(2)]
        client.create_producer("t").send(b"x")
        clock.advance(10)
        found = stats(client)["subscriptions"]["s"]["consumers"]
        assert sorted(each["msg_out_counter"] for each in found) == [0, 1]
        for each in found:
            assert each["msg_rate_out"] == each["msg_out_counter"] / 10


def test_rates_are_added_up_for_partitions(tmp_path: Path):
    clock = pulsarx.ManualClock()
    with pulsarx.Client(tmp_path, clock=clock) as client:
        client.admin.topics.create_partitioned_topic("p", 2)
        client.subscribe("p", "s")
        producer = client.create_producer("p")
        for number in range(4):
            producer.send(b"%d" % number)
        clock.advance(10)
        found = client.admin.topics.partitioned_stats("p")
        assert (found["msg_rate_in"], found["msg_rate_out"]) == (0.4, 0)
        assert found["subscriptions"]["s"]["msg_rate_out"] == 0
    with pulsarx.Client(tmp_path, read_only=True) as client:  # the owner alone counts
        found = client.admin.topics.partitioned_stats("p")
        assert rates(found, "in") == rates(found, "out") == (None, None)
