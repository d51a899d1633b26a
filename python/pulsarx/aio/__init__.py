"""PulsarX for asyncio: the calls of `pulsarx` as coroutines. Names and arguments are those of the
official client's `pulsar.asyncio`.

    import asyncio
    from pulsarx import aio

    async def main() -> None:
        async with await aio.Client.open("events") as client:
            producer = await client.create_producer("orders")
            async with await client.subscribe("orders", "billing") as consumer:
                await producer.send(b"hello")
                async for message in consumer:
                    await consumer.acknowledge(message)

    asyncio.run(main())

Errors are those of `pulsarx`. A call that is cancelled gives back what was made for it; a receive
that is cancelled has taken nothing. Clients, producers and consumers may be used in several loops.
"""

from __future__ import annotations

from pulsarx.aio.client import Client
from pulsarx.aio.consumer import Consumer
from pulsarx.aio.producer import Producer
from pulsarx.aio.reader import Reader
from pulsarx.aio.table_view import TableView
from pulsarx.aio.transaction import Transaction

__all__ = ["Client", "Consumer", "Producer", "Reader", "TableView", "Transaction"]
