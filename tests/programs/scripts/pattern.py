"""One subscription for all topics whose names match."""

import os
import re

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
producers = {
    name: client.create_producer(f"persistent://public/default/{name}")
    for name in ("log-web", "log-mail", "trace-web")
}
consumer = client.subscribe(
    re.compile("persistent://public/default/log-.*"),
    "grep",
    initial_position=pulsar.InitialPosition.Earliest,
)
for name, producer in producers.items():
    producer.send(name.encode())
found = []
for _ in range(2):
    message = consumer.receive(timeout_millis=20000)
    found.append((message.topic_name(), message.data().decode()))
    consumer.acknowledge(message)
print(sorted(found))
client.close()
