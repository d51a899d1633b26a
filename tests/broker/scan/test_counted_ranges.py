"""count_ranges: as many messages as read_ranges would give, whatever is in their entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from encryption_steps import write_keys
from forged_ledgers import forge
from range_files import batch_of, damage, part, publish_all_kinds, read_values, write_ledger
from range_topics import small_ledgers
from support.clients import OpenClient
from support.killed_owners import left_by_kill

import pulsarx
import pulsarx.broker.scan.read_range as module
from pulsarx import CompressionType, errors
from pulsarx._pycore.ledger.ledger_file import LedgerFile, seal_recovered
from pulsarx._pycore.ranges.entry_codec import crc32c, encode_batch
from pulsarx.broker.scan.ledger_range import LedgerRange
from pulsarx.broker.scan.plan import plan
from pulsarx.broker.scan.read_range import count_ranges
from pulsarx.broker.staging.sealed_writer import SealedLedgerWriter
from pulsarx.testing import inspect


@pytest.fixture
def planned(tmp_path: Path) -> LedgerRange:
    """Five batches of four messages, published at 0, 1, 2, 3 and 4."""
    return write_ledger(tmp_path, [batch_of([b"v" * 50] * 4, time) for time in range(5)])


@pytest.fixture
def sealed(planned: LedgerRange, monkeypatch: pytest.MonkeyPatch) -> LedgerRange:
    """The same, sealed; small ledgers are read up to the end of the range otherwise."""
    monkeypatch.setattr(module, "_READ_BYTES_MAX", 0)
    seal(planned)
    return planned


def seal(planned: LedgerRange) -> None:
    seal_recovered(planned.path, LedgerFile.open(planned.path, 9).recover())


def damage_frames(planned: LedgerRange) -> None:
    step = (planned.end - planned.offset) // 5
    for offset in range(planned.offset, planned.end, step):
        damage(planned, offset + 48)


@pytest.mark.parametrize("read_bytes_max", [0, module._READ_BYTES_MAX], ids=["mapped", "read"])
def test_as_many_are_counted_as_are_read(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch, read_bytes_max: int
) -> None:
    monkeypatch.setattr(module, "_READ_BYTES_MAX", read_bytes_max)
    client = open_client(broker_options=small_ledgers(2))
    publish_all_kinds(client)
    for commits in (True, False, True):
        with client.new_transaction() as transaction:
            producer = client.create_producer("t", batching_enabled=True)
            producer.send_many([b"t"] * 3, transaction=transaction)
            if not commits:
                transaction.abort()
        publish_all_kinds(client)
    client.admin.topics.unload("t")  # all ledgers are sealed
    client.create_producer("t").close()
    ranges = plan(inspect(client).broker, "t")
    told = [module.open_ledger(each).has_each(each.end_message) for each in ranges]
    assert not any(told) if read_bytes_max else all(told)
    assert count_ranges(ranges) == sum(len(read_values(each)) for each in ranges) > 40


@pytest.mark.parametrize("way", ["sent", "staged"])
def test_markers_are_not_counted(
    client: pulsarx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A broker that replicates puts them between its messages."""
    monkeypatch.setattr(module, "_READ_BYTES_MAX", 0)
    entries = [batch_of([b"v"] * 2)[0], _marker(), batch_of([b"v"])[0]]
    if way == "staged":
        writer = SealedLedgerWriter(str(tmp_path / "staged"), "0" * 32)
        for each in entries:
            writer.append_entry(each)
        staged = writer.seal()
        assert staged is not None
        planned = LedgerRange(
            "t", -1, 9, staged.path, staged.uuid, staged.folder_id, 0, staged.message_count, 4096,
            staged.size, (),
        )  # fmt: skip
        assert count_ranges([planned]) == len(read_values(planned)) == 3
        return
    client.create_producer("t").close()
    for each in entries:
        inspect(client).append_entry("t", each)
    for _ in range(2):
        (planned,) = plan(inspect(client).broker, "t")
        assert count_ranges([planned]) == len(read_values(planned)) == 3
        client.admin.topics.unload("t")
        client.create_producer("t").close()


def _marker() -> bytes:
    """The request for a snapshot of a replicated subscription (`marker_type` 10)."""
    metadata = b"\x0a\x01p\x10\x01\x18\x05\xa0\x01\x0a"
    body = len(metadata).to_bytes(4, "big") + metadata + b"snapshot"
    return b"\x0e\x01" + crc32c(body).to_bytes(4, "big") + body


def test_a_part_is_counted_wherever_it_begins_and_ends(planned: LedgerRange) -> None:
    for first in range(20):
        for end in range(first, 21):
            chosen = part(planned, first_message=first, end_message=end)
            assert count_ranges([chosen, chosen]) == 2 * (end - first)
    timed = part(planned, first_message=2, end_message=18, from_ms=1, until_ms=4)
    assert count_ranges([timed]) == len(read_values(timed)) == 12


def test_more_are_counted_than_a_block_has(
    planned: LedgerRange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 3)
    assert count_ranges([planned] * 3) == 60


def test_what_is_in_an_entry_is_not_looked_at(
    planned: LedgerRange, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To verify it and to step from message to message took four times as long as all the rest."""
    damage(planned, planned.end - 20)
    damage(planned, planned.offset + 70)
    with pytest.raises(errors.CorruptDataError):
        read_values(planned)
    assert count_ranges([planned]) == 20

    def decompress(*given: Any) -> bytes:
        raise AssertionError("it was made plain")

    (tmp_path / "packed").mkdir()
    packed = encode_batch(
        [(b"v", {})] * 7,
        producer_name="p",
        publish_time_ms=5,
        compression=CompressionType.LZ4.value,
    )
    compressed = write_ledger(tmp_path / "packed", [(packed, 7, 0)])
    monkeypatch.setattr(module, "decompress", decompress)
    assert count_ranges([compressed]) == 7


def test_damage_of_what_says_how_many_they_are_is_told(planned: LedgerRange) -> None:
    damage(planned, planned.offset + 48)
    with pytest.raises(errors.CorruptDataError, match="offset 4096"):
        count_ranges([planned])


def test_messages_that_are_not_there_are_told(planned: LedgerRange) -> None:
    with pytest.raises(errors.CorruptDataError, match="the last 2 messages"):
        count_ranges([part(planned, end_message=22)])


def test_of_a_sealed_ledger_the_entries_are_not_looked_at(sealed: LedgerRange) -> None:
    """Of messages of 1 KiB that are not in memory, to read a page for each batch took 20 times as
    long as the footers of Parquet."""
    damage_frames(sealed)
    for first in range(20):
        for end in range(first, 21):
            assert count_ranges([part(sealed, first_message=first, end_message=end)]) == end - first
    for changes in ({"from_ms": 1}, {"until_ms": 3}, {"end_message": 21}):
        with pytest.raises(errors.CorruptDataError):
            count_ranges([part(sealed, **changes)])


def test_a_footer_that_is_damaged_or_of_an_older_version_is_not_believed(
    sealed: LedgerRange,
) -> None:
    path = Path(sealed.path)
    whole = path.read_bytes()
    forge(path, lambda forged: forged.footer.update(flags=1))
    _counts_by_frames(sealed)
    path.write_bytes(whole)
    damage(sealed, LedgerFile.open(sealed.path, 9).sealed_size - 90)
    _counts_by_frames(sealed)


def _counts_by_frames(planned: LedgerRange) -> None:
    assert count_ranges([planned]) == 20
    damage_frames(planned)
    with pytest.raises(errors.CorruptDataError):
        count_ranges([planned])


def test_what_recovery_found_damaged_is_told(
    planned: LedgerRange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_READ_BYTES_MAX", 0)
    damage(planned, planned.offset + 48)
    seal(planned)
    assert LedgerFile.open(planned.path, 9).damage()
    with pytest.raises(errors.CorruptDataError, match="offset 4096"):
        count_ranges([planned])


@pytest.mark.parametrize("is_killed", [False, True], ids=["unloaded", "killed"])
def test_messages_in_chunks_cannot_be_counted(
    client: pulsarx.Client, tmp_path: Path, is_killed: bool
) -> None:
    """Each would count as many times as it has chunks."""
    client.create_producer("t", chunking_enabled=True).send(bytes(6_000_000))
    client.create_producer("u").send_many([bytes(100_000)] * 5)
    if is_killed:
        with pulsarx.Client(left_by_kill(client, tmp_path / "copied")) as other:
            _check_chunks(other)
    else:
        for topic in ("t", "u"):
            client.admin.topics.unload(topic)
        _check_chunks(client)


def _check_chunks(client: pulsarx.Client) -> None:
    for topic in ("t", "u"):
        client.create_producer(topic).close()  # what was open is recovered
    broker = inspect(client).broker
    chunks, others = plan(broker, "t"), plan(broker, "u")
    assert LedgerFile.open(chunks[0].path, chunks[0].ledger_id).sealed
    with pytest.raises(errors.OperationNotSupported, match="is a chunk"):
        count_ranges(chunks)
    damage(others[0], others[0].offset + 48)
    assert count_ranges(others) == 5


def test_encrypted_messages_are_counted(client: pulsarx.Client, tmp_path: Path) -> None:
    keys = write_keys(tmp_path / "keys")
    encrypted = client.create_producer(
        "t", encryption_key="k", crypto_key_reader=keys, batching_enabled=True
    )
    encrypted.send_many([b"a", b"b"])
    encrypted.send(b"c")
    assert count_ranges(plan(inspect(client).broker, "t")) == 3


def test_a_file_that_is_gone_is_told_or_missed(client: pulsarx.Client) -> None:
    client.create_producer("t", batching_enabled=True).send_many([b"a", b"b"])
    (planned,) = plan(inspect(client).broker, "t")
    gone = part(planned, path=planned.path + ".gone")
    with pytest.raises(errors.FolderError, match="the file is gone"):
        count_ranges([gone])
    assert count_ranges([planned, gone, planned], may_miss=lambda *_: True) == 4
