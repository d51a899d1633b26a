"""Folders of every format that was ever written are read by this version: the golden folders, each
with every feature of its time in it, made by golden_features.py and compared with what it said."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from golden_contents import contents, crypto_keys, deliveries
from golden_features import DELAY_MS, opened
from golden_folders import GoldenFolder, formats_of, golden_folders, newest_formats

import pulsarx
from pulsarx import ManualClock, errors
from pulsarx.backups import check, salvage
from pulsarx.broker.catalogue import file as catalogue_file
from pulsarx.broker.catalogue import topic_operations
from pulsarx.broker.catalogue.operations import OPERATIONS
from pulsarx.broker.catalogue.records import TopicRecord
from pulsarx.broker.folder import folder_marker
from pulsarx.broker.requests.attach import Transaction, attached
from pulsarx.testing import inspect

FRAME_SIZE, HEADER_SIZE = 64, 4096
# What messages, and who has acknowledged them; a salvage finds the rest in the catalogue alone.
OF_LEDGERS = ("messages", "subscriptions", "horizon", "compacted")
# Of frames, and of the catalogue's state; later versions may have more. The flag 16 is read alone.
FLAGS = {1, 2, 4, 8, 32}
KINDS = ("tenants", "namespaces", "topics", "transactions", "leases", "schemas", "offloads")

each_folder = pytest.mark.parametrize("golden", golden_folders(), ids=lambda golden: golden.name)


@cache
def expected_of(name: str) -> dict[str, Any]:
    (found,) = [each.expected() for each in golden_folders() if each.name == name]
    return found


@pytest.fixture(scope="module")
def keys() -> Iterator[Any]:
    with crypto_keys() as found:
        yield found


@pytest.fixture
def copy(golden: GoldenFolder, tmp_path: Path) -> Path:
    return golden.unpack(tmp_path / "copy")


def differences(found: Any, expected: Any, at: str = "") -> list[str]:
    """Where a document is not as expected. What later versions say besides is no difference."""
    if isinstance(expected, dict) and isinstance(found, dict):
        told = [f"{at}/{key}: missing" for key in expected if key not in found]
        for key in expected:
            if key in found:
                told += differences(found[key], expected[key], f"{at}/{key}")
        return told
    if isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        return [
            each
            for number, pair in enumerate(zip(found, expected, strict=True))
            for each in differences(*pair, f"{at}/{number}")
        ]
    return [] if found == expected else [f"{at}: {found!r:.300} and not {expected!r:.300}"]


def require_same(found: dict[str, Any], golden: GoldenFolder) -> None:
    expected = {key: expected_of(golden.name)[key] for key in ("tenants", "namespaces", "topics")}
    assert not (told := differences(found, expected)), "\n".join(told)
    # Nothing may be made up either.
    for topic, known in expected["topics"].items():
        assert set(found["topics"][topic].get("subscriptions", ())) == set(
            known.get("subscriptions", ())
        )


def digests(folder: Path) -> dict[str, str]:
    return {
        str(each.relative_to(folder)): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


# What is there ------------------------------------------------------------------------------------


def require_newest(folder: Path) -> None:
    newest = newest_formats(folder)
    assert newest in [expected_of(each.name)["formats"] for each in golden_folders()], (
        f"this version writes the formats {newest}, of which there is no golden folder: "
        "run tests/reliability/golden_features.py, and keep what it makes"
    )


def test_there_is_a_folder_of_each_format_that_this_version_writes(tmp_path: Path) -> None:
    require_newest(tmp_path / "f")


def require_every_operation() -> None:
    known = {*OPERATIONS, *topic_operations.TOPIC_OPERATIONS}
    kept = {name for each in golden_folders() for name in expected_of(each.name)["operations"]}
    assert known == kept, (
        f"operations of the catalogue that no golden folder has, or none knows: {known ^ kept}"
    )


def test_every_operation_of_the_catalogue_was_committed_in_one() -> None:
    require_every_operation()


def frame_flags(path: Path) -> Iterator[int]:
    data = path.read_bytes()
    at = HEADER_SIZE
    while size := int.from_bytes(data[at : at + 4], "little"):
        if data[at + FRAME_SIZE : at + FRAME_SIZE + 2] != b"\x0e\x01":
            return
        yield int.from_bytes(data[at + 56 : at + 60], "little")
        at += FRAME_SIZE + -(-size // 8) * 8


@each_folder
def test_a_folder_is_what_its_expectation_says_it_is(golden: GoldenFolder, copy: Path) -> None:
    """Formats by its files; ledgers, cursors and files of every kind and state."""
    expected = expected_of(golden.name)
    assert formats_of(copy) == expected["formats"]
    ledgers = sorted(copy.rglob("*.ledger"))
    flags = {
        1 << bit
        for path in ledgers
        for found in frame_flags(path)
        for bit in range(8)
        if found >> bit & 1
    }
    transacts = "end_transaction" in expected["operations"]
    assert flags >= (FLAGS | {64} if transacts else FLAGS)
    for magic, at in ((b"PULSARXS", 512), (b"PULSARXC", 1024), (b"PULSARXN", 2560)):
        assert any(each.read_bytes()[at : at + 8] == magic for each in ledgers), magic
    with pulsarx.Client(copy, read_only=True) as client:
        state = inspect(client).catalogue.state
    document = state.document()
    assert all(document[kind] for kind in KINDS), [each for each in KINDS if not document[each]]
    if transacts:
        assert {each.committed for each in state.ended.values()} == {False, True}
        assert any(each.acknowledged for each in state.ended.values())
        for kept in ("committed", "aborted"):
            assert any(getattr(each, kept) for each in state.topics.values()), kept
    states = {each.state for topic in state.topics.values() for each in topic.ledgers}
    assert states >= {"open", "sealed", "prepared"}


# Reading ------------------------------------------------------------------------------------------


@each_folder
def test_an_owner_reads_all_of_it_and_goes_on(golden: GoldenFolder, copy: Path, keys: Any) -> None:
    expected = expected_of(golden.name)
    clock = ManualClock(expected["now_ms"])
    with opened(copy, clock) as client:
        found = contents(client, keys)
        require_same(found, golden)
        for advance, what in ((0.0, "deliveries"), (2 * DELAY_MS / 1000, "deliveries later")):
            clock.advance(advance)
            assert not (
                told := differences(deliveries(client, found, keys), expected[what], what)
            ), "\n".join(told)
        sent = go_on(client)
    assert check(copy).damage == []
    with opened(copy, clock) as client:
        after = contents(client, keys)
    for topic, known in expected["topics"].items():
        messages = [each["data"] for each in after["topics"][topic].get("messages", ())]
        before = [each["data"] for each in known.get("messages", ())]
        assert messages == before + ["and on"] * (topic in sent), topic


def go_on(client: pulsarx.Client) -> set[str]:
    """Publish to the topics that take messages of anybody; which they are."""
    found = set()
    for topic in client.admin.topics.get_list("public/default"):
        if topic.startswith("persistent://"):
            try:
                with client.create_producer(topic) as producer:
                    producer.send(b"and on")
            except errors.TopicTerminated:
                continue
            found.add(topic)
    inspect(client).settle()
    return found


@each_folder
def test_what_was_stored_once_is_not_stored_again(golden: GoldenFolder, copy: Path) -> None:
    """Deduplication, batches of applications and schemas go on where they were."""
    with opened(copy, ManualClock(expected_of(golden.name)["now_ms"])) as client:
        with client.create_producer("once", "counting") as producer:
            assert producer.last_sequence_id() == 60
            producer.send(b"again", sequence_id=60)
            producer.send(b"new", sequence_id=61)
        with client.create_reader("once", pulsarx.MessageId.earliest) as reader:
            data = [each.data() for each in reader.read_many(99, 0)]
        assert b"again" not in data and data[-1] == b"new"
        known = attached(copy, Transaction("app", 7))
        assert known is not None and known.message_count == 3


@each_folder
def test_it_is_read_without_owning_it_and_stays_as_it_is(
    golden: GoldenFolder, copy: Path, keys: Any
) -> None:
    before = digests(copy)
    with pulsarx.Client(copy, read_only=True) as client:
        require_same(contents(client, keys), golden)
    found = check(copy)
    assert found.damage == []
    counted = {"topics": found.topics, "ledgers": found.ledgers, "messages": found.messages}
    assert counted == expected_of(golden.name)["counts"]
    assert digests(copy) == before


@each_folder
@pytest.mark.parametrize("lost", [False, True], ids=["whole", "without marker and catalogue"])
def test_a_salvage_of_it_has_the_same_messages(
    golden: GoldenFolder, copy: Path, keys: Any, lost: bool, tmp_path: Path
) -> None:
    if lost:
        (copy / "PULSARX").unlink()
        shutil.rmtree(copy / "catalogue")
    before = digests(copy)
    made = salvage(copy, tmp_path / "made")
    assert digests(copy) == before
    expected = expected_of(golden.name)
    with opened(tmp_path / "made", ManualClock(expected["now_ms"])) as client:
        found = contents(client, keys)
    if not lost:
        assert made.damage == []
        require_same(found, golden)
        return
    for topic, known in expected["topics"].items():
        # Ledgers that lie in the object store alone are named by the catalogue, and what was
        # aborted is known to it.
        if known.get("messages") and not topic.endswith(("/stored", "/transacted", "-too")):
            now = {key: found["topics"][topic][key] for key in OF_LEDGERS if key in known}
            then = {key: known[key] for key in OF_LEDGERS if key in known}
            assert not (told := differences(now, then, topic)), "\n".join(told)


# Planted bugs -------------------------------------------------------------------------------------


def another_folder_format(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(folder_marker, "FORMAT_VERSION", 2)


def another_commit_format(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(catalogue_file._VERSIONS, "commit", "2")


def new_operation(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(topic_operations.TOPIC_OPERATIONS, "fold_topic", None)


def lost_operation(patch: pytest.MonkeyPatch) -> None:
    patch.delitem(topic_operations.TOPIC_OPERATIONS, "merge_ledgers")


def other_rows(patch: pytest.MonkeyPatch) -> None:
    """As if a field of topics had gone from the rows of checkpoints."""
    of_row = TopicRecord.of_row
    patch.setattr(TopicRecord, "of_row", staticmethod(lambda row: of_row([*row[:9], *row[10:], 0])))


def policies_of_topics_forgotten(patch: pytest.MonkeyPatch) -> None:
    of_row = TopicRecord.of_row
    patch.setattr(TopicRecord, "of_row", staticmethod(lambda row: of_row([*row[:4], {}, *row[5:]])))


PLANTED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    each.__name__: each
    for each in (
        another_folder_format,
        another_commit_format,
        new_operation,
        lost_operation,
        other_rows,
        policies_of_topics_forgotten,
    )
}


@pytest.mark.parametrize("bug", PLANTED)
def test_what_reads_old_folders_otherwise_is_found(
    bug: str, monkeypatch: pytest.MonkeyPatch, keys: Any, tmp_path: Path
) -> None:
    """By the checks above, of any golden folder."""
    golden = golden_folders()[0]
    copy = golden.unpack(tmp_path / "copy")
    PLANTED[bug](monkeypatch)
    with pytest.raises((AssertionError, errors.PulsarException, TypeError)) as told:
        require_every_operation()
        require_newest(tmp_path / "new")
        with pulsarx.Client(copy, read_only=True) as client:
            require_same(contents(client, keys), golden)
    print(f"{bug}: {told.value}"[:300])
