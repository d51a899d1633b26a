"""What is not acknowledged comes again."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe(
    "tasks",
    "worker",
    consumer_type=pulsar.ConsumerType.Shared,
    negative_ack_redelivery_delay_ms=100,
)
producer = client.create_producer("tasks")
for name in (b"wash", b"dry"):
    producer.send(name)
first = consumer.receive(timeout_millis=10000)
second = consumer.receive(timeout_millis=10000)
print(first.data(), second.data())
consumer.acknowledge(second)
consumer.negative_acknowledge(first)
again = consumer.receive(timeout_millis=20000)
print(again.data(), again.redelivery_count())
consumer.redeliver_unacknowledged_messages()
again = consumer.receive(timeout_millis=20000)
print(again.data(), again.redelivery_count())
consumer.acknowledge(again)
try:
    consumer.receive(timeout_millis=500)
except pulsar.Timeout:
    print("done")
client.close()
