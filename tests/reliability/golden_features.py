"""Makes a folder in which every feature has left its bytes, as a killed owner leaves it.

    .venv/bin/python tests/reliability/golden_features.py NAME    # golden/<version>[-<what came>]

Time and chance are given: each run makes the same messages at the same places. Ids of files differ,
and what encryption draws. A feature that writes something new gets its lines here, a format number
that moves a new folder.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from golden_contents import contents, crypto_keys, deliveries
from golden_folders import GOLDEN, STORE, GoldenFolder, formats_of, pack, store_files

import pulsarx
from pulsarx import (
    BatchingType,
    BrokerOptions,
    CompressionType,
    ConsumerDeadLetterPolicy,
    ConsumerType,
    InitialPosition,
    ManualClock,
    MessageId,
    ProducerAccessMode,
)
from pulsarx._pycore.ranges.entry_codec import encode_entry
from pulsarx.backups import check
from pulsarx.broker.catalogue import log
from pulsarx.broker.policies.policy_row import TOPIC
from pulsarx.broker.policies.table import TABLE
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.broker.scan.lease import lease
from pulsarx.broker.staging.sealed_writer import SealedLedgerWriter
from pulsarx.broker.staging.staged_file import StagedFile
from pulsarx.broker.staging.staging import folder_id_of, make_staging
from pulsarx.broker.verbs.table import perform
from pulsarx.clock import MANUAL_START_MS as START_MS
from pulsarx.randomness import Randomness
from pulsarx.schema import AvroSchema, Integer, JsonSchema, Record, String
from pulsarx.testing import inspect
from pulsarx.topic_name import TopicName

SEED = 20240101
LONG = bytes(range(256)) * 12  # three chunks
DELAY_MS = 3_600_000
OPTIONS: dict[str, Any] = {
    "max_message_size": 1500,
    "managed_ledger_max_entries_per_ledger": 5,
    "offload_url": STORE,
    "managed_ledger_offload_deletion_lag_ms": 0,
    "broker_entry_metadata_interceptors": ["AppendBrokerTimestampMetadataInterceptor"],
    "broker_deduplication_entries_interval": 2,
}
# What each policy is set to; a new one needs a value here.
POLICIES: dict[str, Any] = {
    "retention": {"time_minutes": 70, "size_mb": 70},
    "message_ttl": 71,
    "subscription_expiration_time": 72,
    "deduplication": True,
    "auto_topic_creation": {"allowed": True, "type": "partitioned", "partitions": 2},
    "auto_subscription_creation": False,
    "subscription_types_enabled": ["Failover", "Shared"],
    "dispatch_rate": {
        "msgs": 73, "bytes": 7300, "period_seconds": 7, "relative_to_publish_rate": True,
    },
    "subscription_dispatch_rate": {
        "msgs": 74, "bytes": 7400, "period_seconds": 8, "relative_to_publish_rate": False,
    },
    "publish_rate": {"msgs": 75, "bytes": 7500},
    "subscribe_rate": {"per_consumer": 76, "period_seconds": 9},
    "delayed_delivery": {
        "active": True, "tick_time_millis": 77, "max_delivery_delay_in_millis": 7_700_000,
    },
    "inactive_topics": {
        "mode": "delete_when_subscriptions_caught_up", "seconds": 78_000_000, "enabled": True,
    },
    "max_producers_per_topic": 10,
    "max_consumers_per_topic": 11,
    "max_consumers_per_subscription": 12,
    "max_subscriptions_per_topic": 13,
    "max_topics_per_namespace": 14,
    "max_unacked_messages_per_consumer": 15,
    "max_unacked_messages_per_subscription": 16,
    "compaction_threshold": 17_000_000,
    "offload_threshold": 18_000_000,
    "offload_deletion_lag_ms": 19_000,
    "schema_compatibility_strategy": "FULL_TRANSITIVE",
    "schema_validation_enforced": True,
    "is_allow_auto_update_schema": False,
    "backlog_quota_destination_storage": {
        "limit_size": 20_000_000, "limit_time": -1, "policy": "consumer_backlog_eviction",
    },
    "backlog_quota_message_age": {
        "limit_size": -1, "limit_time": 2_100_000, "policy": "producer_exception",
    },
}  # fmt: skip


class One(Record):
    a = String(required=True)


class Two(Record):
    a = String(required=True)
    b = Integer(default=5, required_default=True)


def avro(record: type[Record]) -> AvroSchema:
    return AvroSchema(None, {**record.schema(), "name": "Row"})


class Maker:
    """One golden folder while it is made: its path, its clock, the clients on it one by one."""

    def __init__(self, folder: Path, keys: Any) -> None:
        self.folder = folder
        self.keys = keys
        self.clock = ManualClock(START_MS)
        self.randomness = Randomness(SEED)
        self.client: pulsarx.Client

    @property
    def admin(self) -> Any:
        return self.client.admin

    def open(self) -> None:
        self.client = opened(self.folder, self.clock, self.randomness)

    def settle(self) -> None:
        inspect(self.client).settle()

    def send(self, topic: str, *payloads: bytes, name: str = "maker", **each: Any) -> list[Any]:
        found = []
        with self.client.create_producer(topic, name) as producer:
            for payload in payloads:
                found.append(producer.send(payload, **each))
                self.settle()
        self.clock.advance(1)
        return found

    def batch(self, topic: str, *payloads: bytes, **options: Any) -> None:
        """One batch, of messages with the keys k0, k1, k0 ... and properties."""
        options.setdefault("producer_name", "batcher")
        with self.client.create_producer(
            topic, batching_enabled=True, batching_max_publish_delay_ms=86_400_000, **options
        ) as producer:
            for number, payload in enumerate(payloads):
                producer.send_async(
                    payload,
                    None,
                    partition_key=f"k{number % 2}",
                    properties={"number": str(number)},
                    event_timestamp=START_MS - number - 1,
                )
            producer.flush()
        self.settle()
        self.clock.advance(1)

    def subscribe(
        self, topic: Any, name: str, kind: ConsumerType = ConsumerType.Shared, **options: Any
    ) -> Any:
        options.setdefault("initial_position", InitialPosition.Earliest)
        options.setdefault("consumer_name", "reading")
        return self.client.subscribe(topic, name, kind, **options)

    def kill(self) -> None:
        """Go on with what a kill of the owner leaves."""
        self.settle()
        left = self.folder.with_name("left")
        shutil.copytree(self.folder, left, ignore=shutil.ignore_patterns("control.sock"))
        self.client.close()
        shutil.rmtree(self.folder)
        left.rename(self.folder)


def opened(folder: Path, clock: Any, randomness: Any = None, **more: Any) -> pulsarx.Client:
    options = BrokerOptions(**OPTIONS)
    return pulsarx.Client(
        folder, durability="os", clock=clock, randomness=randomness, broker_options=options, **more
    )


def names(prefix: str, count: int) -> list[bytes]:
    return [b"%s%d" % (prefix.encode(), number) for number in range(count)]


# Features -----------------------------------------------------------------------------------------


def namespaces(maker: Maker) -> None:
    admin, paid = maker.admin, "persistent://shop/orders/paid"
    admin.namespaces.set_retention("public/default", -1, -1)
    admin.tenants.create_tenant("shop", ["clerk"])
    admin.tenants.update_tenant("shop", ["clerk", "cashier"])
    admin.namespaces.create_namespace("shop/orders")
    admin.namespaces.create_namespace("shop/policed")
    admin.tenants.create_tenant("gone")
    admin.namespaces.create_namespace("gone/gone")
    admin.namespaces.delete_namespace("gone/gone")
    admin.tenants.delete_tenant("gone")
    admin.namespaces.grant_permission_on_namespace("shop/orders", "clerk", ["produce", "consume"])
    admin.namespaces.grant_permission_on_subscription("shop/orders", "bills", ["cashier"])
    admin.namespaces.set_subscription_auth_mode("shop/orders", "Prefix")
    admin.topics.create_non_partitioned_topic(paid)
    admin.topics.grant_permission(paid, "auditor", ["consume"])
    maker.send(paid, *names("paid", 3))


def policies(maker: Maker) -> None:
    topic, broker = "persistent://shop/policed/rules", inspect(maker.client).broker
    maker.admin.topics.create_non_partitioned_topic(topic)
    for row in TABLE:
        policy = {row.name: POLICIES[row.name]}
        if TOPIC in row.levels:
            perform(broker, "topics.set_policy", {"topic": topic, "policy": policy})
        perform(broker, "namespaces.set_policy", {"namespace": "shop/policed", "policy": policy})


def described_messages(maker: Maker) -> None:
    with maker.client.create_producer(
        "described", "describing", initial_sequence_id=41, properties={"of": "the producer"}
    ) as producer:
        producer.send(b"")
        producer.send(b"all", {"a": "1", "b": "\u00e9"}, "key", "order", event_timestamp=12345)
        producer.send(b"numbered", sequence_id=1000)
        producer.send(b"near", disable_replication=True)
        producer.send(b"far", replication_clusters=["east", "west"])
        producer.send(b"\x00\xff" * 300)
        producer.send(None, partition_key="null")
    maker.settle()
    entry = encode_entry(
        b"base64", producer_name="raw", sequence_id=3, publish_time_ms=START_MS, key=b"\xff\x00",
        key_base64=True,
    )  # fmt: skip
    inspect(maker.client).append_entry("described", entry)
    maker.settle()


def compressions(maker: Maker) -> None:
    for name in ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"):
        kind, topic = getattr(CompressionType, name), f"packed-{name.lower()}"
        with maker.client.create_producer(topic, "one", compression_type=kind) as producer:
            producer.send(b"alone " * 40)
        maker.batch(topic, *[each * 20 for each in names("b", 4)], compression_type=kind)
        maker.batch(topic, *[each * 200 for each in names("c", 9)], compression_type=kind)


def batches_by_key(maker: Maker) -> None:
    maker.batch("by-key", *names("m", 7), batching_type=BatchingType.KeyBased)
    maker.send("by-key", *names("single", 2), partition_key="k1")


def chunks(maker: Maker) -> None:
    with maker.client.create_producer("chunked", "large", chunking_enabled=True) as producer:
        producer.send(LONG, {"large": "1"}, "key")
        producer.send(b"small")
        producer.send(LONG[::-1])
    with maker.client.create_producer(
        "chunked", "packed", chunking_enabled=True, compression_type=CompressionType.ZLib
    ) as producer:
        producer.send(random.Random(SEED).randbytes(3000))
    maker.settle()
    consumer = maker.subscribe("chunked", "collecting")
    first = consumer.receive(0)
    consumer.receive(0)
    consumer.acknowledge(first)
    consumer.close()


def encryption(maker: Maker) -> None:
    secret = {"encryption_key": "mine", "crypto_key_reader": maker.keys}
    with maker.client.create_producer("secret", "alone", **secret) as producer:
        producer.send(b"one", {"a": "1"}, "key")
    maker.batch("secret", *names("b", 3), compression_type=CompressionType.LZ4, **secret)
    with maker.client.create_producer(
        "secret", "large", chunking_enabled=True, **secret
    ) as producer:
        producer.send(LONG)
    maker.settle()


def schemas(maker: Maker) -> None:
    for schema, row in ((avro(One), {"a": "x"}), (avro(Two), {"a": "y", "b": 7})):
        with maker.client.create_producer("rows", "rowing", schema) as producer:
            producer.send(row)
    with maker.client.create_producer("documents", "json", JsonSchema(Two)) as producer:
        producer.send(Two(a="z", b=1))
    maker.admin.schemas.delete_schema("documents")
    with maker.client.create_producer("documents", "json", JsonSchema(One)) as producer:
        producer.send(One(a="again"))
    maker.settle()


def partitions(maker: Maker) -> None:
    maker.admin.topics.create_partitioned_topic("parts", 2)
    maker.admin.topics.create_partitioned_topic("non-persistent://public/default/fleeting", 2)
    for key in ("a", "b", "c", "d"):
        maker.send("parts", key.encode(), partition_key=key)
    consumer = maker.subscribe("parts", "s")
    maker.admin.topics.update_partitioned_topic("parts", 3)
    consumer.acknowledge(consumer.receive(60_000))
    consumer.close()
    maker.admin.topics.set_message_ttl("parts", 80_000_000)
    maker.settle()


def delayed(maker: Maker) -> None:
    """Some of them have come to a consumer, some wait in the dispatcher."""
    with maker.client.create_producer("later", "slow") as producer:
        for number in range(6):
            due = START_MS + (number % 3) * DELAY_MS
            producer.send(b"due%d" % number, deliver_at=due)
    consumer = maker.subscribe("later", "waiting")
    (first, *_) = consumer.receive_many(9, 0)
    consumer.acknowledge(first)
    consumer.close()
    maker.settle()


def deduplication(maker: Maker) -> None:
    maker.admin.topics.create_non_partitioned_topic("once")
    maker.admin.topics.set_deduplication("once", True)
    for _ in range(2):
        for number in range(7):
            maker.send("once", b"n%d" % number, name="counting", sequence_id=10 * number)
    maker.send("once", b"other", name="another", sequence_id=5)


def letters(maker: Maker) -> None:
    policy = ConsumerDeadLetterPolicy(1, initial_subscription_name="undertaker")
    maker.send("spoiled", *names("bad", 3), properties={"why": "bad"})
    consumer = maker.subscribe(
        "spoiled", "s", dead_letter_policy=policy, negative_ack_redelivery_delay_ms=1000
    )
    for _ in range(2):
        for message in consumer.receive_many(9, 0):
            if message.data() != b"bad2":
                consumer.negative_acknowledge(message)
        maker.clock.advance(2)
    consumer.close()
    maker.settle()
    maker.send("retried", *names("try", 2))
    consumer = maker.subscribe("retried", "s", dead_letter_policy=policy, retry_enable=True)
    consumer.reconsume_later(consumer.receive(0), 5000, {"again": "1"})
    consumer.close()
    maker.settle()


def subscriptions(maker: Maker) -> None:
    """Each type, in the middle of its messages: one by one, up to one, parts of batches."""
    for name in ("exclusive", "failover", "shared", "key_shared", "sought", "back", "batched"):
        kind = {"failover": ConsumerType.Failover, "key_shared": ConsumerType.KeyShared}.get(
            name, ConsumerType.Exclusive if name == "exclusive" else ConsumerType.Shared
        )
        maker.subscribe(
            "used", name, kind, properties={"name": name}, batch_index_ack_enabled=True
        ).close()
    for number in range(3):
        maker.batch("used", *names(f"{number}-", 4))
        maker.send("used", *names(f"{number}.", 3), partition_key=f"k{number}")
    got: dict[str, Any] = {}

    def take(name: str, kind: ConsumerType, **options: Any) -> Any:
        consumer = maker.subscribe("used", name, kind, **options)
        got[name] = consumer.receive_many(99, 0)
        return consumer

    with take("exclusive", ConsumerType.Exclusive) as consumer:
        consumer.acknowledge_cumulative(got["exclusive"][8])
    with take("failover", ConsumerType.Failover, batch_index_ack_enabled=True) as consumer:
        consumer.acknowledge_cumulative(got["failover"][9])
        consumer.acknowledge(got["failover"][13])
    with take("shared", ConsumerType.Shared, negative_ack_redelivery_delay_ms=1000) as consumer:
        for number in (0, 4, 5, 17, 20):
            consumer.acknowledge(got["shared"][number])
        consumer.negative_acknowledge(got["shared"][6])
        maker.clock.advance(2)
        consumer.receive_many(9, 0)
    with take("key_shared", ConsumerType.KeyShared, batch_index_ack_enabled=True) as consumer:
        consumer.acknowledge_many([each for each in got["key_shared"] if each.data()[-1:] == b"1"])
    with take("batched", ConsumerType.Shared, batch_index_ack_enabled=True) as consumer:
        for number in (1, 2, 8, 15):
            consumer.acknowledge(got["batched"][number])
    for name, to in (("sought", 6), ("back", 3)):
        with take(name, ConsumerType.Shared) as consumer:
            consumer.acknowledge_many(got[name][:12])
            consumer.seek(got[name][to].message_id())
            if name == "back":
                consumer.acknowledge_many(consumer.receive_many(2, 0))
    admin = maker.admin.topics
    admin.create_subscription("used", "made", got["shared"][2].message_id())
    admin.create_subscription("used", "last")
    admin.create_subscription("used", "skipped", MessageId.earliest)
    admin.skip_messages("used", "skipped", 2)
    admin.create_subscription("used", "choosy", MessageId.earliest, {"jms.selector": "n = 1"})
    chosen = {"jms.selector": "__key = 'none' OR __publishTime > 0", "colour": "red"}
    admin.update_subscription_properties("used", "choosy", chosen)
    admin.create_subscription("used", "gone")
    admin.delete_subscription("used", "gone")
    maker.settle()


def life_of_topics(maker: Maker) -> None:
    admin = maker.admin.topics
    maker.send("ended", *names("e", 3))
    admin.terminate("ended")
    maker.send("deleted", *names("d", 3))
    admin.delete("deleted", force=True)
    maker.send("emptied", *names("t", 8))
    admin.truncate("emptied")
    maker.send("emptied", b"behind")
    maker.send("forgotten", *names("f", 6), partition_key="k")
    admin.trigger_compaction("forgotten")
    maker.settle()
    admin.truncate("forgotten")
    maker.settle()
    admin.trigger_compaction("forgotten")
    for number in range(2):
        with maker.client.create_producer(
            "alone", f"lock{number}", access_mode=ProducerAccessMode.Exclusive
        ) as producer:
            producer.send(b"mine%d" % number)
    maker.settle()


def trimmed(maker: Maker) -> None:
    admin = maker.admin.topics
    admin.create_non_partitioned_topic("trimmed")
    admin.set_retention("trimmed", 0, 0)
    consumer = maker.subscribe("trimmed", "s")
    maker.send("trimmed", *names("t", 18))
    for message in consumer.receive_many(12, 0):
        consumer.acknowledge(message)
    maker.settle()
    consumer.close()


def merged(maker: Maker) -> None:
    maker.send("merged", *names("m", 17))
    maker.admin.topics.merge_ledgers("merged")
    consumer = maker.subscribe("merged", "s")
    for message in consumer.receive_many(99, 0)[3:9]:
        consumer.acknowledge(message)
    consumer.close()
    maker.settle()


def compacted(maker: Maker) -> None:
    admin = maker.admin.topics
    for topic in ("keyed", "unkept"):
        maker.batch(topic, *names("v", 5))
        for key, value in (("k0", b"new"), ("k2", b"2"), ("k3", b"3"), ("k2", None)):
            maker.send(topic, value, partition_key=key)  # type: ignore[arg-type]
        admin.trigger_compaction(topic)
        maker.settle()
        maker.send(topic, b"behind", partition_key="k3")
    admin.set_compaction_threshold("unkept", 90_000_000)
    consumer = maker.subscribe(
        "keyed", "compacting", ConsumerType.Exclusive, is_read_compacted=True
    )
    consumer.acknowledge(consumer.receive(0))
    consumer.close()
    maker.settle()


def attached(maker: Maker) -> None:
    """Ledgers of a job, of which one waits in its area, and a lease."""
    maker.admin.topics.create_non_partitioned_topic("attached")
    maker.send("attached", b"before")
    folder_id, full = folder_id_of(maker.folder), TopicName.of("attached").full
    for name in ("one", "left"):
        area = make_staging(maker.folder, "job")
        with SealedLedgerWriter(
            f"{area}/{name}", folder_id, topic="attached", clock=maker.clock,
            randomness=maker.randomness, producer_name="task",
        ) as writer:  # fmt: skip
            for payload in names(name, 3):
                writer.append(payload, "key", {"job": "1"}, 77)
            sealed = writer.seal()
        assert sealed is not None
        if name == "one":
            attach(maker.folder, Transaction("app", 7), [StagedFile.of_sealed(full, sealed)])
    maker.send("attached", b"behind")
    state = inspect(maker.client).catalogue.state
    ids = [each.ledger_id for each in state.topics[full].ledgers]
    lease(maker.folder, "reading", {full: ids}, 2_592_000_000)
    lease(maker.folder, "read", {full: ids}, 10**9)
    broker = inspect(maker.client).broker
    perform(broker, "leases.renew", {"job": "read", "ttl_ms": 10**9})
    perform(broker, "leases.release", {"job": "read"})


def offloaded(maker: Maker) -> None:
    maker.send("stored", *names("s", 17))
    maker.admin.topics.offload("stored", 0)
    maker.settle()
    assert maker.admin.topics.offload_status("stored")["status"] == "SUCCESS"
    maker.send("unstored", *names("u", 6))
    maker.admin.topics.offload("unstored", 0)
    maker.settle()
    maker.admin.topics.delete("unstored", force=True)
    maker.clock.advance(60)
    consumer = maker.subscribe("stored", "s")
    for message in consumer.receive_many(99, 0)[2:8]:
        consumer.acknowledge(message)
    consumer.close()
    maker.settle()


def transactions(maker: Maker) -> None:
    """Of two topics: committed, aborted, and open when the owner is killed. What they acknowledge
    was kept by cursors, because of a seek, or not yet."""
    topics = ("transacted", "transacted-too")
    with maker.client.create_producer("transacted", "before") as producer:
        for payload in names("before", 9):
            producer.send(payload)
    consumers = {name: maker.subscribe("transacted", name) for name in ("sought-in", "acking")}
    received = {name: each.receive_many(99, 0) for name, each in consumers.items()}
    for number, end in enumerate(("commit", "abort", "open", "commit")):
        transaction = maker.client.new_transaction()
        for topic in topics:
            with maker.client.create_producer(
                topic, "transacting", batching_enabled=True
            ) as producer:
                producer.send_many(names(f"{end}{number}-", 3), transaction=transaction)
                producer.send(b"single %d" % number, transaction=transaction)
                producer.send(b"plain %d" % number)
        for name, consumer in consumers.items():
            if end != "open":
                consumer.acknowledge(received[name][2 * number], transaction=transaction)
        if end != "open":
            getattr(transaction, end)()
        if number == 0:
            consumers["sought-in"].seek(received["sought-in"][1].message_id())
            received["sought-in"] = received["sought-in"][:1] + consumers["sought-in"].receive_many(
                99, 0
            )
    for consumer in consumers.values():
        consumer.close()
    maker.clock.advance(1)


SESSIONS: tuple[tuple[Callable[[Maker], None], ...], ...] = (
    (namespaces, policies, described_messages, compressions, batches_by_key, chunks, encryption),
    (schemas, partitions, delayed, deduplication, letters, subscriptions, life_of_topics),
    (trimmed, merged, compacted, attached, offloaded, transactions),
)


def last_of_each(maker: Maker) -> None:
    """Behind what recovery sealed, so that there are ledgers of every state."""
    for topic in ("described", "used", "once", "merged"):
        maker.send(topic, b"after a kill", name="late")
    with maker.subscribe("used", "shared") as consumer:
        consumer.acknowledge(consumer.receive_many(99, 0)[-1])
    transactions(maker)


def make(folder: Path, keys: Any) -> dict[str, Any]:
    """The operations of the catalogue that were committed, for the expectation."""
    committed: set[str] = set()
    catalogue_log: Any = log
    encode = catalogue_log.catalogue_file_encode

    def noted(kind: str, folder_id: str, document: dict[str, Any]) -> tuple[bytes, int]:
        committed.update(each["op"] for each in document.get("operations", ()))
        found: tuple[bytes, int] = encode(kind, folder_id, document)
        return found

    catalogue_log.catalogue_file_encode = noted
    maker = Maker(folder, keys)
    try:
        for features in SESSIONS:
            maker.open()
            for feature in features:
                feature(maker)
            maker.kill()
        maker.open()
        last_of_each(maker)
        maker.kill()
    finally:
        catalogue_log.catalogue_file_encode = encode
    return {"operations": sorted(committed), "now_ms": maker.clock.now_ms()}


def expectation(folder: Path, now_ms: int, keys: Any) -> dict[str, Any]:
    """What a copy holds; it is used up by that."""
    clock = ManualClock(now_ms)
    found = check(folder)
    assert found.damage == [], found.damage
    counted = {"topics": found.topics, "ledgers": found.ledgers, "messages": found.messages}
    with opened(folder, clock) as client:
        known = contents(client, keys)
        now = deliveries(client, known, keys)
        clock.advance(2 * DELAY_MS / 1000)
        known["deliveries"], known["deliveries later"] = now, deliveries(client, known, keys)
    return {"counts": counted, **known}


def main() -> None:
    draw = random.Random(SEED)
    os.urandom = draw.randbytes
    names = [each for each in sys.argv[1:] if not each.startswith("-")]
    place = GOLDEN / (names[0] if names else pulsarx.__version__)
    if place.exists() and "--again" not in sys.argv:
        sys.exit(f"{place} is there; a golden folder of a version that was released never changes")
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, crypto_keys() as keys:
        top = Path(work) / "top"
        top.mkdir()
        made = make(top / "data", keys)
        store = store_files()
        for path in store.find(STORE):
            target = top / "store" / path.removeprefix("/" + STORE.partition("://")[2] + "/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(store.cat_file(path))
        formats = formats_of(top / "data")
        golden = GoldenFolder(place)
        pack(top, golden.archive)
        copy = golden.unpack(Path(work) / "copy")
        golden.expect({"formats": formats, **made, **expectation(copy, made["now_ms"], keys)})
    print(f"{place}: {golden.archive.stat().st_size} bytes, {formats}")


if __name__ == "__main__":
    main()
