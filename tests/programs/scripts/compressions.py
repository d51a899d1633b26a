"""Each way of compressing gives back what was sent."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
consumer = client.subscribe("letters", "reader")
text = b"to be or not to be, " * 500
kinds = ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY")
for kind in kinds:
    producer = client.create_producer(
        "letters", compression_type=getattr(pulsar.CompressionType, kind)
    )
    producer.send(text, properties={"kind": kind})
    producer.close()
for _ in kinds:
    message = consumer.receive(timeout_millis=10000)
    print(message.properties()["kind"], len(message.data()), message.data() == text)
    consumer.acknowledge(message)
print(
    pulsar.CompressionType.LZ4, repr(pulsar.CompressionType.ZSTD), int(pulsar.CompressionType.ZLib)
)
client.close()
