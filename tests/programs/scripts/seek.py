"""A subscription goes back, by id and by time."""

import os
import threading
import time

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe("film", "viewer")
producer = client.create_producer("film")
ids = [producer.send(b"scene %d" % number) for number in range(3)]
threading.Event().wait(0.3)
pause = int(time.time() * 1000)
threading.Event().wait(0.3)
ids += [producer.send(b"scene %d" % number) for number in range(3, 5)]


def watch(count):
    scenes = []
    for _ in range(count):
        message = consumer.receive(timeout_millis=10000)
        consumer.acknowledge(message)
        scenes.append(message.data().decode())
    return scenes


print(watch(5))
consumer.seek(ids[1])
print("after the second:", watch(3))
consumer.seek(pause)
print("after the pause:", watch(2))
consumer.seek(pulsar.MessageId.earliest)
print("from the beginning:", watch(5))
consumer.seek(pulsar.MessageId.latest)
try:
    consumer.receive(timeout_millis=500)
except pulsar.Timeout:
    print("at the end")
client.close()
