"""Facts about messages without a key on Key_Shared: one key together, or spread as by Pulsar 4.

What the consumers got is what those of Pulsar 4.2 got of the same producers, names and ranges.
"""

from __future__ import annotations

from typing import Any

import pytest
from topic_reading import drain

import pulsarx
from pulsarx import ConsumerKeySharedPolicy, ConsumerType, KeySharedMode

SPREAD = pulsarx.BrokerOptions(key_shared_spread_keyless=True)
HALF = 32_768


def halves(client: pulsarx.Client, **options: Any) -> list[Any]:
    """Two consumers, of the lower and the upper half of the hash range."""
    return [
        client.subscribe(
            "t",
            "s",
            ConsumerType.KeyShared,
            key_shared_policy=ConsumerKeySharedPolicy(
                KeySharedMode.Sticky, sticky_ranges=[(first, first + HALF - 1)]
            ),
            **options,
        )
        for first in (0, HALF)
    ]


def numbers_of(consumer: Any) -> list[int]:
    return [int(each.data()) for each in drain(consumer)]


def test_they_are_spread_as_by_a_real_broker() -> None:
    with pulsarx.Client("memory:", broker_options=SPREAD) as client:
        lower, upper = halves(client)
        producer = client.create_producer("t", producer_name="prod-q38441")
        for number in range(24):
            producer.send(b"%d" % number)
        assert numbers_of(lower) == [0, 2, 4, 7, 9, 12, 18, 19, 20, 22, 23]
        assert numbers_of(upper) == [1, 3, 5, 6, 8, 10, 11, 13, 14, 15, 16, 17, 21]


def test_those_of_a_batch_stay_together_as_with_a_real_broker() -> None:
    with pulsarx.Client("memory:", broker_options=SPREAD) as client:
        lower, upper = halves(client)
        producer = client.create_producer(
            "t", producer_name="prod-q38442", batching_enabled=True, batching_max_messages=4
        )
        for number in range(24):
            producer.send_async(b"%d" % number, None)
        producer.flush()
        assert numbers_of(lower) == [0, 1, 2, 3, 16, 17, 18, 19]
        assert numbers_of(upper) == [*range(4, 16), *range(20, 24)]


@pytest.mark.parametrize("name_size", range(1, 10))
@pytest.mark.parametrize("sequence_id", [0, 9, 10, 12345, (1 << 63) - 1])
def test_the_hash_is_murmur3_of_name_and_sequence_id(name_size: int, sequence_id: int) -> None:
    mmh3 = pytest.importorskip("mmh3")
    name = "producer-"[:name_size]
    slot = (mmh3.hash(f"{name}-{sequence_id}", signed=False) & 0x7FFFFFFF) % 65_536 or 1
    with pulsarx.Client("memory:", broker_options=SPREAD) as client:
        consumers = halves(client)
        producer = client.create_producer("t", producer_name=name)
        producer.send(b"1", sequence_id=sequence_id)
        got = [len(drain(each)) for each in consumers]
        assert got == ([1, 0] if slot < HALF else [0, 1])


def test_a_key_called_non_key_is_a_key() -> None:
    """Its hash is that of messages without one."""
    with pulsarx.Client("memory:", broker_options=SPREAD) as client:
        consumers = halves(client)
        producer = client.create_producer("t", producer_name="prod-q38441")
        for number in range(24):
            producer.send(b"%d" % number, partition_key="NON_KEY")
        producer.send_many([b"%d" % number for number in range(24, 30)], keys=["NON_KEY", "a"] * 3)
        got = [numbers_of(each) for each in consumers]
        assert set(range(24)) | {24, 26, 28} <= set(got[0])  # slot 17380


def test_those_in_a_batch_with_others_go_together() -> None:
    with pulsarx.Client("memory:", broker_options=SPREAD) as client:
        consumers = halves(client)
        for number in range(20):
            producer = client.create_producer("t", producer_name=f"p{number}")
            producer.send_many([b"0", b"1", b"2", b"3"], keys=["k", None, "k", None])
        got = [numbers_of(each) for each in consumers]
        keyless = [each.count(1) for each in got]
        assert sum(keyless) == 20 and min(keyless) > 0  # spread
        assert keyless == [each.count(3) for each in got]  # and not torn apart
        assert sorted(each.count(0) for each in got) == [0, 20]


@pytest.mark.parametrize("batching", [False, True])
def test_they_come_again_to_the_same_consumer(batching: bool) -> None:
    with pulsarx.Client("memory:", broker_options=SPREAD) as client:
        consumers = halves(client, negative_ack_redelivery_delay_ms=0)
        producer = client.create_producer("t", batching_enabled=batching, batching_max_messages=2)
        for number in range(20):
            producer.send_async(b"%d" % number, None)
        producer.flush()
        for consumer in consumers:
            messages = drain(consumer)
            for message in messages:
                consumer.negative_acknowledge(message)
            again = [consumer.receive(60_000) for _ in messages]
            assert sorted(int(each.data()) for each in again) == sorted(
                int(each.data()) for each in messages
            )


def test_they_are_one_key_unless_asked_for(memory_client: pulsarx.Client) -> None:
    lower, upper = halves(memory_client)
    producer = memory_client.create_producer("t")
    for number in range(24):
        producer.send(b"%d" % number)
    producer.send_many([b"%d" % number for number in range(24, 30)])
    assert (numbers_of(lower), numbers_of(upper)) == (list(range(30)), [])
