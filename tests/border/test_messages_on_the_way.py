"""Facts about messages that are on their way to a consumer beside the owner while it says what
becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import guest_client
import pytest
from guest_client import GuestClient, attach, forget_folders
from pipe import Pipe
from support.consumer_types import ALL_TYPES
from topic_reading import payloads

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId
from pulsarx.consuming import subscribing
from pulsarx.processes.owner.consumer import GuestConsumer

pytestmark = pytest.mark.standard

KINDS = ALL_TYPES
LONE = KINDS[:2]
VALUES = [b"%d" % number for number in range(6)]
Way = Callable[[pulsarx.Consumer[bytes], list[MessageId]], object]


def one_by_one(consumer: pulsarx.Consumer[bytes], ids: list[MessageId]) -> None:
    for each in ids:
        consumer.acknowledge(each)


def together(consumer: pulsarx.Consumer[bytes], ids: list[MessageId]) -> None:
    consumer.acknowledge_many(ids)


def through(consumer: pulsarx.Consumer[bytes], ids: list[MessageId]) -> None:
    consumer.acknowledge_cumulative(ids[-1])


# Cumulatively only where one consumer has them all.
WAYS = [
    *((kind, way) for kind in KINDS for way in (one_by_one, together)),
    *((kind, through) for kind in LONE),
]
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {"batching_enabled": False},
    "batches": {"batching_max_messages": 4},
    "chunks": {"chunking_enabled": True},
}
CHUNK_MAX = 1000


@pytest.fixture(autouse=True)
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[pulsarx.Client]:
    monkeypatch.setattr(subscribing, "_attach", attach)
    options = pulsarx.BrokerOptions(max_message_size=CHUNK_MAX)
    made = GuestClient("memory:", broker_options=options)
    yield made
    made.shutdown()
    forget_folders()


@pytest.fixture
def pipe(client: pulsarx.Client) -> Pipe:
    (side,) = guest_client._sides.values()
    return side.pipe


def subscribe(
    client: pulsarx.Client, kind: ConsumerType = ConsumerType.Exclusive, **options: Any
) -> pulsarx.Consumer[bytes]:
    made: pulsarx.Consumer[bytes] = client.subscribe(
        "t", "s", kind, initial_position=InitialPosition.Earliest, **options
    )
    return made


def publish(client: pulsarx.Client, shape: str) -> tuple[list[bytes], list[MessageId]]:
    """The values in the order they were published, and their ids."""
    producer = client.create_producer("t", **SHAPES[shape])
    values = [each * (2 * CHUNK_MAX) for each in VALUES] if shape == "chunks" else VALUES
    return values, producer.send_many(values)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("kind", "way"), WAYS, ids=[f"{kind.name}-{way.__name__}" for kind, way in WAYS]
)
def test_what_is_acknowledged_on_its_way_does_not_come(
    client: pulsarx.Client, pipe: Pipe, kind: ConsumerType, shape: str, way: Way
) -> None:
    """It was delivered: the owner had sent it before it heard of the acknowledgement."""
    consumer = subscribe(client, kind)
    with pipe.on_the_way():
        values, ids = publish(client, shape)
        assert pipe.wait()
        acknowledged = (0, 1, 2) if way is through else (1, 2, 4)
        way(consumer, [ids[each] for each in acknowledged])
    left = [each for at, each in enumerate(values) if at not in acknowledged]
    assert payloads(consumer) == left
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == left
    assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == len(left)


@pytest.mark.parametrize("queue_size", [0, 1, 2])
@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.name)
def test_its_permits_go_to_other_messages(
    client: pulsarx.Client, pipe: Pipe, kind: ConsumerType, queue_size: int
) -> None:
    consumer = subscribe(client, kind, receiver_queue_size=queue_size)
    with pipe.on_the_way():
        values, ids = publish(client, "plain")
        future = consumer.receive_async()
        assert pipe.wait()
        for each in ids[:5]:
            consumer.acknowledge(each)
    assert future.result(60).data() == values[5]


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.name)
def test_what_is_acknowledged_on_its_way_to_come_again_does_not(
    client: pulsarx.Client, pipe: Pipe, kind: ConsumerType
) -> None:
    consumer = subscribe(client, kind)
    values, ids = publish(client, "plain")
    assert payloads(consumer) == values
    with pipe.on_the_way():
        consumer.redeliver_unacknowledged_messages()
        assert pipe.wait()
        consumer.acknowledge(ids[2])
    assert payloads(consumer) == values[:2] + values[3:]


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.name)
def test_what_a_seek_brings_back_comes_although_it_was_acknowledged_just_before(
    client: pulsarx.Client, kind: ConsumerType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner says what it has recorded before it sends what comes again."""
    acknowledge = GuestConsumer.acknowledge_run

    def seek_behind(consumer: GuestConsumer, ledger_id: int, first: int, count: int) -> None:
        acknowledge(consumer, ledger_id, first, count)
        if first == 3:
            reset_cursor(client, ids[1])

    monkeypatch.setattr(GuestConsumer, "acknowledge_run", seek_behind)
    consumer = subscribe(client, kind)
    values, ids = publish(client, "plain")
    assert payloads(consumer) == values
    one_by_one(consumer, ids[:4])
    assert payloads(consumer) == values[1:]


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.name)
def test_what_a_seek_has_sent_does_not_come_once_it_is_acknowledged(
    client: pulsarx.Client, pipe: Pipe, kind: ConsumerType
) -> None:
    """It is acknowledged behind the seek, of which its consumer has not heard yet."""
    consumer = subscribe(client, kind)
    values, ids = publish(client, "plain")
    assert payloads(consumer) == values
    with pipe.on_the_way():
        one_by_one(consumer, ids[:2])
        assert pipe.wait()
        reset_cursor(client, ids[1])
        assert pipe.wait()
        one_by_one(consumer, ids[3:5])
    assert payloads(consumer) == [values[1], values[2], values[5]]


def reset_cursor(client: pulsarx.Client, at: MessageId) -> None:
    """By the owner, without awaiting what it has sent."""
    admin = pulsarx.Client.admin.fget(client)  # type: ignore[attr-defined]  # a property
    admin.topics.reset_cursor("t", "s", at)
