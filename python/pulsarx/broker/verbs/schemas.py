"""Verbs about the schemas of topics."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.verbs.http import Http
from pulsarx.broker.verbs.verb import LOOKUP, PRODUCE, TENANT_ADMIN, verb
from pulsarx.topic_name import TopicName, check_is_not_of_the_system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.faces import OpenFolder
    from pulsarx.schema.schema import SchemaInfo

    Json = dict[str, Any]


@verb("schemas.create_schema", needs=PRODUCE,
    http=Http("POST", "/schemas/{topic}/schema", "Register a schema.",
        body="PostSchemaPayload", invalid=422))  # fmt: skip
def create(broker: Broker, topic: TopicName, schema: Json) -> dict[str, int]:
    """The version; that of the same schema when the topic has it already. A topic that is not there
    is created, where its namespace creates those that are used. IncompatibleSchema; TopicNotFound:
    it does not."""
    check_is_not_of_the_system(topic, "create a schema of")
    info, whole = _info(schema), topic.whole
    with broker.topics.taking_back():
        broker.lookup(whole)
        return {"version": broker.schemas.register(whole, info)}


@verb("schemas.get_schema_info", needs=LOOKUP, reads=True,
    http=Http("GET", "/schemas/{topic}/schema",
        "Get the last schema of a topic."))  # fmt: skip
def get(folder: OpenFolder, topic: TopicName, version: int) -> Json:
    """version -1: the last one. TopicNotFound: there is no such schema, or it is deleted."""
    name = _existing(folder, topic)
    found = folder.schemas.versions(name)
    for each in found[-1:] if version == -1 else found:
        if version in (-1, each.version()):
            return _document(folder, name, each)
    which = "no schema" if version == -1 else f"no version {version} of a schema"
    raise errors.TopicNotFound(detail=f"{name} has {which}")


@verb("schemas.get_all_schemas", needs=LOOKUP, reads=True,
    http=Http("GET", "/schemas/{topic}/schemas",
        "Get all versions of a schema."))  # fmt: skip
def get_all(folder: OpenFolder, topic: TopicName) -> list[Json]:
    name = _existing(folder, topic)
    return [_document(folder, name, each) for each in folder.schemas.versions(name)]


@verb("schemas.delete_schema", needs=TENANT_ADMIN,
    http=Http("DELETE", "/schemas/{topic}/schema",
        "Delete all versions of a schema."))  # fmt: skip
def delete(broker: Broker, topic: TopicName) -> None:
    broker.schemas.delete(_existing(broker, topic))


@verb("schemas.test_compatibility", needs=LOOKUP, reads=True,
    http=Http("POST", "/schemas/{topic}/compatibility",
        "Tell whether a schema may be the next one.", body="PostSchemaPayload",
        invalid=422))  # fmt: skip
def test_compatibility(folder: OpenFolder, topic: TopicName, schema: Json) -> Json:
    name = _existing(folder, topic)
    reason = ""
    try:
        folder.schemas.check(name, _info(schema))
    except errors.IncompatibleSchema as error:
        reason = errors.detail_of(error)
    return {
        "compatibility": not reason,
        "schema_compatibility_strategy": folder.schemas.strategy(name),
        "reason": reason,
    }


@verb("schemas.get_version_by_schema", needs=LOOKUP, reads=True,
    http=Http("POST", "/schemas/{topic}/version", "Get the version that a schema has.",
        body="PostSchemaPayload", invalid=422))  # fmt: skip
def get_version(folder: OpenFolder, topic: TopicName, schema: Json) -> dict[str, int]:
    """-1: the topic does not have it."""
    found = folder.schemas.version_of(_existing(folder, topic), _info(schema))
    return {"version": -1 if found is None else found}


def _existing(folder: OpenFolder, topic: TopicName) -> TopicName:
    """The topic, of a partition its topic. TopicNotFound."""
    folder.refresh()
    name = topic.whole
    if name.full not in folder.catalogue.state.topics and name.full not in folder.volatile:
        raise errors.missing_topic(name)
    return name


def _info(document: Json) -> SchemaInfo:
    from pulsarx.enumerations import SchemaType
    from pulsarx.schema.schema import SchemaInfo

    try:
        info = SchemaInfo.of_document(document)
    except (LookupError, TypeError) as error:
        raise ValueError(f"no description of a schema: {document!r:.200}") from error
    if int(info.schema_type()) < int(SchemaType.BYTES):
        raise ValueError(f"{info.schema_type().name} is no type of schema that a topic can have")
    if info.schema_type() == SchemaType.BYTES:  # as Pulsar's broker keeps it
        return SchemaInfo(SchemaType.NONE, info.name(), info.schema(), info.properties())
    return info


def _document(folder: OpenFolder, name: TopicName, info: SchemaInfo) -> Json:
    version = info.version()
    assert version is not None
    created_ms = folder.schemas.created_ms(name, version)
    return info.as_document() | {"version": version, "created_ms": created_ms}
