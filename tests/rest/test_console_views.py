"""Health, policies, schemas, publishing, and the newest messages, as the page asks for them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from administered import Administered, Reply
from signing import SECRET_TEXT, token

import pulsarx
from pulsarx import ConsumerType
from pulsarx.access import AccessSettings
from pulsarx.clock import ManualClock
from pulsarx.schema import (
    AvroSchema,
    Double,
    Int32Schema,
    Int64Schema,
    JsonSchema,
    Long,
    Record,
    SchemaInfo,
    SchemaType,
    String,
    StringSchema,
)

ORDERS = "persistent://public/default/orders"
Open = Callable[..., Administered]


def get(administered: Administered, name: str, **query: object) -> Any:
    reply = administered.ask("GET", f"//console/{name}?{urlencode(query)}")
    assert reply.status == 200, reply
    return reply.body


def post(administered: Administered, name_: str, role: str = "", **body: object) -> Reply:
    headers = {"Authorization": f"Bearer {token(role)}"} if role else None
    return administered.ask("POST", f"//console/{name_}", body, headers=headers)


def send(administered: Administered, count: int, topic: str = "orders", **more: Any) -> None:
    producer = administered.client.create_producer(topic, **more)
    for number in range(count):
        producer.send(b"message %d" % number)
    producer.close()


# The newest messages ------------------------------------------------------------------------------


def numbers(page: Any) -> list[int]:
    found = [base64.b64decode(each["data"]).decode() for each in page["messages"]]
    return [int(each.removeprefix("message ")) for each in found]


def backwards(administered: Administered, **query: object) -> list[list[int]]:
    """The pages from the newest message on."""
    pages, begin = [], "newest"
    while begin:
        page = get(administered, "messages", topic="orders", **{**query, "from": begin})
        pages.append(numbers(page))
        begin = page["next"] and "before:" + "+".join(map(str, page["next"]))
    return pages


def test_pages_begin_with_the_newest_message(administered: Administered):
    send(administered, 7)
    assert backwards(administered, count=3) == [[6, 5, 4], [3, 2, 1], [0]]


def test_pages_go_back_over_ledgers(administered: Administered):
    administered.client.subscribe("orders", "s").close()
    for begin in range(0, 9, 3):
        producer = administered.client.create_producer("orders")
        for number in range(begin, begin + 3):
            producer.send(b"message %d" % number)
        producer.close()
        administered.client.admin.topics.unload("orders")
    assert backwards(administered, count=4) == [[8, 7, 6, 5], [4, 3, 2, 1], [0]]
    assert backwards(administered, count=200) == [[8, 7, 6, 5, 4, 3, 2, 1, 0]]


def test_what_comes_meanwhile_moves_no_page(administered: Administered):
    """A page so many messages from the end is another one with every message that comes."""
    send(administered, 6)
    page = get(administered, "messages", topic="orders", count=3, **{"from": "newest"})
    send(administered, 2)
    place = "before:" + "+".join(map(str, page["next"]))
    older = get(administered, "messages", topic="orders", count=3, **{"from": place})
    assert (numbers(page), numbers(older)) == ([5, 4, 3], [2, 1, 0])


def test_messages_behind_a_page_are_found_by_its_end(administered: Administered):
    administered.client.subscribe("orders", "s").close()
    send(administered, 2)
    page = get(administered, "messages", topic="orders", **{"from": "newest"})
    assert numbers(page) == [1, 0]
    for _ in range(2):  # in this ledger, and in the next one
        behind = "+".join(map(str, page["behind"]))
        assert numbers(get(administered, "messages", topic="orders", **{"from": behind})) == []
        send(administered, 3)
        page = get(administered, "messages", topic="orders", **{"from": behind})
        assert (numbers(page), page["next"]) == ([0, 1, 2], None)
        administered.client.admin.topics.unload("orders")


def test_an_empty_topic_has_no_newest_message(administered: Administered):
    administered.client.subscribe("orders", "s").close()
    page = get(administered, "messages", topic="orders", **{"from": "newest"})
    assert (page["messages"], page["next"]) == ([], None)


def test_the_newest_messages_are_searched_backwards(administered: Administered):
    send(administered, 1200)
    found = backwards(administered, count=4, text="message 11")
    assert [each for page in found for each in page] == [
        *range(1199, 1099, -1),
        *range(119, 109, -1),
        11,
    ]


def test_the_newest_messages_that_a_subscription_has_not_acknowledged(administered: Administered):
    consumer = administered.client.subscribe("orders", "billing", ConsumerType.Shared)
    send(administered, 6)
    received = [consumer.receive() for _ in range(6)]
    for each in (received[0], received[1], received[4]):
        consumer.acknowledge(each)
    found = backwards(administered, count=2, subscription="billing")
    assert [each for page in found for each in page] == [5, 3, 2]


def test_messages_in_chunks_are_one_each_backwards(administered: Administered):
    producer = administered.client.create_producer(
        "orders", chunking_enabled=True, batching_enabled=False
    )
    for number in range(3):
        producer.send(b"message %d" % number)
        producer.send(b"x" * (12 << 20))
    sizes = []
    for count in (1, 2, 5):
        begin, found = "newest", []
        while begin:
            page = get(administered, "messages", topic="orders", count=count, **{"from": begin})
            found += [each["size"] for each in page["messages"]]
            begin = page["next"] and "before:" + "+".join(map(str, page["next"]))
        sizes.append(found)
    assert sizes == [[12 << 20, 9] * 3] * 3


def test_a_page_backwards_reads_so_many_bytes_at_most(administered: Administered):
    """One of 200 large messages would read gigabytes, and hold up whoever else asks."""
    producer = administered.client.create_producer("orders")
    for _ in range(30):
        producer.send(b"x" * (4 << 20))
    page = get(administered, "messages", topic="orders", count=200, **{"from": "newest"})
    assert page["next"] is not None and 8 <= len(page["messages"]) <= 16
    place = "before:" + "+".join(map(str, page["next"]))
    older = get(administered, "messages", topic="orders", count=200, **{"from": place})
    ids = [each["message_id"] for each in (*page["messages"], *older["messages"])]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("begin", ["before:x", "before:1:2", "before:latest", "before:-1+0"])
def test_a_place_that_is_none_is_refused(administered: Administered, begin: str):
    send(administered, 1)
    query = urlencode({"topic": "orders", "from": begin})
    assert administered.ask("GET", f"//console/messages?{query}").status == 412


# Health -------------------------------------------------------------------------------------------


def test_the_health_of_a_folder_is_told(open_administered: Open, tmp_path: Path):
    clock = ManualClock()
    administered = open_administered(clock, folder=tmp_path / "events")
    client = administered.client
    for number in range(12):
        client.create_producer(f"t{number:02}").send(b"x" * 1000 * (number + 1))
    client.subscribe("t03", "first", initial_position=pulsarx.InitialPosition.Earliest).close()
    clock.advance(100)
    send(administered, 1, "t05")
    client.subscribe("t05", "second", initial_position=pulsarx.InitialPosition.Earliest).close()
    clock.advance(20)
    found = get(administered, "health", now="true")
    assert found["version"] == pulsarx.__version__
    assert found["topics"] == 12 and found["warnings"] == [] and found["flaws"] == []
    assert 0 < found["disk"]["free"] <= found["disk"]["total"]
    names = [each["topic"].rpartition("/")[2] for each in found["largest"]]
    assert names == [f"t{number:02}" for number in range(11, 1, -1)]
    oldest = found["oldest"]
    assert (oldest["topic"].rpartition("/")[2], oldest["subscription"]) == ("t03", "first")
    assert (oldest["age"], oldest["backlog"]) == (120, 1)


def test_a_folder_in_memory_has_no_device(administered: Administered):
    found = get(administered, "health")
    assert (found["disk"], found["oldest"], found["largest"]) == (None, None, [])


def test_a_damaged_topic_is_a_warning(open_administered: Open, tmp_path: Path):
    folder = tmp_path / "events"
    with pulsarx.Client(folder) as client:
        for name in ("bad", "good"):
            client.create_producer(name).send(b"the payload of " + name.encode())
    for path in [each for each in folder.rglob("*.ledger") if b"of bad" in each.read_bytes()]:
        path.unlink()
        path.mkdir()
    administered = open_administered(folder=folder)
    found = get(administered, "health", now="true")
    assert len(found["flaws"]) == 1 and "pulsarx check" in found["warnings"][0]


# Policies -----------------------------------------------------------------------------------------


def policy(administered: Administered, name: str, **query: object) -> dict[str, Any]:
    found = get(administered, "policies", **query)["policies"]
    [row] = [each for each in found if each["name"] == name]
    return dict(row)


def test_policies_of_both_levels_and_what_holds_without_are_told(administered: Administered):
    send(administered, 1)
    admin = administered.client.admin
    admin.namespaces.set_retention("public/default", 100, 1024)
    admin.topics.set_message_ttl("orders", 90)
    retention = policy(administered, "retention", topic=ORDERS)
    assert retention["values"]["topic"] is None
    assert retention["values"]["namespace"] == {
        "retentionTimeInMinutes": 100,
        "retentionSizeInMB": 1024,
    }
    assert retention["unset"] == {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}
    assert policy(administered, "message_ttl", topic=ORDERS)["values"] == {
        "topic": 90,
        "namespace": None,
    }
    assert policy(administered, "message_ttl", namespace="public/default")["values"] == {
        "namespace": None
    }


def test_policies_are_set_and_removed(administered: Administered):
    send(administered, 1)
    admin = administered.client.admin
    for level, target, asked in (
        ("topic", ORDERS, admin.topics.get_message_ttl),
        ("namespace", "public/default", admin.namespaces.get_message_ttl),
    ):
        given = {"level": level, "target": target, "name": "message_ttl"}
        assert post(administered, "policy", **given, value=60).status == 204
        assert asked(target) == 60
        assert post(administered, "policy", **given, value=None).status == 204
        assert asked(target) is None


@pytest.mark.parametrize(
    "body",
    [
        {"level": "topic", "target": ORDERS, "name": "message_ttl", "value": "soon"},
        {"level": "topic", "target": ORDERS, "name": "message_ttl", "value": -1},
        {"level": "topic", "target": ORDERS, "name": "nothing", "value": 1},
        {"level": "cluster", "target": ORDERS, "name": "message_ttl", "value": 1},
    ],
)
def test_a_policy_that_is_none_is_refused(administered: Administered, body: dict[str, Any]):
    send(administered, 1)
    assert post(administered, "policy", **body).status == 412


# Schemas and publishing ---------------------------------------------------------------------------


class Order(Record):
    customer = String()


def test_the_versions_of_a_schema_come_newest_first(administered: Administered):
    client = administered.client
    send(administered, 1)
    assert get(administered, "schemas", topic="orders") == []
    schema: Any = JsonSchema(Order)
    client.create_producer("sold", schema=schema).close()
    [found] = get(administered, "schemas", topic="sold")
    assert (found["type"], found["version"]) == ("JSON", 0) and "customer" in found["schema"]


def test_a_message_tells_the_version_that_it_was_written_with(administered: Administered):
    schema: Any = StringSchema()
    administered.client.create_producer("orders", schema=schema).send("text")
    [found] = get(administered, "messages", topic="orders")["messages"]
    assert found["schema_version"] == 0
    send(administered, 1, "plain")
    [found] = get(administered, "messages", topic="plain")["messages"]
    assert found["schema_version"] == -1


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        (StringSchema(), "plain text", "plain text"),
        (Int32Schema(), "12", 12),
        (Int64Schema(), "-5", -5),
    ],
)
def test_a_text_is_published_as_the_schema_has_it(
    administered: Administered, schema: Any, text: str, value: object
):
    client = administered.client
    client.create_producer("orders", schema=schema).close()
    consumer = client.subscribe("orders", "s", schema=schema)
    assert post(administered, "publish", topic="orders", text=text).status == 200
    assert consumer.receive().value() == value


def test_records_are_published_by_their_schema(administered: Administered):
    pytest.importorskip("fastavro", reason="it comes with the extra avro")
    client = administered.client
    for name, schema in (("json", JsonSchema(Order)), ("avro", AvroSchema(Order))):
        made: Any = schema
        client.create_producer(name, schema=made).close()
        consumer = client.subscribe(name, "s", schema=made)
        given = {"text": '{"customer": "ada"}', "key": "k", "properties": {"a": "1"}}
        reply = post(administered, "publish", topic=name, **given, event_time_ms=5)
        message = consumer.receive()
        assert reply.body["message_id"] == message.message_id().to_text()
        assert message.value().customer == "ada"
        assert (message.partition_key(), message.properties()) == ("k", {"a": "1"})
        assert message.event_timestamp() == 5
        refused = post(administered, "publish", topic=name, text="no JSON")
        assert refused.status == 412 and "JSON" in refused.body["reason"]


class Counted(Record):
    a = Long(required=True)
    part = Double()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('"x"', "no object"),
        ("null", "no object"),
        ('{"b": 1}', "b is in no version of the schema"),
        ('{"a": "1"}', "a is '1' and should be int64"),
        ('{"a": null}', "a is missing or null"),
        ("{}", "a is missing or null"),
        ('{"a": 9223372036854775808}', "should be int64"),
        ("NaN", "NaN is no number of JSON"),
        ('{"a": 1, "part": -Infinity}', "-Infinity is no number of JSON"),
        ('{"a": 1, "part": 1e999}', "1e999 is no number of JSON"),
    ],
)
def test_a_value_that_is_not_of_the_json_schema_is_refused(
    administered: Administered, text: str, said: str
):
    """It was published, and no consumer of the schema could read it."""
    pytest.importorskip("pyarrow", reason="it comes with the extra arrow")
    client = administered.client
    schema: Any = JsonSchema(Counted)
    client.create_producer("counted", schema=schema).close()
    refused = post(administered, "publish", topic="counted", text=text)
    assert refused.status == 412 and said in refused.body["reason"]
    assert client.admin.topics.stats("counted")["messages"] == 0
    assert post(administered, "publish", topic="counted", text='{"a": 1}').status == 200
    assert post(administered, "publish", topic="counted", text='{"a":2,"part":1}').status == 200
    assert client.admin.topics.stats("counted")["messages"] == 2


@pytest.mark.parametrize("made", [JsonSchema, AvroSchema])
def test_a_value_that_is_nested_too_deeply_is_refused_with_its_reason(
    administered: Administered, made: Any
):
    """It was an error of the server."""
    administered.client.create_producer("counted", schema=made(Counted)).close()
    for text in ("[" * 100_000, '{"a": ' * 50_000):
        refused = post(administered, "publish", topic="counted", text=text)
        assert refused.status == 400 and "nested too deeply" in refused.body["reason"]


def test_a_json_schema_that_cannot_be_checked_takes_base64(administered: Administered):
    pytest.importorskip("pyarrow", reason="it comes with the extra arrow")
    several = {"name": "a", "type": ["int", "string"]}
    definition = {"type": "record", "name": "R", "fields": [several]}
    info = SchemaInfo(SchemaType.JSON, "several", json.dumps(definition))
    administered.client.create_producer("several").close()
    administered.client.admin.schemas.create_schema("several", info)
    refused = post(administered, "publish", topic="several", text='{"a": 1}')
    assert refused.status == 412 and "publish it as base64" in refused.body["reason"]
    assert post(administered, "publish", topic="several", base64="eyJhIjogMX0=").status == 200


def test_bytes_are_published_as_base64(administered: Administered):
    consumer = administered.client.subscribe("orders", "s")
    assert post(administered, "publish", topic="orders", base64="AP8=").status == 200
    assert consumer.receive().data() == b"\x00\xff"
    for body in ({"base64": "?"}, {}, {"text": 5}, {"text": "x", "properties": {"a": 1}}):
        assert post(administered, "publish", topic="orders", **body).status == 412
    assert administered.client.admin.topics.stats("orders")["messages"] == 1


# Who may ------------------------------------------------------------------------------------------


@pytest.fixture
def guarded(open_administered: Open) -> Administered:
    access = AccessSettings(token_secret_key=SECRET_TEXT, superuser_roles=["admin"])
    found = open_administered(access=access)
    send(found, 1)
    namespaces = found.client.admin.namespaces
    namespaces.grant_permission_on_namespace("public/default", "alice", ["produce"])
    namespaces.grant_permission_on_namespace("public/default", "bob", ["consume"])
    return found


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("policies?namespace=public/default", "admin"),
        (f"policies?topic={ORDERS}", "admin"),
        ("schemas?topic=orders", "admin alice bob"),
    ],
)
def test_a_role_sees_what_it_may(guarded: Administered, path: str, allowed: str):
    for role in ("admin", "alice", "bob", "eve"):
        headers = {"Authorization": f"Bearer {token(role)}"}
        reply = guarded.ask("GET", f"//console/{path}", headers=headers)
        assert reply.status == (200 if role in allowed.split() else 403), role


def test_the_health_shows_a_role_the_topics_alone_that_it_may_look_into(guarded: Administered):
    for role, topics in (("admin", 1), ("alice", 1), ("eve", 0)):
        headers = {"Authorization": f"Bearer {token(role)}"}
        reply = guarded.ask("GET", "//console/health", headers=headers)
        assert (reply.body["topics"], len(reply.body["largest"])) == (topics, topics)


def test_a_role_that_is_told_no_figures_of_the_server_sees_neither_device_nor_folder(
    open_administered: Open, tmp_path: Path
):
    """/metrics hid what the page told."""
    access = AccessSettings(
        token_secret_key=SECRET_TEXT, superuser_roles=["admin"], restrict_metrics=True
    )
    found = open_administered(folder=tmp_path / "data", access=access)
    send(found, 1)
    namespaces = found.client.admin.namespaces
    namespaces.grant_permission_on_namespace("public/default", "alice", ["produce"])
    for role in ("admin", "alice"):
        headers = {"Authorization": f"Bearer {token(role)}"}
        sees = role == "admin"
        health = found.ask("GET", "//console/health", headers=headers).body
        overview = found.ask("GET", "//console/overview", headers=headers).body
        assert [health[each] is not None for each in ("folder", "owner", "disk")] == [sees] * 3
        assert [overview[each] is not None for each in ("folder", "owner")] == [sees] * 2
        assert (str(tmp_path) in json.dumps([health, overview])) == sees
        assert health["hidden"] == overview["hidden"] == (not sees)
        assert health["topics"] == 1


def test_publishing_and_setting_want_a_role_that_may(guarded: Administered):
    for role, status in (("bob", 403), ("eve", 403), ("alice", 200), ("admin", 200)):
        assert post(guarded, "publish", role, topic="orders", text="x").status == status, role
    given = {"level": "topic", "target": ORDERS, "name": "message_ttl", "value": 5}
    for role, status in (("alice", 403), ("bob", 403), ("admin", 204)):
        assert post(guarded, "policy", role, **given).status == status, role
