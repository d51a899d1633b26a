"""Messages of one key stay together and in order."""
# partitions: accounts=4

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe("accounts", "audit")
producer = client.create_producer("accounts", batching_enabled=True)
keys = ["ada", "bob", "cyd", "dan", "eve"]
for number in range(25):
    producer.send_async(b"%d" % number, None, partition_key=keys[number % 5])
producer.flush()
places, values = {}, {}
for _ in range(25):
    message = consumer.receive(timeout_millis=10000)
    places.setdefault(message.partition_key(), set()).add(message.message_id().partition())
    values.setdefault(message.partition_key(), []).append(int(message.data()))
    consumer.acknowledge(message)
for key in keys:
    print(key, len(places[key]), values[key])
client.close()
