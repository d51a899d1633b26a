"""Who may publish beside whom."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
Mode = pulsar.ProducerAccessMode
alone = client.create_producer("throne", access_mode=Mode.Exclusive)
alone.send(b"mine")
for mode in (Mode.Exclusive, Mode.Shared):
    try:
        client.create_producer("throne", access_mode=mode)
        print(mode, "admitted")
    except pulsar.PulsarException as error:
        print(mode, type(error).__name__, error)
heir = client.create_producer("throne", access_mode=Mode.ExclusiveWithFencing)
heir.send(b"mine now")
try:
    alone.send(b"still mine")
except pulsar.PulsarException as error:
    print(type(error).__name__, error)
reader = client.create_reader("throne", pulsar.MessageId.earliest)
while reader.has_message_available():
    print(reader.read_next(timeout_millis=10000).data())
client.close()
