"""The staging area: what is collected, and what never is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from attach_steps import contents, folder_of_topics, nothing_stays_open
from staged_ledgers import stage

from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.broker.requests.owner_request import ask_owner
from pulsarx.broker.staging.staging import collect_staging, make_staging
from pulsarx.clock import wall_ms

__all__ = ["folder_of_topics", "nothing_stays_open"]  # fixtures


def make_old(folder: Path, job: str) -> None:
    area = folder / "staging" / job
    for path in (*area.iterdir(), area):
        os.utime(path, (1_700_000_000, 1_700_000_000))


def test_staging_is_collected_by_age_and_spares_jobs_with_a_lease(folder: Path) -> None:
    for job in ("dead", "young", "leased"):
        stage(folder, "t", [b"1"], job=job)
    for job in ("dead", "leased"):
        make_old(folder, job)
    ask_owner(folder, "leases.set", {"job": "leased", "ledgers": {}, "ttl_ms": 60_000})
    assert collect_staging(folder, 3_600_000) == [
        str(folder.resolve() / "staging" / "dead" / "0.ledger")
    ]
    assert sorted(os.listdir(folder / "staging")) == ["leased", "young"]
    assert collect_staging(folder, 3_600_000) == []


def test_who_begins_a_job_takes_away_what_is_a_week_old(folder: Path) -> None:
    ages = {"dead": 8, "ill": 6}
    for job in ages:
        stage(folder, "t", [b"1"], job=job)
    for job, days in ages.items():
        area = folder / "staging" / job
        written = wall_ms() / 1000 - days * 24 * 3600
        for path in (*area.iterdir(), area):
            os.utime(path, (written, written))
    make_staging(folder, "ill")
    assert sorted(os.listdir(folder / "staging")) == ["dead", "ill"]
    make_staging(folder, "new")
    assert sorted(os.listdir(folder / "staging")) == ["ill", "new"]
    (folder / "catalogue").rename(folder / "gone")
    stage(folder, "t", [b"1"], job="ill")
    assert make_staging(folder, "newer")


def test_old_files_of_a_job_that_still_writes_are_spared(folder: Path) -> None:
    first = stage(folder, "t", [b"1"])
    make_old(folder, "job")
    second = stage(folder, "t", [b"2"])
    assert collect_staging(folder, 3_600_000) == []
    attach(folder, Transaction("query", 0), [first, second])
    assert contents(folder, "t") == [[b"1", b"2"]]


def test_collecting_goes_through_no_link(folder: Path, tmp_path: Path) -> None:
    """What lies elsewhere is not a staged file, whoever linked it here."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_bytes(b"x")
    stage(folder, "t", [b"1"])
    os.symlink(precious, folder / "staging" / "evil")
    os.symlink(precious / "file", folder / "staging" / "job" / "link")
    later = 10**15
    assert len(collect_staging(folder, 0, now_ms=later)) == 1
    assert (precious / "file").read_bytes() == b"x"
    os.rename(folder / "staging", folder / "elsewhere")
    os.symlink(precious, folder / "staging")
    assert collect_staging(folder, 0, now_ms=later) == []


def test_collecting_what_was_attached_loses_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = stage(folder, "t", [b"1"])
    kept = folder / "kept"
    os.link(folder / "staging" / "job" / file.name, kept)
    attach(folder, Transaction("query", 0), [file])
    make_staging(folder, "job")
    os.link(kept, folder / "staging" / "job" / file.name)  # the clean-up that did not happen
    later = os.stat(folder / "staging" / "job").st_mtime_ns // 1_000_000 + 7_200_000
    assert len(collect_staging(folder, 3_600_000, now_ms=later)) == 1
    assert contents(folder, "t") == [[b"1"]]
