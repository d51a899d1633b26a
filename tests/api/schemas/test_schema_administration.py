"""Facts about `client.admin.schemas` and the policies about schemas, each seen by its effect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import BrokerOptions, InitialPosition, errors
from pulsarx.admin import Admin
from pulsarx.schema import (
    AutoConsumeSchema,
    AvroSchema,
    BytesSchema,
    Int32Schema,
    SchemaInfo,
    SchemaType,
    StringSchema,
)

EARLIEST = InitialPosition.Earliest


def avro(*fields: dict[str, Any]) -> AvroSchema:
    return AvroSchema(None, {"type": "record", "name": "One", "fields": list(fields)})


def field(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "int", **more}


A = avro(field("a"))
AB = avro(field("a"), field("b", default=0))  # A and AB read each other
AC = avro(field("a"), field("c"))  # A reads AC, AC does not read A


@pytest.fixture
def schemas(client: pulsarx.Client) -> Any:
    client.admin.topics.create_non_partitioned_topic("t")
    return client.admin.schemas


def test_versions_count_from_0_and_one_schema_has_one(schemas: Any) -> None:
    assert schemas.create_schema("t", A.schema_info()) == 0
    assert schemas.create_schema("t", AB.schema_info()) == 1
    assert schemas.create_schema("t", A.schema_info()) == 0
    assert [each.version() for each in schemas.get_all_schemas("t")] == [0, 1]
    assert schemas.get_version_by_schema("t", AB.schema_info()) == 1
    assert schemas.get_version_by_schema("t", AC.schema_info()) == -1
    assert schemas.get_schema_info("t") == AB.schema_info()
    assert schemas.get_schema_info("t", 0).schema() == A.schema_info().schema()
    assert schemas.get_schema_info("t", 0).version() == 0


def test_what_a_topic_remembers_is_what_it_was_given(schemas: Any) -> None:
    given = SchemaInfo(SchemaType.JSON, "named", A.schema_info().schema(), {"k": "v"})
    schemas.create_schema("t", given)
    found = schemas.get_schema_info("t")
    assert (found, found.name(), found.properties()) == (given, "named", {"k": "v"})


def test_a_deletion_takes_a_version_and_ends_comparing(client: pulsarx.Client) -> None:
    schemas = client.admin.schemas
    producer = client.create_producer("t", schema=A)
    producer.send({"a": 1})
    schemas.delete_schema("t")
    assert schemas.get_all_schemas("t") == []
    for version in (None, 0, 1):
        with pytest.raises(errors.TopicNotFound):
            schemas.get_schema_info("t", version)
    schemas.delete_schema("t")
    assert schemas.create_schema("t", StringSchema().schema_info()) == 2
    assert [each.version() for each in schemas.get_all_schemas("t")] == [2]
    assert schemas.get_version_by_schema("t", A.schema_info()) == -1


def test_what_was_written_with_a_deleted_schema_can_be_read(client: pulsarx.Client) -> None:
    producer = client.create_producer("t", schema=A)
    producer.send({"a": 1})
    client.admin.schemas.delete_schema("t")
    producer.send({"a": 2})
    other = client.create_producer("t", schema=StringSchema())
    other.send("x")
    consumer = client.subscribe("t", "s", schema=AutoConsumeSchema(), initial_position=EARLIEST)
    assert [consumer.receive(60_000).value() for _ in range(3)] == [{"a": 1}, {"a": 2}, "x"]


def test_testing_changes_nothing_and_says_why(schemas: Any) -> None:
    schemas.create_schema("t", A.schema_info())
    good = schemas.test_compatibility("t", AB.schema_info())
    assert good == {
        "compatibility": True,
        "schema_compatibility_strategy": "FULL",
        "reason": "",
    }
    bad = schemas.test_compatibility("t", AC.schema_info())
    assert bad["compatibility"] is False and "field c of One has no default" in bad["reason"]
    assert len(schemas.get_all_schemas("t")) == 1


def test_a_schema_is_created_before_its_topic_where_that_is_created_by_use() -> None:
    with pulsarx.Client("memory:") as client:
        info = A.schema_info()
        assert client.admin.schemas.create_schema("new", info) == 0
        assert client.admin.topics.get_list() == ["persistent://public/default/new"]
        with pytest.raises(errors.IncompatibleSchema):
            client.create_producer("new", schema=StringSchema())
        malformed = SchemaInfo(SchemaType.AVRO, "", "{")
        with pytest.raises(ValueError):
            client.admin.schemas.create_schema("never", malformed)
        assert client.admin.topics.get_list() == ["persistent://public/default/new"]
    options = BrokerOptions(allow_auto_topic_creation=False)
    client = pulsarx.Client("memory:", broker_options=options)
    with client, pytest.raises(errors.TopicNotFound):
        client.admin.schemas.create_schema("new", info)


def test_a_topic_that_is_not_there_is_not_found(client: pulsarx.Client) -> None:
    schemas, info = client.admin.schemas, A.schema_info()
    for call in (
        lambda: schemas.create_schema("public/gone/t", info),
        lambda: schemas.get_schema_info("gone"),
        lambda: schemas.get_all_schemas("gone"),
        lambda: schemas.delete_schema("gone"),
        lambda: schemas.test_compatibility("gone", info),
        lambda: schemas.get_version_by_schema("gone", info),
        lambda: client.admin.topics.set_schema_validation_enforced("gone", True),
        lambda: client.admin.topics.get_schema_validation_enforced("gone"),
        lambda: client.admin.namespaces.set_schema_validation_enforced("public/gone", True),
        lambda: client.admin.namespaces.get_schema_validation_enforced("public/gone"),
    ):
        with pytest.raises(errors.TopicNotFound):
            call()
    assert client.admin.topics.get_list() == []


@pytest.mark.parametrize(
    "info",
    [
        SchemaInfo(SchemaType.AVRO, "", "{"),
        SchemaInfo(SchemaType.JSON, "", '"zork"'),
        SchemaInfo(SchemaType.INT32, "", "{}"),
        SchemaInfo(SchemaType.AUTO_CONSUME, "", ""),
        SchemaInfo(SchemaType.KEY_VALUE, "", "{}"),
        SchemaInfo(SchemaType.AVRO, "", json.dumps({**A.schema_info().as_document()}) * 30_000),
        "text",
        None,
    ],
)
def test_what_is_no_schema_is_refused(schemas: Any, info: Any) -> None:
    for call in (schemas.create_schema, schemas.test_compatibility, schemas.get_version_by_schema):
        with pytest.raises(ValueError, match=r"."):
            call("t", info)
    assert schemas.get_all_schemas("t") == []


def test_wrong_versions_are_refused(schemas: Any) -> None:
    schemas.create_schema("t", A.schema_info())
    for wrong in ("1", 1.0, True, -1):
        with pytest.raises(ValueError, match="version"):
            schemas.get_schema_info("t", wrong)
    with pytest.raises(errors.TopicNotFound, match="no version 7"):
        schemas.get_schema_info("t", 7)


def test_bytes_are_kept_as_none_as_pulsars_broker_does(schemas: Any) -> None:
    schemas.create_schema("t", SchemaInfo(SchemaType.BYTES, "", ""))
    assert schemas.get_schema_info("t").schema_type() == SchemaType.NONE


def test_a_large_definition_is_kept(schemas: Any) -> None:
    many = avro(*(field(f"f{number}", default=0, doc="x" * 90) for number in range(5000)))
    assert len(many.schema_info().schema()) > 800_000
    schemas.create_schema("t", many.schema_info())
    assert schemas.get_schema_info("t") == many.schema_info()


# Through other ways -------------------------------------------------------------------------------


@pytest.mark.standard
def test_schemas_are_administered_from_elsewhere_and_read_by_read_only_clients(
    tmp_path: Path,
) -> None:
    with pulsarx.Client(tmp_path) as client:
        client.create_producer("t", schema=A)
        admin = Admin.at(tmp_path)
        assert admin.schemas.create_schema("t", AB.schema_info()) == 1
        assert len(client.admin.schemas.get_all_schemas("t")) == 2
        with pytest.raises(errors.IncompatibleSchema, match="no default"):
            admin.schemas.create_schema("t", AC.schema_info())
        with pytest.raises(ValueError, match="no definition of Avro"):
            admin.schemas.create_schema("t", SchemaInfo(SchemaType.AVRO, "", "{"))
        watcher = pulsarx.Client(tmp_path, read_only=True)
        check_reading_alone(watcher)
        watcher.close()
    with pulsarx.Client(tmp_path, read_only=True) as watcher:
        check_reading_alone(watcher)
    Admin.at(tmp_path).schemas.delete_schema("t")
    assert Admin.at(tmp_path).schemas.get_all_schemas("t") == []


def check_reading_alone(watcher: pulsarx.Client) -> None:
    schemas = watcher.admin.schemas
    assert schemas.get_schema_info("t") == AB.schema_info()
    assert len(schemas.get_all_schemas("t")) == 2
    assert schemas.get_version_by_schema("t", A.schema_info()) == 0
    assert not schemas.test_compatibility("t", AC.schema_info())["compatibility"]
    assert watcher.admin.topics.get_schema_validation_enforced("t") is None
    for call in (
        lambda: schemas.create_schema("t", A.schema_info()),
        lambda: schemas.delete_schema("t"),
        lambda: watcher.admin.topics.set_schema_validation_enforced("t", True),
        lambda: watcher.admin.namespaces.remove_schema_validation_enforced("public/default"),
    ):
        with pytest.raises(errors.OperationNotSupported, match="read_only"):
            call()


# Policies -----------------------------------------------------------------------------------------


def is_taken(client: pulsarx.Client, topic: str, schema: Any) -> bool:
    try:
        client.create_producer(topic, schema=schema).close()
    except errors.IncompatibleSchema:
        return False
    return True


@pytest.mark.parametrize(
    ("strategy", "ab", "ac"),
    [
        ("ALWAYS_INCOMPATIBLE", False, False),
        ("ALWAYS_COMPATIBLE", True, True),
        ("BACKWARD", True, False),
        ("FORWARD", True, True),
        ("FULL", True, False),
        ("BACKWARD_TRANSITIVE", True, False),
        ("FORWARD_TRANSITIVE", True, True),
        ("FULL_TRANSITIVE", True, False),
        ("UNDEFINED", True, False),
    ],
)
@pytest.mark.parametrize("level", ["broker", "namespace", "topic"])
def test_a_strategy_decides_at_every_level(level: str, strategy: str, ab: bool, ac: bool) -> None:
    options = {"schema_compatibility_strategy": strategy} if level == "broker" else {}
    with pulsarx.Client("memory:strategies", broker_options=BrokerOptions(**options)) as client:
        for topic, schema, expected in (("x", AB, ab), ("y", AC, ac)):
            client.create_producer(topic, schema=A)
            admin = client.admin
            if level == "namespace":
                admin.namespaces.set_schema_compatibility_strategy("public/default", strategy)
            elif level == "topic":
                admin.topics.set_schema_compatibility_strategy(topic, strategy)
            assert is_taken(client, topic, schema) is expected


def test_a_topics_strategy_wins_and_removing_it_gives_the_namespaces_back(
    client: pulsarx.Client,
) -> None:
    namespaces, topics = client.admin.namespaces, client.admin.topics
    client.create_producer("t", schema=A)
    namespaces.set_schema_compatibility_strategy("public/default", "ALWAYS_INCOMPATIBLE")
    topics.set_schema_compatibility_strategy("t", "FULL")
    assert client.admin.schemas.test_compatibility("t", AB.schema_info())["compatibility"]
    assert topics.get_schema_compatibility_strategy("t") == "FULL"
    topics.set_schema_compatibility_strategy("t", "UNDEFINED")
    assert not is_taken(client, "t", AB)
    topics.remove_schema_compatibility_strategy("t")
    assert topics.get_schema_compatibility_strategy("t") is None
    assert not is_taken(client, "t", AB)
    namespaces.remove_schema_compatibility_strategy("public/default")
    assert namespaces.get_schema_compatibility_strategy("public/default") is None
    assert is_taken(client, "t", AB)


def test_the_policy_of_a_partitioned_topic_holds_for_its_partitions(client: pulsarx.Client) -> None:
    client.admin.topics.create_partitioned_topic("t", 2)
    client.create_producer("t", schema=A)
    client.admin.topics.set_schema_compatibility_strategy("t-partition-1", "ALWAYS_COMPATIBLE")
    assert client.admin.topics.get_schema_compatibility_strategy("t") == "ALWAYS_COMPATIBLE"
    assert is_taken(client, "t-partition-0", StringSchema())


def test_transitive_strategies_look_at_all_versions_since_the_deletion(
    client: pulsarx.Client,
) -> None:
    with_b, without = avro(field("a", default=0), field("b", default=0)), avro(field("a"))
    other_b = avro(field("a"), {"name": "b", "type": "string", "default": ""})
    for topic, strategy in (("latest", "BACKWARD"), ("all", "BACKWARD_TRANSITIVE")):
        for schema in (with_b, without):
            client.create_producer(topic, schema=schema)
        client.admin.topics.set_schema_compatibility_strategy(topic, strategy)
    assert is_taken(client, "latest", other_b) and not is_taken(client, "all", other_b)
    client.admin.schemas.delete_schema("all")
    assert is_taken(client, "all", without) and is_taken(client, "all", other_b)


def test_enforced_validation_refuses_producers_without_a_schema(client: pulsarx.Client) -> None:
    namespaces, topics = client.admin.namespaces, client.admin.topics
    namespaces.set_schema_validation_enforced("public/default", True)
    assert is_taken(client, "t", BytesSchema())  # there is no schema yet
    client.create_producer("t", schema=A)
    assert not is_taken(client, "t", BytesSchema())
    topics.set_schema_validation_enforced("t", False)
    assert is_taken(client, "t", BytesSchema())
    topics.remove_schema_validation_enforced("t")
    assert not is_taken(client, "t", BytesSchema())
    namespaces.remove_schema_validation_enforced("public/default")
    assert is_taken(client, "t", BytesSchema())


def test_a_producer_cannot_go_over_to_bytes_where_validation_is_enforced(
    client: pulsarx.Client,
) -> None:
    producer = client.create_producer("t", schema=A)
    client.admin.topics.set_schema_validation_enforced("t", True)
    with pytest.raises(errors.IncompatibleSchema, match="schema_validation_enforced"):
        producer.use_schema(BytesSchema())
    producer.send({"a": 1})


def test_without_auto_update_the_administrator_registers(client: pulsarx.Client) -> None:
    client.admin.topics.create_non_partitioned_topic("t")
    client.admin.namespaces.set_is_allow_auto_update_schema("public/default", False)
    assert not is_taken(client, "t", A)
    with pytest.raises(errors.IncompatibleSchema, match="is_allow_auto_update_schema is off"):
        client.subscribe("t", "s", schema=A)
    client.admin.schemas.create_schema("t", A.schema_info())
    assert is_taken(client, "t", A) and not is_taken(client, "t", AB)
    client.subscribe("t", "s", schema=AB)  # it reads what is written
    client.admin.topics.set_is_allow_auto_update_schema("t", True)
    assert is_taken(client, "t", AB)
    assert client.admin.topics.get_is_allow_auto_update_schema("t") is True
    client.admin.topics.remove_is_allow_auto_update_schema("t")
    assert not is_taken(client, "t", avro(field("a"), field("d", default=0)))


def test_options_hold_where_nothing_is_set() -> None:
    options = BrokerOptions(
        is_schema_validation_enforced=True, is_allow_auto_update_schema_enabled=False
    )
    with pulsarx.Client("memory:options", broker_options=options) as client:
        client.admin.topics.create_non_partitioned_topic("t")
        assert not is_taken(client, "t", A)
        client.admin.schemas.create_schema("t", A.schema_info())
        assert not is_taken(client, "t", BytesSchema())
    with pytest.raises(ValueError, match="schema_compatibility_strategy must be"):
        BrokerOptions(schema_compatibility_strategy="SOME")


def test_policies_out_of_range_are_refused(client: pulsarx.Client) -> None:
    client.admin.topics.create_non_partitioned_topic("t")
    for group, target in (
        (client.admin.namespaces, "public/default"),
        (client.admin.topics, "t"),
    ):
        for wrong in ("SOME", "full", None, 5):
            with pytest.raises(ValueError, match=r"schema_compatibility_strategy|None is no value"):
                group.set_schema_compatibility_strategy(target, wrong)  # type: ignore[arg-type]
        for wrong in ("yes", None, 1):
            with pytest.raises(ValueError, match=r"True or False|None is no value"):
                group.set_schema_validation_enforced(target, wrong)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match=r"True or False|None is no value"):
                group.set_is_allow_auto_update_schema(target, wrong)  # type: ignore[arg-type]
        assert group.get_schema_compatibility_strategy(target) is None
        assert group.get_schema_validation_enforced(target) is None


@pytest.mark.standard
def test_policies_and_deletions_survive_a_restart(tmp_path: Path) -> None:
    with pulsarx.Client(tmp_path) as client:
        client.create_producer("t", schema=A)
        client.admin.schemas.delete_schema("t")
        client.admin.topics.set_schema_compatibility_strategy("t", "FORWARD")
        client.admin.namespaces.set_schema_validation_enforced("public/default", True)
    with pulsarx.Client(tmp_path) as client:
        assert client.admin.schemas.get_all_schemas("t") == []
        assert client.admin.topics.get_schema_compatibility_strategy("t") == "FORWARD"
        assert client.admin.namespaces.get_schema_validation_enforced("public/default") is True
        assert client.admin.schemas.create_schema("t", A.schema_info()) == 2


def test_a_topic_whose_namespace_compares_nothing_may_be_read_whatever_it_has(
    client: pulsarx.Client,
) -> None:
    """So data that was published without a schema can be read with one."""
    client.create_producer("t").send(b"x")
    client.admin.topics.set_schema_compatibility_strategy("t", "ALWAYS_COMPATIBLE")
    consumer = client.subscribe("t", "s", schema=StringSchema(), initial_position=EARLIEST)
    assert consumer.receive(60_000).value() == "x"
    reader = client.create_reader("t", pulsarx.MessageId.earliest, schema=Int32Schema())
    with pytest.raises(ValueError, match="the message has 1"):
        reader.read_next(5000).value()
