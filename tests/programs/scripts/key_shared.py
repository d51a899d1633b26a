"""Two consumers share the keys; each key has one of them."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
low = pulsar.ConsumerKeySharedPolicy(
    key_shared_mode=pulsar.KeySharedMode.Sticky, sticky_ranges=[(0, 32767)]
)
high = pulsar.ConsumerKeySharedPolicy(
    key_shared_mode=pulsar.KeySharedMode.Sticky, sticky_ranges=[(32768, 65535)]
)
consumers = {
    name: client.subscribe(
        "steps",
        "walkers",
        consumer_type=pulsar.ConsumerType.KeyShared,
        key_shared_policy=policy,
    )
    for name, policy in (("low", low), ("high", high))
}
producer = client.create_producer("steps")
for number in range(24):
    producer.send(b"%d" % number, partition_key=f"walker-{number % 8}")
for name, consumer in consumers.items():
    steps = {}
    while True:
        try:
            message = consumer.receive(timeout_millis=1000)
        except pulsar.Timeout:
            break
        steps.setdefault(message.partition_key(), []).append(int(message.data()))
        consumer.acknowledge(message)
    for key in sorted(steps):
        print(name, key, steps[key])
client.close()
