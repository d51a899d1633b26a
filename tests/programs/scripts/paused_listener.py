"""A listener that is paused hears nothing until it goes on."""

import os
import queue

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
heard = queue.Queue()


def on_message(consumer, message):
    consumer.acknowledge(message)
    heard.put(message.data())


consumer = client.subscribe("radio", "kitchen", message_listener=on_message)
producer = client.create_producer("radio")
producer.send(b"weather")
print(heard.get(timeout=10))
consumer.pause_message_listener()
producer.send(b"music")
try:
    print(heard.get(timeout=0.3))
except queue.Empty:
    print("silence")
consumer.resume_message_listener()
print(heard.get(timeout=10))
client.close()
