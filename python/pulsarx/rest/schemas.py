"""Routes of the schemas of topics."""

from __future__ import annotations

import json

from pulsarx.rest.call import Answer, Refusal
from pulsarx.rest.route import Route
from pulsarx.schema.pair_shapes import FLAWS, pair_for_http, pair_of_http

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.rest.call import Call

    Json = dict[str, Any]


def _topic(call: Call) -> str:
    return f"persistent://{call.namespace}/{call.part('topic')}"


def _shown(found: Json) -> Json:
    text, properties = found["schema"], found.get("properties", {})
    if found["type"] == "KEY_VALUE":
        text, properties = pair_for_http(text, properties)
    return {
        "version": found["version"],
        "type": found["type"],
        "timestamp": found["created_ms"],
        "data": text,
        "properties": properties,
    }


def _schema(call: Call) -> Json:
    """The schema that a body describes, as verbs take it."""
    found = call.json_object()
    kind, text = found.get("type"), found.get("schema", "")
    properties = found.get("properties") or {}
    if not isinstance(kind, str) or not isinstance(text, str) or not isinstance(properties, dict):
        raise Refusal(422, 'a schema is {"type": ..., "schema": ..., "properties": {...}}')
    properties = {str(name): str(value) for name, value in properties.items()}
    if kind == "KEY_VALUE":
        text = _pair(text, properties)
    return {
        "type": kind,
        "name": call.part("topic"),
        "schema": text,
        "properties": properties,
    }


def _pair(text: str, properties: dict[str, str]) -> str:
    """The definition of a pair as verbs take it. The types of its parts leave the properties."""
    try:
        return pair_of_http(text, properties)
    except FLAWS:
        raise Refusal(
            422,
            'the schema of a KEY_VALUE is {"key": ..., "value": ...}, and its properties '
            "key.schema.type and value.schema.type say what these are",
        ) from None


def _get(call: Call) -> Json:
    return _shown(call.perform("schemas.get_schema_info", topic=_topic(call), version=-1))


def _get_version(call: Call) -> Json:
    version = call.number("version")
    if version < 0:
        raise Refusal(404, "Schema not found")
    return _shown(call.perform("schemas.get_schema_info", topic=_topic(call), version=version))


def _get_all(call: Call) -> Json:
    found = call.perform("schemas.get_all_schemas", topic=_topic(call))
    return {"getSchemaResponses": [_shown(each) for each in found]}


def _delete(call: Call) -> Json:
    found = call.perform("schemas.get_all_schemas", topic=_topic(call))
    call.perform("schemas.delete_schema", topic=_topic(call))
    return {"version": found[-1]["version"] + 1 if found else -1}


def _post(call: Call) -> Json:
    found = call.perform("schemas.create_schema", topic=_topic(call), schema=_schema(call))
    return {"version": {"version": found["version"]}}


def _compatibility(call: Call) -> Answer:
    verb = "schemas.test_compatibility"
    found = call.perform(verb, topic=_topic(call), schema=_schema(call))
    told = {
        "compatibility": found["compatibility"],
        "schemaCompatibilityStrategy": found["schema_compatibility_strategy"],
    }
    return Answer(json.dumps(told).encode(), status=202)


def _version(call: Call) -> Json:
    verb = "schemas.get_version_by_schema"
    return {"version": call.perform(verb, topic=_topic(call), schema=_schema(call))["version"]}


OWN: dict[str, Callable[[Call], Any]] = {
    "schemas.create_schema": _post,
    "schemas.get_schema_info": _get,
    "schemas.get_all_schemas": _get_all,
    "schemas.delete_schema": _delete,
    "schemas.test_compatibility": _compatibility,
    "schemas.get_version_by_schema": _version,
}
ROUTES = [
    Route(
        "GET",
        "/admin/v2/schemas/{tenant}/{namespace}/{topic}/schema/{version}",
        _get_version,
        "Get a version of a schema.",
    ),
]
