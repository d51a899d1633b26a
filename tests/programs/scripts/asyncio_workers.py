"""Two coroutines share the work of a queue; what comes late is cancelled."""

import asyncio
import os

import pulsar
import pulsar.asyncio


async def work(consumer, done):
    while True:
        message = await consumer.receive()
        done.append(int(message.data()))
        await consumer.acknowledge(message)


async def main():
    client = pulsar.asyncio.Client(os.environ.get("PULSAR_URL", "pulsar://localhost:6650"))
    consumers = [
        await client.subscribe("jobs", "workers", consumer_type=pulsar.ConsumerType.Shared)
        for _ in range(2)
    ]
    producer = await client.create_producer("jobs", batching_enabled=False)
    done = []
    workers = [asyncio.ensure_future(work(consumer, done)) for consumer in consumers]
    for number in range(20):
        await producer.send(str(number).encode())
    while len(done) < 20:
        await asyncio.sleep(0.01)
    print(sorted(done) == list(range(20)))
    for worker in workers:
        worker.cancel()
    print([type(each).__name__ for each in await asyncio.gather(*workers, return_exceptions=True)])
    try:
        await client.create_producer("persistent://one/two")
    except pulsar.asyncio.PulsarException as error:
        print(error.error(), "|", error)
    await client.close()


asyncio.run(main())
