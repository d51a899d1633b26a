"""A message that fails again and again goes to the dead letter topic."""

import os

import pulsar

client = pulsar.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
policy = pulsar.ConsumerDeadLetterPolicy(
    max_redeliver_count=2, dead_letter_topic="parcels-lost", initial_subscription_name="desk"
)
consumer = client.subscribe(
    "parcels",
    "delivery",
    consumer_type=pulsar.ConsumerType.Shared,
    negative_ack_redelivery_delay_ms=100,
    dead_letter_policy=policy,
)
lost = client.subscribe("parcels-lost", "desk", initial_position=pulsar.InitialPosition.Earliest)
producer = client.create_producer("parcels")
producer.send(b"no address", partition_key="x", properties={"weight": "2"})
for _ in range(3):
    message = consumer.receive(timeout_millis=20000)
    print("tried", message.data(), message.redelivery_count())
    consumer.negative_acknowledge(message)
letter = lost.receive(timeout_millis=20000)
print("lost", letter.data(), letter.partition_key(), letter.properties()["weight"])
print(letter.properties()["REAL_TOPIC"], "ORIGIN_MESSAGE_ID" in letter.properties())
lost.acknowledge(letter)
print(policy.max_redeliver_count, policy.dead_letter_topic, policy.initial_subscription_name)
client.close()
