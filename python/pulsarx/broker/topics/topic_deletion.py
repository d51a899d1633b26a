"""Deletes topics. In this order, so that a kill between any two steps leaves all of them or none:

1  nobody is attached, or it is forced        with the locks of the topics and of their directory
2  nothing is appended to their ledgers any more
3  one commit of the catalogue                from here on none of them is there
4  close producers, consumers and readers     they belong to no topic any more
5  remove what they have on disk              after a kill the next owner goes on here
6  one commit that says so
"""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx._pycore.ground.file_system import may_exist
from pulsarx.broker import life_log
from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.file import TEMPORARY_SUFFIX
from pulsarx.broker.catalogue.records import LedgerRecord
from pulsarx.broker.folder.directory_flush import flush_directories
from pulsarx.broker.ledgers.managed_ledger import DAMAGED, ForeignLedger, look_at
from pulsarx.broker.policies.permissions import forgetting
from pulsarx.broker.topics.deduplication import snapshot_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Collection
    from typing import Any

    from pulsarx.broker.catalogue.records import DeletionRecord
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.topics.any_topic import AnyTopic

    Operations = list[dict[str, Any]]


class TopicDeletion:
    """One deletion on its way. For one thread."""

    def __init__(
        self,
        runtime: BrokerRuntime,
        names: list[str],
        topics: list[AnyTopic],
        force: bool,
        only_untouched: bool = False,
    ) -> None:
        """names: of all records that go. topics: those of them that hold messages, by name.
        only_untouched: none of them is to have anything yet."""
        self._only_untouched = only_untouched
        self._runtime = runtime
        self._names = names
        self._topics = topics
        self._force = force
        self._records: list[DeletionRecord] = []

    def commit(self, more: Operations) -> None:
        """Steps 1 to 3, with the locks. more: operations that follow in the same commit.

        NotAllowedError: a topic is in use, and the deletion is not forced. After an error all of
        them are as before, except that producers and consumers begin a new ledger.
        """
        if not self._force:
            self._check_not_leased()
        closed: list[AnyTopic] = []
        held: list[AnyTopic] = []
        deleted = False
        try:
            for topic in self._topics:
                topic.close_to_newcomers(self._force)
                closed.append(topic)
            for topic in self._topics:
                topic.ledger.lock.acquire()
                held.append(topic)
                topic.ledger.begin_deletion()
            if self._only_untouched:
                self._check_untouched()
            operations = self._operations(more)
            if operations:  # non-persistent topics without partitions are in no catalogue
                self._runtime.catalogue.commit(
                    lambda state: [*forgetting(state, self._names), *operations]
                )
            deleted = True
        finally:
            for topic in reversed(held):
                topic.ledger.end_deletion(deleted)
                topic.ledger.lock.release()
            for topic in [] if deleted else closed:
                topic.open_to_newcomers()
        deletions = self._runtime.catalogue.state.deletions
        ids = [topic.ledger.topic_id for topic in self._topics]
        self._records = [deletions[each] for each in ids if each in deletions]

    def _operations(self, more: Operations) -> Operations:
        known = self._runtime.catalogue.state.topics
        return [*(changes.delete_topic(name) for name in self._names if name in known), *more]

    def _check_untouched(self) -> None:
        state = self._runtime.catalogue.state
        topics = state.topics
        for name in self._names:
            if name in state.schemas or self._runtime.volatile.get(name):
                raise errors.NotAllowedError(detail=f"delete {name}: it has a schema")
        for record in [topics[name] for name in self._names if name in topics]:
            if (
                record.ledgers
                or record.removed_ledger_id
                or record.subscriptions
                or record.policies
                or record.terminated
                or record.epoch >= 0  # a producer had it to itself
            ):
                raise errors.NotAllowedError(detail=f"delete {record.name}: it is used")

    def _check_not_leased(self) -> None:
        now_ms = self._runtime.clock.now_ms()
        for lease in list(self._runtime.catalogue.state.leases.values()):
            leased = [name for name in self._names if lease.ledgers.get(name)]
            if leased and lease.expires_ms > now_ms:
                raise errors.NotAllowedError(
                    detail=f"delete {leased[0]}: job {lease.job} reads it under a lease for "
                    f"{lease.expires_ms - now_ms} ms more; wait, or delete it with force=True, and "
                    "the job fails"
                )

    def finish(self) -> None:
        """Steps 4 to 6, without a lock. What fails here does not bring a topic back."""
        kept: set[int] = set()
        for topic in self._topics:
            try:
                if not topic.end():
                    kept.add(topic.ledger.topic_id)
            except Exception:
                logger().exception("%s, which was deleted, was not closed", topic.name)
                kept.add(topic.ledger.topic_id)
            life_log.info("%s: deleted", topic.name)
        # Where a cursor file stays the next owner looks for it.
        remove_files(self._runtime, self._records, with_cursors=False, kept=kept)


def remove_files(
    runtime: BrokerRuntime,
    records: list[DeletionRecord],
    *,
    with_cursors: bool,
    kept: Collection[int] = (),
) -> None:
    """Remove the files of deleted topics, and say so to the catalogue, except of those in kept.
    What the disk refuses to remove is told in the log and tried again by the next owner."""
    cursors: dict[int, list[str]] = {}
    done: list[int] = []
    try:
        if with_cursors and records:
            for cursor_id, _, path in runtime.directory.cursor_files():
                cursors.setdefault(cursor_id, []).append(path)
        for record in records:
            if _remove(runtime, record, cursors) and record.topic_id not in kept:
                done.append(record.topic_id)
        if done:
            runtime.catalogue.commit([changes.forget_deletions(done)])
    except (errors.PulsarException, OSError) as error:
        logger().warning(
            "files of deleted topics stay until the next start: %s", errors.detail_of(error)
        )


def _remove(runtime: BrokerRuntime, record: DeletionRecord, cursors: dict[int, list[str]]) -> bool:
    """Whether all files of a deleted topic are gone, durably."""
    files = runtime.directory.files
    folders: list[str] = []
    paths = [path for each in record.cursor_ids for path in cursors.get(each, ())]
    whole = True
    for ledger_id, uuid in record.ledgers:
        path = runtime.directory.ledger_path(ledger_id)
        if path is None or not may_exist(path):
            continue
        # What a compaction had only begun to write may be no ledger yet.
        begun = record.topic_id == ledger_id
        if _is_its_ledger(runtime, record.topic, path, LedgerRecord(ledger_id, uuid), begun):
            paths.append(path)
        else:
            kept = runtime.directory.set_aside(path)
            logger().error(
                "%s: %s, which was to be removed, is no ledger of it that can be read and is kept "
                "as %s",
                record.topic, path, kept,
            )  # fmt: skip
    sequences = snapshot_path(runtime, record.topic_id)
    if sequences is not None:
        paths += [sequences, sequences + TEMPORARY_SUFFIX]
    for path in paths:
        try:
            files.unlink(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            whole = False
            logger().warning(
                "%s: a file of it that was to be removed stays: %s", record.topic, error
            )
        folders.append(os.path.dirname(path))
    flush_directories(files, folders)
    return whole


def _is_its_ledger(
    runtime: BrokerRuntime, topic: str, path: str, ledger: LedgerRecord, begun: bool
) -> bool:
    try:
        return look_at(topic, path, ledger, runtime.directory.folder_id) != DAMAGED or begun
    except ForeignLedger:
        return False


def topics_of_namespace(state: CatalogueState, namespace: str) -> list[str]:
    # Of a list made in one step: others may create topics meanwhile.
    names = list(state.topics)
    return [name for name in names if name.partition("://")[2].startswith(f"{namespace}/")]


def logger() -> logging.Logger:
    import logging

    return logging.getLogger("pulsarx")
