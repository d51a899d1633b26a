"""Facts about salvage: what is whole of a folder is found without its marker and catalogue."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from compaction_steps import compacted, survivors
from compaction_steps import publish as publish_keys
from damaged_ledgers import frame_offsets
from staged_ledgers import stage
from support.copied_topics import numbers, publish, read
from support.killed_owners import left_by_kill
from various_topics import OTHER, everything, lose_names, make, opened, read_whole, subscribed

import pulsarx
from pulsarx import errors
from pulsarx.backups import backup, check, restore, salvage
from pulsarx.backups.contents import Salvaged
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.broker.staging.sealed_writer import SealedLedgerWriter
from pulsarx.broker.staging.staged_file import StagedFile
from pulsarx.broker.staging.staging import folder_id_of, make_staging
from pulsarx.testing import inspect
from pulsarx.topic_name import TopicName


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder whose owner was killed, with open ledgers, and all that is in it."""
    path = tmp_path_factory.mktemp("whole")
    made = make(path)
    shutil.copytree(made, path / "copy")
    with opened(path / "copy") as client:
        return made, everything(client)


@pytest.fixture
def folder(whole: tuple[Path, dict[str, Any]], tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole[0], tmp_path / "f"))


@pytest.fixture
def expected(whole: tuple[Path, dict[str, Any]]) -> dict[str, Any]:
    return whole[1]


def digest(folder: Path) -> str:
    """Of all bytes and names in a folder."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        found.update(f"{path.relative_to(folder)}\0{path.stat().st_mtime_ns}\0".encode())
        found.update(path.read_bytes() if path.is_file() else b"")
    return found.hexdigest()


def contents(folder: Path) -> dict[str, Any]:
    with opened(folder) as client:
        return everything(client)


def ledgers_of(folder: Path, topic: str = "t") -> list[Path]:
    """The files of a topic, with whose names the headers are marked."""
    full = TopicName.of(topic).full.encode()
    found = [each for each in folder.rglob("*.ledger") if full + b"\0" in each.read_bytes()[:4096]]
    return sorted(found, key=lambda each: int(each.stem))


def unknown_ledger(folder: Path) -> Path:
    made = folder / "ledgers" / "00" / "512000.ledger"
    made.parent.mkdir(exist_ok=True)
    return made


def change(path: Path, *places: int) -> None:
    """Flip a bit at each of these places."""
    data = bytearray(path.read_bytes())
    for at in places:
        data[at] ^= 1
    path.write_bytes(data)


def of(found: Salvaged, what: str) -> list[str]:
    return [each.text for each in found.damage if each.what == what]


def test_all_is_found_without_marker_and_catalogue(
    folder: Path, tmp_path: Path, expected: dict[str, Any]
) -> None:
    lose_names(folder)
    before = digest(folder)
    found = salvage(folder, tmp_path / "made")
    assert digest(folder) == before
    topics = {each.topic: each for each in found.found}
    t = topics["persistent://public/default/t"]
    assert (t.ledgers, t.messages, sorted(t.subscriptions)) == (5, 23, ["all", "s"])
    assert topics[OTHER].messages == 12 and topics[OTHER].subscriptions == ["bills"]
    assert (found.subscriptions, found.missing_messages) == (3, 0)
    assert [each.what for each in found.damage] == ["marker", "catalogue"]
    assert "policies, schemas" in of(found, "catalogue")[0]
    said = "\n".join(found.assumed)
    assert "files of ledgers say" in said and "lay merged in" in said
    assert check(tmp_path / "made").damage == []
    assert contents(tmp_path / "made") == expected


def test_what_is_made_goes_on(folder: Path, tmp_path: Path, expected: dict[str, Any]) -> None:
    lose_names(folder)
    salvage(folder, tmp_path / "made")
    with opened(tmp_path / "made") as client:
        publish(client, 23, 30)
        assert read(client) == numbers(0, 30)
        with subscribed(client) as consumer:
            left = [*expected["t s"], *numbers(23, 30)]
            assert [each.data() for each in consumer.receive_many(99, 0)] == left
        publish_keys(client, [("a", b"8")], "keyed")
        compacted(client, "keyed")
        assert dict(survivors(client, "keyed"))["a"] == b"8"
        client.admin.topics.merge_ledgers("t")
        assert read(client) == numbers(0, 30)
    again = salvage(tmp_path / "made", tmp_path / "again")
    assert again.damage == [] and len(again.assumed) == 1  # they were merged once more
    with opened(tmp_path / "again") as client:
        assert read(client) == numbers(0, 30)


def test_partitions_without_messages_are_counted_too(folder: Path, tmp_path: Path) -> None:
    """By what the ledgers of others say; where those are of before that, by the highest."""
    lose_names(folder)
    for ledger in ledgers_of(folder, "parts-partition-2"):
        ledger.unlink()
    found = salvage(folder, tmp_path / "made")
    with opened(tmp_path / "made") as client:
        assert len(client.get_topic_partitions("parts")) == 4
        assert read(client, "parts-partition-0") == numbers(0, 3)
        publish(client, 0, 8, "parts")
    assert not any("by the highest" in each for each in found.assumed)


def test_what_survived_of_trimmed_ledgers_is_found(folder: Path, tmp_path: Path) -> None:
    with opened(folder) as client:
        client.admin.namespaces.set_retention("public/default", 0, 0)
        client.admin.topics.unload("keyed")
        publish_keys(client, [("d", b"9")], "keyed")
        inspect(client).settle()
        before = survivors(client, "keyed")
    lose_names(folder)
    salvage(folder, tmp_path / "made")
    with opened(tmp_path / "made") as client:
        assert survivors(client, "keyed") == before
        assert dict(before)["b"] == b"5"


@pytest.mark.parametrize("lost", ["first", "middle", "all but the first"])
def test_the_catalogue_counts_as_far_as_it_goes(
    lost: str, folder: Path, tmp_path: Path, expected: dict[str, Any]
) -> None:
    """Topics, ledgers and subscriptions that came behind a damaged commit are found by their
    files."""
    commits = sorted((folder / "catalogue").glob("*.commit"))
    gone = {
        "first": commits[:1],
        "middle": [commits[len(commits) // 2]],
        "all but the first": commits[1:],
    }[lost]
    for each in gone:
        each.write_bytes(b"nothing")
    before = digest(folder)
    found = salvage(folder, tmp_path / "made")
    assert digest(folder) == before
    (text,) = of(found, "catalogue")
    assert "no part of the catalogue" in text if lost == "first" else "up to commit" in text
    assert contents(tmp_path / "made") == expected


def test_a_whole_folder_is_copied_as_it_is(
    folder: Path, tmp_path: Path, expected: dict[str, Any]
) -> None:
    """What a catalogue that is whole does not name is no part of the folder."""
    with opened(folder) as client:
        client.admin.topics.create_non_partitioned_topic("empty")
        client.admin.namespaces.set_message_ttl("shop/orders", 77)
    shutil.copy(ledgers_of(folder)[0], unknown_ledger(folder))
    shutil.copy(next((folder / "cursors").iterdir()), folder / "cursors" / "512001.1")
    found = salvage(folder, tmp_path / "made")
    assert of(found, "ledger") == [
        "ledgers/00/512000.ledger is left out: the catalogue does not name it"
    ]
    assert len(of(found, "cursor")) == 1 and len(found.damage) == 2
    assert len(found.assumed) == 1 and "lay merged in" in found.assumed[0]
    with opened(tmp_path / "made") as client:
        assert client.admin.namespaces.get_message_ttl("shop/orders") == 77
        assert "persistent://public/default/empty" in client.admin.namespaces.get_topics(
            "public/default"
        )
        assert everything(client) == expected


def test_a_commit_lost_of_a_folder_whose_ledgers_went_tells_what_is_missing(
    folder: Path, tmp_path: Path
) -> None:
    ledger = ledgers_of(folder)[1]
    ledger.unlink()
    found = salvage(folder, tmp_path / "made")
    (missing,) = [each for each in found.damage if each.what == "ledger"]
    assert missing.file == str(ledger.relative_to(folder)) and missing.messages == 5
    assert "its file is missing" in missing.text and found.missing_messages == 5
    with opened(tmp_path / "made") as client:
        assert read(client) == [*numbers(0, 5), *numbers(10, 23)]


HEADERS = (20, 2048 + 20)


@pytest.mark.parametrize(
    ("places", "missing", "told"),
    [
        ((20,), 0, "its header is damaged"),  # one copy
        (HEADERS, 0, "its header was damaged and is made anew"),
        ((530,), 0, "its seal record is damaged"),
        ((2600,), 0, "its header is damaged"),  # the name record: the ledger is of no known topic
        ((*HEADERS, 2600), 5, "its header is damaged in both copies"),
        ((4096 + 64 + 20,), 1, "entry 0 of ledger"),
        ((4096 + 64 + 20, 530), 1, "entry 0 of ledger"),
    ],
)
def test_what_bits_take_is_told(
    places: tuple[int, ...], missing: int, told: str, folder: Path, tmp_path: Path
) -> None:
    lose_names(folder)
    ledger = ledgers_of(folder)[1]
    change(ledger, *places)
    before = digest(folder)
    found = salvage(folder, tmp_path / "made")
    assert digest(folder) == before
    text = "\n".join([*of(found, "ledger"), *of(found, "entries")])
    assert told in text
    file = str(ledger.relative_to(folder))
    assert any(each.file == file and each.offset is not None for each in found.damage) or (
        file in text or f"ledger {ledger.stem}" in text
    )
    nameless = places == (2600,)
    with opened(tmp_path / "made") as client:
        got = read_whole(client, "t")
        if nameless:
            topic = f"persistent://public/salvaged/ledger-{ledger.stem}"
            assert read(client, topic) == numbers(5, 10)
            assert any(topic in each for each in found.assumed)
            missing = 5
        assert set(numbers(0, 23)) > set(got) or not missing
        assert len(got) == 23 - missing


def test_a_footer_that_is_damaged_costs_no_message(folder: Path, tmp_path: Path) -> None:
    lose_names(folder)
    ledger = ledgers_of(folder)[1]
    change(ledger, ledger.read_bytes().rindex(b"PULSARXF") + 30)
    found = salvage(folder, tmp_path / "made")
    assert any("footer" in each for each in of(found, "ledger"))
    with opened(tmp_path / "made") as client:
        assert read(client) == numbers(0, 23)


@pytest.mark.parametrize(
    "places", [(20,), HEADERS, (530,), (*HEADERS, 2600), (*HEADERS, 530, 2600)]
)
def test_damage_in_a_merged_file_hides_no_other_ledger(
    places: tuple[int, ...], folder: Path, tmp_path: Path
) -> None:
    lose_names(folder)
    merged = max(ledgers_of(folder, OTHER), key=lambda each: each.read_bytes().count(b"PULSARXN"))
    second = merged.read_bytes().index(b"PULSARXN", 4096) - 2560
    change(merged, *(second + each for each in places))
    found = salvage(folder, tmp_path / "made")
    is_lost = 2600 in places
    with opened(tmp_path / "made") as client:
        got = read(client, OTHER)
    assert got == ([*numbers(0, 5), *numbers(10, 12)] if is_lost else numbers(0, 12))
    if is_lost:
        (damage,) = [each for each in found.damage if each.what == "ledger"]
        assert (damage.file, damage.offset) == (str(merged.relative_to(folder)), second)


def test_a_damaged_cursor_is_left_out_and_its_messages_come_again(
    folder: Path, tmp_path: Path
) -> None:
    lose_names(folder)
    (cursor,) = [
        each
        for each in (folder / "cursors").iterdir()
        if b"public/default/ts" + b"Shared" in each.read_bytes()[:4096]
    ]
    change(cursor, 90)
    found = salvage(folder, tmp_path / "made")
    (damage,) = [each for each in found.damage if each.what == "cursor"]
    assert damage.file == f"cursors/{cursor.name}" and "checksum" in damage.text
    with opened(tmp_path / "made") as client, subscribed(client) as consumer:
        assert [each.data() for each in consumer.receive_many(99, 0)] == numbers(0, 23)


def test_files_of_another_folder_are_left_out(folder: Path, tmp_path: Path) -> None:
    with opened(tmp_path / "other") as client:
        publish(client, 100, 103)
    (stranger,) = (tmp_path / "other").rglob("*.ledger")
    lose_names(folder)
    shutil.copy(stranger, unknown_ledger(folder))
    found = salvage(folder, tmp_path / "made")
    (text,) = of(found, "ledger")
    assert "512000.ledger are left out: it is a ledger of another folder" in text


def test_a_message_that_looks_like_a_ledger_is_a_message(tmp_path: Path) -> None:
    with opened(tmp_path / "f") as client:
        publish(client, 0, 12)
        client.admin.topics.merge_ledgers("t")
    data = max(ledgers_of(tmp_path / "f"), key=lambda each: each.stat().st_size).read_bytes()
    with opened(tmp_path / "f") as client, client.create_producer("files") as producer:
        producer.send(data)
        # As the payload lies in its ledger, the copy in it begins with a block.
        ledger = ledgers_of(tmp_path / "f", "files")[0]
        at = ledger.read_bytes().index(data, 4096)
        producer.send(bytes(-(at + 4096) % 4096) + data * 2)
        files = ledger.read_bytes()
        left_by_kill(client, tmp_path / "copy")
    assert files.count(b"PULSARXL") > 4
    lose_names(tmp_path / "copy")
    salvage(tmp_path / "copy", tmp_path / "made")
    with opened(tmp_path / "made") as client:
        assert len(read(client, "files")) == 2 and read(client, "files")[0] == data
        assert read(client) == numbers(0, 12)


def test_attached_ledgers_without_a_name_become_topics_of_their_own(tmp_path: Path) -> None:
    """As do those of before their headers said whose they are."""
    with opened(tmp_path / "f") as client:
        client.admin.topics.create_non_partitioned_topic("t")
    staged = stage(tmp_path / "f", "t", numbers(0, 3))
    attach(tmp_path / "f", Transaction("app", 1), [staged])
    lose_names(tmp_path / "f")
    found = salvage(tmp_path / "f", tmp_path / "made")
    (topic,) = found.found
    assert topic.topic.startswith("persistent://public/salvaged/ledger-")
    assert any(topic.topic in each for each in found.assumed)
    with opened(tmp_path / "made") as client:
        assert read(client, topic.topic) == numbers(0, 3)


def test_attached_ledgers_whose_writer_knew_the_topic_are_found(tmp_path: Path) -> None:
    with opened(tmp_path / "f") as client:
        client.admin.topics.create_non_partitioned_topic("t")
        publish(client, 0, 2)
    area = make_staging(tmp_path / "f", "job")
    folder_id = folder_id_of(tmp_path / "f")
    with SealedLedgerWriter(f"{area}/one", folder_id, topic="t") as writer:
        writer.append(b"2")
        sealed = writer.seal()
    assert sealed is not None
    attach(tmp_path / "f", Transaction("app", 1), [StagedFile.of_sealed("t", sealed)])
    lose_names(tmp_path / "f")
    found = salvage(tmp_path / "f", tmp_path / "made")
    assert [each.topic for each in found.found] == ["persistent://public/default/t"]
    with opened(tmp_path / "made") as client:
        assert read(client) == numbers(0, 3)


def test_an_older_generation_of_a_cursor_is_taken_where_the_newest_is_damaged(
    folder: Path, tmp_path: Path, expected: dict[str, Any]
) -> None:
    lose_names(folder)
    for each in list((folder / "cursors").iterdir()):
        later = each.with_suffix(f".{int(each.suffix[1:]) + 1}")
        later.write_bytes(each.read_bytes())  # of another generation, as its header says
    found = salvage(folder, tmp_path / "made")
    assert len(of(found, "cursor")) == 3
    assert contents(tmp_path / "made") == expected


def test_a_ledger_that_was_cut_off_keeps_what_is_left(folder: Path, tmp_path: Path) -> None:
    lose_names(folder)
    ledger = ledgers_of(folder)[1]
    cut = frame_offsets(ledger)[3] + 10
    ledger.write_bytes(ledger.read_bytes()[:cut])
    found = salvage(folder, tmp_path / "made")
    assert any(each.file == str(ledger.relative_to(folder)) for each in found.damage)
    with opened(tmp_path / "made") as client:
        assert read_whole(client, "t") == [*numbers(0, 8), *numbers(10, 23)]


def test_what_readers_have_seen_and_is_gone_is_told(tmp_path: Path) -> None:
    """By the published ends, where durability sync lets readers see what is durable alone."""
    with pulsarx.Client(tmp_path / "used", durability="sync") as client:
        publish(client, 0, 5)
        left_by_kill(client, tmp_path / "f")
    lose_names(tmp_path / "f")
    ledger = ledgers_of(tmp_path / "f")[0]
    cut = frame_offsets(ledger)[3]
    ledger.write_bytes(ledger.read_bytes()[:cut])
    found = salvage(tmp_path / "f", tmp_path / "made")
    (damage,) = [each for each in found.damage if each.what == "entries"]
    assert (damage.entry_id, damage.entries, damage.messages) == (3, 2, 2)
    assert found.missing_messages == 2
    with opened(tmp_path / "made") as client:
        assert read_whole(client, "t") == numbers(0, 3)


def test_names_that_are_too_long_are_cut_and_said(tmp_path: Path) -> None:
    long = f"persistent://public/default/{'n' * 3000}"
    with opened(tmp_path / "f") as client:
        publish(client, 0, 12, long)
        subscribed(client, long, "s" * 3000).acknowledge(
            subscribed(client, long, "other").receive()
        )
    lose_names(tmp_path / "f")
    found = salvage(tmp_path / "f", tmp_path / "made")
    (topic,) = found.found
    assert topic.topic.startswith(long[:1400]) and topic.messages == 12
    assert len(topic.subscriptions) == 2
    assert any("too long" in each for each in found.assumed)
    with opened(tmp_path / "made") as client:
        assert read(client, topic.topic) == numbers(0, 12)


@pytest.mark.parametrize("kind", ["missing", "empty", "foreign", "a file", "marker alone"])
def test_a_folder_in_which_nothing_is_found_makes_none(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "f"
    if kind == "a file":
        folder.write_bytes(b"text")
    elif kind != "missing":
        folder.mkdir()
    if kind == "foreign":
        (folder / "ledgers" / "01").mkdir(parents=True)
        (folder / "ledgers" / "01" / "1.ledger").write_bytes(b"text" * 3000)
        (folder / "readme").write_bytes(b"text")
    if kind == "marker alone":
        with opened(tmp_path / "used") as client:
            publish(client, 0, 1)
        shutil.copy(tmp_path / "used" / "PULSARX", folder)
    with pytest.raises(errors.FolderError, match=r"salvage .*f"):
        salvage(folder, tmp_path / "made")
    assert not [each for each in tmp_path.iterdir() if each.name.startswith("made")]


def test_targets_and_sources_that_are_in_use_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_bytes(b"text")
    with pytest.raises(errors.FolderError, match="holds 'file'"):
        salvage(folder, tmp_path / "taken")
    with pytest.raises(errors.FolderError, match="inside of it"):
        salvage(folder, folder / "made")
    with opened(folder), pytest.raises(errors.FolderOwnedError, match="has it open"):
        salvage(folder, tmp_path / "made")
    for url in ("http://here:8080", "pulsar://here"):
        with pytest.raises(errors.InvalidUrl):
            salvage(url, tmp_path / "made")
        with pytest.raises(errors.InvalidUrl):
            salvage(folder, url)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["f", "taken"]


CHILD = """
import sys
from pulsarx.backups import salvage
def told(done, size):
    print(done, flush=True)
    sys.stdin.readline()
salvage(sys.argv[1], sys.argv[2], progress=told)
print("done")
"""


@pytest.mark.parametrize("steps", [1, 8, 30, 45])
def test_a_killed_salvage_leaves_no_target(steps: int, folder: Path, tmp_path: Path) -> None:
    lose_names(folder)
    before = digest(folder)
    with ChildProcess(CHILD, folder, tmp_path / "made") as child:
        for _ in range(steps):
            assert child.line() != "done"
            child.tell("go on")
        child.kill()
    assert not (tmp_path / "made").exists() and digest(folder) == before
    assert salvage(folder, tmp_path / "made").messages > 0


def test_blocks_that_the_disk_does_not_give_cost_no_others(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_names(folder)
    with opened(tmp_path / "large") as client, client.create_producer("t") as producer:
        for number in range(4):
            producer.send(b"%d" % number * 5000)
    lose_names(tmp_path / "large")
    bad = ledgers_of(tmp_path / "large")[0]
    inode, pread = bad.stat().st_ino, os.pread

    def failing(descriptor: int, size: int, at: int) -> bytes:
        if os.fstat(descriptor).st_ino == inode and at < 12288 and at + size > 8192:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pread(descriptor, size, at)

    monkeypatch.setattr(os, "pread", failing)
    found = salvage(tmp_path / "large", tmp_path / "made")
    monkeypatch.undo()
    (unread,) = [each for each in found.damage if "does not give" in each.text]
    assert (unread.file, unread.offset, unread.size) == (
        str(bad.relative_to(tmp_path / "large")), 8192, 4096,
    )  # fmt: skip
    with opened(tmp_path / "made") as client:
        assert 2 <= len(read_whole(client, "t")) < 4


def test_an_error_removes_what_was_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_names(folder)
    pwrite = os.pwrite

    def full(descriptor: int, data: Any, at: int) -> int:
        if at == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(descriptor, data, at)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(errors.StorageFullError):
        salvage(folder, tmp_path / "made")
    assert [each.name for each in tmp_path.iterdir()] == ["f"]


def lose_marker(folder: Path) -> None:
    (folder / "PULSARX").write_bytes(b"nothing")


def lose_commits(folder: Path) -> None:
    for each in (folder / "catalogue").iterdir():
        each.write_bytes(b"nothing")


def lose_catalogue(folder: Path) -> None:
    shutil.rmtree(folder / "catalogue")


@pytest.mark.parametrize("lose", [lose_marker, lose_commits, lose_catalogue, lose_names])
def test_restore_salvages_what_it_is_allowed_to(
    lose: Callable[[Path], None], folder: Path, tmp_path: Path, expected: dict[str, Any]
) -> None:
    backup(folder, tmp_path / "b")
    lose(tmp_path / "b")
    with pytest.raises(
        (errors.CorruptDataError, errors.CatalogueError, errors.FolderError)
    ) as told:
        restore(tmp_path / "b", tmp_path / "r")
    assert "pulsarx salvage" in str(told.value)
    assert not (tmp_path / "r").exists()
    found = restore(tmp_path / "b", tmp_path / "r", allow_damage=True)
    assert found.damage and found.missing_messages == 0
    assert contents(tmp_path / "r") == expected


@pytest.mark.parametrize("lose", [lose_marker, lose_commits, lose_catalogue, lose_names])
def test_whoever_finds_it_lost_is_told_of_salvage(
    lose: Callable[[Path], None], folder: Path
) -> None:
    lose(folder)
    with pytest.raises(errors.PulsarException, match="pulsarx salvage"):
        opened(folder)
    try:
        text = "\n".join(map(str, check(folder).damage))
    except errors.PulsarException as error:
        text = str(error)
    assert "pulsarx salvage" in text


def test_a_salvage_is_a_report_as_json(folder: Path, tmp_path: Path) -> None:
    from dataclasses import asdict

    lose_names(folder)
    document = json.loads(json.dumps(asdict(salvage(folder, tmp_path / "made"))))
    assert document["found"] and document["assumed"] and document["damage"]


@pytest.mark.parametrize("part", [0, 0.5])
@pytest.mark.parametrize("zeroed", [False, True])
def test_what_the_catalogue_has_in_a_ledger_and_its_file_has_not_is_told(
    part: float, zeroed: bool, tmp_path: Path
) -> None:
    """A ledger of which only the header was left was dropped without a word, and of one that was
    half there the rest was."""
    source = tmp_path / "f"
    with opened(source) as client:
        client.subscribe("t", "s")
        producer = client.create_producer("t")
        for each in range(100):
            producer.send(b"%0100d" % each)
    path = min(source.rglob("*.ledger"), key=lambda each: int(each.stem))
    offsets = frame_offsets(path)
    cut = offsets[int(part * len(offsets))]
    data = path.read_bytes()
    path.write_bytes(data[:cut] + (bytes(len(data) - cut) if zeroed else b""))
    expected = check(source).missing_messages
    found = salvage(source, tmp_path / "g")
    assert found.missing_messages == expected > 0


def test_an_owner_that_comes_meanwhile_is_noticed(folder: Path, tmp_path: Path) -> None:
    owner: list[pulsarx.Client] = []

    def look(done: int, _: int) -> None:
        if done and not owner:
            owner.append(opened(folder))

    try:
        with pytest.raises(errors.FolderOwnedError, match="has it open"):
            salvage(folder, tmp_path / "g", progress=look)
    finally:
        for each in owner:
            each.close()
    assert owner and not (tmp_path / "g").exists()


def test_retention_that_was_lost_removes_nothing(tmp_path: Path) -> None:
    """Policies of which a part was known were taken for all of them."""
    source = tmp_path / "f"
    with opened(source) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t")
        producer.send_many([b"%d" % each for each in range(100)])
        client.admin.topics.set_retention("t", -1, -1)
        for _ in range(100):
            consumer.acknowledge(consumer.receive(60_000))
    for each in (source / "catalogue").glob("*.checkpoint"):
        each.unlink()
    [commit] = [
        each
        for each in (source / "catalogue").glob("*.commit")
        if b"retention" in each.read_bytes()
    ]
    change(commit, 40, 4096 + 40)
    found = salvage(source, tmp_path / "g")
    assert any("without a limit" in each for each in found.assumed)
    for _ in range(2):
        with opened(tmp_path / "g") as client:
            assert len(read(client, "t")) == 100
