"""Messages that are to come later do."""

import datetime
import os
import time

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe("reminders", "me", consumer_type=pulsar.ConsumerType.Shared)
producer = client.create_producer("reminders")
producer.send(b"first")
in_two_seconds = int(time.time() * 1000) + 2000
producer.send(b"in four seconds", deliver_after=datetime.timedelta(seconds=4))
producer.send(b"in two seconds", deliver_at=in_two_seconds)
producer.send(b"now")
for _ in range(4):
    message = consumer.receive(timeout_millis=20000)
    print(message.data().decode())
    consumer.acknowledge(message)
client.close()
