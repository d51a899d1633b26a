"""The classes of `_pulsar`: configurations, builders, and what holds a client, producer, ..."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import errors
from pulsarx.compat import authentication, builders, configurations, handles
from pulsarx.enumerations import (
    CompressionType,
    ConsumerType,
    InitialPosition,
    KeySharedMode,
    LoggerLevel,
    SchemaType,
)
from pulsarx.options.consumer_policies import BatchReceivePolicy
from pulsarx.options.service_info import ServiceInfo
from pulsarx.schema.schema import SchemaInfo


@pytest.fixture
def client() -> Iterator[handles.Client]:
    made = handles.Client("memory:native", configurations.ClientConfiguration())
    yield made
    made.shutdown()


def consuming(**settings: Any) -> configurations.ConsumerConfiguration:
    made = configurations.ConsumerConfiguration()
    for name, value in settings.items():
        getattr(made, name)(value)
    return made


# Configurations -----------------------------------------------------------------------------------


def test_one_name_asks_and_sets():
    configuration = configurations.ProducerConfiguration()
    assert configuration.send_timeout_millis() == 30000
    assert configuration.send_timeout_millis(5).producer_name("p") is configuration
    assert (configuration.send_timeout_millis(), configuration.producer_name()) == (5, "p")


def test_configurations_do_not_share_what_is_set():
    configurations.ConsumerConfiguration().consumer_name("one").property("a", "b")
    other = configurations.ConsumerConfiguration()
    assert other.consumer_name() == ""
    assert other.arguments() == {}


def test_batching_is_on_by_default_here_alone():
    configuration = configurations.ProducerConfiguration()
    assert configuration.batching_enabled() is True
    assert configuration.arguments() == {"batching_enabled": True}
    assert configuration.batching_enabled(False).arguments() == {"batching_enabled": False}


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("Producer", "compression_type", 1),
        ("Producer", "producer_name", None),
        ("Producer", "batching_max_messages", -1),
        ("Producer", "schema", None),
        ("Client", "io_threads", "x"),
        ("Client", "io_threads", 2**31),
        ("Client", "stats_interval_in_seconds", -1),
        ("Consumer", "unacked_messages_timeout_ms", -1),
        ("Consumer", "consumer_type", 1),
        ("Reader", "receiver_queue_size", 1.5),
        ("TableView", "subscription_name", 1),
    ],
)
def test_a_value_of_another_type_is_a_type_error(kind: str, name: str, value: object):
    configuration = getattr(configurations, f"{kind}Configuration")()
    with pytest.raises(TypeError):
        getattr(configuration, name)(value)
    assert configuration._values == {}


@pytest.mark.parametrize(
    ("kind", "name", "value", "taken"),
    [
        ("Producer", "max_pending_messages", -1, 0),
        ("Producer", "max_pending_messages_across_partitions", -1, 0),
        ("Producer", "batching_max_messages", 1, 2),
        ("Consumer", "unacked_messages_timeout_ms", 9999, 10000),
        ("Consumer", "unacked_messages_timeout_ms", 1, 0),
    ],
)
def test_a_value_out_of_bounds_is_a_value_error(kind: str, name: str, value: int, taken: int):
    configuration = getattr(configurations, f"{kind}Configuration")()
    with pytest.raises(ValueError):
        getattr(configuration, name)(value)
    assert getattr(getattr(configuration, name)(taken), name)() == taken


@pytest.mark.parametrize(
    ("kind", "name"),
    [("Client", "authentication"), ("Producer", "message_router"), ("TableView", "schema")],
)
def test_some_settings_cannot_be_asked(kind: str, name: str):
    with pytest.raises(TypeError):
        getattr(getattr(configurations, f"{kind}Configuration")(), name)()


def test_loggers_are_set(tmp_path: Path):
    configuration = configurations.ClientConfiguration()
    configuration.set_console_logger(LoggerLevel.Warn)
    assert configuration.arguments()["logger"].log_level == LoggerLevel.Warn
    configuration.set_file_logger(LoggerLevel.Error, str(tmp_path / "log"))
    assert configuration.arguments()["logger"].log_file == str(tmp_path / "log")


# Builders -----------------------------------------------------------------------------------------


def test_a_dead_letter_policy_is_built():
    builder = builders.DeadLetterPolicyBuilder().deadLetterTopic("d").initialSubscriptionName("s")
    for count in (0, -1):
        with pytest.raises(ValueError):
            builder.maxRedeliverCount(count).build()
    policy = builder.maxRedeliverCount(3).build()
    found = policy.getMaxRedeliverCount(), policy.getDeadLetterTopic()
    assert (*found, policy.getInitialSubscriptionName()) == (3, "d", "s")


def test_a_key_shared_policy_is_set_piece_by_piece():
    policy = builders.KeySharedPolicy()
    assert policy.get_key_shared_mode() == KeySharedMode.AutoSplit
    assert policy.set_key_shared_mode(KeySharedMode.Sticky).set_sticky_ranges([(0, 5)]) is policy
    assert policy.set_allow_out_of_order_delivery(True).is_allow_out_of_order_delivery()
    for ranges in ([(0, 5), (3, 7)], [(0, 70000)], []):
        with pytest.raises(ValueError):
            policy.set_sticky_ranges(ranges)
    assert policy.get_sticky_ranges() == [(0, 5)]


def test_a_pattern_keeps_its_text():
    assert builders.TopicRegex("a.*").pattern == "a.*"
    with pytest.raises(TypeError):
        builders.TopicRegex(re.compile("a"))  # type: ignore[arg-type]


def test_a_built_message_is_as_it_was_described():
    builder = builders.MessageBuilder().content(b"abc").partition_key("k").ordering_key("o")
    message = builder.property("a", "b").properties({"c": "d"}).event_timestamp(5).build()
    assert (message.data(), message.length(), message.int_schema_version()) == (b"abc", 3, -1)
    assert (message.partition_key(), message.ordering_key()) == ("k", "o")
    assert (message.properties(), message.event_timestamp()) == ({"a": "b", "c": "d"}, 5)
    assert builders.MessageBuilder().content("text").build().data() == b"text"
    with pytest.raises(TypeError):
        builders.MessageBuilder().content(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        builders.MessageBuilder().properties({"a": 1})  # type: ignore[dict-item]


def test_batches_are_not_parsed():
    batch = builders.MessageBatch().with_message_id(pulsarx.MessageId(1, 2, 3, 4))
    with pytest.raises(TypeError):
        batch.with_message_id("x")  # type: ignore[arg-type]
    with pytest.raises(errors.OperationNotSupported):
        batch.parse_from(b"", 0)
    assert batch.messages() == []
    with pytest.raises(TypeError):
        builders.Error()
    with pytest.raises(errors.OperationNotSupported):
        pulsarx.MessageId(1, 2, 3, 4).topic_name("t")


def test_authentication_is_made_by_create():
    basic = authentication.AuthenticationBasic
    made = [
        authentication.Authentication.create("token", "t"),
        authentication.AuthenticationTLS.create("c", "k"),
        authentication.AuthenticationToken.create(lambda: "t"),
        authentication.AuthenticationAthenz.create("{}"),
        authentication.AuthenticationOauth2.create("{}"),
        basic.create("u", "p", "m"),
        basic.create('{"username": "u", "password": "p"}'),
    ]
    assert all(isinstance(each, pulsarx.Authentication) for each in made)
    names = [each.getAuthMethodName() for each in made]
    assert names == ["custom", "tls", "token", "athenz", "oauth2", "m", "basic"]
    with pytest.raises(errors.OperationNotSupported):
        made[0].getAuthData(None)


# What holds a client, a producer, ... -------------------------------------------------------------


def test_messages_go_through_the_native_classes(client: handles.Client):
    configuration = consuming(
        consumer_type=ConsumerType.Shared,
        subscription_initial_position=InitialPosition.Earliest,
        batch_receive_policy=BatchReceivePolicy(2, -1, -1),
        key_shared_policy=builders.KeySharedPolicy(),
        dead_letter_policy=builders.DeadLetterPolicyBuilder().maxRedeliverCount(2).build(),
    )
    consumer = client.subscribe("t", "s", configuration.property("a", "b"))
    writing = configurations.ProducerConfiguration().compression_type(CompressionType.LZ4)
    producer = client.create_producer("t", writing.producer_name("p"))
    producer.send(builders.MessageBuilder().content(b"one").partition_key("k").build())
    told: list[Any] = []
    built = builders.MessageBuilder().set_null_value().property("a", "b").build()
    producer.send_async(built, lambda result, message_id: told.append((result, message_id)))
    producer.flush()
    first, second = consumer.batch_receive()
    assert (first.data(), first.partition_key(), first.length()) == (b"one", "k", 3)
    assert (second.has_null_value(), second.properties()) == (True, {"a": "b"})
    assert told == [(pulsarx.Result.Ok, second.message_id())]
    assert (producer.producer_name(), producer.last_sequence_id()) == ("p", 1)
    consumer.acknowledge(first)
    consumer.acknowledge(second.message_id())
    with pytest.raises(errors.Timeout):
        consumer.receive(1)
    assert (consumer.subscription_name(), consumer.is_connected()) == ("s", True)
    assert client.get_topic_partitions("t") == [consumer.topic()] == [producer.topic()]
    reader = client.create_reader(
        "t", pulsarx.MessageId.earliest, configurations.ReaderConfiguration().reader_name("r")
    )
    assert reader.has_message_available()
    assert reader.read_next().data() == reader.read_next(60_000).data() + b"one"
    reader.seek(first.message_id())
    for each in (reader, producer, consumer):
        each.close()
    assert not reader.is_connected()


def test_listeners_are_handed_the_native_consumer(client: handles.Client):
    from queue import SimpleQueue

    told: SimpleQueue[Any] = SimpleQueue()
    listening = consuming(message_listener=lambda *given: told.put(given))
    client.subscribe_pattern("orders-.*", "s", listening)
    reading = configurations.ReaderConfiguration().reader_listener(lambda *given: told.put(given))
    client.create_producer("orders-1", configurations.ProducerConfiguration()).send(
        builders.MessageBuilder().content(b"x").build()
    )
    consumer, message = told.get(timeout=30)
    assert isinstance(consumer, handles.Consumer) and message.data() == b"x"
    consumer.acknowledge(message)
    client.create_reader("orders-1", pulsarx.MessageId.earliest, reading)
    reader, message = told.get(timeout=30)
    assert isinstance(reader, handles.Reader) and message.data() == b"x"


def test_a_declared_schema_is_the_topics_and_payloads_stay_bytes(client: handles.Client):
    fields = [{"name": "a", "type": ["null", "long"]}]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    info = SchemaInfo(SchemaType.JSON, "R", text)
    producer = client.create_producer("t", configurations.ProducerConfiguration().schema(info))
    consumer = client.subscribe_topics(["t", "u"], "s", consuming())
    producer.send(builders.MessageBuilder().content(b'{"a": 1}').build())
    message = consumer.receive(60_000)
    assert (message.value(), message.int_schema_version()) == (b'{"a": 1}', 0)
    assert client.get_schema_info("t", 0).schema_type() == SchemaType.JSON


def test_a_message_without_a_schema_has_version_minus_one(client: handles.Client):
    consumer = client.subscribe("plain", "s", consuming())
    producer = client.create_producer("plain", configurations.ProducerConfiguration())
    producer.send(builders.MessageBuilder().build())
    assert consumer.receive(60_000).int_schema_version() == -1


def test_a_native_table_view_holds_payloads(client: handles.Client):
    producer = client.create_producer("t", configurations.ProducerConfiguration())
    producer.send(builders.MessageBuilder().content(b"v").partition_key("k").build())
    view = client.create_table_view("t", configurations.TableViewConfiguration())
    assert (view.get("k"), view.get("other"), view.size()) == ((True, b"v"), (False, b""), 1)
    told: dict[str, bytes] = {}
    view.for_each(told.__setitem__)
    view.for_each_and_listen(told.__setitem__)
    assert told == {"k": b"v"}
    view.close()


def test_calls_with_a_callback_are_refused_by_name(client: handles.Client):
    with pytest.raises(errors.OperationNotSupported) as raised:
        client.subscribe_async("t", "s", consuming(), print)
    told = f"{raised.value} {getattr(raised.value, 'detail', '')}"
    assert "_pulsar.Client.subscribe_async" in told


def test_a_native_client_is_made_by_service_discovery():
    primary = ServiceInfo("memory:primary")
    client = handles.Client.create_auto_cluster_failover(
        primary, [ServiceInfo("memory:b")], 1, 1, 1, configurations.ClientConfiguration()
    )
    assert client.get_service_info().service_url == "memory:primary"
    client.close()


@pytest.mark.parametrize("configuration", [None, {}, configurations.ReaderConfiguration()])
def test_another_configuration_is_a_type_error(client: handles.Client, configuration: Any):
    with pytest.raises(TypeError):
        client.create_producer("t", configuration)
