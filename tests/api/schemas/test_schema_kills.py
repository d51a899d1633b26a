"""Facts about producers with schemas that are killed, and about a disk that refuses."""

from __future__ import annotations

import errno
import json
import random
from pathlib import Path

import pytest
from child_process import ChildProcess
from seeds import seeds

import pulsarx
from pulsarx import InitialPosition, errors
from pulsarx.schema import AutoConsumeSchema, AvroSchema, StringSchema
from pulsarx.testing.faults import fault_plan

PROGRAM = """
import sys, pulsarx
from pulsarx.schema import AvroSchema
client = pulsarx.Client(sys.argv[1], durability="os")
client.admin.namespaces.set_schema_compatibility_strategy("public/default", "BACKWARD")
fields = []
print("ready")
for number in range(60):
    fields.append({"name": f"f{number}", "type": "int", "default": 0})
    schema = AvroSchema(None, {"type": "record", "name": "R", "fields": list(fields)})
    producer = client.create_producer("t", schema=schema)
    producer.send({f"f{number}": number})
    producer.close()
    print(number)
"""


@pytest.mark.standard
@pytest.mark.parametrize("seed", seeds(4))
def test_a_kill_around_registrations_leaves_every_message_readable(
    tmp_path: Path, seed: int
) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    with ChildProcess(PROGRAM, tmp_path) as child:
        assert child.line() == "ready"
        last = -1
        for _ in range(chance.randrange(1, 30)):
            last = int(child.line())
        for _ in range(chance.randrange(200_000)):
            pass  # until the middle of the next one
        child.kill()
    with pulsarx.Client(tmp_path) as client:
        known = client.admin.schemas.get_all_schemas("t")
        assert [each.version() for each in known] == list(range(len(known)))
        assert len(known) > last
        reader = client.create_reader("t", pulsarx.MessageId.earliest, schema=AutoConsumeSchema())
        found = []
        while reader.has_message_available():
            message = reader.read_next(60_000)
            version = int.from_bytes(message.schema_version().encode("latin-1"), "big")
            assert len(message.value()) == version + 1
            found.append(message.value()[f"f{version}"])
        assert found[: last + 1] == list(range(last + 1))
        again = AvroSchema(None, json.loads(known[-1].schema()))
        client.create_producer("t", schema=again)
        assert len(client.admin.schemas.get_all_schemas("t")) == len(known)


@pytest.mark.parametrize("operation", ["open", "link", "flush_directory", "write", "flush"])
def test_a_disk_that_refuses_a_registration_leaves_nothing_half_made(
    tmp_path: Path, operation: str
) -> None:
    with pulsarx.Client(tmp_path) as client:
        client.admin.topics.create_non_partitioned_topic("t")
        with fault_plan() as plan:
            plan.fail(operation, sticky=True)
            for call in (
                lambda: client.create_producer("t", "named", schema=StringSchema()),
                lambda: client.admin.schemas.create_schema("t", StringSchema().schema_info()),
            ):
                try:
                    made = call()
                except errors.PulsarException:
                    continue
                if isinstance(made, pulsarx.Producer):  # it needs no such operation
                    made.close()
        stats = client.admin.topics.stats("t")
        assert stats["publishers"] == []
    with pulsarx.Client(tmp_path) as client:
        known = client.admin.schemas.get_all_schemas("t")
        assert len(known) <= 1
        producer = client.create_producer("t", "named", schema=StringSchema())
        producer.send("x")
        consumer = client.subscribe(
            "t", "s", schema=StringSchema(), initial_position=InitialPosition.Earliest
        )
        assert consumer.receive(60_000).value() == "x"
        assert len(client.admin.schemas.get_all_schemas("t")) == 1


def test_a_consumer_whose_schema_cannot_be_registered_leaves_no_subscription(
    tmp_path: Path,
) -> None:
    refused = 0
    with pulsarx.Client(tmp_path) as client:
        for call in range(1, 10):  # one of them writes the commit of the schema
            topic = f"t{call}"
            client.admin.topics.create_non_partitioned_topic(topic)
            with fault_plan() as plan:
                plan.fail("write", call=call, error=errno.ENOSPC)
                try:
                    client.subscribe(topic, "s", schema=StringSchema()).close()
                    continue
                except errors.PulsarException:
                    refused += 1
            assert client.admin.topics.stats(topic)["subscriptions"] == {}, call
            assert client.admin.schemas.get_all_schemas(topic) == []
            client.subscribe(topic, "s", schema=StringSchema()).close()
    assert refused >= 2
