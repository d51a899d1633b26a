"""Facts about the text of refused arguments: it is that of the official client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pulsarx
from pulsarx import MessageId

Call = Callable[[pulsarx.Client], object]
OF_TYPE = "Argument {} is expected to be of type '{}' and not '{}'"
OR_NONE = "Argument {} is expected to be either None or of type '{}'"
NO_TOPIC = "Argument 'topic' is expected to be of a type between (str, list, re.pattern)"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda client: client.subscribe(7, "s"), NO_TOPIC),
        (
            lambda client: client.subscribe("t", 7),
            OF_TYPE.format("subscription_name", "str", "int"),
        ),
        (
            lambda client: client.subscribe("t", "s", consumer_type=1),
            OF_TYPE.format("consumer_type", "ConsumerType", "int"),
        ),
        (
            lambda client: client.subscribe("t", "s", consumer_name=1),
            OR_NONE.format("consumer_name", "str"),
        ),
        (lambda client: client.create_producer(None), OF_TYPE.format("topic", "str", "NoneType")),
        (
            lambda client: client.create_producer("t", producer_name=1),
            OR_NONE.format("producer_name", "str"),
        ),
        (
            lambda client: client.create_producer(
                "t", batching_enabled=True, chunking_enabled=True
            ),
            "Batching and chunking of messages can't be enabled together.",
        ),
        (
            lambda client: client.create_reader("t", "earliest"),
            OF_TYPE.format("start_message_id", "MessageId", "str"),
        ),
        (
            lambda client: client.create_reader("t", MessageId.earliest, receiver_queue_size="1"),
            OF_TYPE.format("receiver_queue_size", "int", "str"),
        ),
    ],
)
def test_arguments_of_calls(memory_client: pulsarx.Client, call: Call, text: str) -> None:
    with pytest.raises(ValueError) as raised:
        call(memory_client)
    assert str(raised.value) == text


def test_arguments_of_a_client_and_of_credentials() -> None:
    with pytest.raises(ValueError) as raised:
        pulsarx.Client(7)  # type: ignore[arg-type]
    kinds = "'str', 'AutoClusterFailover' or 'ServiceInfoProvider'"
    assert str(raised.value) == f"Argument service_url is expected to be of type {kinds}"
    with pytest.raises(ValueError) as raised:
        pulsarx.AuthenticationToken(7)  # type: ignore[arg-type]
    told = "Argument token is expected to be of type 'str' or a function returning 'str'"
    assert str(raised.value) == told


@pytest.mark.parametrize(
    ("argument", "value", "kind"),
    [
        ("properties", [], "dict"),
        ("partition_key", 7, "str"),
        ("ordering_key", 7, "str"),
        ("sequence_id", "7", "int"),
        ("replication_clusters", "all", "list"),
        ("event_timestamp", "now", "int"),
        ("deliver_at", "now", "int"),
        ("deliver_after", 7, "timedelta"),
    ],
)
def test_arguments_of_send(
    memory_client: pulsarx.Client, argument: str, value: Any, kind: str
) -> None:
    producer = memory_client.create_producer("t")
    with pytest.raises(ValueError) as raised:
        producer.send(b"x", **{argument: value})
    assert str(raised.value) == OR_NONE.format(argument, kind)


def test_contents(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    with pytest.raises(TypeError) as raised:
        producer.send("x")  # type: ignore[arg-type]
    told = "Invalid record obj of type <class 'str'> - expected type is <class 'bytes'>"
    assert str(raised.value) == told
    with pytest.raises(ValueError) as refused:
        producer.send(b"x", disable_replication=7)  # type: ignore[arg-type]
    assert str(refused.value) == OF_TYPE.format("disable_replication", "bool", "int")
