"""What the header of a cursor file says of whose it is."""

from __future__ import annotations

from pathlib import Path

import pytest
from failing_files import PlainFiles

from pulsarx._pycore.cursor.ack_tracker import AckTracker
from pulsarx._pycore.cursor.cursor_store import CursorStore, cursor_file_fault
from pulsarx._pycore.cursor.subscription_label import SubscriptionLabel, subscription_label_of
from pulsarx.broker.catalogue.records import SubscriptionRecord

IDENTITY = b"cursor 7 of here"
TOPIC = "persistent://public/default/orders"


def written(folder: Path, topic: str, name: str) -> AckTracker:
    record = SubscriptionRecord(name, 7, "Shared", 1234, {}, -1, 17)
    store = CursorStore(PlainFiles(), str(folder / "7"), IDENTITY, topic=topic, subscription=record)
    tracker = AckTracker(store)
    tracker.add_ledger(1)
    tracker.fold()
    return tracker


def label(path: Path) -> SubscriptionLabel:
    found = subscription_label_of(path.read_bytes())
    assert found is not None
    return found


def test_every_generation_says_whose_cursor_it_is(tmp_path: Path) -> None:
    tracker = written(tmp_path, TOPIC, "süß")
    for generation in (1, 2):
        path = tmp_path / f"7.{generation}"
        found = label(path)
        assert (found.topic, found.name, found.type) == (TOPIC, "süß", "Shared")
        assert (found.created_ms, found.initial_ledger_id, found.initial_message) == (1234, -1, 17)
        assert not found.cut
        assert cursor_file_fault(path.read_bytes(), IDENTITY, generation) == ""
        tracker.fold()


def test_names_that_are_too_long_are_cut_and_the_label_says_so(tmp_path: Path) -> None:
    written(tmp_path, f"{TOPIC}{'x' * 30_000}", "s" * 30_000)
    found = label(tmp_path / "7.1")
    assert found.cut and found.topic.startswith(TOPIC) and found.name.startswith("sss")
    assert "-cut-" in found.topic and "-cut-" in found.name
    assert cursor_file_fault((tmp_path / "7.1").read_bytes(), IDENTITY, 1) == ""


def test_a_cursor_without_a_label_is_as_good_as_any(tmp_path: Path) -> None:
    AckTracker(CursorStore(PlainFiles(), str(tmp_path / "7"), IDENTITY)).fold()
    data = (tmp_path / "7.1").read_bytes()
    assert subscription_label_of(data) is None and subscription_label_of(b"short") is None
    assert cursor_file_fault(data, IDENTITY, 1) == ""


@pytest.mark.parametrize(
    ("identity", "generation", "at", "why"),
    [
        (IDENTITY, 1, 100, "checksum"),
        (IDENTITY, 2, -1, "not a cursor file"),
        (b"another cursor..", 1, -1, "not a cursor file"),
    ],
)
def test_a_file_of_no_use_says_why(
    tmp_path: Path, identity: bytes, generation: int, at: int, why: str
) -> None:
    written(tmp_path, TOPIC, "s")
    data = bytearray((tmp_path / "7.1").read_bytes())
    if at >= 0:
        data[at] ^= 1
    assert why in cursor_file_fault(bytes(data), identity, generation)
