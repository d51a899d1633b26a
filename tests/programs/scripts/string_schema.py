"""Text in, text out."""

import os

import pulsar
from pulsar.schema import StringSchema

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe("notes", "archive", schema=StringSchema())
producer = client.create_producer("notes", schema=StringSchema())
producer.send("grüße")
producer.send("")
for _ in range(2):
    message = consumer.receive(timeout_millis=10000)
    print(repr(message.value()), message.data())
    consumer.acknowledge(message)
try:
    producer.send(b"bytes")
except TypeError as error:
    print("TypeError:", error)
try:
    client.create_producer("other-notes").send("text without a schema")
except TypeError as error:
    print("TypeError:", error)
client.close()
