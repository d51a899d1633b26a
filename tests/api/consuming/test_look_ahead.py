"""How far is read for a consumer that looks for messages when others get most of what is there."""

from __future__ import annotations

from typing import Any

import pytest
from flow_steps import join, statistics

import pulsarx
from pulsarx import ConsumerType


def keys_by_owner(producer: Any, consumers: list[Any]) -> list[str]:
    """One key of each consumer."""
    found: dict[int, str] = {}
    for number in range(1000):
        producer.send(b"", partition_key=f"key-{number}")
        for at, consumer in enumerate(consumers):
            if consumer.has_message():
                consumer.acknowledge(consumer.receive(0))
                found.setdefault(at, f"key-{number}")
        if len(found) == len(consumers):
            return [found[at] for at in range(len(consumers))]
    raise AssertionError("somebody got no key")


@pytest.mark.parametrize("others", [1, 100, 900])
def test_what_was_acknowledged_in_the_queue_does_not_hide_what_lies_far_behind(
    clocked_client: pulsarx.Client, others: int
) -> None:
    """A consumer with nothing but acknowledged messages in its queue was taken for one that has
    something to do: 64 entries were looked at, and what lay behind them was not found."""
    pair = [join(clocked_client, ConsumerType.KeyShared) for _ in range(2)]
    with clocked_client.create_producer("t") as producer:
        mine, theirs = keys_by_owner(producer, pair)
        queued = producer.send(b"queued", partition_key=mine)
        assert pair[0].has_message()
        pair[0].acknowledge(queued)
        for _ in range(others):
            producer.send(b"theirs", partition_key=theirs)
        producer.send(b"mine", partition_key=mine)
        assert pair[0].has_message()
        assert pair[0].receive(0).data() == b"mine"


def test_a_batch_is_not_read_for_others_while_there_is_something_to_do(
    clocked_client: pulsarx.Client,
) -> None:
    """Sixty-four batches were read at once, and what nobody had room for waited."""
    pair = [join(clocked_client, ConsumerType.KeyShared, receiver_queue_size=300) for _ in "ab"]
    with clocked_client.create_producer("t", batching_enabled=True) as producer:
        for _ in range(20):
            producer.send_many([b"x"] * 200, keys=[f"key-{number}" for number in range(200)])
    for _ in range(40):
        pair[0].acknowledge(pair[0].receive(0))
    assert pair[0].receiver.statistics(0)["receiver_queue_messages"] < 200
    assert statistics(clocked_client)["msg_backlog"] == 20 * 200 - 40
