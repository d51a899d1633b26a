"""All that is in a folder, as a document of JSON that later versions compare with: what its users
see, by public calls alone."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pulsarx
from pulsarx import ConsumerType, CryptoKeyReader, InitialPosition, MessageId, errors

SHOWN_MAX = 48  # bytes of a payload; of a longer one its digest
# By the name of the subscription; of the others Shared.
TYPES = {
    "exclusive": ConsumerType.Exclusive,
    "failover": ConsumerType.Failover,
    "key_shared": ConsumerType.KeyShared,
    "compacting": ConsumerType.Exclusive,
}


@contextmanager
def crypto_keys() -> Iterator[CryptoKeyReader]:
    """The keys of encrypted messages: a pair that the tests of encryption keep."""
    from cryptography.hazmat.primitives import serialization

    kept = Path(__file__).resolve().parent.parent / "api/encryption/official_entries.json"
    private = json.loads(kept.read_text())["private_key"].encode()
    public = serialization.load_pem_private_key(private, None).public_key()
    with TemporaryDirectory() as folder:
        paths = Path(folder) / "public", Path(folder) / "private"
        paths[0].write_bytes(
            public.public_bytes(
                serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )
        paths[1].write_bytes(private)
        yield CryptoKeyReader(str(paths[0]), str(paths[1]))


def shown(data: bytes) -> str:
    if len(data) > SHOWN_MAX:
        return f"{len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:16]}"
    return data.decode("latin-1")


def message_row(message: Any) -> dict[str, Any]:
    """What is known of a message, but what is as always."""
    schema = message.schema_version()
    row = {
        "id": str(message.message_id()),
        "data": shown(message.data()),
        "key": message.partition_key() if message.has_key() else "",
        "base64": message.has_base64_encoded_key(),
        "ordering_key": message.ordering_key() or "",
        "properties": message.properties(),
        "event": message.event_timestamp(),
        "published": message.publish_timestamp(),
        "stored": message.broker_publish_timestamp(),
        "index": message.index(),
        "producer": message.producer_name(),
        "sequence": message.sequence_id(),
        "schema": schema.hex() if isinstance(schema, bytes) else schema or "",
        "null": message.has_null_value(),
        "encrypted": message.encryption_context() is not None,
        "redelivered": message.redelivery_count(),
    }
    return {
        name: value
        for name, value in row.items()
        if name in ("id", "data", "sequence") or value not in ("", 0, False, {}, None)
    }


def read_all(receive: Any) -> list[Any]:
    """Messages until there is none. Damage is told at once: a golden folder has none."""
    found: list[Any] = []
    while True:
        try:
            found.append(receive(0))
        except errors.Timeout:
            return found


def rows(receive: Any) -> list[dict[str, Any]]:
    return [message_row(each) for each in read_all(receive)]


def read_topic(client: pulsarx.Client, topic: str, keys: Any, **options: Any) -> list[Any]:
    with client.create_reader(
        topic, MessageId.earliest, crypto_key_reader=keys, **options
    ) as reader:
        return rows(reader.read_next)


def contents(client: pulsarx.Client, keys: Any) -> dict[str, Any]:
    """What can be read, also beside an owner or of a folder that is read only."""
    admin = client.admin
    found: dict[str, Any] = {"tenants": {}, "namespaces": {}, "topics": {}}
    for tenant in sorted(admin.tenants.get_tenants()):
        info = admin.tenants.get_tenant_info(tenant)
        found["tenants"][tenant] = json.loads(json.dumps(info, default=vars))
        for namespace in sorted(admin.namespaces.get_namespaces(tenant)):
            found["namespaces"][namespace] = settings(admin.namespaces, namespace)
            for topic in sorted(admin.topics.get_list(namespace)):
                found["topics"][topic] = topic_contents(client, topic, keys)
            found["namespaces"][namespace]["partitioned"] = {
                topic: {
                    "partitions": admin.topics.get_partitioned_topic_metadata(topic),
                    **settings(admin.topics, topic),
                }
                for topic in sorted(admin.topics.get_partitioned_topic_list(namespace))
            }
    plain: dict[str, Any] = json.loads(json.dumps(found, default=vars))
    return plain


# Counts, and what is of no namespace and topic, or asks for more than its name.
_NOT_SETTINGS = {
    "get_namespaces", "get_topics", "get_list", "get_partitioned_topic_list",
    "get_partitioned_topic_metadata", "get_last_message_id", "get_backlog_size",
    "get_backlog_quota", "get_policies", "get_subscriptions", "get_message_id_by_index",
    "get_message_by_id", "get_delayed_messages", "get_subscription_properties",
}  # fmt: skip


def settings(group: Any, target: str) -> dict[str, Any]:
    """What is set for a namespace or topic, by the method that tells."""
    found = {}
    for name in sorted(each for each in dir(group) if each.startswith("get_")):
        if name not in _NOT_SETTINGS:
            try:
                answer = getattr(group, name)(target)
            except errors.OperationNotSupported:  # of a topic that keeps nothing
                continue
            if answer not in (None, {}, []):
                found[name.removeprefix("get_")] = answer
    return found


def topic_contents(client: pulsarx.Client, topic: str, keys: Any) -> dict[str, Any]:
    admin = client.admin
    found: dict[str, Any] = {"settings": settings(admin.topics, topic)}
    if topic.startswith("non-persistent://"):
        return found
    stats = admin.topics.stats(topic)
    found["messages"] = read_topic(client, topic, keys)
    found["schemas"] = [
        [each.version(), str(each.schema_type()), each.name(), each.schema(), each.properties()]
        for each in admin.schemas.get_all_schemas(topic)
    ]
    horizon = stats["compaction"]["horizon"]
    if horizon != (-1, -1):
        found["horizon"] = horizon
        found["compacted"] = read_topic(client, topic, keys, is_read_compacted=True)
    found["subscriptions"] = {
        name: {
            "backlog": each["msg_backlog"],
            "delayed": each.get("msg_delayed", 0),
        }
        for name, each in stats["subscriptions"].items()
    }
    return found


def deliveries(client: pulsarx.Client, known: dict[str, Any], keys: Any) -> dict[str, Any]:
    """What each subscription gets now, with how often it was redelivered before."""
    found: dict[str, Any] = {}
    for topic, each in known["topics"].items():
        for name in each.get("subscriptions", ()):
            with client.subscribe(
                topic,
                name,
                TYPES.get(name, ConsumerType.Shared),
                initial_position=InitialPosition.Earliest,
                crypto_key_reader=keys,
                batch_index_ack_enabled=True,
                is_read_compacted=name == "compacting",
            ) as consumer:
                found[f"{name} of {topic}"] = rows(consumer.receive)
    return found
