"""Records as JSON."""

import json
import os

import pulsar
from pulsar.schema import Boolean, Float, Integer, JsonSchema, Record, String


class Reading(Record):
    sensor = String(required=True)
    celsius = Float()
    count = Integer(default=1)
    valid = Boolean(default=True)


client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
schema = JsonSchema(Reading)
consumer = client.subscribe("readings", "dashboard", schema=schema)
producer = client.create_producer("readings", schema=schema)
producer.send(Reading(sensor="roof", celsius=21.5))
producer.send(Reading(sensor="cellar", celsius=12.25, count=3, valid=False))
for _ in range(2):
    message = consumer.receive(timeout_millis=10000)
    reading = message.value()
    print(type(reading).__name__, reading.sensor, reading.celsius, reading.count, reading.valid)
    print(json.loads(message.data()))
    consumer.acknowledge(message)
print(Reading.schema())
print(schema.schema_info().name(), schema.schema_info().schema_type())
try:
    producer.send("not a reading")
except TypeError as error:
    print("TypeError:", error)
try:
    Reading(sensor=7)
except TypeError as error:
    print("TypeError:", error)
client.close()
