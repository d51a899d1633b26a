"""A listener is called for each message and acknowledges it."""

import os
import threading

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
heard = []
enough = threading.Event()


def on_message(consumer, message):
    heard.append(message.data().decode())
    consumer.acknowledge(message)
    if len(heard) == 10:
        enough.set()


consumer = client.subscribe("news", "desk", message_listener=on_message)
producer = client.create_producer("news")
for number in range(10):
    producer.send(f"item {number}".encode())
print(enough.wait(30), heard)
try:
    consumer.receive()
except pulsar.InvalidConfiguration as error:
    print("receive beside a listener:", error)
consumer.close()
client.close()
