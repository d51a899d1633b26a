"""Facts about acknowledging ids on consumers of several topics or partitions."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest

import pulsarx
from pulsarx import InitialPosition, MessageId, errors

KNOWN: dict[str, Callable[[Any, MessageId], MessageId]] = {
    "received": lambda message, sent: message.message_id(),
    "pickled": lambda message, sent: pickle.loads(pickle.dumps(message.message_id())),
    "deserialized": lambda message, sent: MessageId.deserialize(
        sent.serialize(), message.topic_name()
    ),
    "from text": lambda message, sent: MessageId.from_text(sent.to_text(), message.topic_name()),
}
UNKNOWN: dict[str, Callable[[MessageId], MessageId]] = {
    "sent": lambda sent: sent,
    "built": lambda sent: MessageId(
        sent.partition(), sent.ledger_id(), sent.entry_id(), sent.batch_index()
    ),
    "deserialized": lambda sent: MessageId.deserialize(sent.serialize()),
    "pickled": lambda sent: pickle.loads(pickle.dumps(sent)),
    "from text": lambda sent: MessageId.from_text(sent.to_text()),
    "earliest": lambda sent: MessageId.earliest,
}


@pytest.fixture(params=["list", "partitions", "pattern"])
def of_several(request: pytest.FixtureRequest, memory_client: pulsarx.Client) -> Any:
    """A consumer of several topics, or partitions, and a topic of them."""
    memory_client.admin.topics.create_partitioned_topic("p", 2)
    memory_client.create_producer("t").close()
    topics = {"list": ["t", "u"], "partitions": "p", "pattern": re.compile("t.*")}
    topic = topics[request.param]
    consumer = memory_client.subscribe(topic, "s", initial_position=InitialPosition.Earliest)
    return consumer, memory_client.create_producer("p" if topic == "p" else "t")


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("way", KNOWN)
def test_an_id_with_its_topic_is_acknowledged_on_several(
    of_several: Any, way: str, batched: bool
) -> None:
    consumer, producer = of_several
    sent = producer.send_many([b"x"])[0] if batched else producer.send(b"x")
    message = consumer.receive(60_000)
    consumer.acknowledge(KNOWN[way](message, sent))
    consumer.redeliver_unacknowledged_messages()
    with pytest.raises(errors.Timeout):
        consumer.receive(0)


@pytest.mark.parametrize("way", UNKNOWN)
def test_an_id_without_its_topic_is_not_acknowledged_on_several(of_several: Any, way: str) -> None:
    """As in the official client. It used to be looked for by its ledger."""
    consumer, producer = of_several
    sent = producer.send(b"x")
    message_id = UNKNOWN[way](sent)
    for call in (
        consumer.acknowledge,
        consumer.acknowledge_cumulative,
        lambda each: consumer.acknowledge_many([each]),
    ):
        with pytest.raises(errors.OperationNotSupported, match="needs the topic"):
            call(message_id)
    assert consumer.receive(60_000).data() == b"x"
    consumer.redeliver_unacknowledged_messages()
    assert consumer.receive(60_000).data() == b"x"


def test_the_topic_is_no_part_of_what_an_id_is_equal_to(memory_client: pulsarx.Client) -> None:
    sent = memory_client.create_producer("t").send(b"x")
    known = MessageId.deserialize(sent.serialize(), "t")
    assert (known == sent, hash(known) == hash(sent), known < sent) == (True, True, False)
    assert known.serialize() == sent.serialize()
