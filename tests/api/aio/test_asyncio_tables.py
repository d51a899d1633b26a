"""Facts about tables in asyncio: the calls are coroutines, and the loop goes on meanwhile."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any

import pyarrow as pa
from aio_loops import Run

from pulsarx import aio
from pulsarx.schema import StringSchema

FRAME = pa.table({"k": ["a", "b"], "day": [date(2026, 1, 1), None]})


def test_frames_go_to_topics_and_back(run: Run) -> None:
    async def main() -> None:
        async with await aio.Client.open("memory:") as client:
            last = await client.send_rows("days", FRAME, key="k")
            assert last is not None
            assert (await client.read_table("days")).equals(FRAME)
            table = await client.read_table("days", ["day"], keys="a", metadata=["key"])
            assert table.to_pylist() == [{"day": date(2026, 1, 1), "__key__": "a"}]
            scan = await client.scan("days", metadata=(), batch_size=1)
            assert (await asyncio.to_thread(scan.to_arrow)).equals(FRAME)

    run(main())


def test_the_loop_goes_on_while_rows_are_sent(run: Run) -> None:
    async def main() -> None:
        async with await aio.Client.open("memory:") as client:
            loop = asyncio.get_running_loop()
            turned = asyncio.Event()

            def rows() -> Any:
                yield {"n": 1}
                asyncio.run_coroutine_threadsafe(turn(), loop).result(60)
                yield {"n": 2}

            async def turn() -> None:
                turned.set()

            await client.send_rows("orders", rows())
            assert turned.is_set()
            assert (await client.read_table("orders"))["n"].to_pylist() == [1, 2]

    run(main())


def test_a_table_view_is_a_table(run: Run) -> None:
    async def main() -> None:
        async with await aio.Client.open("memory:") as client:
            schema = StringSchema()
            producer = await client.create_producer("texts", schema=schema)
            await producer.send("one", partition_key="a")
            view = await client.create_table_view("texts", schema=schema)
            assert view.to_arrow().to_pylist() == [{"__key__": "a", "value": "one"}]

    run(main())
