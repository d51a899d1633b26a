"""Schemas of other clients over REST, which are stored as they are."""

from __future__ import annotations

import json

import pytest
from administered import Administered

from pulsarx import errors
from pulsarx.admin import Admin
from pulsarx.schema import (
    AvroSchema,
    BytesSchema,
    Integer,
    JsonSchema,
    KeyValueSchema,
    Record,
    SchemaInfo,
    SchemaType,
    String,
    StringSchema,
)

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


class Order(Record):
    name = String()
    count = Integer()


PAIRS = [
    KeyValueSchema(StringSchema(), StringSchema()).schema_info(),
    KeyValueSchema(BytesSchema(), AvroSchema(Order)).schema_info(),
    KeyValueSchema(JsonSchema(Order), StringSchema()).schema_info(),
]


@pytest.mark.parametrize("info", PAIRS)
@pytest.mark.parametrize("how", ["INLINE", "SEPARATED"])
def test_a_pair_is_administered_over_http_as_in_process(
    administered: Administered, info: SchemaInfo, how: str
) -> None:
    """Its shape over HTTP is another one, and posting it as it is was refused."""
    there, here = Admin.at(administered.url).schemas, administered.client.admin.schemas
    properties = {"a": "b"} | ({} if how == "INLINE" else {"kv.encoding.type": how})
    info = SchemaInfo(info.schema_type(), info.name(), info.schema(), properties)
    assert there.create_schema("t", info) == 0
    assert here.create_schema("t", info) == there.create_schema("t", info) == 0
    assert there.get_version_by_schema("t", info) == 0
    for found in (there.get_schema_info("t"), *there.get_all_schemas("t")):
        assert found.properties() == properties
        assert json.loads(found.schema()) == json.loads(here.get_schema_info("t").schema())
    assert there.test_compatibility("t", info)["compatibility"]


def test_a_pair_that_is_none_is_refused_by_the_server(administered: Administered) -> None:
    info = SchemaInfo(SchemaType.KEY_VALUE, "t", "{}", {})
    with pytest.raises(errors.NotAllowedError) as caught:
        Admin.at(administered.url).schemas.create_schema("t", info)
    assert "the schema of a KEY_VALUE is" in errors.detail_of(caught.value)
