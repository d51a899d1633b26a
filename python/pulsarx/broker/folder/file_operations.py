"""The operations that the broker asks of a file system: the type of `files`. For type checkers;
nothing here runs.

The one in use is `pulsarx._pycore.ground.file_system.FileSystem`; tests put others in its place.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class FileOperations(Protocol):
        """Operations on whole small files. Any thread may call.

        Failures are `OSError`: `FileExistsError` and `FileNotFoundError` where those apply, else
        with the errno of the operating system. After a failure of `take_name` or `rename` with
        ENOSPC or EDQUOT nothing happened; after any other one the outcome is unknown.
        """

        def guard(self, path: str) -> None:
            """Change nothing from now on, with ESTALE, unless this path leads to the folder it
            leads to now."""

        def is_there(self) -> bool:
            """Whether it does; True: where that cannot be told now, too."""

        def create(
            self, path: str, data: bytes, exclusive: bool = True, flush: bool = True
        ) -> None:
            """Make a file of these bytes and flush them; the directory entry is not flushed.

            exclusive: FileExistsError when there is one; else its bytes are replaced.
            flush: False leaves the bytes to the operating system, until `flush_file`.
            """

        def flush_file(self, path: str) -> None:
            """Make the bytes of a file durable; the directory entry is not flushed."""

        def read(self, path: str) -> bytes:
            """All bytes of a file."""

        def write_at(self, path: str, data: bytes, offset: int, flush: bool) -> None:
            """Write over a part of a file that is there. flush: it is durable when this returns.
            After a failure any part of it may be written."""

        def read_at(self, path: str, offset: int, size: int) -> bytes:
            """At most so many bytes of a file from an offset on; fewer at its end."""

        def rename(self, source: str, target: str) -> None:
            """Give a file another name; an existing target is replaced."""

        def take_name(self, source: str, target: str) -> None:
            """Give a whole file its name; FileExistsError when that is taken. Whether it keeps the
            one it had depends on the file system, so the caller removes that."""

        def link_or_copy(self, source: str, target: str) -> bool:
            """A second name for a file, or, where the file system has none, a flushed copy; whether
            it is a copy. FileExistsError when the name is taken."""

        def unlink(self, path: str) -> None:
            """Take a name away."""

        def flush_directory(self, path: str) -> None:
            """Make all names in a directory durable."""

        def make_directory(self, path: str, mode: int = 0o755) -> None:
            """Make one directory; FileExistsError when the name is taken. mode: its permissions,
            without those that the umask takes."""

        def keep_reserve(self, folder: str, name: str, size: int) -> None:
            """Keep so much room in a file of this name, as far as there is any. Nothing is raised,
            by none of these four."""

        def fill_reserve(self) -> None:
            """Make the reserve whole again, as far as there is room; not while somebody spends
            it."""

        def spend_reserve(self, least: int = 0) -> bool:
            """Give the room of the reserve up, unless it has less than `least` bytes; False: it was
            not. The caller tries again what failed, and calls `end_spending` then."""

        def end_spending(self) -> None:
            """End one use of the reserve: fill it again, or leave that to the last use."""

        def list(self, path: str) -> list[str]:
            """Names in a directory, in no order, without `.` and `..`."""
