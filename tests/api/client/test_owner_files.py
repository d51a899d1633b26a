"""Facts about the small files of an owner: what is told when one cannot be closed, and what is left
of owners that were killed."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from topic_reading import whole_topic

import pulsarx
from pulsarx import errors
from pulsarx.testing import fault_plan


def used(folder: Path) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        client.subscribe("t", "s").close()
        client.create_producer("t").send(b"x")


def closes_of_a_use(folder: Path) -> int:
    with fault_plan() as plan:
        used(folder)
        return int(plan.calls("close"))


def test_a_lock_that_cannot_be_closed_is_a_storage_error_and_given_up(folder: Path) -> None:
    client = pulsarx.Client(folder, durability="os")
    with fault_plan() as plan:
        plan.fail("close", error=errno.EIO, sticky=True)
        with pytest.raises(errors.StorageError, match=r"close .*/LOCK"):
            client.close()
    used(folder)


def test_whatever_file_cannot_be_closed_is_told_as_an_error_of_ours(tmp_path: Path) -> None:
    count = closes_of_a_use(tmp_path / "counted")
    assert count > 5
    told = 0
    for number in range(1, count + 1):
        folder = tmp_path / str(number)
        with fault_plan() as plan:
            plan.fail("close", number, error=errno.EIO)
            try:
                used(folder)
            except errors.PulsarException as error:
                assert "Input/output error" in str(error)
                told += 1
        used(folder)
        with pulsarx.Client(folder, read_only=True) as client:
            assert whole_topic(client)[-1] == b"x"
    assert told


@pytest.mark.parametrize(
    "name",
    [
        "PULSARX.0011.tmp",
        "catalogue/00000000000000000009.commit.ab.1.tmp",
        "cursors/3.7.unfinished",
    ],
)
def test_what_a_killed_owner_had_begun_to_write_is_removed_by_the_next(
    folder: Path, name: str
) -> None:
    used(folder)
    (folder / name).write_bytes(b"half")
    used(folder)
    assert not (folder / name).exists()
    with pulsarx.Client(folder) as client:
        assert whole_topic(client) == [b"x", b"x"]


def test_a_half_snapshot_of_a_killed_owner_goes_with_deduplication(folder: Path) -> None:
    options = pulsarx.BrokerOptions(broker_deduplication_enabled=True)
    with pulsarx.Client(folder, durability="os", broker_options=options) as client:
        client.create_producer("t").send(b"x")
    (snapshot,) = (folder / "deduplication").iterdir()
    half = snapshot.with_name(snapshot.name + ".tmp")
    half.write_bytes(b"half")
    used(folder)
    assert not snapshot.exists() and not half.exists()
