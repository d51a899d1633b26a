"""What a task makes of its rows, and what it refuses: as workers do it, without a session."""

from __future__ import annotations

import base64
import datetime
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import errors

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

import pyarrow as pa
from topic_contents import messages_of, partitions_of, staged, values_of
from topic_reading import open_paths

from pulsarx.broker.requests.attach import AttachResult
from pulsarx.broker.staging.sealed_writer import SealedLedgerWriter
from pulsarx.enumerations import HashingScheme
from pulsarx.spark import (
    abort_write,
    commit_write,
    plan_topic,
    plan_write,
    read_partitions,
    task_writer,
    write_partitions,
)
from pulsarx.spark.commit_message import CommitMessage
from pulsarx.spark.row_batches import row_batches
from pulsarx.spark.write_commit import find_commit
from pulsarx.testing import inspect

VIEWS = (pa.string_view(), pa.binary_view())
TEXTS = (pa.string(), pa.large_string(), pa.string_view())
BINARIES = (pa.binary(), pa.large_binary(), pa.binary_view())


@pytest.fixture
def root(folder: Path) -> Path:
    """A folder with the topics `plain`, `other` and one of three partitions, `keyed`."""
    with pulsarx.Client(folder, durability="os") as client:
        client.admin.topics.create_non_partitioned_topic("plain")
        client.admin.topics.create_non_partitioned_topic("other")
        client.admin.topics.create_partitioned_topic("keyed", 3)
    return folder


def write(root: Path, topic: str | None, *parts: Any, **options: Any) -> AttachResult:
    """One job of one task."""
    job = plan_write(root, topic, **options)
    try:
        return commit_write(job, write_partitions(parts, job))
    finally:
        abort_write(job)


def batch(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


# Where rows go ------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", [HashingScheme.JavaStringHash, HashingScheme.Murmur3_32Hash])
def test_each_key_goes_where_a_producer_sends_it(root: Path, scheme: HashingScheme) -> None:
    keys = [f"key-{n}" for n in range(200)] + ["", "ä", "日本", "😀", "x" * 5000, " ", "a\0b"]
    with pulsarx.Client(root, durability="os") as client:
        producer = client.create_producer("keyed", hashing_scheme=scheme)
        chosen = {key: producer.send(b"", partition_key=key).partition() for key in keys if key}
    for number, kind in enumerate((pa.string(), pa.binary(), pa.large_string())):
        column = pa.array([key.encode() for key in keys], pa.binary()).cast(kind)
        value = b"%d" % number
        write(root, "keyed", batch(value=[value] * len(keys), __key=column), hashing_scheme=scheme)
        found = [
            (message.partition_key(), index)
            for index, messages in enumerate(partitions_of(root, "keyed", 3))
            for message in messages
            if message.data() == value
        ]
        assert {key: index for key, index in found if key} == chosen
        assert len(found) == len(keys)


@pytest.mark.parametrize("scheme", [HashingScheme.JavaStringHash, HashingScheme.Murmur3_32Hash])
def test_keys_of_bytes_are_those_of_a_producer(root: Path, scheme: HashingScheme) -> None:
    """Stored and routed as their base64, whether the rows are written alone or between others."""
    keys = [b"\xff\x00", b"text", bytes(range(256)), b"k"]
    with pulsarx.Client(root, durability="os") as client:
        producer = client.create_producer("keyed", hashing_scheme=scheme)
        for key in keys:
            producer.new_message().key_bytes(key).value(b"sent").send()
    rows = batch(
        value=[b"written"] * 6,
        __keyBytes=pa.array([*keys, None, b""], pa.binary()),
        __deliverAt=pa.array([None, None, None, 5, None, None], pa.timestamp("ms", "UTC")),
    )
    write(root, "keyed", rows, hashing_scheme=scheme)
    places: dict[bytes, list[tuple[str, bytes | None, int]]] = {b"sent": [], b"written": []}
    for index, messages in enumerate(partitions_of(root, "keyed", 3)):
        for each in messages:
            if each.has_key():
                key = each.partition_key()
                places[each.data()].append((key, base64.b64decode(key), index))
    assert sorted(places[b"written"]) == sorted(places[b"sent"])
    assert sorted(key for _, key, _ in places[b"sent"]) == sorted(keys)


def test_keys_that_were_read_can_be_written(root: Path) -> None:
    """__key and __keyBytes beside each other, of text and of bytes."""
    write(root, "keyed", batch(value=[b"1", b"2"], __key=["a", None], __keyBytes=[None, b"\xff"]))
    columns = "value, __key, __keyBytes"
    ranges = [each for group in plan_topic(root, "keyed") for each in group]
    found = list(read_partitions(ranges, columns=columns))
    assert sorted(map(str, pa.Table.from_batches(found).to_pylist())) == [
        str({"value": b"1", "__key": b"a", "__keyBytes": b"a"}),
        str({"value": b"2", "__key": b"/w==", "__keyBytes": b"\xff"}),
    ]
    write(root, "other", *found)
    again = [each for group in plan_topic(root, "other") for each in group]
    assert sorted(map(str, pa.Table.from_batches(found).to_pylist())) == sorted(
        map(str, pa.Table.from_batches(read_partitions(again, columns=columns)).to_pylist())
    )
    by_value = {each.data(): each for each in messages_of(root, "other")}
    assert by_value[b"1"].partition_key() == "a"
    assert by_value[b"2"].partition_key() == "/w==" and by_value[b"2"].key_bytes() == b"\xff"


@pytest.mark.parametrize("scheme", [HashingScheme.JavaStringHash, HashingScheme.Murmur3_32Hash])
def test_keys_that_are_no_text_have_a_partition(root: Path, scheme: HashingScheme) -> None:
    """Used to be refused. To JavaStringHash a byte that is no text is U+FFFD, as Java reads it."""
    keys = [b"\xff", b"a\x80b", "a\ufffdb".encode(), b"\xfe\xfe"]
    write(root, "keyed", batch(value=keys, __key=keys), hashing_scheme=scheme)
    chosen = {
        each.data(): index
        for index, messages in enumerate(partitions_of(root, "keyed", 3))
        for each in messages
    }
    assert set(chosen) == set(keys)
    if scheme == HashingScheme.JavaStringHash:
        assert chosen[b"\xff"] == 0xFFFD % 3
        assert chosen[b"a\x80b"] == chosen["a\ufffdb".encode()]


def test_rows_without_a_key_go_round_in_runs_beside_those_with_one(root: Path) -> None:
    """Over the batches that a task gets; each task begins at another partition."""
    parts = []
    for first in range(0, 4000, 500):
        keys = ["k" if number % 4 == 0 else None for number in range(first, first + 500)]
        parts.append(batch(value=[b"%d" % n for n in range(first, first + 500)], __key=keys))
    write(root, "keyed", *parts)
    keyless = []
    for messages in partitions_of(root, "keyed", 3):
        numbers = [int(each.data()) for each in messages]
        assert numbers == sorted(numbers)
        keyless.append([int(each.data()) for each in messages if not each.partition_key()])
    assert [len(each) for each in keyless] == [1000, 1000, 1000]
    assert max(keyless[0]) < min(keyless[1])


def test_tasks_of_few_rows_begin_at_different_partitions(root: Path) -> None:
    job, messages = plan_write(root, "keyed"), []
    for partition_id in range(6):
        with task_writer.TaskWriter(job, partition_id, "0") as writer:
            writer.add(batch(value=[b"%d" % partition_id]))
            messages.append(writer.finish())
    commit_write(job, messages)
    found = [[int(each.data()) for each in part] for part in partitions_of(root, "keyed", 3)]
    assert found == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("topic", ["plain", "keyed"])
@pytest.mark.parametrize("kind", TEXTS + BINARIES)
def test_columns_may_be_large_views_or_dictionaries(
    root: Path, topic: str, kind: pa.DataType
) -> None:
    def array(*texts: str | None) -> pa.Array:
        encoded = [each.encode() if each and kind in BINARIES else each for each in texts]
        return pa.array(encoded, kind)

    rows = batch(value=array("1", "2", "3", "2"), __key=array("a", "b", None, "a"))
    parts = [rows]
    if kind not in VIEWS:
        # With a value that it has twice, one that nobody uses, and null as a value.
        values = array("b", None, "a", "a", "unused")
        parts.append(
            batch(
                value=rows.column("value").dictionary_encode(),
                __key=pa.DictionaryArray.from_arrays(pa.array([2, 0, 1, 3]), values),
            )
        )
    write(root, topic, *parts)
    found = (
        messages_of(root, topic)
        if topic == "plain"
        else [each for messages in partitions_of(root, topic, 3) for each in messages]
    )
    pairs = sorted((each.partition_key(), each.data()) for each in found)
    assert pairs == sorted([("a", b"1"), ("b", b"2"), ("", b"3"), ("a", b"2")] * len(parts))


def test_maps_of_views_are_properties(root: Path) -> None:
    kind = pa.map_(pa.string_view(), pa.string_view())
    properties = pa.array([[("a", "b")], [], None], kind)
    write(root, "plain", batch(value=["1", "2", "3"], __messageProperties=properties))
    assert [each.properties() for each in messages_of(root, "plain")] == [{"a": "b"}, {}, {}]


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), "dictionary"])
def test_a_topic_that_has_two_names_stays_in_order(root: Path, kind: Any) -> None:
    """Used to come name by name."""
    names = pa.array(["plain", "persistent://public/default/plain", "other"] * 4)
    names = names.dictionary_encode() if kind == "dictionary" else names.cast(kind)
    write(root, None, batch(value=[b"%d" % n for n in range(12)], __topic=names))
    assert [int(value) for value in values_of(root, "plain")] == [0, 1, 3, 4, 6, 7, 9, 10]
    assert [int(value) for value in values_of(root, "other")] == [2, 5, 8, 11]


def test_a_single_partition_can_be_chosen(root: Path) -> None:
    names = ["keyed-partition-1", "plain"]
    write(root, None, batch(value=[b"0", b"1"], __topic=names, __key=["k"] * 2))
    assert values_of(root, "keyed-partition-1") == [b"0"]
    assert values_of(root, "plain") == [b"1"]
    write(root, "keyed-partition-2", batch(value=[b"2"], __key=["k"]))
    assert values_of(root, "keyed-partition-2") == [b"2"]


def test_the_topic_given_wins_over_the_column(root: Path) -> None:
    write(root, "plain", batch(value=[b"0", b"1"], __topic=["other", None]))
    assert values_of(root, "plain") == [b"0", b"1"]


def test_a_task_holds_few_files_open(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many topics its rows name; each of them in order."""
    monkeypatch.setattr(task_writer, "OPEN_MAX", 4)
    with pulsarx.Client(root, durability="os") as client:
        for number in range(12):
            client.admin.topics.create_non_partitioned_topic(f"t{number}")
    open_files = []

    def parts() -> Any:
        for first in range(0, 96, 24):
            numbers = range(first, first + 24)
            names = [f"t{n % 12}" for n in numbers]
            yield batch(value=[b"%d" % n for n in numbers], __topic=names)
            open_files.append(len(list(root.glob("staging/*/*.tmp"))))

    job = plan_write(root)
    with pytest.warns(UserWarning, match="for many topics by __topic"):
        commit_write(job, write_partitions(parts(), job))
    assert open_files and max(open_files) <= 4
    for number in range(12):
        assert [int(v) for v in values_of(root, f"t{number}")] == list(range(number, 96, 12))


def test_no_rows_are_no_files(root: Path) -> None:
    job = plan_write(root, "keyed")
    none = batch(value=pa.array([], pa.binary()), __key=pa.array([], pa.string()))
    (message,) = write_partitions([none, none], job)
    assert (message.files, message.message_count) == ([], 0)
    result = commit_write(job, [message])
    assert (result.ledger_count, result.message_count) == (0, 0)
    assert staged(root) == []


@pytest.mark.parametrize("compression", range(5))
def test_every_compression_is_read_again(root: Path, compression: int) -> None:
    values = [b"%d" % n * 50 for n in range(3000)]
    write(root, "plain", batch(value=values), compression=compression)
    assert values_of(root, "plain") == values
    size = sum(path.stat().st_size for path in root.glob("ledgers/**/*.ledger"))
    assert size < 300_000 or not compression


@pytest.mark.parametrize("flush", [True, False])
def test_files_are_flushed_unless_told_otherwise(
    root: Path, flush: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    real = SealedLedgerWriter.seal

    def seal(self: SealedLedgerWriter, *, flush: bool) -> Any:
        seen.append(flush)
        return real(self, flush=flush)

    monkeypatch.setattr(SealedLedgerWriter, "seal", seal)
    write(root, "plain", b"x", flush=flush)
    assert seen == [flush]


# Rows of an RDD -----------------------------------------------------------------------------------


def test_times_without_a_zone_are_local_as_spark_makes_them(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        instant = datetime.datetime.fromtimestamp(1_700_000_000)
        aware = instant.astimezone(datetime.UTC)
        rows = [
            {"value": b"x", "__eventTime": each} for each in (instant, aware, 1_700_000_000_000)
        ]
        write(root, "plain", *rows)
    finally:
        monkeypatch.undo()
        time.tzset()
    found = [message.event_timestamp() for message in messages_of(root, "plain")]
    assert found == [1_700_000_000_000] * 3


def test_large_rows_do_not_wait_for_company() -> None:
    """8192 rows of 5 MiB would be 40 GiB."""
    tracemalloc.start()
    try:
        made = list(map(len, row_batches(bytes(1 << 20) for _ in range(64))))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(made) == 64 and max(made) == 8
    assert peak < 40 << 20


FAR = datetime.datetime.fromisoformat("9999-12-31T23:59:59-01:00")
NO_MESSAGES: list[tuple[Any, str]] = [
    ((5, b"x"), "__key 5, which is no binary"),
    ({"value": 5}, "value 5, which is no binary"),
    ({"value": b"x", "__eventTime": "today"}, "__eventTime 'today', which is no timestamp"),
    ({"value": b"x", "__eventTime": 1 << 62}, "__eventTime"),
    ({"value": b"x", "__deliverAt": FAR}, "__deliverAt 9999-12-31 23:59:59-01:00, which is not in"),
    ({"value": b"x", "__messageProperties": {"a": 1}}, "__messageProperties"),
    ({"valeu": b"x"}, "did you mean 'value'"),
    (5, "not int"),
]


@pytest.mark.parametrize(("row", "text"), NO_MESSAGES)
def test_a_row_that_is_no_message_is_named_by_its_number(root: Path, row: Any, text: str) -> None:
    """It was shown, but which of a million it was nothing said."""
    there = [batch(value=[b"1", b"2"]), *[b"good"] * (8192 + 3), batch(value=[b"3"]), b"good", row]
    number = 2 + 8192 + 3 + 1 + 1
    with pytest.raises((TypeError, ValueError), match=rf"^row {number} of Spark partition 0\b"):
        write(root, "plain", *there)


@pytest.mark.parametrize(("row", "text"), NO_MESSAGES)
def test_a_row_that_is_no_message_is_shown(root: Path, row: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        write(root, "plain", b"good", row)
    assert values_of(root, "plain") == []


# Refused in a task --------------------------------------------------------------------------------

LETTERS = [f"k{number}" for number in range(10)]


@pytest.mark.parametrize("topic", ["plain", "keyed", None])
@pytest.mark.parametrize(
    ("column", "wrong", "kind", "error", "text"),
    [
        ("value", None, pa.binary(), ValueError, "no value"),
        ("value", bytes(6 << 20), pa.binary(), errors.MessageTooBig, "5242880 bytes. Option"),
        ("__eventTime", -1, pa.int64(), ValueError, "before 1970"),
        ("__messageProperties", [("a", None)], pa.map_(pa.string(), pa.string()), ValueError,
         "no name or no value"),
    ],
)  # fmt: skip
def test_a_bad_row_is_named_as_it_is_counted_in_its_spark_partition(
    root: Path, topic: str | None, column: str, wrong: Any, kind: Any, error: Any, text: str
) -> None:
    """Used to be its number among those of its partition of the topic."""
    fine = {"value": b"x", "__eventTime": 5, "__messageProperties": []}[column]
    columns = {
        "value": pa.array([b"x"] * 10),
        "__key": LETTERS,
        "__topic": ["plain", "keyed"] * 5,
        column: pa.array([fine] * 7 + [wrong] + [fine] * 2, kind),
    }
    good = {**columns, column: pa.array([fine] * 10, kind)}
    with pytest.raises(error, match=rf"row 17 of Spark partition 0.*{text}"):
        write(root, topic, batch(**good), batch(**columns))
    assert values_of(root, "plain") == [] and staged(root) == []


def test_topics_and_keys_that_cannot_be_are_told_with_their_row(root: Path) -> None:
    def told(topic: str | None, **columns: Any) -> str:
        rows = batch(value=[b"x"] * 4, **columns)
        with pytest.raises((ValueError, errors.PulsarException)) as caught:
            write(root, topic, batch(value=[b"x"], __topic=["plain"]), rows)
        return errors.detail_of(caught.value)

    text = told(None, __topic=["plain", "plain", "plian", "plain"])
    assert "row 3 of Spark partition 0" in text
    assert "did you mean 'persistent://public/default/plain'" in text and "admin.topics" in text
    assert "row 2 of Spark partition 0: __topic is null" in told(
        None, __topic=["plain", None, "plain", None]
    )
    assert "row 1 of Spark partition 0" in told(None, __topic=["a/b", "plain", "plain", "plain"])
    text = told("keyed", __key=["a", "b", "c", "d"], __keyBytes=[None, b"b", b"x", b"d"])
    assert "row 3 of Spark partition 0: __key is b'c' and __keyBytes b'x'" in text
    assert "no column '__topic'" in told(None)


@pytest.mark.parametrize(
    ("columns", "error", "text"),
    [
        ({"value": [b"x"], "carrier": ["AA"]}, ValueError, "'carrier' is not a message column"),
        ({"value": [b"x"], "__kei": ["AA"]}, ValueError, "did you mean '__key'"),
        ({"__key": ["a"]}, ValueError, "no column 'value', only __key"),
        ({"value": [1]}, TypeError, "'value' is int64; it must be binary or string"),
        ({"value": [b"x"], "__key": [1]}, TypeError, "'__key' is int64"),
        ({"value": [b"x"], "__topic": [b"plain"]}, TypeError, "'__topic' is binary; it must be s"),
        ({"value": [b"x"], "__eventTime": ["now"]}, TypeError, "'__eventTime' is string"),
        ({"value": [b"x"], "__messageProperties": ["a"]}, TypeError, "must be map<string, string>"),
        ({f"column{n}": [b"x"] for n in range(3000)}, ValueError, "no column 'value'"),
    ],
)
@pytest.mark.parametrize("topic", ["plain", "keyed"])
def test_batches_with_columns_that_no_message_has_are_refused(
    root: Path, topic: str, columns: dict[str, Any], error: Any, text: str
) -> None:
    """Unknown ones used to be left out without a word."""
    with pytest.raises(error, match=text):
        write(root, topic, batch(**columns))
    assert partitions_of(root, "keyed", 3) == [[], [], []] and values_of(root, "plain") == []


def test_a_task_that_cannot_seal_holds_nothing_open(root: Path) -> None:
    job = plan_write(root, "plain")

    def parts() -> Any:
        yield b"x"
        yield batch(value=[b"y"])
        abort_write(job)  # as a driver that has given up

    with pytest.raises(errors.StorageError, match=r"give .* its name"):
        list(write_partitions(parts(), job))
    assert not [path for path in open_paths() if path.startswith(str(root))]
    assert not staged(root)


# Refused when it is planned -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"hashing_scheme": 7}, "hashing scheme 7"),
        ({"compression": 7}, "compression kind 7"),
        ({"max_message_size": 0}, "max_message_size is 0"),
        ({"max_message_size": 1 << 30}, "max_message_size"),
        ({"max_ledger_bytes": 0}, "max_ledger_bytes is 0"),
        ({"application": "", "version": 1}, "1 to 1000 characters"),
        ({"application": "a" * 1001, "version": 1}, "1 to 1000 characters"),
        ({"application": "a", "version": -1}, "from 0"),
        ({"application": "a", "version": True}, "version True must be an int"),
        ({"application": "a"}, "belong together"),
        ({"version": 1}, "belong together"),
    ],
)
def test_what_no_task_could_do_is_refused_first(
    root: Path, options: dict[str, Any], text: str
) -> None:
    with pytest.raises((ValueError, errors.PulsarException), match=text):
        plan_write(root, "plain", **options)
    assert not list(root.glob("staging/*"))


# The commit ---------------------------------------------------------------------------------------


def test_a_version_is_of_one_topic(root: Path) -> None:
    """As a function of foreachBatch writes one batch into two tables: the second was left out."""
    named: dict[str, Any] = {"application": "nightly", "version": 7}
    for _ in range(2):
        for topic in ("plain", "public/default/plain", "other", "keyed"):
            write(root, topic, topic.rpartition("/")[2].encode(), **named)
        write(root, None, {"value": b"c", "__topic": "plain"}, **named)
    assert values_of(root, "plain") == [b"plain", b"c"]
    assert values_of(root, "other") == [b"other"]
    assert sum(map(len, partitions_of(root, "keyed", 3))) == 1
    write(root, "plain", b"of another application", application="hourly", version=7)
    assert len(values_of(root, "plain")) == 3


def test_a_version_behind_another_is_refused_and_left_out_if_that_is_asked_for(root: Path) -> None:
    """It was left out with a warning: a stream with a new checkpoint lost its first batches."""
    write(root, "plain", b"8", application="nightly", version=8)
    earlier: dict[str, Any] = {"application": "nightly", "version": 7}
    text = r"version 7 of 'nightly.*version 8 was before.*must ascend"
    with pytest.raises(errors.NotAllowedError, match=text):
        write(root, "plain", b"7", **earlier)
    with pytest.raises(errors.NotAllowedError, match="txnConflict"):
        find_commit(plan_write(root, "plain", **earlier))
    with pytest.warns(UserWarning, match=text):
        assert write(root, "plain", b"7", **earlier, on_conflict="ignore").already
    with pytest.warns(UserWarning, match="must ascend"):
        assert find_commit(plan_write(root, "plain", **earlier, on_conflict="ignore"))
    assert values_of(root, "plain") == [b"8"]


def rows(*numbers: int, **columns: Any) -> dict[str, Any]:
    times = [datetime.datetime.fromtimestamp(number, datetime.UTC) for number in numbers]
    found = {
        "value": [None if number < 0 else b"%d" % number for number in numbers],
        "__key": [f"k{number}" for number in numbers],
        "__eventTime": times,
        "__messageProperties": [{"a": f"{number}", "b": ""} for number in numbers],
    }
    return {**found, **columns}


PROPERTIES = pa.map_(pa.string(), pa.string())


def table(columns: dict[str, Any]) -> pa.RecordBatch:
    types = {"value": pa.binary(), "__key": pa.string(), "__messageProperties": PROPERTIES,
             "__eventTime": pa.timestamp("us", "UTC"), "__topic": pa.string()}  # fmt: skip
    made = {
        name: [list(each.items()) for each in column] if types[name] == PROPERTIES else column
        for name, column in columns.items()
    }
    arrays = [pa.array(column, types[name]) for name, column in made.items()]
    return pa.record_batch(arrays, list(made))


def test_the_same_rows_again_are_the_same_write_in_any_order_and_number_of_tasks(
    root: Path,
) -> None:
    """Spark does not repeat an order of rows, nor which task has them."""
    named: dict[str, Any] = {"application": "nightly", "version": 7}
    write(root, "keyed", table(rows(1, 2, 3, 3)), **named)
    turned = rows(3, 2)
    turned["__messageProperties"] = [{"b": "", "a": f"{number}"} for number in (3, 2)]
    parts = [[table(turned)], [table(rows(1)), table(rows(3))]]
    for number_of_tasks in (1, 2):
        job = plan_write(root, "keyed", **named)
        assert find_commit(job) is None
        tasks = parts if number_of_tasks == 2 else [[*parts[0], *parts[1]]]
        told = [
            CommitMessage(number, found.message_count, found.files, found.content)
            for number, task in enumerate(tasks)
            for found in write_partitions(task, job)
        ]
        assert commit_write(job, told).already
        assert not staged(root)
    assert sum(map(len, partitions_of(root, "keyed", 3))) == 4
    # Written by one, with nothing to compare: as before there were digests.
    assert find_commit(plan_write(root, "keyed", **named, on_conflict="ignore"))


@pytest.mark.parametrize(
    "other",
    [
        rows(1, 2, 4),
        rows(1, 2),
        rows(1, 2, 3, 3),
        {**rows(1, 2, 3), "value": [b"1", b"3", b"2"]},
        {**rows(1, 2, 3), "__key": ["k1", "k2", None]},
        {**rows(1, 2, 3), "__key": ["k1", "k2", ""]},
        {**rows(1, 2, 3), "__eventTime": rows(1, 2, 4)["__eventTime"]},
        {**rows(1, 2, 3), "__messageProperties": rows(1, 2, 4)["__messageProperties"]},
        {**rows(1, 2, 3), "__messageProperties": [{"a": "1"}, {}, {"b": "3", "a": ""}]},
        {"value": [b"1", b"2", b"3"]},
    ],
)
def test_two_different_writes_under_one_version_are_refused(
    root: Path, other: dict[str, Any]
) -> None:
    """The second one was dropped, and its caller told that it was written."""
    named: dict[str, Any] = {"application": "nightly", "version": 7}
    write(root, "plain", table(rows(1, 2, 3)), **named)
    with pytest.raises(errors.NotAllowedError, match=r"with 3 messages, and these \d are not"):
        write(root, "plain", table(other), **named)
    assert write(root, "plain", table(other), **named, on_conflict="ignore").already
    assert len(values_of(root, "plain")) == 3 and not staged(root)


def test_the_topics_that_rows_choose_are_part_of_what_is_compared(root: Path) -> None:
    named: dict[str, Any] = {"application": "nightly", "version": 7}
    first = rows(1, 2, __topic=["plain", "other"])
    write(root, None, table(first), **named)
    assert write(root, None, table(first), **named).already
    full = ["persistent://public/default/plain", "public/default/other"]
    assert write(root, None, table({**first, "__topic": full}), **named).already
    with pytest.raises(errors.NotAllowedError, match="not the same"):
        write(root, None, table({**first, "__topic": ["other", "plain"]}), **named)


def test_what_was_attached_is_compared_after_a_checkpoint_of_the_catalogue(root: Path) -> None:
    named: dict[str, Any] = {"application": "nightly", "version": 7}
    write(root, "plain", b"1", **named)
    with pulsarx.Client(root) as client:
        inspect(client).catalogue.checkpoint()
        with pytest.raises(errors.NotAllowedError):  # beside an owner
            write(root, "plain", b"2", **named)
    assert write(root, "plain", b"1", **named).already


# Topics that a job creates ------------------------------------------------------------------------


def test_a_topic_is_created_with_the_commit_if_the_job_or_its_namespace_says_so(
    root: Path,
) -> None:
    with pytest.raises(errors.TopicNotFound, match=r"createTopic true.*auto_topic_creation"):
        plan_write(root, "new")
    with pytest.raises(ValueError, match="create_topic needs a topic"):
        plan_write(root, create_topic=True)
    job = plan_write(root, "new", create_topic=True)
    abort_write(job)
    with pytest.raises(errors.TopicNotFound):
        messages_of(root, "new")
    write(root, "new", b"1", create_topic=True)
    write(root, "new", b"2", create_topic=True)
    assert values_of(root, "new") == [b"1", b"2"]
    with pulsarx.Client(root, durability="os") as client:
        policies = client.admin.namespaces
        policies.set_auto_topic_creation("public/default", True, "partitioned", 3)
        write(root, "automatic", batch(value=["a", "b"], __key=["1", "2"]))
        policies.set_auto_topic_creation("public/default", False)
    assert sum(map(len, partitions_of(root, "automatic", 3))) == 2
    with pytest.raises(errors.TopicNotFound):
        plan_write(root, "another")
    with pytest.raises(errors.TopicNotFound):
        plan_write(root, "public/nowhere/another", create_topic=True)


def test_a_topic_that_another_job_creates_meanwhile_is_written_to(root: Path) -> None:
    jobs = [plan_write(root, "new", create_topic=True) for _ in range(2)]
    for job, value in zip(jobs, (b"1", b"2")):
        commit_write(job, write_partitions([value], job))
    assert values_of(root, "new") == [b"1", b"2"]


def test_a_version_that_went_to_a_deleted_topic_is_not_taken_as_written_to_a_new_one(
    root: Path,
) -> None:
    named: dict[str, Any] = {"application": "nightly", "version": 7, "create_topic": True}
    write(root, "new", b"1", **named)
    with pulsarx.Client(root, durability="os") as client:
        client.admin.topics.delete("new")
    with pytest.raises(errors.NotAllowedError, match="not there any more"):
        find_commit(plan_write(root, "new", **named))
    write(root, "new", b"1", **{**named, "version": 8})
    assert values_of(root, "new") == [b"1"]


def test_two_messages_of_a_spark_partition_are_refused(root: Path) -> None:
    """The first of them used to be dropped, and its rows with it."""
    job = plan_write(root, "plain")
    one, two = [next(write_partitions([value], job)) for value in (b"1", b"2")]
    empty = next(write_partitions([], job))
    with pytest.raises(ValueError, match=r"two messages of Spark partition 0.*Nothing"):
        commit_write(job, [one, two])
    assert values_of(root, "plain") == []
    assert commit_write(job, [empty, one, one, empty]).message_count == 1
    assert values_of(root, "plain") == [b"1"]


def test_messages_of_another_write_are_refused(root: Path) -> None:
    one, two = plan_write(root, "plain"), plan_write(root, "plain")
    told = list(write_partitions([b"1"], one))
    with pytest.raises(ValueError, match=f"of the write {one.name}, this is {two.name}"):
        commit_write(two, told)
    assert commit_write(one, told).message_count == 1


def test_small_ledgers_may_be_an_error(root: Path) -> None:
    job = plan_write(root, "plain", max_ledger_bytes=1)
    parts = [batch(value=[b"x"] * 1000)] * 17
    (message,) = write_partitions(parts, job)
    assert len(message.files) == 17
    with pytest.raises(errors.NotAllowedError, match=r"17 ledgers of .* nothing was attached"):
        commit_write(job, [message], "error")
    assert values_of(root, "plain") == []
    commit_write(job, [message], "ignore")
    assert len(values_of(root, "plain")) == 17_000


def test_a_topic_may_grow_meanwhile(root: Path) -> None:
    """As a producer that does not know of it yet: keys stay where they were."""
    job = plan_write(root, "keyed")
    told = list(write_partitions([batch(value=[b"x"] * 10, __key=LETTERS)], job))
    with pulsarx.Client(root, durability="os") as client:
        client.admin.topics.update_partitioned_topic("keyed", 5)
    commit_write(job, told)
    counts = [len(messages) for messages in partitions_of(root, "keyed", 5)]
    assert sum(counts) == 10 and counts[3:] == [0, 0]


def test_a_job_of_thousands_of_files_is_one_commit(root: Path) -> None:
    """Its messages as they travel, and the request, beside a living owner."""
    job = plan_write(root, "plain", flush=False, max_ledger_bytes=1)
    messages = []
    for task in range(2):
        (message,) = write_partitions([batch(value=[b"%d" % task] * 1000)] * 500, job)
        message.partition_id = task
        messages.append(message)
    assert sum(len(message.text()) for message in messages) < 1000 * 1000
    with pulsarx.Client(root, durability="os") as client:
        consumer = client.subscribe("plain", "s")
        result = commit_write(job, messages, "ignore")
        assert (result.ledger_count, result.message_count) == (1000, 1_000_000)
        found = consumer.receive_many(5, timeout_millis=5000)
        assert [message.data() for message in found] == [b"0"] * 5
    assert staged(root) == []
