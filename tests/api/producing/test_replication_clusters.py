"""Facts about where messages are to be replicated to: nothing is, but it stays with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from topic_reading import OpenClient, Told, whole_topic

import pulsarx
from pulsarx import errors

ENTRY_MAGIC = b"\x0e\x01"
NOBODY_ELSE = ["__local__"]  # as Pulsar's clients write it


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(metadata: bytes) -> list[tuple[int, Any]]:
    """Number and value of each field of protobuf bytes, in their order."""
    found: list[tuple[int, Any]] = []
    at = 0
    while at < len(metadata):
        tag, at = varint(metadata, at)
        value, at = varint(metadata, at)
        if tag & 7 == 2:
            found.append((tag >> 3, metadata[at : at + value]))
            at += value
        else:
            found.append((tag >> 3, value))
    return found


def stored(folder: Path, payload: bytes) -> list[tuple[int, Any]]:
    """The fields of the metadata right in front of these bytes in a ledger."""
    for path in (folder / "ledgers").rglob("*"):
        if not path.is_file() or payload not in (content := path.read_bytes()):
            continue
        start = content.rindex(ENTRY_MAGIC, 0, content.index(payload))
        size = int.from_bytes(content[start + 6 : start + 10], "big")
        return fields(content[start + 10 : start + 10 + size])
    raise AssertionError(f"{payload!r} is in no ledger")


def clusters(folder: Path, payload: bytes) -> list[str]:
    return [value.decode() for field, value in stored(folder, payload) if field == 7]


@pytest.mark.parametrize("batching", [False, True])
def test_the_clusters_of_a_message_stay_in_its_metadata(
    folder: Path, open_client: OpenClient, batching: bool
) -> None:
    """They were accepted, and forgotten."""
    producer = open_client().create_producer("t", batching_enabled=batching)
    long = ["c" * 300, "ü"]
    producer.send(b"payload-1", replication_clusters=["a", "b"])
    producer.send_async(b"payload-2", None, replication_clusters=["c"], partition_key="key")
    producer.send(b"payload-3", disable_replication=True)
    producer.new_message().value(b"payload-4").replication_clusters(long).send()
    producer.new_message().value(b"payload-5").disable_replication().send()
    producer.send(b"payload-6")
    producer.flush()
    assert clusters(folder, b"payload-1") == ["a", "b"]
    assert clusters(folder, b"payload-2") == ["c"]
    assert (6, b"key") in stored(folder, b"payload-2")
    assert clusters(folder, b"payload-3") == NOBODY_ELSE
    assert clusters(folder, b"payload-4") == long
    assert clusters(folder, b"payload-5") == NOBODY_ELSE
    assert clusters(folder, b"payload-6") == []


def test_none_is_the_clusters_of_the_namespace_and_disabling_wins(
    folder: Path, open_client: OpenClient
) -> None:
    producer = open_client().create_producer("t")
    producer.send(b"payload-1", replication_clusters=[])
    producer.send(b"payload-2", replication_clusters=["a"], disable_replication=True)
    assert clusters(folder, b"payload-1") == []
    assert clusters(folder, b"payload-2") == NOBODY_ELSE


def test_such_a_message_is_never_in_a_batch(folder: Path, open_client: OpenClient) -> None:
    """A batch has one field for all its messages."""
    client = open_client()
    producer = client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=3_600_000
    )
    told = Told()
    producer.send_async(b"payload-1", told)
    producer.send_async(b"payload-2", told)
    producer.send_async(b"payload-3", told, replication_clusters=["a"])
    producer.send_async(b"payload-4", told)
    producer.flush()
    assert whole_topic(client) == [b"payload-1", b"payload-2", b"payload-3", b"payload-4"]
    places = [each for _, each in told.results if each is not None]
    assert [(each.entry_id(), each.batch_index()) for each in places] == [
        (0, 0), (0, 1), (1, -1), (2, -1),
    ]  # fmt: skip
    assert clusters(folder, b"payload-3") == ["a"]
    assert clusters(folder, b"payload-4") == []


def test_each_chunk_has_the_clusters(folder: Path, open_client: OpenClient) -> None:
    client = open_client(broker_options=pulsarx.BrokerOptions(max_message_size=1000))
    producer = client.create_producer("t", chunking_enabled=True)
    large = b"".join(b"%05d" % number for number in range(400))
    producer.send(large, replication_clusters=["somewhere"])
    assert whole_topic(client) == [large]
    assert clusters(folder, large[:500]) == ["somewhere"]
    assert clusters(folder, large[-100:]) == ["somewhere"]


@pytest.mark.parametrize("cluster", [b"a", 1, None])
def test_a_cluster_is_a_str(memory_client: pulsarx.Client, cluster: Any) -> None:
    producer = memory_client.create_producer("t")
    with pytest.raises(TypeError, match=r"replication_clusters: .* must be str"):
        producer.send(b"x", replication_clusters=[cluster])
    assert whole_topic(memory_client) == []


def test_names_that_take_too_much_room_are_refused(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    with pytest.raises(errors.MessageTooBig):
        producer.send(b"x", replication_clusters=["c" * (6 << 20)])
    assert whole_topic(memory_client) == []
    producer.send(b"y")
    assert whole_topic(memory_client) == [b"y"]
