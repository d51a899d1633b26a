"""Facts about encryption beside what else a topic can do, and about the official client's bytes."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from compaction_steps import compacted, survivors
from encryption_steps import (
    Forged,
    KeyFiles,
    batching,
    block,
    decrypted_by_hand,
    encrypting,
    number,
    send_batch,
    subscribe,
)
from support.consumer_types import ALL_TYPES
from support.topics import backlog
from topic_reading import OpenClient, drain, numbers, payloads

import pulsarx
from pulsarx import (
    BatchingType,
    BrokerOptions,
    CompressionType,
    ConsumerCryptoFailureAction,
    ConsumerDeadLetterPolicy,
    ConsumerType,
    CryptoKeyReader,
    MessageId,
    errors,
)
from pulsarx.testing import inspect

DISCARD = ConsumerCryptoFailureAction.DISCARD
CONSUME = ConsumerCryptoFailureAction.CONSUME
LIMIT = 1000
STORED_MS = 1795375200000  # about when the official client stored its entries
SMALL = BrokerOptions(max_message_size=LIMIT)
LARGE = bytes(range(256)) * 20

all_types = pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
    ids=lambda kind: kind.name,
)


@pytest.fixture
def small(open_client: OpenClient, manual_clock: pulsarx.ManualClock) -> pulsarx.Client:
    return open_client(clock=manual_clock, broker_options=SMALL)


# The official client ------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", ["NONE", "LZ4"])
def test_entries_of_the_official_client_are_decrypted(
    open_client: OpenClient, tmp_path: Path, compression: str
) -> None:
    """Its 3.13 stored them in Apache Pulsar 4.2: a batch of three, and a message alone."""
    client = open_client(clock=pulsarx.ManualClock(STORED_MS))
    found = json.loads((Path(__file__).parent / "official_entries.json").read_text())
    (tmp_path / "private").write_text(found["private_key"])
    consumer = subscribe(client, CryptoKeyReader("", str(tmp_path / "private")))
    for entry in found["entries"][compression]:
        inspect(client).append_entry("t", b64decode(entry))
    *batch, alone = drain(consumer)
    assert [each.data() for each in batch] == [b"batched 0", b"batched 1", b"batched 2"]
    assert [each.partition_key() for each in batch] == ["k0", "k1", "k2"]
    assert [each.properties() for each in batch] == [{"n": "0"}, {"n": "1"}, {"n": "2"}]
    assert (alone.data(), alone.partition_key(), alone.properties()) == (b"alone", "k", {"a": "b"})
    context = alone.encryption_context()
    (key,) = context.keys()
    assert (key.key, context.algorithm()) == ("their-key", "")


# Chunks -------------------------------------------------------------------------------------------


@all_types
@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.ZLib], ids=str)
def test_each_chunk_is_encrypted_and_the_message_comes_whole(
    small: pulsarx.Client, keys: CryptoKeyReader, kind: Any, compression: Any
) -> None:
    consumer = subscribe(small, keys, consumer_type=kind)
    large = bytes.fromhex("".join(f"{n * n * 7919 % 65521:04x}" for n in range(2500)))
    producer = encrypting(small, keys, chunking_enabled=True, compression_type=compression)
    producer.send(large, partition_key="k")
    producer.send(b"small", partition_key="k")
    whole, behind = drain(consumer)
    assert (whole.data() == large, behind.data()) == (True, b"small")
    assert whole.message_id().first_chunk_message_id() is not None
    assert not whole.encryption_context().is_decryption_failed()
    entries = small.admin.topics.stats("t")["entries"]
    assert entries > 4
    consumer.acknowledge(whole)
    assert backlog(small) == 1


@all_types
def test_chunks_that_cannot_be_decrypted_are_treated_as_one_message(
    small: pulsarx.Client, key_files: KeyFiles, kind: Any, tmp_path: Path
) -> None:
    keys = key_files()
    late = CryptoKeyReader("", str(tmp_path / "private"))
    failing = subscribe(small, late, "failing", consumer_type=kind)
    discarding = subscribe(
        small, key_files("other"), "d", consumer_type=kind, crypto_failure_action=DISCARD
    )
    consuming = subscribe(small, None, "c", consumer_type=kind, crypto_failure_action=CONSUME)
    encrypting(small, keys, chunking_enabled=True).send(LARGE, partition_key="k")
    small.create_producer("t").send(b"plain", partition_key="l")
    assert payloads(failing) == payloads(discarding) == [b"plain"]
    assert (backlog(small, "failing"), backlog(small, "d")) == (2, 1)
    stored, _ = drain(consuming)
    assert stored.encryption_context().is_decryption_failed()
    assert len(stored.data()) > len(LARGE)
    consuming.acknowledge(stored)
    assert backlog(small, "c") == 1
    Path(late.private_key_path).write_bytes(Path(keys.private_key_path).read_bytes())
    failing.redeliver_unacknowledged_messages()
    assert LARGE in payloads(failing)
    for name in ("failing", "d", "c"):
        assert inspect(small).subscription("t", name).dispatcher.check() == []


def test_a_chunk_that_is_not_encrypted_among_others_that_are(
    client: pulsarx.Client, keys: CryptoKeyReader
) -> None:
    """Only a forger stores such a message; it is read, and nothing is taken for what it is not."""
    consumer = subscribe(client, keys)
    for at, encrypted in ((0, True), (1, False)):
        entry = Forged(keys, b"0123456789")
        entry.fields = block(26, b"uuid") + number(27, 2) + number(28, 20) + number(29, at)
        if not encrypted:
            entry.keys, entry.param, entry.payload = b"", None, b"9876543210"
        entry.store(client)
    assert payloads(consumer) == [b"01234567899876543210"]


# Beside other features ----------------------------------------------------------------------------


def test_partitions_and_patterns_decrypt(client: pulsarx.Client, keys: CryptoKeyReader) -> None:
    client.admin.topics.create_partitioned_topic("parted", 3)
    whole = subscribe(client, keys, topic="parted")
    pattern = subscribe(
        client, keys, "pattern", topic=re.compile("persistent://public/default/parted.*")
    )
    discarding = subscribe(
        client, None, "none", topic=["parted", "other"], crypto_failure_action=DISCARD
    )
    with encrypting(client, keys, "parted") as producer:
        for each in numbers(9):
            producer.send(each, partition_key=each.decode())
    assert sorted(payloads(whole)) == numbers(9)
    assert sorted(payloads(pattern)) == numbers(9)
    assert payloads(discarding) == []
    reader = client.create_reader("parted", MessageId.earliest, crypto_key_reader=keys)
    assert sorted(each.data() for each in reader.read_many(100, 0)) == numbers(9)
    stats = client.admin.topics.partitioned_stats("parted")["subscriptions"]["none"]
    assert stats["msg_backlog"] == 0


@all_types
@pytest.mark.parametrize("reader", ["mine", "other", None])
def test_topics_that_keep_nothing_decrypt_too(
    client: pulsarx.Client, key_files: KeyFiles, kind: Any, reader: str | None
) -> None:
    topic = "non-persistent://public/default/t"
    found = None if reader is None else key_files(reader)
    consumer = client.subscribe(topic, "s", kind, crypto_key_reader=found)
    stored = client.subscribe(topic, "c", kind, crypto_failure_action=CONSUME)
    listening = client.create_reader(topic, MessageId.latest, crypto_key_reader=found)
    keys = key_files()
    with batching(client, keys, topic, compression_type=CompressionType.LZ4) as producer:
        send_batch(producer, numbers(3), partition_key="k")
    client.create_producer(topic).send(b"plain", partition_key="k")
    expected = [*numbers(3), b"plain"] if reader == "mine" else [b"plain"]
    assert payloads(consumer) == expected
    assert [each.data() for each in listening.read_many(10, 0)] == expected
    batch, plain = drain(stored)
    assert (batch.encryption_context().batch_size(), plain.data()) == (3, b"plain")
    assert consumer.dispatcher.check() == stored.dispatcher.check() == []


def test_key_shared_gives_an_encrypted_batch_to_the_consumer_of_its_first_key(
    client: pulsarx.Client, keys: CryptoKeyReader
) -> None:
    """As Pulsar's broker, which cannot look into it."""
    consumers = [subscribe(client, keys, consumer_type=ConsumerType.KeyShared) for _ in range(3)]
    with batching(client, keys) as producer:
        for each in range(20):
            producer.send_async(b"%d" % each, None, partition_key=f"k{each}")
        producer.flush()
    assert sorted(len(payloads(each)) for each in consumers) == [0, 0, 20]
    with batching(client, keys, batching_type=BatchingType.KeyBased) as producer:
        for each in range(40):
            producer.send_async(b"%d" % each, None, partition_key=f"k{each % 20}")
        producer.flush()
    found = [{m.partition_key() for m in drain(each)} for each in consumers]
    assert sum(map(len, found)) == 20
    assert all(found)


def test_compaction_knows_the_keys_of_messages_alone(
    client: pulsarx.Client, keys: CryptoKeyReader
) -> None:
    with encrypting(client, keys) as producer:
        for key, value in (("a", b"1"), ("b", b"2"), ("a", b"3"), ("c", b"4"), ("c", None)):
            producer.send(value, partition_key=key)
    with batching(client, keys) as producer:
        send_batch(producer, [b"5", b"6"], partition_key="b")
    compacted(client)
    reader = client.create_reader(
        "t", MessageId.earliest, is_read_compacted=True, crypto_key_reader=keys
    )
    found = [(each.partition_key(), each.data()) for each in reader.read_many(100, 0)]
    assert found == [("b", b"2"), ("a", b"3"), ("b", b"5"), ("b", b"6")]
    assert survivors(client) == []
    discarding = subscribe(client, is_read_compacted=True, crypto_failure_action=DISCARD)
    assert payloads(discarding) == []
    assert backlog(client) == 0


def test_deduplication_goes_on_behind_encrypted_batches(
    open_client: OpenClient, folder: Path, keys: CryptoKeyReader
) -> None:
    """Their sequence ids cannot be read; the metadata have the highest."""
    options = BrokerOptions(broker_deduplication_enabled=True)
    client = open_client(broker_options=options)
    with batching(client, keys, producer_name="p") as producer:
        send_batch(producer, numbers(3))
    client.admin.topics.set_deduplication("t", False)
    with batching(client, keys, producer_name="p") as producer:
        for each in (10, 12, 14):
            producer.send_async(b"%d" % each, None, sequence_id=each)
        producer.flush()
    # Turned on, it reads what the topic holds.
    client.admin.topics.set_deduplication("t", True)
    with batching(client, keys, producer_name="p") as producer:
        assert producer.last_sequence_id() == 14
        for each in (10, 11, 12, 13, 14, 15):
            producer.send_async(b"again %d" % each, None, sequence_id=each)
        producer.flush()
    assert payloads(subscribe(client, keys)) == [*numbers(3), b"10", b"12", b"14", b"again 15"]


def test_encrypted_batches_by_key_of_which_one_is_missing_lose_nothing(
    open_client: OpenClient, keys: CryptoKeyReader
) -> None:
    """Of those that are stored only the last id is known: what is sent again may be there twice."""
    client = open_client()
    # As a killed producer leaves it: a batch of the ids 1 and 3, and no highest id.
    entry = Forged(keys)
    entry.payload += bytes(64)
    entry.fields = number(11, 2)
    entry.sequence_id = 3
    entry.store(client)
    client.admin.topics.set_deduplication("t", True)
    with client.create_producer("t", producer_name="other") as producer:
        for each in (1, 2, 3, 4):
            producer.send_async(b"%d" % each, None, sequence_id=each)
        producer.flush()
    assert [m.data() for m in drain(subscribe(client, keys))] == [b"1", b"2", b"4"]


def test_letters_are_copies_of_what_was_decrypted(
    client: pulsarx.Client, keys: CryptoKeyReader
) -> None:
    """As in the official client they are not encrypted."""
    policy = ConsumerDeadLetterPolicy(1, "dead", "kept")
    consumer = subscribe(
        client,
        keys,
        consumer_type=ConsumerType.Shared,
        dead_letter_policy=policy,
        negative_ack_redelivery_delay_ms=0,
    )
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3))
    for _ in range(2):
        for each in drain(consumer):
            if each.data() == b"1":
                consumer.negative_acknowledge(each)
            else:
                consumer.acknowledge(each)
    inspect(client).settle()
    assert payloads(client.subscribe("dead", "kept")) == [b"1"]
    assert backlog(client) == 0


@all_types
def test_what_cannot_be_decrypted_is_no_dead_letter(
    client: pulsarx.Client, keys: CryptoKeyReader, kind: Any, manual_clock: pulsarx.ManualClock
) -> None:
    policy = ConsumerDeadLetterPolicy(1, "dead", "kept")
    consumer = subscribe(
        client, consumer_type=kind, dead_letter_policy=policy, unacked_messages_timeout_ms=10_000
    )
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3), partition_key="k")
    for _ in range(5):
        assert drain(consumer) == []
        manual_clock.advance(11)
    assert drain(consumer) == []
    inspect(client).settle()
    assert backlog(client) == 3
    assert inspect(client).subscription("t", "s").dispatcher.check() == []
    consumer.close()
    found = drain(subscribe(client, keys, consumer_type=kind))
    assert [each.data() for each in found] == numbers(3)
    assert found[0].redelivery_count() >= 5


@pytest.mark.parametrize(
    ("action", "delivered", "left"), [("FAIL", 0, 1), ("DISCARD", 0, 0), ("CONSUME", 1, 1)]
)
@pytest.mark.parametrize("kind", [ConsumerType.Shared, ConsumerType.KeyShared], ids=str)
def test_chunks_that_were_handed_out_too_often_come_to_who_cannot_decrypt_them(
    small: pulsarx.Client,
    keys: CryptoKeyReader,
    kind: Any,
    action: str,
    delivered: int,
    left: int,
) -> None:
    """Counted before under another policy, they are no letter of this consumer. They were given
    back to it, and again no letter: its `receive` never came back."""
    first = subscribe(small, keys, consumer_type=kind, negative_ack_redelivery_delay_ms=0)
    encrypting(small, keys, chunking_enabled=True).send(b"x" * 3000, partition_key="k")
    for _ in range(4):
        (message,) = drain(first)
        first.negative_acknowledge(message)
    first.close()
    consumer = subscribe(
        small,
        consumer_type=kind,
        crypto_failure_action=getattr(ConsumerCryptoFailureAction, action),
        dead_letter_policy=ConsumerDeadLetterPolicy(2, "dead", "kept"),
    )
    assert len(drain(consumer)) == delivered
    assert drain(consumer) == []
    assert backlog(small) == left
    assert inspect(small).subscription("t", "s").dispatcher.check() == []


def test_a_message_is_put_off_and_comes_decrypted(
    client: pulsarx.Client, keys: CryptoKeyReader
) -> None:
    consumer = subscribe(
        client,
        keys,
        consumer_type=ConsumerType.Shared,
        retry_enable=True,
        dead_letter_policy=ConsumerDeadLetterPolicy(3, "dead"),
    )
    encrypting(client, keys).send(b"later")
    (message,) = drain(consumer)
    consumer.reconsume_later(message, 0)
    inspect(client).settle()
    (again,) = drain(consumer)
    assert (again.data(), again.encryption_context()) == (b"later", None)


def test_a_table_view_leaves_out_what_is_encrypted(
    client: pulsarx.Client, keys: CryptoKeyReader, caplog: pytest.LogCaptureFixture
) -> None:
    """It has no key reader, as in the official client."""
    encrypting(client, keys).send(b"1", partition_key="a")
    client.create_producer("t").send(b"2", partition_key="b")
    with client.create_table_view("t") as view:
        assert dict(view) == {"b": b"2"}
    assert "cannot be decrypted" in caplog.text


def test_peeking_shows_what_is_stored(client: pulsarx.Client, keys: CryptoKeyReader) -> None:
    consumer = subscribe(client, keys)
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3))
    client.create_producer("t").send(b"plain")
    batch, plain = client.admin.topics.peek_messages("t", "s", 10)
    assert (len(batch.data()) > 16, plain.data()) == (True, b"plain")
    assert str(batch.message_id()).endswith(",-1,-1)")
    (one,) = client.admin.topics.peek_messages("t", "s", 2)
    assert one.data() == batch.data()
    assert payloads(consumer) == [*numbers(3), b"plain"]


@pytest.mark.parametrize("count", [1, 3, 4])
def test_messages_of_an_encrypted_batch_are_skipped_one_by_one(
    small: pulsarx.Client, keys: CryptoKeyReader, count: int
) -> None:
    consumer = subscribe(small, keys)
    consumer.close()
    with batching(small, keys) as producer:
        send_batch(producer, numbers(3))
    with small.create_producer("t", chunking_enabled=True) as producer:
        producer.send(LARGE)  # then messages are looked at, not counted
    small.admin.topics.skip_messages("t", "s", count)
    assert payloads(subscribe(small, keys)) == [*numbers(3), LARGE][count:]


# Columns and pipelines ----------------------------------------------------------------------------


def values_of(columns: Any) -> list[bytes | None]:
    found: list[bytes | None] = pyarrow.record_batch(columns).column("value").to_pylist()
    return found


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared], ids=str)
def test_columns_are_decrypted(client: pulsarx.Client, key_files: KeyFiles, kind: Any) -> None:
    keys = key_files()
    consumer = subscribe(client, keys, consumer_type=kind)
    failing = subscribe(client, key_files("other"), "f", consumer_type=kind)
    with batching(client, keys, compression_type=CompressionType.ZSTD) as producer:
        producer.send_arrow(pyarrow.table({"value": numbers(5)}))
    client.create_producer("t").send(b"plain")
    columns = consumer.receive_arrow(100, 0)
    assert values_of(columns) == [*numbers(5), b"plain"]
    consumer.acknowledge_many(columns)
    assert backlog(client) == 0
    assert values_of(failing.receive_arrow(100, 0)) == [b"plain"]
    assert backlog(client, "f") == 6
    reader = client.create_reader("t", MessageId.earliest, crypto_key_reader=keys)
    assert values_of(reader.read_arrow(100, 0)) == [*numbers(5), b"plain"]


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared], ids=str)
def test_columns_cannot_hold_what_is_delivered_as_it_is_stored(
    client: pulsarx.Client, keys: CryptoKeyReader, kind: Any
) -> None:
    consumer = subscribe(client, consumer_type=kind, crypto_failure_action=CONSUME)
    client.create_producer("t").send(b"before")
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3))
    client.create_producer("t").send(b"behind")
    assert values_of(consumer.receive_arrow(100, 0)) == [b"before"]
    for _ in range(2):
        with pytest.raises(errors.OperationNotSupported, match="cannot be decrypted"):
            consumer.receive_arrow(100, 0)
    stored = consumer.receive(0)
    assert all(each in decrypted_by_hand(stored, keys) for each in numbers(3))
    assert values_of(consumer.receive_arrow(100, 0)) == [b"behind"]


# Selectors ----------------------------------------------------------------------------------------


@all_types
def test_an_encrypted_batch_is_delivered_whatever_the_selector_is(
    client: pulsarx.Client, keys: CryptoKeyReader, kind: ConsumerType
) -> None:
    """The owner of the folder cannot look into it. Of a message by itself the properties are
    readable, and it is selected as any other."""
    consumer = subscribe(client, keys, consumer_type=kind, selector="n = 1")
    with batching(client, keys) as producer:
        for n in range(3):
            producer.send_async(b"%d" % n, None, properties={"n": str(n)}, partition_key="k")
        producer.flush()
    with encrypting(client, keys) as producer:
        for n in range(3):
            producer.send(b"alone %d" % n, properties={"n": str(n)}, partition_key="k")
    assert payloads(consumer) == [*numbers(3), b"alone 1"]
    figures = client.admin.topics.stats("t")["subscriptions"]["s"]
    assert figures["filter_accepted_msg_count"] == 4
    assert figures["filter_rejected_msg_count"] == 2
