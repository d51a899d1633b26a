"""A producer greets, a consumer of a new subscription listens."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe("hello", "listeners")
producer = client.create_producer("hello")
for number in range(5):
    producer.send(f"hello {number}".encode())
for _ in range(5):
    message = consumer.receive(timeout_millis=10000)
    print(message.data().decode(), message.topic_name(), message.redelivery_count())
    consumer.acknowledge(message)
try:
    consumer.receive(timeout_millis=100)
except pulsar.Timeout as error:
    print("nothing more:", error)
client.close()
