"""Facts about processes that publish and consume on one folder and are killed at random: nothing is
lost or stored twice, keys keep their order, and nothing that was acknowledged comes again."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from consumer_kills import Kill, Worker, check, drained, events
from seeds import new_seed, scaled

import pulsarx

KINDS = ["Shared", "Exclusive", "Failover", "KeyShared"]


def campaign(folder: Path, kind: str, count: int, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    made: list[str] = []
    living: list[Worker] = []
    kills: dict[str, Kill] = {}

    def start() -> None:
        made.append(f"p{len(made)}")
        living.append(Worker(folder, made[-1], kind, chance.randrange(1 << 30)))

    try:
        while len(living) < count:
            start()
        for _ in range(rounds):
            threading.Event().wait(chance.uniform(0.02, 0.2))
            pid = int((folder / "LOCK").read_text().split()[1])
            owners = [each for each in living if each.pid == pid]
            victim = owners[0] if owners and chance.random() < 0.6 else chance.choice(living)
            living.remove(victim)
            kills[victim.name] = Kill(victim, victim in owners)
            start()
        for each in living:
            each.tell("end")
        for each in living:
            assert each.line() == "end"
        for each in living:
            each.tell("close")
        for each in living:
            assert each.end() == []
        with pulsarx.Client(folder, durability="os") as client:
            left = drained(client, kind)
            stored = []
            with client.create_reader("t", pulsarx.MessageId.earliest) as reader:
                while reader.has_message_available():
                    stored.append(reader.read_next(60_000).data().decode())
        check(stored, [*events(folder, made), *left], kills, kind)
    finally:
        for each in living:
            each.__exit__(None, None, None)


@pytest.mark.parametrize("kind", KINDS)
def test_consumers_and_their_owners_are_killed(folder: Path, kind: str) -> None:
    campaign(folder, kind, 3, scaled(2), new_seed())


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_consumers_of_eight_processes_are_killed(folder: Path, kind: str) -> None:
    campaign(folder, kind, 8, scaled(10), new_seed())
