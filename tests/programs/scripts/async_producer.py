"""Sends without waiting; callbacks come in the order of sending."""

import os
import threading

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe("metrics", "store")
producer = client.create_producer(
    "metrics", batching_enabled=True, batching_max_publish_delay_ms=10, block_if_queue_full=True
)
answered = []
done = threading.Event()


def sent(result, message_id):
    answered.append((result, message_id.batch_index()))
    if len(answered) == 100:
        done.set()


for number in range(100):
    producer.send_async(b"%d" % number, sent)
producer.flush()
print("all answered:", done.wait(30))
print("results:", {str(result) for result, _ in answered})
print("in batches:", all(index >= 0 for _, index in answered))

values = []
for _ in range(100):
    message = consumer.receive(timeout_millis=10000)
    values.append(int(message.data()))
    consumer.acknowledge(message)
print("in order:", values == list(range(100)))
client.close()
