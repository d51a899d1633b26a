"""The broker of one data directory in this process: its topics and what they share. Used by all
clients of the folder.

state    holds                                         left by
OPEN     clients hold references (registry)            release of the last one, process exit, fork
CLOSED   ledgers sealed, lock given back               -
FORKED   a child's copy: every call raises             -
"""

from __future__ import annotations

import os
from functools import partial

from pulsarx._pycore.ground.locks import Lock
from pulsarx.broker import life_log
from pulsarx.broker.runtime import BrokerRuntime
from pulsarx.errors import AlreadyClosed, FolderOwnedError
from pulsarx.ground.attempt import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.ground.open_state import OpenState
    from pulsarx.broker.catalogue.catalogue import Catalogue
    from pulsarx.broker.catalogue.log import CatalogueLog
    from pulsarx.broker.catalogue.records import DeletionRecord, SchemaRecord
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.folder.memory_directory import MemoryDirectory
    from pulsarx.broker.policies.policy_store import PolicyStore
    from pulsarx.broker.runtime import BrokerSettings
    from pulsarx.broker.schemas.registry import SchemaRegistry
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
    from pulsarx.broker.topics.system_topics import ChangeEvents
    from pulsarx.broker.topics.topic_directory import TopicDirectory
    from pulsarx.broker.transactions.broker_transaction import BrokerTransaction
    from pulsarx.topic_name import TopicName


class Broker:
    """Calls of the control plane: the main thread hands them over, any other thread makes them."""

    read_only = False
    is_guest = False

    def __init__(
        self,
        location: str | None,
        settings: BrokerSettings,
        *,
        brief: bool = False,
        take_log: Callable[[DataDirectory], CatalogueLog | None] | None = None,
    ) -> None:
        """location: a folder, None for memory. brief: owns the folder for one request; other
        openers wait and no control socket is opened. take_log: what this process knows of the
        catalogue already."""
        self.name: str = location or "memory:"
        folder: DataDirectory | None = None
        now_ms = settings.clock.now_ms()
        if location is None:
            from pulsarx.broker.folder.memory_directory import MemoryDirectory

            self.directory: DataDirectory | MemoryDirectory = MemoryDirectory(now_ms=now_ms)
        else:
            from pulsarx._pycore.ground.file_system import FileSystem
            from pulsarx.broker.folder.data_directory import DataDirectory

            folder = DataDirectory.open(location, files=FileSystem(), now_ms=now_ms, brief=brief)
            self.directory = folder
        try:
            self._begin(settings, brief, folder, take_log)
        except BaseException:
            self.directory.close()  # which unlocks the folder
            raise

    def _begin(
        self,
        settings: BrokerSettings,
        brief: bool,
        folder: DataDirectory | None,
        take_log: Callable[[DataDirectory], CatalogueLog | None] | None,
    ) -> None:
        log = None
        if folder is not None:
            if folder.guests:
                settings = _as_left(settings, folder)
            folder.settings = settings.as_text()
            log = take_log(folder) if take_log is not None else None
        self.runtime: BrokerRuntime = BrokerRuntime(settings, self.directory, log)
        self._is_brief = brief
        self.settings = settings
        self.catalogue: Catalogue = self.runtime.catalogue
        self.runtime.tell_policy_changes = self._tell_changes
        self.volatile: dict[str, tuple[SchemaRecord, ...]] = self.runtime.volatile
        self.ends: Any = self.runtime.ends
        self.state: OpenState = self.runtime.state
        self.post: Callable[[Callable[[], object]], object] = (
            self.runtime.background.post
        )  # native, as finalizers need it
        self.reference_count = 0  # the registry's
        self.is_kept = False  # by the registry, until the process ends
        self._lock = Lock()
        self._topics: TopicDirectory | None = None
        self.on_close: list[Callable[[], object]] = []  # steps before the topics close
        # What is called when roles may do more or less than before.
        self.on_permissions: list[Callable[[], object]] = []
        self.guest_service: Any = None  # serves other processes; made with the first one
        self.exclusive_count: int = 0  # clients that share the folder with no other process
        self._tell_opened(brief)
        self._change_events: ChangeEvents | None = None  # made with the first
        if self.catalogue.state.deletions:
            # Those there are now: a compaction may name a file soon that it is writing.
            left = list(self.catalogue.state.deletions.values())
            self.post(partial(self._finish_deletions, left))
        if self.catalogue.state.change_events and not brief:
            self.post(self._tell_left_changes)
        if self.runtime.left_transactions:
            from pulsarx.broker.transactions.taking_up import take_up

            try:
                take_up(self.runtime, partial(self.topic, create=False))
            except BaseException:
                attempt(self.close)  # with the topics that were opened, and the deadlines
                raise

    def permissions_have_changed(self) -> None:
        """Roles may do more or less than before. Durable already."""
        for tell in list(self.on_permissions):
            tell()

    def _tell_changes(self) -> None:
        if not self.catalogue.state.change_events:
            return
        with self._lock:
            if self._change_events is None:
                from pulsarx.broker.topics.system_topics import ChangeEvents

                self._change_events = ChangeEvents(self.runtime, lambda: self.topics)
        self._change_events.tell()

    def _tell_left_changes(self) -> None:
        """Tell the policy changes that an earlier owner could not tell."""
        if self.state.is_open:
            self.policies.tell_changes()

    def _finish_deletions(self, left: list[DeletionRecord]) -> None:
        from pulsarx.broker.topics.topic_deletion import remove_files

        remove_files(self.runtime, left, with_cursors=True)

    def _tell_opened(self, brief: bool) -> None:
        if life_log.listener(life_log.INFO) is None:
            return
        state = self.catalogue.state
        left = sum(
            ledger.state == "open" for topic in state.topics.values() for ledger in topic.ledgers
        )
        epoch = self.catalogue.epoch
        if left:
            life_log.info(
                "%s: taken over from an owner that did not close it; %d ledgers are recovered when "
                "their topics are opened",
                self.name, left,
            )  # fmt: skip
        life_log.info(
            "%s: opened%s, epoch %d, %d topics",
            self.name, " for one request" if brief else "", epoch, len(state.topics),
        )  # fmt: skip

    @property
    def policies(self) -> PolicyStore:
        return self.runtime.policies

    @property
    def topics(self) -> TopicDirectory:
        """Made when the first topic is named: opening a folder is not to pay for it."""
        self.state.require_open()  # before the lock: in a forked child it may be taken for ever
        with self._lock:
            if self._topics is None:
                from pulsarx.broker.topics.topic_directory import TopicDirectory

                self._topics = TopicDirectory(self.runtime)
            return self._topics

    def lookup(self, name: TopicName, *, create: bool = True) -> AnyTopic | PartitionedTopic:
        """See TopicDirectory."""
        return self.topics.lookup(name, create=create)

    def topic(self, name: TopicName, *, create: bool = True) -> AnyTopic:
        """See TopicDirectory."""
        return self.topics.topic(name, create=create)

    @property
    def schemas(self) -> SchemaRegistry:
        """See SchemaRegistry."""
        return self.runtime.schemas

    def refresh(self) -> None:
        """The owner's catalogue is always up to date."""

    def refresh_if_changed(self) -> int:
        """The number of the last commit."""
        return int(self.catalogue.state.number)

    def runs_callbacks_here(self) -> bool:
        """See BrokerRuntime."""
        return self.runtime.runs_callbacks_here()

    def exclude_others(self) -> None:
        """Share the folder with no other process, until share_again. FolderOwnedError: it is
        shared by now."""
        self.exclusive_count += 1  # first: who comes from now on is refused
        if self.guest_service is not None and self.guest_service.has_guests():
            self.exclusive_count -= 1
            raise FolderOwnedError(
                detail=f"open {self.name} with exclusive=True: other processes use it through this "
                "one, which owns it. Close it there first",
                folder=self.name,
                pid=os.getpid(),
            )

    def share_again(self) -> None:
        """A client that was opened exclusive is closed."""
        self.exclusive_count -= 1

    # Life -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Send open batches, seal ledgers, write the catalogue, give the lock back. Idempotent."""
        if not self.state.close():
            return
        try:
            failure = attempt(self._close_parts)
        finally:
            self.directory.close()  # whatever happens
        if failure is not None:
            raise failure
        life_log.info("%s: closed, epoch %d", self.name, self.catalogue.epoch)

    def _close_parts(self) -> None:
        """Each of them bears to be closed twice."""
        runtime = self.runtime
        guests = self.guest_service is not None and self.guest_service.has_guests()
        topics: list[AnyTopic] = []
        if self._topics is not None:
            self._topics.close_checks()
            topics = self._topics.open_topics()
        failure: Exception | None = None
        for step in list(self.on_close):
            # The control socket finishes what it is doing, with the topics still open.
            failure = attempt(step) or failure
        if self.guest_service is not None:  # last: nobody else is there to get what guests leave
            failure = attempt(self.guest_service.close) or failure
        for producer in [each for topic in topics for each in topic.producers.open_producers()]:
            error = attempt(producer.shut)
            # A forgotten producer may be closed in the background at the same time.
            if not isinstance(error, AlreadyClosed):
                failure = error or failure
        transactions = runtime.transactions_if_any
        if transactions is not None:
            failure = attempt(partial(transactions.abort_all, _ends_here)) or failure
            failure = attempt(transactions.settle) or failure
        if self._topics is not None:
            self._topics.compaction_monitor.close()
            if self._topics.offload_monitor is not None:
                self._topics.offload_monitor.close()
        steps = (runtime.close_completions, runtime.stop_flushing)
        for step in (*steps, *(each.close for each in runtime.job_queues)):
            failure = attempt(step) or failure
        for topic in topics:
            failure = attempt(topic.close) or failure
        if not (guests or self._is_brief or runtime.clock.now_ms() < runtime.trims_from_ms):
            failure = attempt(lambda: self.directory.share(False)) or failure
        if self.catalogue.state.offloads:
            from pulsarx.broker.offload.fetched_ledgers import fetched_ledgers

            fetched_ledgers.forget(self.directory.path)
        close_transactions = partial(runtime.close_transactions, all_closed=failure is None)
        for step in (close_transactions, self.catalogue.close, self.directory.close):
            failure = attempt(step) or failure
        runtime.ends.close_file()
        if failure is not None:
            raise failure

    def abandon(self) -> None:
        """In a forked child: every call raises, nothing is touched."""
        self.state.abandon()
        if self._topics is not None:
            self._topics.abandon()


def _ends_here(transaction: BrokerTransaction) -> bool:
    return not transaction.goes_on


def _as_left(settings: BrokerSettings, folder: DataDirectory) -> BrokerSettings:
    """The settings asked for, and else those of the last owner if processes live that used the
    folder through it: they have its settings, and may have asked for them."""
    from pulsarx.processes.owner.arrivals import is_running

    is_used = any(is_running(pid) for pid in folder.guests)
    return settings.after(folder.settings) if is_used else settings
