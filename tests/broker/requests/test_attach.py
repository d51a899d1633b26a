"""Attaching staged ledgers: what is refused, what is remembered, and a crash at every call."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attach_steps import catalogue, contents, folder_of_topics, nothing_stays_open, publish
from child_process import ChildProcess
from staged_ledgers import PREFIX, stage, staged_names, write_ledger
from topic_reading import whole_topic

import pulsarx
from pulsarx import errors
from pulsarx.broker import registry
from pulsarx.broker.broker import Broker
from pulsarx.broker.catalogue import topic_operations
from pulsarx.broker.catalogue.log import CatalogueLog
from pulsarx.broker.requests.attach import AttachResult, Transaction, attach, attached
from pulsarx.broker.staging.ledger_attachment import TRANSACTION_KEPT_MS
from pulsarx.broker.staging.new_schema import NewSchema
from pulsarx.broker.staging.staged_file import StagedFile
from pulsarx.broker.staging.staging import make_staging
from pulsarx.broker.topics.topic import Topic
from pulsarx.enumerations import SchemaType
from pulsarx.schema.schema import SchemaInfo

__all__ = ["folder_of_topics", "nothing_stays_open"]  # fixtures


def as_document(result: AttachResult) -> dict[str, Any]:
    return {name: getattr(result, name) for name in result.__slots__}


# What is attached ---------------------------------------------------------------------------------


def test_ledgers_of_several_topics_come_in_the_order_given(folder: Path) -> None:
    files = [
        stage(folder, "t", [b"1", b"2"]),
        stage(folder, "u", [b"x"]),
        stage(folder, "t", [b"3"]),
    ]
    result = attach(folder, Transaction("query", 7), files)
    assert (result.ledger_count, result.message_count, result.already) == (3, 4, False)
    assert contents(folder, "t", "u") == [[b"1", b"2", b"3"], [b"x"]]
    ids = [each.ledger_id for each in catalogue(folder).state.topics[PREFIX + "t"].ledgers]
    assert ids == [result.first_ledger_id, result.first_ledger_id + 2]
    assert not staged_names(folder)


def test_an_empty_batch_is_remembered(folder: Path) -> None:
    result = attach(folder, Transaction("query", 0), [])
    assert (result.ledger_count, result.first_ledger_id) == (0, 0)
    assert attach(folder, Transaction("query", 0), []).already


def test_a_transaction_is_known_after_checkpoints_and_only_its_last_batch_is_kept(
    folder: Path,
) -> None:
    assert attached(folder, Transaction("query", 0)) is None
    for batch in range(12):
        attach(folder, Transaction("query", batch), [stage(folder, "t", [b"%d" % batch])])
    assert list((folder / "catalogue").glob("*.checkpoint"))
    found = attached(folder, Transaction("query", 11))
    assert found is not None and found.ledger_count == 1
    state = catalogue(folder).state
    assert [each.batch_id for each in state.transactions.values()] == [11]
    assert attach(folder, Transaction("query", 11), []) == found
    assert contents(folder, "t") == [[b"%d" % batch for batch in range(12)]]


def test_a_schema_is_registered_with_the_ledgers_or_not_at_all(folder: Path) -> None:
    schema = NewSchema(PREFIX + "t", 0, SchemaInfo(SchemaType.STRING, "t", ""))

    def types() -> list[str | None]:
        return [each.type_name for each in catalogue(folder).state.schemas.get(PREFIX + "t", ())]

    file = stage(folder, "t", [b"1"])
    with pytest.raises(errors.NotAllowedError, match="named twice"):
        attach(folder, Transaction("query", 0), [file, file], schemas=[schema])
    missing = NewSchema(PREFIX + "x", 0, schema.info)
    later = NewSchema(PREFIX + "t", 1, schema.info)
    for wrong, kind in ((later, errors.IncompatibleSchema), (missing, errors.TopicNotFound)):
        with pytest.raises(kind):
            attach(folder, Transaction("query", 0), [file], schemas=[wrong])
    assert types() == [] and contents(folder, "t") == [[]]
    for _ in range(2):
        attach(folder, Transaction("query", 0), [file], schemas=[schema])
    assert types() == ["STRING"] and contents(folder, "t") == [[b"1"]]
    attach(folder, Transaction("query", 1), [stage(folder, "t", [b"2"])], schemas=[schema])
    attach(folder, Transaction("query", 2), [], schemas=[NewSchema(PREFIX + "u", 0, schema.info)])
    assert types() == ["STRING"] and contents(folder, "t") == [[b"1", b"2"]]
    assert PREFIX + "u" in catalogue(folder).state.schemas


def test_an_application_is_forgotten_by_age(folder: Path) -> None:
    clock = pulsarx.ManualClock()
    with pulsarx.Client(folder, clock=clock):
        attach(folder, Transaction("old", 0), [])
        attach(folder, Transaction("kept", 0), [])
        clock.advance(TRANSACTION_KEPT_MS / 1000 - 1)
        attach(folder, Transaction("kept", 1), [])
        clock.advance(2)
        attach(folder, Transaction("new", 0), [])
        assert sorted(catalogue(folder).state.transactions) == ["kept", "new"]


def test_a_program_that_knows_no_transactions_refuses_the_commit(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach(folder, Transaction("query", 0), [])
    monkeypatch.delitem(topic_operations.TOPIC_OPERATIONS, "attach_ledgers")
    with pytest.raises(errors.NewerFormatError):
        catalogue(folder)


def test_a_staged_file_travels_as_json_and_pickle(folder: Path) -> None:
    file = stage(folder, "t", [b"1"])
    assert StagedFile.of_document(json.loads(json.dumps(file.document()))) == file
    assert pickle.loads(pickle.dumps(file)) == file


def test_descriptions_of_files_share_their_texts_which_do_not_stay_for_ever(folder: Path) -> None:
    """Python 3.12 keeps each text that was interned until the process ends, and each batch of a
    query has a job of its own."""
    document = json.dumps(stage(folder, "t-of-one", [b"1"], job="job-of-one").document())
    first, second = (StagedFile.of_document(json.loads(document)) for _ in range(2))
    assert first.job is second.job and first.topic is second.topic
    other = first.job.encode().decode()
    assert sys.intern(other) is other  # there was no such yet


@pytest.mark.parametrize("store_id", ["0" * 32, "7" * 32])
def test_a_file_whose_header_names_another_folder_is_refused(folder: Path, store_id: str) -> None:
    file = stage(folder, "t", [b"1"])
    path = folder / "staging" / "job" / "other"
    write_ledger(str(path), [b"1"], store_id=store_id)
    other = StagedFile.of_file(str(folder), file.store_id, PREFIX + "t", "job", path.name)
    with pytest.raises(errors.FolderError, match=f"written for .* id {store_id}.*Nothing was att"):
        attach(folder, Transaction("query", 0), [other])
    assert contents(folder, "t") == [[]]
    assert path.exists()


def test_a_staged_file_is_made_of_what_its_writer_answers(folder: Path) -> None:
    file = stage(folder, "t", [b"1"])
    sealed = SimpleNamespace(**file.document(), folder_id=file.store_id)
    assert StagedFile.of_sealed(PREFIX + "t", sealed) == file
    sealed.path = "/elsewhere/job/0.ledger"
    with pytest.raises(ValueError, match="not in the staging area"):
        StagedFile.of_sealed(PREFIX + "t", sealed)


# What is refused ----------------------------------------------------------------------------------


def changed(file: StagedFile, **fields: Any) -> StagedFile:
    return StagedFile(**{**file.document(), **fields})


def refused(folder: Path, files: list[StagedFile], kind: type[Exception], text: str) -> None:
    before = catalogue(folder).state.topics[PREFIX + "t"].ledgers
    with pytest.raises(kind, match=text):
        attach(folder, Transaction("query", 0), files)
    assert attached(folder, Transaction("query", 0)) is None
    state = catalogue(folder).state
    assert len(state.topics[PREFIX + "t"].ledgers) == len(before)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("uuid", "0" * 32), ("size", 1), ("file_size", 5), ("digest", 1), ("entry_count", 9),
        ("message_count", 9), ("first_publish_ms", 1), ("last_publish_ms", 1),
    ],
)  # fmt: skip
def test_a_file_that_is_not_what_its_writer_said(folder: Path, field: str, value: Any) -> None:
    good, bad = stage(folder, "t", [b"1"]), changed(stage(folder, "t", [b"2"]), **{field: value})
    refused(folder, [good, bad], errors.CorruptDataError, f"{field} is .*its writer said {value}")
    attach(folder, Transaction("query", 0), [good])


def test_another_store_is_named_with_both_ids_host_and_path(folder: Path) -> None:
    file = changed(stage(folder, "t", [b"1"]), store_id="ab" * 16, host="far", path="/mnt/x")
    text = "(?s)staging/job/0.ledger on host .*host far as /mnt/x.*id abab.*this one has"
    refused(folder, [file], errors.FolderError, text)


def test_a_missing_file_is_named(folder: Path) -> None:
    good, bad = stage(folder, "t", [b"1"]), stage(folder, "t", [b"2"])
    path = folder / "staging" / "job" / bad.name
    path.unlink()
    text = (
        f"attach {re.escape(str(path))} on host {os.uname().nodename} .*: there is no such file in "
        f"the data directory with id {bad.store_id} .*Nothing was attached. Every host must have "
        "the same data directory mounted under the path it uses$"
    )
    refused(folder, [good, bad], errors.StorageError, text)


@pytest.mark.parametrize("damage", ["cut", "header", "footer", "foreign", "link"])
def test_a_damaged_file(folder: Path, damage: str) -> None:
    file = stage(folder, "t", [b"1" * 5000, b"2"])
    path = folder / "staging" / "job" / file.name
    data = bytearray(path.read_bytes())
    if damage == "cut":
        del data[file.size :]
    elif damage == "header":
        data[20] ^= 1
        data[2048 + 20] ^= 1
    elif damage == "footer":
        data[file.size + 40 : file.size + 44] = b"xxxx"
    elif damage == "foreign":
        data = bytearray(b"hello")
    path.write_bytes(data)
    if damage == "link":
        os.rename(path, folder / "elsewhere")
        os.symlink(folder / "elsewhere", path)
    refused(folder, [file], errors.StorageError, "0.ledger on host")


def test_thorough_reads_the_entries(folder: Path) -> None:
    file = stage(folder, "t", [b"1", b"2" * 5000, b"3"])
    path = folder / "staging" / "job" / file.name
    data = bytearray(path.read_bytes())
    data[4096 + 3000] ^= 1
    path.write_bytes(data)
    with pytest.raises(errors.CorruptDataError, match="1 entries cannot be read"):
        attach(folder, Transaction("query", 0), [file], thorough=True)


def test_unknown_topics_partitioned_ones_and_files_named_twice(folder: Path) -> None:
    file = stage(folder, "t", [b"1"])
    refused(folder, [file, changed(file)], errors.NotAllowedError, "named twice")
    refused(folder, [changed(file, topic=PREFIX + "v")], errors.TopicNotFound, "v")
    refused(folder, [changed(file, topic=PREFIX + "p")], errors.OperationNotSupported, "3 part")


def test_a_file_that_was_attached_by_another_transaction(folder: Path) -> None:
    file = stage(folder, "t", [b"1"])
    spare = folder / "spare"
    os.link(folder / "staging" / "job" / file.name, spare)
    attach(folder, Transaction("other", 0), [file])
    make_staging(folder, "job")
    os.link(spare, folder / "staging" / "job" / file.name)
    refused(folder, [file], errors.NotAllowedError, "has it already, as ledger")


@pytest.mark.parametrize("name", ["", "..", "a/b", "/etc/passwd", "x" * 300, "a\0b", "ä", 5, None])
def test_names_that_would_leave_the_staging_area(folder: Path, name: Any) -> None:
    file = stage(folder, "t", [b"1"])
    for field in ("job", "name"):
        with pytest.raises(ValueError):
            attach(folder, Transaction("query", 0), [changed(file, **{field: name})])


@pytest.mark.parametrize(("application", "batch"), [("", 0), (5, 0), ("a", -1), ("a", True)])
def test_a_transaction_that_is_none(application: Any, batch: Any) -> None:
    with pytest.raises(ValueError):
        Transaction(application, batch)


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(errors.FolderError):
            attach(path, Transaction("query", 0), [])
        with pytest.raises(errors.FolderError):
            make_staging(path, "job")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_taken_is_never_replaced(folder: Path) -> None:
    """The catalogue does not know the ledger that lies where the next id belongs."""
    ledger_id = catalogue(folder).state.next_id
    taken = folder / "ledgers" / f"{ledger_id & 255:02x}" / f"{ledger_id}.ledger"
    taken.parent.mkdir(exist_ok=True)
    write_ledger(str(taken), [b"precious"])
    precious = taken.read_bytes()
    attach(folder, Transaction("query", 0), [stage(folder, "t", [b"1"])])
    assert contents(folder, "t") == [[b"1"]]
    assert (folder / "orphans" / taken.name).read_bytes() == precious


def test_a_failed_commit_leaves_nothing_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = stage(folder, "t", [b"1"])
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send(b"0")
        consumer = client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest)
        broker = registry.find(os.path.realpath(folder))
        assert broker is not None

        def full(*_: Any) -> None:
            raise OSError(28, "full")

        with monkeypatch.context() as patch:
            patch.setattr(CatalogueLog, "write", full)
            with pytest.raises(errors.StorageFullError):
                attach(folder, Transaction("query", 0), [file])
        assert len(list((folder / "ledgers").rglob("*.ledger"))) == 1
        client.create_producer("t").send(b"2")
        attach(folder, Transaction("query", 0), [file])
        client.create_producer("t").send(b"3")
        found = []
        for _ in range(4):
            message = consumer.receive(60_000)
            consumer.acknowledge(message)
            found.append(message.data())
        assert found == [b"0", b"2", b"1", b"3"]
        broker.runtime.background.wait()
        assert client.admin.topics.stats("t")["messages"] == 1  # nothing holds the others


def test_an_area_that_is_a_link_is_none(folder: Path) -> None:
    file = stage(folder, "t", [b"1"])
    os.rename(folder / "staging" / "job", folder / "elsewhere")
    os.symlink(folder / "elsewhere", folder / "staging" / "job")
    refused(folder, [file], errors.StorageError, "is no folder.*mount")


def test_a_file_that_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = stage(folder, "t", [b"1"])

    def forbidden(path: str) -> Any:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("pulsarx.broker.staging.staged_file.identity", forbidden)
    refused(folder, [file], errors.StorageError, "it cannot be read here: .*Permission denied")


@pytest.mark.parametrize("change", ["another file", "other bytes", "a link"])
def test_a_file_that_is_changed_between_check_and_commit(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    file = stage(folder, "t", [b"1"])
    path = folder / "staging" / "job" / file.name
    whole = StagedFile.check

    def check(self: StagedFile, *arguments: Any) -> tuple[int, ...]:
        found = whole(self, *arguments)
        if change == "another file":
            shutil.copy(path, folder / "other")
            os.replace(folder / "other", path)
        elif change == "other bytes":
            with open(path, "r+b") as opened:
                opened.seek(4200)
                opened.write(b"xxx")
        else:
            os.rename(path, folder / "other")
            os.symlink(folder / "other", path)
        return found

    monkeypatch.setattr(StagedFile, "check", check)
    refused(folder, [file], errors.StorageError, "changed while|regular file")
    assert list((folder / "ledgers").rglob("*.ledger")) == []


@pytest.mark.parametrize(
    ("number", "kind", "text"),
    [(28, errors.StorageFullError, "left on device"), (18, errors.StorageError, "cross-device"),
     (13, errors.StorageError, "denied"), (30, errors.StorageError, "Read-only")],
)  # fmt: skip
@pytest.mark.parametrize("step", ["link_or_copy", "make_directory", "flush_directory"])
def test_a_disk_that_refuses(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: Any, text: str, step: str
) -> None:
    files = [stage(folder, topic, [b"1"]) for topic in "tu"]
    with pulsarx.Client(folder) as client:
        broker = registry.find(os.path.realpath(folder))
        assert broker is not None
        producer = client.create_producer("t")
        producer.send(b"0")
        shutil.rmtree(folder / "ledgers" / f"{broker.catalogue.state.next_id & 255:02x}", True)

        class Refusing:
            def __getattr__(self, name: str) -> Any:
                if name == step:
                    return self.refuse
                return getattr(broker.runtime.files, name)

            def refuse(self, path: str, *_: str) -> None:
                raise OSError(number, os.strerror(number), path)

        with monkeypatch.context() as patch:
            patch.setattr(broker.directory, "files", Refusing())
            with pytest.raises(kind, match=text):
                attach(folder, Transaction("query", 0), files)
        producer.send(b"1")
        assert not attach(folder, Transaction("query", 0), files).already
        producer.send(b"2")
        assert whole_topic(client, "t") == [b"0", b"1", b"1", b"2"]
        assert whole_topic(client, "u") == [b"1"]


def test_who_lost_the_folder_moves_nothing_of_the_next_owner(folder: Path) -> None:
    """On a file system whose locks do not hold, two have the same next id."""
    file = stage(folder, "t", [b"1"])
    client = pulsarx.Client(folder, durability="os")
    old = registry.find(os.path.realpath(folder))
    assert old is not None
    next_id = old.catalogue.state.next_id
    os.rename(folder / "LOCK", folder / "lock-of-another-host")
    with ChildProcess(OWNING, folder) as owner:
        owner.line()
        live = folder / "ledgers" / f"{next_id & 255:02x}" / f"{next_id}.ledger"
        assert live.exists()
        with pytest.raises(errors.FolderOwnedError):
            attach(folder, Transaction("query", 0), [file])
        with pytest.raises(errors.FolderOwnedError):
            client.create_producer("t").send(b"x")
        assert live.exists()
        assert not (folder / "orphans").exists()
        owner.kill()
    client.close()
    assert contents(folder, "t") == [[b"0"]]


OWNING = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1])
client.create_producer("t").send(b"0")
print("ready", flush=True)
sys.stdin.readline()
"""


def test_what_goes_wrong_after_the_commit_does_not_hide_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole_close, whole_came = Broker.close, Topic.ledgers_came

    def close(self: Broker) -> None:
        whole_close(self)
        raise errors.StorageError(detail="close")

    def came(self: Topic, *arguments: Any) -> None:
        whole_came(self, *arguments)
        raise errors.StorageError(detail="wake")

    with monkeypatch.context() as patch:
        patch.setattr(Broker, "close", close)
        patch.setattr(Topic, "ledgers_came", came)
        result = attach(folder, Transaction("query", 0), [stage(folder, "t", [b"1"])])
    assert result.ledger_count == 1
    assert "closing" in caplog.text and "tell of attached" in caplog.text
    assert contents(folder, "t") == [[b"1"]]


def test_a_slow_check_holds_no_other_attach_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, fast = stage(folder, "t", [b"1"]), stage(folder, "t", [b"2"])
    begun, go_on = threading.Event(), threading.Event()
    whole = StagedFile.check

    def check(self: StagedFile, *arguments: Any) -> tuple[int, ...]:
        if self == slow:
            begun.set()
            go_on.wait(60)
        return whole(self, *arguments)

    monkeypatch.setattr(StagedFile, "check", check)
    with pulsarx.Client(folder) as client:
        transaction = Transaction("slow", 0)
        other = threading.Thread(target=lambda: attach(folder, transaction, [slow]))
        other.start()
        assert begun.wait(60)
        attach(folder, Transaction("fast", 0), [fast])
        assert attached(folder, transaction) is None
        go_on.set()
        other.join(60)
        assert whole_topic(client, "t") == [b"2", b"1"]


def test_a_catalogue_is_not_read_again_for_each_attach(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = []
    whole = CatalogueLog.load
    monkeypatch.setattr(CatalogueLog, "load", lambda self: (loads.append(1), whole(self)))
    for batch in range(3):
        attach(folder, Transaction("query", batch), [stage(folder, "t", [b"%d" % batch])])
        assert attached(folder, Transaction("query", batch + 1)) is None
        with monkeypatch.context() as patch:
            patch.setattr(CatalogueLog, "load", whole)
            publish(folder, "t")  # another owner in between
    assert len(loads) == 1
    assert contents(folder, "t")[0][::2] == [b"0", b"1", b"2"]


def test_a_folder_that_was_replaced_is_read_anew(folder: Path, tmp_path: Path) -> None:
    """By an older copy, and by one of the same length and another history."""
    shutil.copytree(folder, tmp_path / "older")
    attach(folder, Transaction("one", 0), [stage(folder, "t", [b"1"])])
    for batch in range(2):
        shutil.rmtree(folder)
        shutil.copytree(tmp_path / "older", folder)
        assert attached(folder, Transaction("one", 0)) is None
        assert attached(folder, Transaction("two", 0)) is None
        attach(folder, Transaction("two", 0), [stage(folder, "u", [b"%d" % batch])])
        assert contents(folder, "t", "u") == [[], [b"%d" % batch]]
