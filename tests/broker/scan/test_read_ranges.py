"""read_ranges: several ranges one after the other, each row once, whatever is wrong with one of
them."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from range_files import COLUMNS, batch_of, damage, part, publish_all_kinds, write_ledger
from seeds import scaled
from support.clients import OpenClient

import pulsarx
from pulsarx import CompressionType, errors
from pulsarx._pycore.ranges.entry_codec import encode_batch
from pulsarx._pycore.ranges.range_batch import COLUMNS_ON_DEMAND
from pulsarx.broker.scan.lease import lease_ranges
from pulsarx.broker.scan.ledger_range import LedgerRange
from pulsarx.broker.scan.plan import plan
from pulsarx.broker.scan.read_range import read_range, read_ranges
from pulsarx.testing import inspect


@pytest.fixture
def several(open_client: OpenClient) -> list[LedgerRange]:
    client = open_client(
        broker_options=pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    )
    publish_all_kinds(client)
    client.admin.topics.create_partitioned_topic("p", 3)
    producer = client.create_producer("p", batching_enabled=False)
    for number in range(20):
        producer.send(b"%d" % number, partition_key=str(number))
    ranges = [each for topic in ("t", "p") for each in plan(inspect(client).broker, topic)]
    assert len(ranges) > 10
    cut = [
        part(each, first_message=each.first_message + 1)
        for each in ranges
        if each.end_message - each.first_message > 2
    ]
    return ranges + cut


def rows_of(ranges: list[LedgerRange], columns: Any = COLUMNS, **options: Any) -> list[Any]:
    found: list[Any] = []
    for batch in read_ranges(ranges, columns, **options):
        pa.record_batch(batch).validate(full=True)
        found += pa.record_batch(batch).to_pylist()
    return found


@given(data=st.data())
@settings(
    max_examples=scaled(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_several_ranges_are_one_after_the_other(several: list[LedgerRange], data: st.DataObject):
    """Of several topics and partitions, cut inside entries, in any order and size of batches."""
    chosen = data.draw(st.lists(st.sampled_from(several), max_size=12))
    columns = data.draw(
        st.lists(st.sampled_from((*COLUMNS, *COLUMNS_ON_DEMAND)), min_size=1, unique=True)
    )
    limits = {
        "max_rows": data.draw(st.sampled_from([1, 2, 3, 7, 20, 65536])),
        "max_bytes": data.draw(st.sampled_from([1, 30, 200, 8 << 20])),
    }
    expected = [
        row
        for each in chosen
        for batch in read_range(each, columns)
        for row in pa.record_batch(batch).to_pylist()
    ]
    found = []
    for read in map(pa.record_batch, read_ranges(chosen, columns, **limits)):
        read.validate(full=True)
        assert 0 < read.num_rows <= limits["max_rows"]
        found += read.to_pylist()
    assert found == expected


def test_small_ranges_come_in_few_batches(several: list[LedgerRange]):
    (one,) = read_ranges(several, ("value", "__partition", "__ledgerId"))
    assert len(one) == len(rows_of(several))
    # A batch with the names of topics is of one topic.
    names = [
        set(pa.record_batch(each)["__topic"].to_pylist()) for each in read_ranges(several, COLUMNS)
    ]
    assert all(len(each) == 1 for each in names) and len(names) < len(several)


def test_what_was_read_comes_before_the_error_of_the_next_range(several: list[LedgerRange]):
    missing = part(several[3], path=several[3].path + ".gone")
    found: list[Any] = []
    reader = read_ranges([*several[:3], missing, *several[4:]], ("value",))
    with pytest.raises(errors.FolderError, match="the file is gone"):
        for batch in reader:
            found += pa.record_batch(batch).to_pylist()
    assert found == rows_of(several[:3], ("value",))
    asked: list[Any] = []

    def may_miss(planned: LedgerRange, error: errors.FolderError) -> bool:
        asked.append((planned, str(error)))
        return True

    left = [*several[:3], *several[4:]]
    assert rows_of([*several[:3], missing, *several[4:]], may_miss=may_miss) == rows_of(left)
    assert asked[0][0] is missing and "the file is gone" in asked[0][1]
    assert rows_of([missing, missing], may_miss=may_miss) == []
    with pytest.raises(errors.FolderError):
        rows_of([missing], may_miss=lambda *_: False)


def test_a_range_behind_a_missing_one_keeps_its_own_topic(open_client: OpenClient):
    """It went into the batch of the topic in front, because of the messages that are missing."""
    client = open_client(
        broker_options=pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    )
    for topic in ("a", "b"):
        producer = client.create_producer(topic, batching_enabled=False)
        for _ in range(6):
            producer.send(topic.encode())
    a, b = (plan(inspect(client).broker, topic) for topic in ("a", "b"))
    missing = part(a[1], path=a[1].path + ".gone")
    emptied = part(b[0], until_ms=1)
    for ranges, count in [
        ([a[0], missing, b[0], b[1]], 2),
        ([missing, b[0], missing, a[0]], 2),
        ([a[0], missing, emptied, b[1]], 2),
        ([a[0], missing, emptied, missing, a[0]], 2),
    ]:
        tables = [
            pa.record_batch(each).to_pydict()
            for each in read_ranges(ranges, ("__topic", "value"), may_miss=lambda *_: True)
        ]
        assert len(tables) == count
        for each in tables:
            assert {name[-1].encode() for name in each["__topic"]} == set(each["value"])


@pytest.mark.parametrize("kind", ["missing", "cut", "short"])
def test_no_range_is_passed_over_behind_an_error(several: list[LedgerRange], kind: str):
    from pulsarx.broker.scan.lease_renewal import renewals

    lease_ranges(several[0].folder, "job", several, 60_000)
    changes = {
        "missing": {"path": several[1].path + ".gone"},
        "cut": {"end": 1 << 40},
        "short": {"end_message": several[1].end_message + 1},
    }[kind]
    bad = part(several[1], **changes)
    bad.lease = several[1].lease
    reader = read_ranges([several[0], bad, *several[2:]], ("value",))
    found = len(next(reader))
    size = several[0].end_message - several[0].first_message
    assert found == (size + several[1].end_message - several[1].first_message
                     if kind == "short" else size)  # fmt: skip
    with pytest.raises(errors.PulsarException):
        next(reader)
    assert list(reader) == []
    lease = renewals.enter(several[0])
    renewals.leave(lease, several[0])
    assert lease.reading == []


def test_a_reader_that_a_signal_interrupted_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What it had read before of the same batch was lost."""
    import pulsarx.broker.scan.read_range as module

    plain = module.decompress
    calls: list[int] = []

    def interrupted(*arguments: Any) -> bytes:
        calls.append(1)
        if len(calls) % 2:
            raise KeyboardInterrupt
        return plain(*arguments)

    monkeypatch.setattr(module, "decompress", interrupted)
    ranges = []
    for name in "abc":
        (tmp_path / name).mkdir()
        packed = encode_batch(
            [(name.encode(), {})] * 3, producer_name="p", publish_time_ms=5,
            compression=CompressionType.ZLib.value,
        )  # fmt: skip
        ranges.append(write_ledger(tmp_path / name, [batch_of([b"plain"]), (packed, 3, 5)]))
    reader = read_ranges(ranges, ("value",))
    found: list[Any] = []
    interrupts = 0
    while True:
        try:
            found += pa.record_batch(next(reader)).to_pydict()["value"]
        except KeyboardInterrupt:
            interrupts += 1
        except StopIteration:
            break
    assert interrupts == 3
    assert found == [value for name in "abc" for value in [b"plain"] + [name.encode()] * 3]


def test_damage_in_one_of_several_ranges_is_told_with_its_place(tmp_path: Path):
    folders = [tmp_path / name for name in "abc"]
    ranges = []
    for folder in folders:
        folder.mkdir()
        ranges.append(write_ledger(folder, [batch_of([folder.name.encode()] * 3)] * 2))
    damage(ranges[1], ranges[1].offset + 90)
    found: list[Any] = []
    with pytest.raises(errors.CorruptDataError, match=f"ledger .* at {folders[1]}.* offset 4096"):
        for batch in read_ranges(ranges, ("value",)):
            found += pa.record_batch(batch).to_pydict()["value"]
    assert found == [b"a"] * 6


def test_each_of_several_ranges_is_leased_while_it_is_read(several: list[LedgerRange]):
    from pulsarx.broker.scan.lease_renewal import renewals

    lease_ranges(several[0].folder, "job", several, 60_000)
    lease = renewals.enter(several[0])
    renewals.leave(lease, several[0])
    reader = read_ranges(several, ("value",), max_rows=1)
    seen = []
    for _ in reader:
        seen.append(list(lease.reading))
    assert {len(each) for each in seen} == {1}
    assert {each[0] for each in seen} == {(each.topic, each.ledger_id) for each in several}
    assert lease.reading == []
    dropped = read_ranges(several, ("value",), max_rows=1)
    next(dropped)
    assert len(lease.reading) == 1
    del dropped
    gc.collect()
    assert lease.reading == []
