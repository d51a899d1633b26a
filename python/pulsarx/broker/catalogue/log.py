"""The files of the catalogue as a sequence: reads it, adds to it, and folds it into a checkpoint.
Used by Catalogue alone.

Not thread-safe; the catalogue's lock guards it. `OSError` of the file operations passes through.

A commit is won by the writer that links its number first: names are taken once on every POSIX file
system. Each commit names the checksum of the one before it, so a sequence put together from two
histories is noticed. Deleted are only commits that two whole checkpoints cover.

A commit is durable when it is written, unless it says `unflushed` (unflushed.py). The end of such
commits that a power cut took or damaged is left out, and set aside by the next owner.
"""

from __future__ import annotations

from pulsarx._pycore.ground.collector_paused import CollectorPaused
from pulsarx._pycore.ground.plain_json import json_bytes, json_value
from pulsarx.broker.catalogue.draft import CatalogueDraft
from pulsarx.broker.catalogue.end_log import ENDS, EndLog, EndRecord
from pulsarx.broker.catalogue.file import (
    CHECKPOINT,
    COMMIT,
    SALVAGE,
    TEMPORARY_SUFFIX,
    catalogue_file_decode,
    catalogue_file_encode,
    catalogue_file_name,
    catalogue_file_number,
    commit_fault,
    commit_mended,
)
from pulsarx.broker.catalogue.operations import apply_operations
from pulsarx.broker.catalogue.state import CatalogueState
from pulsarx.broker.catalogue.unflushed import UNFLUSHED, UnflushedCommits
from pulsarx.broker.folder.copies import both_copies
from pulsarx.broker.folder.storage_errors import is_full
from pulsarx.errors import CatalogueError, NewerFormatError, detail_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from typing import Any

    from pulsarx.broker.folder.file_operations import FileOperations

# The owner may fold and delete while a reader reads; each round starts from a newer listing.
_READ_ATTEMPTS_MAX = 20
# Commits whose checksums a checkpoint remembers, for a writer that was paused right after its link.
_RECENT_MAX = 400
# More commits that were not flushed become durable as a checkpoint.
FLUSHED_ONE_BY_ONE = 16
_LOST_SUFFIX = "lost"  # of commits that a power cut damaged, behind the name


class PreparedCommit:
    """A commit in the bytes of its file, not written yet."""

    __slots__ = ("number", "checksum", "operations", "data", "writer", "flush")

    def __init__(
        self,
        number: int,
        checksum: int,
        operations: list[Any],
        data: bytes,
        writer: str,
        flush: bool,
    ) -> None:
        self.number: int = number
        self.checksum: int = checksum
        self.operations: list[Any] = operations
        self.data: bytes = data
        self.writer: str = writer
        self.flush: bool = flush


class PreparedEnd:
    """The end of a transaction in the bytes of its record, not written yet."""

    __slots__ = ("record", "data")

    def __init__(self, record: EndRecord, data: bytes) -> None:
        self.record: EndRecord = record
        self.data: bytes = data


class CatalogueLog:
    """The sequence of commits and checkpoints in one folder, and the state at its end."""

    __slots__ = (
        "state", "checkpoint_number", "checkpoint_size", "outcome_unknown", "unflushed", "ends",
        "_files", "_path", "_folder_id", "_recent", "_turn", "_lost_from",
    )  # fmt: skip

    def __init__(self, files: FileOperations, path: str, folder_id: str) -> None:
        self.state: CatalogueState = CatalogueState()
        self.checkpoint_number: int = 0  # of the newest whole checkpoint; 0: none
        self.checkpoint_size: int = 0
        self.outcome_unknown: bool = False  # after `write` raised: it may have been kept
        self._files = files
        self._path = path
        self._folder_id = folder_id
        self._recent: dict[int, int] = {}  # number and checksum of the last commits
        self._turn = 0
        self.unflushed: UnflushedCommits = UnflushedCommits(files, path, self._file)
        self.ends: EndLog = EndLog(files, path, folder_id, self._file)
        self._lost_from = 0  # number of the first commit that a power cut took; 0: none

    @property
    def commits_since_checkpoint(self) -> int:
        return self.state.number - self.checkpoint_number

    def load(self) -> None:
        """Read everything from the newest whole checkpoint on. On an error this is unchanged."""
        before: list[str] | None = None
        for _ in range(_READ_ATTEMPTS_MAX):
            names = self._names()
            ends = self.ends.read(names)
            if ends:
                names = self._names()  # with all commits that these follow
            try:
                self._load_from(names, ends, settled=names == before)
                return
            except (_Discontinuity, FileNotFoundError) as error:
                if names == before:
                    if isinstance(error, _Discontinuity):
                        raise
                    raise CatalogueError(
                        detail=f"{error.filename} cannot be read: {error}"
                    ) from error
            before = names
        raise CatalogueError(
            detail=f"{self._path} changed {_READ_ATTEMPTS_MAX} times while it was read. Try again"
        )

    def load_whole_part(self) -> str:
        """Read from the newest whole checkpoint on as far as the files are whole; why not further,
        "": all of it was read. For a folder that nobody changes. NewerFormatError."""
        try:
            self.load()
            return "" if self.state.number else f"{self._path} holds no commit"
        except (CatalogueError, OSError):
            pass  # what is wrong is found once more
        try:
            names = self._names()
            commits = _numbers(COMMIT, names)
            checkpoints = sorted(_numbers(CHECKPOINT, names), reverse=True)
            with CollectorPaused():
                state, recent, _, damage = self._newest_whole_checkpoint(checkpoints)
        except OSError as error:
            return f"{self._path} cannot be read: {error}"
        self.state = state
        last = max((*commits, *checkpoints), default=0)
        for number in range(state.number + 1, last + 1):
            path = self._file(COMMIT, number)
            try:
                if number not in commits:
                    raise damage or CatalogueError(detail=f"{path} is missing")
                self._apply(state, number, recent, [])
            except CatalogueError as error:
                return detail_of(error).partition(". Nothing was changed")[0]
            except OSError as error:
                return f"{path} cannot be read: {error.strerror}"
        try:
            self._apply_ends(state, self.ends.read(names))
        except (CatalogueError, OSError) as error:
            return detail_of(error).partition(". Nothing was changed")[0] or str(error)
        return f"{self._path} is not whole"

    def resume(self, files: FileOperations, folder_id: str) -> bool:
        """Go on with what was read a while ago; False: it is not known to be of this folder, so
        load anew with another one."""
        self._files = files
        known = self.unflushed
        self.unflushed = UnflushedCommits(files, self._path, self._file)
        self.unflushed.numbers = known.numbers
        self.ends = EndLog(files, self._path, folder_id, self._file)
        try:
            path = self._file(COMMIT, self.state.number)
            data = files.read(path)
            _, checksum = catalogue_file_decode(COMMIT, folder_id, path, data)
            if checksum != self.state.checksum:
                return False
            self.catch_up()
        except (OSError, CatalogueError, NewerFormatError):
            return False
        return True

    def catch_up(self) -> set[int]:
        """Read what was added since; the ids it used, as far as they can matter to this process."""
        try:
            return self._catch_up()
        except BaseException:
            self.ends.forget_seen()  # what was read may not be applied
            raise

    def _catch_up(self) -> set[int]:
        names = self._names()
        ends = self.ends.read_new(names)
        if ends:
            names = self._names()  # with all commits that these follow
        commits = _numbers(COMMIT, names)
        checkpoints = sorted(_numbers(CHECKPOINT, names))
        number = self.state.number
        last = max((*commits, *checkpoints), default=0)
        used: set[int] = set()
        # Below the older checkpoint commits are deleted, and one that a paused writer linked late
        # could stand in for a deleted one.
        if last >= number and not (len(checkpoints) > 1 and number < checkpoints[-2]):
            try:
                for next_number in range(number + 1, last + 1):
                    used |= self._apply(
                        self.state, next_number, self._recent, self.unflushed.numbers
                    )
                    self._lost_from = 0  # another owner has set aside what was there
                self._apply_ends(self.state, ends)
                return used
            except (CatalogueError, FileNotFoundError):
                pass
        first_unknown = self.state.next_id
        self.ends.forget_seen()
        self.load()
        return used.union(range(first_unknown, self.state.next_id))

    def prepare(
        self, epoch: int, writer: str, operations: list[dict[str, Any]], flush: bool = True
    ) -> PreparedCommit:
        """The next commit. ValueError, TypeError: the operations are nothing JSON can say.

        flush: False leaves it to a later commit to make this one durable. For the owner alone.
        """
        number = self.state.number + 1
        document = {
            "number": number,
            "previous": self.state.checksum,
            "epoch": epoch,
            "writer": writer,
            "operations": operations,
        }
        if not flush:
            document["unflushed"] = True
        data, checksum = catalogue_file_encode(COMMIT, self._folder_id, document)
        as_read = json_value(data[data.index(b"\n") + 1 : -1])["operations"]
        if not isinstance(as_read, list):
            raise TypeError("operations are a list")
        return PreparedCommit(number, checksum, as_read, both_copies(data), writer, flush)

    def write(self, commit: PreparedCommit) -> bool:
        """Make a commit the next one, durably unless it is one without a flush; False: another
        process took its number.

        OSError: nothing was written, unless `outcome_unknown` says otherwise.
        """
        self.outcome_unknown = False
        if commit.flush:
            self.unflushed.flush(COMMIT)
        elif not self.unflushed.announced:
            self.unflushed.announce(commit.number)
        final = self._file(COMMIT, commit.number)
        temporary = self._temporary(final, commit.writer)
        try:
            self._files.create(temporary, commit.data, flush=commit.flush)
            if not self._take_number(temporary, final, commit):
                return False
            if commit.flush:
                self._files.flush_directory(self._path)
        finally:
            self._drop(temporary)
        self.outcome_unknown = False
        if not commit.flush:
            self.unflushed.numbers.append(commit.number)
        self._remember(self._recent, commit.number, commit.checksum)
        return True

    def prepare_end(self, operation: dict[str, Any], flush: bool) -> PreparedEnd:
        """An end behind the last commit, not written yet. ValueError, TypeError: as prepare."""
        as_read = json_value(json_bytes(operation))
        record = EndRecord(as_read["order"], self.state.number, as_read, flush)
        return PreparedEnd(record, self.ends.encode(record))

    def begin_ends(self, epoch: int) -> bool:
        """Make room for ends, before `write_end`; whether there was none: then whether another
        owner has come is to be looked at once more. OSError: nothing was written."""
        self.outcome_unknown = False
        return self.ends.begin(epoch)

    def write_end(self, end: PreparedEnd) -> bool:
        """Make it the next one, durably if it says so; False: there is no room for it, so a commit
        has to come. FileNotFoundError: another owner has come. OSError: as write."""
        self.outcome_unknown = False
        if not self.ends.has_room(end.data):
            return False
        flush = end.record.flushed
        if flush:
            self.unflushed.flush(COMMIT)
        self.ends.pending.append(end.record.operation)  # there may be no memory for it
        try:
            self.ends.write(end.data, flush=flush)
        except BaseException:
            self.ends.pending.pop()
            self.outcome_unknown = True
            self.outcome_unknown = not self.ends.take_back(end.data)
            raise
        self.ends.is_durable = self.ends.is_durable or flush
        return True

    def checkpoint(self) -> None:
        """Write the state as one file; delete what it and the checkpoint before it both cover."""
        number = self.state.number
        previous = self.checkpoint_number
        if number == previous:
            return
        with CollectorPaused():
            document = self.state.document()
            document["recent"] = list(self._recent.items())
            data, _ = catalogue_file_encode(CHECKPOINT, self._folder_id, document)
        del document
        final = self._file(CHECKPOINT, number)
        temporary = self._temporary(final, "owner")
        try:
            self._files.create(temporary, data)
            try:
                self._files.take_name(temporary, final)
            except FileExistsError:
                return  # a damaged one, else it would have been loaded; the next number will do
            self._files.flush_directory(self._path)
        finally:
            self._drop(temporary)
        self.checkpoint_number = number
        self.checkpoint_size = len(data)
        self.unflushed.numbers = []  # it says what they say
        if previous:
            self._delete_covered(previous)

    def take_over(self) -> None:
        """Clear away what interrupted writers left, and make durable what they left without a
        flush. For a new owner, before its first commit."""
        names = self._names()
        for name in names:
            if name.endswith(TEMPORARY_SUFFIX):
                self._drop(f"{self._path}/{name}")
        self._take_over_ends(names)
        announced = _numbers(UNFLUSHED, names)
        if not announced:
            return
        lost = sorted(each for each in _numbers(COMMIT, names) if each >= self._lost_from > 0)
        for number in lost:
            path = self._file(COMMIT, number)
            self._files.rename(path, f"{path}.{self.state.epoch + 1}.{_LOST_SUFFIX}")
        if lost:
            self._files.flush_directory(self._path)
        self._lost_from = 0
        for number in self.unflushed.numbers:
            try:
                self._mend(number)
            except OSError:
                pass  # its other copy is whole; there is no room, say
        if len(self.unflushed.numbers) > FLUSHED_ONE_BY_ONE:
            try:
                self.checkpoint()
            except OSError:
                pass  # they are flushed one by one, which needs no space
        self.unflushed.flush(COMMIT)
        self.unflushed.withdraw(list(announced))

    def take_over_late_ends(self) -> bool:
        """Take over what an owner of before wrote that began its file late, when `take_over` had
        looked: the commit that begins the epoch is there, so none begins one any more. Whether
        there is something for a commit to say."""
        names = self._names()
        if _numbers(ENDS, names):
            self._take_over_ends(names)
        return bool(self.ends.pending)

    def _take_over_ends(self, names: list[str]) -> None:
        records = self.ends.take_over(names)
        self._apply_ends(self.state, records)
        self.ends.keep(records, self.state.last_end, names)

    def forget_old_ends(self) -> None:
        """A commit of this owner has what is in the files of the owners of before."""
        self.ends.forget_old(self._names())

    def _mend(self, number: int) -> None:
        """Write a commit anew of which a power cut left one copy, so that it has two again. Its
        name is durable with the next flush of the folder; until then the old file has it."""
        path = self._file(COMMIT, number)
        data = self._files.read(path)
        if commit_fault(self._folder_id, path, data):
            temporary = self._temporary(path, "owner")
            try:
                self._files.create(temporary, commit_mended(self._folder_id, path, data))
                self._files.rename(temporary, path)
            except BaseException:
                self._drop(temporary)
                raise

    def settle(self) -> None:
        """Make everything durable, and take away what says that it is not. For the owner's end."""
        self.unflushed.flush(COMMIT)
        if self.unflushed.announced:
            self.unflushed.withdraw([])
            self._files.flush_directory(self._path)

    @staticmethod
    def device_full(error: OSError) -> bool:
        return is_full(error)

    def _load_from(self, names: list[str], ends: list[EndRecord], *, settled: bool) -> None:
        """settled: nobody changes them meanwhile, so what is missing is lost."""
        commits = _numbers(COMMIT, names)
        checkpoints = sorted(_numbers(CHECKPOINT, names), reverse=True)
        last = max((*commits, *checkpoints), default=0)
        read = self._read_from(checkpoints, commits, last)
        if read.failure is not None:
            self._check_lost_in_power_cut(read, names, settled)
        self._apply_ends(read.state, ends)
        self.state = read.state
        self.checkpoint_number = read.start
        self.checkpoint_size = read.size
        self._recent = read.recent
        self.unflushed.numbers = read.unflushed
        self._lost_from = 0 if read.failure is None else read.state.number + 1

    def _check_lost_in_power_cut(self, read: _Read, names: list[str], settled: bool) -> None:
        """Raise the failure of what was read, unless it is the end that a power cut took: commits
        that were announced as not flushed, with no checkpoint and no flushed commit behind them."""
        failure = read.failure
        assert failure is not None
        number = read.state.number + 1
        announced = _numbers(UNFLUSHED, names)
        checkpoints = _numbers(CHECKPOINT, names)
        if number < min(announced, default=number + 1) or number <= max(checkpoints, default=0):
            raise failure
        for later in sorted(_numbers(COMMIT, names)):
            if later > number and self._was_flushed(later):
                raise failure
        if not settled:
            raise _Discontinuity(detail=str(failure)) from failure
        _log().warning(
            "%s. Commits from %d on are left out: after a power cut these are topics that were "
            "created last, in which nothing was stored, and whose commits were not flushed. "
            "Without one the disk has damaged more; the files that are left out are kept, as "
            "<name>.%d.%s",
            detail_of(failure),
            number,
            read.state.epoch + 1,
            _LOST_SUFFIX,
        )

    def _was_flushed(self, number: int) -> bool:
        """Whether a commit is whole and says that it, and all before it, were flushed."""
        path = self._file(COMMIT, number)
        try:
            document, _ = catalogue_file_decode(
                COMMIT, self._folder_id, path, self._files.read(path)
            )
        except CatalogueError:
            return False
        return not document.get("unflushed")

    def _read_from(self, checkpoints: list[int], commits: set[int], last: int) -> _Read:
        """The newest whole one of these checkpoints, and what was committed after it, up to a
        commit that cannot be read. CatalogueError: one does not fit the state before it."""
        with CollectorPaused():
            state, recent, size, damage = self._newest_whole_checkpoint(checkpoints)
        read = _Read(state, recent, size)
        if last < self.state.number:
            raise CatalogueError(
                detail=f"{self._path} ends with commit {last}, but commit {self.state.number} was "
                "read from it before. Nothing was changed. Was the folder replaced by an older "
                "copy?"
            )
        for number in range(read.start + 1, last + 1):
            try:
                if number not in commits:
                    raise damage or _Discontinuity(
                        detail=f"{self._file(COMMIT, number)} is missing; the catalogue goes on to "
                        f"commit {last}. Nothing was changed or deleted. Restore this file from a "
                        f"backup of the folder, or {SALVAGE}"
                    )
                self._apply(state, number, recent, read.unflushed)
            except _Misfit:
                raise
            except CatalogueError as error:
                read.failure = error
                break
        return read

    def _newest_whole_checkpoint(
        self, checkpoints: list[int]
    ) -> tuple[CatalogueState, dict[int, int], int, CatalogueError | None]:
        """State, last commits and size of it; and the damage of a newer one, if there is such."""
        damage: CatalogueError | None = None
        for number in checkpoints:
            path = self._file(CHECKPOINT, number)
            data = self._files.read(path)
            try:
                document, _ = catalogue_file_decode(CHECKPOINT, self._folder_id, path, data)
                try:
                    state = CatalogueState.of_document(document)
                    recent = {int(one): int(checksum) for one, checksum in document["recent"]}
                except (KeyError, TypeError, ValueError, IndexError) as error:
                    raise CatalogueError(
                        detail=f"{path} says something else than a state"
                    ) from error
                if state.number != number:
                    raise CatalogueError(
                        detail=f"{path} is checkpoint {state.number} under another name"
                    )
                return state, recent, len(data), damage
            except CatalogueError as error:
                damage = damage or error
        return CatalogueState(), {}, 0, damage

    def _apply(
        self, state: CatalogueState, number: int, recent: dict[int, int], unflushed: list[int]
    ) -> set[int]:
        """Read one commit and put it on top of a state; the ids it used.

        unflushed: the numbers of those at the end that were not flushed.
        """
        path = self._file(COMMIT, number)
        data = self._files.read(path)
        document, checksum = catalogue_file_decode(COMMIT, self._folder_id, path, data)
        if document.get("number") != number:
            raise CatalogueError(
                detail=f"{path} is commit {document.get('number')} under another name"
            )
        if document.get("previous") != state.checksum or document.get("epoch") != state.epoch:
            raise _Discontinuity(
                detail=f"{path} does not follow commit {state.number} (checksum "
                f"{state.checksum:08x}, epoch {state.epoch}). Nothing was changed or deleted. "
                f"Restore the catalogue from a backup, or {SALVAGE}"
            )
        draft = CatalogueDraft(state)
        operations: Any = document.get("operations")
        try:
            if not isinstance(operations, list):
                raise CatalogueError(detail="it has no list of operations")
            apply_operations(draft, operations)
        except CatalogueError as error:
            raise _Misfit(detail=f"{path}: {detail_of(error)}") from error
        except NewerFormatError as error:
            raise NewerFormatError(
                detail=f"{path}: {detail_of(error)}. Upgrade PulsarX to open it"
            ) from error
        draft.publish(number, checksum)
        self._remember(recent, number, checksum)
        if document.get("unflushed"):
            unflushed.append(number)
        else:
            unflushed.clear()
        return draft.used_ids

    def _apply_ends(self, state: CatalogueState, ends: list[EndRecord]) -> None:
        """Put ends that no commit has on top of a state. The last ones may be such that a power cut
        has taken what they follow: what was flushed never is."""
        lost = False
        for each in ends:
            if each.order <= state.last_end:
                continue
            lost = lost or each.order != state.last_end + 1 or each.behind > state.number
            if lost and each.flushed:
                raise _Discontinuity(
                    detail=f"{self._path}: end {state.last_end + 1} of a transaction, which commit "
                    f"{each.behind} is behind or end {each.order} follows, is damaged or missing. "
                    f"Nothing was changed or deleted. Restore the catalogue from a backup, or "
                    f"{SALVAGE}"
                )
            if not lost:
                self._apply_end(state, each)

    def _apply_end(self, state: CatalogueState, record: EndRecord) -> None:
        draft = CatalogueDraft(state)
        try:
            apply_operations(draft, [record.operation])
        except CatalogueError as error:
            raise _Misfit(
                detail=f"{self._path}: end {record.order} of a transaction: {detail_of(error)}"
            ) from error
        draft.publish(state.number, state.checksum)

    def _take_number(self, temporary: str, final: str, commit: PreparedCommit) -> bool:
        try:
            self._files.take_name(temporary, final)
        except FileExistsError:
            # Over a network the answer to a link that worked may get lost, and the repeated one is
            # refused because of the first. The writer's mark makes these bytes its own.
            try:
                return self._files.read(final) == commit.data
            except FileNotFoundError:
                return False
        except FileNotFoundError:
            return False  # a new owner cleared the temporary away; the epoch will tell
        except OSError as error:
            self.outcome_unknown = not self.device_full(error)
            raise
        self.outcome_unknown = True
        if self._was_overtaken(commit):
            self._drop(final)
            self.outcome_unknown = False
            return False
        return True

    def _was_overtaken(self, commit: PreparedCommit) -> bool:
        """Whether this number had been taken, folded and deleted again before it was linked.

        Only for a writer that slept through two checkpoints. Commits are deleted from the lowest
        up, so while the one before is there, this number was not deleted.
        """
        if commit.number > 1:
            try:
                self._files.read(self._file(COMMIT, commit.number - 1))
                return False
            except FileNotFoundError:
                pass
        newest = max(_numbers(CHECKPOINT, self._names()), default=0)
        if newest < commit.number:
            return False
        path = self._file(CHECKPOINT, newest)
        document, _ = catalogue_file_decode(
            CHECKPOINT, self._folder_id, path, self._files.read(path)
        )
        return [commit.number, commit.checksum] not in document["recent"]

    def _delete_covered(self, previous: int) -> None:
        names = self._names()
        for number in sorted(_numbers(COMMIT, names)):
            if number <= previous:
                self._drop(self._file(COMMIT, number))
        for number in _numbers(CHECKPOINT, names):
            if number < previous:
                self._drop(self._file(CHECKPOINT, number))

    def _remember(self, recent: dict[int, int], number: int, checksum: int) -> None:
        recent[number] = checksum
        if len(recent) > _RECENT_MAX:
            del recent[next(iter(recent))]

    def _drop(self, path: str) -> None:
        try:
            self._files.unlink(path)
        except OSError:
            pass  # it is not needed; the next owner tries again

    def _temporary(self, final: str, writer: str) -> str:
        self._turn += 1
        return f"{final}.{writer}.{self._turn}{TEMPORARY_SUFFIX}"

    def _file(self, kind: str, number: int) -> str:
        return f"{self._path}/{catalogue_file_name(kind, number)}"

    def _names(self) -> list[str]:
        try:
            return sorted(self._files.list(self._path))
        except FileNotFoundError:
            return []  # the folder was only just made


class _Discontinuity(CatalogueError):
    """The listed files do not join up: the owner folded it meanwhile, or something is missing."""


class _Misfit(CatalogueError):
    """A commit does not fit the state before it: no power cut leaves that."""


class _Read:
    """The state read from one checkpoint, or from the first commit, on."""

    __slots__ = ("state", "start", "recent", "size", "unflushed", "failure")

    def __init__(self, state: CatalogueState, recent: dict[int, int], size: int) -> None:
        self.state = state
        self.start = state.number  # of the checkpoint; 0: none
        self.recent = recent
        self.size = size
        self.unflushed: list[int] = []  # commits at its end
        self.failure: CatalogueError | None = None  # one that is damaged, missing, of another epoch


def _log() -> logging.Logger:
    import logging

    return logging.getLogger("pulsarx")


def _numbers(kind: str, names: list[str]) -> set[int]:
    suffix = f".{kind}"  # most are of another kind
    found = {catalogue_file_number(kind, name) for name in names if name.endswith(suffix)}
    found.discard(-1)
    return found
