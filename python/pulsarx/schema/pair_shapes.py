"""Converts the schema of a key and value between its shapes: here its parts are documents in JSON;
elsewhere its definition is theirs alone, and properties say what types they have. Over HTTP that is
{"key": ..., "value": ...}."""

from __future__ import annotations

import json

from pulsarx.schema.key_value import KEY_ENCODING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Properties = dict[str, str]

PARTS = ("key", "value")
# What these functions raise where something is no pair.
FLAWS = (ValueError, LookupError, TypeError, RecursionError)


def pair_text(texts: dict[str, str], properties: Properties) -> str:
    """The definition of a pair in JSON, of those of its key and value; what it is made of leaves
    the properties. FLAWS: they do not say what types these have."""
    if properties.get(KEY_ENCODING, "INLINE") == "INLINE":
        properties.pop(KEY_ENCODING, None)
    elif properties[KEY_ENCODING] != "SEPARATED":
        raise ValueError(f"{KEY_ENCODING} is INLINE or SEPARATED, not {properties[KEY_ENCODING]!r}")
    documents = {}
    for part in PARTS:
        document: dict[str, Any] = {
            "type": properties.pop(f"{part}.schema.type"),
            "name": properties.pop(f"{part}.schema.name", ""),
            "schema": texts[part],
        }
        own = json.loads(properties.pop(f"{part}.schema.properties", "") or "{}")
        documents[part] = document | {"properties": own} if own else document
    return json.dumps(documents, indent=True)


def pair_parts(text: str, properties: Properties) -> tuple[dict[str, str], Properties]:
    """The reverse: the definitions of its key and value, and all properties."""
    texts, found = {}, dict(properties)
    documents = json.loads(text)
    for part in PARTS:
        document = documents[part]
        texts[part] = document["schema"]
        found[f"{part}.schema.name"] = document["name"]
        found[f"{part}.schema.type"] = document["type"]
        found[f"{part}.schema.properties"] = json.dumps(document.get("properties", {}))
    found.setdefault(KEY_ENCODING, "INLINE")
    return texts, found


def pair_of_http(text: str, properties: Properties) -> str:
    """Like pair_text, for a definition as Pulsar writes it over HTTP."""
    parts = json.loads(text)
    return pair_text({name: _definition(parts[name]) for name in PARTS}, properties)


def pair_for_http(text: str, properties: Properties) -> tuple[str, Properties]:
    """The reverse."""
    texts, found = pair_parts(text, properties)
    parts = {name: _part(definition) for name, definition in texts.items()}
    return json.dumps(parts, separators=(",", ":")), found


def _definition(part: Any) -> str:
    return part if isinstance(part, str) else json.dumps(part, separators=(",", ":"))


def _part(definition: str) -> Any:
    try:
        return json.loads(definition)
    except (ValueError, RecursionError):  # of text, which may be anything
        return definition
