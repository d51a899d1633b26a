"""Facts that images of crashes showed not to be so."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from crash_session import OPTIONS, opened, read
from support.killed_owners import left_by_kill
from support.waiting import wait_until

import pulsarx
from pulsarx._pycore.ground import file_system
from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
from pulsarx.testing import fault_plan, inspect

HEADER_SIZE, FRAME_SIZE = 4096, 64


def deduplicating(folder: Path, durability: str = "os") -> pulsarx.Client:
    client = opened(folder, durability)
    client.create_producer("t").close()
    client.admin.topics.set_deduplication("t", True)
    return client


def send_all(client: pulsarx.Client, count: int, **options: int) -> None:
    producer = client.create_producer("t", "p", chunking_enabled=True)
    for number in range(count):
        data = " ".join([f"d{number}"] * options.get("words", 1))
        producer.send(data.encode(), sequence_id=number)
    producer.close()


def forget_snapshots(folder: Path) -> None:
    for each in (folder / "deduplication").iterdir():
        each.unlink()


def damage(folder: Path, text: bytes) -> None:
    """Turn the first bit of it in the ledger that has it."""
    for path in folder.glob("ledgers/*/*.ledger"):
        data = bytearray(path.read_bytes())
        at = data.find(text, HEADER_SIZE)
        if at >= 0:
            data[at] ^= 1
            path.write_bytes(data)
            return
    raise AssertionError(f"no ledger has {text!r}")


@pytest.mark.parametrize("words", [1, 4000])
def test_what_is_sent_again_of_damaged_messages_is_stored(tmp_path: Path, words: int) -> None:
    """It was taken for a duplicate of what the damage had taken: a message that was never confirmed
    and sent again after a power cut got lost so. words: 4000 are a message of two chunks, of which
    the second one is whole."""
    with deduplicating(tmp_path) as client:
        send_all(client, 4, words=words)
    forget_snapshots(tmp_path)
    damage(tmp_path, b"d2" if words == 1 else b"d2 d2")
    with opened(tmp_path, "os") as client:
        send_all(client, 5, words=words)
        messages, _ = read(client, "t")
        assert messages == ["d0", "d1", "d3", "d2", "d4"]
        send_all(client, 5, words=words)
        assert read(client, "t")[0] == messages
    with opened(tmp_path, "os") as client:
        send_all(client, 5, words=words)
        assert read(client, "t")[0] == messages


@pytest.mark.parametrize("killed", [False, True])
def test_what_was_left_out_is_a_duplicate_after_a_kill_that_lost_nothing(
    tmp_path: Path, killed: bool
) -> None:
    """As after a close: it was stored, as if the recovered ledger had lost it."""
    with deduplicating(tmp_path / "f") as client:
        producer = client.create_producer("t", "p")
        for number in (10, 20):
            producer.send(b"%d" % number, sequence_id=number)
        folder = left_by_kill(client, tmp_path / "killed") if killed else tmp_path / "f"
    with opened(folder, "os") as client:
        client.create_producer("t", "p").send(b"15", sequence_id=15)
        assert read(client, "t")[0] == ["10", "20"]


@pytest.mark.parametrize("snapshot", [True, False])
def test_what_the_end_of_a_ledger_lost_is_stored_again_though_its_start_is_in_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: bool
) -> None:
    """Nothing was read of that ledger any more, so its lost end was taken for a duplicate."""
    monkeypatch.setattr(ManagedLedger, "_seal_later", lambda *_: None)
    with deduplicating(tmp_path / "f") as client:
        producer = client.create_producer("t", "p")
        for number in (10, 20, 30, 40, 50):  # the last one in a second ledger
            producer.send(b"d%d" % number, sequence_id=number)
            inspect(client).settle()  # a snapshot has the first three
        folder = left_by_kill(client, tmp_path / "cut")
    monkeypatch.undo()
    if not snapshot:
        forget_snapshots(folder)
    damage(folder, b"d40")
    with opened(folder, "os") as client:
        assert read(client, "t")[0] == ["d10", "d20", "d30", "d50"]
        producer = client.create_producer("t", "p")
        for number in (30, 40, 50):
            producer.send(b"d%d" % number, sequence_id=number)
        assert read(client, "t")[0] == ["d10", "d20", "d30", "d50", "d40"]


def test_ledgers_that_were_sealed_without_a_flush_are_flushed_before_what_speaks_of_them(
    tmp_path: Path,
) -> None:
    """Snapshots of sequence ids and compactions flush the ledgers first. With durability os those
    that were full were left out, so a power cut could leave a snapshot that named lost messages."""
    with opened(tmp_path, "os") as client:
        producer = client.create_producer("t")
        for number in range(OPTIONS.managed_ledger_max_entries_per_ledger * 2 + 1):
            producer.send(b"%d" % number)
        inspect(client).settle()
        for expected in (2, 0):  # nothing is flushed twice
            file_system.record_install()
            inspect(client).ledger("t").flush()
            file_system.record_remove()
            calls = file_system.record_calls()
            file_system.record_free()
            paths = [each.path for each in calls if each.op == "open"]
            assert len([each for each in paths if each.endswith(".ledger")]) >= expected
            assert expected or not paths
            assert len([each for each in calls if each.op == "flush"]) >= expected


@pytest.mark.parametrize("durability", ["sync", "interval"])
def test_ledgers_that_an_owner_of_another_durability_sealed_are_flushed(
    tmp_path: Path, durability: str
) -> None:
    """The snapshot of an owner that flushes named messages of one that did not."""
    with deduplicating(tmp_path) as client:
        send_all(client, OPTIONS.managed_ledger_max_entries_per_ledger * 2 + 1)
    with opened(tmp_path, durability) as client:
        client.create_producer("t").close()
        ledger = inspect(client).ledger("t")
        file_system.record_install()
        ledger.flush()
        file_system.record_remove()
        calls = file_system.record_calls()
        file_system.record_free()
        flushed = [Path(each.path).name for each in calls if each.op == "open"]
        assert flushed == [f"{each}.ledger" for each in ledger.ledger_ids()]
        assert len([each for each in calls if each.op == "flush"]) == len(flushed) == 3


@pytest.mark.parametrize("fails", [False, True])
def test_who_comes_while_such_ledgers_are_flushed_waits_for_that(
    tmp_path: Path, fails: bool
) -> None:
    """It was told that all was flushed, and wrote its snapshot. Where the flush before fails, the
    next one does it."""
    with opened(tmp_path, "os") as client, fault_plan() as plan:
        producer = client.create_producer("t")
        for number in range(OPTIONS.managed_ledger_max_entries_per_ledger * 2 + 1):
            producer.send(b"%d" % number)
        inspect(client).settle()
        ledger = inspect(client).ledger("t")
        flushed: list[int] = []

        def flush() -> None:
            try:
                ledger.flush()
                flushed.append(plan.calls("flush"))
            except pulsarx.StorageError:
                assert fails

        (plan.fail if fails else plan.stall)("open")
        first = threading.Thread(target=flush)
        first.start()
        if fails:
            first.join()
        else:
            wait_until(lambda: plan.stalled() == 1)
        second = threading.Thread(target=flush)
        second.start()
        if not fails:
            second.join(0.05)  # it may not be through, however long that takes
            assert not flushed
            plan.release()
        first.join()
        second.join()
        assert flushed and all(each >= 2 for each in flushed)


def without_entries_from(path: Path, number: int) -> None:
    """As if the device had lost the entries of a ledger from one on."""
    data = path.read_bytes()
    at = HEADER_SIZE
    for _ in range(number):
        size = int.from_bytes(data[at : at + 4], "little")
        at += FRAME_SIZE + -(-size // 8) * 8
    path.write_bytes(data[:at] + bytes(len(data) - at))


def test_a_topic_opens_whose_aborted_messages_a_power_cut_took(tmp_path: Path) -> None:
    """Nothing flushes them for the record of an abort; its subscriptions could not pass over what
    was not there, so that the topic could not be opened."""
    with opened(tmp_path / "f", "interval") as client:
        client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
        producer = client.create_producer("t")
        producer.send(b"m0")
        transaction = client.new_transaction()
        for text in (b"x0", b"x1", b"x2"):
            producer.send(text, transaction=transaction)
        transaction.abort()
        folder = left_by_kill(client, tmp_path / "cut")
    (ledger,) = [each for each in folder.glob("ledgers/*/*.ledger") if b"x0" in each.read_bytes()]
    without_entries_from(ledger, 2)
    with opened(folder, "interval") as client:
        client.create_producer("t").send(b"m1")
        assert read(client, "t")[0] == ["m0", "m1"]
        consumer = client.subscribe("t", "s")
        assert [each.data() for each in consumer.receive_many(10, 0)] == [b"m0", b"m1"]
