"""Readers begin where they are told, and need no acknowledgement."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
producer = client.create_producer("journal")
ids = [producer.send(f"entry {number}".encode()) for number in range(6)]


def rest_of(reader):
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(timeout_millis=10000).data().decode())
    reader.close()
    return found


print("earliest:", rest_of(client.create_reader("journal", pulsar.MessageId.earliest)))
print("latest:", rest_of(client.create_reader("journal", pulsar.MessageId.latest)))
print("after the third:", rest_of(client.create_reader("journal", ids[2])))
inclusive = client.create_reader("journal", ids[2], start_message_id_inclusive=True)
print("from the third:", rest_of(inclusive))

again = client.create_reader("journal", pulsar.MessageId.earliest)
print(again.topic(), again.read_next(timeout_millis=10000).data())
again.seek(ids[4])
print("after a seek:", again.read_next(timeout_millis=10000).data())
try:
    again.read_next(timeout_millis=100)
except pulsar.Timeout as error:
    print(type(error).__name__, error)
client.close()
