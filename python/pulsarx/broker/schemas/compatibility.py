"""Which schema may follow which on a topic: the strategies, for every type of schema."""

from __future__ import annotations

import json
from functools import lru_cache
from hashlib import sha256

from pulsarx import errors
from pulsarx.broker.schemas.avro_definition import DEFINITION_SIZE_MAX, AvroDefinition
from pulsarx.broker.schemas.avro_resolution import why_unreadable
from pulsarx.enumerations import SchemaType
from pulsarx.schema.schema import SchemaInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_AVRO_TYPES = (SchemaType.AVRO, SchemaType.JSON, SchemaType.PROTOBUF)
_NEW_READS_OLD = ("BACKWARD", "BACKWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
_OLD_READS_NEW = ("FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
_NO_DEFINITION = ("", "null")
_ANY_DEFINITION = (SchemaType.STRING, SchemaType.NONE, SchemaType.EXTERNAL)
_KEPT_SIZE_MAX = 1 << 14
_CONSUMERS_LATEST = ("BACKWARD", "FORWARD", "FORWARD_TRANSITIVE", "FULL")


def is_transitive(strategy: str) -> bool:
    return strategy.endswith("_TRANSITIVE")


def consumer_strategy(strategy: str) -> tuple[str, bool]:
    """By which rule a consumer's schema is checked, and whether against all versions."""
    if strategy in _CONSUMERS_LATEST:
        return "BACKWARD", False
    return strategy, True


def identity_of(info: SchemaInfo) -> str:
    """The SHA-256 that two schemas of one type share when they are one. ValueError: the definition
    is malformed or too large."""
    kind, text = info.schema_type().name, info.schema()
    check = _checked if len(text) <= _KEPT_SIZE_MAX else _checked.__wrapped__
    return f"{kind} {check(kind, text)}"


def check_compatible(info: SchemaInfo, existing: list[SchemaInfo], strategy: str) -> None:
    """IncompatibleSchema: it may not follow these, and why."""
    if strategy == "ALWAYS_COMPATIBLE" or not existing:
        return
    for each in existing:
        why = _why_not(each, info, strategy)
        if why is not None:
            version = "" if each.version() is None else f" version {each.version()}"
            raise errors.IncompatibleSchema(
                detail=f"a schema of type {info.schema_type().name} after{version} "
                f"{each.schema_type().name}, strategy {strategy}: {why}"
            )


def _why_not(old: SchemaInfo, new: SchemaInfo, strategy: str) -> str | None:
    kind = new.schema_type()
    if old.schema_type() != kind:
        return "a topic keeps its type of schema"
    if strategy == "ALWAYS_INCOMPATIBLE":
        return "no schema may follow another"
    if kind in _AVRO_TYPES:
        return _why_not_avro(old, new, strategy)
    if kind == SchemaType.KEY_VALUE:
        for name, (old_part, new_part) in zip(("key", "value"), zip(_parts(old), _parts(new))):
            why = _why_not(old_part, new_part, strategy)
            if why is not None:
                return f"the {name}: {why}"
        return None
    if kind == SchemaType.PROTOBUF_NATIVE:
        before, after = _root(old.schema()), _root(new.schema())
        return None if before == after else f"the message {before} became {after}"
    return None


def _why_not_avro(old: SchemaInfo, new: SchemaInfo, strategy: str) -> str | None:
    before, after = _avro(old.schema()), _avro(new.schema())
    if strategy in _NEW_READS_OLD:
        why = why_unreadable(before, after)
        if why is not None:
            return f"it cannot read what was written before: {why}"
    if strategy in _OLD_READS_NEW:
        why = why_unreadable(after, before)
        if why is not None:
            return f"what is written with it cannot be read by the one before: {why}"
    return None


# Definitions are few, and each connection brings one again. Very large ones are not kept.


def _avro(text: str) -> AvroDefinition:
    return _kept(text) if len(text) <= _KEPT_SIZE_MAX else AvroDefinition(text)


@lru_cache(64)
def _kept(text: str) -> AvroDefinition:
    return AvroDefinition(text)


@lru_cache(256)
def _checked(type_name: str, text: str) -> str:
    """The part of a schema's identity that its definition gives."""
    kind = SchemaType.__members__[type_name]
    if len(text) > DEFINITION_SIZE_MAX:
        raise ValueError(
            f"a definition of {len(text)} characters; at most {DEFINITION_SIZE_MAX} are allowed"
        )
    if kind in _AVRO_TYPES:
        return _avro(text).identity
    if kind == SchemaType.KEY_VALUE:
        parts = _parts(SchemaInfo(kind, "", text))
        return sha256(" ".join(identity_of(each) for each in parts).encode()).hexdigest()
    if kind == SchemaType.PROTOBUF_NATIVE:
        _root(text)
    elif kind not in _ANY_DEFINITION and text not in _NO_DEFINITION:
        raise ValueError(f"a schema of type {type_name} has no definition, not {text!r:.100}")
    return sha256(text.encode()).hexdigest()


def _parts(info: SchemaInfo) -> tuple[SchemaInfo, SchemaInfo]:
    from pulsarx.schema.key_value import parts_of

    key, value = parts_of(info)
    for each in (key, value):
        if each.schema_type() == SchemaType.KEY_VALUE:
            raise ValueError("a KEY_VALUE schema inside a KEY_VALUE schema")
    return key, value


def _root(text: str) -> str:
    """The message that a definition of PROTOBUF_NATIVE is of."""
    try:
        document: Any = json.loads(text)
        root = document["rootMessageTypeName"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"no definition of PROTOBUF_NATIVE: {text:.200}") from error
    if not isinstance(root, str) or not isinstance(document.get("fileDescriptorSet"), str):
        raise ValueError(f"no definition of PROTOBUF_NATIVE: {text:.200}")
    return root
