"""A folder with topics of all kinds, for tests that lose parts of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from compaction_steps import compacted, survivors
from compaction_steps import publish as publish_keys
from damaged_ledgers import receive_all
from support.copied_topics import publish, read
from support.killed_owners import left_by_kill

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, InitialPosition
from pulsarx.testing import inspect

SMALL = BrokerOptions(managed_ledger_max_entries_per_ledger=5)
OTHER = "persistent://shop/orders/paid"
KEYED = [("a", b"1"), ("b", b"2"), ("a", b"3"), ("c", b"4"), ("b", b"5"), ("a", b"6")]


def opened(folder: Path, **options: Any) -> pulsarx.Client:
    options.setdefault("broker_options", SMALL)
    return pulsarx.Client(folder, durability="os", **options)


def subscribed(client: pulsarx.Client, topic: str = "t", name: str = "s") -> pulsarx.Consumer:
    earliest = InitialPosition.Earliest
    return client.subscribe(topic, name, ConsumerType.Shared, initial_position=earliest)


def fill(client: pulsarx.Client) -> None:
    """Topics of all kinds, and subscriptions that have acknowledged this and that."""
    admin = client.admin
    admin.namespaces.set_retention("public/default", -1, -1)
    publish(client, 0, 23)
    consumer = subscribed(client)
    messages = consumer.receive_many(23, 0)
    for message in [*messages[:4], messages[7], messages[20]]:
        consumer.acknowledge(message)
    with client.subscribe("t", "all", initial_position=InitialPosition.Earliest) as one:
        one.acknowledge_cumulative(messages[12])
    admin.topics.create_partitioned_topic("parts", 4)
    for index in (0, 2):
        publish(client, 0, 3, f"parts-partition-{index}")
    admin.tenants.create_tenant("shop")
    admin.namespaces.create_namespace("shop/orders")
    publish(client, 0, 12, OTHER)
    subscribed(client, OTHER, "bills")
    inspect(client).settle()  # full ledgers are sealed
    admin.topics.merge_ledgers(OTHER)
    publish_keys(client, KEYED, "keyed", batching_enabled=True)
    compacted(client, "keyed")
    publish_keys(client, [("c", b"7")], "keyed")


def everything(client: pulsarx.Client) -> dict[str, Any]:
    """What readers and subscriptions get."""
    found: dict[str, Any] = {
        "t": read(client),
        OTHER: read(client, OTHER),
        "compacted": survivors(client, "keyed"),
        "keyed": read(client, "keyed"),
        "partitions": client.get_topic_partitions("parts"),
    }
    for index in range(4):
        found[f"parts-{index}"] = read(client, f"parts-partition-{index}")
    for topic, name in (("t", "s"), ("t", "all"), (OTHER, "bills")):
        with subscribed(client, topic, name) as consumer:
            found[f"{topic} {name}"] = [each.data() for each in consumer.receive_many(99, 0)]
    return found


def make(path: Path) -> Path:
    """A folder in it whose owner was killed, with open ledgers."""
    with opened(path / "used") as client:
        fill(client)
        return left_by_kill(client, path / "f")


def lose_names(folder: Path) -> None:
    (folder / "PULSARX").unlink()
    shutil.rmtree(folder / "catalogue")


def read_whole(client: pulsarx.Client, topic: str) -> list[bytes]:
    """What a reader gets, who is told of damage besides."""
    with client.create_reader(topic, pulsarx.MessageId.earliest) as reader:
        return [each.data() for each in receive_all(reader)[0]]
