"""read_range: the columns of a range are what a reader of the topic sees, and nothing else."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from encryption_steps import write_keys
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledger_files import make_entry, make_ledger
from range_files import (
    COLUMNS,
    batch_of,
    damage,
    part,
    publish_all_kinds,
    read_values,
    write_ledger,
)
from range_topics import FULL, batches_of, publish, tables, values
from seeds import scaled
from support.clients import OpenClient, clients_of

import pulsarx
from pulsarx import CompressionType, errors
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ranges.entry_codec import encode_batch
from pulsarx._pycore.ranges.range_batch import COLUMNS_ON_DEMAND
from pulsarx.broker.scan.ledger_range import LedgerRange
from pulsarx.broker.scan.plan import plan
from pulsarx.broker.scan.read_range import read_range
from pulsarx.testing import fault_plan, inspect
from pulsarx.testing.faults import FaultPlan

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def client(open_client: OpenClient) -> pulsarx.Client:
    return open_client()


def one_range(client: pulsarx.Client, **options: Any) -> LedgerRange:
    (found,) = plan(inspect(client).broker, "t", **options)
    return found


def expected_rows(client: pulsarx.Client, topic: str = "t") -> list[dict[str, Any]]:
    """What a reader gets, in the columns of a range."""
    reader = client.create_reader(topic, pulsarx.MessageId.earliest)
    rows = []
    while reader.has_message_available():
        message = reader.read_next(60_000)
        key = message.partition_key()
        event_ms = message.event_timestamp()
        rows.append(
            {
                "value": None if message.has_null_value() else message.data(),
                "__key": key.encode("utf-8", "surrogateescape") if key else None,
                "__topic": message.topic_name(),
                "__messageId": message.message_id().serialize(),
                "__publishTime": EPOCH + timedelta(milliseconds=message.publish_timestamp()),
                "__eventTime": EPOCH + timedelta(milliseconds=event_ms) if event_ms else None,
                "__messageProperties": list(message.properties().items()),
            }
        )
    reader.close()
    return rows


def test_all_columns_are_what_a_reader_sees(client: pulsarx.Client):
    publish_all_kinds(client)
    assert tables([one_range(client)]) == [expected_rows(client)]


@pytest.mark.parametrize("name", COLUMNS)
def test_each_column_alone_is_the_same(client: pulsarx.Client, name: str):
    publish_all_kinds(client)
    (rows,) = tables([one_range(client)], columns=[name])
    assert rows == [{name: row[name]} for row in expected_rows(client)]


def place_rows(client: pulsarx.Client, topic: str = "t") -> list[dict[str, Any]]:
    """What a reader tells of places and producers, in the columns that are read on demand."""
    reader = client.create_reader(topic, pulsarx.MessageId.earliest)
    rows = []
    while reader.has_message_available():
        message = reader.read_next(60_000)
        place = message.message_id()
        version = message.schema_version()
        rows.append(
            {
                "__partition": place.partition(),
                "__ledgerId": place.ledger_id(),
                "__entryId": place.entry_id(),
                "__batchIndex": place.batch_index(),
                "__sequenceId": message.sequence_id(),
                "__producerName": message.producer_name(),
                "__orderingKey": message.ordering_key().encode() or None,
                "__keyBytes": message.key_bytes() or None,
                "__schemaVersion": (
                    int.from_bytes(version.encode("latin-1"), "big") if version else None
                ),
            }
        )
    reader.close()
    return rows


def test_places_and_producers_are_what_a_reader_sees(client: pulsarx.Client):
    publish_all_kinds(client)
    expected = place_rows(client)
    names = list(expected[0])
    assert tuple(names) == COLUMNS_ON_DEMAND
    assert tables([one_range(client)], columns=names) == [expected]
    for name in names:
        (rows,) = tables([one_range(client)], columns=[name])
        assert rows == [{name: row[name]} for row in expected]
    (batch,) = read_range(one_range(client), [*names, "value"])
    pa.record_batch(batch).validate(full=True)


def test_the_version_of_a_schema_is_read_for_each_message(client: pulsarx.Client):
    client.create_producer("t").send(b"without")
    client.create_producer("t", schema=pulsarx.schema.StringSchema()).send("with")
    expected = [row["__schemaVersion"] for row in place_rows(client)]
    assert expected == [None, 0]
    (rows,) = tables([one_range(client)], columns=["__schemaVersion"])
    assert [row["__schemaVersion"] for row in rows] == expected


def test_types_are_those_that_spark_declares(client: pulsarx.Client):
    publish_all_kinds(client)
    batch = next(iter(read_range(one_range(client))))
    time = pa.timestamp("us", "UTC")
    entries = pa.map_(pa.string(), pa.string())
    types = [pa.binary(), pa.binary(), pa.string(), pa.binary(), time, time, entries]
    expected = pa.schema([pa.field(*pair, nullable=True) for pair in zip(COLUMNS, types)])
    assert pa.schema(batch).equals(expected, check_metadata=True)
    assert pa.record_batch(batch).schema.equals(expected, check_metadata=True)
    assert pa.table(batch).schema.equals(expected)
    for pair in zip(pa.record_batch(batch).schema, expected):
        assert pair[0].nullable and pair[0].type == pair[1].type
    pa.record_batch(batch).validate(full=True)


def test_columns_come_in_the_order_asked_for(client: pulsarx.Client):
    publish(client, 2)
    for names in (("__messageId", "value"), ("__publishTime", "__key", "value"), ("value",)):
        (batch,) = read_range(one_range(client, columns=names))
        assert pa.record_batch(batch).schema.names == list(names)
        assert batch.column_names == names
        (batch,) = read_range(one_range(client), list(names))
        assert pa.table(batch).schema.names == list(names)


def test_no_column_and_unknown_columns_are_refused(client: pulsarx.Client):
    publish(client, 1)
    with pytest.raises(ValueError, match="no column is named"):
        read_range(one_range(client), [])
    with pytest.raises(ValueError, match="did you mean 'value'"):
        read_range(one_range(client), ["Value"])
    with pytest.raises(TypeError, match="a list of names"):
        read_range(one_range(client), "value")
    with pytest.raises(ValueError, match="max_rows is 0"):
        read_range(one_range(client), max_rows=0)


def test_messages_in_chunks_are_refused_and_those_before_are_read(client: pulsarx.Client):
    producer = client.create_producer("t", chunking_enabled=True)
    producer.send(b"a")
    producer.send(bytes(6_000_000))
    reading = iter(read_range(one_range(client), ["value"], max_rows=1))
    assert pa.record_batch(next(reading))["value"].to_pylist() == [b"a"]
    with pytest.raises(errors.OperationNotSupported, match="read by consumers and readers"):
        next(reading)


def test_encrypted_messages_are_refused_and_those_before_are_read(
    client: pulsarx.Client, tmp_path: Path
):
    keys = write_keys(tmp_path / "keys")
    client.create_producer("t").send(b"a")
    client.create_producer("t", encryption_key="k", crypto_key_reader=keys).send(b"b")
    reading = iter(read_range(one_range(client), ["value"], max_rows=1))
    assert pa.record_batch(next(reading))["value"].to_pylist() == [b"a"]
    with pytest.raises(errors.OperationNotSupported, match="is encrypted; ranges have no"):
        next(reading)


@settings(max_examples=scaled(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    batches=st.lists(
        st.lists(
            st.tuples(
                st.none() | st.binary(max_size=300),
                st.none() | st.text(max_size=5) | st.just("k" * 150),
                st.none() | st.dictionaries(st.text(max_size=3), st.text(max_size=9), max_size=2),
                st.none() | st.integers(0, 2**40),
            ),
            min_size=1,
            max_size=6,
        ),
        max_size=5,
    ),
    columns=st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True),
    rows_max=st.integers(1, 9),
    bytes_max=st.integers(1, 600),
)
def test_any_messages_any_columns_any_size_of_batch(
    tmp_path_factory: Any, batches: Any, columns: list[str], rows_max: int, bytes_max: int
):
    with clients_of(tmp_path_factory.mktemp("any") / "data") as make:
        client = make()
        producer = client.create_producer("t")
        for batch in batches:
            for value, key, properties, event_time in batch:
                producer.send_async(
                    value, None, properties, partition_key=key, event_timestamp=event_time
                )
            producer.flush()
        expected = [{name: row[name] for name in columns} for row in expected_rows(client)]
        for planned in plan(inspect(client).broker, "t", columns=columns):
            found = list(read_range(planned, None, rows_max, bytes_max))
            rows = [row for batch in found for row in pa.record_batch(batch).to_pylist()]
            assert rows == expected
            assert all(0 < len(batch) <= rows_max for batch in found)
            for batch in found:
                pa.record_batch(batch).validate(full=True)


# Blocks


def test_a_batch_ends_with_its_rows_or_its_bytes(client: pulsarx.Client):
    producer = client.create_producer("t", **batches_of(100))
    producer.send_many([b"v" * 100] * 1000)
    planned = one_range(client, columns=["value"])
    assert [len(each) for each in read_range(planned, max_rows=300)] == [300, 300, 300, 100]
    assert [len(each) for each in read_range(planned, max_bytes=25_000)] == [250] * 4
    assert [len(each) for each in read_range(planned)] == [1000]
    ids = read_range(planned, ["__messageId"], max_bytes=25_000)
    assert [len(each) for each in ids] == [1000]


def test_a_message_larger_than_a_batch_has_its_own(client: pulsarx.Client):
    producer = client.create_producer("t")
    sent = [b"a", b"b" * 100_000, b"c", b"d" * 50_000]
    producer.send_many(sent)
    planned = one_range(client, columns=["value"])
    found = [pa.record_batch(each).to_pydict()["value"] for each in read_range(planned, None, 9, 9)]
    assert found == [[each] for each in sent]


def test_batches_outlive_reader_file_and_client(open_client: OpenClient, tmp_path: Path):
    client = open_client()
    sent = publish(client, 500, batch=50)
    batches = list(read_range(one_range(client), max_rows=1000))
    client.close()
    for path in (tmp_path / "data").glob("ledgers/*/*"):
        path.unlink()
    arrays = [pa.record_batch(each).column(0) for each in batches]
    topics = [pa.record_batch(each).column("__topic") for each in batches]
    del batches
    gc.collect()
    assert [value for array in arrays for value in array.to_pylist()] == sent
    assert {value for array in topics for value in array.to_pylist()} == {FULL}


# Parts


def test_a_range_may_begin_and_end_inside_a_batch(client: pulsarx.Client):
    publish_all_kinds(client)
    whole = one_range(client)
    rows = expected_rows(client)
    for first in range(len(rows)):
        for end in range(first + 1, len(rows) + 1):
            planned = part(whole, first_message=first, end_message=end)
            assert tables([planned], max_rows=2) == [rows[first:end]]
            assert values([planned], columns=["value"]) == [row["value"] for row in rows[first:end]]


def test_an_empty_range_yields_nothing(client: pulsarx.Client):
    publish(client, 3)
    assert list(read_range(part(one_range(client), first_message=2, end_message=2))) == []


# What does not fit


def test_damage_is_told_with_its_place_or_passed(client: pulsarx.Client):
    sent = publish(client, 10)
    ranges = plan(inspect(client).broker, "t", max_records_per_partition=1, columns=["value"])
    whole = part(ranges[0], end_message=10, end=ranges[-1].end)
    damage(whole, ranges[4].offset + 90)
    for max_rows in (1, 3, 4, 9):
        found: list[Any] = []
        with pytest.raises(errors.CorruptDataError, match=f"ledger .* offset {ranges[4].offset}"):
            for batch in read_range(whole, max_rows=max_rows):
                found += pa.record_batch(batch).to_pydict()["value"]
        assert found == sent[:4]  # what is before the damage is not lost with it
    assert values([whole], pass_damage=True) == sent[:4] + sent[5:]
    damage(whole, ranges[7].offset + 3)  # not even the frame
    assert values([whole], pass_damage=True) == sent[:4] + sent[5:7] + sent[8:]
    damage(whole, ranges[9].offset + 3)  # the last one
    assert values([whole], pass_damage=True) == sent[:4] + sent[5:7] + sent[8:9]


def test_missing_messages_are_no_silent_end(client: pulsarx.Client):
    publish(client, 4)
    planned = part(one_range(client), end_message=6)
    with pytest.raises(errors.CorruptDataError, match="last 2 messages of the range are not there"):
        list(read_range(planned))


def test_another_file_or_folder_under_the_path_is_refused(client: pulsarx.Client):
    publish(client, 1)
    planned = one_range(client)
    with pytest.raises(errors.FolderError, match=r"planned was 0{32}\. The folder was put back"):
        read_range(part(planned, uuid="0" * 32))
    with pytest.raises(errors.FolderError, match=r"belongs to data directory .*mount"):
        read_range(part(planned, folder_id="0" * 32))


def test_a_missing_file_and_a_missing_folder_say_what_to_do(client: pulsarx.Client, tmp_path: Path):
    publish(client, 1)
    planned = one_range(client)
    with pytest.raises(errors.FolderError, match="removed by retention"):
        read_range(part(planned, path=planned.path + "x"))
    elsewhere = planned.path.replace(str(tmp_path), "/nowhere")
    with pytest.raises(errors.FolderError, match="Mount the same path"):
        read_range(part(planned, path=elsewhere))


def test_a_file_cut_short_is_told_before_it_is_read(open_client: OpenClient):
    client = open_client()
    publish(client, 100)
    planned = one_range(client)
    client.close()
    with open(planned.path, "r+b") as file:
        file.truncate(5000)
    with pytest.raises(errors.CorruptDataError, match="5000 bytes"):
        read_range(planned)
    Path(planned.path).write_bytes(b"something else" * 1000)
    with pytest.raises(errors.CorruptDataError, match="not a file of PulsarX"):
        read_range(planned)


@settings(max_examples=scaled(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    at=st.integers(0, 400),
    byte=st.integers(0, 255),
    cut=st.integers(0, 400) | st.just(0),
    columns=st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True),
)
def test_entries_that_lie_are_told(
    tmp_path_factory: Any, at: int, byte: int, cut: int, columns: list[str]
):
    """Bytes with a good checksum that are no batch, or another one than the frame says."""
    folder = tmp_path_factory.mktemp("lies")
    messages: list[tuple[bytes, dict[str, Any]]] = [
        (b"v" * (number * 9), {"key": f"k{number}"}) for number in range(8)
    ]
    messages[3][1]["properties"] = {"a": "b" * 20}
    body = bytearray(encode_batch(messages, producer_name="p", publish_time_ms=5)[6:])
    body[at % len(body)] = byte
    entry = make_entry(bytes(body[: len(body) - cut % len(body)]))
    writer = make_ledger(folder / "f")
    count = min(8, max(len(entry) // 6, 1))  # what the writer may believe
    writer.append(entry, message_count=count, publish_time_ms=5)
    writer.append(entry, message_count=count, publish_time_ms=5)
    planned = LedgerRange(
        FULL, 2, 9, str(folder / "f"), LedgerFile.open(str(folder / "f"), 9).uuid.hex(),
        "0" * 32, 3, 13, 4096, writer.end, tuple(columns),
    )  # fmt: skip
    try:
        rows = tables([planned])[0]
    except (errors.CorruptDataError, errors.OperationNotSupported):
        rows = tables([planned], pass_damage=True)[0]
    for batch in read_range(planned, pass_damage=True):
        pa.record_batch(batch).validate(full=True)
    assert len(rows) <= 10
    writer.close()


LARGE_SIZES = [20_000, 500, 90_000, 300_000, 8, 200_000, 60_000, 1, 131_072, 250_000]


def large_ledger(folder: Path, sizes: list[int]) -> tuple[LedgerRange, list[bytes]]:
    """More than a window on the file holds, in entries of two messages of such sizes."""
    content = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    pairs = list(zip(content[::2], content[1::2], strict=True))
    return write_ledger(folder, [batch_of(list(pair)) for pair in pairs]), content


@pytest.fixture
def small_pages() -> Iterator[FaultPlan]:
    """As a system does it that keeps files page by page: ledgers are read by windows."""
    with fault_plan() as faults:
        faults.fail("large_folios", 1, sticky=True)
        yield faults


def test_a_file_in_large_folios_is_mapped_and_another_read(tmp_path: Path):
    planned, content = large_ledger(tmp_path, LARGE_SIZES * 4)
    reads = []
    for folios in (True, False):
        with fault_plan() as faults:
            if not folios:
                faults.fail("large_folios", 1, sticky=True)
            assert read_values(planned) == content
            reads.append(faults.calls("read"))
    assert reads[1] > 3
    assert reads[0] == (0 if has_large_folios(tmp_path) else reads[1])


def test_a_file_that_is_not_in_memory_is_read_and_not_mapped(tmp_path: Path):
    """The system reads less far ahead of a mapping: from a disk it took half as long again."""
    planned, content = large_ledger(tmp_path, LARGE_SIZES * 8)
    reads = []
    for drop in (None, 0, planned.end // 2):
        if drop is not None:
            descriptor = os.open(planned.path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, drop, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
        with fault_plan() as faults:
            assert read_values(planned) == content
            reads.append(faults.calls("read"))
    if has_large_folios(tmp_path):
        assert reads[0] == 0 and reads[1] > 3 and reads[2] > 3
    else:
        assert reads[0] > 3


def test_other_threads_run_while_a_file_system_is_asked_for_its_kind(tmp_path: Path):
    """One of a network asks its server: the whole process stood still."""
    planned, content = large_ledger(tmp_path, LARGE_SIZES)
    program = (
        "import sys, threading\n"
        "from pulsarx._pycore.ledger.ledger_file import LedgerFile\n"
        "from pulsarx.testing import fault_plan\n"
        "with fault_plan() as faults:\n"
        "    faults.stall('large_folios')\n"
        "    other = threading.Thread(target=LedgerFile.open, args=(sys.argv[1], 9))\n"
        "    other.start()\n"
        "    while not faults.stalled():\n"
        "        pass\n"
        "    faults.release()\n"
        "    other.join()\n"
    )
    subprocess.run([sys.executable, "-c", program, planned.path], check=True, timeout=30)
    assert read_values(planned) == content


def has_large_folios(folder: Path) -> bool:
    release = tuple(int(each) for each in os.uname().release.split(".")[:2])
    kind = subprocess.check_output(["stat", "-f", "-c", "%T", str(folder)], text=True).strip()
    return release >= (6, 16) and kind in ("ext2/ext3", "xfs", "overlayfs")


@pytest.mark.parametrize("large", [None, 0, 7, 39])
def test_a_ledger_larger_than_a_window_is_read(
    tmp_path: Path, small_pages: FaultPlan, large: int | None
):
    """Entries lie across the ends of windows; one that is larger is read by the mapping, and so is
    what follows."""
    sizes = LARGE_SIZES * 4
    if large is not None:
        sizes[large] = 900_000
    planned, content = large_ledger(tmp_path, sizes)
    for max_rows, max_bytes in ((3, 1 << 20), (65536, 1 << 20), (65536, 8 << 20)):
        assert read_values(planned, max_rows=max_rows, max_bytes=max_bytes) == content


def test_many_readers_at_a_time_take_few_descriptors(tmp_path: Path, small_pages: FaultPlan):
    planned, content = large_ledger(tmp_path, LARGE_SIZES * 2)
    for _ in range(2):  # those of readers that are gone are free again
        before = small_pages.calls("open")
        readers = [read_range(planned, ("value",)) for _ in range(70)]
        assert small_pages.calls("open") - before == 70 + 64
        del readers
    assert read_values(planned) == content


@pytest.mark.parametrize("folios", [True, False])
def test_a_ledger_in_a_merged_file_is_read_from_its_place(tmp_path: Path, folios: bool):
    planned, content = large_ledger(tmp_path, LARGE_SIZES * 4)
    ledger = (tmp_path / "f").read_bytes()
    (tmp_path / "merged").write_bytes(bytes(12288) + ledger + b"another one" * 100_000)
    merged = part(planned, path=str(tmp_path / "merged"), merged_at=12288, merged_size=len(ledger))
    with fault_plan() as faults:
        if not folios:
            faults.fail("large_folios", 1, sticky=True)
        assert read_values(merged) == content


@pytest.mark.parametrize("entry", [0, 6, 19])
def test_damage_behind_a_window_is_told_with_its_place_or_passed(
    tmp_path: Path, small_pages: FaultPlan, entry: int
):
    planned, content = large_ledger(tmp_path, LARGE_SIZES * 4)
    file = LedgerFile.open(planned.path, 9)
    offset = 4096
    for _ in range(entry):
        offset = file.pass_damaged(offset, planned.end)
    damage(planned, offset + 90)
    found: list[Any] = []
    with pytest.raises(errors.CorruptDataError, match=f"ledger .* offset {offset}"):
        for batch in read_range(planned, ("value",)):
            found += pa.record_batch(batch).to_pydict()["value"]
    assert found == content[: 2 * entry]
    left = content[: 2 * entry] + content[2 * entry + 2 :]
    assert read_values(planned, pass_damage=True) == left


@pytest.mark.parametrize(("operation", "turn"), [("open", 2), ("read", 1), ("read", 3)])
def test_what_a_window_cannot_have_is_read_by_the_mapping(
    tmp_path: Path, small_pages: FaultPlan, operation: str, turn: int
):
    planned, content = large_ledger(tmp_path, LARGE_SIZES * 4)
    small_pages.fail(operation, turn)
    before = small_pages.calls("open")
    reader = read_range(planned, ("value",))
    assert small_pages.calls("open") - before == 2
    found: list[Any] = []
    for batch in reader:
        found += pa.record_batch(batch).to_pydict()["value"]
    assert found == content
    assert small_pages.calls("read") == (turn if operation == "read" else 0)


def test_a_message_that_fails_half_way_leaves_no_trace(tmp_path: Path):
    """Its value was once put in front of the next message's."""
    good = batch_of([b"good"] * 3)
    bad = bytearray(batch_of([b"bad"] * 3)[0][6:])
    place = bad.rindex(b"\x12\x01b")  # the value of the last message's property ...
    bad[place] = 0x1A  # ... is another field now, so the property has none
    planned = write_ledger(tmp_path, [good, (make_entry(bytes(bad)), 3, 5), good])
    for columns in (COLUMNS, ("value", "__messageProperties"), ("__messageProperties", "__key")):
        found = []
        for batch in read_range(planned, columns, pass_damage=True):
            pa.record_batch(batch).validate(full=True)
            found += pa.record_batch(batch).to_pylist()
        values = [b"good"] * 3 + [b"bad"] * 2 + [b"good"] * 3
        assert [row["__messageProperties"] for row in found] == [[("a", "b")]] * 8
        if "value" in columns:
            assert [row["value"] for row in found] == values
    with pytest.raises(errors.CorruptDataError, match="message 2 of entry 1"):
        tables([planned])


def test_a_range_that_begins_in_damage_is_told(client: pulsarx.Client):
    """Where the entry with the first message was damaged, the plan began with the next one that
    was not, and the messages between were left out without a word."""
    sent = publish(client, 30, batch=10)
    whole = one_range(client, columns=["value"])
    second = plan(inspect(client).broker, "t", max_records_per_partition=10)[1]
    damage(whole, second.offset + 3)
    client.close()
    for first in (10, 15):
        with pulsarx.Client(Path(whole.path).parents[2], durability="os") as reader:
            (planned,) = plan(
                inspect(reader).broker, "t", {FULL: (whole.ledger_id, first)}, columns=["value"]
            )
        with pytest.raises(errors.CorruptDataError, match=rf"message {first} is not there"):
            list(read_range(planned))
        assert values([planned], pass_damage=True) == sent[20:]


def test_other_times_are_left_out_wherever_they_are(tmp_path: Path):
    times = [5, 9, 3, 7, 7, 2, 8]
    entries = [batch_of([b"%d" % time] * 3, time) for time in times]
    planned = write_ledger(tmp_path, entries)
    for low, high in ((None, None), (None, 7), (7, None), (3, 8), (7, 8), (4, 5), (10, 20), (0, 1)):
        expected = [
            b"%d" % time
            for time in times
            for _ in range(3)
            if (low is None or time >= low) and (high is None or time < high)
        ]
        for rows in (1, 4, 100):
            found = values([part(planned, from_ms=low, until_ms=high)], max_rows=rows)
            assert found == expected
    recovery = LedgerFile.open(planned.path, 9).recover()
    assert (recovery.first_publish_ms, recovery.last_publish_ms) == (2, 9)
    inside = part(planned, from_ms=7, until_ms=9, first_message=10, end_message=20)
    assert values([inside]) == [b"7"] * 5 + [b"8"] * 2
    # A range that ends inside an entry of another time was called damaged.
    for first, end in ((6, 7), (7, 8), (3, 8), (0, 7), (15, 17)):
        inside = part(planned, from_ms=5, until_ms=10, first_message=first, end_message=end)
        expected = [times[at // 3] for at in range(first, end) if times[at // 3] >= 5]
        assert values([inside]) == [b"%d" % time for time in expected]


def test_two_threads_in_one_reader_are_refused(client: pulsarx.Client):
    """Both at once would have read with each other's places."""
    client.create_producer("t", compression_type=CompressionType.ZLib).send_many([b"x"] * 100)
    found: list[int] = []

    import pulsarx.broker.scan.read_range as module

    plain = module.decompress

    def again(*arguments: Any) -> bytes:
        with pytest.raises(ValueError, match="another thread is reading"):
            next(reader)
        found.append(1)
        return plain(*arguments)

    module.decompress = again
    try:
        reader = read_range(one_range(client))
        assert sum(len(batch) for batch in reader) == 100
    finally:
        module.decompress = plain
    assert found == [1]


def test_a_codec_that_is_not_there_loses_nothing(
    client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
):
    """What was read before it came was lost with the error."""
    import pulsarx.broker.scan.read_range as module

    client.create_producer("t").send_many([b"a", b"b"])
    client.create_producer("t", compression_type=CompressionType.ZLib).send_many([b"c"] * 100)
    plain = module.decompress
    failing = [True]

    def absent(*arguments: Any) -> bytes:
        if failing[0]:
            raise ModuleNotFoundError("no codec")
        return plain(*arguments)

    monkeypatch.setattr(module, "decompress", absent)
    reader = read_range(one_range(client), ["value"])
    assert pa.record_batch(next(reader)).to_pydict() == {"value": [b"a", b"b"]}
    with pytest.raises(ModuleNotFoundError):
        next(reader)
    failing[0] = False
    assert sum(len(batch) for batch in reader) == 100


KEEPER = """
import resource, sys
import pulsarx
from pulsarx.broker.scan.plan import plan
from pulsarx.broker.scan.lease import lease_ranges
from pulsarx.broker.scan.read_range import read_range, read_ranges
from pulsarx.testing import fault_plan, inspect
client = pulsarx.Client(sys.argv[1], read_only=True)
(planned,) = plan(inspect(client).broker, "t", columns=["value"])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
kept = list(read_range(planned, max_rows=1000))
print(len(kept), (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


def test_small_batches_take_little_memory(client: pulsarx.Client, run_child: Any):
    """Each took room for 8 MiB, and 2 MiB of it for real where pages are huge."""
    client.create_producer("t", **batches_of(1000)).send_many([b"value"] * 800_000)
    child = run_child(KEEPER, inspect(client).directory.path)
    count, mebibytes = map(int, child.communicate(timeout=60)[0].split())
    assert count == 800
    assert mebibytes < 100


def test_a_small_ledger_is_read_and_not_mapped(tmp_path: Path):
    """Mapping one of 32 KiB took three times as long."""
    planned = write_ledger(tmp_path, [batch_of([b"small"] * 3)])
    with fault_plan() as faults:
        assert read_values(planned) == [b"small"] * 3
        assert (faults.calls("read"), faults.calls("map")) == (1, 0)
        faults.fail("read", 1)
        with pytest.raises(errors.StorageError, match=r"ledger 9 at .*Input/output error"):
            read_range(planned)
    file = LedgerFile.open(planned.path, 9, read_to=planned.end)
    assert file.mapped_size == planned.end
    with pytest.raises(errors.CorruptDataError):
        file.summary()  # the footer is behind it
    assert LedgerFile.open(planned.path, 9, read_to=1).mapped_size == 4096
