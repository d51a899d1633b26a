"""The schema of a producer: checked with its topic, registered, and stamped on what it sends. Calls
of the control plane, but for use_schema."""

from __future__ import annotations

from pulsarx.ground.owner import perform_for
from pulsarx.options.argument_check import check_type
from pulsarx.schema.schema import BytesSchema, Schema, declared_info

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from pulsarx.broker.schemas.registry import SchemaRegistry
    from pulsarx.ground.owner import MemberOwner
    from pulsarx.schema.schema import SchemaInfo
    from pulsarx.topic_name import TopicName

    class Encoder(Protocol):
        """A producer, with partitions or without."""

        owner: MemberOwner | None

        def encode_by(self, schema: Schema[Any], is_bytes: bool, version: bytes | None) -> None: ...
        def require_open(self) -> None: ...

    class Host(Protocol):
        """The owner of a catalogue and a registry: the broker, or what its topics share."""

        @property
        def catalogue(self) -> Any: ...
        @property
        def schemas(self) -> SchemaRegistry: ...


def check_producer(host: Host, topic: TopicName, info: SchemaInfo | None) -> None:
    """Refuse a producer before anything is made. IncompatibleSchema; ValueError: malformed."""
    # Where there is no schema at all, a producer of bytes does not load the registry.
    if (
        info is not None
        or not topic.persistent
        or (topic.partitioned_name in host.catalogue.state.schemas)
    ):
        host.schemas.check_producer(topic, info)


def give_schema(
    host: Host, topic: TopicName, producer: Encoder, schema: Schema[Any], info: SchemaInfo | None
) -> None:
    """Register the schema of a producer, and let it encode by it. As check_producer; what the open
    batch fails with, which goes out before."""
    check_producer(host, topic, info)
    version = None if info is None else host.schemas.register_producer(topic, info)
    is_bytes = type(schema) is BytesSchema
    producer.encode_by(schema, is_bytes, version_bytes(version))


def use_schema(producer: Encoder, host: Host, topic: TopicName, schema: Schema[Any]) -> None:
    """Give a producer another schema, for its `use_schema`. Any thread may call."""
    check_producer_schema(schema)
    info = declared_info(schema)
    producer.require_open()
    perform_for(producer.owner, give_schema, (host, topic, producer, schema, info))


def check_producer_schema(schema: object) -> None:
    """ValueError: it is no schema, or none to write with."""
    check_type(Schema, schema, "schema")
    if getattr(schema, "reads_any", False):
        raise ValueError(f"{type(schema).__name__} reads; a producer needs a schema")


def version_bytes(version: int | None) -> bytes | None:
    """Encode a version as the metadata of a message holds it."""
    return None if version is None else version.to_bytes(8, "big")
