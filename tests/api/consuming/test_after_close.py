"""Facts about what may still be called after close, as of the official client."""

from __future__ import annotations

from typing import Any

import pytest
from support.consumer_types import ALL_TYPES

import pulsarx


@pytest.mark.parametrize("closed_by", ["itself", "its client", "unsubscribe"])
@pytest.mark.parametrize("topic", ["t", ["t", "u"]], ids=["one topic", "several"])
@pytest.mark.parametrize("kind", ALL_TYPES, ids=str)
def test_asking_for_redelivery_after_close_does_nothing(
    kind: Any, topic: Any, closed_by: str
) -> None:
    """It used to raise AlreadyClosed, in listeners that a closing consumer overtakes above all."""
    with pulsarx.Client("memory:redelivery") as kept:
        client = pulsarx.Client("memory:redelivery")
        consumer = client.subscribe(topic, "s", kind)
        kept.create_producer("t").send(b"x", partition_key="k")
        message = consumer.receive(60_000)
        if closed_by == "its client":
            client.close()
        else:
            (consumer.close if closed_by == "itself" else consumer.unsubscribe)()
        consumer.negative_acknowledge(message)
        consumer.negative_acknowledge(message.message_id())
        consumer.redeliver_unacknowledged_messages()
        if closed_by != "unsubscribe":
            again = kept.subscribe("t", "s", kind).receive(60_000)
            assert (again.data(), again.redelivery_count()) == (b"x", 0)
        client.shutdown()


def test_closing_after_the_client_was_closed_passes() -> None:
    client = pulsarx.Client("memory:")
    client.admin.topics.create_partitioned_topic("p", 2)
    earliest = pulsarx.MessageId.earliest
    members = [client.create_producer("t"), client.create_producer("p"), client.subscribe("t", "s"),
               client.subscribe(["t", "p"], "s2"), client.create_reader("t", earliest)]  # fmt: skip
    client.close()
    for member in members * 2:
        member.close()
    with pytest.raises(pulsarx.AlreadyClosed):
        client.close()


def test_closing_a_client_after_shutdown_passes() -> None:
    client = pulsarx.Client("memory:")
    consumer = client.subscribe("t", "s")
    client.shutdown()
    client.shutdown()
    consumer.close()
    client.close()
