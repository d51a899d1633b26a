"""The commands of Pulsar's binary protocol that a connection understands, as one table.

A command is a BaseCommand: field 1 says which, and the field of that number holds it. From 1000 on
are our own, which Pulsar has nothing for. A client sends them to a broker of ours only.
Source: PulsarApi.proto.
"""

from __future__ import annotations

from pulsarx.wire.protobuf import Field, Kind, Schema, WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LINK_NEWS = 32  # kind of a link frame: there may be messages; 1: the topic is not used any more
PROTOCOL_VERSION = 20  # batch index acknowledgements, ids of several entries, epochs
FROM_BROKER = (1 << 64) - 1  # the request id of a command that answers no request

INDIVIDUAL, CUMULATIVE = 0, 1
EXCLUSIVE, SHARED, FAILOVER, KEY_SHARED = 0, 1, 2, 3
LATEST, EARLIEST = 0, 1
AUTO_SPLIT, STICKY = 0, 1
CONNECT_HERE, LOOKUP_FAILED = 1, 2  # answers to a LOOKUP
PERSISTENT, NON_PERSISTENT, ALL = 0, 1, 2  # topics of a namespace
COMMIT, ABORT = 0, 1

_U64, _U32, _I64, _I32 = Kind.UINT64, Kind.UINT32, Kind.INT64, Kind.INT32
_BOOL, _TEXT, _BYTES = Kind.BOOL, Kind.STRING, Kind.BYTES


def _must(number: int, kind: Kind | Schema) -> Field:
    return Field(number, kind, required=True)


def _may(number: int, kind: Kind | Schema, default: Any = None) -> Field:
    return Field(number, kind, default=default)


def _many(number: int, kind: Kind | Schema) -> Field:
    return Field(number, kind, repeated=True)


MESSAGE_ID = Schema(
    "MessageIdData",
    ledger_id=_must(1, _U64),
    entry_id=_must(2, _U64),
    partition=_may(3, _I32, -1),
    batch_index=_may(4, _I32, -1),
    ack_set=_many(5, _I64),
    batch_size=_may(6, _I32, 0),
)
KEY_VALUE = Schema("KeyValue", key=_must(1, _TEXT), value=_must(2, _TEXT))
INT_RANGE = Schema("IntRange", start=_must(1, _I32), end=_must(2, _I32))
KEY_SHARED_META = Schema(
    "KeySharedMeta",
    mode=_must(1, _I32),
    ranges=_many(3, INT_RANGE),
    allow_out_of_order=_may(4, _BOOL, False),
)
SCHEMA = Schema(
    "Schema",
    name=_must(1, _TEXT),
    data=_must(3, _BYTES),
    type=_must(4, _I32),
    properties=_many(5, KEY_VALUE),
)
FEATURES = Schema(
    "FeatureFlags",
    supports_auth_refresh=_may(1, _BOOL, False),
    supports_broker_entry_metadata=_may(2, _BOOL, False),
    supports_topic_watchers=_may(4, _BOOL, False),
    supports_partitions_without_auto_creation=_may(5, _BOOL, False),
)
AUTH_DATA = Schema("AuthData", method=_may(1, _TEXT), data=_may(2, _BYTES))
SUBSCRIPTION = Schema("Subscription", topic=_must(1, _TEXT), subscription=_must(2, _TEXT))
_REQUEST = _must(1, _U64)
_TRANSACTION = {"least": _may(2, _U64), "most": _may(3, _U64)}
_FAILURE = {"error": _may(4, _I32), "message": _may(5, _TEXT)}
_TRANSACTION_RESPONSE = {"request_id": _REQUEST, **_TRANSACTION, **_FAILURE}

COMMANDS: dict[str, tuple[int, Schema]] = {
    name: (number, Schema(name, **fields))
    for name, (number, fields) in {
        "CONNECT": (
            2,
            {
                "client_version": _must(1, _TEXT),
                "auth_data": _may(3, _BYTES),
                "protocol_version": _may(4, _I32, 0),
                "auth_method_name": _may(5, _TEXT),
                "original_principal": _may(7, _TEXT),
                "feature_flags": _may(10, FEATURES),
            },
        ),
        "CONNECTED": (
            3,
            {
                "server_version": _must(1, _TEXT),
                "protocol_version": _may(2, _I32, 0),
                "max_message_size": _may(3, _I32),
                "feature_flags": _may(4, FEATURES),
            },
        ),
        "SUBSCRIBE": (
            4,
            {
                "topic": _must(1, _TEXT),
                "subscription": _must(2, _TEXT),
                "type": _must(3, _I32),
                "consumer_id": _must(4, _U64),
                "request_id": _must(5, _U64),
                "consumer_name": _may(6, _TEXT),
                "priority_level": _may(7, _I32, 0),
                "durable": _may(8, _BOOL, True),
                "start_message_id": _may(9, MESSAGE_ID),
                "metadata": _many(10, KEY_VALUE),
                "read_compacted": _may(11, _BOOL, False),
                "schema": _may(12, SCHEMA),
                "initial_position": _may(13, _I32, LATEST),
                "force_topic_creation": _may(15, _BOOL, True),
                "key_shared_meta": _may(17, KEY_SHARED_META),
                "subscription_properties": _many(18, KEY_VALUE),
                "consumer_epoch": _may(19, _U64, 0),
                # Of a guest's reader of a topic that keeps nothing; not Pulsar's.
                "is_reader": _may(1000, _BOOL, False),
            },
        ),
        "PRODUCER": (
            5,
            {
                "topic": _must(1, _TEXT),
                "producer_id": _must(2, _U64),
                "request_id": _must(3, _U64),
                "producer_name": _may(4, _TEXT),
                "metadata": _many(6, KEY_VALUE),
                "schema": _may(7, SCHEMA),
                "epoch": _may(8, _U64, 0),
                "user_provided_name": _may(9, _BOOL, True),
                "access_mode": _may(10, _I32, 0),
                "topic_epoch": _may(11, _U64),
                "transactional": _may(12, _BOOL, False),
                "initial_subscription": _may(13, _TEXT),
                # Of a guest's: the last id it published with the owner before; not Pulsar's.
                "published_sequence_id": _may(1000, _I64, -1),
            },
        ),
        "SEND": (
            6,
            {
                "producer_id": _must(1, _U64),
                "sequence_id": _must(2, _U64),
                "num_messages": _may(3, _I32, 1),
                "transaction_least": _may(4, _U64),
                "transaction_most": _may(5, _U64),
            },
        ),
        "SEND_RECEIPT": (
            7,
            {
                "producer_id": _must(1, _U64),
                "sequence_id": _must(2, _U64),
                "message_id": _may(3, MESSAGE_ID),
            },
        ),
        "SEND_ERROR": (
            8,
            {
                "producer_id": _must(1, _U64),
                "sequence_id": _must(2, _U64),
                "error": _must(3, _I32),
                "message": _must(4, _TEXT),
            },
        ),
        "MESSAGE": (
            9,
            {
                "consumer_id": _must(1, _U64),
                "message_id": _must(2, MESSAGE_ID),
                "redelivery_count": _may(3, _U32, 0),
                "ack_set": _many(4, _I64),
                "consumer_epoch": _may(5, _U64, 0),
            },
        ),
        "ACK": (
            10,
            {
                "consumer_id": _must(1, _U64),
                "ack_type": _must(2, _I32),
                "message_ids": _many(3, MESSAGE_ID),
                "validation_error": _may(4, _I32),
                "transaction_least": _may(6, _U64),
                "transaction_most": _may(7, _U64),
                "request_id": _may(8, _U64),
            },
        ),
        "FLOW": (11, {"consumer_id": _must(1, _U64), "permits": _must(2, _U32)}),
        "UNSUBSCRIBE": (12, {"consumer_id": _must(1, _U64), "request_id": _must(2, _U64)}),
        "SUCCESS": (13, {"request_id": _REQUEST}),
        "ERROR": (
            14,
            {"request_id": _REQUEST, "error": _must(2, _I32), "message": _must(3, _TEXT)},
        ),
        "CLOSE_PRODUCER": (
            15,
            {
                "producer_id": _must(1, _U64),
                "request_id": _must(2, _U64),
                # To a guest: nothing is taken of its producer any more, and it is not to come
                # again; not Pulsar's.
                "fenced_as": _may(1000, _I32),
                "fenced_by": _may(1001, _TEXT),
            },
        ),
        "CLOSE_CONSUMER": (
            16,
            {
                "consumer_id": _must(1, _U64),
                "request_id": _must(2, _U64),
                "service_url": _may(3, _TEXT),
                "service_url_tls": _may(4, _TEXT),
            },
        ),
        "PRODUCER_SUCCESS": (
            17,
            {
                "request_id": _REQUEST,
                "producer_name": _must(2, _TEXT),
                "last_sequence_id": _may(3, _I64, -1),
                "schema_version": _may(4, _BYTES),
                "topic_epoch": _may(5, _U64),
                "producer_ready": _may(6, _BOOL, True),
            },
        ),
        "AUTH_CHALLENGE": (
            36,
            {
                "server_version": _may(1, _TEXT),
                "challenge": _may(2, AUTH_DATA),
                "protocol_version": _may(3, _I32, 0),
            },
        ),
        "AUTH_RESPONSE": (
            37,
            {
                "client_version": _may(1, _TEXT),
                "response": _may(2, AUTH_DATA),
                "protocol_version": _may(3, _I32, 0),
            },
        ),
        "PING": (18, {}),
        "PONG": (19, {}),
        "REDELIVER_UNACKNOWLEDGED": (
            20,
            {
                "consumer_id": _must(1, _U64),
                "message_ids": _many(2, MESSAGE_ID),
                "consumer_epoch": _may(3, _U64, 0),
            },
        ),
        "PARTITIONED_METADATA": (
            21,
            {
                "topic": _must(1, _TEXT),
                "request_id": _must(2, _U64),
                "auto_creation_enabled": _may(6, _BOOL, True),
            },
        ),
        "PARTITIONED_METADATA_RESPONSE": (
            22,
            {
                "partitions": _may(1, _U32, 0),
                "request_id": _must(2, _U64),
                "response": _may(3, _I32, 0),
                "error": _may(4, _I32),
                "message": _may(5, _TEXT),
                # To a guest: the topic was made for this question; not Pulsar's.
                "created": _may(1000, _BOOL, False),
            },
        ),
        "LOOKUP": (
            23,
            {"topic": _must(1, _TEXT), "request_id": _must(2, _U64), "listener": _may(7, _TEXT)},
        ),
        "LOOKUP_RESPONSE": (
            24,
            {
                "service_url": _may(1, _TEXT),
                "service_url_tls": _may(2, _TEXT),
                "response": _may(3, _I32),
                "request_id": _must(4, _U64),
                "authoritative": _may(5, _BOOL, False),
                "error": _may(6, _I32),
                "message": _may(7, _TEXT),
            },
        ),
        "CONSUMER_STATS": (25, {"request_id": _REQUEST, "consumer_id": _must(4, _U64)}),
        "CONSUMER_STATS_RESPONSE": (
            26,
            {
                "request_id": _REQUEST,
                "error": _may(2, _I32),
                "message": _may(3, _TEXT),
                "consumer_name": _may(7, _TEXT),
                "available_permits": _may(8, _U64),
                "unacked_messages": _may(9, _U64),
                "blocked": _may(10, _BOOL),
                "type": _may(13, _TEXT),
                "backlog": _may(15, _U64),
            },
        ),
        "REACHED_END_OF_TOPIC": (27, {"consumer_id": _must(1, _U64)}),
        "SEEK": (
            28,
            {
                "consumer_id": _must(1, _U64),
                "request_id": _must(2, _U64),
                "message_id": _may(3, MESSAGE_ID),
                "publish_time": _may(4, _U64),
            },
        ),
        "GET_LAST_MESSAGE_ID": (29, {"consumer_id": _must(1, _U64), "request_id": _must(2, _U64)}),
        "GET_LAST_MESSAGE_ID_RESPONSE": (
            30,
            {
                "message_id": _must(1, MESSAGE_ID),
                "request_id": _must(2, _U64),
                "mark_delete": _may(3, MESSAGE_ID),
            },
        ),
        "ACTIVE_CONSUMER_CHANGE": (
            31,
            {"consumer_id": _must(1, _U64), "is_active": _may(2, _BOOL, False)},
        ),
        "GET_TOPICS_OF_NAMESPACE": (
            32,
            {
                "request_id": _REQUEST,
                "namespace": _must(2, _TEXT),
                "mode": _may(3, _I32, PERSISTENT),
                "topics_pattern": _may(4, _TEXT),
                "topics_hash": _may(5, _TEXT),
            },
        ),
        "GET_TOPICS_OF_NAMESPACE_RESPONSE": (
            33,
            {
                "request_id": _REQUEST,
                "topics": _many(2, _TEXT),
                "filtered": _may(3, _BOOL, False),
                "topics_hash": _may(4, _TEXT),
                "changed": _may(5, _BOOL, True),
            },
        ),
        "GET_SCHEMA": (
            34,
            {"request_id": _REQUEST, "topic": _must(2, _TEXT), "schema_version": _may(3, _BYTES)},
        ),
        "GET_SCHEMA_RESPONSE": (
            35,
            {
                "request_id": _REQUEST,
                "error": _may(2, _I32),
                "message": _may(3, _TEXT),
                "schema": _may(4, SCHEMA),
                "schema_version": _may(5, _BYTES),
            },
        ),
        "ACK_RESPONSE": (
            38,
            {
                "consumer_id": _must(1, _U64),
                "error": _may(4, _I32),
                "message": _may(5, _TEXT),
                "request_id": _may(6, _U64),
            },
        ),
        "GET_OR_CREATE_SCHEMA": (
            39,
            {"request_id": _REQUEST, "topic": _must(2, _TEXT), "schema": _must(3, SCHEMA)},
        ),
        "GET_OR_CREATE_SCHEMA_RESPONSE": (
            40,
            {
                "request_id": _REQUEST,
                "error": _may(2, _I32),
                "message": _may(3, _TEXT),
                "schema_version": _may(4, _BYTES),
            },
        ),
        # Of transactions. The timeout is in milliseconds, whatever its name is in PulsarApi.proto.
        "NEW_TXN": (
            50,
            {
                "request_id": _REQUEST,
                "timeout_ms": _may(2, _U64, 0),
                "coordinator": _may(3, _U64, 0),
            },
        ),
        "NEW_TXN_RESPONSE": (51, _TRANSACTION_RESPONSE),
        "ADD_PARTITION_TO_TXN": (
            52,
            {"request_id": _REQUEST, **_TRANSACTION, "partitions": _many(4, _TEXT)},
        ),
        "ADD_PARTITION_TO_TXN_RESPONSE": (53, _TRANSACTION_RESPONSE),
        "ADD_SUBSCRIPTION_TO_TXN": (
            54,
            {"request_id": _REQUEST, **_TRANSACTION, "subscriptions": _many(4, SUBSCRIPTION)},
        ),
        "ADD_SUBSCRIPTION_TO_TXN_RESPONSE": (55, _TRANSACTION_RESPONSE),
        "END_TXN": (56, {"request_id": _REQUEST, **_TRANSACTION, "action": _may(4, _I32)}),
        "END_TXN_RESPONSE": (57, _TRANSACTION_RESPONSE),
        # Between brokers of a cluster.
        "END_TXN_ON_PARTITION": (58, {"request_id": _REQUEST, **_TRANSACTION}),
        "END_TXN_ON_PARTITION_RESPONSE": (59, _TRANSACTION_RESPONSE),
        "END_TXN_ON_SUBSCRIPTION": (60, {"request_id": _REQUEST, **_TRANSACTION}),
        "END_TXN_ON_SUBSCRIPTION_RESPONSE": (61, _TRANSACTION_RESPONSE),
        "TC_CLIENT_CONNECT_REQUEST": (62, {"request_id": _REQUEST, "coordinator": _must(2, _U64)}),
        "TC_CLIENT_CONNECT_RESPONSE": (
            63,
            {"request_id": _REQUEST, "error": _may(2, _I32), "message": _may(3, _TEXT)},
        ),
        "WATCH_TOPIC_LIST": (
            64,
            {
                "request_id": _REQUEST,
                "watcher_id": _must(2, _U64),
                "namespace": _must(3, _TEXT),
                "topics_pattern": _must(4, _TEXT),
                "topics_hash": _may(5, _TEXT),
            },
        ),
        "WATCH_TOPIC_LIST_SUCCESS": (
            65,
            {
                "request_id": _REQUEST,
                "watcher_id": _must(2, _U64),
                "topics": _many(3, _TEXT),
                "topics_hash": _must(4, _TEXT),
            },
        ),
        "WATCH_TOPIC_UPDATE": (
            66,
            {
                "watcher_id": _must(1, _U64),
                "new_topics": _many(2, _TEXT),
                "deleted_topics": _many(3, _TEXT),
                "topics_hash": _must(4, _TEXT),
            },
        ),
        "WATCH_TOPIC_LIST_CLOSE": (67, {"request_id": _REQUEST, "watcher_id": _must(2, _U64)}),
        # Our own: a verb of broker.verbs.table; arguments and answer are JSON, as on the control
        # socket.
        "VERB": (
            1000,
            {"request_id": _REQUEST, "verb": _must(2, _TEXT), "arguments": _must(3, _TEXT)},
        ),
        "VERB_RESPONSE": (
            1001,
            {
                "request_id": _REQUEST,
                "result": _may(2, _TEXT),
                "error": _may(3, _TEXT),
                "message": _may(4, _TEXT),
                "attributes": _may(5, _TEXT),
            },
        ),
    }.items()
}
WITH_ENTRY = frozenset({"SEND", "MESSAGE"})

_BASE = Schema(
    "BaseCommand",
    type=_must(1, _I32),
    **{name: Field(number, Kind.BYTES) for name, (number, _) in COMMANDS.items()},
)
_NAMES = {number: name for name, (number, _) in COMMANDS.items()}


def command_encode(name: str, values: dict[str, Any]) -> bytes:
    """ValueError: a field that does not belong to the command, is missing or does not fit."""
    number, schema = COMMANDS[name]
    return _BASE.encode({"type": number, name: schema.encode(values)})


def command_decode(data: bytes) -> tuple[str, dict[str, Any]]:
    """The name of the command and all its fields. WireError: it is none."""
    base = _BASE.decode(data)
    name = _NAMES.get(base["type"])
    if name is None:
        raise WireError(f"command type {base['type']} is not known")
    if base[name] is None:
        raise WireError(f"a command of type {name} without its {name}")
    return name, COMMANDS[name][1].decode(base[name])
