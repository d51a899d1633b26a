"""Makes public calls while one allocation of the process fails, in whichever thread, and looks
afterwards whether anything is lost or does not work any more. For test_failing_memory.

failing_calls.py <folder> <calls> <how many of the allocations>

Each in a process of its own, forked from this one, which has imported all.
"""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from seeds import seed_of, some_of

import pulsarx
import pulsarx.admin
import pulsarx.processes.guest.folders
from pulsarx import AlreadyClosed, Client, InitialPosition, MessageId, PulsarException

HANG_SECONDS = 60
WAIT_MS = 30_000
COUNTS_ONLY = -1
ROUND_MAX = 400
ONE = os.environ.get("FAILING_CALLS_AT")  # to repeat one
# What the C library ends a process with in which the variables of a thread find no memory.
NO_THREAD_VARIABLES = 127
MEMORY = ctypes.CDLL(None)
MEMORY.memory_fails_anywhere.argtypes = [ctypes.c_long]
MEMORY.memory_counted_anywhere.restype = ctypes.c_long


class World:
    """A client with a producer and a subscription of one topic, and what it was told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.confirmed: list[bytes] = []
        self.acknowledged: set[bytes] = set()
        self.in_doubt: set[bytes] = set()
        self.received: list[Any] = []
        self.told_count = 0

    def open(self) -> None:
        self.client = Client(self.folder)
        self.producer = self.client.create_producer("t")
        self.consumer = self.client.subscribe("t", "s", initial_position=InitialPosition.Earliest)

    def attempt(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """What a call returns while memory fails, or None where it has none."""
        try:
            MEMORY.memory_counts_anywhere(1)
            return call(*arguments)
        except (MemoryError, PulsarException):
            return None
        except RuntimeError as error:  # Python has no memory for a thread, a lock
            assert str(error).startswith("can't "), error
            return None
        except SystemError as error:  # Python before 3.12 has no memory for a frame
            assert str(error) == "error return without exception set", error
            return None
        finally:
            quiet()

    def send(self, content: bytes) -> None:
        self.confirmed.append(content) if self.attempt(self.producer.send, content) else None

    def publish(self) -> None:
        for number in range(4):
            self.send(b"s%d" % number)
        contents = [b"a%d" % number for number in range(4)]
        taken = sum(bool(self.attempt(self.send_later, content)) for content in contents)
        self.attempt(self.producer.flush)
        self.producer.flush()
        assert self.told_count >= taken, (self.told_count, taken)

    def send_later(self, content: bytes) -> bool:
        self.producer.send_async(content, self.told)
        return True

    def told(self, *_: object) -> None:
        self.told_count += 1  # which needs no memory

    def receive(self) -> None:
        for _ in range(6):
            message = self.attempt(self.consumer.receive, 1000)
            if message is not None:
                self.received.append(message)

    def acknowledge(self) -> None:
        self.received = [self.consumer.receive(WAIT_MS) for _ in range(6)]
        for message in self.received:
            if self.attempt(self.acknowledge_one, message):
                self.acknowledged.add(message.data())
            else:
                self.in_doubt.add(message.data())
        self.received = []

    def acknowledge_one(self, message: Any) -> bool:
        self.consumer.acknowledge(message)
        return True

    def close(self) -> None:
        self.attempt(self.client.close)

    def attach(self) -> None:
        """Beside another process that owns the folder."""
        self.client = self.attempt(Client, self.folder) or Client(self.folder)
        self.producer = self.attempt(self.client.create_producer, "t") or (
            self.client.create_producer("t")
        )
        self.send(b"guest")

    def prepare(self) -> None:
        self.open()
        for number in range(8):
            self.producer.send(b"p%d" % number)
            self.confirmed.append(b"p%d" % number)

    def check(self) -> None:
        """All that was confirmed is there, once and in order, and the rest works."""
        first = self.confirmed
        with Client(self.folder) as client:
            with client.create_reader("t", MessageId.earliest) as reader:
                found = []
                while reader.has_message_available():
                    found.append(reader.read_next(WAIT_MS).data())
            there = [content for content in found if content in first]
            assert there == first, (there, first)
            producer = client.create_producer("t")
            producer.send(b"last")
            consumer = client.subscribe("t", "s", initial_position=InitialPosition.Earliest)
            while (content := (message := consumer.receive(WAIT_MS)).data()) != b"last":
                assert content not in self.acknowledged, content
                found.remove(content)
                consumer.acknowledge(message)
            missing = set(found) - self.acknowledged - self.in_doubt
            assert not missing, missing


def quiet() -> None:
    try:
        MEMORY.memory_counts_anywhere(0)
    except MemoryError:  # the one
        MEMORY.memory_counts_anywhere(0)


class Owner:
    """Another process that owns the folder, forked before this one opens it."""

    def __init__(self, folder: Path) -> None:
        said, self._says = os.pipe()
        self._told, told = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(told)
            with Client(folder) as client:
                client.create_producer("t").send(b"o")
                client.subscribe("t", "s", initial_position=InitialPosition.Earliest).close()
                os.write(self._says, b".")
                while os.read(self._told, 1):
                    pass
            os._exit(0)
        self._tells = told
        os.read(said, 1)

    def end(self) -> None:
        os.close(self._tells)
        os.waitpid(self._pid, 0)


def in_one_process(calls: Callable[[World], None]) -> Callable[[World], None]:
    def story(world: World) -> None:
        world.prepare()
        calls(world)
        with suppress(AlreadyClosed):
            world.client.close()

    return story


def opened(world: World) -> None:
    world.client = world.attempt(Client, world.folder) or Client(world.folder)
    world.producer = world.attempt(world.client.create_producer, "t") or (
        world.client.create_producer("t")
    )
    subscribe = world.client.subscribe
    if world.attempt(subscribe, "t", "s") is None:
        subscribe("t", "s")
    world.send(b"first")
    world.client.close()


def attached(world: World) -> None:
    owner = Owner(world.folder)
    world.attach()
    world.producer.send(b"then")
    world.confirmed.append(b"then")
    world.client.close()
    owner.end()


def taken_over(world: World) -> None:
    owner = Owner(world.folder)
    world.open()
    world.send(b"before")
    world.attempt(owner.end)
    for number in range(3):
        world.send(b"n%d" % number)
    # One whose link had no memory for an entry ends and says so; the client makes another.
    world.client.create_producer("t").send(b"then")
    world.confirmed.append(b"then")
    world.client.close()


STORIES = {
    "open": opened,
    "publish": in_one_process(World.publish),
    "receive": in_one_process(World.receive),
    "acknowledge": in_one_process(World.acknowledge),
    "close": in_one_process(World.close),
    "attach": attached,
    "take over": taken_over,
}


def run(folder: Path, story: str, number: int) -> int:
    """Fork a process in which one allocation fails; how many there were, or -1: it failed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
            MEMORY.memory_fails_anywhere(number)
            world = World(folder)
            STORIES[story](world)
            os.write(write, b"%d" % MEMORY.memory_counted_anywhere())
            world.check()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    os.close(write)
    counted = os.read(read, 100)
    os.close(read)
    code = os.waitstatus_to_exitcode(status)
    if code == NO_THREAD_VARIABLES:
        return 0
    return int(counted) if code == 0 else -1


def main(folder: str, story: str, how_many: str) -> int:
    logging.getLogger("pulsarx").setLevel(logging.CRITICAL + 1)
    path = Path(folder)
    with Client(path / "warm") as client:  # imports what is imported late
        client.create_producer("t").send(b"1")
    pulsarx.admin
    count = run(path / "counted", story, COUNTS_ONLY)
    assert count > 0, count
    # All in several rounds of a campaign, for they are thousands.
    step = max(count // ROUND_MAX, 1)
    numbers = [int(ONE)] if ONE else some_of(range(seed_of(0) % step, count, step), int(how_many))
    bad = [number for number in numbers if run(path / str(number), story, number) < 0]
    print(f"{story}: {len(numbers)} of {count} allocations failed, {bad} left something wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
