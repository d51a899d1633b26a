"""The second consumer takes over when the first one leaves."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))


def attach(name):
    return client.subscribe(
        "heartbeat", "watch", consumer_type=pulsar.ConsumerType.Failover, consumer_name=name
    )


first, second = attach("a"), attach("b")
producer = client.create_producer("heartbeat")
for number in range(4):
    producer.send(b"beat %d" % number)
for _ in range(2):
    message = first.receive(timeout_millis=10000)
    print("a", message.data().decode())
    first.acknowledge(message)
try:
    second.receive(timeout_millis=200)
except pulsar.Timeout:
    print("b has nothing")
first.close()
for _ in range(2):
    message = second.receive(timeout_millis=20000)
    print("b", message.data().decode())
    second.acknowledge(message)
client.close()
