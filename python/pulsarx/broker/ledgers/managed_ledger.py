"""A topic's messages: an ordered list of ledgers of which the last may be open.

state      holds                                        left by
IDLE       no ledger is open                            open_writer (first publish)
OPEN       tail.writer takes entries                    the tail asks (prepare), roll_over, attach,
                                                        terminate, close
PREPARED   tail.writer takes entries, and an empty      a publisher that finds the ledger full
           ledger behind it is ready                    (to OPEN, natively; settle_left follows),
                                                        attach, terminate, close
TERMINATED no ledger is open, and none will be          -
CLOSED     every ledger is sealed                       -
DELETED    the catalogue knows none of them             -

A prepared ledger is durable and named in the catalogue, and no reader is told of it. It belongs to
the list from the moment a publisher has switched to it and the full one in front of it will not be
seen to grow any more; what the catalogue must be told of that is told later.
"""

from __future__ import annotations

import os
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.file_system import may_exist
from pulsarx._pycore.ground.locks import Lock, RLock
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ledger.ledger_recovery import LedgerRecovery, seal_recovered
from pulsarx._pycore.ledger.ledger_tail import LedgerSpan, LedgerTail, fence, published_counts
from pulsarx._pycore.ledger.ledger_writer import LedgerWriter
from pulsarx.broker import life_log
from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.records import LEDGER_PREPARED
from pulsarx.broker.folder.reserve import SEALING_LEAVES, with_reserve
from pulsarx.broker.ledgers.aborted_messages import AbortedMessages, kept_runs, runs_without
from pulsarx.broker.ledgers.ledger_gone import LedgerTrimmed
from pulsarx.broker.ledgers.ledger_indexes import LedgerIndexes
from pulsarx.broker.ledgers.ledger_list import (
    NO_IDS,
    LedgerList,
    ends_of,
    known_counts,
    missing_file,
    open_compacted_file,
    open_ledger,
    published_messages,
)
from pulsarx.broker.ledgers.reopened_ledger import forget_reopened, reopened, tell_lost
from pulsarx.broker.ledgers.unflushed_ledgers import UnflushedLedgers
from pulsarx.broker.ledgers.written_name import written_name
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.ground.attempt import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.ledger.ledger_summary import LedgerSummary
    from pulsarx.broker.catalogue.records import CompactionRecord, LedgerRecord
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.ledgers.aborted_messages import Run
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.topic_name import TopicName


_NOTHING_SHOWN: tuple[list[LedgerRecord], bool, list[LedgerRecord]] = ([], False, [])


class ManagedLedger(LedgerList):
    """The ledgers of one topic of an owned data directory. Any thread; its lock orders changes of
    the list."""

    # An idle topic has one: a dict of so many names takes 1.5 KB.
    __slots__ = (
        "_aborted",
        "_closed",
        "_cut",
        "_deleted",
        "_held",
        "_in_memory",
        "_on_change",
        "_opened_at",
        "_seal_lock",
        "_settled_id",
        "_shown",
        "_summaries",
        "_switching",
        "_trimmed_messages",
        "_trimmed_size",
        "_unflushed",
        "_unsealed",
        "_unused",
        "_writers",
        "before_first",
        "has_begun",
        "is_unloaded",
        "lock",
        "passed_over",
        "runtime",
        "tail",
    )

    def __init__(
        self, runtime: BrokerRuntime, name: TopicName, on_change: Callable[[int], None]
    ) -> None:
        """on_change: told the id of each ledger that came, was prepared or sealed; of a new one
        before its first entry."""
        super().__init__(name, runtime.catalogue)
        self.runtime: BrokerRuntime = runtime
        self.lock: RLock = RLock()
        self._seal_lock = Lock()  # one seals at a time; behind `lock`
        self.tail: Any = LedgerTail(self, self.partition, runtime.roll_overs)
        minutes = runtime.options.managed_ledger_max_ledger_rollover_time_minutes
        self.tail.roll_over_ms = minutes * 60_000
        if runtime.durability == "interval":
            self.tail.flush = runtime.after_flush_interval(partial(self.flush, sealed=False))
        self._on_change = on_change
        self._writers: dict[int, LedgerWriter] = {}
        # Sealed and compacted ones that no file holds.
        self._in_memory: dict[int, LedgerWriter] = {}
        self._summaries: dict[int, LedgerSummary] = {}  # sealed, but the catalogue was not told
        # Their seal failed, or waits until no transaction holds them back.
        self._unsealed: tuple[LedgerWriter, ...] = ()
        self._switching = False
        self._cut: LedgerWriter | None = None  # closed by an attach that is going on
        self._unused: LedgerWriter | None = None  # prepared, and still to be discarded
        self._settled_id = 0  # of the newest prepared ledger whose use may be told
        # ledgers() for the list of the catalogue it was made of, with the last one or without
        self._shown = _NOTHING_SHOWN
        self._held = NO_IDS  # why they are not trimmed was said
        # What was published since this was opened, in ledgers that were trimmed since.
        self._trimmed_messages = self._trimmed_size = 0
        self._closed = False
        self._deleted = False
        self.is_unloaded: bool = False  # closed, and another object stands for the topic
        record = self.record()
        self.indexes: LedgerIndexes = LedgerIndexes(self, self._writers)
        # It has, had, or is about to have a ledger. Set with `first_ledgers` of the runtime.
        self.has_begun: bool = record is None or bool(record.ledgers or record.removed_ledger_id)
        self.before_first: Callable[[], object] | None = None  # called before the first ledger
        # A prepared one too, which may hold entries: its owner died before it could say so.
        listed = [] if record is None else record.ledgers
        self._unflushed: UnflushedLedgers | None = None  # there are none yet
        if listed and any(each.state == "sealed" for each in listed):
            self._unflushed = UnflushedLedgers(runtime, sealed_before=True)
        try:
            for ledger in listed:
                if ledger.state != "sealed":
                    self._recover(ledger)
            if self._writers:
                self.tail.transactions.show()
        except BaseException:
            self.let_go()
            raise
        record = self.record()
        # Called when a transaction has ended, with what subscriptions are to pass over since.
        self.passed_over: Callable[[list[Run]], object] | None = None
        self._aborted: AbortedMessages | None = None
        if record is not None and record.aborted:  # of few topics
            written = {each: writer.message_count for each, writer in self._writers.items()}
            self._aborted = AbortedMessages(self, kept_runs(record, written))
        # Whatever has a greater id came since this was opened.
        self._opened_at = record.removed_ledger_id if record else 0
        if listed:
            self._opened_at = max(self.ledger_ids(), default=self._opened_at)

    @property
    def aborted(self) -> AbortedMessages:
        found = self._aborted
        if found is None:  # made with the first that is aborted, or asked for
            with self.runtime.parts_lock:
                found = self._aborted = self._aborted or AbortedMessages(self, {})
        return found

    def ledgers(self) -> list[LedgerRecord]:
        listed = super().ledgers()
        if not listed or listed[-1].state != LEDGER_PREPARED:
            return listed
        used = self.tail.uses(listed[-1].ledger_id)
        of, with_last, shown = self._shown
        if of is not listed or with_last != used:
            shown = [*listed[:-1], listed[-1].used()] if used else listed[:-1]
            self._shown = (listed, used, shown)
        return shown

    def ledger_ids(self) -> list[int]:
        return [each.ledger_id for each in super().ledgers()]

    def begin(self) -> None:
        """A ledger is about to come. May be called with the lock."""
        if not self.has_begun:
            with self.runtime.first_ledgers:
                self.has_begun = True
        if self.before_first is not None:
            self.before_first()

    def open_writer(self) -> None:
        """Open a ledger for the next entry, if none is open."""
        if self.tail.writer is None:
            self.begin()
        with self.lock:
            self._check_open()
            if self.tail.writer is None:
                self._switch()

    def roll_over(self, writer: LedgerWriter) -> None:
        """Let the next entry go to a new ledger, for which the publisher waits: none was ready. The
        full one is sealed in the background."""
        with self.lock:
            if self.tail.writer is not writer:
                return
            self._check_open()
            if self.tail.switch_to_prepared(writer, self.runtime.clock.now_ms()):
                return  # it became ready while the lock was waited for
            # Fenced first: once readers go on to the next ledger, nothing may be added to this one.
            self._end(writer)
            self._switch()
            following = self.tail.writer
        # The next one may be gone by now, with the topic.
        life_log.debug(
            "%s: rolled over from ledger %d, %d entries, to ledger %d",
            self.name, writer.ledger_id, writer.entry_count, following.ledger_id,
        )  # fmt: skip
        self.runtime.background.post(lambda: self._seal_later(writer))

    def want_room(self) -> None:
        """A publisher found none. It is refused, and the next one has what can be freed."""
        self.runtime.want_room()

    def end_open(self) -> None:
        """Seal the open ledger in the background, if there is an entry in it. The next publish
        opens one."""
        with self.lock:
            writer = self.tail.writer
            if self._closed or self._switching or writer is None or not writer.entry_count:
                return
            self.begin_attach()
            self.end_attach()

    def begin_attach(self) -> None:
        """Append to no ledger any more, until `end_attach`. The lock is held all the while.

        What is prepared is discarded: the ids of the ledgers that come now are greater."""
        self._check_open()
        self._check_not_switching()
        self._discard_prepared()
        writer = self.tail.writer
        if writer is not None:
            self._end(writer)
            self._commit_use()
            self.tail.switch(None)
        self._cut = writer
        self._switching = True

    def end_attach(self) -> None:
        """Whether or not something was attached, or begun: the next publish opens a ledger."""
        writer, self._cut = self._cut, None
        self._switching = False
        if writer is not None:
            self.runtime.background.post(partial(self._seal_later, writer))

    def _end(self, writer: LedgerWriter) -> None:
        """Nothing is added to the open ledger any more, and all of it is durable, with what is in
        front of it."""
        fence(writer)
        if self.runtime.durability != "os":
            writer.flush()
        self._settled_id = max(self._settled_id, writer.ledger_id)

    def _check_not_switching(self) -> None:
        if self._switching:
            # The lock does not stop its own thread: a signal handler or a finalizer that publishes.
            raise errors.NotAllowedError(
                detail=f"publish to {self.name}: a ledger of it is being opened by this very thread"
            )

    def _switch(self) -> None:
        """Let the next entry go to a new ledger."""
        self._check_not_switching()
        self._switching = True
        try:
            self._discard_prepared()
            self.tail.switch(self._create_writer(changes.add_ledger), self.runtime.clock.now_ms())
        except errors.StorageFullError:
            self.want_room()
            raise
        finally:
            self._switching = False

    def _check_open(self) -> None:
        """Refuse to begin a ledger, and whatever else changes the list."""
        if self._deleted:
            raise errors.TopicNotFound(detail=f"{self.name}: it was deleted")
        if self.is_unloaded:
            raise TopicGone(detail=f"{self.name}: it was unloaded")
        if self._closed:
            raise errors.AlreadyClosed(detail=f"topic {self.name}")
        if self.is_terminated:
            raise errors.TopicTerminated(
                detail=f"{self.name} is terminated and takes no more messages"
            )

    # Ending ---------------------------------------------------------------------------------------

    @property
    def is_terminated(self) -> bool:
        """Whether it takes no more messages."""
        record = self.record()
        return record is not None and record.terminated

    def terminate(self) -> None:
        """Take no more messages, for good. What was published before stays. Durable on return."""
        with self.lock:
            if self.is_terminated:
                return
            self.begin_attach()
            try:
                self._commit([changes.terminate_topic(self.name)])
            finally:
                self.end_attach()
            self.tail.wake()  # for consumers that are told of it

    def cut(self) -> int:
        """Seal the open ledger now, so that the next message goes to a new one. The id of the last
        ledger that was there then, 0: there was none."""
        with self.lock:
            self._check_not_closed()
            terminated = self.is_terminated
            if not terminated:
                self.begin_attach()
            writer, self._cut = self._cut, None
            self._switching = False
            ledgers = self.ledgers()
        self.runtime.roll_overs.wait()  # for what was left for a prepared ledger before
        if writer is not None:
            try:
                self._seal_later(writer)
            except errors.AlreadyClosed:
                self._check_not_closed()  # deleted meanwhile
                raise
        return ledgers[-1].ledger_id if ledgers else 0

    def _check_not_closed(self) -> None:
        try:
            self._check_open()
        except errors.TopicTerminated:
            pass

    def begin_deletion(self) -> None:
        """Append to no ledger any more, until `end_deletion`. The lock is held all the while."""
        self._check_not_closed()
        self._check_not_switching()
        if self._unused is None:
            self._unused = self.tail.take_prepared()  # no publisher switches to it from here on
        writer = self.tail.writer
        if writer is not None:
            fence(writer)
            if writer.before is not None and self.runtime.durability != "os":
                # Without a writer the ledger in front of it is taken to have ended.
                attempt(writer.flush)
            self.tail.switch(None)
        self._cut = writer
        self._switching = True

    def end_deletion(self, deleted: bool) -> None:
        """deleted: the catalogue knows none of the ledgers any more. Else the next publish opens
        one."""
        writer, self._cut = self._cut, None
        self._switching = False
        if not deleted:
            if writer is not None:
                # Before readers may go on to the next ledger: what fails here its senders are told.
                attempt(writer.flush)
                self._settled_id = max(self._settled_id, writer.ledger_id)
                self.runtime.background.post(partial(self._seal_later, writer))
            return
        self._closed = self._deleted = True
        self._unused = None
        if self.tail.flush is not None:
            self.tail.flush.close()
        writers = list(self._writers.values())
        self._writers.clear()
        self._forget_memory()
        self._unsealed = ()
        self.tail.wake()
        # Behind the seals that go on there.
        self.runtime.background.post(partial(self._let_go, writers))

    def _let_go(self, writers: list[LedgerWriter]) -> None:
        """The topic is deleted: close its ledgers. Messages that wait to be confirmed are flushed
        first, for they were stored."""
        for writer in writers:
            if self.runtime.durability != "os":
                attempt(writer.flush)
            self.tail.detach(writer)
            writer.close()
            self.runtime.ends.release(writer.slot)

    # Preparing ------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Have an empty ledger ready behind the open one. A job of the roll-over lane.

        What fails is no error for anybody: the publisher that finds the ledger full then makes the
        next one itself, and is told.
        """
        if self._switching:
            return  # whatever it is, the ledger after it asks anew
        with self.lock:
            writer = self.tail.writer
            if self._closed or self._switching or self.tail.has_prepared:
                return
            if writer is None or writer.state != "open":
                return
            self._switching = True
            try:
                self._discard_prepared()
                prepared = self._create_writer(changes.prepare_ledger)
                self.tail.prepare(prepared)
            except errors.PulsarException as error:
                life_log.debug(
                    "%s: the ledger behind ledger %d cannot be prepared now: %s",
                    self.name, writer.ledger_id, error,
                )  # fmt: skip
                self.tail.ask_again(self.runtime.clock.now_ms())
            finally:
                self._switching = False

    def settle_left(self) -> None:
        """Publishers have gone on to a prepared ledger: make the full one durable, tell those who
        are to know, and seal it. A job of the roll-over lane."""
        with self.lock:
            left = self.tail.take_left()
        for writer in left:
            following = next(
                (each for each in list(self._writers.values()) if each.before is writer), None
            )
            life_log.debug(
                "%s: rolled over from ledger %d, %d entries, to ledger %d",
                self.name, writer.ledger_id, writer.entry_count,
                # Sealed by now where its publisher was quicker.
                self.ledger_id_after(writer.ledger_id) if following is None
                else following.ledger_id,
            )  # fmt: skip
            try:
                if self.runtime.durability != "os":
                    writer.flush()
                # Not before: where the catalogue has it as open, the one in front has ended.
                if following is not None:
                    self._settled_id = max(self._settled_id, following.ledger_id)
            except errors.AlreadyClosed:
                continue  # the topic was closed meanwhile, and the ledger sealed
            finally:
                self.tail.wake()
            self.runtime.background.post(partial(self._seal_later, writer))

    def _discard_prepared(self) -> None:
        """Remove the ledger that is prepared and was not used. The lock is held. Where that fails
        nothing can be added behind it: it is tried again first."""
        if self._unused is None:
            self._unused = self.tail.take_prepared()
        if self._unused is not None:
            self._commit([changes.remove_ledgers(self.name, [self._unused.ledger_id])])
            writer, self._unused = self._unused, None
            self._release(writer)

    def _commit_use(self) -> None:
        """Say at once that the prepared ledger is in use, where others are to come behind it."""
        listed = super().ledgers()
        if listed and listed[-1].state == LEDGER_PREPARED:
            self._commit([])

    def _commit(self, operations: list[dict[str, Any]]) -> None:
        """Commit, and say with it that the prepared ledger is in use, if it is and nobody has."""

        def with_use(state: CatalogueState) -> list[dict[str, Any]]:
            ledgers = state.topics[self.name].ledgers
            if ledgers and ledgers[-1].state == LEDGER_PREPARED:
                ledger_id = ledgers[-1].ledger_id
                if ledger_id <= self._settled_id:
                    return [changes.use_ledger(self.name, ledger_id), *operations]
            return operations

        self.runtime.catalogue.commit(with_use)

    def _create_writer(self, addition: Callable[[str, int, str, int], Any]) -> LedgerWriter:
        """addition: of changes, the operation that names the ledger in the catalogue."""
        runtime = self.runtime
        ledger_id = runtime.catalogue.allocate_id()
        identity = runtime.randomness.uuid_bytes()
        path = runtime.directory.prepare_ledger_path(ledger_id)
        if path is not None and os.path.exists(path):
            # Its owner died before the catalogue knew it, so the id is given out again. Unless
            # there is another owner by now, on a file system whose locks do not hold.
            runtime.catalogue.refresh()
            runtime.directory.set_aside(path)
        # Of a prepared one it follows when the one in front of it is full.
        first_index = self.indexes.following() if addition is changes.add_ledger else 0
        slot = runtime.ends.allocate()
        try:
            writer = LedgerWriter.create(
                path,
                ledger_id=ledger_id,
                uuid=identity,
                folder_id=bytes.fromhex(runtime.directory.folder_id),
                created_ms=runtime.clock.now_ms(),
                entry_count_max=runtime.options.managed_ledger_max_entries_per_ledger,
                size_max=runtime.options.managed_ledger_max_size_per_ledger_mbytes << 20,
                publish_on_flush=runtime.durability == "sync",
                zero_space=runtime.durability == "sync",
                slots=runtime.ends,
                slot=slot,
                first_index=first_index,
                name_record=written_name(
                    runtime.catalogue.state,
                    runtime.directory.folder_id,
                    self.name,
                    ledger_id,
                    identity,
                ),
            )
        except BaseException:
            runtime.ends.release(slot)
            raise
        try:
            if addition is changes.prepare_ledger:
                writer.prepare(1)
            writer.map()  # now, so that no reader asks for it while it is being closed
            # Before the catalogue has it: a reader that finds it there finds its writer.
            self._writers[ledger_id] = writer
            self._commit([addition(self.name, ledger_id, identity.hex(), slot)])
        except BaseException:
            self._writers.pop(ledger_id, None)
            writer.close()
            runtime.ends.release(slot)
            self._unlink(ledger_id)
            raise
        try:
            self._on_change(ledger_id)
        except BaseException:
            del self._writers[ledger_id]
            writer.close()
            commit_removal(self, ledger_id)
            runtime.ends.release(slot)
            self._unlink(ledger_id)
            raise
        return writer

    # Sealing --------------------------------------------------------------------------------------

    def _seal_later(self, writer: LedgerWriter) -> None:
        if writer.is_held:  # sealed when no transaction is open
            with self.lock:
                self._unsealed += (writer,)
            return
        try:
            # Not under the lock: sealing flushes, and publishers must be able to roll over.
            operations = self._seal(writer)
            if not operations:
                return  # done by an earlier try
            with self.lock:
                if writer.ledger_id not in self._writers:
                    return  # the topic was deleted meanwhile
                self._commit(operations)
                self._release(writer)
        except BaseException:
            with self.lock:
                if not self._deleted:
                    self._unsealed += (writer,)
            raise
        self._on_change(writer.ledger_id)

    def seal_again(self) -> None:
        """Try those whose seal failed, on a full disk for one; until then nothing behind them can
        be trimmed."""
        with self.lock:
            unsealed, self._unsealed = self._unsealed, ()
        for writer in unsealed:
            if writer.state not in ("fenced", "sealed"):
                continue  # a failed flush has closed it for good
            self.runtime.background.post(partial(self._seal_later, writer))

    def _seal(self, writer: LedgerWriter) -> list[dict[str, Any]]:
        """Write index and footer; what the catalogue is to be told: a ledger without an entry goes
        away instead. Nothing: it knows already."""
        with self._seal_lock:
            if writer.ledger_id not in self._writers:
                return []
            if writer.entry_count == 0:
                return [changes.remove_ledgers(self.name, [writer.ledger_id])]
            summary = self._summaries.get(writer.ledger_id)
            if summary is None:
                flush = self.runtime.durability != "os"
                if not flush:
                    if self._unflushed is None:
                        self._unflushed = UnflushedLedgers(self.runtime, sealed_before=False)
                    self._unflushed.add(writer.ledger_id)
                summary = with_reserve(
                    self.runtime.files, lambda: writer.seal(flush=flush), SEALING_LEAVES
                )
                self._summaries[writer.ledger_id] = summary
            return [self._sealing(writer.ledger_id, summary, writer.first_index, damaged=False)]

    def _sealing(
        self, ledger_id: int, summary: Any, first_index: int, *, damaged: bool
    ) -> dict[str, Any]:
        return changes.seal_ledger(
            self.name,
            ledger_id,
            summary,
            sealed_ms=self.runtime.clock.now_ms(),
            damaged=damaged,
            first_index=first_index,
        )

    def _forget_memory(self) -> None:
        """Close the ledgers that have no file, rather than leave it to the collector of garbage.
        Whoever has mapped one reads on."""
        kept = list(self._in_memory.values())
        self._in_memory.clear()
        for writer in kept:
            writer.close()

    def _release(self, writer: LedgerWriter) -> None:
        """The catalogue knows the ledger as sealed or gone: give back its writer and slot."""
        empty = writer.entry_count == 0
        self._summaries.pop(writer.ledger_id, None)
        for each in self._writers.values():
            if each.before is writer:
                each.forget_before()
        kept = not empty and writer.path is None
        if kept:  # before it leaves the writers: a reader must find it in one of the two
            self._in_memory[writer.ledger_id] = writer
        del self._writers[writer.ledger_id]
        self.tail.detach(writer)
        if not kept:
            writer.close()
        if empty:
            self._unlink(writer.ledger_id)
        self.runtime.ends.release(writer.slot)

    def _recover(self, ledger: LedgerRecord) -> None:
        """Seal a ledger that was open when its owner died, or prepared, unless transactions that go
        on hold it back; one without an entry goes. It is never appended to again."""
        path = self.runtime.directory.ledger_path(ledger.ledger_id)
        if path is None:
            return  # memory does not outlive its owner
        known = known_counts(
            self.catalogue.state.topics[self.name],
            ledger.ledger_id,
            self.runtime.ends.left(ledger.ledger_id),
        )
        try:
            recovery = recover(self.name, path, ledger, self.runtime.directory.folder_id, known)
        except ForeignLedger as error:
            # Neither sealed nor deleted: the right file may come back. Its readers are told.
            logger().error("%s: %s", self.name, error)
            tell_lost(self, ledger, "its file is another one")
            self.runtime.note_damage()
            if ledger.state == LEDGER_PREPARED:  # others are to come behind it
                self.runtime.catalogue.commit([changes.use_ledger(self.name, ledger.ledger_id)])
            return
        if recovery is not None and recovery.entry_count:
            report_recovery(self.name, ledger.ledger_id, recovery, known)
            self.runtime.note_damage(len(recovery.damage))
            writer = reopened(self, ledger, path, recovery, is_behind=bool(self._unsealed))
            if writer is not None:
                self._writers[ledger.ledger_id] = writer
                self._unsealed += (writer,)
                return
            files = self.runtime.files
            summary = with_reserve(files, lambda: seal_recovered(path, recovery), SEALING_LEAVES)
            file = open_ledger(path, ledger, self.runtime.directory.folder_id)
            index = self.indexes.note(ledger, file, recovery.end)
            damaged = recovery.damaged_entries > 0
            sealing = self._sealing(ledger.ledger_id, summary, index, damaged=damaged)
            record = self.catalogue.state.topics[self.name]
            committed = record.committed.get(ledger.ledger_id, [])
            # Transactions that were open ended with their process.
            left = runs_without(recovery.transacted, committed)
            aborting = [changes.abort_messages(self.name, ledger.ledger_id, left)] if left else []
            self.runtime.catalogue.commit([*aborting, sealing])
            life_log.info(
                "%s: recovered ledger %d: %d entries, %d messages",
                self.name, ledger.ledger_id, summary.entry_count, summary.message_count,
            )  # fmt: skip
        elif (
            recovery is not None
            and not recovery.torn_size
            and not known[1]
            and not self.runtime.held_entries.get(ledger.ledger_id)
        ):
            commit_removal(self, ledger.ledger_id)  # begun, and never written to
            self._unlink(ledger.ledger_id)
        else:
            self._give_up(ledger, path, recovery, known)
        self.runtime.ends.forget_left(ledger.ledger_id)

    def _give_up(
        self,
        ledger: LedgerRecord,
        path: str,
        recovery: LedgerRecovery | None,
        known: tuple[int, int, int],
    ) -> None:
        """Report an open ledger of which no entry can be read to the log and to those who would
        have read it. No byte of the file is deleted."""
        tell_lost(self, ledger, "no entry of it can be read")
        _, entries, messages = known
        torn = recovery is not None
        if entries and not torn:
            # As a sealed ledger without a file it is told to all readers, and trimmed by the rules.
            lost = LostLedger(entries, messages, self.runtime.clock.now_ms())
            index = self.indexes.first(ledger.ledger_id)
            sealing = self._sealing(ledger.ledger_id, lost, index, damaged=True)
            self.runtime.catalogue.commit([sealing])
        else:
            commit_removal(self, ledger.ledger_id)
        where = "its file is gone"
        if may_exist(path):
            where = f"its file is kept as {self.runtime.directory.set_aside(path)}"
        torn_size = recovery.torn_size if recovery is not None else 0
        what = "holds an unfinished write alone" if torn_size else "has no entry that can be read"
        logger().error(
            "%s: ledger %d %s: %s are lost; %s",
            self.name, ledger.ledger_id, what, published_messages(messages), where,
        )  # fmt: skip
        self.runtime.note_damage()

    # Reading --------------------------------------------------------------------------------------

    def _directory(self) -> DataDirectory:
        directory: Any = self.runtime.directory
        found: DataDirectory = directory
        return found

    def make_span(self, ledger: LedgerRecord) -> LedgerSpan:
        writer = self._writers.get(ledger.ledger_id)
        if writer is not None:
            return LedgerSpan.growing(writer, writer.map())
        # Sealed since the caller took its list: the record it has does not know where it ends.
        known = [each for each in self.ledgers() if each.ledger_id == ledger.ledger_id]
        if not known:
            raise LedgerTrimmed
        ledger = known[0]
        kept = self._in_memory.get(ledger.ledger_id)
        if kept is not None:
            return LedgerSpan.sealed(ledger.ledger_id, kept.map(), *ends_of(ledger))
        path = self.runtime.directory.ledger_path(ledger.file_id)
        if path is None:
            if self._closed:  # what has no file went with it; a new list would name it again
                raise errors.AlreadyClosed(detail=f"{self.name} is closed, and it is in no file")
            raise LedgerTrimmed
        if ledger.state != "sealed":
            # A span of it would never grow, and would be given to every later reader.
            self._raise_unrecovered(path, ledger)
        try:
            file = open_ledger(path, ledger, self.runtime.directory.folder_id)
        except errors.CorruptDataError:
            raise
        except errors.StorageError:
            if may_exist(path):
                raise
            now = [each for each in self.ledgers() if each.ledger_id == ledger.ledger_id]
            if not now:
                raise LedgerTrimmed from None
            if now[0].file_id != ledger.file_id:
                return self.make_span(now[0])  # merged meanwhile
            offloaded = self._open_offloaded(ledger)
            if offloaded is None:
                raise missing_file(self.name, path, ledger) from None
            file = offloaded
        if file.headless:
            self.tell_headless(ledger.ledger_id, path)
        return LedgerSpan.sealed(ledger.ledger_id, file, *ends_of(ledger))

    def _raise_unrecovered(self, path: str, ledger: LedgerRecord) -> None:
        """An open ledger without a writer: when the topic was opened another file was there."""
        try:
            look_at(self.name, path, ledger, self.runtime.directory.folder_id)
        except ForeignLedger as error:
            raise errors.CorruptDataError(detail=str(error)) from None
        raise errors.CorruptDataError(
            detail=f"read ledger {ledger.ledger_id} of {self.name}: its file {path} was another "
            "one when the folder was opened; open it again"
        )

    def _as_it_is_now(self, ledger: LedgerRecord) -> LedgerRecord:
        """Sealed since the caller took its list, its record does not know where it ends."""
        if ledger.state == "sealed":
            return ledger
        return next((each for each in self.ledgers() if each.ledger_id == ledger.ledger_id), ledger)

    def published_counts(self, ledger: LedgerRecord) -> tuple[int, int]:
        writer = self._writers.get(ledger.ledger_id)
        if writer is not None:
            entries, messages = published_counts(writer)
            return int(entries), int(messages)
        ledger = self._as_it_is_now(ledger)
        return ledger.entry_count, ledger.message_count

    # Flushing, trimming, closing
    # --------------------------------------------------------------------------------------

    def open_compacted(self, record: CompactionRecord) -> LedgerFile:
        kept = self._in_memory.get(record.ledger_id)
        if kept is not None:
            return kept.map()
        path = self.runtime.directory.ledger_path(record.ledger_id)
        return open_compacted_file(self.name, path, record, self.runtime.directory.folder_id)

    def keep_compacted(self, writer: LedgerWriter) -> None:
        """It is about to be the compacted ledger, of a topic without files."""
        self._in_memory[writer.ledger_id] = writer

    def forget_compacted(self, ledger_id: int) -> None:
        """It is the compacted ledger no longer."""
        self._in_memory.pop(ledger_id, None)

    def flush(self, *, sealed: bool = True) -> None:
        """Have what was stored on the device. sealed: False leaves out ledgers that were sealed
        without a flush, of which an owner without durability os has only those of others."""
        failure: Exception | None = None
        # In their order; where one fails, so do those behind it, unflushed.
        for writer in list(self._writers.values()):
            try:
                writer.flush()
            except errors.AlreadyClosed:
                pass  # sealed meanwhile: flushed by that, or by what follows
            except Exception as error:
                failure = failure or error
        if failure is not None:
            raise failure
        if sealed and self._unflushed is not None:
            self._unflushed.flush(self.ledgers)

    def remove(self, ledger_ids: list[int]) -> list[int]:
        """Forget sealed ledgers and unlink their files; a reader that has one mapped keeps reading.
        Those that were leased meanwhile stay, and those from one on whose file is not in its
        place; returns the others."""
        there, aside = self._removable(ledger_ids)
        removed: list[int] = []
        records = {each.ledger_id: each for each in self.ledgers()}
        emptied: list[int] = []

        def removal(state: CatalogueState) -> list[dict[str, Any]]:
            lowest, _ = state.leased_from(self.name, self.runtime.clock.now_ms())
            removed[:] = [each for each in there if each < lowest]
            behind = self.indexes.behind([records[each] for each in removed])
            return [changes.remove_ledgers(self.name, list(removed), behind)]

        if not there:
            return removed
        with self.lock:
            merged = set(self._merged_files())
            self.runtime.catalogue.commit(removal)
            emptied += merged.difference(self._merged_files())
            for ledger_id in removed:
                self._in_memory.pop(ledger_id, None)
                if ledger_id > self._opened_at:
                    self._trimmed_messages += records[ledger_id].message_count
                    self._trimmed_size += max(records[ledger_id].size - HEADER_SIZE, 0)
        # Not under the lock: there may be thousands, and publishers must be able to roll over.
        for path in [aside[each] for each in removed if each in aside]:
            kept = self.runtime.directory.set_aside(path)
            logger().error("%s: %s cannot be read and is kept as %s", self.name, path, kept)
        self._unlink(
            *(each for each in removed if each not in aside and not records[each].merged_id)
        )
        self._remove_merged(emptied)
        self.aborted.forget(removed)
        return removed

    def _remove_merged(self, merged_ids: list[int]) -> None:
        """None of the ledgers that were merged into these files is there any more."""
        self._unlink(*merged_ids)
        path, deletions = self.runtime.directory.ledger_path, self.catalogue.state.deletions
        # With the files of before, if those could not be removed when they were merged.
        gone = [
            merged_id
            for merged_id in merged_ids
            if merged_id in deletions
            and not any(may_exist(str(path(each))) for each, _ in deletions[merged_id].ledgers)
        ]
        if gone:  # what stays is tried again by the next owner
            attempt(lambda: self.runtime.catalogue.commit([changes.forget_deletions(gone)]))

    def _merged_files(self) -> list[int]:
        """The ids of files that hold several of the ledgers."""
        record = self.record()
        return [] if record is None else list(record.merged)

    def published_since_opened(self) -> tuple[int, int]:
        """Messages, and bytes of their entries."""
        messages, size = self._trimmed_messages, self._trimmed_size
        for ledger in reversed(self.ledgers()):
            if ledger.ledger_id <= self._opened_at:
                break
            messages += self.published_counts(ledger)[1]
            size += max(self.size_of(ledger) - HEADER_SIZE, 0)
        return messages, size

    def _removable(self, ledger_ids: list[int]) -> tuple[list[int], dict[int, str]]:
        """The ledgers in front of the first whose file is missing or another's, for which an
        operator may put things right; and the paths of those that are no ledgers any more."""
        records = {each.ledger_id: each for each in self.ledgers()}
        there: list[int] = []
        aside: dict[int, str] = {}
        for ledger_id in ledger_ids:
            ledger = records.get(ledger_id)
            if ledger is None:
                continue  # removed by another trim meanwhile
            path = self.runtime.directory.ledger_path(ledger.file_id)
            if path is not None and ledger.size > HEADER_SIZE:
                if not may_exist(path) and self.catalogue.state.offload_of(ledger):
                    there.append(ledger_id)
                    continue
                try:
                    found = look_at(self.name, path, ledger, self.runtime.directory.folder_id)
                except (ForeignLedger, errors.CorruptDataError) as error:
                    if not may_exist(path) and self.catalogue.state.offload_of(ledger):
                        there.append(ledger_id)  # the file went just now, for it is in the store
                        continue
                    self._tell_held(ledger_id, error)
                    break
                if found == DAMAGED and not ledger.merged_id:
                    aside[ledger_id] = path
            elif path is not None and ledger.entry_count and may_exist(path):
                aside[ledger_id] = path  # sealed as lost: somebody has put its file back since
            there.append(ledger_id)
        return there, aside

    def _tell_held(self, ledger_id: int, error: Exception) -> None:
        """Say once why a ledger and those behind it are not trimmed."""
        if ledger_id not in self._held:
            self._held |= {ledger_id}
            logger().error(
                "%s: nothing from ledger %d on is trimmed: %s; if it is lost for good, put an "
                "empty one in its place", self.name, ledger_id, errors.detail_of(error),
            )  # fmt: skip

    def _unlink(self, *ledger_ids: int) -> None:
        """The catalogue does not know the ledgers (any more): their files go. What the disk refuses
        is said in the log: it costs room and nothing else."""
        from pulsarx.broker.folder.directory_flush import flush_directories

        folders = []
        for ledger_id in ledger_ids:
            path = self.runtime.directory.ledger_path(ledger_id)
            if path is None:
                return
            try:
                self.runtime.files.unlink(path)
            except FileNotFoundError:
                continue  # it is gone already, or a power cut took its name
            except OSError as error:
                logger().warning("%s: a removed ledger stays on disk: %s", self.name, error)
                continue
            folders.append(os.path.dirname(path))
        try:
            flush_directories(self.runtime.files, folders)
        except OSError as error:
            logger().warning(
                "%s: after a power cut a removed ledger may be there again: %s",
                self.name, error,
            )  # fmt: skip
        self.runtime.files.fill_reserve()

    def close(self) -> None:
        """Seal what is open. Idempotent."""
        with self.lock:
            if self._closed:
                return
            self._closed = True
            self.tail.take_prepared()  # without an entry, it goes as every empty one does
            self.tail.switch(None)
            if self.tail.flush is not None:
                self.tail.flush.close()
            failure: Exception | None = None
            for writer in list(self._writers.values()):
                fence(writer)
                try:
                    if writer.is_held:
                        # Sealed, all in it would count, and of a transaction it is not known
                        # whether it was committed. The next owner goes by the catalogue.
                        if self.runtime.durability != "os":
                            writer.flush()
                        self.runtime.held_entries[writer.ledger_id] = writer.entry_count
                        continue
                    self._commit(self._seal(writer))
                    self._release(writer)
                except Exception as error:
                    # It stays open in the catalogue and is recovered by the next owner.
                    failure = error
            self._forget_memory()
            if failure is not None:
                raise failure

    def let_go(self) -> None:
        """Its topic could not be opened, so nobody has this object."""
        self._closed = True
        self._unsealed = ()
        forget_reopened(self, self._writers)

    def abandon(self) -> None:
        """In a forked child: touch nothing."""
        self._closed = True


HEADER_SIZE = 4096
WHOLE, DAMAGED, EMPTY = range(3)


def commit_removal(topic: ManagedLedger, ledger_id: int) -> None:
    """Have the catalogue forget a ledger."""
    topic.runtime.catalogue.commit([changes.remove_ledgers(topic.name, [ledger_id])])


class ForeignLedger(Exception):
    """Another file lies where a ledger should. Never leaves this layer."""


class LostLedger:
    """Stands for the summary of a ledger of which nothing can be read. A value."""

    size = HEADER_SIZE
    first_publish_ms = 0

    def __init__(self, entry_count: int, message_count: int, now_ms: int) -> None:
        self.entry_count = entry_count
        self.message_count = message_count
        self.last_publish_ms = now_ms  # whenever they were published


def look_at(topic: str, path: str, ledger: LedgerRecord, folder_id: str) -> int:
    """Say what lies at the path of a ledger's file: WHOLE, its own; DAMAGED, a file in which none
    of its entries can be read; EMPTY, no byte.

    ForeignLedger: another ledger. CorruptDataError: nothing.
    """
    try:
        file = open_ledger(path, ledger, folder_id)
    except errors.CorruptDataError as error:
        try:
            LedgerFile.open(path, ledger.ledger_id, at=ledger.merged_at, size=ledger.merged_size)
        except errors.CorruptDataError:
            return DAMAGED
        raise ForeignLedger(errors.detail_of(error)) from None
    except errors.StorageError:
        if may_exist(path):
            raise
        raise missing_file(topic, path, ledger) from None
    if not file.unborn:
        return WHOLE
    return DAMAGED if file.mapped_size else EMPTY


def recover(
    topic: str, path: str, ledger: LedgerRecord, folder_id: str, known: tuple[int, int, int]
) -> LedgerRecovery | None:
    """How far the file is whole; None: it is not there, or no ledger.

    ForeignLedger: it is another one.
    """
    try:
        if look_at(topic, path, ledger, folder_id) != WHOLE:
            return None
    except errors.CorruptDataError:
        # Without a flush (durability os or interval) a power cut may take the whole file, its name
        # included.
        return None
    return open_ledger(path, ledger, folder_id).recover(known)


def report_recovery(
    topic: str, ledger_id: int, recovery: LedgerRecovery, known: tuple[int, int, int]
) -> None:
    """Say in the log what the crash left; a clean end says nothing."""
    if recovery.headless:
        logger().error(
            "%s: ledger %d has no header any more; its entries were found by the uuid the "
            "catalogue knows, and it gets a new one", topic, ledger_id,
        )  # fmt: skip
    missing = max(known[2] - recovery.message_count, 0)
    # The end that is missing is damage then, which is told below with what it costs.
    is_cut = any(each[0] + each[1] >= recovery.entry_count for each in recovery.damage)
    if missing or (recovery.torn_size and not is_cut):
        logger().warning(
            "%s: ledger %d ends behind entry %d after a crash: %d bytes of an unfinished write "
            "were cut off; %s", topic, ledger_id, recovery.entry_count - 1, recovery.torn_size,
            f"{missing} messages are missing that were published and not flushed"
            if missing else "no published message is known to be missing",
        )  # fmt: skip
    for entry_id, count, offset, _ in recovery.damage:
        logger().error(
            "%s: ledger %d is damaged: %d entries from %d on, at offset %d, cannot be read; "
            "the others can; each reader and subscription is told when it comes there",
            topic, ledger_id, count, entry_id, offset,
        )  # fmt: skip


def logger() -> Any:
    import logging

    return logging.getLogger("pulsarx")
