"""A topic refuses a schema that does not fit the one it has."""

import os

import pulsar
from pulsar.schema import AvroSchema, JsonSchema, Long, Record, String


class Price(Record):
    item = String()
    cents = Long()


class Other(Record):
    item = Long(required=True)


client = pulsar.Client(
    os.environ.get("PULSAR_URL", "pulsar://localhost:6650"),
    logger=pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull),
)
producer = client.create_producer("prices", schema=JsonSchema(Price))
producer.send(Price(item="tea", cents=250))
for name, schema in (("avro", AvroSchema(Price)), ("other fields", JsonSchema(Other))):
    try:
        client.create_producer("prices", schema=schema)
        print(name, "accepted")
    except pulsar.IncompatibleSchema as error:
        print(name, "refused:", str(error))
reader = client.create_reader("prices", pulsar.MessageId.earliest, schema=JsonSchema(Price))
value = reader.read_next(timeout_millis=10000).value()
print(value.item, value.cents)
client.close()
