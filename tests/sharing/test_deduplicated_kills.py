"""Facts about processes that share a folder with deduplication and are killed at random: each is
followed by one that sends again what it cannot know to be stored, and all is there once, in
order."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from child_process import ChildProcess
from seeds import new_seed, scaled

import pulsarx

# Numbers its messages itself, and begins some way before the last one that is known to be stored.
PUBLISHER = """
import random, select, sys, pulsarx
folder, name, seed = sys.argv[1:4]
chance = random.Random(int(seed))
client = pulsarx.Client(folder, durability="os")
while True:
    try:
        producer = client.create_producer(
            "t", producer_name=name, batching_enabled=True, batching_max_messages=7,
            max_pending_messages=100, block_if_queue_full=True)
        break
    except pulsarx.ProducerBusy:  # it is not known yet that the one before is dead
        select.select([], [], [], 0.02)
number = max(producer.last_sequence_id() + 1 - chance.randrange(40), 0)
told = []
print("ready", flush=True)
while True:
    for _ in range(chance.randrange(30)):
        data = b"%s %d" % (name.encode(), number)
        producer.send_async(data, lambda result, _: told.append(result), sequence_id=number)
        number += 1
    producer.send(b"%s %d" % (name.encode(), number), sequence_id=number)
    number += 1
    bad = [each for each in told if each != pulsarx.Result.Ok]
    print(number, bad, flush=True)
    if select.select([sys.stdin], [], [], 0)[0]:
        break
producer.flush()
client.close()
"""


class Publisher(ChildProcess):
    def __init__(self, folder: Path, name: str, seed: int) -> None:
        super().__init__(PUBLISHER, folder, name, seed)
        self.name = name
        self.confirmed = 0
        assert self.line() == "ready"

    def follow(self, rounds: int) -> None:
        for _ in range(rounds):
            self.heard(self.line())

    def heard(self, line: str) -> None:
        number, bad = line.split(" ", 1)
        assert bad == "[]", line
        self.confirmed = int(number)


def campaign(folder: Path, count: int, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    with pulsarx.Client(folder, durability="os") as client:
        client.admin.topics.create_non_partitioned_topic("t")
        client.admin.topics.set_deduplication("t", True)
    confirmed: dict[str, int] = {}
    living: list[Publisher] = []

    def start(name: str) -> None:
        living.append(Publisher(folder, name, chance.randrange(1 << 30)))

    def end(each: Publisher, lines: list[str]) -> None:
        for line in lines:
            if line.endswith("]"):
                each.heard(line)
        confirmed[each.name] = max(confirmed.get(each.name, 0), each.confirmed)

    try:
        for number in range(count):
            start(f"p{number}")
        for _ in range(kills):
            for each in living:
                each.follow(chance.randrange(1, 4))
            pid = int((folder / "LOCK").read_text().split()[1])
            owners = [each for each in living if each.pid == pid]
            victim = owners[0] if owners and chance.random() < 0.5 else chance.choice(living)
            victim.kill()
            living.remove(victim)
            end(victim, victim.rest())
            victim.__exit__(None, None, None)
            start(victim.name)
        for each in living:
            each.tell("end")
        for each in living:
            end(each, each.end())
        found: dict[str, list[int]] = {}
        with (
            pulsarx.Client(folder, durability="os") as client,
            client.create_reader("t", pulsarx.MessageId.earliest) as reader,
        ):
            for message in reader:
                name, number_text = message.data().decode().split()
                found.setdefault(name, []).append(int(number_text))
        for name, numbers in found.items():
            assert numbers == list(range(len(numbers))), name
            assert len(numbers) >= confirmed[name], name
        assert len(found) == count
    finally:
        for each in living:
            each.__exit__(None, None, None)


@pytest.mark.parametrize("count", [2, 4])
def test_what_is_sent_again_after_a_kill_is_stored_once(folder: Path, count: int) -> None:
    campaign(folder, count, scaled(5), new_seed())


@pytest.mark.long
def test_what_sixteen_processes_send_again_is_stored_once(folder: Path) -> None:
    campaign(folder, 16, scaled(20), new_seed())
