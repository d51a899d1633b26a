"""A function of ours chooses the partition."""
# partitions: regions=3

import os

import pulsar

REGIONS = {"north": 0, "south": 1, "east": 2}


def route(message, partitions):
    return REGIONS[message.properties()["region"]] % partitions


client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
print(client.get_topic_partitions("regions"))
consumer = client.subscribe("regions", "atlas")
producer = client.create_producer(
    "regions",
    message_routing_mode=pulsar.PartitionsRoutingMode.CustomPartition,
    message_router=route,
)
for number, region in enumerate(["east", "north", "south", "east"]):
    sent = producer.send(b"%d" % number, properties={"region": region})
    print(region, sent.partition())
found = []
for _ in range(4):
    message = consumer.receive(timeout_millis=10000)
    found.append((message.data().decode(), message.topic_name()))
    consumer.acknowledge(message)
print(sorted(found))
client.close()
