"""A message without a value, and a key that goes out of a table view."""

import os
import threading

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe("members", "log")
producer = client.create_producer("members")
producer.send(b"here", partition_key="ada")
producer.send(b"here", partition_key="bob")
view = client.create_table_view("members")
print(len(view), view.get("ada"))
gone = threading.Event()
view.for_each_and_listen(lambda key, value: key == "ada" and not value and gone.set())
producer.send(None, partition_key="ada")
print(gone.wait(30))
for _ in range(3):
    message = consumer.receive(timeout_millis=10000)
    print(message.partition_key(), message.data(), message.has_null_value())
    consumer.acknowledge(message)
print(view.get("bob"))
client.close()
