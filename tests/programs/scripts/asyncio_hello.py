"""The same greetings with coroutines."""

import asyncio
import os

import pulsar
from pulsar.asyncio import Client


async def main():
    client = Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
    consumer = await client.subscribe(
        "async-hello", "listeners", initial_position=pulsar.InitialPosition.Earliest
    )
    producer = await client.create_producer("async-hello")
    sent = await asyncio.gather(*(producer.send(b"hello %d" % number) for number in range(5)))
    print(len(sent), all(isinstance(each, pulsar.MessageId) for each in sent))
    for _ in range(5):
        message = await consumer.receive()
        print(message.data().decode(), message.redelivery_count())
        await consumer.acknowledge(message)
    print(producer.topic(), consumer.topic(), consumer.subscription_name())
    await producer.close()
    await consumer.close()
    await client.close()


asyncio.run(main())
