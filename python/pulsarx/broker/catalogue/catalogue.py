"""The catalogue of what exists in a data directory: a log of numbered commits, each one file that
is never changed.

Opened by the broker, by readers in other processes, and by helpers of the owner that were given its
epoch. Never touched per message. README.md of this package describes the files.
"""

from __future__ import annotations

import os
from functools import partial

from pulsarx._pycore.ground.locks import RLock
from pulsarx.broker import life_log
from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.draft import CatalogueDraft
from pulsarx.broker.catalogue.file import COMMIT, SALVAGE
from pulsarx.broker.catalogue.log import FLUSHED_ONE_BY_ONE, CatalogueLog, PreparedCommit
from pulsarx.broker.catalogue.operations import apply_operations, frees_room
from pulsarx.broker.folder.reserve import RESERVE_NAME, RESERVE_SIZE, with_reserve
from pulsarx.broker.folder.storage_errors import is_full, storage_error
from pulsarx.errors import (
    AlreadyClosed,
    CatalogueError,
    FolderError,
    FolderOwnedError,
    NewerFormatError,
    NotAllowedError,
    PulsarException,
    StorageError,
    detail_of,
)
from pulsarx.ground.attempt import insist

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pulsarx.broker.catalogue.records import TopicRecord
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.folder.memory_directory import MemoryDirectory

    Operations = list[dict[str, Any]]

# A commit may be folded into a checkpoint after this many; see `_checkpoint_is_due`.
CHECKPOINT_INTERVAL = 100
# At close, so many commits are worth a checkpoint: reading them costs more than writing it.
_CLOSE_INTERVAL = 10
_CLOSE_SIZE = 16 << 10
# A commit is read after a kill; a checkpoint is written by somebody who waits. So one is due when
# the commits it replaces are a share of it: its cost a commit is that of writing so many bytes.
_COMMIT_WORTH = 384
# The reserve of the folder has room for so many besides.
_RESERVED_CHECKPOINTS = 4
# On a full device a checkpoint comes after so many commits, each of which takes a block.
_FULL_INTERVAL = 4
_BLOCK_SIZE = 4096
# Losing so often in a row means that something is wrong, not that others are busy.
_ATTEMPTS_MAX = 100


class Catalogue:
    """The catalogue of one directory. Any thread may call; one lock guards it."""

    __slots__ = (
        "_directory", "_interval", "_lock", "_log", "_own", "_poison", "_reserved",
        "_next_reserved", "_granted", "_since_checkpoint", "_owner", "_closed",
        "checkpoint_failure", "epoch", "state", "when_full", "_spent_reserve",
    )  # fmt: skip

    def __init__(
        self,
        directory: DataDirectory | MemoryDirectory,
        epoch: int,
        owner: bool,
        checkpoint_interval: int,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """Use `open` or `join`."""
        self._directory = directory
        self._lock = RLock()
        self.epoch: int = epoch  # in which it commits; 0: it only reads
        self._owner = owner
        self._interval = checkpoint_interval
        self._own = random_bytes(8).hex()
        self._log = CatalogueLog(directory.files, directory.catalogue_path, directory.folder_id)
        # Everything after the last commit read. Its records do not change; take them by name.
        self.state: CatalogueState = self._log.state
        self._poison: tuple[type[PulsarException], str] | None = (
            None  # what every later commit raises
        )
        self._reserved: set[int] = set()
        self._next_reserved = 1
        self._granted: list[int] = []  # to a helper, by the owner
        self._since_checkpoint = 0
        self._closed = False
        self._spent_reserve = False  # by the last commit
        # Called when there was no room for what is new, with the lock.
        self.when_full: Callable[[], object] | None = None
        self.checkpoint_failure: OSError | None = None  # the last one; the commits are safe

    @classmethod
    def open(
        cls,
        directory: DataDirectory | MemoryDirectory,
        *,
        checkpoint_interval: int = CHECKPOINT_INTERVAL,
        random_bytes: Callable[[int], bytes] = os.urandom,
        log: CatalogueLog | None = None,
        also: Callable[[CatalogueState], Operations] = lambda _: [],
    ) -> Catalogue:
        """Read the catalogue; unless the directory was opened read-only, begin a new epoch in it.

        log: what `take_log` found, so that there is nothing to read. also: what the commit that
        begins the epoch does besides.
        CatalogueError: a file of it is damaged or missing; the text names it and nothing was
        changed.
        """
        directory.check_usable()
        opened = cls(directory, 0, False, checkpoint_interval, random_bytes)
        if log is None:
            opened._load()
        else:
            opened._log = log
            opened.state = log.state
        opened._check_nothing_forgotten()
        if directory.read_only:
            return opened
        try:
            opened._log.take_over()
        except OSError as error:
            raise storage_error(f"take over {directory.catalogue_path}", error) from error
        size = RESERVE_SIZE + _RESERVED_CHECKPOINTS * opened._log.checkpoint_size
        directory.files.keep_reserve(directory.path, RESERVE_NAME, size)
        opened._since_checkpoint = opened._log.commits_since_checkpoint
        opened._owner = True
        epoch = opened.state.epoch + 1
        opened.epoch = opened.state.epoch
        opened.commit(lambda state: [changes.open_epoch(epoch), *also(state)])
        opened.epoch = epoch
        try:
            if opened._log.take_over_late_ends():
                opened.commit([])
            opened._log.forget_old_ends()
        except OSError as error:
            raise storage_error(f"take over {directory.catalogue_path}", error) from error
        directory.announce(epoch)
        return opened

    @classmethod
    def join(
        cls,
        directory: DataDirectory | MemoryDirectory,
        epoch: int,
        *,
        ids: Iterable[int] = (),
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> Catalogue:
        """Commit beside the owner of this epoch, which allowed it.

        ids: those the owner allocated for this helper; `allocate_id` gives them out here.
        The directory may be open read-only: what a commit needs is room in catalogue/, not the
        lock.
        FolderOwnedError: another epoch was begun.
        """
        directory.check_usable()
        opened = cls(directory, epoch, False, CHECKPOINT_INTERVAL, random_bytes)
        opened._granted = sorted(ids, reverse=True)
        opened._load()
        opened._check_epoch()
        return opened

    def topic(self, name: str) -> TopicRecord | None:
        """The topic of this full name as it is now, or None."""
        return self._log.state.topics.get(name)

    def topic_names(self, namespace: str = "") -> list[str]:
        """Full names of all topics, or of those in a namespace such as `public/default`."""
        names = list(self._log.state.topics)
        if not namespace:
            return names
        return [name for name in names if name.partition("://")[2].startswith(f"{namespace}/")]

    def namespace_policies(self, namespace: str) -> dict[str, Any] | None:
        """Policies of a namespace, or None when there is no such one. Do not change them."""
        return self._log.state.namespaces.get(namespace)

    def allocate_id(self) -> int:
        """A fresh id for a topic, ledger or cursor. The commit that uses it takes it for good."""
        with self._usable_lock():
            self._check_open()
            self._check_not_reader()
            if self._owner:
                fresh = max(self._next_reserved, self._log.state.next_id)
                self._next_reserved = fresh + 1
            elif self._granted:
                fresh = self._granted.pop()
            else:
                raise NotAllowedError(detail="this process has no ids left; ask the owner for some")
            self._reserved.add(fresh)
            return fresh

    def allocate_ids(self, count: int) -> list[int]:
        """Fresh ids that follow each other, for the owner."""
        with self._usable_lock():
            self._check_open()
            if not self._owner:
                raise NotAllowedError(detail="only the owner has ids that follow each other")
            first = max(self._next_reserved, self._log.state.next_id)
            self._next_reserved = first + count
            fresh = list(range(first, first + count))
            self._reserved.update(fresh)
            return fresh

    @property
    def outcome_unknown(self) -> bool:
        """Whether a commit failed so that it is unknown if it was kept."""
        return self._poison is not None

    def commit(
        self,
        operations: Operations | Callable[[CatalogueState], Operations],
        *,
        flush: bool = True,
    ) -> int:
        """Do all of these operations or none; the number of the commit. Durable when it returns.

        The end of a transaction alone, of the owner, is written behind the last commit and has its
        number.

        flush: False, for the owner: a kill does not undo it, a power cut may until the next commit
        with a flush, `flush`, a checkpoint or `close`.

        operations: dicts as `operations` lists them; or a function that makes them from
        the state, called again with the newer state after another process was faster.
        CatalogueError: they do not fit the state; nothing was written.
        FolderOwnedError: another owner has begun an epoch. Nothing was written.
        StorageError: the disk refused. Nothing was written, or else every later commit fails too.
        """
        with self._usable_lock():
            self._check_open()
            self._check_not_reader()
            if self._poison:
                raise self._poison[0](detail=self._poison[1])
            for _ in range(_ATTEMPTS_MAX):
                number = self._try_commit(operations, flush or not self._owner)
                if number:
                    self._after_commit()
                    return number
                self._catch_up()
                self._check_epoch()
            raise CatalogueError(
                detail=f"commit to {self._directory.catalogue_path}: {_ATTEMPTS_MAX} times in a "
                "row another process was faster. Nothing was written; try again"
            )

    def flush(self) -> None:
        """Make durable what was committed without a flush."""
        with self._usable_lock():
            if self._closed or self._poison:
                return
            self._fold_many_unflushed()
            try:
                self._log.unflushed.flush(COMMIT)
                self._log.ends.flush()
            except OSError as error:
                raise storage_error(f"flush {self._directory.catalogue_path}", error) from error

    def refresh(self) -> int:
        """Read what other processes committed; the number of the last commit. Waits for nothing."""
        with self._usable_lock():
            self._check_open()
            self._catch_up()
            if self.epoch:
                self._check_epoch()
            return self._log.state.number

    def has_new_ends(self) -> bool:
        """Whether transactions have ended since the last look; else `refresh` finds what comes with
        a new file alone."""
        return self._log.state.next_transaction > 0 and self._log.ends.has_new(
            self._log.state.epoch
        )

    def checkpoint(self) -> None:
        """Write the whole state as one file, and delete commits that two such files cover."""
        with self._usable_lock():
            self._check_open()
            self._directory.check_writable()
            try:
                self._log.checkpoint()
            except OSError as error:
                what = f"write a checkpoint to {self._directory.catalogue_path}"
                raise storage_error(what, error) from error
            self._since_checkpoint = 0
            self.checkpoint_failure = None

    def part_with_log(self) -> CatalogueLog | None:
        """Give up the log after `close`, for `keep_log`; None: it is not to be trusted."""
        return self._log if self._closed and self._poison is None else None

    def close(self) -> None:
        """Fold the log if that is worth it. May be called twice. The directory stays open."""
        try:
            lock = self._usable_lock()
        except AlreadyClosed:
            self._closed = True  # the directory is closed, or its parent process's
            return
        with lock:
            since = self._since_checkpoint
            # Reading a commit takes as long as writing some kilobytes of a checkpoint.
            worth_it = since >= _CLOSE_INTERVAL and since * _CLOSE_SIZE >= self._log.checkpoint_size
            if self._owner and not self._poison and not self._closed:
                self._commit_ends()
                if worth_it:
                    self._fold()
                try:
                    self._log.settle()
                except OSError as error:
                    self.checkpoint_failure = error  # the next owner does it
            self._closed = True

    def _commit_ends(self) -> None:
        """Have a commit say what the log of ends says, and remove that. What fails here the next
        owner does."""
        try:
            if self._log.ends.pending:
                self.commit([])
            self._log.ends.remove()
        except (PulsarException, OSError) as error:
            life_log.info("%s: ends of transactions are committed by the next owner: %s",
                          self._directory.catalogue_path, detail_of(error) or error)  # fmt: skip

    def _try_commit(
        self, operations: Operations | Callable[[CatalogueState], Operations], flush: bool
    ) -> int:
        """Number of the commit, or 0 when another process took that number."""
        state = self._log.state
        wanted = operations(state) if callable(operations) else operations
        if self._owner and len(wanted) == 1 and wanted[0].get("op") == "end_transaction":
            try:
                if self._log.begin_ends(self.epoch):
                    return 0
            except OSError as error:
                raise self._failed(error) from error
            if self._try_end(state, wanted[0], flush):
                return state.number
        ends = self._log.ends
        if not flush and ends.is_durable:
            flush = any(each.get("op") == "end_transaction" for each in wanted)
        with_ends = flush or not ends.is_durable  # else a power cut could undo them
        if with_ends:
            wanted = [*ends.pending, *wanted]
        try:
            commit = self._log.prepare(self.epoch, self._own, wanted, flush)
            draft = CatalogueDraft(state)
            # As they will be read, not as they were passed.
            apply_operations(draft, commit.operations)
            taken = [one for one in draft.used_ids if one < state.next_id]
            if not self._reserved.issuperset(taken):
                raise CatalogueError(detail=f"ids {sorted(set(taken) - self._reserved)} are in use")
        except (CatalogueError, NewerFormatError, TypeError, ValueError, RecursionError) as error:
            raise CatalogueError(
                detail=f"refused, nothing was written: {detail_of(error)}"
            ) from error
        if flush:
            self._fold_many_unflushed()
        try:
            written = self._write(commit)
        except OSError as error:
            raise self._failed(error) from error
        except MemoryError:
            self._catch_up()
            if self._log.state.checksum != commit.checksum:
                raise
            return commit.number  # it was written before
        if not written:
            return 0
        try:
            draft.publish(commit.number, commit.checksum)
        except MemoryError:  # it is written
            draft.publish(commit.number, commit.checksum)
        if with_ends and ends.pending:
            ends.are_committed()
        self._reserved -= draft.used_ids
        self._since_checkpoint += 1
        return commit.number

    def _try_end(self, state: CatalogueState, operation: dict[str, Any], flush: bool) -> bool:
        """Write the end of a transaction behind the last commit; False: a commit has to say it."""
        try:
            end = self._log.prepare_end(operation, flush)
            draft = CatalogueDraft(state)
            apply_operations(draft, [end.record.operation])
        except (CatalogueError, NewerFormatError, TypeError, ValueError, KeyError) as error:
            raise CatalogueError(
                detail=f"refused, nothing was written: {detail_of(error)}"
            ) from error
        try:
            if not self._log.write_end(end):
                return False
        except FileNotFoundError as error:
            self._catch_up()
            known = self._log.state.ended.get(end.record.operation["number"])
            if known is not None and self._log.state.last_end >= end.record.order:
                return True  # the next owner has read it
            self._check_epoch()
            raise self._failed(error) from error
        except OSError as error:
            raise self._failed(error) from error
        insist(partial(draft.publish, state.number, state.checksum))
        return True

    def _write(self, commit: PreparedCommit) -> bool:
        self._spent_reserve = False
        files = self._directory.files
        try:
            return self._log.write(commit)
        except OSError as error:
            if self._log.outcome_unknown or not is_full(error):
                raise
            if not frees_room(commit.operations):
                if self.when_full is not None:
                    self.when_full()
                raise
            if not files.spend_reserve():
                raise
        self._spent_reserve = True
        try:
            return self._log.write(commit)
        finally:
            files.end_spending()

    def _failed(self, error: OSError) -> Exception:
        what = f"commit to {self._directory.catalogue_path}: {error.strerror or error}"
        if self._log.outcome_unknown:
            what += ". Whether it was kept is unknown. Close the client and open it again"
            self._poison = (CatalogueError, what)
            return CatalogueError(detail=what)
        if self._log.device_full(error):
            return storage_error(f"commit to {self._directory.catalogue_path}", error)
        return StorageError(
            detail=f"{what}. Nothing was written; it works again once the cause is gone"
        )

    def _after_commit(self) -> None:
        self._directory.files.fill_reserve()
        if not self._owner:
            return
        if self._checkpoint_is_due():
            self._fold()
        elif self._spent_reserve and self._since_checkpoint >= _FULL_INTERVAL:
            # Each commit costs the reserve a block. Folded, those of many openings take few.
            if self._since_checkpoint * _BLOCK_SIZE >= self._log.checkpoint_size:
                self._fold(from_reserve=True)

    def _checkpoint_is_due(self) -> bool:
        # A checkpoint that takes longer than reading what it replaces can wait for more commits.
        worth = self._since_checkpoint * _COMMIT_WORTH
        return self._since_checkpoint >= self._interval and (
            worth >= self._log.checkpoint_size or self._since_checkpoint % 10_000 == 0
        )

    @property
    def unflushed_numbers(self) -> list[int]:
        """The commits of which a power cut may take the file, or one of its copies."""
        return self._log.unflushed.numbers

    def _fold_many_unflushed(self) -> None:
        """One file is flushed sooner than many; what fails here is tried one by one."""
        if self._owner and len(self._log.unflushed.numbers) > FLUSHED_ONE_BY_ONE:
            self._fold()

    def _fold(self, from_reserve: bool = False) -> None:
        """A checkpoint that may fail: the commits it would replace are all there."""
        try:
            if from_reserve:
                with_reserve(self._directory.files, self._log.checkpoint)
            else:
                self._log.checkpoint()
            self._since_checkpoint = 0
            self.checkpoint_failure = None
        except OSError as error:
            self.checkpoint_failure = error
            self._since_checkpoint = 1  # try again after as many commits, not at each one

    def _load(self) -> None:
        try:
            self._log.load()
        except OSError as error:
            raise self._unread(error) from error
        finally:
            self.state = self._log.state

    def _catch_up(self) -> None:
        try:
            used = self._log.catch_up()
        except OSError as error:
            raise self._unread(error) from error
        finally:
            self.state = self._log.state  # out of memory behind reading, it is another one already
        self._reserved -= used

    def _unread(self, error: OSError) -> StorageError:
        what = error.filename or self._directory.catalogue_path
        return storage_error(f"read the catalogue, {what}", error)

    def _usable_lock(self) -> RLock:
        """The lock; an error in a forked child, where a thread that is not there may hold it."""
        self._directory.check_usable()
        return self._lock

    def _check_open(self) -> None:
        if self._closed:
            raise AlreadyClosed(detail=f"the catalogue of {self._directory.path} was closed")

    def _check_not_reader(self) -> None:
        if not self.epoch and not self._owner:
            raise FolderError(
                detail=f"{self._directory.path} was opened read-only; it cannot be changed"
            )

    def _check_epoch(self) -> None:
        if self._log.state.epoch != self.epoch:
            text = (
                f"{self._directory.path} has another owner: epoch {self._log.state.epoch} was "
                f"begun, this process has epoch {self.epoch}. Nothing was written. Close the "
                "client"
            )
            self._poison = (FolderOwnedError, text)
            raise FolderOwnedError(detail=text)

    def _check_nothing_forgotten(self) -> None:
        """An empty catalogue beside data is a lost one, never a new folder."""
        if self._log.state.number:
            return
        for found in (*self._directory.ledger_files(), *self._directory.cursor_files()):
            raise CatalogueError(
                detail=f"{self._directory.catalogue_path} is empty although there is {found[-1]}. "
                "Nothing was changed or deleted. Restore the folder catalogue from a backup, or "
                f"{SALVAGE}"
            )
