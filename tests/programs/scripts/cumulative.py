"""One acknowledgement for all messages up to one."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe("pages", "bookmark")
producer = client.create_producer("pages")
for number in range(6):
    producer.send(b"page %d" % number)
messages = [consumer.receive(timeout_millis=10000) for _ in range(6)]
consumer.acknowledge_cumulative(messages[3])
consumer.close()
consumer = client.subscribe("pages", "bookmark")
for _ in range(2):
    print(consumer.receive(timeout_millis=10000).data().decode())
consumer.close()
shared = client.subscribe("pages", "club", consumer_type=pulsar.ConsumerType.Shared)
message_id = producer.send(b"page 6")
try:
    shared.acknowledge_cumulative(shared.receive(timeout_millis=10000))
except pulsar.CumulativeAcknowledgementNotAllowedError as error:
    print("shared:", error)
client.close()
