"""Schemas of other clients over REST, which are stored as they are."""

from __future__ import annotations

import json

import pytest
from administered import Administered

SCHEMAS = "/schemas/public/default"
ONE = {"type": "record", "name": "One", "fields": [{"name": "a", "type": "string"}]}


def pair(**properties: str) -> dict[str, object]:
    types = {"key.schema.type": "STRING", "value.schema.type": "AVRO"}
    text = json.dumps({"key": "", "value": ONE})
    return {"type": "KEY_VALUE", "schema": text, "properties": {**types, **properties}}


@pytest.mark.parametrize(
    "kind",
    ["BOOLEAN", "DATE", "TIME", "TIMESTAMP", "INSTANT", "LOCAL_DATE", "LOCAL_TIME",
     "LOCAL_DATE_TIME"],
)  # fmt: skip
def test_types_that_are_not_read_here_are_kept(administered: Administered, kind: str) -> None:
    body = {"type": kind, "schema": "", "properties": {"a": "b"}}
    reply = administered.ask("POST", f"{SCHEMAS}/new/schema", body)
    assert (reply.status, reply.body) == (200, {"version": {"version": 0}})
    found = administered.get(f"{SCHEMAS}/new/schema")
    assert (found["type"], found["data"], found["properties"]) == (kind, "", {"a": "b"})
    body["type"] = "STRING"
    assert administered.ask("POST", f"{SCHEMAS}/new/schema", body).status == 409


def test_a_pair_comes_back_as_it_was_posted(administered: Administered) -> None:
    for name, how in (("inside", "INLINE"), ("outside", "SEPARATED")):
        body = pair(**{"kv.encoding.type": how})
        assert administered.ask("POST", f"{SCHEMAS}/{name}/schema", body).status == 200
        found = administered.get(f"{SCHEMAS}/{name}/schema")
        assert json.loads(found["data"]) == {"key": "", "value": ONE}
        assert found["properties"]["kv.encoding.type"] == how
        assert found["properties"]["value.schema.type"] == "AVRO"


@pytest.mark.parametrize(
    "body",
    [
        {**pair(), "properties": {}},
        {**pair(), "schema": "{"},
        {**pair(), "schema": "[]"},
        {**pair(), "schema": '{"key": ""}'},
        pair(**{"kv.encoding.type": "OUTSIDE"}),
    ],
)
def test_what_is_no_pair_is_refused(administered: Administered, body: dict[str, object]) -> None:
    reply = administered.ask("POST", f"{SCHEMAS}/new/schema", body)
    assert reply.status == 422
    assert administered.get("/persistent/public/default") == []
