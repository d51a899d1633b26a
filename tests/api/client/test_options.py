"""Facts about the arguments of the official calls; signatures and limits probed on 3.13.0."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from typing import Any

import pytest

import pulsarx
from pulsarx import errors
from pulsarx.clock import ManualClock
from pulsarx.enumerations import (
    CompressionType,
    InitialPosition,
    PartitionsRoutingMode,
)
from pulsarx.message_id import MessageId
from pulsarx.options.authentication import AuthenticationToken, CryptoKeyReader
from pulsarx.options.base import ClientOptions, Options, Required
from pulsarx.options.consumer_policies import (
    ConsumerBatchReceivePolicy,
)
from pulsarx.options.loggers import ConsoleLogger
from pulsarx.options.members import (
    ConsumerOptions,
    ProducerOptions,
    ReaderOptions,
    TableViewOptions,
)
from pulsarx.randomness import Randomness
from pulsarx.schema import BytesSchema, StringSchema

NEEDED: dict[type[Options], dict[str, Any]] = {
    ClientOptions: {"service_url": "memory:"},
    ProducerOptions: {"topic": "t"},
    ConsumerOptions: {"topic": "t", "subscription_name": "s"},
    ReaderOptions: {"topic": "t", "start_message_id": MessageId.earliest},
}


def make(kind: type[Options], **arguments: Any) -> Any:
    return kind(**{**NEEDED[kind], **arguments})


def test_defaults_are_the_official_ones() -> None:
    producer = make(ProducerOptions)
    assert isinstance(producer.schema, BytesSchema)
    assert producer.send_timeout_millis == 30_000
    assert producer.max_pending_messages == 1000
    assert producer.batching_enabled is False
    assert producer.batching_max_messages == 1000
    assert producer.batching_max_allowed_size_in_bytes == 131_072
    assert producer.batching_max_publish_delay_ms == 10
    consumer = make(ConsumerOptions)
    assert consumer.receiver_queue_size == 1000
    assert consumer.initial_position is InitialPosition.Latest
    assert consumer.negative_ack_redelivery_delay_ms == 60_000
    assert make(ReaderOptions).start_message_id_inclusive is False
    client = make(ClientOptions)
    assert client.operation_timeout_seconds == 30
    assert client.clock is None
    assert client.durability is None
    assert client.flush_interval_ms is None
    assert client.broker_options is None
    assert client.read_only is False
    assert client.service_url.memory_name == ""


@pytest.mark.parametrize("kind", NEEDED)
def test_every_row_has_a_slot_and_the_default_passes(kind: type[Options]) -> None:
    # What an argument, the client, a producer of letters or a table says of itself.
    derived = {"schema_info", "memory_limit", "for_letters", "queues_sends", "creates"}
    assert sorted(row[0] for row in kind.ROWS) == sorted({*kind.__slots__} - derived)
    assert not hasattr(make(kind), "__dict__")


CALLS: dict[type[Options], Callable[..., Any]] = {
    ClientOptions: pulsarx.Client.__init__,
    ProducerOptions: pulsarx.Client.create_producer,
    ConsumerOptions: pulsarx.Client.subscribe,
    ReaderOptions: pulsarx.Client.create_reader,
    TableViewOptions: pulsarx.Client.create_table_view,
}


@pytest.mark.parametrize("kind", CALLS)
def test_the_signature_of_a_call_is_its_table(kind: type[Options]) -> None:
    """A call hands over all that it takes, so an argument that has no row would be refused."""
    _, *parameters = inspect.signature(CALLS[kind]).parameters.values()
    found = {
        each.name: Required if each.default is inspect.Parameter.empty else each.default
        for each in parameters
    }
    table = {name: default for name, _, default, _ in kind.ROWS}
    assert isinstance(found.get("schema"), type(table.get("schema")))
    assert found | {"schema": None} == table | {"schema": None}


def test_an_argument_is_checked_by_the_call() -> None:
    with pulsarx.Client("memory:rows") as client:
        with pytest.raises(ValueError, match="producer_name"):
            client.create_producer("t", producer_name=5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="consumer_name"):
            client.subscribe("t", "s", consumer_name=5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="reader_name"):
            client.create_reader("t", MessageId.earliest, reader_name=5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="subscription_name"):
            client.create_table_view("t", subscription_name=5)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", NEEDED)
def test_needed_and_unknown_arguments_are_type_errors(kind: type[Options]) -> None:
    for name in NEEDED[kind]:
        rest = {other: value for other, value in NEEDED[kind].items() if other != name}
        with pytest.raises(TypeError, match=name):
            kind(**rest)
    with pytest.raises(TypeError, match="nonsense"):
        make(kind, nonsense=1)


class Stranger:
    """Of no type that anything accepts."""


@pytest.mark.parametrize(("kind", "name"), [(kind, row[0]) for kind in NEEDED for row in kind.ROWS])
def test_a_wrong_type_is_refused_by_every_argument(kind: type[Options], name: str) -> None:
    if name == "replicate_subscription_state_enabled":
        return  # the official client takes anything
    expected: tuple[type[Exception], ...] = (ValueError, TypeError)
    with pytest.raises(expected) as caught:
        make(kind, **{name: Stranger()})
    assert name in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (ProducerOptions, {"topic": None}),
        (ProducerOptions, {"schema": None}),
        (ProducerOptions, {"max_pending_messages": -1}),
        (ProducerOptions, {"max_pending_messages_across_partitions": -1}),
        (ProducerOptions, {"batching_max_messages": 1}),
        (ProducerOptions, {"batching_max_messages": 0}),
        (ConsumerOptions, {"ack_timeout_tick_ms": 99}),
        (ConsumerOptions, {"priority_level": -1}),
        (ConsumerOptions, {"expire_time_of_incomplete_chunked_message_ms": -1}),
        (ProducerOptions, {"batching_max_messages": 2.5}),
        (ProducerOptions, {"compression_type": 1}),
        (ProducerOptions, {"batching_enabled": 1}),
        (ProducerOptions, {"batching_enabled": True, "chunking_enabled": True}),
        (ConsumerOptions, {"subscription_name": 5}),
        (ConsumerOptions, {"consumer_type": 0}),
        (ConsumerOptions, {"receiver_queue_size": -1}),
        (ConsumerOptions, {"unacked_messages_timeout_ms": 999}),
        (ConsumerOptions, {"topic": ("a", "b")}),
        (ReaderOptions, {"start_message_id": "earliest"}),
        (ReaderOptions, {"start_message_id": None}),
        (ClientOptions, {"service_url": 5}),
        (ClientOptions, {"durability": "none"}),
        (ClientOptions, {"flush_interval_ms": 0}),
        (ClientOptions, {"logger": "x"}),
        (ClientOptions, {"broker_options": {"max_message_size": 5}}),
        (ProducerOptions, {"initial_sequence_id": -2}),
        (ProducerOptions, {"initial_sequence_id": 2**63 - 1}),
    ],
)
def test_these_are_value_errors(kind: type[Options], arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        make(kind, **arguments)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (ProducerOptions, {"max_pending_messages": 2**31}),
        (ProducerOptions, {"batching_max_messages": -1}),
        (ProducerOptions, {"batching_max_allowed_size_in_bytes": -1}),
        (ProducerOptions, {"batching_max_publish_delay_ms": -1}),
        (ProducerOptions, {"initial_sequence_id": 2**63}),
        (ProducerOptions, {"message_routing_mode": 1}),
        (ProducerOptions, {"properties": {"a": 1}}),
        (ConsumerOptions, {"properties": {1: "a"}}),
        (ConsumerOptions, {"unacked_messages_timeout_ms": -1}),
        (ConsumerOptions, {"max_pending_chunked_message": -1}),
        (ClientOptions, {"stats_interval_in_seconds": -1}),
    ],
)
def test_these_are_type_errors(kind: type[Options], arguments: dict[str, Any]) -> None:
    """Where the official client leaves the check to C++."""
    with pytest.raises(TypeError):
        make(kind, **arguments)


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (ProducerOptions, {"max_pending_messages": 0}),
        (ProducerOptions, {"batching_max_messages": 2}),
        (ProducerOptions, {"batching_max_publish_delay_ms": 0}),
        (ProducerOptions, {"send_timeout_millis": 0}),
        (ProducerOptions, {"max_pending_messages": True}),
        (ProducerOptions, {"initial_sequence_id": 2**63 - 2}),
        (ProducerOptions, {"schema": StringSchema(), "properties": {"a": "b"}}),
        (ProducerOptions, {"compression_type": CompressionType.ZSTD}),
        (ProducerOptions, {"message_routing_mode": PartitionsRoutingMode.UseSinglePartition}),
        (ProducerOptions, {"lazy_start_partitioned_producers": True, "encryption_key": ""}),
        (ConsumerOptions, {"receiver_queue_size": 0, "unacked_messages_timeout_ms": 0}),
        (ConsumerOptions, {"batch_receive_policy": ConsumerBatchReceivePolicy(1, 1, 1)}),
        (ConsumerOptions, {"broker_consumer_stats_cache_time_ms": 1}),
        (ConsumerOptions, {"replicate_subscription_state_enabled": True}),
        (ReaderOptions, {"start_message_id": MessageId.latest, "reader_name": "r"}),
        (ClientOptions, {"authentication": AuthenticationToken("t"), "io_threads": 4}),
        (ClientOptions, {"use_tls": True, "tls_trust_certs_file_path": "/nowhere"}),
        (ClientOptions, {"logger": logging.getLogger("x")}),
        (ClientOptions, {"logger": ConsoleLogger()}),
        (ClientOptions, {"clock": ManualClock(), "randomness": Randomness(1)}),
        (ClientOptions, {"durability": "os", "flush_interval_ms": 1, "read_only": True}),
    ],
)
def test_these_are_accepted(kind: type[Options], arguments: dict[str, Any]) -> None:
    options = make(kind, **arguments)
    for name, value in arguments.items():
        assert getattr(options, name) == value


def test_empty_names_and_properties_are_none_as_in_the_official_client() -> None:
    producer = make(ProducerOptions, producer_name="", properties={})
    assert producer.producer_name is None
    assert producer.properties is None
    assert make(ConsumerOptions, consumer_name="").consumer_name is None
    assert make(ReaderOptions, reader_name="").reader_name is None


@pytest.mark.parametrize("text", ["x" * 40_000, "a\nb", "\x00", "\x7f", "\ud800"])
def test_names_of_members_that_cannot_be_kept_or_shown_are_refused(text: str) -> None:
    """As over the network."""
    for kind, name in (
        (ProducerOptions, "producer_name"),
        (ConsumerOptions, "consumer_name"),
        (ReaderOptions, "reader_name"),
    ):
        with pytest.raises(errors.InvalidConfiguration, match=name.replace("_", " ")) as caught:
            make(kind, **{name: text})
        assert len(str(caught.value)) < 1000


def test_a_later_change_of_the_properties_does_not_show() -> None:
    properties = {"a": "b"}
    producer = make(ProducerOptions, properties=properties)
    properties["a"] = "c"
    assert producer.properties == {"a": "b"}


def test_a_key_to_encrypt_with_needs_a_reader() -> None:
    reader = CryptoKeyReader("a", "b")
    assert make(ProducerOptions, encryption_key="k", crypto_key_reader=reader).encrypts
    assert not make(ProducerOptions, crypto_key_reader=reader).encrypts
    assert not make(ProducerOptions, encryption_key="", crypto_key_reader=reader).encrypts
    with pytest.raises(errors.InvalidConfiguration, match="encryption_key='k'"):
        make(ProducerOptions, encryption_key="k")


@pytest.mark.parametrize("topic", [[], ["a", 1], ("a", "b"), [b"a"]])
def test_topics_are_named_in_a_list_of_text(topic: object) -> None:
    with pytest.raises((ValueError, TypeError), match="topic"):
        make(ConsumerOptions, topic=topic)


@pytest.mark.parametrize(
    ("queue", "total", "topics", "share"),
    [(1000, 50000, 4, 1000), (1000, 50000, 100, 500), (1000, 10, 100, 1), (7, 0, 2, 1)],
)
def test_topics_share_the_receiver_queue(queue: int, total: int, topics: int, share: int) -> None:
    options = make(
        ConsumerOptions,
        receiver_queue_size=queue,
        max_total_receiver_queue_size_across_partitions=total,
        message_listener=print,
    )
    part = options.part_of(topics)
    assert part.receiver_queue_size == share
    assert part.message_listener is None


def test_repr_shows_what_is_not_the_default() -> None:
    assert repr(make(ProducerOptions, batching_enabled=True)) == (
        "ProducerOptions(topic='t', batching_enabled=True)"
    )
