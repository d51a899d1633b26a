"""Several messages are taken at once."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
policy = pulsar.ConsumerBatchReceivePolicy(4, 1024 * 1024, 500)
consumer = client.subscribe("rows", "loader", batch_receive_policy=policy)
producer = client.create_producer("rows")
for number in range(10):
    producer.send(b"%d" % number)
taken = []
while len(taken) < 10:
    messages = consumer.batch_receive()
    print(len(messages) <= 4, end=" ")
    for message in messages:
        taken.append(int(message.data()))
        consumer.acknowledge(message)
print(taken)
print(list(consumer.batch_receive()))
try:
    pulsar.ConsumerBatchReceivePolicy(0, 0, 0)
except Exception as error:
    print(type(error).__name__, error)
client.close()
