"""Ids are kept as bytes and compared."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
producer = client.create_producer("shelf")
ids = [producer.send(b"book %d" % number) for number in range(3)]
print(ids[0] < ids[1] < ids[2], ids[0] == ids[0], ids[2] >= ids[1], ids[0] != ids[1])
kept = ids[1].serialize()
back = pulsar.MessageId.deserialize(kept)
print(type(kept).__name__, back == ids[1])
reader = client.create_reader("shelf", back, start_message_id_inclusive=True)
print(reader.read_next(timeout_millis=10000).data())
made = pulsar.MessageId(partition=1, ledger_id=2, entry_id=3, batch_index=4)
print(made, made.partition(), made.ledger_id(), made.entry_id(), made.batch_index())
print(pulsar.MessageId.earliest, pulsar.MessageId.latest)
consumer = client.subscribe("shelf", "end", initial_position=pulsar.InitialPosition.Earliest)
print(consumer.get_last_message_id() == ids[2])
try:
    pulsar.MessageId.deserialize(b"nonsense")
except Exception as error:
    print(type(error).__name__)
client.close()
