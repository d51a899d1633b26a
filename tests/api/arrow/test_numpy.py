"""Facts about NumPy columns in and out, and about what is loaded for them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from topic_reading import read_all

import pulsarx
from pulsarx import hashing

HASHED = ["", "a", "ab", "abc", "hello", "key-10", "wert ä", "x" * 1000]


def rows(client: pulsarx.Client, topic: str = "t") -> list[tuple[Any, ...]]:
    return [
        (None if each.has_null_value() else each.data(), each.partition_key(),
         each.event_timestamp())
        for each in read_all(client, topic)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([b"one", b"", b"three"]), [b"one", b"", b"three"]),
        (np.array([b"a\0b", b"\0\0c", b"d"]), [b"a\0b", b"\0\0c", b"d"]),
        (np.array(["eins", "", "zwei ä"]), [b"eins", b"", "zwei ä".encode()]),
        (np.array([b"x", None, "ö"], object), [b"x", None, "ö".encode()]),
        (np.arange(12, dtype=np.uint8).reshape(3, 4),
         [bytes(range(at, at + 4)) for at in (0, 4, 8)]),
        (np.arange(12, dtype=np.uint8).reshape(4, 3).T,
         [bytes(range(at, 12, 3)) for at in range(3)]),
        (np.array([b"ab", b"cd", b"ef"], "V2"), [b"ab", b"cd", b"ef"]),
        (np.array([b"1", b"-", b"2", b"-", b"3"])[::2], [b"1", b"2", b"3"]),
        ([b"of", b"a", b"list"], [b"of", b"a", b"list"]),
    ],
    ids=["S", "zeros inside", "U", "object", "uint8 rows", "strided rows", "V", "strided", "list"],
)  # fmt: skip
@pytest.mark.parametrize("partitions", [0, 1])
def test_values_of_every_kind_arrive(
    memory_client: pulsarx.Client, value: Any, expected: list[bytes | None], partitions: int
) -> None:
    if partitions:
        memory_client.admin.topics.create_partitioned_topic("t", partitions)
    producer = memory_client.create_producer("t")
    last = producer.send_columns(value)
    topic = "t-partition-0" if partitions else "t"
    assert [each[0] for each in rows(memory_client, topic)] == expected
    assert read_all(memory_client, topic)[-1].message_id() == last


def test_keys_and_event_times_arrive(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    times = np.array(["2026-01-01", "NaT", "1970-01-01T00:00:00.007"], "M8[us]")
    producer.send_columns(
        np.array([b"1", b"2", b"3"]), key=np.array(["a", "", "ä"]), event_timestamp=times
    )
    producer.send_columns(
        [b"4", b"5"], key=np.array([None, "k"], object), event_timestamp=np.array([5, 6], np.uint64)
    )
    assert rows(memory_client) == [
        (b"1", "a", 1767225600000), (b"2", "", 0), (b"3", "ä", 7), (b"4", "", 5), (b"5", "k", 6)
    ]  # fmt: skip


@pytest.mark.parametrize("partitions", [0, 1])
def test_properties_arrive_as_they_came_out(memory_client: pulsarx.Client, partitions: int) -> None:
    if partitions:
        memory_client.admin.topics.create_partitioned_topic("t", partitions)
    consumer = memory_client.subscribe("t", "s")
    producer = memory_client.create_producer("t")
    given = [{"n": "1", "m": ""}, None, {}, {"ä": "ö", "": "x" * 1000}]
    expected = [each or {} for each in given]
    producer.send_columns([b"1", b"2", b"3", b"4"], properties=given, key=["a", "b", "c", "d"])
    found = consumer.receive_arrow(10).to_numpy()["properties"]
    assert found.tolist() == expected
    producer.send_columns(np.array([b"1", b"2", b"3", b"4"]), properties=found)
    again = consumer.receive_arrow(10).to_numpy()
    assert again["properties"].tolist() == expected
    assert again["key"].tolist() == [None] * 4


def test_an_empty_array_sends_nothing(memory_client: pulsarx.Client) -> None:
    producer = memory_client.create_producer("t")
    for empty in (np.array([], "S5"), np.array([], object), np.empty((0, 3), np.uint8)):
        assert producer.send_columns(empty, event_timestamp=np.array([], "M8[ms]")) is None
        assert producer.send_columns(empty, properties=[]) is None
    assert rows(memory_client) == []


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"value": np.array([1.5, 2])}, TypeError),
        ({"value": np.array([1, 2])}, TypeError),
        ({"value": np.array([b"1", 7], object)}, TypeError),
        ({"value": np.array([[b"1"], [b"2"]])}, ValueError),
        ({"value": [b"1", b"2"], "key": np.array([1, 2])}, TypeError),
        ({"value": [b"1", b"2"], "key": ["a"]}, ValueError),
        ({"value": [b"1", b"2"], "event_timestamp": [1]}, ValueError),
        ({"value": [b"1", b"2"], "event_timestamp": [1.5, 2.5]}, TypeError),
        ({"value": [b"1", b"2"], "event_timestamp": np.array([1, 1 << 63], np.uint64)}, ValueError),
        ({"value": [b"1", b"2"], "event_timestamp": [-1, 1]}, ValueError),
        ({"value": [b"1", b"2"], "properties": [{"a": "b"}]}, ValueError),
        ({"value": [b"1", b"2"], "properties": [{"a": "b"}, "a"]}, TypeError),
        ({"value": [b"1", b"2"], "properties": [{"a": "b"}, {"a": 1}]}, TypeError),
        ({"value": [b"1", b"2"], "properties": [None, {b"a": "b"}]}, TypeError),
        ({"value": [b"1", b"2"], "properties": [[{}, {}]]}, ValueError),
        ({"value": [b"1", b"2"], "properties": {"a": "b"}}, ValueError),
    ],
    ids=str,
)
def test_an_unfit_array_is_refused_and_nothing_published(
    memory_client: pulsarx.Client, columns: dict[str, Any], expected: type[Exception]
) -> None:
    producer = memory_client.create_producer("t")
    with pytest.raises(expected):
        producer.send_columns(**columns)
    assert rows(memory_client) == []


def test_columns_come_out_as_they_went_in(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe("t", "s")
    producer = memory_client.create_producer("t")
    producer.send_many(
        [b"one", None, b"", b"four"],
        keys=["a", None, "ä", None],
        properties=[None, {"n": "1", "m": ""}, None, {"ä": "ö"}],
        event_timestamps=[7, None, None, 1 << 40],
    )
    ids = [each.message_id() for each in read_all(memory_client)]
    received = consumer.receive_arrow(10)
    found = received.to_numpy()
    assert list(found) == ["ledger_id", "entry_id", "partition", "batch_index", "key", "value",
                           "publish_time", "event_time", "properties"]  # fmt: skip
    assert found["value"].tolist() == [b"one", None, b"", b"four"]
    assert found["key"].tolist() == ["a", None, "ä", None]
    assert found["properties"].tolist() == [{}, {"n": "1", "m": ""}, {}, {"ä": "ö"}]
    assert np.isnat(found["event_time"]).tolist() == [False, True, True, False]
    assert found["event_time"][[0, 3]].astype(np.int64).tolist() == [7, 1 << 40]
    assert found["batch_index"].tolist() == [0, 1, 2, 3]
    assert found["ledger_id"].tolist() == [each.ledger_id() for each in ids]
    assert found["entry_id"].tolist() == [each.entry_id() for each in ids]
    assert found["partition"].dtype == np.int32
    assert (found["publish_time"] > np.datetime64("2020-01-01")).all()
    found["ledger_id"][0] = 5  # a copy, and writable
    assert received.to_numpy()["ledger_id"][0] == ids[0].ledger_id()
    consumer.acknowledge_many(received)


def test_no_messages_are_empty_columns(memory_client: pulsarx.Client) -> None:
    consumer = memory_client.subscribe("t", "s")
    found = consumer.receive_arrow(10, timeout_millis=0).to_numpy()
    assert {name: len(column) for name, column in found.items()} == dict.fromkeys(found, 0)


@pytest.mark.parametrize("key", HASHED)
def test_the_hashes_are_those_of_the_core(memory_client: pulsarx.Client, key: str) -> None:
    from pulsarx._pycore.publish.partition_hash import partition_hash
    from pulsarx._pycore.ranges.entry_codec import murmur3_32

    assert hashing.murmur3_32(key) == hashing.murmur3_32(key.encode()) == murmur3_32(key.encode())
    assert hashing.murmur3_32(key, 7) == murmur3_32(key.encode(), 7)
    if key:
        for scheme in (pulsarx.HashingScheme.JavaStringHash, pulsarx.HashingScheme.Murmur3_32Hash):
            assert hashing.partition_of(key, 7, scheme) == partition_hash(int(scheme), key) % 7
    slot = hashing.key_shared_slot(key)
    policy = pulsarx.ConsumerKeySharedPolicy(
        pulsarx.KeySharedMode.Sticky, sticky_ranges=[(slot, slot)]
    )
    consumer = memory_client.subscribe(
        "t", "s", pulsarx.ConsumerType.KeyShared, key_shared_policy=policy
    )
    memory_client.create_producer("t").send(b"x", ordering_key=key or None, partition_key="NON_KEY")
    if key:
        assert consumer.receive(60_000).data() == b"x"


def test_known_hashes() -> None:
    assert hashing.murmur3_32("NON_KEY") == hashing.sticky_key_hash(None) == 1110787044
    assert (hashing.murmur3_32(b"NONE_KEY"), hashing.key_shared_slot(None)) == (2652225187, 17380)
    for key, partitions in (("", 3), ("a", 0)):
        with pytest.raises(ValueError, match="are needed"):
            hashing.partition_of(key, partitions)


def test_notebooks_show_times_as_numpy_does(client: pulsarx.Client) -> None:
    times = [1, 951_782_399_999, 951_782_400_000, 951_868_800_000, 4_107_542_400_000, 2**63 - 1]
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    for each in times:
        producer.send(b"x", event_timestamp=each)
    shown = consumer.receive_arrow(len(times))._repr_html_()
    for each in times:
        assert str(np.datetime64(each, "ms")).replace("T", " ") in shown


def test_numpy_is_loaded_when_it_is_used_and_not_before() -> None:
    program = """
import sys
def loaded(): return [each for each in ("numpy", "pyarrow") if each in sys.modules]
import pulsarx, pulsarx.hashing
with pulsarx.Client("memory:") as client:
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    producer.send(b"x", partition_key="k")
    columns = consumer.receive_arrow(1)
    columns._repr_html_()
    pulsarx.hashing.murmur3_32("k")
    print(loaded())
    columns.to_numpy()
    print(loaded())
    producer.send_columns([b"y"])
    print(loaded())
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.splitlines() == ["[]", "['numpy']", "['numpy']"]
