"""A folder opened beside its owner: reads what the owner publishes, changes nothing. What
`read_only=True` opens.

It writes nothing but the counts of sleeping readers in the published ends.
"""

from __future__ import annotations

import errno
import os

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.file_system import FileSystem, may_exist
from pulsarx._pycore.ground.locks import RLock
from pulsarx._pycore.ground.open_state import OpenState
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx._pycore.ledger.published_ends import PublishedEnds
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.catalogue.file import COMMIT, catalogue_file_name
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.policies.policy_store import PolicyStore
from pulsarx.broker.topics.partitioned_topic import check_is_whole
from pulsarx.broker.topics.read_only_partitions import ReadOnlyPartitions
from pulsarx.broker.topics.read_only_topic import ReadOnlyTopic
from pulsarx.broker_options import BrokerOptions
from pulsarx.clock import wall_ms
from pulsarx.ground.fork import at_fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.catalogue.log import CatalogueLog
    from pulsarx.broker.catalogue.records import LedgerRecord, TopicRecord
    from pulsarx.broker.schemas.registry import SchemaRegistry
    from pulsarx.topic_name import TopicName

_CERTAIN_MS = 1000  # more than the clock of any file system is wide


class ReadOnlyBroker:
    """Any thread may call. Each read-only client has its own."""

    read_only = True
    is_guest = False
    is_stored = False  # of an object store, without a folder
    _opened_how = ", which is opened read_only"

    def __init__(
        self, folder: str, take_log: Callable[[DataDirectory], CatalogueLog | None] | None = None
    ) -> None:
        """take_log: what this process knows of the catalogue already."""
        self.files: Any = FileSystem()
        self.decompressed_size_max = 1 << 27
        self.directory: DataDirectory = DataDirectory.open(folder, files=self.files, read_only=True)
        log = take_log(self.directory) if take_log is not None else None
        self.catalogue: Catalogue = Catalogue.open(self.directory, log=log)
        self.policies: PolicyStore = PolicyStore(self.catalogue, BrokerOptions())
        self.volatile: dict[str, Any] = {}  # only the owner knows
        self.state: OpenState = OpenState("client")
        self.post: Callable[[Callable[[], object]], object] = control_plane.post
        self.ends: PublishedEnds | None = None
        self._topics: dict[str, ReadOnlyTopic] = {}
        self._lock = RLock()
        self._change_seen = -1
        self._cursors_change = -1
        self._cursors_certain = False
        self._cursor_names: dict[str, list[str]] = {}  # by cursor
        self._find_ends()
        self._note_opened()

    def _note_opened(self) -> None:
        """So that a forked child abandons it."""
        _opened.add(self)

    def _find_ends(self) -> None:
        """The published ends, if an owner lives that publishes them. StorageError: that cannot be
        told, and was not known."""
        try:
            owner = self.directory.owner()
        except errors.StorageError:
            if self.ends is None:
                raise
            return  # what was known holds until the next look
        if owner is None or self.directory.ends_path is None:
            self.ends = None
        elif self.ends is None:
            try:
                self.ends = PublishedEnds.open(self.directory.ends_path)
            except errors.StorageError as error:
                if error.errno != errno.ENOENT:
                    raise
                # The owner is just opening the folder for the first time: nothing is published.

    def published(self, ledger: LedgerRecord) -> tuple[int, int, int]:
        """The end, entries and messages of an open ledger that its owner, dead or alive, has
        published; zeros when they are unknown."""
        path = self.directory.ends_path
        try:
            ends = self.ends or PublishedEnds.open(path)
            found: tuple[int, int, int] = ends.published(ledger.slot, ledger.ledger_id)
            return found
        except errors.PulsarException:
            return (0, 0, 0)  # there is no such file, or it has no such slot

    def left_transactions(self) -> dict[int, Any]:
        """The transactions that an owner which is gone has left open, and the next one goes on
        with, by number. Those that the owner there is has open itself do not matter."""
        state = self.catalogue.state
        if not state.next_transaction:
            return {}
        from pulsarx.broker.transactions.transaction_log import read_left

        path, folder_id = self.directory.catalogue_path, self.directory.folder_id
        # An owner that is gone by now may have made none.
        left = read_left(self.files, path, folder_id, state.epoch - 1).transactions
        now_ms = wall_ms()
        return {number: each for number, each in left.items() if not each.is_over(now_ms)}

    def cursor_names(self, cursor_id: int) -> tuple[list[str], bool]:
        """The names of a cursor's files; and whether there are certainly no others, for their
        folder may have changed once more in the moment of its last change."""
        path = f"{self.directory.path}/cursors"
        with self._lock:
            change = os.stat(path).st_mtime_ns
            if change != self._cursors_change:
                self._cursors_certain = wall_ms() - change // 1_000_000 > _CERTAIN_MS
                names: dict[str, list[str]] = {}
                for name in self.files.list(path):
                    names.setdefault(name.partition(".")[0], []).append(name)
                self._cursor_names, self._cursors_change = names, change
            return self._cursor_names.get(str(cursor_id), []), self._cursors_certain

    def refresh(self) -> bool:
        """Read what the owner committed since; whether there was anything."""
        return control_plane.perform(self._refresh)

    def _refresh(self) -> bool:
        with self._lock:
            state = self.catalogue.state
            before = state.number, state.last_end
            self._catch_up()
            # Behind it: without an owner now, a ledger that the catalogue has as open is a dead
            # owner's. The other way round it may be of one that came between the two.
            self._find_ends()
            state = self.catalogue.state
            return bool((state.number, state.last_end) != before)

    def _catch_up(self) -> bool:
        """Read the catalogue, if its folder changed since; whether it did."""
        path = self.directory.catalogue_path
        try:
            change = os.stat(path).st_mtime_ns
        except OSError as error:
            raise errors.FolderError(detail=f"look at {path}: {error.strerror}") from error
        following = catalogue_file_name(COMMIT, self.catalogue.state.number + 1)
        # The time of a folder may miss a second change within a few milliseconds: the next
        # commit's name does not.
        if (
            change == self._change_seen
            and not may_exist(f"{path}/{following}")
            and not self.catalogue.has_new_ends()
        ):
            return False
        self.catalogue.refresh()
        self._change_seen = change
        return True

    def refresh_if_changed(self) -> int:
        """The number of the last commit; reads the catalogue only if its folder changed since."""
        return control_plane.perform(self._refresh_if_changed)

    def _refresh_if_changed(self) -> int:
        with self._lock:
            if self._catch_up():
                self._find_ends()
            return int(self.catalogue.state.number)

    def lookup(
        self, name: TopicName, *, create: bool = False
    ) -> ReadOnlyTopic | ReadOnlyPartitions:
        """Like `topic`, for partitioned ones too."""
        self._check_persistent(name)
        return control_plane.perform(self._lookup, (name,))

    def _lookup(self, name: TopicName) -> ReadOnlyTopic | ReadOnlyPartitions:
        with self._lock:
            self.refresh_if_changed()
            if name.full not in self.catalogue.state.topics:
                self.refresh()
            record = self.catalogue.state.topics.get(name.full)
            if record is not None and record.partition_count:
                return self._new_partitions(record)
            return self._topic(name)

    def topic(self, name: TopicName, *, create: bool = False) -> ReadOnlyTopic:
        """TopicNotFound: the owner has not made it. OperationNotSupported: it is non-persistent."""
        self._check_persistent(name)
        return control_plane.perform(self._topic, (name,))

    def _check_persistent(self, name: TopicName) -> None:
        if not name.persistent:
            from pulsarx.broker.topics.non_persistent_reader import refuse_reading

            refuse_reading(name.full)
        self.state.require_open()

    def topics_at_once(self, names: list[TopicName]) -> list[ReadOnlyTopic]:
        """Like `topic` for each of the names, with one look at the folder."""
        for name in names:
            self._check_persistent(name)
        return control_plane.perform(self._topics_at_once, (names,))

    def _topics_at_once(self, names: list[TopicName]) -> list[ReadOnlyTopic]:
        with self._lock:
            self._refresh()
            return [self._known_topic(name) or self._make_topic(name) for name in names]

    def _topic(self, name: TopicName) -> ReadOnlyTopic:
        with self._lock:
            self.refresh_if_changed()
            found = self._known_topic(name)
            if found is None:
                self.refresh()
                found = self._make_topic(name)
            return found

    def _known_topic(self, name: TopicName) -> ReadOnlyTopic | None:
        found = self._topics.get(name.full)
        return None if found is None or found.is_gone else found

    def _make_topic(self, name: TopicName) -> ReadOnlyTopic:
        full = name.full
        record = self.catalogue.state.topics.get(full)
        if record is None:
            raise errors.TopicNotFound(detail=f"{full} in {self.directory.path}{self._opened_how}")
        check_is_whole(self.catalogue.state, name)
        found = self._topics[full] = self._new_topic(record)
        return found

    def _new_topic(self, record: TopicRecord) -> ReadOnlyTopic:
        return ReadOnlyTopic(self, record)

    def _new_partitions(self, record: TopicRecord) -> ReadOnlyPartitions:
        return ReadOnlyPartitions(self, record, self.topic)

    def runs_callbacks_here(self) -> bool:
        """It has no producers."""
        return False

    @property
    def schemas(self) -> SchemaRegistry:
        """See SchemaRegistry."""
        from pulsarx.broker.schemas.registry import SchemaRegistry

        return SchemaRegistry(self.catalogue, self.policies, lambda: 0, self.refresh)

    def close(self) -> None:
        """Idempotent."""
        if self.state.close():
            if self.ends is not None:
                self.ends.close_file()
            if self.catalogue.state.offloads:
                from pulsarx.broker.offload.fetched_ledgers import fetched_ledgers

                fetched_ledgers.forget(self.directory.path)
            self.directory.close()

    def close_and_keep_log(self) -> None:
        """Close, so that the next request on this folder goes on with the catalogue as it is here:
        nobody may use its state any more."""
        from pulsarx.broker.catalogue.kept_log import keep_log

        self.catalogue.close()
        self.close()
        log = self.catalogue.part_with_log()
        if log is not None:
            keep_log(self.directory, log)

    def abandon(self) -> None:
        """In a forked child: every call raises."""
        self.state.abandon()
        for topic in list(self._topics.values()):
            topic.abandon()


_opened = WeakList()


at_fork(__name__, abandon=_opened)
