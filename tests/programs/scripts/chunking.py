"""A message larger than an entry goes in chunks and comes as one."""

import hashlib
import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe("films", "archive")
content = bytes(range(256)) * 50_000  # 12.8 MB
producer = client.create_producer("films", chunking_enabled=True)
producer.send(content, properties={"title": "Metropolis"})
producer.send(b"small")
message = consumer.receive(timeout_millis=30000)
print(len(message.data()), message.properties()["title"])
print(hashlib.sha256(message.data()).hexdigest() == hashlib.sha256(content).hexdigest())
consumer.acknowledge(message)
message = consumer.receive(timeout_millis=10000)
print(message.data())
consumer.acknowledge(message)
try:
    client.create_producer("films").send(content)
except pulsar.MessageTooBig as error:
    print("without chunks:", error)
try:
    client.create_producer("films", chunking_enabled=True, batching_enabled=True)
except ValueError as error:
    print("ValueError:", error)
client.close()
