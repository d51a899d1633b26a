"""Facts about clients that are refused after a topic was made for them: it goes again."""

from __future__ import annotations

from typing import Any

import pytest
from peer import Peer, entry, names, serving

import pulsarx
from pulsarx import errors
from pulsarx.broker.schemas.registry import SchemaRegistry
from pulsarx.consuming.consumer_schema import ConsumerSchema
from pulsarx.schema import StringSchema
from pulsarx.wire.commands import KEY_SHARED, SHARED
from pulsarx.wire.schemas import schema_values

NS = "public/default"
TOPICS = ["t", f"non-persistent://{NS}/t"]


@pytest.fixture
def peer(client: pulsarx.Client) -> Any:
    made = Peer(serving(client))
    made.connect()
    yield made
    made.server.close()


def asked(peer: Peer, topic: str) -> int:
    """What a client asks before it uses a topic."""
    (told,) = peer.say("PARTITIONED_METADATA", topic=topic, request_id=7)
    assert told[1]["error"] is None
    return int(told[1]["partitions"])


@pytest.mark.parametrize("topic", TOPICS)
def test_a_refused_consumer_takes_its_topic_along(
    client: pulsarx.Client, peer: Peer, topic: str
) -> None:
    """It stayed."""
    client.admin.namespaces.set_subscription_types_enabled(NS, ["Shared"])
    assert asked(peer, topic) == 0
    for _ in range(2):
        assert names(peer.subscribe(topic=topic, type=KEY_SHARED)) == ["ERROR"]
        assert client.admin.topics.get_list(NS) == []
    assert names(peer.subscribe(topic=topic, type=SHARED)) == ["SUCCESS"]
    assert len(client.admin.topics.get_list(NS)) == 1


def test_a_refused_consumer_leaves_a_topic_that_was_there(
    client: pulsarx.Client, peer: Peer
) -> None:
    client.admin.topics.create_non_partitioned_topic("t")
    client.admin.namespaces.set_subscription_types_enabled(NS, ["Shared"])
    assert names(peer.subscribe(type=KEY_SHARED)) == ["ERROR"]
    assert client.admin.topics.get_list(NS) == [f"persistent://{NS}/t"]


def test_a_consumer_whose_schema_is_refused_at_last_takes_its_topic_along(
    client: pulsarx.Client, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConsumerSchema, "register", refuse)
    info = schema_values(StringSchema().schema_info())
    assert names(peer.subscribe(schema=info)) == ["ERROR"]
    assert client.admin.topics.get_list(NS) == []


def refuse(*_: Any) -> None:
    raise errors.IncompatibleSchema(detail="another one was faster")


def test_a_producer_whose_schema_is_refused_at_last_takes_its_topic_along(
    client: pulsarx.Client, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = schema_values(StringSchema().schema_info())
    values = {"topic": "t", "producer_id": 0, "request_id": 1}
    with monkeypatch.context() as patch:
        patch.setattr(SchemaRegistry, "register_producer", refuse)
        assert asked(peer, "t") == 0
        assert names(peer.say("PRODUCER", schema=info, **values)) == ["ERROR"]
        assert client.admin.topics.get_list(NS) == []
    assert names(peer.say("PRODUCER", schema=info, **values)) == ["PRODUCER_SUCCESS"]
    assert names(peer.send(entry(b"a"))) == ["SEND_RECEIPT"]


def test_a_producer_whose_first_subscription_is_refused_takes_its_topic_along(
    client: pulsarx.Client, peer: Peer
) -> None:
    client.admin.namespaces.set_auto_subscription_creation(NS, False)
    values = {"topic": "t", "producer_id": 0, "request_id": 1}
    told = peer.say("PRODUCER", initial_subscription="first", **values)
    assert names(told) == ["ERROR"]
    assert client.admin.topics.get_list(NS) == []
    assert names(peer.say("PRODUCER", **values)) == ["PRODUCER_SUCCESS"]


def test_a_refused_producer_leaves_no_first_subscription(
    client: pulsarx.Client, peer: Peer
) -> None:
    """It did: the subscription held all messages of the topic, and nobody knew of it."""
    with client.create_producer("t", producer_name="taken"):
        told = peer.say(
            "PRODUCER", topic="t", producer_id=0, request_id=1, producer_name="taken",
            initial_subscription="first",
        )  # fmt: skip
        assert names(told) == ["ERROR"]
    assert client.admin.topics.get_subscriptions("t") == []


def test_who_asks_for_a_topic_with_partitions_has_it_made(
    client: pulsarx.Client, peer: Peer
) -> None:
    client.admin.namespaces.set_auto_topic_creation(NS, True, "partitioned", 3)
    assert asked(peer, "t") == 3
    assert client.admin.topics.get_partitioned_topic_list(NS) == [f"persistent://{NS}/t"]
    (told,) = peer.say("PARTITIONED_METADATA", topic="u-partition-0", request_id=7)
    assert told[1]["error"] is not None  # there is no topic of which it would be one


@pytest.mark.parametrize(
    ("topic", "why"),
    [
        ("t", "allow_auto_topic_creation is off"),
        ("none/ns/t", "no namespace"),
        ("__change_events", "system topic"),
        ("pulsar/standalone/t", "reserved"),
        ("public/full/t", "max_topics_per_namespace"),
    ],
)
def test_what_refuses_a_topic_is_told_who_asks_for_it(
    client: pulsarx.Client, peer: Peer, topic: str, why: str
) -> None:
    namespaces = client.admin.namespaces
    namespaces.create_namespace("public/full")
    namespaces.set_max_topics_per_namespace("public/full", 1)
    client.admin.topics.create_non_partitioned_topic("public/full/there")
    namespaces.set_auto_topic_creation(NS, False)
    (told,) = peer.say("PARTITIONED_METADATA", topic=topic, request_id=7)
    assert why in told[1]["message"]
