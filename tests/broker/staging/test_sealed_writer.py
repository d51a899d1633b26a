"""SealedLedgerWriter: files that become part of a topic later."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from range_topics import FULL, tables, whole
from support.clients import clients_of

import pulsarx
from pulsarx import CompressionType, errors
from pulsarx._pycore.ground.file_system import (
    faults_add,
    faults_calls,
    faults_install,
    faults_remove,
)
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ranges.entry_codec import decode_entry, encode_entry
from pulsarx.broker.scan.ledger_range import LedgerRange
from pulsarx.broker.staging.sealed_writer import SealedLedger, SealedLedgerWriter
from pulsarx.testing import inspect

FOLDER_ID = "0123456789abcdef" * 2


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "staged.ledger")


@pytest.fixture
def faults() -> Iterator[None]:
    faults_install()
    yield
    faults_remove()


def rows_of(sealed: SealedLedger, *columns: str) -> list[dict[str, Any]]:
    """As a part of the topic t, in ledger 9."""
    names = columns or ("value", "__key", "__messageProperties", "__eventTime")
    planned = LedgerRange(
        FULL, -1, 9, sealed.path, sealed.uuid, sealed.folder_id, 0, sealed.message_count, 4096,
        sealed.size, names,
    )  # fmt: skip
    return tables([planned])[0]


def entries_of(sealed: SealedLedger) -> list[dict[str, Any]]:
    """Frame and decoded entry of each."""
    file = LedgerFile.open(sealed.path, 9)
    found = []
    offset = 4096
    while (read := file.entry(offset, sealed.size)) is not None:
        frame, entry, offset = read
        found.append({"frame": frame, "bytes": entry, **decode_entry(entry)})
    return found


def seal(writer: SealedLedgerWriter, **options: Any) -> SealedLedger:
    sealed = writer.seal(**options)
    assert sealed is not None
    return sealed


# What goes in comes out


def test_rows_and_tables_come_back(path: str):
    writer = SealedLedgerWriter(path, FOLDER_ID)
    writer.append(b"one", b"\xff", {"a": "b"}, 7)
    writer.append(None, "two")
    table = pa.table(
        {
            "data": [b"x", None, b"z"],
            "name": ["k", None, ""],
            "more": pa.array([[("p", "q")], [], None], pa.map_(pa.string(), pa.string())),
            "at": pa.array([None, 5, 0], pa.timestamp("ms")),
        }
    )
    count = writer.append_arrow(table, "data", key="name", properties="more", event_time="at")
    assert count == 3
    assert writer.message_count == 5
    rows = rows_of(seal(writer))
    assert [row["value"] for row in rows] == [b"one", None, b"x", None, b"z"]
    assert [row["__key"] for row in rows] == [b"\xff", b"two", b"k", None, None]
    assert [row["__messageProperties"] for row in rows] == [[("a", "b")], [], [("p", "q")], [], []]
    assert [row["__eventTime"] is None for row in rows] == [False, True, True, False, True]


def test_the_answer_is_what_the_file_says(path: str):
    clock = pulsarx.ManualClock()
    uuid = bytes(range(16))
    writer = SealedLedgerWriter(path, FOLDER_ID, uuid, clock=clock, batch_messages_max=2)
    first_ms = clock.now_ms()
    for _ in range(5):
        writer.append(b"x")
        clock.advance(1)
    sealed = seal(writer)
    assert sealed.uuid == uuid.hex()
    assert sealed.folder_id == FOLDER_ID
    assert (sealed.entry_count, sealed.message_count) == (3, 5)
    assert (sealed.first_publish_ms, sealed.last_publish_ms) == (first_ms, first_ms + 4000)
    assert sealed.file_size == os.path.getsize(path) > sealed.size
    assert SealedLedger.of_file(path) == sealed
    assert pickle.loads(pickle.dumps(sealed)) == sealed
    assert SealedLedger.of_document(sealed.document()) == sealed
    assert not os.path.exists(path + ".tmp")


def test_batches_are_as_large_as_producers_make_them(path: str):
    writer = SealedLedgerWriter(path, FOLDER_ID, batch_messages_max=10, batch_bytes_max=1000)
    writer.append_arrow(pa.table({"value": [b"s"] * 25}))
    writer.append_arrow(pa.table({"value": [b"l" * 300] * 5}))
    entries = entries_of(seal(writer))
    assert [each["message_count"] for each in entries] == [10, 10, 8, 2]
    assert all(each["batch"] for each in entries)
    ids = [message["sequence_id"] for each in entries for message in each["messages"]]
    assert ids == list(range(30))
    assert {each["producer_name"] for each in entries} == {f"sealed-{writer.uuid.hex()}"}


@pytest.mark.parametrize("as_table", [True, False])
def test_batches_by_key_have_one_key_each(path: str, as_table: bool):
    keys = [b"k%d" % (number * 7 % 5) for number in range(95)] + [None] * 5
    sent = [b"%d" % number for number in range(100)]
    options: Any = {"batch_by_key": True, "batch_messages_max": 50}
    writer = SealedLedgerWriter(path, FOLDER_ID, **options)
    if as_table:
        writer.append_arrow(pa.table({"value": sent, "key": keys}), key="key")
    else:
        for value, key in zip(sent, keys):
            writer.append(value, key)
    sealed = seal(writer)
    entries = entries_of(sealed)
    assert len(entries) == 11
    assert all(len({m["key"] for m in each["messages"]}) == 1 for each in entries)
    assert not any(each["frame"]["flags"] & 4 for each in entries)
    rows = rows_of(sealed)
    for key in set(keys):
        expected = [value for value, other in zip(sent, keys) if other == key]
        assert [row["value"] for row in rows if row["__key"] == key] == expected


def test_batches_of_several_keys_say_so(path: str):
    writer = SealedLedgerWriter(path, FOLDER_ID)
    writer.append_arrow(pa.table({"value": [b"a", b"b"], "key": ["x", "y"]}), key="key")
    assert [each["frame"]["flags"] & 4 for each in entries_of(seal(writer))] == [4]


@pytest.mark.parametrize("kind", [CompressionType.LZ4, CompressionType.ZSTD])
def test_batches_are_compressed(path: str, kind: CompressionType):
    writer = SealedLedgerWriter(path, FOLDER_ID, compression=int(kind))
    writer.append_arrow(pa.table({"value": [b"x" * 1000] * 50}))
    sealed = seal(writer)
    assert sealed.size < 10_000
    assert [row["value"] for row in rows_of(sealed)] == [b"x" * 1000] * 50


def test_an_entry_is_stored_byte_for_byte(path: str):
    entry = encode_entry(b"data", producer_name="p", sequence_id=4, publish_time_ms=99, key="k")
    writer = SealedLedgerWriter(path, FOLDER_ID)
    writer.append(b"before")
    writer.append_entry(entry)
    with pytest.raises(errors.CorruptDataError):
        writer.append_entry(entry[:-1] + b"?")
    writer.append(b"behind")
    sealed = seal(writer)
    entries = entries_of(sealed)
    assert entries[1]["bytes"] == entry
    assert entries[1]["frame"]["publish_time_ms"] == 99
    assert sealed.message_count == 3
    assert [row["value"] for row in rows_of(sealed)] == [b"before", b"data", b"behind"]


def test_a_file_becomes_part_of_a_topic(tmp_path: Path):
    """Attached by hand here: the file does not know its ledger id and is not touched."""
    with clients_of(tmp_path / "data") as make:
        client = make()
        client.create_producer("t").send(b"first")
        client.close()
        client = make()
        broker = inspect(client).broker
        writer = SealedLedgerWriter(
            str(tmp_path / "staged"), broker.directory.folder_id, batch_messages_max=3
        )
        writer.append_arrow(pa.table({"value": [b"%d" % number for number in range(10)]}))
        sealed = seal(writer)
        ledger_id = broker.catalogue.allocate_id()
        os.rename(sealed.path, broker.directory.prepare_ledger_path(ledger_id))
        added = {"op": "add_ledger", "topic": FULL, "ledger_id": ledger_id, "uuid": sealed.uuid}
        added |= {"state": "sealed", "size": sealed.size, "entry_count": sealed.entry_count}
        added |= {"message_count": 10, "first_publish_ms": sealed.first_publish_ms}
        added |= {"last_publish_ms": sealed.last_publish_ms, "sealed_ms": 1}
        broker.catalogue.commit([added])
        client.create_producer("t").send(b"last")
        expected = [b"first", *(b"%d" % number for number in range(10)), b"last"]
        assert whole(client) == expected


# What does not fit


def test_a_bad_row_is_named(path: str):
    writer = SealedLedgerWriter(path, FOLDER_ID, null_values=False, max_message_size=10)
    with pytest.raises(ValueError, match="row 2: it has no value"):
        writer.append_arrow(pa.table({"value": [b"a", b"b", None]}))
    with pytest.raises(errors.MessageTooBig, match="row 1 has 11 bytes"):
        writer.append_arrow(pa.table({"value": [b"a", b"b" * 11]}))
    with pytest.raises(errors.MessageTooBig, match="row 3 has 11 bytes"):
        writer.append(b"b" * 11)
    with pytest.raises(ValueError, match="row 3: it has no value"):
        writer.append(None)
    with pytest.raises(TypeError, match="row 3: a value is bytes"):
        writer.append("text")  # type: ignore[arg-type]
    keyed = SealedLedgerWriter(path + "k", FOLDER_ID, null_values=False, batch_by_key=True)
    with pytest.raises(ValueError, match="row 1: it has no value"):
        keyed.append_arrow(pa.table({"value": [b"a", None], "key": ["x", "y"]}), key="key")
    keyed.abort()
    assert [row["value"] for row in rows_of(seal(writer))] == [b"a", b"b", b"a"]


def test_nothing_is_ever_replaced(path: str):
    first, second = SealedLedgerWriter(path, FOLDER_ID), None
    with pytest.raises(errors.StorageError, match="File exists"):
        second = SealedLedgerWriter(path, FOLDER_ID)
    assert second is None
    first.append(b"first")
    Path(path).write_bytes(b"another")
    with pytest.raises(errors.StorageError, match="never replaced"):
        first.seal()
    first.abort()
    assert Path(path).read_bytes() == b"another"
    with pytest.raises(errors.StorageError, match="is there already"):
        SealedLedgerWriter(path, FOLDER_ID)


def test_a_missing_folder_is_not_made(tmp_path: Path):
    with pytest.raises(errors.FolderError, match="Mount the same path"):
        SealedLedgerWriter(str(tmp_path / "no" / "x.ledger"), FOLDER_ID)
    assert not (tmp_path / "no").exists()
    with pytest.raises(ValueError, match="32 hex digits"):
        SealedLedgerWriter(str(tmp_path / "x.ledger"), "store")


def test_without_messages_there_is_no_file(path: str, tmp_path: Path):
    writer = SealedLedgerWriter(path, FOLDER_ID)
    assert writer.append_arrow(pa.table({"value": pa.array([], pa.binary())})) == 0
    assert writer.seal() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wrong",
    [{"compression": 99}, {"compression": "x"}, {"producer_name": 5}, {"uuid": b"x"},
     {"folder_id": "Z" * 32}, {"max_message_size": 0}],
)  # fmt: skip
def test_a_writer_that_is_refused_leaves_nothing(path: str, tmp_path: Path, wrong: Any):
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises((TypeError, ValueError, errors.InvalidConfiguration)):
        SealedLedgerWriter(path, **{"folder_id": FOLDER_ID, **wrong})
    assert os.listdir(os.path.dirname(path)) == []
    assert len(os.listdir("/proc/self/fd")) == before


def test_abort_leaves_nothing(path: str, tmp_path: Path):
    with SealedLedgerWriter(path, FOLDER_ID) as writer:
        writer.append(b"x")
    assert list(tmp_path.iterdir()) == []
    writer.abort()
    with pytest.raises(errors.AlreadyClosed, match="ABORTED"):
        writer.append(b"x")
    with pytest.raises(errors.AlreadyClosed):
        writer.seal()
    with SealedLedgerWriter(path, FOLDER_ID) as writer:
        writer.append(b"x")
        seal(writer)
    assert os.listdir(tmp_path) == ["staged.ledger"]
    with pytest.raises(errors.AlreadyClosed, match="SEALED"):
        writer.append_arrow(pa.table({"value": [b"x"]}))


# Durable


def test_file_then_name_then_folder(path: str, faults: None):
    writer = SealedLedgerWriter(path, FOLDER_ID)
    writer.append(b"x" * 100)
    assert faults_calls("flush") == faults_calls("flush_directory") == 0
    seal(writer)
    assert (faults_calls("flush"), faults_calls("link"), faults_calls("flush_directory")) == (
        1, 1, 1,
    )  # fmt: skip


def test_without_flush_nothing_is_flushed(path: str, faults: None):
    writer = SealedLedgerWriter(path, FOLDER_ID)
    writer.append(b"x" * 100)
    sealed = seal(writer, flush=False)
    assert faults_calls("flush") == faults_calls("flush_directory") == 0
    assert len(rows_of(sealed)) == 1


def test_a_failed_flush_gives_no_name(path: str, faults: None):
    writer = SealedLedgerWriter(path, FOLDER_ID)
    writer.append(b"x" * 100)
    faults_add("flush", 1)
    with pytest.raises(errors.StorageError):
        writer.seal()
    assert not os.path.exists(path)
    writer.abort()
    assert not os.path.exists(path + ".tmp")


def test_a_full_disk_is_told(path: str, faults: None):
    writer = SealedLedgerWriter(path, FOLDER_ID, batch_bytes_max=1 << 20)
    faults_add("allocate", 1, error=28, sticky=True)
    with pytest.raises(errors.StorageFullError):
        writer.append_arrow(pa.table({"value": [b"x" * 100_000] * 50}))
        writer.seal()
    writer.abort()
