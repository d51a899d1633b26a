"""Two workers share a queue; what one leaves, the other gets."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))


def hire():
    return client.subscribe(
        "bricks", "builders", consumer_type=pulsar.ConsumerType.Shared, receiver_queue_size=1
    )


ann, ben = hire(), hire()
producer = client.create_producer("bricks")
for number in range(10):
    producer.send(b"%d" % number)
kept = ann.receive(timeout_millis=10000)
laid = []
for worker in (ben, ann, ben):
    message = worker.receive(timeout_millis=10000)
    laid.append(int(message.data()))
    worker.acknowledge(message)
ann.close()  # with a brick in her hands
while len(laid) < 10:
    message = ben.receive(timeout_millis=20000)
    laid.append(int(message.data()))
    ben.acknowledge(message)
print(sorted(laid), int(kept.data()) in laid)
client.close()
