"""Facts about processes that share a folder and are killed at random: nothing is lost, nothing is
stored twice, and each producer's messages are in order."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from child_process import ChildProcess
from seeds import new_seed, scaled

import pulsarx

# Publishes without an end; says before each message which one it begins, and behind it that it was
# confirmed. One that is killed may have stored what it began.
PUBLISHER = """
import sys, pulsarx
folder, name, durability = sys.argv[1:4]
client = pulsarx.Client(folder, durability=durability)
topic = "persistent://public/default/t"
single = client.create_producer(topic, producer_name="single " + name)
batches = client.create_producer(
    topic, producer_name="batches " + name, batching_enabled=True, batching_max_messages=7,
    max_pending_messages=200, block_if_queue_full=True,
)
confirmed = []
print("ready", flush=True)
number = 0
while True:
    for _ in range(20):
        # The same bytes each time: only how often they are there tells them apart.
        batches.send_async(b"b %s" % name.encode(), lambda result, _: confirmed.append(result))
    single.send(b"s %s %d" % (name.encode(), number))
    number += 1
    bad = [each for each in confirmed if each != pulsarx.Result.Ok]
    print(number, len(confirmed), bad, flush=True)
    if sys.stdin in __import__("select").select([sys.stdin], [], [], 0)[0]:
        break
batches.flush()
print("end", number, len(confirmed), flush=True)
client.close()
"""


class Publisher(ChildProcess):
    def __init__(self, folder: Path, name: str, durability: str) -> None:
        super().__init__(PUBLISHER, folder, name, durability)
        self.name = name
        self.rounds = self.confirmed = 0
        assert self.line() == "ready"

    def follow(self, rounds: int) -> None:
        """Read what it says, until it has done so many rounds more."""
        until = self.rounds + rounds
        while self.rounds < until:
            self.heard(self.line())

    def heard(self, line: str) -> None:
        if line.startswith("end"):
            self.rounds, self.confirmed = map(int, line.split()[1:])
            return
        number, confirmed, bad = line.split(" ", 2)
        assert bad == "[]", line
        self.rounds, self.confirmed = int(number), int(confirmed)


def campaign(folder: Path, count: int, kills: int, durability: str, seed: int) -> None:
    chance = random.Random(seed)
    made = 0
    living: list[Publisher] = []
    killed: list[Publisher] = []
    try:
        while len(living) < count:
            living.append(Publisher(folder, f"p{made}", durability))
            made += 1
        for _ in range(kills):
            for each in living:
                each.follow(chance.randrange(1, 6))
            # The owner, which is the one that LOCK names, half of the time.
            pid = int((folder / "LOCK").read_text().split()[1])
            owners = [each for each in living if each.pid == pid]
            victim = owners[0] if owners and chance.random() < 0.5 else chance.choice(living)
            victim.kill()
            for line in victim.rest():
                if line.endswith("]"):
                    victim.heard(line)
            living.remove(victim)
            killed.append(victim)
            living.append(Publisher(folder, f"p{made}", durability))
            made += 1
        for each in living:
            each.follow(2)
            each.tell("end")
            while True:
                line = each.line()
                each.heard(line)
                if line.startswith("end"):
                    break
        with pulsarx.Client(folder, durability=durability) as client:
            check(client, living, killed)
        for each in living:
            assert each.end() == []
    finally:
        for each in (*living, *killed):
            each.__exit__(None, None, None)


def check(client: pulsarx.Client, living: list[Publisher], killed: list[Publisher]) -> None:
    singles: dict[str, list[int]] = {}
    batched: Counter[str] = Counter()
    with client.create_reader("t", pulsarx.MessageId.earliest) as reader:
        while reader.has_message_available():
            kind, name, *number = reader.read_next(60_000).data().decode().split()
            if kind == "s":
                singles.setdefault(name, []).append(int(number[0]))
            else:
                batched[name] += 1
    for each in living:
        assert singles[each.name] == list(range(each.rounds)), each.name
        assert batched[each.name] == 20 * each.rounds == each.confirmed, each.name
    for each in killed:
        # It may have sent once more than it could say.
        assert singles[each.name] == list(range(len(singles[each.name]))), each.name
        assert each.rounds <= len(singles[each.name]) <= each.rounds + 1, each.name
        assert each.confirmed <= batched[each.name] <= 20 * (each.rounds + 1), each.name


@pytest.mark.parametrize(("count", "durability"), [(2, "sync"), (4, "os")])
def test_owners_and_guests_are_killed_while_all_publish(
    folder: Path, count: int, durability: str
) -> None:
    campaign(folder, count, scaled(6), durability, new_seed())


@pytest.mark.long
def test_sixteen_processes_are_killed_while_all_publish(folder: Path) -> None:
    campaign(folder, 16, scaled(20), "interval", new_seed())
