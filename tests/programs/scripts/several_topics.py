"""A consumer of a list of topics."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
topics = ["fruit", "vegetables", "bread"]
consumer = client.subscribe(topics, "basket")
for topic in topics:
    producer = client.create_producer(topic)
    for number in range(2):
        producer.send(f"{topic} {number}".encode())
found = []
for _ in range(6):
    message = consumer.receive(timeout_millis=10000)
    found.append((message.topic_name(), message.data().decode()))
    consumer.acknowledge(message)
for topic, text in sorted(found):
    print(topic, text)
plain = pulsar.MessageId.deserialize(message.message_id().serialize())
try:
    consumer.acknowledge(plain)
    print("acknowledged")
except pulsar.OperationNotSupported as error:
    print("an id without its topic:", error)
client.close()
