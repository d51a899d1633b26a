"""A folder as small as can be that has every kind of file and ledgers of every state, as a killed
owner leaves it."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, InitialPosition, ManualClock
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.staging.sealed_writer import SealedLedgerWriter
from pulsarx.broker.staging.staging import folder_id_of, make_staging
from pulsarx.randomness import Randomness
from pulsarx.testing import inspect

TOPICS = ("t", "merged", "keyed", "stored")
SUBSCRIPTIONS = ("s", "quiet")  # of the topic t
APART_MS = 86_400_000
SEED = 1


def store_of(folder: Path) -> Path:
    """The folder that is the object store of a data folder and its copies beside it."""
    return folder.parent / "store"


def opened(
    folder: Path, clock: ManualClock | None = None, randomness: Randomness | None = None
) -> pulsarx.Client:
    options = BrokerOptions(
        managed_ledger_max_entries_per_ledger=2,
        broker_deduplication_enabled=True,
        broker_deduplication_entries_interval=2,
        system_topic_enabled=False,
        offload_url=store_of(folder).as_uri(),
        managed_ledger_offload_deletion_lag_ms=0,
    )
    return pulsarx.Client(
        folder, clock=clock or ManualClock(), randomness=randomness, broker_options=options
    )


def publish(client: pulsarx.Client, topic: str, *entries: tuple[bytes, ...]) -> None:
    """Each entry is a batch of messages, their keys are their first letters."""
    with client.create_producer(
        topic, "p", batching_enabled=True, batching_max_publish_delay_ms=APART_MS
    ) as producer:
        for messages in entries:
            for payload in messages:
                key = payload[:1].decode()
                producer.send_async(payload, None, {"of": key}, partition_key=key)
            producer.flush()
    inspect(client).settle()


def subscribed(client: pulsarx.Client, name: str) -> Any:
    return client.subscribe(
        "t", name, ConsumerType.Shared, initial_position=InitialPosition.Earliest
    )


def kill(folder: Path, client: pulsarx.Client) -> None:
    """Leave what a kill of the owner would."""
    inspect(client).settle()
    left = folder.with_name("left")
    shutil.copytree(folder, left, ignore=shutil.ignore_patterns("control.sock"))
    client.close()
    shutil.rmtree(folder)
    left.rename(folder)


def make(folder: Path) -> Path:
    clock, randomness = ManualClock(), Randomness(SEED)  # one for all: ids are not drawn twice
    drawn = random.Random(SEED).randbytes
    DataDirectory.open(str(folder), files=FileSystem(), random_bytes=drawn).close()
    with opened(folder, clock, randomness) as client:
        client.admin.namespaces.set_retention("public/default", -1, -1)
        for name in SUBSCRIPTIONS:
            subscribed(client, name).close()
        publish(client, "t", (b"a0", b"b1", b"c2"), (b"d3",), (b"e4",))
        publish(client, "keyed", (b"x0",), (b"y0",), (b"x1",))
        client.admin.topics.trigger_compaction("keyed")
        publish(client, "stored", (b"o0", b"o1"), (b"o2",), (b"o3",))
        client.admin.topics.offload("stored", 0)
        inspect(client).settle()
        clock.advance(60)  # the file goes
    client = opened(folder, clock, randomness)
    publish(client, "merged", *((b"m%d" % number,) for number in range(5)))
    client.admin.topics.merge_ledgers("merged")
    with subscribed(client, "s") as consumer:
        got = consumer.receive_many(9, 0)
        consumer.acknowledge(got[1])
        consumer.seek(got[0].message_id())  # another generation
        consumer.acknowledge(consumer.receive_many(9, 0)[3])
    kill(folder, client)
    with opened(folder, clock, randomness) as client:  # which recovers what was open
        publish(client, "keyed", (b"z0",))
    client = opened(folder, clock, randomness)
    publish(client, "t", (b"f5",), (b"g6", b"h7"), (b"i8",))
    publish(client, "merged", (b"m5",))
    with subscribed(client, "quiet") as consumer:
        got = consumer.receive_many(99, 0)
        consumer.acknowledge(got[2])
        consumer.acknowledge(got[6])
        consumer.negative_acknowledge(got[0])
    with subscribed(client, "quiet") as consumer:
        consumer.receive_many(99, 0)
    area = make_staging(folder, "job")
    with SealedLedgerWriter(
        f"{area}/one",
        folder_id_of(folder),
        topic="t",
        clock=clock,
        randomness=randomness,
        producer_name="task",
    ) as writer:
        for number in range(3):
            writer.append_single(b"staged%d" % number)
        writer.seal()
    kill(folder, client)
    return folder
