"""What travels with a message besides its payload."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe("orders", "billing")
producer = client.create_producer("orders", producer_name="till-3", properties={"shop": "north"})
producer.send(
    b"three apples",
    properties={"currency": "EUR", "amount": "4.20"},
    partition_key="ada",
    ordering_key="shelf 7",
    event_timestamp=1_600_000_000_000,
)
producer.send(b"plain")
producer.send("ünïcode".encode(), partition_key="schlüssel", properties={"länge": "7"})
for _ in range(3):
    message = consumer.receive(timeout_millis=10000)
    print(message.data().decode())
    print("  key", repr(message.partition_key()), "ordering key", repr(message.ordering_key()))
    print("  properties", sorted(message.properties().items()))
    print("  event time", message.event_timestamp(), "producer", message.producer_name())
    print("  published", message.publish_timestamp() > 1_600_000_000_000)
    print("  schema version", repr(message.schema_version()), message.has_null_value())
    consumer.acknowledge(message)
client.close()
