from __future__ import annotations

import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from catalogue_folder import (
    TOPIC,
    append_by_hand,
    checkpoints,
    commits,
    create,
    open_folder,
    read_folder,
)

from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.catalogue.log import CatalogueLog
from pulsarx.broker.catalogue.records import TopicRecord
from pulsarx.broker.catalogue.state import CatalogueState
from pulsarx.broker.folder.memory_directory import MemoryDirectory
from pulsarx.errors import (
    CatalogueError,
    FolderError,
    NewerFormatError,
)
from pulsarx.topic_name import SYSTEM_NAMESPACE, SYSTEM_TENANT


@pytest.fixture(params=["folder", "memory"])
def catalogue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalogue]:
    if request.param == "memory":
        yield Catalogue.open(MemoryDirectory())
        return
    directory, opened = open_folder(tmp_path)
    yield opened
    opened.close()
    directory.close()


def test_a_new_folder_has_public_default_and_epoch_one(catalogue: Catalogue) -> None:
    assert catalogue.epoch == catalogue.state.epoch == catalogue.state.number == 1
    assert catalogue.namespace_policies("public/default") == {}
    assert catalogue.namespace_policies("public/other") is None
    assert catalogue.topic_names() == []


def test_life_of_a_topic(catalogue: Catalogue) -> None:
    name = TOPIC + "x"
    topic_id, ledger, next_ledger, cursor = (catalogue.allocate_id() for _ in range(4))
    catalogue.commit(
        [
            {"op": "create_topic", "topic": name, "topic_id": topic_id, "properties": {"a": "b"}},
            {"op": "add_ledger", "topic": name, "ledger_id": ledger, "uuid": "u1", "slot": 3},
            {"op": "create_subscription", "topic": name, "name": "s", "cursor_id": cursor},
        ]
    )
    before = catalogue.topic(name)
    assert before is not None
    assert (before.ledgers[0].slot, before.ledgers[0].state) == (3, "open")
    end = {"entry_count": 5, "message_count": 7, "size": 9, "first_publish_ms": 1}
    end |= {"last_publish_ms": 2, "sealed_ms": 3}
    catalogue.commit(
        [
            {"op": "seal_ledger", "topic": name, "ledger_id": ledger, **end},
            {"op": "add_ledger", "topic": name, "ledger_id": next_ledger, "uuid": "u2"},
            {"op": "set_topic_policy", "topic": name, "policy": "ttl", "value": 4},
        ]
    )
    topic = catalogue.topic(name)
    assert topic is not None
    assert before.ledgers[0].state == "open"  # whoever holds a record keeps its view
    sealed = topic.ledgers[0]
    assert (sealed.state, sealed.message_count, sealed.uuid, sealed.slot) == ("sealed", 7, "u1", -1)
    assert topic.policies == {"ttl": 4}
    assert topic.subscriptions["s"].cursor_id == cursor
    catalogue.commit(
        [
            {"op": "remove_ledgers", "topic": name, "ledger_ids": [ledger]},
            {"op": "remove_subscription", "topic": name, "name": "s"},
            {"op": "set_topic_policy", "topic": name, "policy": "ttl", "value": None},
        ]
    )
    topic = catalogue.topic(name)
    assert topic is not None
    assert [one.ledger_id for one in topic.ledgers] == [next_ledger]
    assert not topic.subscriptions and not topic.policies
    catalogue.commit([{"op": "delete_topic", "topic": name}])
    assert catalogue.topic(name) is None
    assert catalogue.allocate_id() > cursor


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "no such"},
        {"no": "op"},
        "text",
        {"op": "create_topic", "topic": TOPIC + "y"},
        {"op": "create_topic", "topic": TOPIC + "x", "topic_id": 100},
        {"op": "create_topic", "topic": TOPIC + "y", "topic_id": 1},
        {"op": "create_topic", "topic": TOPIC + "y", "topic_id": 0},
        {"op": "create_topic", "topic": TOPIC + "y", "topic_id": True},
        {"op": "create_topic", "topic": TOPIC + "y", "topic_id": 2**70},
        {"op": "create_topic", "topic": TOPIC + "y", "topic_id": 100, "new": 1},
        {"op": "create_topic", "topic": TOPIC + "y", "topic_id": 100, "properties": []},
        {"op": "create_topic", "topic": "x", "topic_id": 100},
        {"op": "create_topic", "topic": "persistent://public/none/y", "topic_id": 100},
        {"op": "create_namespace", "namespace": "none/x"},
        {"op": "create_namespace", "namespace": "public/default"},
        {"op": "create_namespace", "namespace": "public"},
        {"op": "create_tenant", "tenant": "public"},
        {"op": "open_epoch", "epoch": 1},
        {"op": "delete_topic", "topic": TOPIC + "y"},
        {"op": "add_ledger", "topic": TOPIC + "x", "ledger_id": 100, "uuid": "u", "state": "?"},
        {"op": "remove_ledgers", "topic": TOPIC + "x", "ledger_ids": [100]},
        {"op": "remove_ledgers", "topic": TOPIC + "x", "ledger_ids": "no"},
        {"op": "remove_subscription", "topic": TOPIC + "x", "name": "s"},
        {"op": "set_partition_count", "topic": TOPIC + "x", "partition_count": 3},
        {"op": "set_namespace_policy", "namespace": "public/default", "policy": "p", "value": {1}},
        {"op": "set_namespace_policy", "namespace": "a/b", "policy": "p", "value": 1},
        {"op": "set_namespace_policy", "namespace": "a/b", "policy": "p", "value": float("nan")},
    ],
)
def test_what_does_not_fit_is_refused_whole(catalogue: Catalogue, operation: Any) -> None:
    create(catalogue, "x")
    before = catalogue.state.document()
    fine = {"op": "create_topic", "topic": TOPIC + "fine", "topic_id": catalogue.allocate_id()}
    with pytest.raises(CatalogueError, match="nothing was written") as caught:
        catalogue.commit([fine, operation])
    assert str(caught.value).count("Pulsar error") == 1
    assert catalogue.state.document() == before
    catalogue.commit([fine])


def test_what_the_caller_changes_later_changes_nothing(catalogue: Catalogue) -> None:
    properties = {"a": "b"}
    operation = {
        "op": "create_topic",
        "topic": TOPIC + "x",
        "topic_id": 9,
        "properties": properties,
    }
    catalogue.commit([operation])
    properties["a"] = "c"
    topic = catalogue.topic(TOPIC + "x")
    assert topic is not None
    assert topic.properties == {"a": "b"}
    assert catalogue.allocate_id() == 10


def test_partitions_only_become_more(catalogue: Catalogue) -> None:
    name = TOPIC + "p"
    catalogue.commit([{"op": "create_topic", "topic": name, "topic_id": 5, "partition_count": 2}])
    catalogue.commit([{"op": "set_partition_count", "topic": name, "partition_count": 4}])
    for count in (4, 3):
        with pytest.raises(CatalogueError, match="only become more"):
            catalogue.commit(
                [{"op": "set_partition_count", "topic": name, "partition_count": count}]
            )
    with pytest.raises(CatalogueError, match="belong to its partitions"):
        catalogue.commit([{"op": "add_ledger", "topic": name, "ledger_id": 6, "uuid": "u"}])


def test_names_by_namespace(catalogue: Catalogue) -> None:
    catalogue.commit(
        [{"op": "create_tenant", "tenant": "t"}, {"op": "create_namespace", "namespace": "t/n"}]
    )
    other = "non-persistent://t/n/y"
    create(catalogue, "x")
    catalogue.commit([{"op": "create_topic", "topic": other, "topic_id": catalogue.allocate_id()}])
    assert catalogue.topic_names("t/n") == [other]
    assert catalogue.topic_names() == [TOPIC + "x", other]


def test_a_thousand_commits_leave_a_short_log(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path)
    for number in range(1000):
        assert create(catalogue, f"t{number}") == number + 2
    # The checkpoint grows, yet stays below what the commits it replaces fill on the device.
    assert len(commits(tmp_path)) <= 300
    assert len(checkpoints(tmp_path)) == 2
    state = catalogue.state
    assert read_folder(tmp_path).state == state
    catalogue.close()
    directory.close()
    directory, again = open_folder(tmp_path)
    assert again.epoch == 2
    assert again.topic_names() == [f"{TOPIC}t{number}" for number in range(1000)]
    assert again.allocate_id() == 1001
    assert not list((tmp_path / "catalogue").glob("*.tmp"))


def test_a_reader_follows_an_owner_through_checkpoints(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path, checkpoint_interval=3)
    near, far = read_folder(tmp_path), read_folder(tmp_path)
    for number in range(40):
        create(catalogue, f"t{number}")
        assert near.refresh() == catalogue.state.number
        assert near.state == catalogue.state
        if number % 17 == 0:
            far.refresh()
            assert far.state == catalogue.state
    with pytest.raises(FolderError, match="read-only"):
        create(near, "y")
    catalogue.close()
    directory.close()
    near.refresh()
    assert read_folder(tmp_path).state == near.state


def test_every_damage_of_a_commit_is_named_and_nothing_is_touched(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path)
    for number in range(3):
        create(catalogue, f"t{number}")
    directory.close()
    victim = commits(tmp_path)[1]
    whole = victim.read_bytes()
    copy = whole[4096:]
    assert whole == copy + bytes(4096 - len(copy)) + copy
    damaged = [copy[:size] for size in range(len(copy))]
    for position in range(len(copy)):
        flipped = copy[:position] + bytes([copy[position] ^ 1]) + copy[position + 1 :]
        damaged.append(flipped + bytes(4096 - len(copy)) + flipped)
    for data in damaged:
        victim.write_bytes(data)
        with pytest.raises(CatalogueError, match=victim.name):
            read_folder(tmp_path)
    with pytest.raises(CatalogueError, match=victim.name):
        open_folder(tmp_path)
    assert victim.read_bytes() == data
    assert len(commits(tmp_path)) == 4
    victim.unlink()
    with pytest.raises(CatalogueError, match=f"{victim.name} is missing"):
        open_folder(tmp_path)
    shutil.copy(commits(tmp_path)[1], victim)
    with pytest.raises(CatalogueError, match=victim.name):
        open_folder(tmp_path)
    victim.write_bytes(whole)
    open_folder(tmp_path)


def test_no_damage_of_one_copy_of_a_commit_keeps_a_folder_from_opening(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One bit made a folder of whole ledgers unusable."""
    directory, catalogue = open_folder(tmp_path)
    for number in range(3):
        create(catalogue, f"t{number}")
    directory.close()
    expected = read_folder(tmp_path).state
    victim = commits(tmp_path)[1]
    whole = victim.read_bytes()
    size = len(whole) - 4096
    damaged = [whole[:at] for at in range(size, len(whole))]
    damaged += [whole + b"\n", whole[:-1], bytes(4096) + whole[4096:], whole[:4096] + bytes(size)]
    for position in (*range(size + 10), *range(4090, len(whole))):
        damaged.append(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
    for data in damaged:
        victim.write_bytes(data)
        assert read_folder(tmp_path).state == expected
        assert victim.read_bytes() == data
    assert "the other one is whole" in caplog.text and victim.name in caplog.text


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_a_commit_of_whole_blocks_that_is_cut_behind_its_first_copy_is_read(
    tmp_path: Path, blocks: int
) -> None:
    """There are no zeros between its copies then, which say where the first one ends."""
    directory, catalogue = open_folder(tmp_path)
    size = blocks * 4096
    name = "t"
    while True:
        create(catalogue, name)
        victim = commits(tmp_path)[-1]
        whole = victim.read_bytes()
        copy = whole[-(len(whole) % 4096 or len(whole) // 2) :]
        if len(whole) == 2 * size:
            break
        name = f"{name[:1]}{len(commits(tmp_path))}".ljust(len(name) + size - len(copy), "x")
    directory.close()
    expected = read_folder(tmp_path).state
    for cut in range(size, 2 * size, 100):
        victim.write_bytes(whole[:cut])
        assert read_folder(tmp_path).state == expected


def test_a_commit_of_another_folder_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        directory, _ = open_folder(tmp_path / name)
        directory.close()
    shutil.copy(commits(tmp_path / "a")[0], commits(tmp_path / "b")[0])
    with pytest.raises(CatalogueError, match="another folder"):
        open_folder(tmp_path / "b")


def test_a_lost_catalogue_beside_data_is_no_new_folder(tmp_path: Path) -> None:
    directory, _ = open_folder(tmp_path)
    Path(directory.prepare_ledger_path(3)).touch()
    directory.close()
    shutil.rmtree(tmp_path / "catalogue")
    for opening in (open_folder, read_folder):
        with pytest.raises(CatalogueError, match="is empty although"):
            opening(tmp_path)


def test_a_damaged_checkpoint_is_replaced_by_the_one_before(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path, checkpoint_interval=3)
    for number in range(12):
        create(catalogue, f"t{number}")
    directory.close()
    older, newest = checkpoints(tmp_path)
    newest.write_bytes(newest.read_bytes()[:-5])
    assert read_folder(tmp_path).state == catalogue.state
    older.write_bytes(b"")
    with pytest.raises(CatalogueError, match=newest.name):
        open_folder(tmp_path)


def test_folding_over_a_damaged_checkpoint_keeps_a_whole_one(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path, checkpoint_interval=3)
    for number in range(12):
        create(catalogue, f"t{number}")
    directory.close()
    checkpoints(tmp_path)[-1].write_bytes(b"broken")
    directory, catalogue = open_folder(tmp_path, checkpoint_interval=3)
    for number in range(20, 32):
        create(catalogue, f"t{number}")
        assert read_folder(tmp_path).state == catalogue.state


def test_a_checkpoint_holds_every_field_of_a_state_and_its_topics() -> None:
    state = CatalogueState()
    topic = TopicRecord(1, TOPIC + "x", 0, {})
    topic.committed[3] = [[0, 1]]  # left out where there is nothing, as of nearly all topics
    state.topics[topic.name] = topic
    document = state.document()
    assert set(document) == set(CatalogueState.__slots__) - {"policies_number"}
    assert [len(row) for row in document["topics"]] == [len(TopicRecord.__slots__)]


def test_a_checkpoint_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    directory, catalogue = open_folder(tmp_path, checkpoint_interval=3)
    for number in range(4):
        create(catalogue, f"t{number}")
    directory.close()
    newest = checkpoints(tmp_path)[-1]
    body = newest.read_bytes().partition(b"\n")[2][:-1]
    checksum = zlib.crc32(body, zlib.crc32(f"checkpoint 4 {directory.folder_id}".encode()))
    header = b"PULSARX CHECKPOINT 4 crc32=%08x size=%d\n" % (checksum, len(body))
    newest.write_bytes(header + body + b"\n")
    for opening in (open_folder, read_folder):
        with pytest.raises(NewerFormatError, match=f"{newest.name} is of version 4.*Upgrade"):
            opening(tmp_path)


@pytest.mark.parametrize(
    "operation",
    [{"op": "from the future"}, {"op": "create_tenant", "tenant": "t", "shape": "round"}],
)
def test_an_operation_of_a_newer_version_is_refused(tmp_path: Path, operation: Any) -> None:
    directory, _ = open_folder(tmp_path)
    append_by_hand(tmp_path, [operation])
    directory.close()
    with pytest.raises(NewerFormatError, match=r"00000000000000000002\.commit.*Upgrade"):
        open_folder(tmp_path)


@pytest.mark.parametrize("flush", [True, False])
@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add_ledger", "topic": TOPIC + "x", "ledger_id": 2, "uuid": "u"},
        {"op": "create_topic", "topic": TOPIC + "x", "topic_id": 9},
        {"op": "seal_ledger", "topic": TOPIC + "x", "ledger_id": 2},
    ],
)
def test_a_commit_that_does_not_fit_the_one_before_is_refused_untouched(
    tmp_path: Path, operation: Any, flush: bool
) -> None:
    """Where the one before was not flushed, too: no power cut leaves it so."""
    directory, catalogue = open_folder(tmp_path)
    create(catalogue, "x")
    addition = {"op": "add_ledger", "topic": TOPIC + "x", "uuid": "u"}
    catalogue.commit([{**addition, "ledger_id": catalogue.allocate_id()}], flush=flush)
    append_by_hand(tmp_path, [operation])
    directory.close()
    before = {each.name: each.read_bytes() for each in (tmp_path / "catalogue").iterdir()}
    for opening in (open_folder, read_folder):
        with pytest.raises(CatalogueError, match=r"00000000000000000004\.commit: "):
            opening(tmp_path)
    assert {each.name: each.read_bytes() for each in (tmp_path / "catalogue").iterdir()} == before


def test_the_namespace_of_the_system_is_the_one_that_names_of_topics_know() -> None:
    """It is said twice: opening a folder makes it, and does not load what knows names."""
    made = changes.system_namespace(CatalogueState())
    assert made == [
        changes.create_tenant(SYSTEM_TENANT, {}),
        changes.create_namespace(SYSTEM_NAMESPACE),
    ]


def test_a_state_that_was_read_is_that_of_the_catalogue_even_if_memory_runs_out_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner_directory, owner = open_folder(tmp_path)
    reader = read_folder(tmp_path)
    for name in ("a", "b"):  # two checkpoints behind it, so that it reads everything anew
        create(owner, name)
        owner.checkpoint()
    create(owner, "c")
    catch_up = CatalogueLog.catch_up

    def runs_out(log: CatalogueLog) -> set[int]:
        catch_up(log)
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(CatalogueLog, "catch_up", runs_out)
        with pytest.raises(MemoryError):
            reader.refresh()
    assert set(reader.state.topics) == {TOPIC + name for name in "abc"}
    assert reader.refresh() == reader.state.number == owner.state.number
    owner.close()
    owner_directory.close()
