"""A salvage believes no header whose checksum holds and that says what cannot be, and tells it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from various_topics import OTHER, lose_names, make, opened, read

from pulsarx._pycore.ledger.name_record import name_record_bytes, name_record_of, with_name_record
from pulsarx.backups import check, salvage


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("whole"))


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "f"))


def forge(folder: Path, topic: str, **lies: int) -> int:
    """Let each ledger of a topic that is alone in its file say so; how many do."""
    forged = 0
    for path in folder.rglob("*.ledger"):
        block = path.read_bytes()[:4096]
        name = name_record_of(block)
        if name is None or name.topic != topic:
            continue
        said = {"ledger_id": name.ledger_id, "partition_count": name.partition_count} | lies
        record = name_record_bytes(
            topic=name.topic, uuid=name.uuid, folder_id=name.folder_id, **said
        )
        with path.open("r+b") as file:
            file.write(with_name_record(block, record))
        forged += 1
    return forged


@pytest.mark.parametrize("ledger_id", [1 << 62, (1 << 64) - 1])
def test_an_id_that_no_ledger_has_is_not_believed(
    folder: Path, tmp_path: Path, ledger_id: int
) -> None:
    lose_names(folder)
    assert forge(folder, OTHER, ledger_id=ledger_id)
    found = salvage(folder, tmp_path / "made")
    assert any(f"its id is {ledger_id}, which none can have" in each for each in found.assumed)
    assert check(tmp_path / "made").damage == []
    with opened(tmp_path / "made") as client:
        assert len(read(client, OTHER)) == 12
        client.create_producer(OTHER).send(b"more")
        assert read(client, OTHER)[-1] == b"more"


def test_a_count_of_partitions_that_no_topic_has_is_not_believed(
    folder: Path, tmp_path: Path
) -> None:
    lose_names(folder)
    partition = "persistent://public/default/parts-partition-0"
    assert forge(folder, partition, partition_count=(1 << 32) - 1)
    found = salvage(folder, tmp_path / "made")
    assert any("has 4294967295 partitions, which none can" in each for each in found.assumed)
    with opened(tmp_path / "made") as client:
        assert len(client.get_topic_partitions("parts")) == 4


def test_files_of_zeros_are_told_where_no_catalogue_says_what_they_were(
    folder: Path, tmp_path: Path
) -> None:
    lose_names(folder)
    destroyed = next(each for each in folder.rglob("*.ledger") if each.read_bytes().strip(b"\0"))
    destroyed.write_bytes(bytes(destroyed.stat().st_size))
    found = salvage(folder, tmp_path / "made")
    name = str(destroyed.relative_to(folder))
    assert any(name in each and "zeros alone" in each for each in found.assumed)
