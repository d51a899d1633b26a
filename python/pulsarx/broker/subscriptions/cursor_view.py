"""The cursor of a subscription as its file has it now, for a process that does not own it."""

from __future__ import annotations

from contextlib import contextmanager

from pulsarx._pycore.cursor.ack_tracker import AckTracker
from pulsarx._pycore.cursor.cursor_store import CursorStore
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx.broker.folder.cursor_listing import cursor_place
from pulsarx.broker.subscriptions.backlog import (
    backlog_extent,
    count_backlog,
    mark_delete_position,
)
from pulsarx.broker.subscriptions.topic_cursors import forget_prepared, sync_tracker
from pulsarx.clock import system_clock
from pulsarx.errors import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pulsarx.broker.catalogue.records import SubscriptionRecord
    from pulsarx.broker.faces import FolderView
    from pulsarx.broker.ledgers.ledger_list import LedgerList

GENERATIONS_MAX = 10  # in a row, each replaced by its owner while it was about to be read


def cursor_statistics(
    folder: FolderView, ledgers: LedgerList, record: SubscriptionRecord
) -> dict[str, Any]:
    """Statistics of what a subscription has left. Nothing is written. What its owner acknowledges
    meanwhile may be counted or not."""
    with opened_cursor(folder, ledgers, record) as tracker:
        entries, messages = count_backlog(tracker, ledgers)
        return {
            "msg_backlog": messages,
            "backlog_entries": entries,
            "mark_delete_position": mark_delete_position(tracker.mark_delete(), ledgers),
            **backlog_extent(tracker.mark_delete(), ledgers, system_clock().now_ms()),
        }


@contextmanager
def opened_cursor(
    folder: FolderView, ledgers: LedgerList, record: SubscriptionRecord
) -> Iterator[AckTracker]:
    """The cursor as its file has it, for the block."""
    tracker = _read_cursor(folder, record)
    try:
        forget_prepared(tracker, ledgers)
        sync_tracker(tracker, ledgers, None)  # its owner says what did not survive
        if _is_new(tracker) and record.initial_ledger_id in tracker.ledger_ids:
            tracker.reset(record.initial_ledger_id, record.initial_message)
        _pass_aborted(tracker, ledgers)
        yield tracker
    finally:
        tracker.close()


def _pass_aborted(tracker: AckTracker, ledgers: LedgerList) -> None:
    """Count what was aborted as acknowledged, as the owner and the next one do."""
    known = set(tracker.ledger_ids)
    for ledger in ledgers.ledgers():
        aborted = ledgers.aborted.in_ledger(ledger.ledger_id) if ledger.ledger_id in known else ()
        messages = ledgers.published_counts(ledger)[1] if aborted else 0
        for first, end in aborted:
            if first < messages:
                tracker.acknowledge_messages(ledger.ledger_id, first, min(end, messages) - first)


def _is_new(tracker: AckTracker) -> bool:
    """Whether nothing was ever written: it begins where the catalogue says."""
    return not tracker.is_kept and not tracker.damage


def _read_cursor(folder: FolderView, record: SubscriptionRecord) -> AckTracker:
    prefix, identity = cursor_place(folder.directory, record.cursor_id)
    listed: list[str] | None
    listed, certain = folder.cursor_names(record.cursor_id)
    for attempt in range(GENERATIONS_MAX):
        store = CursorStore(FileSystem(), prefix, identity, listed, read_only=True)
        try:
            tracker = AckTracker(store)
        except (OSError, StorageError):
            if attempt == GENERATIONS_MAX - 1:
                raise
            listed, certain = None, True  # the store lists the folder
            continue
        if tracker.is_kept or tracker.damage:
            return tracker
        tracker.close()
        if certain:
            return AckTracker(None)
        listed, certain = None, True
    raise AssertionError("unreachable")
