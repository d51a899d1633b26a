"""One object of an object store, by its URL: written whole, read by ranges. pyarrow knows the
stores s3, gs, abfs, hdfs and file, fsspec all others; credentials are those of the environment.

Any thread of any process; a call ends with the store's own time limits. StorageError: the store
refused, with the URL and what it said.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from functools import partial
from urllib.parse import unquote

from pulsarx import errors
from pulsarx._pycore.ground.file_system import hold_low_descriptors, open_descriptor
from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx.ground.extras import optional_module
from pulsarx.ground.fork import at_fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    Chunk = tuple[int, int]  # first byte, and the one behind the last
    Stores = dict[tuple[int, str], tuple[Any, str]]  # with the path of what the key names

CHUNK_SIZE = 8 << 20  # of one request
_REQUESTS = 4  # at once
_OF_PYARROW = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs", "file")

_stores: Stores = {}  # by process, as a child cannot use its parent's, and URL, see _root_of
_stores_lock = Lock()


def _in_a_child() -> None:
    """Another thread may have been at it while the process was forked."""
    global _stores_lock
    _stores_lock = Lock()


at_fork(__name__, _in_a_child)


def joined(url: str, name: str) -> str:
    """The URL of an object in the place that a URL names."""
    place, mark, query = url.partition("?")
    return f"{place.rstrip('/')}/{name}{mark}{query}"


class Stopped(Exception):
    """Raised by a check to stop a transfer; it goes through as it is."""


def nothing() -> None:
    """A check that lets everything go on."""


class StoredObject:
    """The object that a URL names, there or not."""

    def __init__(self, location: str) -> None:
        """ImportError: what reads such URLs is not installed. Nothing is asked for yet."""
        self.location = location

    # Writing --------------------------------------------------------------------------------------

    def make_place(self) -> None:
        """Have the folder be there that it is to be in, where the store has folders. Before
        anything says that there may be an object: without its folder none is known to be gone."""
        store, name = self._find()
        if store.type_name == "local":
            with self._asking("make the folder of"):
                store.create_dir(os.path.dirname(name), recursive=True)

    def write(self, path: str, size: int, check: Callable[[], None]) -> None:
        """Make it of the first bytes of a local file. check: called before each chunk, may raise,
        and there is an unfinished object or none."""
        store, name = self._find()
        with self._asking("write"):
            with (
                open(path, "rb", opener=open_descriptor) as source,
                store.open_output_stream(name) as target,
            ):
                for at in range(0, size, CHUNK_SIZE):
                    check()
                    target.write(source.read(min(CHUNK_SIZE, size - at)))
            if store.type_name == "local":
                _flush(name)

    def put(self, data: bytes) -> None:
        """Make it of a few bytes. Killed meanwhile: there is an unfinished object or none."""
        store, name = self._find()
        with self._asking("write"):
            with store.open_output_stream(name) as target:
                target.write(data)
            if store.type_name == "local":
                _flush(name)

    def matches(self, path: str, size: int, check: Callable[[], None]) -> bool:
        """Whether it is the first bytes of a local file; it is read to see."""
        store, name = self._find()
        with (
            self._asking("read back"),
            open(path, "rb", opener=open_descriptor) as source,
            store.open_input_stream(name) as stored,
        ):
            for at in range(0, size, CHUNK_SIZE):
                check()
                wanted = min(CHUNK_SIZE, size - at)
                chunk = source.read(wanted)
                if len(chunk) != wanted or chunk != _read(stored, wanted):
                    return False
            return not stored.read(1)

    def remove(self) -> None:
        """Have it be gone. StorageError: also where its folder is not mounted, in which it is."""
        store, name = self._find()
        with self._asking("remove"):
            try:
                store.delete_file(name)
            except FileNotFoundError:
                place = os.path.dirname(name)
                if store.type_name == "local" and not os.path.isdir(place):
                    raise NotADirectoryError(errno.ENOTDIR, f"there is no {place}") from None

    # Reading --------------------------------------------------------------------------------------

    def size(self) -> int | None:
        """In bytes; None: it is not there."""
        store, name = self._find()
        with self._asking("look at"):
            _forget_listings(store)
            found = store.get_file_info(name)
            return int(found.size) if found.is_file else None

    def read_all(self) -> bytes | None:
        """Its bytes, of a small one; None: it is not there."""
        store, name = self._find()
        with self._asking("read"):
            _forget_listings(store)
            try:
                with store.open_input_file(name) as stored:
                    return bytes(stored.read())
            except FileNotFoundError:
                return None

    def require_place(self) -> None:
        """StorageError: there is nothing at all where it should be: a bucket that goes by another
        name, and a folder that is not mounted, have no objects at all."""
        if not self._has_place():
            place = self.location.partition("?")[0].rpartition("/")[0]
            raise errors.StorageError(
                detail=f"read {self.location}: there is nothing at all in {place}, so the object "
                "store is taken to be out of reach; mount it, or give it the name it had"
            )

    def _has_place(self) -> bool:
        store, name = self._find()
        with self._asking("look at"):
            _forget_listings(store)
            found = store.get_file_info(os.path.dirname(name))
            return bool(found.type.name != "NotFound")

    def read_into(
        self,
        descriptor: int,
        parts: Sequence[tuple[int, int]],
        check: Callable[[], None] = nothing,
    ) -> None:
        """Put bytes begin..end of it, of each part, to the same place of a local file; where it has
        fewer, those it has. check: called before each request, may raise.
        """
        store, name = self._find()
        with self._asking("read"), store.open_input_file(name) as stored:
            # What was cut off is as lost as the end of a file that was: nobody should wait for it.
            there = stored.size()
            chunks = [
                (at, min(at + CHUNK_SIZE, end, there))
                for begin, end in parts
                for at in range(begin, min(end, there), CHUNK_SIZE)
            ]

            def fetch(chunk: Chunk, own: int) -> None:
                check()
                begin, end = chunk
                data = stored.read_at(end - begin, begin)
                if len(data) != end - begin:
                    raise errors.StorageError(
                        detail=f"read {self.location}: {len(data)} bytes came of {end - begin} "
                        f"from byte {begin} on"
                    )
                self._put(own, data, begin)

            _each_at_once(chunks, descriptor, fetch)

    def _put(self, descriptor: int, data: bytes, at: int) -> None:
        """Write bytes of it to a local file. StorageError: what the disk refused, and not it."""
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(descriptor, data[written:], at + written)
        except OSError as error:
            from pulsarx.broker.folder.storage_errors import storage_error

            what = f"store what was fetched of {self.location} on the local disk"
            raise storage_error(what, error) from error

    # Finding --------------------------------------------------------------------------------------

    def _find(self) -> tuple[Any, str]:
        """The store as a pyarrow file system, and the object's path in it."""
        place, mark, query = self.location.partition("?")
        folder, _, name = place.rpartition("/")
        root, below = _root_of(folder)
        key = (os.getpid(), f"{root}{mark}{query}")
        with _stores_lock:
            found = _stores.get(key)
        if found is None:
            # Not under the lock: it may ask the store for its region.
            store, path = self._open_store(f"{folder}{mark}{query}")
            if not path.endswith(below):
                return store, f"{path}/{name}"
            found = store, path.removesuffix(below)
            with _stores_lock:
                _stores.clear()  # those of a parent; there is seldom another
                _stores[key] = found
        return found[0], f"{found[1]}{below}/{name}"

    def _open_store(self, url: str) -> tuple[Any, str]:
        file_systems = optional_module("pyarrow.fs", "offload", f"reading {self.location}")
        with self._asking("find"):
            if url.partition("://")[0] in _OF_PYARROW:
                store, path = file_systems.FileSystem.from_uri(url)
            else:
                fsspec = optional_module("fsspec", "offload", f"reading {self.location}")
                found, path = fsspec.core.url_to_fs(url)
                store = file_systems.PyFileSystem(file_systems.FSSpecHandler(found))
        return store, str(path).rstrip("/")

    def _asking(self, action: str) -> _Asking:
        return _Asking(action, self.location)


def objects_below(url: str, *, recursive: bool = False, folders: bool = False) -> list[str]:
    """The names of the objects, or folders, in the place that a URL names, from there on; none
    where there is no such place. StorageError: it cannot be looked at."""
    file_systems = optional_module("pyarrow.fs", "offload", f"reading {url}")
    store, name = StoredObject(joined(url, "-"))._find()
    place = name.rpartition("/")[0]
    with _Asking("list", url):
        _forget_listings(store)
        selector = file_systems.FileSelector(place, recursive=recursive, allow_not_found=True)
        found = store.get_file_info(selector)
    wanted = file_systems.FileType.Directory if folders else file_systems.FileType.File
    # Stores of fsspec write the paths as they like.
    plain = place.strip("/") + "/"
    paths = [str(each.path).strip("/") for each in found if each.type == wanted]
    return sorted(each.removeprefix(plain) for each in paths if each.startswith(plain))


def _root_of(folder: str) -> tuple[str, str]:
    """The part that all URLs of one store begin with, and the path behind it as the store has it;
    of a store of fsspec, whose URLs are of many forms, and of a place without a path, all of it."""
    scheme, mark, rest = folder.partition("://")
    host, _, path = rest.partition("/")
    below = unquote(path).strip("/")
    if scheme not in _OF_PYARROW or not below:
        return folder, ""
    return f"{scheme}{mark}{host}", below


class _Asking:
    """A block in which every error of a store or a disk becomes a StorageError."""

    def __init__(self, action: str, location: str) -> None:
        self._what = f"{action} {location}"

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        from pulsarx.broker.folder.storage_errors import storage_error

        # Stores of fsspec raise what the libraries below them do.
        known = (errors.PulsarException, ImportError, Stopped)
        if isinstance(error, known) or not isinstance(error, Exception):
            return
        if isinstance(error, FileNotFoundError) and error.errno is None:
            # As some stores of fsspec say it.
            told: OSError = FileNotFoundError(errno.ENOENT, "it is not there")
            raise storage_error(self._what, told) from error
        if isinstance(error, OSError):
            raise storage_error(self._what, error) from error
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise errors.StorageError(detail=f"{self._what}: {what}") from error


def _forget_listings(store: Any) -> None:
    """Stores of fsspec answer out of what they listed before, and others may have removed it."""
    file_system = getattr(getattr(store, "handler", None), "fs", None)
    if file_system is not None:
        file_system.invalidate_cache()


def _each_at_once(
    chunks: list[Chunk], descriptor: int, fetch: Callable[[Chunk, int], None]
) -> None:
    """Call fetch with each of the chunks and a descriptor of the file, some at a time; raises the
    first failure. In threads that the end of the process does not wait for, as it does for those of
    concurrent.futures. Each has a descriptor of its own: an interrupted caller closes the one that
    is given, and its number may be another file's while they write.
    """
    left = deque(chunks)
    failures: list[BaseException] = []

    def work(own: int) -> None:
        while not failures:
            try:
                chunk = left.popleft()
            except IndexError:
                return
            try:
                fetch(chunk, own)
            except BaseException as error:
                failures.append(error)

    def run(own: int) -> None:
        try:
            work(own)
        finally:
            os.close(own)

    threads: list[OwnThread] = []
    try:
        for _ in range(min(_REQUESTS, len(chunks)) - 1):
            hold_low_descriptors()
            own = os.dup(descriptor)
            thread = OwnThread(partial(run, own), "pulsarx-offload-read")
            try:
                thread.start()
            except RuntimeError:  # no thread more: the others do it
                os.close(own)
                break
            threads.append(thread)
        work(descriptor)
        for each in threads:
            each.join()
    except BaseException as error:
        failures.append(error)  # the others begin nothing more
        raise
    if failures:
        raise failures[0]


def _read(stream: Any, size: int) -> bytes:
    """So many bytes, fewer at the end."""
    parts = []
    while size:
        part = stream.read(size)
        if not part:
            break
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _flush(path: str) -> None:
    """Have a file that was just made be on its device, with its name."""
    for each in _upwards(path):
        descriptor = open_descriptor(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _upwards(path: str) -> Iterator[str]:
    """The file, its folder, and the two above, which may be new as well."""
    for _ in range(4):
        yield path
        path = os.path.dirname(path)
