"""What the header of a ledger says of whose it is: written, read, kept by recovery, damaged."""

from __future__ import annotations

from pathlib import Path

import pytest
from ledger_files import append, crc32c, make_ledger

from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ledger.ledger_recovery import seal_recovered
from pulsarx._pycore.ledger.name_record import (
    NameRecord,
    name_record_bytes,
    name_record_of,
    with_name_record,
)

UUID, FOLDER = bytes(range(16)), bytes(16)
TOPIC = "persistent://public/default/träger-partition-3"


def record(**more: object) -> bytes:
    fields = {"topic": TOPIC, "uuid": UUID, "folder_id": FOLDER, "ledger_id": 5, **more}
    found: bytes = name_record_bytes(**fields)
    return found


def read(path: Path) -> NameRecord | None:
    return name_record_of(path.read_bytes()[:4096])


def test_a_ledger_says_whose_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    named = record(partition_count=8, compacted=True, horizon=(3, 4, 5))
    writer = make_ledger(path, uuid=UUID, name_record=named)
    append(writer, 0)
    writer.seal()
    found = read(path)
    assert found is not None
    assert (found.topic, found.ledger_id, found.partition_count) == (TOPIC, 5, 8)
    assert (found.uuid, found.folder_id) == (UUID, FOLDER)
    assert (found.compacted, found.horizon, found.cut) == (True, (3, 4, 5), False)
    assert not LedgerFile.open(str(path), 5).header_damaged


def test_a_ledger_without_a_name_is_as_good_as_any(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    append(make_ledger(path), 0)
    assert read(path) is None
    assert not LedgerFile.open(str(path), 5).header_damaged


def test_a_name_that_is_too_long_is_cut_and_says_so() -> None:
    for length in (1400, 1500, 32_000):
        topic = f"persistent://public/default/{'ü' * (length // 2)}"
        found = name_record_of(bytes(2560) + record(topic=topic))
        assert found is not None and found.cut == (length > 1448 - 28)
        if found.cut:
            beginning, _, digest = found.topic.rpartition("-cut-")
            assert topic.startswith(beginning) and len(beginning.encode()) > 1400
            assert digest == f"{crc32c(topic.encode()):08x}"
        else:
            assert found.topic == topic


def test_another_ledgers_name_is_damage_and_hides_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    writer = make_ledger(path, uuid=UUID, name_record=record())
    entry = append(writer, 0)
    for wrong in (record(uuid=bytes(16)), bytes(1535) + b"\1"):
        path.write_bytes(with_name_record(path.read_bytes(), wrong))
        file = LedgerFile.open(str(path), 5)
        assert file.header_damaged
        found = file.entry(4096, writer.end)
        assert found is not None and found[1] == entry


@pytest.mark.parametrize("is_named", [True, False])
def test_recovery_of_a_lost_header_keeps_the_name(tmp_path: Path, is_named: bool) -> None:
    path = tmp_path / "ledger"
    named = record(uuid=UUID if is_named else bytes(16))
    writer = make_ledger(path, uuid=UUID, name_record=named)
    append(writer, 0)
    writer.close()
    data = path.read_bytes()
    path.write_bytes(bytes(2560) + data[2560:])
    file = LedgerFile.open(str(path), 5, uuid=UUID.hex(), folder_id=FOLDER.hex())
    assert file.headless
    assert seal_recovered(str(path), file.recover()).entry_count == 1
    assert LedgerFile.open(str(path), 5).summary().entry_count == 1
    found = read(path)
    # That of another ledger is not put into the new header.
    assert (found is not None and found.topic == TOPIC) if is_named else found is None


def test_records_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        record(uuid=b"short")
    with pytest.raises(ValueError, match="no name"):
        record(topic="")
    with pytest.raises(ValueError, match="1536 bytes"):
        make_ledger(tmp_path / "ledger", name_record=b"short")
    with pytest.raises(ValueError, match="a ledger of 5 bytes"):
        with_name_record(b"short", record())
    assert name_record_of(b"short") is None
