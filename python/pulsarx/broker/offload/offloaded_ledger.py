"""Reads a ledger whose file is in an object store alone: what is asked for of it is fetched into a
file without a name, which goes with the last reader, whatever becomes of the process.

Whole ledgers are shared and kept (`FetchedLedgers`): an acknowledgement by id, or a reader that
comes next, would fetch them again. Any thread of any process; the call waits for the store.
"""

from __future__ import annotations

import os
import threading

from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.file_system import hold_low_descriptors, open_descriptor
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx.broker.folder.storage_errors import storage_error
from pulsarx.broker.offload.fetched_ledgers import fetched_ledgers
from pulsarx.broker.offload.stored_object import Stopped, StoredObject, nothing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import IO

    from pulsarx.broker.catalogue.records import LedgerRecord, OffloadRecord
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.offload.fetched_ledgers import Key

HEADER_SIZE = 4096


def open_offloaded(
    record: OffloadRecord, ledger: LedgerRecord, directory: DataDirectory
) -> LedgerFile:
    """The whole ledger. directory: it belongs to.

    CorruptDataError: the object is another ledger's, or damaged. StorageError: it is not there, or
    cannot be read.
    """

    def fetch(check: Callable[[], None]) -> LedgerFile:
        return _fetch(record, ledger, directory, None, check)

    # Where no signal arrives: others may wait for what the main thread has begun.
    found: LedgerFile = control_plane.perform(fetched_ledgers.get, (_key(ledger, directory), fetch))
    return found


def fetch_ahead(record: OffloadRecord, ledger: LedgerRecord, directory: DataDirectory) -> None:
    """Have the whole ledger at hand soon, for a reader that will come to it. Returns at once."""
    fetched_ledgers.fetch_ahead(
        _key(ledger, directory), lambda check: _fetch(record, ledger, directory, None, check)
    )


def is_at_hand(ledger: LedgerRecord, directory: DataDirectory) -> bool:
    """Whether the whole ledger was fetched not long ago."""
    return fetched_ledgers.at_hand(_key(ledger, directory)) is not None


def _key(ledger: LedgerRecord, directory: DataDirectory) -> Key:
    return directory.path, ledger.ledger_id, ledger.uuid


def open_index(record: OffloadRecord, ledger: LedgerRecord, directory: DataDirectory) -> LedgerFile:
    """Open a ledger as open_offloaded does, without its entries: summary and cuts are there,
    nothing else is."""
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
    check: Callable[[], None] = nothing,
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
        check,
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
    check: Callable[[], None] = nothing,
) -> LedgerFile:
    """Bytes begin..end of each of the parts of a ledger, which begins at byte `at` of an object and
    has `size` bytes; None: all of it. What was not asked for reads as damage. check: called before
    each request, may raise."""
    wanted = [(at + begin, at + end) for begin, end in parts or [(0, size)] if begin < end]
    with _nameless_file(folder) as file:
        try:
            os.truncate(file.fileno(), at + size)
        except OSError as error:
            raise storage_error(f"make room for {size} bytes of {location}", error) from error
        StoredObject(location).read_into(file.fileno(), wanted, check)
        return LedgerFile.open(
            f"/dev/fd/{file.fileno()}",
            ledger_id,
            uuid=uuid,
            folder_id=folder_id,
            at=at,
            size=size,
            shown=location,
        )


def fetch_footer(
    location: str, ledger_id: int, uuid: str, folder_id: str, folder: str, at: int
) -> LedgerFile:
    """A ledger as of fetch_ledger, without its entries, and where they are damaged without a
    footer."""
    named = location, ledger_id, uuid, folder_id, folder, at
    begin, end = fetch_ledger(*named, HEADER_SIZE, None).footer_place
    return fetch_ledger(*named, max(end, HEADER_SIZE), [(0, HEADER_SIZE), (begin, end)])


def copy_object(record: OffloadRecord, target: str, told: Callable[[int], object]) -> bool:
    """Make a file of an object, durably but for its name; of one that was cut off, as far as it
    goes. told: called with the bytes of it, and with 0 while they come; by this thread, whose lease
    on the ledger must not end meanwhile.

    False: there is no object. StorageError: the store cannot be read, or is another.
    """
    caller = threading.get_ident()

    def check() -> None:
        if threading.get_ident() == caller:
            try:
                told(0)
            except Exception as error:
                raise Stopped from error  # else it would be taken for one of the store

    stored = StoredObject(record.location)
    size = _size_there(stored, record)
    if size is None:
        return False
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb", buffering=0, opener=open_descriptor) as file:
            os.truncate(file.fileno(), size)
            stored.read_into(file.fileno(), [(0, size)], check)
            os.fsync(file.fileno())
    except Stopped as stopped:
        raise stopped.__cause__ or stopped from None
    except OSError as error:
        raise storage_error(f"copy {record.location} to {target}", error) from error
    told(size)
    return True


def fetch_object(record: OffloadRecord, folder: str, check: Callable[[], None]) -> IO[bytes] | None:
    """Copy an object as copy_object does, to a file without a name. check: called before each
    request, by any thread, may raise Stopped."""
    stored = StoredObject(record.location)
    size = _size_there(stored, record)
    if size is None:
        return None
    file = _nameless_file(folder)
    try:
        os.truncate(file.fileno(), size)
        stored.read_into(file.fileno(), [(0, size)], check)
    except OSError as error:
        file.close()
        raise storage_error(f"fetch {record.location}", error) from error
    except BaseException:
        file.close()
        raise
    return file


def _size_there(stored: StoredObject, record: OffloadRecord) -> int | None:
    """How many bytes of an object there are to copy; None: it is not there."""
    size = stored.size()
    if size is None:
        stored.require_place()
        return None
    return min(size, record.size)


def _nameless_file(folder: str) -> IO[bytes]:
    """In the folder, where there is room for the ledger; where it may not be written, among the
    temporary files of the system."""
    import tempfile

    for place in (f"{folder}/ledgers", None):
        try:
            hold_low_descriptors()
            return tempfile.TemporaryFile(dir=place, buffering=0)
        except OSError as error:
            failure = error
    raise storage_error("make a temporary file for an offloaded ledger", failure) from failure
