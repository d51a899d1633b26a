"""Facts about the codes of refusals: a client that tries again does it where that can help, and is
told at once where it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from peer import Peer, serving
from served import Served

import pulsarx
from pulsarx import errors
from pulsarx.wire.commands import EXCLUSIVE, KEY_SHARED, SHARED
from pulsarx.wire.server_errors import code_of, error_of

# Clients in C++, and those above them, repeat a lookup, PRODUCER or SUBSCRIBE that is answered with
# one of these until their operation timeout, and tell their user nothing.
TRIED_AGAIN = {1, 2, 6, 10, 12, 13, 17, 20, 21, 23, 24}
TOPIC = {"topic": "t", "request_id": 7}
PRODUCER = {**TOPIC, "producer_id": 5}
CONSUMER = {**TOPIC, "consumer_id": 5, "subscription": "s", "type": SHARED}


class Asked(Peer):
    """Says that it is a client in C++."""

    client: Any  # in process, of the same broker


@pytest.fixture
def asked() -> Iterator[Asked]:
    options = pulsarx.BrokerOptions(
        max_producers_per_topic=2, max_consumers_per_topic=2, max_subscriptions_per_topic=1
    )
    client = pulsarx.Client("memory:", durability="os", broker_options=options)
    made = Asked(serving(client))
    made.client = client
    made.say("CONNECT", client_version="Pulsar-CPP-v4.2.0", protocol_version=20)
    yield made
    made.server.close()
    client.shutdown()


def with_producers(peer: Asked) -> None:
    for number in (1, 2):
        peer.say("PRODUCER", topic="t", producer_id=number, request_id=1, producer_name=f"{number}")


def with_exclusive_producer(peer: Asked) -> None:
    peer.say("PRODUCER", topic="t", producer_id=1, request_id=1, access_mode=1)


def with_exclusive(peer: Asked) -> None:
    peer.say("SUBSCRIBE", **{**CONSUMER, "consumer_id": 1, "type": EXCLUSIVE})


def with_consumers(peer: Asked) -> None:
    for number in (1, 2):
        peer.say("SUBSCRIBE", **{**CONSUMER, "consumer_id": number})


def with_sticky(peer: Asked) -> None:
    ranges = {"mode": 1, "ranges": [{"start": 0, "end": 100}]}
    given = {**CONSUMER, "consumer_id": 1, "type": KEY_SHARED, "key_shared_meta": ranges}
    peer.say("SUBSCRIBE", **given)


def terminated(peer: Asked) -> None:
    peer.client.admin.topics.create_non_partitioned_topic("t")
    peer.client.admin.topics.terminate("t")


def partitioned(peer: Asked) -> None:
    peer.client.admin.topics.create_partitioned_topic("t", 2)


def no_creation(peer: Asked) -> None:
    peer.client.admin.namespaces.set_auto_topic_creation("public/default", False)


def no_subscriptions(peer: Asked) -> None:
    peer.client.admin.topics.create_non_partitioned_topic("t")
    peer.client.admin.namespaces.set_auto_subscription_creation("public/default", False)


def only_failover(peer: Asked) -> None:
    peer.client.admin.namespaces.set_subscription_types_enabled("public/default", ["Failover"])


def with_schema(peer: Asked) -> None:
    peer.client.create_producer("t", schema=pulsarx.schema.StringSchema())


def nothing(_: Asked) -> None:
    pass


STICKY = {"mode": 1, "ranges": [{"start": 50, "end": 150}]}
INT32 = {"name": "x", "type": 7, "properties": [], "data": b""}
Case = tuple[Callable[[Asked], None], str, dict[str, Any], type[Exception]]
PERMANENT: dict[str, Case] = {
    "a name that is none": (
        nothing, "PRODUCER", {**PRODUCER, "topic": "persistent://a/b/c/d/e"}, errors.NotAllowedError
    ),
    "a name that is none, subscribed to": (
        nothing, "SUBSCRIBE", {**CONSUMER, "topic": "a/b"}, errors.NotAllowedError
    ),
    "a name that is none, looked up": (
        nothing, "LOOKUP", {**TOPIC, "topic": "://"}, errors.NotAllowedError
    ),
    "a name that is none, asked for partitions": (
        nothing, "PARTITIONED_METADATA", {**TOPIC, "topic": "://"}, errors.NotAllowedError
    ),
    "no namespace": (
        nothing, "PRODUCER", {**PRODUCER, "topic": "public/none/t"}, errors.TopicNotFound
    ),
    "no namespace, subscribed to": (
        nothing, "SUBSCRIBE", {**CONSUMER, "topic": "public/none/t"}, errors.TopicNotFound
    ),
    "no topic": (no_creation, "PRODUCER", PRODUCER, errors.TopicNotFound),
    "no topic, subscribed to": (no_creation, "SUBSCRIBE", CONSUMER, errors.TopicNotFound),
    "no topic, asked for partitions": (
        no_creation, "PARTITIONED_METADATA", TOPIC, errors.TopicNotFound
    ),
    "no partition": (
        partitioned, "PRODUCER", {**PRODUCER, "topic": "t-partition-7"}, errors.TopicNotFound
    ),
    "a topic with partitions": (partitioned, "PRODUCER", PRODUCER, errors.NotAllowedError),
    "a terminated topic": (terminated, "PRODUCER", PRODUCER, errors.TopicTerminated),
    "a name that is taken": (
        with_producers, "PRODUCER", {**PRODUCER, "producer_name": "1"}, errors.ProducerBusy
    ),
    "as many producers as may be": (
        with_producers, "PRODUCER", {**PRODUCER, "producer_name": "3"}, errors.ProducerBusy
    ),
    "another has the topic": (
        with_exclusive_producer, "PRODUCER", PRODUCER, errors.ProducerBusy
    ),
    "another has the topic alone": (
        with_exclusive_producer, "PRODUCER", {**PRODUCER, "access_mode": 1}, errors.ProducerFenced
    ),
    "no such access mode": (
        nothing, "PRODUCER", {**PRODUCER, "access_mode": 99}, errors.NotAllowedError
    ),
    "another schema": (
        with_schema, "PRODUCER", {**PRODUCER, "schema": INT32}, errors.IncompatibleSchema
    ),
    "another schema, subscribed to": (
        with_schema, "SUBSCRIBE", {**CONSUMER, "schema": INT32}, errors.IncompatibleSchema
    ),
    "another consumer": (
        with_exclusive, "SUBSCRIBE", {**CONSUMER, "type": EXCLUSIVE}, errors.ConsumerBusy
    ),
    "another type": (with_exclusive, "SUBSCRIBE", CONSUMER, errors.ConsumerBusy),
    "ranges of keys of others": (
        with_sticky,
        "SUBSCRIBE",
        {**CONSUMER, "type": KEY_SHARED, "key_shared_meta": STICKY},
        errors.ConsumerAssignError,
    ),
    "as many consumers as may be": (
        with_consumers, "SUBSCRIBE", CONSUMER, errors.ConsumerBusy
    ),
    "as many subscriptions as may be": (
        with_exclusive, "SUBSCRIBE", {**CONSUMER, "subscription": "u"}, errors.NotAllowedError
    ),
    "a type that is not allowed": (
        only_failover, "SUBSCRIBE", CONSUMER, errors.NotAllowedError
    ),
    "a subscription without a name": (
        nothing, "SUBSCRIBE", {**CONSUMER, "subscription": ""}, errors.NotAllowedError
    ),
    "no subscription, and none is made": (
        no_subscriptions, "SUBSCRIBE", CONSUMER, errors.NotAllowedError
    ),
    "a compacted topic that is shared": (
        nothing, "SUBSCRIBE", {**CONSUMER, "read_compacted": True}, errors.NotAllowedError
    ),
    "a non-persistent topic that is read compacted": (
        nothing,
        "SUBSCRIBE",
        {**CONSUMER, "topic": "non-persistent://public/default/n", "read_compacted": True},
        errors.NotAllowedError,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PERMANENT)
def test_what_stays_refused_is_told_at_once(asked: Asked, name: str) -> None:
    before, command, values, kind = PERMANENT[name]
    before(asked)
    told = asked.say(command, **values)
    answers = [each for each in told if each[1].get("request_id") == values["request_id"]]
    assert len(answers) == 1, told
    code = answers[0][1]["error"]
    assert code is not None
    assert code not in TRIED_AGAIN, (code, answers[0][1]["message"])
    assert isinstance(error_of(code, ""), kind), (code, answers[0][1]["message"])


@pytest.mark.parametrize("version", ["Pulsar-Java-v4.2.0", "Pulsar-Go-0.16", "PulsarX"])
def test_clients_that_do_not_try_again_are_told_that_there_is_no_subscription(
    asked: Asked, version: str
) -> None:
    no_subscriptions(asked)
    other = Peer(asked.server)
    other.say("CONNECT", client_version=version, protocol_version=20)
    [(name, values, _)] = other.say("SUBSCRIBE", **CONSUMER)
    assert name == "ERROR"
    assert isinstance(error_of(values["error"], ""), errors.SubscriptionNotFound)


def test_the_official_client_is_told_at_once_that_there_is_no_subscription(
    served: Served,
) -> None:
    """It tried again for its operation timeout, and raised Timeout."""
    pulsar: Any = pytest.importorskip("pulsar")
    served.client.admin.topics.create_non_partitioned_topic("t")
    namespaces = served.client.admin.namespaces
    namespaces.set_auto_subscription_creation("public/default", False)
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    client = pulsar.Client(served.service.service_url, operation_timeout_seconds=60, logger=quiet)
    with pytest.raises(pulsar.NotAllowedError):
        client.subscribe("t", "s")
    client.close()


def test_codes_that_no_broker_sends_are_none_of_ours() -> None:
    """InvalidTopicName is tried again in vain."""
    codes = {code_of(getattr(errors, name)("x")) for name in errors.__all__}
    assert 17 not in codes
