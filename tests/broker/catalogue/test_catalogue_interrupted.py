"""Facts about folders of versions that a signal handler could interrupt in a commit.

Such a commit was durable, and in memory it was done in part. Nothing could be committed after that,
but closing wrote a checkpoint: with the effects of the commit and the number of the one before.
Opening refused the commit then, because it did again what was there.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from catalogue_folder import (
    FILES,
    TOPIC,
    append_by_hand,
    checkpoints,
    commits,
    create,
    open_folder,
    read_folder,
)

import pulsarx
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.catalogue.file import catalogue_file_encode
from pulsarx.broker.catalogue.state import CatalogueState
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.errors import CatalogueError

NAME = TOPIC + "x"
END = {"entry_count": 1, "message_count": 1, "size": 9, "first_publish_ms": 1}
END |= {"last_publish_ms": 1, "sealed_ms": 1}


def ledger(catalogue: Catalogue, uuid: str = "u") -> dict[str, Any]:
    ledger_id = catalogue.allocate_id()
    return {"op": "add_ledger", "topic": NAME, "ledger_id": ledger_id, "uuid": uuid, "slot": 0}


def interrupted(kind: str, catalogue: Catalogue) -> list[dict[str, Any]]:
    """The operations of a commit of each kind that a signal could hit."""
    if kind == "add_ledger":
        return [ledger(catalogue, "new")]
    if kind == "seal_ledger":
        return [{"op": "seal_ledger", "topic": NAME, "ledger_id": 2, **END}]
    if kind == "create_subscription":
        cursor_id = catalogue.allocate_id()
        return [{"op": kind, "topic": NAME, "name": "s", "cursor_id": cursor_id}]
    assert kind == "create_topic"
    return [{"op": kind, "topic": TOPIC + "y", "topic_id": catalogue.allocate_id()}]


def make_torn(path: Path, kind: str, older_checkpoint: bool) -> CatalogueState:
    """A folder whose last commit was interrupted, and closed; what it says in truth."""
    directory, catalogue = open_folder(path)
    create(catalogue, "x")
    catalogue.commit([ledger(catalogue)])
    if older_checkpoint:
        create(catalogue, "older")
        catalogue.checkpoint()
        create(catalogue, "between")
    before = catalogue.commit([ledger(catalogue, "v")])
    next_id, checksum = catalogue.state.next_id, catalogue.state.checksum
    catalogue.commit(interrupted(kind, catalogue))
    truth = CatalogueState.of_document(catalogue.state.document())
    torn = truth.document() | {"number": before, "checksum": checksum, "next_id": next_id}
    torn["recent"] = [[before, checksum]]
    data, _ = catalogue_file_encode("checkpoint", directory.folder_id, torn)
    (path / "catalogue" / f"{before:020d}.checkpoint").write_bytes(data)
    directory.close()
    return truth


def contents(path: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in (path / "catalogue").iterdir()}


@pytest.mark.parametrize("older_checkpoint", [False, True])
@pytest.mark.parametrize(
    "kind", ["add_ledger", "seal_ledger", "create_subscription", "create_topic"]
)
def test_a_checkpoint_with_half_a_commit_more_is_left_out_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, older_checkpoint: bool
) -> None:
    """Any open raised CatalogueError: ...commit: topic ... has ledger 3 already."""
    truth = make_torn(tmp_path, kind, older_checkpoint)
    torn = checkpoints(tmp_path)[-1]
    before = contents(tmp_path)
    with caplog.at_level(logging.WARNING, "pulsarx"):
        assert read_folder(tmp_path).state == truth
    (record,) = caplog.records
    assert record.levelname == "WARNING" and record.name == "pulsarx"
    said = record.getMessage()
    assert str(torn) in said and "was left out" in said and f"commit {truth.number}" in said
    start = "checkpoint 4 " if older_checkpoint else "the empty catalogue"
    assert f"was read from {start}" in said
    assert contents(tmp_path) == before
    directory, owner = open_folder(tmp_path)
    create(owner, "afterwards")
    owner.checkpoint()
    assert owner.state.topics.keys() - truth.topics.keys() == {TOPIC + "afterwards"}
    wanted = owner.state
    owner.close()
    directory.close()
    caplog.clear()
    assert read_folder(tmp_path).state == wanted
    assert not caplog.records  # the next checkpoint has mended it


def test_without_the_commits_before_it_only_a_ledger_that_is_there_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    truth = make_torn(tmp_path, "add_ledger", False)
    commits(tmp_path)[0].unlink()
    with caplog.at_level(logging.WARNING, "pulsarx"):
        assert read_folder(tmp_path).state == truth
    (record,) = caplog.records
    said = record.getMessage()
    assert str(commits(tmp_path)[-1]) in said and "was left out" in said
    assert f"ledger 4 (uuid new) is added to {NAME} again" in said
    directory, owner = open_folder(tmp_path)
    assert owner.allocate_id() == 5  # the id is not given out again
    directory.close()


def test_without_the_commits_before_it_anything_else_stays_refused(tmp_path: Path) -> None:
    make_torn(tmp_path, "create_subscription", False)
    commits(tmp_path)[0].unlink()
    before = contents(tmp_path)
    with pytest.raises(CatalogueError, match="has subscription 's' already"):
        read_folder(tmp_path)
    with pytest.raises(CatalogueError, match="has subscription 's' already"):
        open_folder(tmp_path)
    assert contents(tmp_path) == before


def grown(path: Path) -> Catalogue:
    directory, catalogue = open_folder(path)
    create(catalogue, "x")
    create(catalogue, "y")
    catalogue.commit([ledger(catalogue)])
    catalogue.commit([{"op": "seal_ledger", "topic": NAME, "ledger_id": 3, **END}])
    directory.close()
    return catalogue


AGAIN = {"op": "add_ledger", "topic": NAME, "ledger_id": 3, "uuid": "u", "slot": 0}
NEXT = {"op": "add_ledger", "topic": NAME, "ledger_id": 4, "uuid": "w", "slot": 1}


@pytest.mark.parametrize("operations", [[AGAIN], [AGAIN, NEXT], [NEXT, AGAIN], [NEXT, NEXT]])
def test_a_commit_that_adds_a_ledger_again_is_done_without_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, operations: list[dict[str, Any]]
) -> None:
    before = grown(tmp_path).state
    append_by_hand(tmp_path, operations)
    with caplog.at_level(logging.WARNING, "pulsarx"):
        state = read_folder(tmp_path).state
    ids = [each.ledger_id for each in state.topics[NAME].ledgers]
    assert ids == ([3, 4] if NEXT in operations else [3])
    assert state.topics[NAME].ledgers[0].row() == before.topics[NAME].ledgers[0].row()
    (record,) = caplog.records
    again = 3 if AGAIN in operations else 4
    assert f"ledger {again} (uuid" in record.getMessage()
    assert str(commits(tmp_path)[-1]) in record.getMessage()
    directory, owner = open_folder(tmp_path)
    create(owner, "afterwards")
    assert owner.topic(NAME).ledgers[-1].ledger_id == ids[-1]  # type: ignore[union-attr]
    directory.close()


@pytest.mark.parametrize(
    "operation",
    [
        AGAIN | {"uuid": "other"},
        AGAIN | {"ledger_id": 2},
        AGAIN | {"ledger_id": 9, "state": "?"},
        AGAIN | {"topic": ["x"]},
        {"op": "seal_ledger", "topic": NAME, "ledger_id": 3, **END},
        {"op": "create_topic", "topic": NAME, "topic_id": 9},
    ],
)
def test_any_other_commit_that_does_not_fit_stays_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, operation: dict[str, Any]
) -> None:
    grown(tmp_path)
    append_by_hand(tmp_path, [operation])
    before = contents(tmp_path)
    with pytest.raises(CatalogueError, match=r"\.commit: "):
        read_folder(tmp_path)
    with pytest.raises(CatalogueError, match=r"\.commit: "):
        open_folder(tmp_path)
    assert contents(tmp_path) == before
    assert not caplog.records


def test_what_leaves_out_at_reading_refuses_at_committing(tmp_path: Path) -> None:
    _, catalogue = open_folder(tmp_path)
    create(catalogue, "x")
    first = ledger(catalogue)
    catalogue.commit([first])
    with pytest.raises(CatalogueError, match="has ledger 2 already"):
        catalogue.commit([first])


def test_a_client_reads_and_publishes_in_a_folder_with_a_torn_checkpoint(tmp_path: Path) -> None:
    """The topic whose ledger was added when the handler raised: the older version deleted the
    file of that ledger, which held nothing."""
    folder = tmp_path / "data"
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=1)
    with pulsarx.Client(folder, durability="os", broker_options=options) as client:
        producer = client.create_producer("t")
        for number in range(4):
            producer.send(b"%d" % number)
    directory = DataDirectory.open(str(folder), files=FILES)
    catalogue = Catalogue.open(directory)
    name = TOPIC + "t"
    before, checksum = catalogue.state.number, catalogue.state.checksum
    next_id = catalogue.state.next_id
    ledger_id = catalogue.allocate_id()
    addition = {"op": "add_ledger", "topic": name, "ledger_id": ledger_id, "uuid": "5" * 32}
    catalogue.commit([addition | {"slot": 0}])
    torn = catalogue.state.document()
    torn |= {"number": before, "checksum": checksum, "next_id": next_id, "recent": []}
    data, _ = catalogue_file_encode("checkpoint", directory.folder_id, torn)
    (folder / "catalogue" / f"{before:020d}.checkpoint").write_bytes(data)
    directory.close()
    for opening in range(2):
        with pulsarx.Client(folder, durability="os") as client:
            reader = client.create_reader("t", pulsarx.MessageId.earliest)
            found = [each.data() for each in reader.read_many(10, 0)]
            assert found == [b"0", b"1", b"2", b"3", b"more"][: 4 + opening]
            sent = client.create_producer("t").send(b"more")
            assert sent.ledger_id() > ledger_id
