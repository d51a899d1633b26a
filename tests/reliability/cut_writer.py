"""The program whose power is cut: publishes, acknowledges, merges and compacts, and says what was
confirmed, a line each, on the descriptor it is given.

B n   a client is about to be opened
P n   message n was confirmed          T n   topic n of the administration is there
d n   that is about to be deleted      D n   it is deleted
M n   topic n was made by a producer, and a message in it was confirmed
V n   message n of the topic with keys was confirmed
K n   message n is about to be acknowledged
C n   the client was closed: all below n is promised, with durability os acknowledgements alone
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, InitialPosition

OPTIONS = BrokerOptions(
    managed_ledger_max_entries_per_ledger=20,
    broker_deduplication_enabled=True,
    broker_deduplication_entries_interval=5,
)
BATCH = 4
KEYS = 3


def opened(folder: Path, durability: str) -> pulsarx.Client:
    return pulsarx.Client(
        folder, durability=durability, flush_interval_ms=5, broker_options=OPTIONS
    )


def write(
    folder: Path,
    durability: str,
    first: int,
    seed: int,
    told: int,
    begun: Callable[[], object] = lambda: None,
) -> None:
    """Until the power is cut: message numbers count from first on. begun: called once the folder
    is open."""
    chance = random.Random(seed)
    number = first

    def say(kind: str, what: int) -> None:
        os.write(told, b"%s %d\n" % (kind.encode(), what))

    while True:
        say("B", number)
        with opened(folder, durability) as client:
            admin = client.admin
            admin.namespaces.set_retention("public/default", -1, -1)
            consumer = client.subscribe(
                "t", "s", ConsumerType.Shared, initial_position=InitialPosition.Earliest
            )
            begun()
            producer = client.create_producer("t", "p", batching_enabled=chance.random() < 0.5)
            keyed = client.create_producer("keyed", "k")
            for _ in range(chance.randrange(1, 40)):
                count = chance.choice((1, 1, BATCH))
                for each in range(number, number + count):
                    producer.send_async(b"%d" % each, None, sequence_id=each)
                producer.flush()
                number += count
                say("P", number - 1)
                if chance.random() < 0.3:
                    keyed.send(b"%d" % number, partition_key=key_of(number))
                    say("V", number)
                if chance.random() < 0.5:
                    for message in consumer.receive_many(chance.randrange(1, 6), 0):
                        say("K", int(message.data()))
                        consumer.acknowledge(message)
                if chance.random() < 0.1:
                    admin.topics.create_non_partitioned_topic(f"more-{number}")
                    say("T", number)
                    if chance.random() < 0.5:
                        say("d", number)
                        admin.topics.delete(f"more-{number}")
                        say("D", number)
                if chance.random() < 0.1:
                    with client.create_producer(f"made-{number}") as other:
                        other.send(b"%d" % number)
                    say("M", number)
                if chance.random() < 0.05:
                    admin.topics.merge_ledgers("t")
                if chance.random() < 0.05:
                    begin_compaction(client)
        say("C", number)


def key_of(number: int) -> str:
    return f"k{number % KEYS}"


def begin_compaction(client: pulsarx.Client) -> None:
    try:
        client.admin.topics.trigger_compaction("keyed")
    except pulsarx.NotAllowedError:
        pass  # one is running
