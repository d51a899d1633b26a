"""Facts about consumers of shared subscriptions whose process is killed in the middle of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from child_process import ChildProcess
from seeds import seeds
from topic_reading import numbers

import pulsarx
from pulsarx import ConsumerType, InitialPosition

COUNT = 400
KEYS = 20
KILLS = 6

# Says what it does before and after; a line without its end was not said.
CONSUMING = """
import random, sys
import pulsarx
from pulsarx import ConsumerType
folder, type_name, seed = sys.argv[1:]
chance = random.Random(int(seed))
client = pulsarx.Client(folder, durability="os")
consumers = [
    client.subscribe("t", "s", consumer_type=getattr(ConsumerType, type_name),
                     receiver_queue_size=20, negative_ack_redelivery_delay_ms=1)
    for _ in range(3)
]
def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + ";\\n")
    sys.stdout.flush()
while True:
    consumer = chance.choice(consumers)
    for message in consumer.receive_many(5, 20):
        number = message.data().decode()
        say("received", number, message.redelivery_count())
        drawn = chance.random()
        if drawn < 0.3:
            say("acknowledging", number, 0)
            consumer.acknowledge(message)
            say("acknowledged", number, 0)
        elif drawn < 0.7:
            consumer.negative_acknowledge(message)
            say("nacked", number, 0)
    say("idle", 0, 0)
"""


class Heard:
    """What the children said."""

    def __init__(self) -> None:
        self.acknowledged: set[int] = set()
        self.maybe_acknowledged: set[int] = set()
        self.counts: dict[int, int] = {}  # the highest redelivery count of each message

    def line(self, line: str) -> None:
        if not line.endswith(";"):
            return
        what, number_text, count_text = line[:-1].split()
        number, count = int(number_text), int(count_text)
        if what == "received":
            self.delivered(number, count)
        elif what == "acknowledging":
            self.maybe_acknowledged.add(number)
        elif what == "acknowledged":
            self.acknowledged.add(number)

    def delivered(self, number: int, count: int) -> None:
        assert number not in self.acknowledged, f"{number} is acknowledged and came back"
        assert count >= self.counts.get(number, 0), f"{number} forgot its redeliveries"
        self.counts[number] = count


@pytest.mark.standard
@pytest.mark.parametrize("type_name", ["Shared", "KeyShared"])
@pytest.mark.parametrize("seed", seeds(3))
def test_a_killed_process_loses_nothing_and_forgets_nothing(
    folder: Path, type_name: str, seed: int
) -> None:
    """What was acknowledged never comes back, all else does, and redeliveries stay counted."""
    with pulsarx.Client(folder, durability="os") as client:
        client.subscribe("t", "s", initial_position=InitialPosition.Earliest).close()
        producer = client.create_producer("t", batching_enabled=True)
        keys = [str(number % KEYS) for number in range(COUNT)]
        producer.send_many(numbers(COUNT), keys=keys)
    chance = random.Random(seed)
    heard = Heard()
    for turn in range(KILLS):
        with ChildProcess(CONSUMING, folder, type_name, seed * 100 + turn) as child:
            wanted = chance.randrange(5, 250)
            said = 0
            # Not before something came again, unless there is nothing left that could.
            while said < wanted or (max(heard.counts.values(), default=0) == 0 and said < 5000):
                heard.line(child.line())
                said += 1
            child.kill()
            for line in child.rest():
                heard.line(line)
    assert max(heard.counts.values()) > 0
    left: list[int] = []
    with pulsarx.Client(folder, durability="os") as client:
        consumer = client.subscribe("t", "s", consumer_type=getattr(ConsumerType, type_name))
        while messages := consumer.receive_many(1000, 500):
            for message in messages:
                heard.delivered(int(message.data()), message.redelivery_count())
                left.append(int(message.data()))
                consumer.acknowledge(message)
    assert len(set(left)) == len(left)
    assert set(range(COUNT)) - set(left) <= heard.maybe_acknowledged
    assert not heard.acknowledged & set(left)
    if type_name == "KeyShared":
        for key in range(KEYS):
            of_key = [number for number in left if number % KEYS == key]
            assert of_key == sorted(of_key)
