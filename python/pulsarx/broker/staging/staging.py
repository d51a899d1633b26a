"""The staging area of a data directory: `staging/<job>/`, where writers put ledgers to be attached.

For any process that can reach the folder. Files go away when they are attached. Those of dead jobs
go by age, because no process knows which job is dead: a writer that makes an area for a new job
removes areas that were not touched for a week.
"""

from __future__ import annotations

import os
import stat

from pulsarx import errors
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.folder.storage_errors import storage_error
from pulsarx.broker.staging.staged_file import STAGING_NAME, check_plain_name
from pulsarx.clock import wall_ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.folder.file_operations import FileOperations


_KEPT_MS = 7 * 24 * 3600 * 1000


def staging_path(folder: str, job: str) -> str:
    """The folder of a job's files. ValueError: the job's name is no plain name."""
    return f"{folder}/{STAGING_NAME}/{check_plain_name(job, 'job')}"


def make_staging(folder: str | os.PathLike[str], job: str) -> str:
    """Make the area of a job, on the host that plans it, durably; its path.

    FolderError: no data directory. Writers never make it: one that does not find it there does not
    have the folder mounted. StorageError: the disk refused.
    """
    path, files = os.path.realpath(os.fspath(folder)), _file_system()
    DataDirectory.open(path, files=files, read_only=True).close()
    made = staging_path(path, job)
    fresh = False
    try:
        for each in (os.path.dirname(made), made):
            try:
                files.make_directory(each)
                fresh = each is made
            except FileExistsError:
                pass
            files.flush_directory(os.path.dirname(each))
    except OSError as error:
        raise storage_error(f"make the staging area {made}", error) from error
    if fresh:
        collect_abandoned(path)
    return made


def collect_abandoned(folder: str) -> None:
    """Remove the areas that were not touched for a week, as far as that is possible now."""
    try:
        collect_staging(folder, _KEPT_MS)
    except (OSError, errors.PulsarException):
        pass  # a courtesy


def folder_id_of(folder: str | os.PathLike[str]) -> str:
    """Which data directory this is, on this host. FolderError: none."""
    path = os.path.realpath(os.fspath(folder))
    directory = DataDirectory.open(path, files=_file_system(), read_only=True)
    found: str = directory.folder_id
    directory.close()
    return found


def collect_staging(
    folder: str | os.PathLike[str], older_than_ms: int, *, now_ms: int | None = None
) -> list[str]:
    """Remove the areas of jobs not written for older_than_ms, unless the job holds a lease.
    Returns the paths of the removed files.

    What was attached is a ledger under a name of its own; taking the staged one away loses nothing.
    """
    if older_than_ms < 0:
        raise ValueError(f"older_than_ms is {older_than_ms}; it must be 0 or more")
    path, files = os.path.realpath(os.fspath(folder)), _file_system()
    now_ms = wall_ms() if now_ms is None else now_ms
    before_ms = now_ms - older_than_ms

    def may_be_old(job: str) -> bool:
        try:
            return _is_old(f"{path}/{STAGING_NAME}/{job}", before_ms)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise storage_error(f"look at staging area {job}", error) from error

    directory = DataDirectory.open(path, files=files, read_only=True)
    try:
        jobs = [job for job in _names(files, f"{path}/{STAGING_NAME}") if may_be_old(job)]
        leases = Catalogue.open(directory).state.leases if jobs else {}
    finally:
        directory.close()
    removed: list[str] = []
    for job in jobs:
        lease = leases.get(job)
        if lease is None or lease.expires_ms <= now_ms:
            removed += _collect_job(files, f"{path}/{STAGING_NAME}/{job}", before_ms)
    return removed


def _collect_job(files: FileOperations, area: str, before_ms: int) -> list[str]:
    paths = [f"{area}/{name}" for name in _names(files, area)]
    removed = []
    try:
        # Files of a job that is still writing are left, however old: they are not attached yet.
        if not all(_is_old(each, before_ms) for each in (area, *paths)):
            return []
        for path in paths:
            if stat.S_ISREG(os.lstat(path).st_mode):
                files.unlink(path)
                removed.append(path)
        os.rmdir(area)
    except FileNotFoundError:
        pass  # attached, or collected by another process
    except OSError:
        pass  # not empty, or not ours to remove
    return removed


def _is_old(path: str, before_ms: int) -> bool:
    return os.lstat(path).st_mtime_ns // 1_000_000 < before_ms


def _names(files: FileOperations, folder: str) -> list[str]:
    """The names in a folder; none when it is anything else, such as a link to one."""
    try:
        return sorted(files.list(folder)) if stat.S_ISDIR(os.lstat(folder).st_mode) else []
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise storage_error(f"list {folder}", error) from error


def _file_system() -> FileOperations:
    from pulsarx._pycore.ground.file_system import FileSystem

    made: FileOperations = FileSystem()
    return made
