"""Facts about encryption from end to end: what producers store, and what consumers get of it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
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
    write_keys,
)
from sleeping_thread import until_asleep
from support.consumer_types import ALL_TYPES
from support.topics import backlog
from topic_reading import OpenClient, Told, drain, numbers, payloads, whole_topic

import pulsarx
from pulsarx import (
    CompressionType,
    ConsumerCryptoFailureAction,
    ConsumerType,
    CryptoKeyReader,
    MessageId,
    Result,
    encryption,
    errors,
)
from pulsarx.compression import compress
from pulsarx.encryption import PayloadDecryption
from pulsarx.testing import inspect

FAIL = ConsumerCryptoFailureAction.FAIL
DISCARD = ConsumerCryptoFailureAction.DISCARD
CONSUME = ConsumerCryptoFailureAction.CONSUME
FOUR_HOURS = 4 * 60 * 60

all_types = pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
    ids=lambda kind: kind.name,
)
# A consumer that cannot decrypt: without a key reader, and with the key of others.
without_the_key = pytest.mark.parametrize("reader", [None, "other"], ids=["none", "other"])


def reader_of(key_files: KeyFiles, name: str | None) -> CryptoKeyReader | None:
    return None if name is None else key_files(name)


# What is stored -----------------------------------------------------------------------------------


@all_types
@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.ZSTD], ids=str)
def test_a_consumer_with_the_key_reads_what_was_encrypted(
    client: pulsarx.Client, keys: CryptoKeyReader, kind: Any, compression: Any
) -> None:
    consumer = subscribe(client, keys, consumer_type=kind)
    with batching(client, keys, compression_type=compression) as producer:
        send_batch(producer, [b"a" * 100, b"", b"c"], partition_key="k", properties={"p": "q"})
    with encrypting(client, keys, compression_type=compression) as producer:
        producer.send(b"alone", partition_key="k", event_timestamp=7)
        producer.send(None, partition_key="k")
    found = drain(consumer)
    assert [each.data() for each in found] == [b"a" * 100, b"", b"c", b"alone", b""]
    assert [each.has_null_value() for each in found] == [False, False, False, False, True]
    assert {each.partition_key() for each in found} == {"k"}
    assert found[0].properties() == {"p": "q"}
    assert found[3].event_timestamp() == 7
    assert [each.message_id().batch_index() for each in found] == [0, 1, 2, -1, -1]
    consumer.acknowledge_many(found)
    assert backlog(client) == 0


def test_the_context_says_how_a_message_was_encrypted(
    client: pulsarx.Client, keys: CryptoKeyReader
) -> None:
    consumer = subscribe(client, keys)
    client.create_producer("t").send(b"plain")
    with batching(client, keys, compression_type=CompressionType.LZ4) as producer:
        send_batch(producer, numbers(3))
    encrypting(client, keys).send(b"alone")
    plain, *batch, alone = drain(consumer)
    assert plain.encryption_context() is None
    context = batch[1].encryption_context()
    assert isinstance(context, pulsarx.EncryptionContext)
    (key,) = context.keys()
    assert (key.key, len(key.value), key.metadata) == ("key", 256, {})
    assert (len(context.param()), context.algorithm()) == (12, "")
    assert context.compression_type() == CompressionType.LZ4
    assert (context.uncompressed_message_size() > 3, context.batch_size()) == (True, 3)
    assert context.is_decryption_failed() is False
    assert str(context).startswith("EncryptionContext(algorithm=, compression_type=LZ4, ")
    context = alone.encryption_context()
    assert context.compression_type() == CompressionType.NONE
    assert (context.uncompressed_message_size(), context.batch_size()) == (0, -1)


def test_the_folder_holds_nothing_of_the_payload(
    client: pulsarx.Client, folder: Path, keys: CryptoKeyReader
) -> None:
    def stored() -> bytes:
        return b"".join(each.read_bytes() for each in folder.rglob("*") if each.is_file())

    secret = b"nobody may read this"
    with batching(client, keys) as producer:
        send_batch(producer, [secret, secret], properties={"hidden": "in a batch"})
    encrypting(client, keys).send(secret, properties={"open": "beside the payload"})
    client.close()
    assert secret not in stored()
    # As in Pulsar: properties of a batch are inside, those of a message alone are metadata.
    assert b"in a batch" not in stored()
    assert b"beside the payload" in stored()


def test_no_two_entries_have_one_initialization_vector(
    client: pulsarx.Client, keys: CryptoKeyReader
) -> None:
    consumer = subscribe(client, keys)
    with encrypting(client, keys) as producer:
        for _ in range(50):
            producer.send(b"the same")
    params = {each.encryption_context().param() for each in drain(consumer)}
    assert len(params) == 50


def test_the_data_key_is_renewed_after_four_hours(
    client: pulsarx.Client,
    keys: CryptoKeyReader,
    manual_clock: pulsarx.ManualClock,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    consumer = subscribe(client, keys)
    passing = CryptoKeyReader(str(tmp_path / "public"), "")
    Path(passing.public_key_path).write_bytes(Path(keys.public_key_path).read_bytes())
    producer = encrypting(client, passing)
    producer.send(b"1")
    manual_clock.advance(FOUR_HOURS - 1)
    producer.send(b"2")
    manual_clock.advance(1)
    producer.send(b"3")
    Path(passing.public_key_path).unlink()
    manual_clock.advance(FOUR_HOURS)
    producer.send(b"4")
    found = drain(consumer)
    assert [each.data() for each in found] == numbers(4, 1)
    first, second, third, fourth = [each.encryption_context().keys()[0].value for each in found]
    assert [first == second, second == third, third == fourth] == [True, False, True]
    assert "the data key is used for another four hours: the public key cannot be" in caplog.text


@pytest.mark.parametrize("content", [None, b"", b"no key", b"private"], ids=str)
def test_a_producer_that_cannot_read_its_key_fails_what_it_sends(
    client: pulsarx.Client,
    keys: CryptoKeyReader,
    tmp_path: Path,
    content: bytes | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As in the official client it is made, and sends once the key can be read."""
    path = tmp_path / "public"
    if content is not None:
        path.write_bytes(
            Path(keys.private_key_path).read_bytes() if content == b"private" else content
        )
    reader = CryptoKeyReader(str(path), "")
    alone, batches = encrypting(client, reader), batching(client, reader)
    assert "what this producer sends will fail: the public key" in caplog.text
    told = Told()
    with pytest.raises(errors.CryptoError, match="the public key"):
        alone.send(b"1")
    alone.send_async(b"2", told)
    batches.send_async(b"3", told)
    with pytest.raises(errors.CryptoError):
        batches.flush()
    inspect(client).settle()
    assert [result for result, _ in told.results] == [Result.CryptoError] * 2
    assert client.admin.topics.stats("t")["messages"] == 0
    path.write_bytes(Path(keys.public_key_path).read_bytes())
    alone.send(b"4")
    assert payloads(subscribe(client, keys)) == [b"4"]


def test_a_key_name_without_a_reader_is_refused(
    client: pulsarx.Client, keys: CryptoKeyReader
) -> None:
    """The official client sends in plain text then, and says nothing."""
    with pytest.raises(errors.InvalidConfiguration, match="without a crypto_key_reader"):
        client.create_producer("t", encryption_key="key")
    client.create_producer("t", encryption_key="", crypto_key_reader=keys).send(b"plain")
    assert whole_topic(client) == [b"plain"]


@pytest.mark.parametrize("batched", [False, True])
def test_an_encrypted_payload_counts_for_max_message_size(
    open_client: OpenClient, keys: CryptoKeyReader, batched: bool
) -> None:
    client = open_client(broker_options=pulsarx.BrokerOptions(max_message_size=1000))
    producer = encrypting(client, keys, batching_enabled=batched)
    producer.send(b"x" * (1000 - 16))
    with pytest.raises(errors.MessageTooBig):
        producer.send(b"x" * (1000 - 15))
    assert [len(each) for each in payloads(subscribe(client, keys))] == [984]


# What cannot be decrypted -------------------------------------------------------------------------


@all_types
@without_the_key
def test_fail_delivers_nothing_and_acknowledges_nothing(
    client: pulsarx.Client,
    key_files: KeyFiles,
    kind: Any,
    reader: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    keys = key_files()
    consumer = subscribe(client, reader_of(key_files, reader), consumer_type=kind)
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3), partition_key="k")
    encrypting(client, keys).send(b"3", partition_key="k")
    client.create_producer("t").send(b"plain", partition_key="other")
    assert payloads(consumer) == [b"plain"]
    assert backlog(client) == 5
    told = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert len([each for each in told if "with 3 messages cannot be decrypted: " in each]) == 1
    assert "it is not delivered, and its messages stay unacknowledged" in told[0]
    consumer.close()
    assert inspect(client).subscription("t", "s").dispatcher.check() == []
    # Whoever has the key gets all of it.
    assert payloads(subscribe(client, keys, consumer_type=kind)) == [*numbers(4), b"plain"]


@all_types
def test_what_failed_comes_again_when_it_is_asked_for(
    client: pulsarx.Client, keys: CryptoKeyReader, kind: Any, tmp_path: Path
) -> None:
    late = CryptoKeyReader("", str(tmp_path / "private"))
    consumer = subscribe(client, late, consumer_type=kind)
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3), partition_key="k")
    assert payloads(consumer) == []
    Path(late.private_key_path).write_bytes(Path(keys.private_key_path).read_bytes())
    assert payloads(consumer) == []
    consumer.redeliver_unacknowledged_messages()
    found = drain(consumer)
    assert [each.data() for each in found] == numbers(3)
    assert {each.redelivery_count() for each in found} == {1}


@all_types
def test_what_failed_comes_again_when_its_acknowledgement_is_overdue(
    client: pulsarx.Client,
    keys: CryptoKeyReader,
    kind: Any,
    tmp_path: Path,
    manual_clock: pulsarx.ManualClock,
) -> None:
    late = CryptoKeyReader("", str(tmp_path / "private"))
    consumer = subscribe(client, late, consumer_type=kind, unacked_messages_timeout_ms=10_000)
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3), partition_key="k")
    assert payloads(consumer) == []
    Path(late.private_key_path).write_bytes(Path(keys.private_key_path).read_bytes())
    manual_clock.advance(11)
    assert payloads(consumer) == numbers(3)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done with private keys: they are loaded, and decrypt data keys."""
    found: list[str] = []

    def noted(name: str) -> None:
        before = getattr(encryption._Keys, name)

        def step(*arguments: Any) -> Any:
            found.append(name)
            return before(*arguments)

        monkeypatch.setattr(encryption._Keys, name, step)

    noted("private")
    noted("unwrap")
    return found


def test_a_private_key_is_tried_once_with_the_data_key_of_many_entries(
    client: pulsarx.Client, key_files: KeyFiles, steps: list[str], tmp_path: Path
) -> None:
    """Loading a key checks it, which takes a tenth of a second. That was done for each entry that
    cannot be decrypted, and of a thousand in a row `receive` came back after minutes."""
    keys = key_files()
    changed = CryptoKeyReader("", str(tmp_path / "private"))
    Path(changed.private_key_path).write_bytes(
        Path(key_files("other").private_key_path).read_bytes()
    )
    consumer = subscribe(client, changed)
    with encrypting(client, keys) as producer:
        for payload in numbers(20):
            producer.send(payload)
    assert payloads(consumer) == []
    assert steps == ["private", "unwrap"]
    Path(changed.private_key_path).write_bytes(Path(keys.private_key_path).read_bytes())
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == numbers(20)
    assert steps == ["private", "unwrap"] * 2


RECEIVE = {
    "receive": lambda consumer: consumer.receive(60_000).data(),
    "receive_many": lambda consumer: consumer.receive_many(5, 60_000)[0].data(),
    "batch_receive": lambda consumer: consumer.batch_receive()[0].data(),
    "receive_async": lambda consumer: consumer.receive_async().result(60).data(),
    "receive_arrow": lambda consumer: (
        consumer.receive_arrow(5, 60_000).to_arrow()["value"][0].as_py()
    ),
}


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared])
@pytest.mark.parametrize("call", RECEIVE)
def test_a_key_file_that_is_slow_holds_up_its_consumer_alone(
    open_client: OpenClient,
    keys: CryptoKeyReader,
    tmp_path: Path,
    call: str,
    kind: ConsumerType,
    chunked: bool,
) -> None:
    """It was read with the mutex of the subscription held: statistics, acknowledgements and other
    consumers waited for a file of a network."""
    client = open_client(broker_options=pulsarx.BrokerOptions(max_message_size=5000))
    slow = tmp_path / "slow"
    os.mkfifo(slow)
    policy = pulsarx.ConsumerBatchReceivePolicy(1, 0, 60_000)
    consumer = subscribe(
        client, CryptoKeyReader("", str(slow)), consumer_type=kind, batch_receive_policy=policy
    )
    payload = bytes(9000 if chunked else 90)
    with encrypting(client, keys, chunking_enabled=chunked) as producer:
        producer.send(payload)
    found: list[Any] = []
    receiving = threading.Thread(target=lambda: found.append(RECEIVE[call](consumer)), daemon=True)
    receiving.start()
    until_asleep(receiving)
    asked: list[Any] = []
    asking = threading.Thread(
        target=lambda: asked.append(client.admin.topics.stats("t")), daemon=True
    )
    asking.start()
    asking.join(60)
    assert asked and not found
    slow.write_bytes(Path(keys.private_key_path).read_bytes())
    receiving.join(60)
    assert found == [payload]


def test_a_private_key_is_loaded_once_for_the_many_keys_of_an_entry(
    client: pulsarx.Client, keys: CryptoKeyReader, steps: list[str]
) -> None:
    entry = Forged(keys)
    others = b"".join(
        block(13, block(1, b"other") + block(2, b"%03d" % size + b"\1" * size))
        for size in range(300)
    )
    entry.keys = others + entry.keys
    entry.store(client)
    assert payloads(subscribe(client, keys)) == [b"forged"]
    assert steps == ["private"] + ["unwrap"] * 301


@all_types
@without_the_key
def test_discard_acknowledges_and_goes_on(
    client: pulsarx.Client,
    key_files: KeyFiles,
    kind: Any,
    reader: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    keys = key_files()
    consumer = subscribe(
        client, reader_of(key_files, reader), consumer_type=kind, crypto_failure_action=DISCARD
    )
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3), partition_key="k")
    encrypting(client, keys).send(b"3", partition_key="k")
    client.create_producer("t").send(b"plain", partition_key="other")
    (plain,) = drain(consumer)
    assert plain.data() == b"plain"
    assert backlog(client) == 1
    assert "crypto_failure_action is DISCARD: its messages count as acknowledged" in caplog.text
    consumer.acknowledge(plain)
    assert inspect(client).subscription("t", "s").dispatcher.check() == []
    consumer.close()
    assert payloads(subscribe(client, keys, consumer_type=kind)) == []


@all_types
@without_the_key
def test_consume_delivers_a_batch_as_one_message_as_it_is_stored(
    client: pulsarx.Client, key_files: KeyFiles, kind: Any, reader: str | None
) -> None:
    keys = key_files()
    consumer = subscribe(
        client, reader_of(key_files, reader), consumer_type=kind, crypto_failure_action=CONSUME
    )
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3), partition_key="k")
    encrypting(client, keys).send(b"3", partition_key="k", properties={"a": "b"})
    batch, alone = drain(consumer)
    assert batch.message_id().batch_index() == alone.message_id().batch_index() == -1
    assert batch.encryption_context().is_decryption_failed()
    assert batch.encryption_context().batch_size() == 3
    assert (alone.partition_key(), alone.properties()) == ("k", {"a": "b"})
    # Its program has what it takes.
    assert decrypted_by_hand(alone, keys) == b"3"
    assert all(each in decrypted_by_hand(batch, keys) for each in numbers(3))
    consumer.redeliver_unacknowledged_messages()
    batch, alone = drain(consumer)
    assert batch.redelivery_count() == 1
    consumer.acknowledge(batch)
    assert backlog(client) == 1
    consumer.acknowledge(alone)
    assert backlog(client) == 0
    assert inspect(client).subscription("t", "s").dispatcher.check() == []


@all_types
def test_a_batch_that_was_consumed_as_stored_is_negatively_acknowledged_as_one(
    client: pulsarx.Client, keys: CryptoKeyReader, kind: Any, manual_clock: pulsarx.ManualClock
) -> None:
    consumer = subscribe(client, consumer_type=kind, crypto_failure_action=CONSUME)
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3), partition_key="k")
    (batch,) = drain(consumer)
    consumer.negative_acknowledge(batch)
    assert drain(consumer) == []
    manual_clock.advance(60)
    (again,) = drain(consumer)
    assert again.message_id() == batch.message_id()
    consumer.acknowledge(again.message_id())
    assert backlog(client) == 0


@pytest.mark.parametrize("together", [False, True])
def test_a_batch_consumed_as_stored_is_acknowledged_as_a_whole(
    client: pulsarx.Client, keys: CryptoKeyReader, together: bool
) -> None:
    consumer = subscribe(client, crypto_failure_action=CONSUME)
    plain = client.create_producer("t")
    plain.send(b"before")
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3))
    plain.send(b"behind")
    found = drain(consumer)
    assert len(found) == 3
    if together:
        consumer.acknowledge_many(found)
        assert backlog(client) == 0
    else:
        consumer.acknowledge_cumulative(found[1])
        assert backlog(client) == 1


@pytest.mark.parametrize("queue", [0, 2])
def test_a_batch_goes_to_one_consumer_whatever_its_queue(
    client: pulsarx.Client, keys: CryptoKeyReader, queue: int
) -> None:
    """Where its messages end is not known to who dispatches it. As in Pulsar."""
    shared = {"consumer_type": ConsumerType.Shared, "receiver_queue_size": queue}
    first = subscribe(client, keys, **shared)
    second = subscribe(client, **shared)
    with batching(client, keys) as producer:
        send_batch(producer, numbers(10))
    assert payloads(first) + payloads(second) == numbers(10)
    assert inspect(client).subscription("t", "s").dispatcher.check() == []


@all_types
@pytest.mark.parametrize("raised", [MemoryError, KeyboardInterrupt])
def test_decrypting_that_is_interrupted_is_done_once_more(
    client: pulsarx.Client,
    keys: CryptoKeyReader,
    kind: Any,
    raised: type[BaseException],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is encrypted is not taken for plain then, and is not lost."""
    consumer = subscribe(client, keys, consumer_type=kind)
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3), partition_key="k")
    decrypt = PayloadDecryption.decrypt
    left = [raised(), raised()]

    def interrupted(
        self: PayloadDecryption, metadata: bytes, payload: bytes, defers: bool = False
    ) -> bytes:
        if left:
            raise left.pop()
        return decrypt(self, metadata, payload, defers)

    monkeypatch.setattr(PayloadDecryption, "decrypt", interrupted)
    for call in (lambda: consumer.receive(0), lambda: consumer.receive_many(10, 0)):
        with pytest.raises(raised):
            call()
    found = drain(consumer)
    assert [each.data() for each in found] == numbers(3)
    assert {each.redelivery_count() for each in found} == {0}
    assert inspect(client).subscription("t", "s").dispatcher.check() == []


@all_types
def test_a_batch_as_it_is_stored_that_nobody_saw_comes_again_whole(
    client: pulsarx.Client, keys: CryptoKeyReader, kind: Any
) -> None:
    """A cancelled future gives back what it took: all messages of the batch were held for it."""
    consumer = subscribe(
        client,
        consumer_type=kind,
        crypto_failure_action=CONSUME,
        unacked_messages_timeout_ms=10_000,
    )
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3), partition_key="k")
    (batch,) = drain(consumer)
    consumer.give_back([batch])
    (again,) = drain(consumer)
    assert (again.message_id(), again.redelivery_count()) == (batch.message_id(), 0)
    assert inspect(client).subscription("t", "s").dispatcher.check() == []
    consumer.acknowledge(again)
    assert backlog(client) == 0


def test_what_one_consumer_could_not_decrypt_goes_to_another_when_it_leaves(
    client: pulsarx.Client, keys: CryptoKeyReader
) -> None:
    unable = subscribe(client, consumer_type=ConsumerType.Shared)
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3))
    assert payloads(unable) == []
    able = subscribe(client, keys, consumer_type=ConsumerType.Shared)
    assert payloads(able) == []
    unable.close()
    assert payloads(able) == numbers(3)


def test_part_of_a_batch_comes_again_to_a_consumer_that_decrypts_it_itself(
    client: pulsarx.Client, keys: CryptoKeyReader, manual_clock: pulsarx.ManualClock
) -> None:
    first = subscribe(client, keys, consumer_type=ConsumerType.Shared)
    with batching(client, keys, compression_type=CompressionType.ZLib) as producer:
        send_batch(producer, numbers(5))
    found = drain(first)
    for each in (found[3], found[1]):
        first.negative_acknowledge(each)
    for each in (found[0], found[2], found[4]):
        first.acknowledge(each)
    first.close()
    second = subscribe(client, keys, consumer_type=ConsumerType.Shared)
    manual_clock.advance(60)
    again = drain(second)
    assert [each.data() for each in again] == [b"1", b"3"]
    second.acknowledge_many(again)
    assert backlog(client) == 0


def _tag_cut(entry: Forged) -> None:
    entry.payload = entry.payload[:-1]


def _shorter_than_a_tag(entry: Forged) -> None:
    entry.payload = entry.payload[:15]


def _empty(entry: Forged) -> None:
    entry.payload = b""


def _damaged(entry: Forged) -> None:
    entry.payload = bytes((entry.payload[0] ^ 1,)) + entry.payload[1:]


def _no_param(entry: Forged) -> None:
    entry.param = None


def _long_param(entry: Forged) -> None:
    entry.param = bytes(100_000)


def _empty_param(entry: Forged) -> None:
    entry.param = b""


def _short_data_key(entry: Forged) -> None:
    entry.wrap(bytes(16))


def _long_data_key(entry: Forged) -> None:
    entry.wrap(bytes(200))


def _wrapped_wrongly(entry: Forged) -> None:
    entry.keys = block(13, block(1, b"key") + block(2, bytes(256)))


def _key_of_other_size(entry: Forged) -> None:
    entry.keys = block(13, block(1, b"key") + block(2, b"?"))


def _empty_key(entry: Forged) -> None:
    entry.keys = block(13, b"")


def _malformed_key(entry: Forged) -> None:
    entry.keys = block(13, b"\x0a\xff\xff\x03")


def _malformed_properties(entry: Forged) -> None:
    entry.keys = block(13, block(1, b"key") + block(2, entry.value) + block(3, b"\x0a\x7f"))


def _properties_of_a_key(entry: Forged) -> None:
    pair = block(1, b"version") + block(2, b"7")
    other = block(13, block(1, b"\xff") + block(2, b"other") + block(3, pair))
    entry.keys = other + block(13, block(1, b"key") + block(2, entry.value) + block(3, pair))


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_tag_cut, "the payload, or its tag, is not what was encrypted"),
        (_shorter_than_a_tag, "it has 15 bytes, and the tag alone has 16"),
        (_empty, "it has 0 bytes, and the tag alone has 16"),
        (_damaged, "the payload, or its tag, is not what was encrypted"),
        (_no_param, "its encryption_param has 0 bytes, not 12"),
        (_empty_param, "its encryption_param has 0 bytes, not 12"),
        (_long_param, "its encryption_param has 100000 bytes, not 12"),
        (_short_data_key, "its data key has 16 bytes, not 32"),
        (_long_data_key, "its data key has 200 bytes, not 32"),
        (_wrapped_wrongly, "its data key was not encrypted for this private key"),
        (_key_of_other_size, "its data key was not encrypted for this private key"),
        (_empty_key, "its data key was not encrypted for this private key"),
        (_malformed_key, "read an encryption key of 4 bytes"),
        (_malformed_properties, "read an encryption key of 2 bytes"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared], ids=str)
def test_what_is_spoiled_is_not_decrypted_and_says_why(
    client: pulsarx.Client,
    keys: CryptoKeyReader,
    spoil: Any,
    why: str,
    kind: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    entry = Forged(keys)
    entry.store(client)
    spoil(entry)
    entry.store(client)
    client.create_producer("t").send(b"behind")
    consumer = subscribe(client, keys, consumer_type=kind)
    assert payloads(consumer) == [b"forged", b"behind"]
    assert f"cannot be decrypted: {why}" in caplog.text
    assert backlog(client) == 3


def test_an_encrypted_batch_that_nobody_could_decompress_is_refused(
    client: pulsarx.Client, keys: CryptoKeyReader
) -> None:
    """As one is that is not encrypted. In few bytes it claims millions of messages, each of which
    takes memory of the broker when it is delivered."""
    entry = Forged(keys)
    entry.fields = number(8, 3) + number(9, 1 << 30) + number(11, 3)
    entry.store(client)  # the most that this one takes
    entry.fields = number(8, 3) + number(9, (1 << 30) + 1) + number(11, 170_000_000)
    with pytest.raises(errors.UnreadableEntryError, match="claims 1073741825 bytes"):
        entry.store(client)
    assert client.admin.topics.stats("t")["entries"] == 1


@pytest.mark.parametrize(
    ("compression", "ratio"), [(0, 1), (1, 255), (2, 1032), (3, 16384), (4, 22)]
)
def test_an_encrypted_batch_that_claims_more_than_fits_in_its_bytes_is_refused(
    client: pulsarx.Client, keys: CryptoKeyReader, compression: int, ratio: int
) -> None:
    """In 330 bytes it claimed 22 million messages, for which 2.4 GB were taken where it was
    delivered. As many as compress best are there."""
    count = 100_000
    plain = b"\x00\x00\x00\x02\x18\x00" * count  # the smallest message
    packed = compress(compression, plain) if compression else plain
    entry = Forged(keys, packed)
    entry.fields = number(8, compression) + number(9, len(plain)) + number(11, count)
    entry.store(client)
    consumer = subscribe(client, keys)
    assert len(consumer.receive_many(2 * count, 10_000)) == count
    most = len(packed) * ratio // 6
    entry.fields = number(8, compression) + number(9, 1 << 30) + number(11, most)
    entry.store(client)
    entry.fields = number(8, compression) + number(9, 1 << 30) + number(11, most + 1)
    with pytest.raises(errors.UnreadableEntryError, match=f"at most {most} fit in there"):
        entry.store(client)


def test_the_second_key_of_an_entry_may_be_this_consumers(
    client: pulsarx.Client, keys: CryptoKeyReader
) -> None:
    """Pulsar's Java client encrypts for several."""
    entry = Forged(keys)
    _properties_of_a_key(entry)
    entry.store(client)
    (message,) = drain(subscribe(client, keys))
    assert message.data() == b"forged"
    first, second = message.encryption_context().keys()
    assert (first.key, first.value, first.metadata) == ("\udcff", b"other", {"version": "7"})
    assert (second.key, second.metadata) == ("key", {"version": "7"})


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (number(8, 3) + number(9, 1000), errors.CorruptDataError),
        (number(8, 3) + number(9, 1 << 31), errors.UnreadableEntryError),
        (number(11, 3), errors.CorruptDataError),
    ],
    ids=["not compressed", "too large", "no batch"],
)
@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared], ids=str)
def test_what_is_decrypted_and_is_no_message_is_told_as_damage(
    client: pulsarx.Client, keys: CryptoKeyReader, fields: bytes, error: Any, kind: Any
) -> None:
    entry = Forged(keys, b"no more than this, which is no batch of three messages")
    entry.fields = fields
    entry.store(client)
    client.create_producer("t").send(b"behind")
    consumer = subscribe(client, keys, consumer_type=kind)
    with pytest.raises(error):
        consumer.receive(0)
    (behind,) = drain(consumer)
    assert behind.data() == b"behind"
    consumer.acknowledge(behind)
    assert inspect(client).subscription("t", "s").dispatcher.check() == []


# Readers, and who has no key ----------------------------------------------------------------------


def test_a_reader_decrypts_too(client: pulsarx.Client, keys: CryptoKeyReader) -> None:
    with batching(client, keys) as producer:
        send_batch(producer, numbers(3))
    with client.create_reader("t", MessageId.earliest, crypto_key_reader=keys) as reader:
        assert [reader.read_next(0).data() for _ in range(3)] == numbers(3)
        assert not reader.has_message_available()
    with client.create_reader("t", MessageId.earliest) as reader:
        assert not reader.has_message_available()
        with pytest.raises(errors.Timeout):
            reader.read_next(0)
    stored = client.create_reader("t", MessageId.earliest, crypto_failure_action=CONSUME)
    assert stored.has_message_available()
    assert b"1" in decrypted_by_hand(stored.read_next(0), keys)
    assert not stored.has_message_available()


def test_a_reader_begins_inside_an_encrypted_batch(
    client: pulsarx.Client, keys: CryptoKeyReader
) -> None:
    consumer = subscribe(client, keys)
    with batching(client, keys) as producer:
        send_batch(producer, numbers(4))
    second = drain(consumer)[1].message_id()
    with client.create_reader("t", second, crypto_key_reader=keys) as reader:
        assert [each.data() for each in reader.read_many(10, 0)] == [b"2", b"3"]


def test_a_client_beside_the_owner_decrypts(
    client: pulsarx.Client, folder: Path, keys: CryptoKeyReader
) -> None:
    encrypting(client, keys).send(b"a")
    with pulsarx.Client(folder, read_only=True) as reading:
        reader = reading.create_reader("t", MessageId.earliest, crypto_key_reader=keys)
        assert reader.read_next(0).data() == b"a"


def test_without_the_package_a_key_reader_is_refused(
    client: pulsarx.Client, keys: CryptoKeyReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    for call in (
        lambda: encrypting(client, keys),
        lambda: subscribe(client, keys),
        lambda: client.create_reader("t", MessageId.earliest, crypto_key_reader=keys),
    ):
        with pytest.raises(ImportError, match=r"pip install 'pulsarx\[encryption\]'"):
            call()
    client.create_producer("t", crypto_key_reader=keys).send(b"plain")
    assert payloads(subscribe(client, crypto_failure_action=DISCARD)) == [b"plain"]


@pytest.mark.standard
def test_who_uses_no_key_reader_does_not_load_the_package() -> None:
    program = (
        "import sys, pulsarx\n"
        "client = pulsarx.Client('memory:')\n"
        "consumer = client.subscribe('t', 's')\n"
        "client.create_producer('t').send(b'1')\n"
        "consumer.acknowledge(consumer.receive())\n"
        "client.close()\n"
        "print([name for name in sys.modules if 'cryptography' in name])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert run.stdout == "[]\n", run.stderr


def test_keys_with_a_password_or_of_another_kind_are_none(
    client: pulsarx.Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    keys = write_keys(tmp_path / "pair")
    encrypting(client, keys).send(b"a")
    key: Any = ec.generate_private_key(ec.SECP256R1())
    curve = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    mine: Any = serialization.load_pem_private_key(Path(keys.private_key_path).read_bytes(), None)
    locked = mine.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )
    for name, content, why in [
        ("curve", curve, "the private key is not one of RSA"),
        ("locked", locked, "the private key is no PEM of a key without password"),
    ]:
        (tmp_path / name).write_bytes(content)
        reader = CryptoKeyReader("", str(tmp_path / name))
        assert payloads(subscribe(client, reader, name)) == []
        assert why in caplog.text


@pytest.mark.parametrize("path", ["a\0b", "\ud800"])
def test_a_path_that_can_be_none_fails_as_one_where_nothing_is(
    client: pulsarx.Client, keys: CryptoKeyReader, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each `receive` raised ValueError, and nothing behind the entry was delivered."""
    wrong = CryptoKeyReader(path, path)
    encrypting(client, keys).send(b"a")
    client.create_producer("t").send(b"plain")
    assert payloads(subscribe(client, wrong)) == [b"plain"]
    assert "the private key cannot be read: " in caplog.text
    with encrypting(client, wrong) as producer, pytest.raises(errors.CryptoError):
        producer.send(b"b")
