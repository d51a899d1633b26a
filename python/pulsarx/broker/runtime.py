"""The runtime that the parts of a broker share: clock, options, catalogue, files, threads. Topics,
ledgers and subscriptions get it instead of the broker, which they do not know.
"""

from __future__ import annotations

from pulsarx._pycore.ground.interval_job import IntervalJob
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx._pycore.ground.locks import Lock, RLock
from pulsarx._pycore.ground.open_state import OpenState
from pulsarx._pycore.ground.plain_json import json_bytes, json_value
from pulsarx._pycore.ledger.published_ends import PublishedEnds
from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.folder.reserve import with_reserve
from pulsarx.broker_options import BrokerOptions
from pulsarx.clock import ManualClock, system_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pulsarx._pycore.cursor.ack_tracker import AckTracker
    from pulsarx._pycore.publish.completion_queue import CompletionQueue
    from pulsarx.broker.catalogue.draft import Operation
    from pulsarx.broker.catalogue.log import CatalogueLog
    from pulsarx.broker.catalogue.records import SchemaRecord, SubscriptionRecord
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.folder.cursor_listing import CursorListing
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.folder.directory_flush import FlushedTogether
    from pulsarx.broker.folder.file_operations import FileOperations
    from pulsarx.broker.folder.memory_directory import MemoryDirectory, MemoryFiles
    from pulsarx.broker.policies.policy_store import PolicyStore
    from pulsarx.broker.schemas.registry import SchemaRegistry
    from pulsarx.broker.transactions.broker_transaction import BrokerTransaction
    from pulsarx.broker.transactions.coordinator import TransactionCoordinator
    from pulsarx.broker.transactions.transaction_log import LeftTransaction, TransactionLog
    from pulsarx.clock import Clock, SystemClock
    from pulsarx.processes.owner.arrivals import Arrivals
    from pulsarx.randomness import Randomness

DURABILITIES = {"sync": 1, "interval": 2, "os": 3}  # Durability of entry_publisher
# Nothing is trimmed so long after other processes have lost the owner of the folder. What they sent
# and is not confirmed has timed out then, unless they want otherwise.
SPARED_MS = 30_000
DURABLE = ("durability", "flush_interval_ms")  # settings
SHARED = (*DURABLE, "options")  # by all processes that use a folder
_USUAL = BrokerOptions()


class BrokerSettings:
    """The settings on which the clients of one folder must agree, if they ask for it. A value."""

    __slots__ = ("clock", "durability", "flush_interval_ms", "options", "_asked", "_randomness")
    _NAMES = ("clock", "durability", "flush_interval_ms", "options", "randomness")

    def __init__(
        self,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
        durability: str | None = None,
        flush_interval_ms: int | None = None,
        options: BrokerOptions | None = None,
    ) -> None:
        """None: the default, or what the broker has when it is open already."""
        self.clock: Clock | SystemClock = clock or system_clock()
        self.durability: str = durability or "sync"
        self.flush_interval_ms: int = flush_interval_ms or 100
        self.options: BrokerOptions = options or BrokerOptions()
        self._randomness = randomness
        given = (clock, durability, flush_interval_ms, options, randomness)
        self._asked = [name for name, value in zip(self._NAMES, given) if value is not None]

    @property
    def randomness(self) -> Randomness:
        """The given one, or the operating system's, which opening a folder does not load."""
        if self._randomness is None:
            from pulsarx.randomness import Randomness

            self._randomness = Randomness()
        return self._randomness

    @classmethod
    def of_owner(cls, values: dict[str, Any]) -> BrokerSettings:
        """The settings of an owner in another process, as its `shared` says them. ValueError: an
        option that there is not."""
        options = BrokerOptions(**values["options"])
        return cls(None, None, values["durability"], values["flush_interval_ms"], options)

    def shared(self) -> dict[str, Any]:
        """The settings that all processes which share a folder have from its owner, as JSON says
        it."""
        return {
            "durability": self.durability,
            "flush_interval_ms": self.flush_interval_ms,
            "options": self.options.as_dict(),
        }

    def as_text(self) -> str:
        """The settings of `shared` as text for `LOCK`: one line of ASCII, without options that are
        usual."""
        unusual = {name: mine for name, (mine, _) in self.options.differences(_USUAL).items()}
        return json_bytes({**self.shared(), "options": unusual}).decode("ascii")

    def after(self, left: str) -> BrokerSettings:
        """These settings completed by an earlier owner's, from its as_text. An owner of another
        version may have settings that are unknown here; then nothing is taken over."""
        try:
            return self.completed_by(BrokerSettings.of_owner(json_value(left.encode())))
        except (ValueError, TypeError, KeyError):
            return self

    def completed_by(self, stood: BrokerSettings) -> BrokerSettings:
        """These, and what nobody asked for as it is there."""
        merged = BrokerSettings(self.clock, self._randomness)
        merged._asked = self._asked
        for name in SHARED:
            setattr(merged, name, getattr(self if name in self._asked else stood, name))
        return merged

    def also_asked(self, by: BrokerSettings) -> BrokerSettings:
        """The same, asked for by those who agree, too."""
        merged = self.completed_by(self)
        merged._asked = [name for name in self._NAMES if name in (*self._asked, *by._asked)]
        return merged

    def differences(self, stand: BrokerSettings, in_memory: bool) -> dict[str, tuple[Any, Any]]:
        """name: (asked for, what stands), of what is otherwise in these; broker options by their
        own names. Nobody can tell how durable memory is."""
        asked = [name for name in self._asked if not (in_memory and name in DURABLE)]
        found = {
            name: (getattr(self, name), getattr(stand, name))
            for name in asked
            if name != "options" and getattr(self, name) != getattr(stand, name)
        }
        if "options" in asked:
            found.update(self.options.differences(stand.options))
        return found


class BrokerRuntime:
    """The shared parts of one broker that owns its folder, or its memory. Any thread may call.

    background: seals full ledgers, trims, closes what was forgotten. roll_overs: prepares ledgers,
    which nothing else may delay. flushes: what the flush interval is over for. compactions: of
    topics, one at a time. offloads: of topics, one at a time, and what tidies behind them.
    completions: callbacks.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        directory: DataDirectory | MemoryDirectory,
        log: CatalogueLog | None,
    ) -> None:
        """log: of the catalogue, when this process knows it already."""
        self.settings = settings
        self.clock: Clock | SystemClock = settings.clock
        self.options: BrokerOptions = settings.options
        stamps = "AppendBrokerTimestampMetadataInterceptor"
        # Of what entries are stored with its time; None: with none.
        self.stamp_clock: Clock | SystemClock | None = (
            self.clock if stamps in self.options.broker_entry_metadata_interceptors else None
        )
        self.durability: str = settings.durability
        self.durability_code: int = DURABILITIES[settings.durability]
        self.decompressed_size_max: int = max(settings.options.max_message_size, 1 << 27)
        self.directory = directory
        self.files: FileOperations | MemoryFiles = directory.files
        self.catalogue: Catalogue = Catalogue.open(directory, log=log, also=self._made_at_opening)
        if any(topic.ledgers for topic in self.catalogue.state.topics.values()):
            directory.check_mounted()
        self._lock = Lock()
        self._transaction_log: TransactionLog | None = None
        # That the owner before has left open, by topic and number; while they are taken up.
        self.taken_up: dict[str, dict[int, BrokerTransaction]] = {}
        # The entries that ledgers had which are held back, when an owner closed, by their ids.
        self.held_entries: dict[int, int] = {}
        self.left_transactions: dict[int, LeftTransaction] = self._take_over_transactions()
        self.ends: Any = self._open_ends()
        self._forget_ends()
        # Non-persistent topics without partitions, which no catalogue knows, with their schemas.
        # The directory of topics changes it, and the registry of schemas the values.
        self.volatile: dict[str, tuple[SchemaRecord, ...]] = {}
        self._policies: PolicyStore | None = None
        self._policies_lock = Lock()
        self.tell_policy_changes: Callable[[], object] | None = None  # the broker's
        self.make_room: Callable[[], object] | None = None  # of the directory of topics
        self._room_is_wanted = False
        self.catalogue.when_full = self.want_room
        self.state: OpenState = OpenState("client")
        self.roll_overs: JobQueue = JobQueue("pulsarx-roll-over")
        self.background: JobQueue = JobQueue("pulsarx-background")
        self.flushes: JobQueue = JobQueue("pulsarx-flush")
        self.compactions: JobQueue = JobQueue("pulsarx-compaction")
        self.offloads: JobQueue = JobQueue("pulsarx-offload")
        # What the histories of topics in the object store were made of, by place and topic, as far
        # as known, with their digests, and the highest number of one that this owner has written;
        # of jobs of that queue.
        self.histories: dict[tuple[str, str], tuple[tuple[Any, ...], str, str]] = {}
        self.history_number: int = 0
        for each in self.job_queues:
            self._let_clock_wait_for(each)
        self._catalogue_flush = self.after_flush_interval(self.catalogue.flush)
        self._completions: CompletionQueue | None = None
        self._cursors: CursorListing | None = None
        self._schemas: SchemaRegistry | None = None
        self._transactions: TransactionCoordinator | None = None
        self._producer_count = 0
        self.damage_count: int = 0  # damaged places that were met since the folder was opened
        # Other processes look, when they have a new owner, what the last one stored of theirs.
        is_shared = getattr(directory, "is_shared", False)
        self.trims_from_ms: int = self.clock.now_ms() + SPARED_MS if is_shared else 0
        # Of consumers, what it may not have recorded: they are awaited from now on.
        guests = getattr(directory, "guests", ())
        self._arrivals = self._await(guests) if guests else None
        self.attach_lock: Lock = Lock()  # one attach at a time
        self.parts_lock: Lock = Lock()  # a part of a topic is made that most do without
        # Behind the locks of topics: subscriptions are made on topics that have no ledger yet, or
        # it is said of a topic that it gets its first one.
        self.first_ledgers: RLock = RLock()
        # Whether the folder has one for the sequences of producers; None: nobody has looked yet.
        self.keeps_sequences: bool | None = None

    def want_room(self) -> None:
        """Free in the background what is acknowledged. Any thread, with any lock."""
        if not self._room_is_wanted:
            self._room_is_wanted = True
            self.background.post(self._make_room)

    def _make_room(self) -> None:
        self._room_is_wanted = False
        if self.make_room is not None:
            self.make_room()

    def _made_at_opening(self, state: CatalogueState) -> list[Operation]:
        return changes.system_namespace(state) if self.options.system_topic_enabled else []

    @property
    def job_queues(self) -> tuple[JobQueue, ...]:
        """In the order they are to be closed: one may put jobs into those behind it."""
        return self.offloads, self.compactions, self.roll_overs, self.background, self.flushes

    def _open_ends(self) -> PublishedEnds:
        path, epoch = self.directory.ends_path, self.catalogue.epoch
        if path is None:
            return PublishedEnds.memory(epoch)
        return with_reserve(self.files, lambda: PublishedEnds.create(path, epoch))

    def _take_over_transactions(self) -> dict[int, LeftTransaction]:
        if not self.catalogue.state.next_transaction or self.directory.ends_path is None:
            return {}
        from pulsarx.broker.transactions.taking_up import take_over_log

        return take_over_log(self)

    def _forget_ends(self) -> None:
        """Forget the ends that dead owners published, but for ledgers that are to be recovered."""
        left = self.ends.left_ids()
        topics = self.catalogue.state.topics.values() if left else ()
        unsealed = {
            ledger.ledger_id
            for topic in topics
            for ledger in topic.ledgers
            if ledger.state != "sealed"
        }
        for ledger_id in left:
            if ledger_id not in unsealed:
                self.ends.forget_left(ledger_id)

    def _let_clock_wait_for(self, jobs: JobQueue) -> None:
        if isinstance(self.clock, ManualClock):
            self.clock.settles(jobs)

    @property
    def randomness(self) -> Randomness:
        return self.settings.randomness

    @staticmethod
    def _await(pids: Iterable[int]) -> Arrivals:
        from pulsarx.processes.owner.arrivals import Arrivals

        return Arrivals(pids)

    @property
    def arrivals(self) -> Arrivals:
        """The processes of the last owner. Where it had none, which is the rule, opening the folder
        does not load what waits for them."""
        found = self._arrivals
        if found is None:
            with self._lock:
                found = self._arrivals = self._arrivals or self._await(())
        return found

    @property
    def awaits_nobody(self) -> bool:
        """Whether nobody is awaited any more, as is_over of arrivals says it, without loading what
        waits: a finalizer that closes a producer when the interpreter ends asks for it, too."""
        return self._arrivals is None or self._arrivals.is_over

    @property
    def completions(self) -> CompletionQueue:
        """Made with the first producer, as everything that not every client needs."""
        with self._lock:
            if self._completions is None:
                from pulsarx._pycore.publish.completion_queue import CompletionQueue
                from pulsarx.results import Result, result_of

                self._completions = CompletionQueue(Result.Ok, result_of)
                self._let_clock_wait_for(self._completions.jobs)
                self._let_clock_wait_for(self._completions.timeouts)
            return self._completions

    def runs_callbacks_here(self) -> bool:
        """Whether the calling thread is the one that callbacks run in."""
        made = self._completions
        return made is not None and (made.jobs.runs_here() or made.timeouts.runs_here())

    @property
    def policies(self) -> PolicyStore:
        """Made with the first topic."""
        found = self._policies
        if found is None:
            from pulsarx.broker.policies.policy_store import PolicyStore

            with self._policies_lock:
                found = self._policies
                if found is None:
                    found = PolicyStore(self.catalogue, self.options, self.volatile)
                    if self.tell_policy_changes is not None:
                        found.tell_by(self.tell_policy_changes)
                    self._policies = found
        return found

    @property
    def schemas(self) -> SchemaRegistry:
        """Made with the first schema."""
        with self._lock:
            if self._schemas is None:
                from pulsarx.broker.schemas.registry import SchemaRegistry

                self._schemas = SchemaRegistry(
                    self.catalogue, self.policies, self.clock.now_ms, volatile=self.volatile
                )
            return self._schemas

    @property
    def transactions(self) -> TransactionCoordinator:
        """Made with the first transaction."""
        with self._lock:
            if self._transactions is None:
                from pulsarx.broker.transactions.coordinator import TransactionCoordinator

                self._transactions = TransactionCoordinator(self)
            return self._transactions

    @property
    def transaction_log(self) -> TransactionLog:
        """Made with the first transaction that outlives its owner."""
        with self._lock:
            if self._transaction_log is None:
                from pulsarx.broker.transactions.transaction_log import TransactionLog

                at = self.directory
                self._transaction_log = TransactionLog(
                    at.files, at.catalogue_path, at.folder_id, self.catalogue.epoch
                )
            return self._transaction_log

    def close_transactions(self, *, all_closed: bool) -> None:
        """Nothing more is noted of those that go on. Behind the closing of their topics, of which
        none failed if all_closed."""
        if self._transaction_log is not None:
            flushed = all_closed and self.durability != "os"
            self._transaction_log.close(self.held_entries, flushed=flushed)

    @property
    def transactions_if_any(self) -> TransactionCoordinator | None:
        """The coordinator, where one was asked for."""
        return self._transactions

    def close_completions(self) -> None:
        """Run the callbacks that are still owed."""
        if self._completions is not None:
            self._completions.close()

    def next_producer_name(self) -> str:
        """A name as Pulsar standalone gives it to producers: cluster, instance, number. Unique
        within an epoch of the folder."""
        with self._lock:
            self._producer_count += 1
            return f"standalone-{self.catalogue.epoch}-{self._producer_count - 1}"

    def note_damage(self, places: int = 1) -> None:
        """Count damaged places, which the log tells, for the metrics of the folder."""
        with self._lock:
            self.damage_count += places

    # Cursors --------------------------------------------------------------------------------------

    @property
    def keeps_cursors(self) -> bool:
        """Whether subscriptions have files."""
        return self.directory.ends_path is not None

    def open_tracker(self, topic: str, record: SubscriptionRecord) -> AckTracker:
        """The cursor of a subscription as it was left; one without a file is not kept yet."""
        if not self.keeps_cursors:
            return self._tracker(topic, record, [])
        tracker = self._tracker(topic, record, self._listing().take(record.cursor_id))
        for text in tracker.damage:
            import logging

            logging.getLogger("pulsarx").error("subscription %s: %s", record.name, text)
        if tracker.damage:
            self.note_damage()
        return tracker

    def allocate_cursor_id(self) -> int:
        """A fresh id, of which no cursor file is left."""
        cursor_id: int = self.catalogue.allocate_id()
        if self.keeps_cursors:
            for name in self._listing().take(cursor_id):
                # Its owner died before the catalogue knew it, so the id is given out again. Unless
                # there is another owner by now, on a file system whose locks do not hold.
                self.catalogue.refresh()
                self.directory.set_aside(f"{self.directory.path}/cursors/{name}")
        return cursor_id

    def new_tracker(
        self, topic: str, record: SubscriptionRecord, files: FileOperations | None = None
    ) -> AckTracker:
        """The cursor of an id that allocate_cursor_id gave, without a file yet. files: what it is
        made with; None: the broker's."""
        return self._tracker(topic, record, [], files)

    def files_of_new_cursors(self) -> FlushedTogether | None:
        """The files for several cursors made at a time; None: they have no files."""
        if not self.keeps_cursors:
            return None
        from pulsarx.broker.folder.directory_flush import FlushedTogether

        return FlushedTogether(self.files, f"{self.directory.path}/cursors")

    def list_cursors_again(self) -> None:
        """List the cursor files anew for the next topic, because one could not be opened."""
        if self._cursors is not None:
            self._cursors.list_again()

    def _listing(self) -> CursorListing:
        from pulsarx.broker.folder.cursor_listing import CursorListing

        with self._lock:
            if self._cursors is None:
                self._cursors = CursorListing(self.files, f"{self.directory.path}/cursors")
            return self._cursors

    def _tracker(
        self,
        topic: str,
        record: SubscriptionRecord,
        names: list[str],
        files: FileOperations | None = None,
    ) -> AckTracker:
        from pulsarx._pycore.cursor.ack_tracker import AckTracker

        if not self.keeps_cursors:
            return AckTracker(None)
        from pulsarx._pycore.cursor.cursor_store import CursorStore
        from pulsarx.broker.folder.cursor_listing import cursor_place

        prefix, identity = cursor_place(self.directory, record.cursor_id)
        store = CursorStore(
            files or self.files, prefix, identity, names, topic=topic, subscription=record
        )
        return AckTracker(store)

    def flush_catalogue_soon(self) -> None:
        """Within the flush interval what was committed without a flush is durable."""
        self._catalogue_flush.arm()

    def stop_flushing(self) -> None:
        """Closing the catalogue flushes it."""
        self._catalogue_flush.close()

    # Time -----------------------------------------------------------------------------------------

    def after_flush_interval(self, flush: Callable[[], object]) -> IntervalJob:
        """A flush that runs within the interval after it was asked for, in real time whatever clock
        the broker has."""
        return IntervalJob(system_clock(), self.flushes, self.settings.flush_interval_ms, flush)
