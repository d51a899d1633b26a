"""Scenarios: payloads encrypted from end to end, and consumers with and without the key."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from world import PATIENCE_MS, TYPES, World, place, scenario, text

ACTIONS = ("FAIL", "DISCARD", "CONSUME")


@cache
def key_paths(name: str) -> tuple[str, str]:
    """Files of a public and a private key, new in each process."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, True)
    key = rsa.generate_private_key(65537, 2048)
    (folder / "public").write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    (folder / "private").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return str(folder / "public"), str(folder / "private")


def keys(world: World, name: str = "mine") -> Any:
    return world.pulsar.CryptoKeyReader(*key_paths(name))


def encrypting(world: World, client: Any, **options: Any) -> Any:
    return client.create_producer(
        world.topic(), encryption_key="key", crypto_key_reader=keys(world), **options
    )


def send_batch(world: World, client: Any, **options: Any) -> None:
    """Three in one encrypted batch."""
    producer = encrypting(
        world, client, batching_enabled=True, batching_max_publish_delay_ms=60_000, **options
    )
    for number in range(3):
        producer.send_async(b"%d" % number, lambda *_: None, partition_key="k")
    producer.flush()
    producer.close()


def described(message: Any) -> list[Any]:
    context = message.encryption_context()
    found: list[Any] = [len(message.data()), message.partition_key(), place(message.message_id())]
    if context is None:
        return [*found, None]
    return [
        *found,
        [[key.key, len(key.value), key.metadata] for key in context.keys()],  # noqa: SIM118
        len(context.param()),
        context.algorithm(),
        context.compression_type().name,
        context.uncompressed_message_size() > 0,
        context.batch_size(),
        context.is_decryption_failed(),
    ]


@scenario(each=TYPES)
def what_is_encrypted_is_decrypted(world: World, kind: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, kind, crypto_key_reader=keys(world))
    send_batch(world, client)
    encrypting(world, client).send(b"alone", partition_key="k", properties={"a": "b"})
    world.send(client, [(b"plain", "k")])
    found = world.messages(consumer, 5)
    return [[text(each.data()) for each in found], [described(each) for each in found]]


@scenario(each=("LZ4", "ZLib", "ZSTD", "SNAPPY"))
def it_is_compressed_before(world: World, compression: str) -> Any:
    client = world.client()
    consumer = world.subscribe(client, crypto_key_reader=keys(world))
    send_batch(world, client, compression_type=getattr(world.pulsar.CompressionType, compression))
    found = world.messages(consumer, 3)
    return [[text(each.data()) for each in found], described(found[2])[3:]]


@scenario
def a_large_message_comes_in_encrypted_chunks(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, crypto_key_reader=keys(world))
    large = bytes(range(256)) * 25_000
    encrypting(world, client, chunking_enabled=True).send(large)
    message = consumer.receive(PATIENCE_MS)
    return [message.data() == large, described(message)[3:]]


@scenario(each=[f"{action}-{name}" for action in ACTIONS for name in ("none", "other")])
def what_cannot_be_decrypted(world: World, case: str) -> Any:
    action, name = case.split("-")
    client = world.client()
    consumer = world.subscribe(
        client,
        crypto_key_reader=None if name == "none" else keys(world, name),
        crypto_failure_action=getattr(world.pulsar.ConsumerCryptoFailureAction, action),
    )
    send_batch(world, client)
    encrypting(world, client).send(b"alone", partition_key="k")
    world.send(client, [(b"plain", "k")])
    found = []
    while True:
        try:
            message = consumer.receive(2000)
        except world.pulsar.Timeout:
            break
        found.append(described(message))
        if message.data() == b"plain" or action == "CONSUME":
            consumer.acknowledge(message)
    consumer.close()
    again = world.subscribe(client, crypto_key_reader=keys(world))
    left = {"FAIL": 4, "DISCARD": 0, "CONSUME": 0}[action]
    return [found, world.receive(again, left), world.is_empty(again)]


@scenario
def what_failed_comes_again_when_it_is_asked_for(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client, crypto_key_reader=keys(world, "other"))
    send_batch(world, client)
    found = [world.is_empty(consumer)]
    consumer.redeliver_unacknowledged_messages()
    found.append(world.is_empty(consumer))
    consumer.close()
    again = world.subscribe(client, crypto_key_reader=keys(world))
    return [*found, world.receive(again, 3)]


@scenario
def a_reader_decrypts(world: World) -> Any:
    client = world.client()
    send_batch(world, client)
    reader = client.create_reader(
        world.topic(), world.pulsar.MessageId.earliest, crypto_key_reader=keys(world)
    )
    return world.read(reader)


@scenario
def a_public_key_that_is_not_there(world: World) -> Any:
    client = world.client()
    reader = world.pulsar.CryptoKeyReader("/nowhere/public", "/nowhere/private")
    producer = client.create_producer(world.topic(), encryption_key="key", crypto_key_reader=reader)
    return world.outcome(producer.send, b"a")


@scenario
def a_key_reader_without_the_name_of_a_key(world: World) -> Any:
    client = world.client()
    consumer = world.subscribe(client)
    producer = client.create_producer(world.topic(), crypto_key_reader=keys(world))
    producer.send(b"plain")
    message = consumer.receive(PATIENCE_MS)
    return [text(message.data()), message.encryption_context() is None]
