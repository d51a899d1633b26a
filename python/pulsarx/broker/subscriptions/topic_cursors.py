"""The cursors of the subscriptions of one topic: makes them, and opens them as they were left."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.cursor.ack_tracker import AckTracker

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Callable

    from pulsarx.broker.catalogue.records import SubscriptionRecord
    from pulsarx.broker.folder.file_operations import FileOperations
    from pulsarx.broker.ledgers.ledger_list import LedgerList, Position
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
    from pulsarx.broker.runtime import BrokerRuntime


class TopicCursors:
    """Calls of the control plane, with the lock of the topic."""

    __slots__ = ("_ledgers", "_name", "_runtime")

    def __init__(self, name: str, runtime: BrokerRuntime, ledgers: ManagedLedger) -> None:
        """name: of the topic."""
        self._name = name
        self._runtime = runtime
        self._ledgers = ledgers

    def begin(
        self, record: SubscriptionRecord, position: Position, files: FileOperations | None = None
    ) -> tuple[AckTracker, Callable[[], object]]:
        """A cursor that begins at a position, and the step that makes it durable, which any thread
        may take. files: see BrokerRuntime.new_tracker."""
        tracker = self._runtime.new_tracker(self._name, record, files)
        sync_tracker(tracker, self._ledgers, record.name)
        place = self._existing(position, tracker)  # its ledger may have gone since it was found
        if place is not None and place[0] in tracker.ledger_ids:
            return tracker, partial(tracker.reset, *place)
        return tracker, tracker.fold

    def create_non_durable(self, name: str, position: Position) -> AckTracker:
        """A cursor that begins at a position and that nothing on disk knows."""
        tracker = AckTracker(None)
        sync_tracker(tracker, self._ledgers, name)
        place = self._existing(position, tracker)
        if place is not None and place[0] in tracker.ledger_ids:
            tracker.reset(*place)
        return tracker

    def open(self, record: SubscriptionRecord) -> AckTracker:
        """The cursor as it was left; one without a file begins where the catalogue says. It gets
        one here, but on a topic that has no ledger yet."""
        tracker = self._runtime.open_tracker(self._name, record)
        forget_prepared(tracker, self._ledgers)
        if sync_tracker(tracker, self._ledgers, record.name) and tracker.is_kept:
            try:
                tracker.fold()
            except errors.StorageError:
                pass  # what was clamped is clamped and said again by the next owner
        if not tracker.is_kept and (tracker.damage or self._ledgers.has_begun):
            position = self._initial_position(record, tracker)
            if not tracker.damage:
                self._tell_missing(record, position)
            if position is None:
                tracker.fold()
            else:
                tracker.reset(*position)
        return tracker

    def discard(self, tracker: AckTracker, name: str) -> None:
        """Remove the files of a cursor that the catalogue does not name: its subscription could not
        be created."""
        delete_tracker(tracker, self._name, name)

    def _tell_missing(self, record: SubscriptionRecord, position: Position | None) -> None:
        """Cursor files are made before the catalogue names them, those of a topic that has no
        ledger yet before its first one."""
        topic = self._runtime.catalogue.state.topics[self._name]
        if not self._runtime.keeps_cursors or not (topic.ledgers or topic.removed_ledger_id):
            return
        place, again = "the first message", self._ledgers.message_count()
        if position is not None:
            place = f"message {position[1]} of ledger {position[0]}, where it was made"
            again = self._ledgers.message_count_from(position)
        logger().error(
            "%s: the cursor file %s of subscription %s is missing: it begins anew with %s%s",
            self._name, self._runtime.directory.cursor_path(record.cursor_id, 1), record.name,
            place,
            f", and up to {again} acknowledged messages may be delivered again" if again else "",
        )  # fmt: skip

    def _initial_position(self, record: SubscriptionRecord, tracker: AckTracker) -> Position | None:
        """The position at which a subscription without a cursor file begins; None: with the first
        message. A position that a power cut took is clamped to what survived, which the log
        says."""
        wanted = record.initial_ledger_id, record.initial_message
        position = self._existing(wanted, tracker)
        if position is None or position == wanted:
            return position
        # A ledger in front of the first one was trimmed: nothing is wrong with that.
        if wanted[0] >= self._ledgers.first_position()[0]:
            logger().warning(
                "%s: subscription %s was made at message %d of ledger %d, which did not survive; "
                "it begins at message %d of ledger %d",
                self._name, record.name, wanted[1], wanted[0], position[1], position[0],
            )  # fmt: skip
        return position

    def _existing(self, position: Position, tracker: AckTracker) -> Position | None:
        """The position, or the next one that the topic has; None: it has none, or position is in
        front of all ledgers. The tracker is told of ledgers that were trimmed and have survivors
        behind it."""
        ledger_id, message = position
        if add_survivors(tracker, self._ledgers, position):
            return position
        ledgers = self._ledgers.ledgers()
        if ledger_id <= 0 or not ledgers:
            return None
        found = next((each for each in ledgers if each.ledger_id >= ledger_id), ledgers[-1])
        if found.ledger_id > ledger_id:
            return found.ledger_id, 0
        if found.ledger_id < ledger_id:
            return found.ledger_id, self._ledgers.messages_in(found.ledger_id)
        return ledger_id, min(message, found.message_count) if found.state == "sealed" else message


def forget_prepared(tracker: AckTracker, ledger_list: LedgerList) -> None:
    """Let a tracker that was just opened forget the ledger that was prepared when it was written
    and was never used: else the position of a subscription would lie in it."""
    known = ledger_list.ledger_ids()
    if known:
        tracker.forget_unused(known[-1])


def sync_tracker(tracker: AckTracker, ledger_list: LedgerList, name: str | None) -> bool:
    """Tell the tracker of a subscription which ledgers the topic has; what it knows already changes
    nothing. Whether it had acknowledged messages that are not there (any more), which the log says
    unless name is None."""
    known = ledger_list.ledger_ids()  # first: what comes later is told of later
    ledgers = ledger_list.ledgers()
    clamped = False
    survivors = ledger_list.trimmed_survivors()
    if survivors:
        # Of one that reads what was compacted, and has not acknowledged all of it yet.
        at, _ = tracker.mark_delete()
        there = set(tracker.ledger_ids)
        survivors = {each: survivors[each] for each in survivors if each in there and each >= at}
    if ledgers:
        tracker.forget_ledgers(min(survivors, default=ledgers[0].ledger_id))
        # What was prepared, or attached in vain, and has others behind it will never come.
        for ledger_id in set(tracker.ledger_ids).difference(known, survivors):
            if ledger_id < known[-1]:
                tracker.seal_gone(ledger_id, 0)
    for ledger_id, end in survivors.items():
        tracker.seal_gone(ledger_id, end)
    for ledger_id in known:
        # Before its first entry, which nobody waits for the catalogue with.
        tracker.add_ledger(ledger_id)
    for ledger in ledgers:
        tracker.add_ledger(ledger.ledger_id)
        if ledger.state == "sealed":
            dropped = tracker.seal_ledger(ledger.ledger_id, ledger.message_count)
            if dropped:
                clamped = True
            if dropped and name is not None:
                logger().warning(
                    "%s: subscription %s had acknowledged %d messages of ledger %d from message %d "
                    "on, where it ends now: they did not survive",
                    ledger_list.name, name, dropped, ledger.ledger_id, ledger.message_count,
                )  # fmt: skip
    return clamped


def add_survivors(tracker: AckTracker, ledger_list: LedgerList, position: Position) -> bool:
    """Tell a tracker that is to be reset to a position of the ledgers from there on that were
    trimmed and hold survivors of a compaction. Whether the position is in one of them."""
    found = False
    if position[0] > 0:
        for ledger_id, end in ledger_list.trimmed_survivors().items():
            if ledger_id >= position[0]:
                tracker.add_ledger(ledger_id)
                tracker.seal_gone(ledger_id, end)
                found = found or ledger_id == position[0]
    return found


def delete_tracker(tracker: AckTracker, topic: str, name: str) -> bool:
    """Remove the files of a cursor that the catalogue does not name (any more). Those that the disk
    refuses to remove are told in the log; False then."""
    try:
        tracker.delete()
        return True
    except errors.StorageError as error:
        logger().warning(
            "%s: cursor files of subscription %s, which is gone, stay: %s",
            topic,
            name,
            errors.detail_of(error),
        )
        return False


def logger() -> logging.Logger:
    import logging

    return logging.getLogger("pulsarx")
