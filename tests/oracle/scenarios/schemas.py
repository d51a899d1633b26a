"""Scenarios: schemas, what they make of values, and what the registry refuses."""

from __future__ import annotations

import json
from typing import Any

from world import PATIENCE_MS, World, scenario


def classes(world: World) -> Any:
    import importlib

    return importlib.import_module(f"{world.pulsar.__name__}.schema")


def user(world: World, *, age: bool = False, required: bool = False) -> Any:
    """A record; with a second version that has one more field."""
    module = classes(world)
    fields: dict[str, Any] = {"name": module.String()}
    if age:
        fields["age"] = module.Integer(required=required)
    return type("User", (module.Record,), fields)


SCHEMAS = ("JsonSchema", "AvroSchema")


@scenario
def text_values(world: World) -> Any:
    client = world.client()
    schema = classes(world).StringSchema()
    consumer = world.subscribe(client, schema=schema)
    client.create_producer(world.topic(), schema=schema).send("Grüße")
    return consumer.receive(PATIENCE_MS).value()


@scenario(each=SCHEMAS)
def records(world: World, name: str) -> Any:
    client = world.client()
    record = user(world, age=True)
    schema = getattr(classes(world), name)(record)
    consumer = world.subscribe(client, schema=schema)
    client.create_producer(world.topic(), schema=schema).send(record(name="Ada", age=36))
    value = consumer.receive(PATIENCE_MS).value()
    return [value.name, value.age, type(value).__name__]


@scenario(each=SCHEMAS)
def fields_without_a_value(world: World, name: str) -> Any:
    client = world.client()
    record = user(world, age=True)
    schema = getattr(classes(world), name)(record)
    consumer = world.subscribe(client, schema=schema)
    client.create_producer(world.topic(), schema=schema).send(record(name="Ada"))
    return consumer.receive(PATIENCE_MS).value().age


@scenario(each=SCHEMAS)
def bytes_of_a_record(world: World, name: str) -> Any:
    record = user(world, age=True)
    return getattr(classes(world), name)(record).encode(record(name="Ada", age=36)).hex()


@scenario(each=SCHEMAS)
def the_definition(world: World, name: str) -> Any:
    info = getattr(classes(world), name)(user(world, age=True)).schema_info()
    return [info.schema_type().name, info.name(), json.loads(info.schema())]


@scenario(each=["BytesSchema", "StringSchema"])
def the_definition_of_plain_ones(world: World, name: str) -> Any:
    info = getattr(classes(world), name)().schema_info()
    return [info.schema_type().name, info.name(), info.schema()]


@scenario(each=["String", "Integer", "Long", "Float", "Double", "Boolean", "Bytes"])
def fields_as_avro(world: World, name: str) -> Any:
    module = classes(world)
    record = type("R", (module.Record,), {"f": getattr(module, name)()})
    return [record.schema(), getattr(module, name)(required=True).schema()]


@scenario
def nested_fields_as_avro(world: World) -> Any:
    module = classes(world)
    inner = type("Inner", (module.Record,), {"n": module.Integer(required=True)})
    record = type(
        "Outer",
        (module.Record,),
        {
            "one": inner(),
            "many": module.Array(module.String()),
            "named": module.Map(module.Double()),
            "again": module.Array(inner()),
        },
    )
    return record.schema()


WRONG_VALUES: dict[str, tuple[str, Any]] = {
    "text_int": ("StringSchema", 5),
    "text_bytes": ("StringSchema", b"x"),
    "json_dict": ("JsonSchema", {"name": "x"}),
    "json_text": ("JsonSchema", "x"),
    "avro_text": ("AvroSchema", "x"),
}


@scenario(each=WRONG_VALUES)
def a_value_of_another_type(world: World, case: str) -> Any:
    name, value = WRONG_VALUES[case]
    arguments = () if name == "StringSchema" else (user(world),)
    schema = getattr(classes(world), name)(*arguments)
    return world.outcome(world.client().create_producer(world.topic(), schema=schema).send, value)


@scenario(each=["name_int", "age_text", "unknown"])
def a_field_of_another_type(world: World, case: str) -> Any:
    record = user(world, age=True)
    values: dict[str, dict[str, Any]] = {
        "name_int": {"name": 5}, "age_text": {"age": "x"}, "unknown": {"other": 1},
    }  # fmt: skip
    return world.outcome(record, **values[case])


@scenario(each=SCHEMAS)
def a_second_version_that_fits(world: World, name: str) -> Any:
    client = world.client()
    schema = getattr(classes(world), name)
    client.create_producer(world.topic(), schema=schema(user(world)))
    return [
        world.outcome(client.create_producer, world.topic(), schema=schema(user(world, age=True))),
        world.admin.schema_versions(world.topic()),
    ]


@scenario(each=SCHEMAS)
def a_second_version_that_does_not_fit(world: World, name: str) -> Any:
    client = world.client()
    schema = getattr(classes(world), name)
    client.create_producer(world.topic(), schema=schema(user(world)))
    second = schema(user(world, age=True, required=True))
    return [
        world.outcome(client.create_producer, world.topic(), schema=second),
        world.admin.schema_versions(world.topic()),
    ]


@scenario(each=SCHEMAS)
def the_same_schema_twice(world: World, name: str) -> Any:
    client = world.client()
    schema = getattr(classes(world), name)(user(world))
    for _ in range(2):
        client.create_producer(world.topic(), schema=schema)
    return world.admin.schema_versions(world.topic())


@scenario(each=["JsonSchema-AvroSchema", "AvroSchema-JsonSchema", "StringSchema-JsonSchema"])
def another_type_of_schema(world: World, case: str) -> Any:
    client = world.client()
    outcomes = []
    for name in case.split("-"):
        arguments = () if name == "StringSchema" else (user(world),)
        schema = getattr(classes(world), name)(*arguments)
        outcomes.append(world.outcome(client.create_producer, world.topic(), schema=schema))
    return outcomes


@scenario
def bytes_beside_a_schema(world: World) -> Any:
    client = world.client()
    client.create_producer(world.topic(), schema=classes(world).StringSchema())
    return world.outcome(client.create_producer, world.topic())


@scenario(each=SCHEMAS)
def a_consumer_that_does_not_fit(world: World, name: str) -> Any:
    client = world.client()
    schema = getattr(classes(world), name)
    client.create_producer(world.topic(), schema=schema(user(world)))
    second = schema(user(world, age=True, required=True))
    return world.outcome(client.subscribe, world.topic(), "s", schema=second)


@scenario
def a_consumer_with_a_schema_on_data_without(world: World) -> Any:
    client = world.client()
    world.send(client, [b"raw"])
    schema = classes(world).JsonSchema(user(world))
    return world.outcome(client.subscribe, world.topic(), "s", schema=schema)


STRATEGIES = (
    "ALWAYS_INCOMPATIBLE", "ALWAYS_COMPATIBLE", "BACKWARD", "FORWARD", "FULL",
    "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE",
)  # fmt: skip


@scenario(each=[f"{strategy}-{change}" for strategy in STRATEGIES
                for change in ("adds", "drops", "requires", "same")])  # fmt: skip
def a_strategy(world: World, case: str) -> Any:
    strategy, change = case.split("-")
    namespace = f"public/{world.prefix}"
    world.admin.create_namespace(namespace)
    world.admin.set_schema_strategy(namespace, strategy)
    topic = f"persistent://{namespace}/topic"
    client = world.client()
    plain, optional = user(world), user(world, age=True)
    required = user(world, age=True, required=True)
    first, second = {
        "adds": (plain, optional), "drops": (optional, plain),
        "requires": (plain, required), "same": (plain, plain),
    }[change]  # fmt: skip
    schema = classes(world).AvroSchema
    return [
        world.outcome(client.create_producer, topic, schema=schema(each))
        for each in (first, second)
    ]
