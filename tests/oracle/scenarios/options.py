"""Scenarios: values that options may have, and what the objects say of themselves."""

from __future__ import annotations

from typing import Any

from world import PATIENCE_MS, World, scenario, text

PRODUCER_OPTIONS: dict[str, dict[str, Any]] = {
    "send_timeout_zero": {"send_timeout_millis": 0},
    "send_timeout_negative": {"send_timeout_millis": -1},
    "send_timeout_float": {"send_timeout_millis": 1.5},
    "initial_sequence_id_negative": {"initial_sequence_id": -5},
    "initial_sequence_id_zero": {"initial_sequence_id": 0},
    "across_partitions_zero": {"max_pending_messages_across_partitions": 0},
    "across_partitions_below_pending": {
        "max_pending_messages": 10, "max_pending_messages_across_partitions": 5,
    },
    "batch_delay_negative": {"batching_max_publish_delay_ms": -1},
    "batch_bytes_negative": {"batching_max_allowed_size_in_bytes": -1},
    "batch_messages_negative": {"batching_max_messages": -1},
    "chunking_int": {"chunking_enabled": 1},
    "chunking_without_batching": {"chunking_enabled": True, "batching_enabled": False},
    "chunking_lazy": {"chunking_enabled": True, "lazy_start_partitioned_producers": True},
    "properties_int_value": {"properties": {"a": 1}},
    "properties": {"properties": {"a": "1"}},
    "name_empty": {"producer_name": ""},
    "name_of_signs": {"producer_name": "ä / b"},
    "message_router_int": {"message_router": 5},
    "crypto_key_reader_int": {"crypto_key_reader": 5},
    "unknown": {"what_is_this": 5},
}  # fmt: skip


@scenario(each=PRODUCER_OPTIONS)
def of_a_producer(world: World, name: str) -> Any:
    client = world.client()
    return world.outcome(client.create_producer, world.topic(), **PRODUCER_OPTIONS[name])


CONSUMER_OPTIONS: dict[str, dict[str, Any]] = {
    "total_queue_zero": {"max_total_receiver_queue_size_across_partitions": 0},
    "total_queue_negative": {"max_total_receiver_queue_size_across_partitions": -1},
    "total_queue_text": {"max_total_receiver_queue_size_across_partitions": "1"},
    "ack_timeout_zero": {"unacked_messages_timeout_ms": 0},
    "ack_timeout_ten_seconds": {"unacked_messages_timeout_ms": 10_000},
    "ack_timeout_below": {"unacked_messages_timeout_ms": 9_999},
    "ack_timeout_negative": {"unacked_messages_timeout_ms": -1},
    "nack_delay_zero": {"negative_ack_redelivery_delay_ms": 0},
    "nack_delay_negative": {"negative_ack_redelivery_delay_ms": -1},
    "stats_text": {"broker_consumer_stats_cache_time_ms": "1"},
    "chunks_zero": {"max_pending_chunked_message": 0},
    "chunks_negative": {"max_pending_chunked_message": -1},
    "auto_ack_int": {"auto_ack_oldest_chunked_message_on_queue_full": 1},
    "discovery_text": {"pattern_auto_discovery_period": "1"},
    "discovery_zero": {"pattern_auto_discovery_period": 0},
    "regex_mode_int": {"regex_subscription_mode": 0},
    "properties_int_value": {"properties": {"a": 1}},
    "name_empty": {"consumer_name": ""},
    "replicated": {"replicate_subscription_state_enabled": True},
    "crypto_key_reader_int": {"crypto_key_reader": 5},
    "unknown": {"what_is_this": 5},
}


@scenario(each=CONSUMER_OPTIONS)
def of_a_consumer(world: World, name: str) -> Any:
    client = world.client()
    return world.outcome(client.subscribe, world.topic(), "s", **CONSUMER_OPTIONS[name])


READER_OPTIONS: dict[str, dict[str, Any]] = {
    "queue_text": {"receiver_queue_size": "1"},
    "queue_zero": {"receiver_queue_size": 0},
    "name_int": {"reader_name": 5},
    "role_prefix_int": {"subscription_role_prefix": 5},
    "role_prefix": {"subscription_role_prefix": "role"},
    "compacted_int": {"is_read_compacted": 1},
    "inclusive_int": {"start_message_id_inclusive": 1},
    "schema_text": {"schema": "json"},
    "listener_text": {"reader_listener": "f"},
    "crypto_action_int": {"crypto_failure_action": 1},
    "unknown": {"what_is_this": 5},
}


@scenario(each=READER_OPTIONS)
def of_a_reader(world: World, name: str) -> Any:
    client = world.client()
    earliest = world.pulsar.MessageId.earliest
    return world.outcome(client.create_reader, world.topic(), earliest, **READER_OPTIONS[name])


@scenario(each=["text", 5, None])
def a_start_of_another_type(world: World, start: Any) -> Any:
    return world.outcome(world.client().create_reader, world.topic(), start)


@scenario(each=["text", 5, None])
def a_topic_of_a_table_view(world: World, case: Any) -> Any:
    client = world.client()
    if case == "text":
        return world.outcome(client.create_table_view, world.topic(), subscription_name=5)
    return world.outcome(client.create_table_view, case)


RANGES: dict[str, Any] = {
    "none": [], "whole": [(0, 65535)], "overlapping": [(0, 10), (5, 20)], "backwards": [(10, 5)],
    "outside": [(0, 65536)], "negative": [(-1, 5)], "text": "0-5", "single": [5],
    "one_slot": [(7, 7)],
}  # fmt: skip


@scenario(each=RANGES)
def sticky_ranges(world: World, name: str) -> Any:
    module = world.pulsar
    return world.outcome(
        module.ConsumerKeySharedPolicy,
        key_shared_mode=module.KeySharedMode.Sticky,
        sticky_ranges=RANGES[name],
    )


@scenario(each=["mode_int", "order_int", "auto_with_ranges", "sticky_without"])
def a_key_shared_policy(world: World, case: str) -> Any:
    modes = world.pulsar.KeySharedMode
    given: dict[str, Any] = {
        "mode_int": {"key_shared_mode": 0},
        "order_int": {"allow_out_of_order_delivery": 1},
        "auto_with_ranges": {"key_shared_mode": modes.AutoSplit, "sticky_ranges": [(0, 5)]},
        "sticky_without": {"key_shared_mode": modes.Sticky},
    }
    return world.outcome(world.pulsar.ConsumerKeySharedPolicy, **given[case])


@scenario
def what_policies_say(world: World) -> Any:
    module = world.pulsar
    letters = module.ConsumerDeadLetterPolicy(3)
    named = module.ConsumerDeadLetterPolicy(3, "dead", "look")
    keys = module.ConsumerKeySharedPolicy()
    return [
        letters.max_redeliver_count, letters.dead_letter_topic,
        letters.initial_subscription_name, named.dead_letter_topic,
        named.initial_subscription_name, keys.key_shared_mode.name,
        keys.allow_out_of_order_delivery, keys.sticky_ranges,
    ]  # fmt: skip


@scenario(each=["topic_int", "subscription_int", "count_none"])
def a_bad_dead_letter_policy(world: World, case: str) -> Any:
    given: dict[str, Any] = {
        "topic_int": (1, 5), "subscription_int": (1, "dead", 5), "count_none": (None, "dead"),
    }  # fmt: skip
    return world.outcome(world.pulsar.ConsumerDeadLetterPolicy, *given[case])


@scenario(each=["1,2", "a,b,c,d", "1,2,3,text"])
def arguments_of_an_id(world: World, numbers: str) -> Any:
    given = [int(each) if each.isdigit() else each for each in numbers.split(",")]
    return world.outcome(world.pulsar.MessageId, *given)


@scenario(each=["0,0,0,0", "-1,5,6,-1", "3,1,2,0", "0,9223372036854775807,0,0"])
def ids_as_text_and_bytes(world: World, numbers: str) -> Any:
    made = world.pulsar.MessageId(*map(int, numbers.split(",")))
    kept = world.pulsar.MessageId.deserialize(made.serialize())
    return [str(made), made.serialize().hex(), str(kept)]


@scenario
def comparing_ids(world: World) -> Any:
    make = world.pulsar.MessageId
    pairs = [
        (make(0, 1, 2, 3), make(0, 1, 2, 4)), (make(0, 1, 2, -1), make(0, 1, 2, 0)),
        (make(0, 1, 2, 3), make(0, 2, 0, 0)), (make(0, 1, 2, 3), make(0, 1, 2, 3)),
    ]  # fmt: skip
    return [[one < two, one <= two, one > two, one >= two, one == two] for one, two in pairs]


@scenario
def what_a_message_says(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(world.topic(), producer_name=f"{world.prefix}-me")
    producer.send(b"x", properties={"a": "b"})
    message = consumer.receive(PATIENCE_MS)
    return [
        message.producer_name() == f"{world.prefix}-me", message.encryption_context(),
        text(message.value()), type(message.data()).__name__, type(message.properties()).__name__,
        type(message.publish_timestamp()).__name__,
    ]  # fmt: skip


@scenario(each=["receive", "batch_receive", "read_next"])
def timeouts_of_another_type(world: World, call: str) -> Any:
    client = world.client()
    if call == "read_next":
        reader = client.create_reader(world.topic(), world.pulsar.MessageId.earliest)
        return [world.outcome(reader.read_next, each) for each in ("1", 1.5)]
    consumer = world.subscribe(client)
    if call == "receive":
        return [world.outcome(consumer.receive, each) for each in ("1", 1.5, 0, -1)]
    return world.outcome(consumer.batch_receive, 1)
