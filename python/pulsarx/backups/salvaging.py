"""Puts a folder together of what is whole of another, whose marker or catalogue is lost or damaged.

Each file is copied and looked at in the copy; nothing of the source is changed, mapped or locked.
What the catalogue says as far as it can be read counts; what it does not know is found by the
headers of ledgers and cursors (`found_ledgers`, `salvaged_state`). Ledgers that were open are
recovered and sealed as by an owner, and those that were merged have a file of their own again. At
the end all of the new folder is read, as `check` does.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections import Counter
from functools import partial

from pulsarx import errors
from pulsarx._pycore.cursor.cursor_store import cursor_file_fault
from pulsarx._pycore.cursor.subscription_label import subscription_label_of
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.file_system import FileSystem, open_descriptor
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ledger.ledger_recovery import seal_recovered
from pulsarx._pycore.ledger.published_ends import PublishedEnds
from pulsarx.backups.contents import Damage, Salvaged
from pulsarx.backups.found_ledgers import FoundLedger, LedgersOfFile, header_folder_id
from pulsarx.backups.proof import Proof
from pulsarx.backups.salvaged_state import SalvagedState
from pulsarx.backups.workplace import BLOCK, copied_blocks, read_at, refusals, workplace
from pulsarx.broker.catalogue.file import CHECKPOINT, catalogue_file_encode, catalogue_file_name
from pulsarx.broker.catalogue.log import CatalogueLog
from pulsarx.broker.folder.data_directory import SUBDIRECTORIES, DataDirectory
from pulsarx.broker.folder.folder_marker import (
    FORMAT_VERSION,
    MARKER_NAME,
    marker_bytes,
    marker_read,
)
from pulsarx.broker.offload.offloaded_ledger import copy_object
from pulsarx.broker.topics.deduplication import snapshot_name
from pulsarx.ground.attempt import attempt
from pulsarx.tables.progress import progress_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import Any

    Steps = Generator[int, None, None]  # bytes that were copied or read

_FOUND = "found"  # folder of the copies, while it is not known what they are
_SMALL = 4096  # of what cannot be read at once
_FOOTER_MAGIC = b"PULSARXF"


def salvage(folder: Any, target: Any, progress: Any) -> Salvaged:
    """See pulsarx.backups.salvage."""
    source = os.path.realpath(os.fspath(folder))
    files = FileSystem()
    with workplace(os.path.realpath(os.fspath(target)), source, files) as work:
        return salvage_to(source, work, files, progress_of(progress, "bytes"))


def salvage_to(source: str, work: str, files: FileSystem, show: Any) -> Salvaged:
    """Fill an empty folder with what is whole of another. In the caller's thread, in steps that are
    calls of the control plane. show: called with the bytes that are done, and all."""
    salvaging = Salvaging(source, work, files)
    steps = salvaging.steps()
    done = 0
    try:
        while True:
            with refusals(f"salvage {source}"):
                step = control_plane.perform(next, (steps, None))
            if step is None:
                break
            done += step
            show(done, max(salvaging.size, done + 1))
    finally:
        # One that is still at work was interrupted: it ends with what it has in hand.
        attempt(partial(control_plane.perform, steps.close))
    show(done, done)
    return salvaging.made


class Salvaging:
    """One salvage. Its steps are calls of the control plane."""

    def __init__(self, source: str, work: str, files: FileSystem) -> None:
        self.made: Salvaged = Salvaged()
        self.size: int = 0  # bytes to be copied and read, about
        self._source = source
        self._work = work
        self._files = files
        self._directory = DataDirectory(source, True, files, "")
        self._state: SalvagedState
        self._is_known: bool
        self._ends: PublishedEnds | None = None  # a copy of what the last owner had published
        self._copies = 0
        self._empty: list[str] = []  # files of ledgers of zeros alone

    def steps(self) -> Steps:
        """FolderError: there is nothing to be salvaged. FolderOwnedError."""
        if not os.path.isdir(self._source):
            there = "is no folder" if os.path.lexists(self._source) else "does not exist"
            raise errors.FolderError(detail=f"salvage a folder: {self._source} {there}")
        self._require_unowned()
        ledgers = sorted(self._directory.ledger_files())
        cursors = sorted(self._directory.cursor_files(), reverse=True)
        folder_id = self._folder_id(ledgers)
        yield 0
        self._open(folder_id)
        with refusals(f"make the folders of {self._work}"):
            for name in (*SUBDIRECTORIES, _FOUND):
                os.mkdir(f"{self._work}/{name}")
        self._read_ends()
        self.size = 2 * sum(self._size_of(path) for _, path in ledgers)
        for ledger_id, path in ledgers:
            if self._state.takes_file(ledger_id, self._name_of(path)):
                yield from self._ledger_file(ledger_id, path)
        yield from self._offloaded({each for each, _ in ledgers})
        yield from self._put_ledgers()
        for cursor_id, generation, path in cursors:
            self._cursor(cursor_id, generation, path)
            yield 0
        self._sequences()
        self._finish(len(ledgers), len(cursors))
        proof = Proof(self._work)
        yield from proof.steps()
        self._count(proof)

    # What the folder is ---------------------------------------------------------------------------

    def _require_unowned(self) -> None:
        owner = self._directory.owner()
        if owner is not None:
            raise errors.FolderOwnedError(
                detail=f"salvage {self._source}: process {owner.pid} has it open, which knows more "
                "than the files say. Take a `backup` of it, or close it first",
                folder=self._source,
                pid=owner.pid or None,
            )

    def _folder_id(self, ledgers: list[tuple[int, str]]) -> str:
        """By the marker, else by most of the headers of ledgers."""
        why = f"{self._source}/{MARKER_NAME} is missing"
        try:
            found = marker_read(self._files, self._source)
            if found is not None:
                return found
        except errors.StorageError as error:
            why = errors.detail_of(error).partition(". Nothing was changed")[0]
        self._tell("marker", MARKER_NAME, why)
        votes: Counter[str] = Counter()
        for _, path in ledgers:
            try:
                votes[header_folder_id(path)] += 1
            except OSError as error:
                if errors.raised_by_handler(error):
                    raise
        del votes[""]
        if not votes:
            raise self._nothing(len(ledgers), why)
        folder_id, count = votes.most_common(1)[0]
        self.made.assumed.append(
            f"the folder's id is {folder_id}, as {count} of {len(ledgers)} files of ledgers say"
        )
        return folder_id

    def _nothing(self, ledgers: int, why: str) -> errors.FolderError:
        return errors.FolderError(
            detail=f"salvage {self._source}: there is nothing that can be salvaged. {why}; of "
            f"{ledgers} files of ledgers none says whose it is. Nothing was made"
        )

    def _open(self, folder_id: str) -> None:
        self._directory.folder_id = folder_id
        log = CatalogueLog(self._files, self._directory.catalogue_path, folder_id)
        why = log.load_whole_part()
        self._is_known = not why  # all of the catalogue
        self._state = SalvagedState(log.state, why, self.made)

    # Ledgers --------------------------------------------------------------------------------------

    def _ledger_file(self, file_id: int, path: str) -> Steps:
        copy = self._new_copy()
        name = self._name_of(path)
        try:
            yield from self._rescued(path, copy, name)
        except FileNotFoundError:
            return
        self._look_at(copy, name, file_id)

    def _look_at(self, copy: str, name: str, file_id: int) -> None:
        places = self._state.places(file_id)
        found = LedgersOfFile(copy, name, file_id, self._directory.folder_id, places)
        for each in found.skipped:
            self._tell(
                "ledger",
                name,
                f"{each.size} bytes at offset {each.at} of {name} are left out: {each.why}, and "
                "nothing else says what they are",
                offset=each.at,
                size=each.size,
            )
        if not found.ledgers and not found.skipped:
            self._empty.append(name)
        for ledger in found.ledgers:
            self._state.add_ledger(ledger, is_alone=len(found.ledgers) == 1)
        if len(found.ledgers) > 1:
            self.made.assumed.append(
                f"{len(found.ledgers)} ledgers that lay merged in {name} have a file each again"
            )

    def _rescued(self, path: str, copy: str, name: str) -> Steps:
        """Copy a file; what the disk does not give of it is zeros, and told."""
        with (
            open(path, "rb", buffering=0, opener=open_descriptor) as reading,
            refusals(f"copy {path} to {copy}"),
        ):
            size = os.fstat(reading.fileno()).st_size
            with open(copy, "wb", buffering=0, opener=open_descriptor) as writing:
                os.truncate(writing.fileno(), size)
                for at in range(0, size, BLOCK):
                    wanted = min(BLOCK, size - at)
                    for place, data in self._readable(reading.fileno(), at, wanted, name):
                        _write_all(writing.fileno(), data, place)
                    yield wanted
                os.fsync(writing.fileno())

    def _readable(
        self, descriptor: int, at: int, size: int, name: str
    ) -> Iterator[tuple[int, bytes]]:
        try:
            yield at, read_at(descriptor, size, at)
            return
        except OSError as error:
            if error.errno != errno.EIO:
                raise
        for place in range(at, at + size, _SMALL):
            try:
                yield place, read_at(descriptor, min(_SMALL, at + size - place), place)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                self._tell(
                    "entries",
                    name,
                    f"the disk does not give {_SMALL} bytes at offset {place} of {name}",
                    offset=place,
                    size=_SMALL,
                )

    def _offloaded(self, there: set[int]) -> Steps:
        """Fetch what lies in an object store alone, as far as the catalogue knows it."""
        for file_id, record in self._state.offloads(there):
            copy = self._new_copy()
            name = self._name_of(self._directory.ledger_path(file_id))
            try:
                is_there = copy_object(record, copy, lambda _: None)
            except errors.StorageError as error:
                self._tell("ledger", name, errors.detail_of(error))
                continue
            if is_there:
                yield int(record.size)
                self._look_at(copy, name, file_id)

    def _put_ledgers(self) -> Steps:
        """Give the ledgers their names, and seal those that were open."""
        for ledger_id, topic, found in self._state.settled():
            path = self._place_of(ledger_id)
            with refusals(f"write {path}"):
                os.makedirs(os.path.dirname(path), exist_ok=True)
            if found.at or found.size < os.path.getsize(found.path):
                yield from self._part(found, path)
            else:
                with refusals(f"write {path}"):
                    os.rename(found.path, path)
            self._seal(ledger_id, topic, found, path)
            yield 0
        if self._ends is not None:
            self._ends.close_file()
        shutil.rmtree(f"{self._work}/{_FOUND}")
        yield 0

    def _part(self, found: FoundLedger, path: str) -> Steps:
        with (
            refusals(f"copy {found.path} to {path}"),
            open(found.path, "rb", buffering=0, opener=open_descriptor) as reading,
            open(path, "wb", buffering=0, opener=open_descriptor) as writing,
        ):
            for at in range(0, found.size, BLOCK):
                wanted = min(BLOCK, found.size - at)
                _write_all(writing.fileno(), read_at(reading.fileno(), wanted, found.at + at), at)
                yield 0
            os.fsync(writing.fileno())

    def _seal(self, ledger_id: int, topic: str, found: FoundLedger, path: str) -> None:
        file = self._opened(ledger_id, found, path)
        if found.sealed and not found.headless:
            summary = file.summary()
            transacted = []
            if self._state.was_open(ledger_id):
                transacted = file.recover(self._published(ledger_id)).transacted
            self._state.put(ledger_id, summary, bool(file.damage()), path, 0, transacted)
            return
        recovery = file.recover(self._published(ledger_id))
        if recovery.unborn or not recovery.entry_count:
            os.unlink(path)
            self._state.drop(ledger_id, was_sealed=recovery.sealed)
            return
        summary = seal_recovered(path, recovery)
        where = f"ledger {ledger_id} of {topic}"
        if found.headless:
            self._tell_ledger(
                found, topic, ledger_id, f"{where}: its header was damaged and is made anew"
            )
        told = self._tell_torn(found, topic, ledger_id, path, recovery)
        transacted = recovery.transacted if self._state.was_open(ledger_id) else []
        self._state.put(ledger_id, summary, recovery.damaged_entries > 0, path, told, transacted)

    def _read_ends(self) -> None:
        """Read the published ends: what they say and a ledger lacks is told as damage."""
        copy = self._new_copy()
        try:
            for _ in copied_blocks(f"{self._source}/ends", copy, None):
                pass
            self._ends = PublishedEnds.open(copy)
        except (FileNotFoundError, errors.PulsarException) as error:
            if errors.raised_by_handler(error):
                raise
            # They are evidence, and no part of what is stored.

    def _published(self, ledger_id: int) -> tuple[int, int, int]:
        """End, entries and messages that readers have seen of a ledger; zeros: not known."""
        if self._ends is None:
            return 0, 0, 0
        found: tuple[int, int, int] = self._ends.published(self._ends.find(ledger_id), ledger_id)
        return found

    def _opened(self, ledger_id: int, found: FoundLedger, path: str) -> LedgerFile:
        if not found.headless:
            return LedgerFile.open(path, ledger_id)
        return LedgerFile.open(
            path, ledger_id, uuid=found.uuid, folder_id=self._directory.folder_id
        )

    def _tell_torn(
        self, found: FoundLedger, topic: str, ledger_id: int, path: str, recovery: Any
    ) -> int:
        """Tell what recovery cut off, or the damage of a seal; how many messages were told."""
        where = f"ledger {ledger_id} of {topic}"
        if recovery.sealed or not recovery.torn_size:
            return 0  # a footer that is damaged is told when all is read
        counted = _footer_of(self._read_torn(found, recovery), recovery.end)
        if counted is None:
            self._tell_ledger(
                found,
                topic,
                ledger_id,
                f"{where}: {recovery.torn_size} bytes at offset {found.at + recovery.end} of "
                f"{found.source} are left out: behind the last entry that is whole, and not known "
                "to have been confirmed",
                offset=found.at + recovery.end,
                size=recovery.torn_size,
            )
        elif counted != (recovery.entry_count, recovery.message_count) or not found.headless:
            messages: int = max(counted[1] - recovery.message_count, 0)
            self._tell_ledger(
                found,
                topic,
                ledger_id,
                f"{where}: its seal record is damaged and is made anew; its footer counts "
                f"{counted[0]} entries and {counted[1]} messages, {recovery.entry_count} and "
                f"{recovery.message_count} are there",
                messages=messages,
            )
            return messages
        return 0

    def _read_torn(self, found: FoundLedger, recovery: Any) -> bytes:
        """The torn bytes as they were, or their end where they are many."""
        end = found.at + recovery.end
        begin = max(end, end + recovery.torn_size - BLOCK)
        try:
            with open(f"{self._source}/{found.source}", "rb", opener=open_descriptor) as file:
                return read_at(file.fileno(), end + recovery.torn_size + 128 - begin, begin)
        except OSError:
            return b""  # it lay in an object store, or the disk does not give it

    # The rest -------------------------------------------------------------------------------------

    def _cursor(self, cursor_id: int, generation: int, path: str) -> None:
        """Called for the highest generation of each cursor first."""
        if self._state.has_cursor(cursor_id):
            return
        name = self._name_of(path)
        try:
            with open(path, "rb", opener=open_descriptor) as file:
                data = file.read()
        except FileNotFoundError:
            return
        except OSError as error:
            if errors.raised_by_handler(error):
                raise
            self._tell("cursor", name, f"{name} is left out: {error.strerror}")
            return
        identity = cursor_id.to_bytes(8, "little") + bytes.fromhex(self._directory.folder_id)[:8]
        why = cursor_file_fault(data, identity, generation)
        if why:
            self._tell("cursor", name, f"{name} ({len(data)} bytes) is left out: {why}")
            return
        if self._state.add_cursor(cursor_id, name, subscription_label_of(data)):
            with refusals(f"write {self._work}/{name}"):
                self._files.create(f"{self._work}/{name}", data)

    def _sequences(self) -> None:
        """Take the snapshots of deduplication of topics that the catalogue knows."""
        topic_ids = self._state.known_topic_ids()
        try:
            names = sorted(self._files.list(f"{self._source}/deduplication"))
        except FileNotFoundError:
            return
        except OSError as error:
            self._tell("sequences", "deduplication", f"deduplication: {error.strerror}")
            return
        kept = {os.path.basename(snapshot_name(each)): each for each in topic_ids}
        left_out = [each for each in names if each not in kept and each.endswith(".sequences")]
        for each in names:
            if each in kept:
                name = snapshot_name(kept[each])
                for _ in copied_blocks(f"{self._source}/{name}", f"{self._work}/{name}", None):
                    pass
        for each in left_out:
            self._tell(
                "sequences",
                f"deduplication/{each}",
                f"deduplication/{each} is left out: no catalogue says whose it is. What producers "
                "have stored is read from the topic's ledgers, once deduplication is on again",
            )

    def _finish(self, ledgers: int, cursors: int) -> None:
        """Write the catalogue, and the marker last."""
        self._require_unowned()  # one that came meanwhile has changed what was read
        state = self._state.finished()
        if state is None:
            raise self._nothing(
                ledgers, f"no catalogue can be read, and none of {cursors} files of cursors"
            )
        if self._empty and not self._is_known:
            some = ", ".join(self._empty[:3])
            self.made.assumed.append(
                f"nothing was written into {some}{' and others' * (len(self._empty) > 3)}, "
                f"{len(self._empty)} files of zeros alone, as those of ledgers that were prepared "
                "and not used are"
            )
        folder_id = self._directory.folder_id
        document = state.document()
        document["recent"] = [[state.number, state.checksum]]
        data, _ = catalogue_file_encode(CHECKPOINT, folder_id, document)
        place = f"{self._work}/catalogue/{catalogue_file_name(CHECKPOINT, state.number)}"
        with refusals(f"write {place}"):
            self._files.create(place, data)
            self._files.create(
                f"{self._work}/{MARKER_NAME}", marker_bytes(FORMAT_VERSION, folder_id)
            )

    def _count(self, proof: Proof) -> None:
        made, found = self.made, proof.found
        made.topics, made.subscriptions = found.topics, found.subscriptions
        made.ledgers, made.messages, made.bytes = found.ledgers, found.messages, found.bytes
        made.missing_messages = found.missing_messages + sum(each.messages for each in made.damage)
        made.damage += found.damage

    # ----------------------------------------------------------------------------------------------

    def _new_copy(self) -> str:
        self._copies += 1
        return f"{self._work}/{_FOUND}/{self._copies}"

    def _place_of(self, ledger_id: int) -> str:
        path = self._directory.ledger_path(ledger_id)
        return f"{self._work}/{self._name_of(path)}"

    def _name_of(self, path: str) -> str:
        return os.path.relpath(path, self._source)

    def _size_of(self, path: str) -> int:
        try:
            return os.stat(path).st_size
        except OSError as error:
            if errors.raised_by_handler(error):
                raise
            return 0  # told when it is copied

    def _tell(self, what: str, file: str, text: str, **more: Any) -> None:
        self.made.damage.append(Damage(what, file, text, **more))

    def _tell_ledger(
        self, found: FoundLedger, topic: str, ledger_id: int, text: str, **more: Any
    ) -> None:
        more.setdefault("offset", found.at)
        self._tell("ledger", found.source, text, topic=topic, ledger_id=ledger_id, **more)


def _write_all(descriptor: int, data: bytes, at: int) -> None:
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, at)
        left, at = left[written:], at + written


def _footer_of(torn: bytes, end: int) -> tuple[int, int] | None:
    """Entries and messages by a footer of a ledger of this end, among the bytes behind it; None:
    there is none."""
    at = torn.rfind(_FOOTER_MAGIC)
    if at < 0 or len(torn) < at + 40 or int.from_bytes(torn[at + 16 : at + 24], "little") != end:
        return None
    return (
        int.from_bytes(torn[at + 24 : at + 32], "little"),
        int.from_bytes(torn[at + 32 : at + 40], "little"),
    )
