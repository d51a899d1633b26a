"""A producer counts what it sends, from where it is told."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
producer = client.create_producer("counted", producer_name="counter")
print(producer.producer_name(), producer.last_sequence_id())
producer.send(b"a")
producer.send(b"b")
print(producer.last_sequence_id())
producer.send(b"c", sequence_id=40)
print(producer.last_sequence_id())
producer.send(b"d")
print(producer.last_sequence_id())
other = client.create_producer("counted", initial_sequence_id=1000)
other.send(b"e")
print(other.last_sequence_id(), other.topic(), bool(other.producer_name()))
client.close()
