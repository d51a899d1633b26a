"""The official Python client with an http:// service URL: what it looks up comes by HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import pulsarx
from pulsarx.rest import serve_http
from pulsarx.server import serve

pulsar: Any = pytest.importorskip("pulsar")
schema: Any = pytest.importorskip("pulsar.schema")
pytestmark = pytest.mark.standard
PATIENCE_MS = 60_000


@pytest.fixture
def client() -> Iterator[Any]:
    with (
        pulsarx.Client("memory:", durability="os") as owner,
        serve(owner, port=0) as broker,
        serve_http(owner, port=0, broker_port=broker.port) as http,
    ):
        logger = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        made = pulsar.Client(http.url, logger=logger)
        made.owner = owner
        yield made
        made.close()


def test_topics_are_looked_up_by_http(client: Any):
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    producer.send(b"x")
    assert consumer.receive(PATIENCE_MS).data() == b"x"


def test_names_that_a_url_has_to_escape_are_found(client: Any):
    consumer = client.subscribe("a b+c%d?é", "s 1/2")
    client.create_producer("a b+c%d?é").send(b"x")
    assert consumer.receive(PATIENCE_MS).data() == b"x"
    assert client.owner.admin.topics.get_list() == ["persistent://public/default/a b+c%d?é"]


def test_partitions_are_looked_up_by_http(client: Any):
    client.owner.admin.topics.create_partitioned_topic("p", 3)
    assert len(client.get_topic_partitions("p")) == 3
    consumer = client.subscribe("p", "s")
    producer = client.create_producer("p")
    for number in range(6):
        producer.send(b"%d" % number)
    found = {consumer.receive(PATIENCE_MS).data() for _ in range(6)}
    assert found == {b"%d" % number for number in range(6)}


def test_topics_of_a_pattern_are_looked_up_by_http(client: Any):
    for name in ("one", "two"):
        client.owner.admin.topics.create_non_partitioned_topic(f"orders-{name}")
    consumer = client.subscribe(re.compile("persistent://public/default/orders-.*"), "s")
    for name in ("one", "two"):
        client.create_producer(f"orders-{name}").send(name.encode())
    assert {consumer.receive(PATIENCE_MS).data() for _ in range(2)} == {b"one", b"two"}


def test_schemas_of_messages_are_looked_up_by_http(client: Any):
    class Order(schema.Record):  # type: ignore[misc, name-defined]
        number = schema.Integer()

    avro = schema.AvroSchema(Order)
    consumer = client.subscribe("orders", "s", schema=avro)
    producer = client.create_producer("orders", schema=avro)
    producer.send(Order(number=7))
    assert consumer.receive(PATIENCE_MS).value().number == 7


def test_a_topic_that_may_not_be_made_is_refused(client: Any):
    client.owner.admin.namespaces.set_auto_topic_creation("public/default", False)
    with pytest.raises(pulsar.PulsarException):
        client.create_producer("t")
