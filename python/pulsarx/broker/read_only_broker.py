"""A folder opened beside its owner: reads what the owner publishes, changes nothing. What
`read_only=True` opens."""

from __future__ import annotations

import os
import threading
import weakref

from pulsarx import errors
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx._pycore.ledger.published_ends import PublishedEnds
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.catalogue.file import COMMIT, catalogue_file_name
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.policies.retention import RetentionPolicy
from pulsarx.broker.topics.partitioned_topic import check_is_whole
from pulsarx.broker.topics.read_only_topic import ReadOnlyTopic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.catalogue.state import LedgerRecord
    from pulsarx.topic_name import TopicName


class ReadOnlyBroker:
    """Any thread may call. Each read-only client has its own."""

    read_only = True

    def __init__(self, folder: str) -> None:
        self.files = FileSystem()
        self.decompressed_size_max = 1 << 27
        self.directory = DataDirectory.open(folder, files=self.files, read_only=True)
        self.catalogue = Catalogue.open(self.directory)
        self.topics: dict[str, ReadOnlyTopic] = {}
        self.lock = threading.RLock()
        self.state = "OPEN"
        self.reference_count = 1
        self.ends: PublishedEnds | None = None
        self._change_seen = -1
        self._find_ends()
        _opened.add(self)

    def _find_ends(self) -> None:
        """The published ends, if somebody lives who publishes them."""
        owner = self.directory.owner()
        if owner is None or self.directory.ends_path is None:
            self.ends = None
        elif self.ends is None:
            self.ends = PublishedEnds.open(self.directory.ends_path)

    def published(self, ledger: LedgerRecord) -> tuple[int, int, int]:
        """The end, entries and messages of an open ledger that its owner, who may be dead, has
        published; zeros when nobody knows."""
        path = self.directory.ends_path
        try:
            ends = self.ends or PublishedEnds.open(path)
            found: tuple[int, int, int] = ends.published(ledger.slot, ledger.ledger_id)
            return found
        except errors.PulsarException:
            return (0, 0, 0)  # there is no such file, or it has no such slot

    def refresh(self) -> bool:
        """Read what the owner committed since; whether there was anything."""
        with self.lock:
            before = self.catalogue.state.number
            self._find_ends()
            self.catalogue.refresh()
            return bool(self.catalogue.state.number != before)

    def refresh_if_changed(self) -> int:
        """The number of the last commit; reads the catalogue only if its folder changed since."""
        with self.lock:
            path = self.directory.catalogue_path
            try:
                change = os.stat(path).st_mtime_ns
            except OSError as error:
                raise errors.FolderError(f"look at {path}: {error.strerror}") from error
            following = catalogue_file_name(COMMIT, self.catalogue.state.number + 1)
            # The time of a folder may miss a second change within a few milliseconds: the next
            # commit's name does not.
            if change != self._change_seen or os.path.exists(f"{path}/{following}"):
                self.refresh()
                self._change_seen = change
            return int(self.catalogue.state.number)

    def topic(self, name: TopicName, *, create: bool = False) -> ReadOnlyTopic:
        self.check_open()
        with self.lock:
            full = str(name)
            found = self.topics.get(full)
            if found is None:
                self.refresh()
                record = self.catalogue.state.topics.get(full)
                if record is None:
                    raise errors.TopicNotFound(
                        f"{full} in {self.directory.path}, which is opened read_only"
                    )
                check_is_whole(self.catalogue.state, name)
                found = self.topics[full] = ReadOnlyTopic(self, record)
            return found

    def retention_in(self, namespace: str) -> tuple[RetentionPolicy, bool]:
        policies = self.catalogue.state.namespaces.get(namespace)
        if policies is None:
            raise errors.TopicNotFound(f"there is no namespace {namespace}")
        found = policies.get("retention")
        return (RetentionPolicy(), False) if found is None else (RetentionPolicy(**found), True)

    def set_retention(self, namespace: str, policy: RetentionPolicy) -> None:
        raise errors.OperationNotSupported("set_retention: the client was opened read_only")

    def check_open(self) -> None:
        if self.state == "FORKED":
            raise errors.ForkedError(
                "the client was opened before this process was forked; open one of its own"
            )
        if self.state != "OPEN":
            raise errors.AlreadyClosed("client")

    def close(self) -> None:
        self.state = "CLOSED"
        if self.ends is not None:
            self.ends.close_file()
        self.directory.close()

    def abandon(self) -> None:
        """In a forked child: every call raises."""
        self.state = "FORKED"
        for topic in list(self.topics.values()):
            topic.abandon()


_opened: weakref.WeakSet[ReadOnlyBroker] = weakref.WeakSet()


def _abandon_all() -> None:
    for broker in list(_opened):
        broker.abandon()


os.register_at_fork(after_in_child=_abandon_all)
