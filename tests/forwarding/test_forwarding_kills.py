"""Facts about forwarders and targets that are killed at random: at the end each message is there
once, in order."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from forwarded import payloads
from seeds import new_seed, scaled
from support.ports import port_to_come_back_to
from support.waiting import wait_until

import pulsarx
from pulsarx import errors
from pulsarx.clock import Deadline

COUNT = 6000
TOPICS = ("first", "second")
# Forwards, and says after each look how many messages it has forwarded. Until it is told to go on
# it leaves most of them, so that it is killed in the middle however late the kill comes.
FORWARDER = """
import sys, select, threading, pulsarx
source, target, durability = sys.argv[1:4]
def opened(place):
    if place.startswith("pulsar://"):
        return place
    return pulsarx.Client(place, durability=durability)
forwarder = pulsarx.Forwarder(opened(source), opened(target), ["first", "second"])
# The entries are small, so that many of them are cut in the middle.
from pulsarx.forwarding import link
link.MESSAGES_MAX = 50
goes_on, settle = threading.Event(), link.Link._settle
def held(one):
    if one._forwarded > 1000:
        goes_on.wait()
    settle(one)
link.Link._settle = held
with forwarder:
    print("ready", flush=True)
    while True:
        if select.select([sys.stdin], [], [], 0.002)[0]:
            if sys.stdin.readline() != "go on\\n":
                break
            goes_on.set()
        print(sum(each["forwarded"] for each in forwarder.status().values()), flush=True)
print("end", flush=True)
"""
# Serves a folder.
SERVER = """
import sys, pulsarx
from pulsarx.server import serve
folder, port = sys.argv[1:3]
with pulsarx.Client(folder, durability="os") as client:
    client.admin.namespaces.set_deduplication("public/default", True)
    with serve(client, port=int(port)):
        print("ready", flush=True)
        sys.stdin.readline()
"""


class Killed:
    """A process that is killed now and then, and started again."""

    def __init__(self, program: str, *arguments: object) -> None:
        self._program = program
        self._arguments = arguments
        self._start()

    def _start(self) -> None:
        self.process = ChildProcess(self._program, *self._arguments)
        assert self.process.line() == "ready"

    def kill(self) -> None:
        self.process.kill()
        self.process.__exit__(None, None, None)

    def kill_and_start(self) -> None:
        self.kill()
        self._start()

    def go_on(self) -> None:
        self.process.tell("go on")

    def end(self) -> None:
        with self.process as process:
            process.tell("end")
            process.end()


def expected(topic: str, count: int) -> list[bytes]:
    return [b"%s %d" % (topic.encode(), number) for number in range(count)]


def fill(client: Any, chance: random.Random, count: int = COUNT) -> None:
    """Batches of all sizes, and messages alone."""
    for topic in TOPICS:
        with client.create_producer(
            topic, batching_enabled=True, batching_max_messages=500, block_if_queue_full=True
        ) as producer:
            for at, payload in enumerate(expected(topic, count)):
                producer.send_async(payload, None, partition_key=f"key-{at % 9}")
                if chance.random() < 0.02:
                    producer.flush()


def come_to(forwarder: Killed, wanted: int, target: Path, count: int = COUNT) -> bool:
    """Until so many messages are forwarded, or all are, or a minute is over; whether the forwarder
    is in the middle."""
    deadline, total = Deadline(60_000), count * len(TOPICS)
    found = same = 0
    while found < wanted and not deadline.expired():
        before, found = found, int(forwarder.process.line())
        same = same + 1 if found == before else 0
        if same % 50 == 49 and stored(target) >= total:
            break
    return 0 < found < total


def stored(folder: Path) -> int:
    """By the owner."""
    topics = pulsarx.admin.Admin.at(folder).topics
    found = 0
    for topic in TOPICS:
        with suppress(errors.TopicNotFound):
            found += topics.stats(topic)["messages"]
    return found


def lag(folder: Path) -> int:
    """By the owner."""
    found = 0
    admin = pulsarx.admin.Admin.at(folder)
    for topic in TOPICS:
        try:
            subscriptions = admin.topics.stats(topic)["subscriptions"]
        except errors.TopicNotFound:
            return -1
        if "forward" not in subscriptions:
            return -1
        found += subscriptions["forward"]["msg_backlog"]
    return found


def check(folder: Path, count: int = COUNT) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        for topic in TOPICS:
            assert payloads(client, topic) == expected(topic, count), topic


@pytest.mark.parametrize("durability", ["os", "sync"])
def test_a_forwarder_that_is_killed_with_both_its_folders(tmp_path: Path, durability: str) -> None:
    chance = random.Random(new_seed())
    source, target = tmp_path / "source", tmp_path / "target"
    with pulsarx.Client(source, durability="os") as client:
        fill(client, chance)
    forwarder = Killed(FORWARDER, source, target, durability)
    came = []
    for _ in range(scaled(10)):
        came.append(come_to(forwarder, chance.randrange(1, 1000), target))
        forwarder.kill_and_start()
    assert came[0]
    forwarder.go_on()
    wait_until(lambda: lag(source) == 0)
    forwarder.end()
    check(target)


def test_a_forwarder_that_is_killed_beside_its_cluster(tmp_path: Path) -> None:
    pytest.importorskip("_pulsar")
    chance = random.Random(new_seed())
    source, target, port = tmp_path / "source", tmp_path / "target", port_to_come_back_to()
    with pulsarx.Client(source, durability="os") as client:
        fill(client, chance)
    server = Killed(SERVER, target, port)
    forwarder = Killed(FORWARDER, source, f"pulsar://127.0.0.1:{port}", "os")
    came = []
    for _ in range(scaled(10)):
        came.append(come_to(forwarder, chance.randrange(1, 1000), target))
        forwarder.kill_and_start()
    assert came[0]
    forwarder.go_on()
    wait_until(lambda: lag(source) == 0)
    forwarder.end()
    server.end()
    check(target)


def test_a_cluster_that_is_killed_under_its_forwarder(tmp_path: Path) -> None:
    pytest.importorskip("_pulsar")
    chance = random.Random(new_seed())
    source, target, port = tmp_path / "source", tmp_path / "target", port_to_come_back_to()
    with pulsarx.Client(source, durability="os") as client:
        fill(client, chance)
    server = Killed(SERVER, target, port)
    forwarder = Killed(FORWARDER, source, f"pulsar://127.0.0.1:{port}", "os")
    so_far = 0
    came = []
    for _ in range(scaled(10)):
        so_far += chance.randrange(1, 1000)
        came.append(come_to(forwarder, so_far, target))
        server.kill_and_start()
        forwarder.go_on()
    assert came[0]
    wait_until(lambda: lag(source) == 0)
    forwarder.end()
    server.end()
    check(target)


@pytest.mark.long
def test_both_are_killed_while_messages_are_published(tmp_path: Path) -> None:
    pytest.importorskip("_pulsar")
    chance = random.Random(new_seed())
    source, target, port = tmp_path / "source", tmp_path / "target", port_to_come_back_to()
    with pulsarx.Client(source, durability="os") as client:
        fill(client, chance)
        server = Killed(SERVER, target, port)
        # It is a guest of this process.
        forwarder = Killed(FORWARDER, source, f"pulsar://127.0.0.1:{port}", "os")
        producers = {each: client.create_producer(each) for each in TOPICS}
        count = COUNT
        came = []
        for _ in range(scaled(10)):
            came.append(come_to(forwarder, chance.randrange(1, 1000), target, count))
            server.kill()
            for number in range(count, count + 20):
                for topic, producer in producers.items():
                    producer.send(b"%s %d" % (topic.encode(), number))
            count += 20
            forwarder.kill()
            server._start()
            forwarder._start()
        assert came[0]
        forwarder.go_on()
        wait_until(lambda: lag(source) == 0)
        forwarder.end()
    server.end()
    check(target, count)


PUBLISHER = """
import sys, pulsarx
folder, topic = sys.argv[1:3]
producer = pulsarx.Client(folder, durability="os").create_producer(topic)
number = 0
print("ready", flush=True)
while True:
    producer.send(b"%s %d" % (topic.encode(), number))
    number += 1
    print(number, flush=True)
"""


def test_an_owner_that_is_killed_beside_its_forwarder(tmp_path: Path) -> None:
    """The forwarder, which was its guest, goes on as the next owner."""
    source, target = tmp_path / "source", tmp_path / "target"
    topic = "persistent://public/default/first"
    with ChildProcess(PUBLISHER, source, "first") as owner:
        assert owner.line() == "ready"
        with pulsarx.Client(target, durability="os") as centre:
            with pulsarx.Forwarder(source, centre, "first") as forwarder:
                wait_until(lambda: forwarder.status().get(topic, {}).get("forwarded", 0) > 100)
                owner.kill()
                sent = int(owner.rest()[-1])
                wait_until(lambda: len(payloads(centre, "first")) >= sent)
                wait_until(lambda: forwarder.status()[topic]["lag"] == 0)
            found = payloads(centre, "first")
    assert found == expected("first", len(found))
    assert len(found) in (sent, sent + 1)


def test_a_fetcher_that_is_killed_and_its_cluster(tmp_path: Path) -> None:
    pytest.importorskip("_pulsar")
    chance = random.Random(new_seed())
    source, target, port = tmp_path / "source", tmp_path / "target", port_to_come_back_to()
    with pulsarx.Client(source, durability="os") as client:
        fill(client, chance)
    server = Killed(SERVER, source, port)
    fetcher = Killed(FORWARDER, f"pulsar://127.0.0.1:{port}", target, "sync")
    came = []
    for _ in range(scaled(10)):
        came.append(come_to(fetcher, chance.randrange(1, 1000), target))
        if chance.random() < 0.5:
            fetcher.kill_and_start()
        else:
            server.kill_and_start()
    assert came[0]
    fetcher.go_on()
    wait_until(lambda: lag(source) == 0)
    fetcher.end()
    server.end()
    check(target)
