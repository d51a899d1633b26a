"""Reads ledger ranges into Arrow columns: the file alone, no catalogue, no owner, any process."""

from __future__ import annotations

import os
from errno import ENOENT

from pulsarx import errors
from pulsarx._pycore.ground.file_system import may_exist
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ranges.range_batch import check_columns
from pulsarx._pycore.ranges.range_reader import RangeReader
from pulsarx.broker.ledgers.ledger_list import open_ledger as open_file
from pulsarx.compression import decompress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from pulsarx._pycore.ranges.range_batch import RangeBatch
    from pulsarx.broker.scan.ledger_range import LedgerRange

MAX_ROWS = 65536
MAX_BYTES = 8 << 20
# What one compressed payload may become: as for clients opened read_only.
_DECOMPRESSED_SIZE_MAX = 1 << 27
_READ_BYTES_MAX = 1 << 16  # of a ledger; to map more takes no longer than to read it


def read_range(
    planned: LedgerRange,
    columns: Sequence[str] | None = None,
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_BYTES,
    *,
    pass_damage: bool = False,
    selector: str | None = None,
) -> Iterator[RangeBatch]:
    """The messages of a range as objects with the Arrow PyCapsule interface, checksums verified.

    columns: names of RangeBatch columns in the order wanted, only these are decoded; None: those of
        the plan.
    max_rows, max_bytes: whichever a batch reaches first; a larger message has a batch of its own.
    pass_damage: what cannot be read is logged and left out.
    selector: which messages; None: all. InvalidConfiguration: it is wrong.
    The lease of the range, if it has one, is renewed until the last batch was taken.
    Errors of the file come at once, before the first batch is asked for. FolderError: it is not
    there, or not the one that was planned. CorruptDataError: it is damaged, says where.
    """
    rows, size = planned.end_message - planned.first_message, planned.end - planned.offset
    wanted = planned.columns if columns is None else columns
    opened = [_opened(planned, open_ledger(planned), rows, size)]
    reader = _reader(opened, check_columns(wanted), max_rows, max_bytes, pass_damage, selector)
    reader.begin()
    return reader if planned.lease is None else _leased(reader, planned)


def read_ranges(
    ranges: Sequence[LedgerRange],
    columns: Sequence[str],
    max_rows: int = MAX_ROWS,
    max_bytes: int = MAX_BYTES,
    *,
    may_miss: Callable[[LedgerRange, errors.FolderError], bool] | None = None,
    selector: str | None = None,
) -> Iterator[RangeBatch]:
    """Read ranges one after the other as read_range does, but a batch has messages of as many as
    fit: small ledgers cost less than half of what each costs alone.

    columns: with `__topic` among them a batch is of one topic.
    selector: as of read_range.
    may_miss: asked, when the file of a range is not there, whether to go on without it.
    Errors of a file come when its first message is due. No range behind it is read then.
    """
    opened = _each_opened(ranges, columns, may_miss)
    reader = _reader(opened, check_columns(columns), max_rows, max_bytes, False, selector)
    found: Iterator[RangeBatch] = reader
    return found


def count_ranges(
    ranges: Sequence[LedgerRange],
    *,
    may_miss: Callable[[LedgerRange, errors.FolderError], bool] | None = None,
) -> int:
    """How many messages read_ranges would give, if it can read them. What is in entries is not
    looked at: those of a ledger are counted by its footer, if it has one that tells, else by their
    frames.

    may_miss: as of read_ranges.
    """
    stated = 0

    def opened_to_read() -> Iterator[tuple[Any, ...]]:
        nonlocal stated
        for opened in _each_opened(ranges, (), may_miss, is_counted=True):
            file, _, _, _, _, _, first_message, end_message, from_ms, until_ms, _, _ = opened
            if from_ms is None and until_ms is None and file.has_each(end_message):
                stated += end_message - first_message
            else:
                yield opened
            del file, opened

    read = sum(map(len, _reader(opened_to_read(), (), MAX_ROWS, MAX_BYTES, False, None)))
    return stated + read


def _reader(
    opened: Iterable[tuple[Any, ...]],
    columns: Sequence[str],
    max_rows: int,
    max_bytes: int,
    pass_damage: bool,
    selector: str | None,
) -> RangeReader:
    return RangeReader(
        opened,
        columns=columns,
        rows_max=max_rows,
        bytes_max=max_bytes,
        decompress=decompress,
        decompressed_size_max=_DECOMPRESSED_SIZE_MAX,
        pass_damage=pass_damage,
        selector=selector,
    )


def _opened(planned: LedgerRange, file: LedgerFile, rows: int, size: int) -> tuple[Any, ...]:
    """A range as RangeReader takes it."""
    return (
        file, planned.ledger_id, planned.topic, planned.partition, planned.offset, planned.end,
        planned.first_message, planned.end_message, planned.from_ms, planned.until_ms, rows, size,
    )  # fmt: skip


def _each_opened(
    ranges: Sequence[LedgerRange],
    columns: Sequence[str],
    may_miss: Callable[[LedgerRange, errors.FolderError], bool] | None,
    is_counted: bool = False,
) -> Iterator[tuple[Any, ...]]:
    from pulsarx.broker.scan.lease_renewal import renewals

    ahead = _ahead(ranges, "__topic" in columns)
    for planned, (rows, size) in zip(ranges, ahead):
        try:
            file = open_ledger(planned, is_counted)
        except errors.FolderError as error:
            if may_miss is None or not may_miss(planned, error):
                raise
            continue
        opened = _opened(planned, file, rows, size)
        lease = None if planned.lease is None else renewals.enter(planned)
        try:
            yield opened
        finally:
            if lease is not None:
                renewals.leave(lease, planned)
        del file, opened  # the reader has let go of it, so the next one gets its memory


def _ahead(ranges: Sequence[LedgerRange], by_topic: bool) -> list[tuple[int, int]]:
    """The messages and bytes of each range together with those behind it that may be in one batch
    with it."""
    found = []
    rows = size = 0
    topic: str | None = None
    for planned in reversed(ranges):
        if by_topic and planned.topic != topic:
            rows, size, topic = 0, 0, planned.topic
        rows += planned.end_message - planned.first_message
        size += planned.end - planned.offset
        found.append((rows, size))
    found.reverse()
    return found


def _leased(reader: Iterator[RangeBatch], planned: LedgerRange) -> Iterator[RangeBatch]:
    from pulsarx.broker.scan.lease_renewal import renewals

    lease = renewals.enter(planned)
    try:
        yield from reader
    finally:
        renewals.leave(lease, planned)


def open_ledger(planned: LedgerRange, is_counted: bool = False) -> LedgerFile:
    """The file of a range, if it is the one that was planned: mapped, or read where it is small.
    is_counted: without its entries, if it is in an object store and its footer tells how many
    messages there are."""
    where = f"ledger {planned.ledger_id} of {planned.topic} at {planned.path}"
    try:
        file = LedgerFile.open(
            planned.path,
            planned.ledger_id,
            at=planned.merged_at,
            size=planned.merged_size,
            read_to=planned.end if planned.end <= _READ_BYTES_MAX else 0,
        )
    except errors.CorruptDataError:
        raise
    except errors.StorageError as error:
        if may_exist(planned.path):
            raise
        found = _moved(planned, where, is_counted)
        if found is None:
            raise errors.FolderError(detail=_missing(planned, where)) from error
        return found
    if file.folder_id != planned.folder_id:
        raise errors.FolderError(
            detail=f"read {where} on {os.uname().nodename}: the file belongs to data directory "
            f"{file.folder_id}, planned was {planned.folder_id}. Another folder is mounted there; "
            "mount the one that was planned at the same path"
        )
    if file.uuid.hex() != planned.uuid:
        raise errors.FolderError(
            detail=f"read {where} on {os.uname().nodename}: the file is {file.uuid.hex()}, planned "
            f"was {planned.uuid}. The folder was put back from a copy, or is another one; plan "
            "again"
        )
    return file


def _moved(planned: LedgerRange, where: str, is_counted: bool) -> LedgerFile | None:
    """The ledger out of the object store, or from where it went since it was planned; None: it is
    gone. StorageError: the store cannot be read, or an object is not there that should be."""
    try:
        if planned.location:
            try:
                return _fetched(planned, planned.location, planned.merged_at, is_counted)
            except errors.CorruptDataError:
                raise
            except errors.StorageError as error:
                if error.errno == ENOENT and planned.is_of_store:
                    _check_store_is_there(planned)
                    return None
                if error.errno != ENOENT or not os.path.isdir(planned.folder):
                    raise
        return None if planned.is_of_store else _elsewhere(planned, is_counted)
    except errors.CorruptDataError:
        raise
    except errors.StorageError as error:
        raise type(error)(
            detail=f"read {where}, which is in the object store alone: {errors.detail_of(error)}",
            errno=error.errno,
        ) from error


def _check_store_is_there(planned: LedgerRange) -> None:
    """StorageError: the store has nothing at all where the object should be."""
    from pulsarx.broker.offload.stored_object import StoredObject

    StoredObject(planned.location).require_place()


def _fetched(planned: LedgerRange, location: str, at: int, is_counted: bool) -> LedgerFile:
    """The part of a ledger that the range needs, out of an object store."""
    from pulsarx.broker.offload.offloaded_ledger import HEADER_SIZE, fetch_footer, fetch_ledger

    named = location, planned.ledger_id, planned.uuid, planned.folder_id, planned.folder, at
    if is_counted and _is_whole(planned):
        file = fetch_footer(*named)
        if file.has_each(planned.end_message):
            return file
    return fetch_ledger(*named, planned.end, [(0, HEADER_SIZE), (planned.offset, planned.end)])


def _is_whole(planned: LedgerRange) -> bool:
    """Whether no message of the range is left out for its publish time."""
    return planned.from_ms is None and planned.until_ms is None


def _elsewhere(planned: LedgerRange, is_counted: bool) -> LedgerFile | None:
    """The ledger in the file that it was merged into since it was planned, or in the object store
    that it was moved to; None: it was not."""
    from pulsarx._pycore.ground.file_system import FileSystem
    from pulsarx.broker.catalogue.catalogue import Catalogue
    from pulsarx.broker.folder.data_directory import DataDirectory

    if not os.path.isdir(planned.folder):
        return None
    directory = DataDirectory.open(planned.folder, files=FileSystem(), read_only=True)
    try:
        state = Catalogue.open(directory).state
        topic = state.topics.get(planned.topic)
        for ledger in () if topic is None else topic.ledgers:
            if ledger.uuid != planned.uuid:
                continue
            path = directory.ledger_path(ledger.file_id)
            if ledger.merged_id and path != planned.path and may_exist(path):
                return open_file(path, ledger, planned.folder_id)
            offload = state.offload_of(ledger)
            if offload is not None:
                return _fetched(planned, offload.location, ledger.merged_at, is_counted)
        return None
    finally:
        directory.close()


def _missing(planned: LedgerRange, where: str) -> str:
    host = os.uname().nodename
    if planned.is_of_store and not planned.location:
        return (
            f"read {where} on {host}: it was not offloaded, though others behind it were: it is "
            "damaged, or was put into another file since. It is in the folder alone; read that, or "
            "pass over it with failOnDataLoss false"
        )
    if planned.is_of_store:
        return (
            f"read {where} on {host}: the object is gone. Retention has removed it since the range "
            "was planned: plan again. Or this host reads another store than the planner: give both "
            "the same URL and credentials"
        )
    if os.path.isdir(planned.folder):
        return (
            f"read {where} on {host}: the file is gone, removed by retention since it was planned. "
            "Plan again; a lease or a subscription holds it"
        )
    return (
        f"read {where} on {host}: there is no folder {planned.folder} (data directory "
        f"{planned.folder_id}). Mount the same path wherever ranges are planned and read"
    )
