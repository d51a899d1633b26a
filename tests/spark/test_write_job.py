"""plan_write: where a write goes to, and what is kept of it from one micro-batch to the next.
Without a session."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import errors

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from topic_contents import staged, values_of
from topic_reading import open_paths

from pulsarx.broker.requests import owner_request
from pulsarx.spark import commit_write, plan_write, write_partitions
from pulsarx.spark.write_job import WriteJob

OWNER = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
client.close()
"""


def make(folder: Path, *topics: str) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        for topic in topics:
            client.admin.topics.create_non_partitioned_topic(topic)


def look(folder: Path, topic: str | None = "t") -> WriteJob:
    """As each micro-batch does."""
    return plan_write(folder, topic, staging=False)


def descriptors(folder: Path) -> list[str]:
    return [path for path in open_paths() if path.startswith(str(folder))]


def test_tasks_write_the_way_that_was_named(folder: Path, tmp_path: Path) -> None:
    """Where a symbolic link leads is another thing on each host; readers know that, too."""
    make(folder, "t")
    link = tmp_path / "link"
    link.symlink_to(folder)
    job = plan_write(link, "t")
    # Now as on a host that has it elsewhere.
    folder.rename(tmp_path / "elsewhere")
    link.unlink()
    link.symlink_to(tmp_path / "elsewhere")
    commit_write(job, list(write_partitions([b"1", b"2"], job)))
    assert values_of(link, "t") == [b"1", b"2"]
    assert staged(link) == [] and not folder.exists()


def test_each_look_finds_topics_that_came_or_grew(folder: Path) -> None:
    make(folder, "t")
    look(folder)
    with pytest.raises(errors.TopicNotFound):
        look(folder, "other")
    with pulsarx.Client(folder, durability="os") as client:
        client.admin.topics.create_partitioned_topic("other", 2)
        assert list(look(folder, "other").partition_counts.values()) == [2]
        client.admin.topics.update_partitioned_topic("other", 3)
        assert list(look(folder, "other").partition_counts.values()) == [3]
    assert len(look(folder, None).partition_counts) == 5


def test_another_folder_at_the_same_path_is_read_anew(folder: Path) -> None:
    make(folder, "t")
    before = look(folder).folder_id
    shutil.rmtree(folder)
    with pytest.raises(errors.FolderError):
        look(folder)
    make(folder, "u")
    with pytest.raises(errors.TopicNotFound):
        look(folder)
    assert look(folder, "u").folder_id != before


def test_a_backup_put_back_in_its_place_is_read_anew(folder: Path, tmp_path: Path) -> None:
    """It used to be refused for as long as Spark's process lived."""
    make(folder, "t")
    shutil.copytree(folder, tmp_path / "backup")
    make(folder, "u")
    look(folder, "u")
    shutil.rmtree(folder)
    (tmp_path / "backup").rename(folder)
    assert look(folder).topic == "persistent://public/default/t"
    with pytest.raises(errors.TopicNotFound):
        look(folder, "u")


def test_many_threads_look_at_two_folders(folder: Path, tmp_path: Path) -> None:
    """None closes what another one reads."""
    other = tmp_path / "other"
    make(folder, "t")
    make(other, "t", "u")
    with ThreadPoolExecutor(8) as pool:
        looked = pool.map(lambda turn: len(look((folder, other)[turn % 2], None).partition_counts),
                          range(400))  # fmt: skip
        assert list(looked) == [1, 2] * 200
    assert len(descriptors(folder) + descriptors(other)) <= 1


def test_a_forked_process_looks_for_itself(folder: Path) -> None:
    make(folder, "t")
    look(folder)
    child = os.fork()
    if child == 0:
        try:
            os._exit(len(look(folder, None).partition_counts))
        finally:
            os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert look(folder).topic == "persistent://public/default/t"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"null_values": "error"}, "null_values is 'error'; it must be True or False"),
        ({"flush": 1}, "flush is 1"),
        ({"compression": "lz4"}, "such as CompressionType.LZ4"),
        ({"hashing_scheme": "Murmur3_32Hash"}, "such as HashingScheme.Murmur3_32Hash"),
        ({"max_ledger_bytes": "64m"}, "'64m'; it must be a number of bytes"),
    ],
)
def test_values_that_only_options_can_have_are_refused(
    folder: Path, options: dict[str, Any], text: str
) -> None:
    make(folder, "t")
    with pytest.raises(TypeError, match=text):
        plan_write(folder, "t", **options)


def test_an_owner_who_cannot_be_asked_is_noticed_before_anything_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(folder, "t")
    monkeypatch.setattr(owner_request, "_PATIENCE_MS", 200)
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None and owner.stdin is not None
        owner.stdout.readline()
        plan_write(folder, "t")
        os.rename(folder / "control.sock", folder / "hidden.sock")
        before = sorted(os.listdir(folder / "staging"))
        with pytest.raises(errors.FolderOwnedError):
            plan_write(folder, "t")
        assert sorted(os.listdir(folder / "staging")) == before
        os.rename(folder / "hidden.sock", folder / "control.sock")
        owner.stdin.close()
