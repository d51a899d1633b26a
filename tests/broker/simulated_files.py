"""File operations that fail or die at a chosen call and then forget what was not flushed.

They work on a real folder and keep beside it which names are durable. After a crash `power_cut`
puts the folder into a state a device could be in: each name that was not flushed is there or not,
and of bytes that were not flushed there are all, half or none.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterable

from plain_files import PlainFiles


class Crash(BaseException):
    """The process died here."""


class Content:
    """The bytes of a file, which may have several names."""

    def __init__(self, data: bytes, flushed: bool) -> None:
        self.data = data
        self.flushed = flushed
        self.writes: list[tuple[int, bytes]] = []  # over it, not flushed

    def flush(self) -> None:
        for offset, data in self.writes:
            self.data = self.data[:offset] + data + self.data[offset + len(data) :]
        self.writes = []
        self.flushed = True

    def left(self, chance: random.Random | None) -> bytes:
        """What a power cut may leave of them. None: as little as possible."""
        if self.flushed:
            found = self.data
            for offset, data in self.writes if chance is not None else ():
                kept = data[: chance.choice((0, len(data) // 2, len(data)))] if chance else b""
                found = found[:offset] + kept + found[offset + len(kept) :]
            return found
        size = 0 if chance is None else chance.choice((0, len(self.data) // 2, len(self.data)))
        return self.data[:size]


class SimulatedFiles(PlainFiles):
    def __init__(self, root: str, *, crash_at: int = -1, fail_at: int = -1, errno: int = 5) -> None:
        super().__init__(flush=False)
        self.root = root
        self.calls: list[tuple[str, str]] = []
        self._crash_at = crash_at
        self._fail_at = fail_at
        self._errno = errno
        self._dead = False
        # Contents of durable names (None: a folder), and changes of names not flushed yet, in
        # order.
        self._durable: dict[str, Content | None] = {}
        self._pending: list[tuple[str, bool, Content | None]] = []
        self._contents: dict[str, Content] = {}  # of each name now

    def create(self, path: str, data: bytes, exclusive: bool = True, flush: bool = True) -> None:
        try:
            self._step("create", path)
        except Crash:
            if len(self.calls) - 1 == self._crash_at:
                # Torn: the name may be there with a part of the bytes.
                self._pending.append((path, True, Content(data[: len(data) // 2], True)))
            raise
        super().create(path, data, exclusive)
        self._contents[path] = Content(data, flush)
        self._pending.append((path, True, self._contents[path]))

    def is_durable(self, path: str) -> None:
        """A file or folder that lies there was flushed before."""
        content = None if os.path.isdir(path) else Content(super().read(path), True)
        self._durable[path] = content
        if content is not None:
            self._contents[path] = content

    def flush_file(self, path: str) -> None:
        self._step("flush_file", path)
        self._contents[path].flush()

    def write_at(self, path: str, data: bytes, offset: int, flush: bool) -> None:
        content = self._contents[path]
        try:
            self._step("write_at", path)
        except Crash:
            if len(self.calls) - 1 == self._crash_at:
                content.writes.append((offset, data))
            raise
        super().write_at(path, data, offset, flush)
        content.writes.append((offset, data))
        if flush:
            content.flush()

    def read_at(self, path: str, offset: int, size: int) -> bytes:
        self._step("read_at", path)
        return super().read_at(path, offset, size)

    def read(self, path: str) -> bytes:
        self._step("read", path)
        return super().read(path)

    def rename(self, source: str, target: str) -> None:
        self._step("rename", target)
        super().rename(source, target)
        self._contents[target] = self._contents.pop(source)
        self._pending.append((target, True, self._contents[target]))
        self._pending.append((source, False, self._contents[target]))

    def take_name(self, source: str, target: str) -> None:
        self._step("link", target)
        super().take_name(source, target)
        self._contents[target] = self._contents[source]
        self._pending.append((target, True, self._contents[target]))

    def link_or_copy(self, source: str, target: str) -> bool:
        self.take_name(source, target)
        return False

    def unlink(self, path: str) -> None:
        self._step("unlink", path)
        super().unlink(path)
        self._contents.pop(path, None)
        self._pending.append((path, False, None))

    def flush_directory(self, path: str) -> None:
        self._step("flush_directory", path)
        mine = [change for change in self._pending if os.path.dirname(change[0]) == path]
        self._pending = [change for change in self._pending if change not in mine]
        self._keep(self._durable, mine)

    def make_directory(self, path: str, mode: int = 0o755) -> None:
        self._step("make_directory", path)
        super().make_directory(path, mode)
        self._pending.append((path, True, None))

    def list(self, path: str) -> list[str]:
        self._step("list", path)
        return super().list(path)

    def power_cut(self, chance: random.Random | None) -> None:
        """Make the folder what may be left of it. None: no name that was not flushed is."""
        image = dict(self._durable)
        if chance is not None:
            survivors = []
            survives = False
            for change in self._pending:
                is_rest = not change[1] and change[2] is not None  # of a rename, which is one step
                survives = survives if is_rest else chance.random() < 0.5
                if survives:
                    survivors.append(change)
            self._keep(image, survivors)
        shutil.rmtree(self.root)
        os.mkdir(self.root)
        for path in sorted(image):
            content = image[path]
            if not os.path.isdir(os.path.dirname(path)):
                continue  # its folder is gone
            if content is None:
                os.mkdir(path)
            else:
                PlainFiles(flush=False).create(path, content.left(chance))

    def _step(self, name: str, path: str) -> None:
        if self._dead:
            raise Crash
        self.calls.append((name, path))
        number = len(self.calls) - 1
        if number == self._crash_at:
            self._dead = True
            raise Crash
        if number == self._fail_at:
            raise OSError(self._errno, os.strerror(self._errno), path)

    @staticmethod
    def _keep(
        image: dict[str, Content | None], changes: Iterable[tuple[str, bool, Content | None]]
    ) -> None:
        for path, added, content in changes:
            if added:
                image[path] = content
            else:
                image.pop(path, None)
