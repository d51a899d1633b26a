"""A view of the last value of each key."""

import os
import threading

import pulsar
from pulsar.schema import StringSchema

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
producer = client.create_producer("stock", schema=StringSchema())
for item, count in (("tea", "4"), ("milk", "2"), ("tea", "3")):
    producer.send(count, partition_key=item)
view = client.create_table_view("stock", schema=StringSchema())
print(len(view), view.get("tea"), view.get("milk"), view.get("coffee"))
seen = {}
view.for_each(lambda key, value: seen.update({key: value}))
print(sorted(seen.items()))

heard = []
changed = threading.Event()


def listen(key, value):
    heard.append((key, value))
    if len(heard) == 4:
        changed.set()


view.for_each_and_listen(listen)
producer.send("9", partition_key="coffee")
producer.send("1", partition_key="tea")
print(changed.wait(30), sorted(heard[:2]), heard[2:])
print(view.get("coffee"), view.get("tea"))
view.close()
client.close()
