"""Facts about the surface of pulsar.asyncio."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from aio_loops import Run, turns
from child_process import run_program

from pulsarx import MessageId, Result, errors
from pulsarx.compat import pulsar_asyncio as surface

NAMES = ["Client", "Producer", "Consumer", "Reader", "PulsarException"]

OFFICIAL = """
import inspect, json
import pulsar.asyncio as official

def form(call):
    kinds = inspect.iscoroutinefunction(call)
    try:
        found = inspect.signature(call).parameters.values()
    except ValueError:
        return None
    return kinds, [(each.name, str(each.default), str(each.kind)) for each in found]

print(json.dumps({
    name: {key: form(value) for key, value in vars(getattr(official, name)).items()
           if inspect.isfunction(value) and (not key.startswith("_") or key == "__init__")}
    for name in %r
}))
"""


def form(call: Any) -> Any:
    found = inspect.signature(call).parameters.values()
    return [
        inspect.iscoroutinefunction(call),
        [[each.name, str(each.default), str(each.kind)] for each in found],
    ]


def plain(text: str) -> str:
    """A default, whatever its enumeration's repr is like."""
    return re.sub(r"^.*[.](\w+)$", r"\1", text)


@pytest.mark.standard
@pytest.mark.skipif(find_spec("_pulsar") is None, reason="the official client is not installed")
def test_names_and_signatures_are_the_official_ones() -> None:
    (line,) = run_program(OFFICIAL % NAMES)
    for name, calls in json.loads(line).items():
        ours = getattr(surface, name)
        for call, expected in calls.items():
            made = form(getattr(ours, call))
            assert made[0] == expected[0], (name, call)
            for one, other in zip(made[1], expected[1], strict=True):
                assert (one[0], plain(one[1]), one[2]) == (other[0], plain(other[1]), other[2])


def test_its_exception_has_a_result_and_a_text() -> None:
    assert str(surface.PulsarException(Result.Timeout)) == f"{Result.Timeout.value} Timeout"
    said = surface.PulsarException(Result.ConsumerBusy, "why")
    assert said.error() == Result.ConsumerBusy and str(said).endswith(" ConsumerBusy: why")
    assert not issubclass(surface.PulsarException, errors.PulsarException)


def test_a_program_of_the_official_client_runs(run: Run) -> None:
    async def main() -> None:
        client = surface.Client("memory:official", operation_timeout_seconds=5)
        producer = await client.create_producer("t")
        consumer = await client.subscribe("t", "s")
        reader = await client.create_reader("t", MessageId.earliest)
        sends = [asyncio.create_task(producer.send(b"%d" % number)) for number in range(20)]
        await producer.flush()
        ids = await asyncio.gather(*sends)
        for number in range(20):
            message = await consumer.receive()
            assert message.data() == b"%d" % number and message.message_id() == ids[number]
            await consumer.acknowledge(message)
        assert (await reader.read_next()).data() == b"0" and await reader.has_message_available()
        assert await client.get_topic_partitions("t") == ["persistent://public/default/t"]
        await consumer.seek(MessageId.earliest)
        assert (await consumer.receive()).data() == b"0"
        with pytest.raises(surface.PulsarException) as busy:
            await client.subscribe("t", "s")
        assert busy.value.error() == Result.ConsumerBusy
        assert isinstance(busy.value.__cause__, errors.ConsumerBusy)
        await reader.close()
        await producer.close()
        await client.close()
        for call in (consumer.receive(), producer.send(b"late"), client.close()):
            with pytest.raises(surface.PulsarException) as closed:
                await call
            assert closed.value.error() == Result.AlreadyClosed

    run(main())


def test_futures_are_set_from_any_thread(run: Run) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        class Error:
            error, message = Result.Timeout, "late"

        first, second, third, fourth = (loop.create_future() for _ in range(4))
        await asyncio.to_thread(surface._set_future, first, Result.Ok, 7)
        await asyncio.to_thread(surface._set_future, second, Result.Timeout, None)
        await asyncio.to_thread(surface._set_future_v2, third, Error())
        await asyncio.to_thread(surface._set_future_v2, fourth, 8)
        assert await first == 7 and await fourth == 8
        with pytest.raises(surface.PulsarException, match=r"Timeout$"):
            await second
        with pytest.raises(surface.PulsarException, match="late"):
            await third
        surface._set_future(first, Result.Ok, 9)
        await turns()
        assert first.result() == 7

    run(main())


def test_it_is_where_the_alias_looks() -> None:
    assert Path(surface.__file__).name == "pulsar_asyncio.py"
