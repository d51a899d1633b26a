"""Facts about those who do not call receive, while owners are killed: none of their wake-ups is
lost, and nothing comes twice or out of order."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from sharing_process import SharingProcess

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, aio

pytestmark = pytest.mark.standard

PATIENCE = 60.0
KILLS = 12


class Seen:
    """What each of several ways to be told of messages was told."""

    def __init__(self, *ways: str) -> None:
        self.numbers: dict[str, list[int]] = {each: [] for each in ways}
        self._changed = threading.Condition()

    def note(self, way: str, message: pulsarx.Message) -> None:
        with self._changed:
            self.numbers[way].append(int(message.data()))
            self._changed.notify_all()

    def wait_for(self, count: int) -> None:
        def is_there() -> bool:
            return all(len(each) >= count for each in self.numbers.values())

        with self._changed:
            assert self._changed.wait_for(is_there, PATIENCE), self.numbers


def owner_of(folder: Path, processes: list[SharingProcess]) -> SharingProcess | None:
    """None: on a busy machine this process had to become it."""
    pid = int((folder / "LOCK").read_text().split()[1])
    return next((each for each in processes if each.pid == pid), None)


def test_each_killed_owner_is_survived_by_listeners_and_coroutines(
    folder: Path, processes: list[SharingProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [SharingProcess(folder) for _ in range(2)]
    processes += others
    monkeypatch.setattr(pulsarx.Client, "_may_own", False)  # before the others have had time to
    seen = Seen("listener", "shared", "reader", "coroutine")

    def tell(way: str) -> object:
        def told(member: object, message: pulsarx.Message) -> None:
            seen.note(way, message)
            if isinstance(member, pulsarx.Consumer):
                member.acknowledge(message)

        return told

    async def receive() -> None:
        async with await aio.Client.open(str(folder)) as client:
            start = InitialPosition.Earliest
            consumer = await client.subscribe("t", "coroutine", initial_position=start)
            is_last = False
            while not is_last:
                message = await consumer.receive()
                await consumer.acknowledge(message)
                seen.note("coroutine", message)
                is_last = "last" in message.properties()

    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        for way, kind in (("listener", ConsumerType.Exclusive), ("shared", ConsumerType.Shared)):
            client.subscribe("t", way, kind, message_listener=tell(way))
        client.create_reader("t", MessageId.earliest, reader_listener=tell("reader"))
        thread = threading.Thread(target=asyncio.run, args=(receive(),))
        thread.start()
        count = kills = 0
        for _ in range(KILLS):
            for _ in range(5):
                producer.send(b"%d" % count)
                count += 1
            owner = owner_of(folder, others)
            producer.send_async(b"%d" % count, None)
            count += 1
            if owner is not None:
                owner.kill()
                kills += 1
                others.remove(owner)
                others.append(SharingProcess(folder))
                processes.append(others[-1])
            seen.wait_for(count)
        producer.send(b"%d" % count, properties={"last": "yes"})
        thread.join()
        seen.wait_for(count + 1)
    assert kills
    assert all(each == list(range(count + 1)) for each in seen.numbers.values())
