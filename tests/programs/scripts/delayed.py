"""Messages that are to come later do."""

import datetime
import os
import time

import pulsar

TICK_MS = 1000  # by which a broker may be early


def now():
    return int(time.time() * 1000)


client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe("reminders", "me", consumer_type=pulsar.ConsumerType.Shared)
producer = client.create_producer("reminders")
due = {"now": 0, "in two seconds": now() + 2000, "in four seconds": now() + 4000}
producer.send(b"in four seconds", deliver_after=datetime.timedelta(seconds=4))
producer.send(b"in two seconds", deliver_at=due["in two seconds"])
producer.send(b"now")
found = []
for _ in due:
    message = consumer.receive(timeout_millis=20000)
    name = message.data().decode()
    found.append(f"{name}: {'on time' if now() > due[name] - TICK_MS else 'too early'}")
    consumer.acknowledge(message)
print(*sorted(found), sep="\n")
client.close()
