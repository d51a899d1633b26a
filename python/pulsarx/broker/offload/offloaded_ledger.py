"""Reads a ledger whose file is in an object store alone: what is asked for of it is fetched into a
file without a name, which goes with the last reader, whatever becomes of the process.

The ledgers that were fetched last are kept for the next who asks, some of each process: an
acknowledgement by id, or a reader that comes next, would fetch them again.

Any thread of any process; the call waits for the store.
"""

from __future__ import annotations

import os
import threading

from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx.broker.folder.storage_errors import storage_error
from pulsarx.broker.offload.stored_object import StoredObject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO

    from pulsarx.broker.catalogue.state import LedgerRecord, OffloadRecord
    from pulsarx.broker.folder.data_directory import DataDirectory

HEADER_SIZE = 4096
_KEPT_MAX = 4

_kept: dict[tuple[str, int], LedgerFile] = {}  # by folder and ledger, the last one last
_kept_lock = threading.Lock()


def kept_ledger(ledger: LedgerRecord, directory: DataDirectory) -> LedgerFile | None:
    """The whole ledger, if it was fetched not long ago."""
    key = directory.path, ledger.ledger_id
    with _kept_lock:
        found = _kept.pop(key, None)
        if found is not None:
            _kept[key] = found
    return found if found is not None and found.uuid.hex() == ledger.uuid else None


def _keep(ledger: LedgerRecord, directory: DataDirectory, file: LedgerFile) -> None:
    with _kept_lock:
        _kept[directory.path, ledger.ledger_id] = file
        while len(_kept) > _KEPT_MAX:
            del _kept[next(iter(_kept))]


def forget_kept(directory: object) -> None:
    """The folder is closed."""
    path = getattr(directory, "path", None)
    with _kept_lock:
        for key in [each for each in _kept if each[0] == path]:
            del _kept[key]


def _in_a_child() -> None:
    """Another thread may have been at it while the process was forked."""
    global _kept_lock
    _kept_lock = threading.Lock()


os.register_at_fork(after_in_child=_in_a_child)


def open_offloaded(
    record: OffloadRecord, ledger: LedgerRecord, directory: DataDirectory
) -> LedgerFile:
    """The whole ledger. directory: it belongs to.

    CorruptDataError: the object is another ledger's, or damaged. StorageError: it is not there, or
    cannot be read.
    """
    found = kept_ledger(ledger, directory)
    if found is None:
        found = _fetch(record, ledger, directory, None)
        _keep(ledger, directory, found)
    return found


def open_index(record: OffloadRecord, ledger: LedgerRecord, directory: DataDirectory) -> LedgerFile:
    """As open_offloaded, without the entries: summary and cuts are there, nothing else is."""
    return _fetch(
        record, ledger, directory, [(0, HEADER_SIZE), (ledger.size, _size(record, ledger))]
    )


def _size(record: OffloadRecord, ledger: LedgerRecord) -> int:
    return ledger.merged_size or record.size


def _fetch(
    record: OffloadRecord,
    ledger: LedgerRecord,
    directory: DataDirectory,
    parts: Sequence[tuple[int, int]] | None,
) -> LedgerFile:
    return fetch_ledger(
        record.location,
        ledger.ledger_id,
        ledger.uuid,
        directory.folder_id,
        directory.path,
        ledger.merged_at,
        _size(record, ledger),
        parts,
    )


def fetch_ledger(
    location: str,
    ledger_id: int,
    uuid: str,
    folder_id: str,
    folder: str,
    at: int,
    size: int,
    parts: Sequence[tuple[int, int]] | None,
) -> LedgerFile:
    """Bytes begin..end of each of the parts of a ledger, which begins at byte `at` of an object and
    has `size` bytes; None: all of it. What was not asked for reads as damage."""
    wanted = [(at + begin, at + end) for begin, end in parts or [(0, size)] if begin < end]
    with _nameless_file(folder) as file:
        try:
            os.truncate(file.fileno(), at + size)
        except OSError as error:
            raise storage_error(f"make room for {size} bytes of {location}", error) from error
        StoredObject(location).read_into(file.fileno(), wanted)
        return LedgerFile.open(
            f"/dev/fd/{file.fileno()}",
            ledger_id,
            uuid=uuid,
            folder_id=folder_id,
            at=at,
            size=size,
            shown=location,
        )


def copy_object(record: OffloadRecord, target: str, told: Callable[[int], object]) -> bool:
    """Make a file of an object, durably but for its name. told: called with the bytes of it.
    False: there is no object."""
    stored = StoredObject(record.location)
    if stored.size() != record.size:
        return False
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb", buffering=0) as file:
            os.truncate(file.fileno(), record.size)
            stored.read_into(file.fileno(), [(0, record.size)])
            os.fsync(file.fileno())
    except OSError as error:
        raise storage_error(f"copy {record.location} to {target}", error) from error
    told(record.size)
    return True


def _nameless_file(folder: str) -> IO[bytes]:
    """In the folder, where there is room for the ledger; where it may not be written, among the
    temporary files of the system."""
    import tempfile

    for place in (f"{folder}/ledgers", None):
        try:
            return tempfile.TemporaryFile(dir=place, buffering=0)
        except OSError as error:
            failure = error
    raise storage_error("make a temporary file for an offloaded ledger", failure) from failure
