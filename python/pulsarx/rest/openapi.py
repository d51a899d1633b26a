"""The description of the API, by OpenAPI, out of the table of routes."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.rest.route import Route

    Json = dict[str, Any]

_PLAIN = ("integer", "boolean", "string", "array", "object")
_REASON: Json = {"type": "object", "properties": {"reason": {"type": "string"}}}


def description(routes: Iterable[Route]) -> Json:
    paths: dict[str, Json] = {}
    for each in routes:
        paths.setdefault(each.path, {})[each.method.lower()] = _operation(each)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Pulsar's admin REST API, as PulsarX serves it",
            "version": "v2",
            "description": 'Errors have a body {"reason": ...}. What is below /pulsarx is not of '
            "Pulsar's API.",
        },
        "paths": paths,
        "components": {"schemas": {"Reason": _REASON}},
    }


def _operation(route: Route) -> Json:
    found: Json = {
        "tags": [route.group],
        "summary": route.summary,
        "operationId": _operation_id(route),
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in re.findall(r"\{(\w+)\}", route.path)
            ),
            *({"name": name, "in": "query", "schema": {"type": "string"}} for name in route.query),
        ],
        "responses": {
            "200": {"description": "What was asked for."} | _content(route),
            "204": {"description": "Done, or nothing is set."},
            "default": {
                "description": "It was refused, or failed.",
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/Reason"}}
                },
            },
        },
    }
    if route.body is not None:
        kind = route.body if route.body in _PLAIN else "object"
        schema = {"type": kind} if kind == route.body else {"type": kind, "title": route.body}
        found["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return found


def _content(route: Route) -> Json:
    """The media type of an answer, named unless it is JSON."""
    return {} if route.answer == "application/json" else {"content": {route.answer: {}}}


def _operation_id(route: Route) -> str:
    words = re.sub(r"\W+", " ", route.path.removeprefix("/admin/v2")).split()
    return "_".join([route.method.lower(), *words])
