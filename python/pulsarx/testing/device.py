"""A device that is told every file operation of a recording, and the states in which a power cut
may leave it. For `crashes`.

What POSIX and a flush promise, and nothing more:

- a page of 4 KiB that was written since the last flush of its file has any of the contents it had
  since, or is torn between two of them at a sector of 512 bytes
- a file has any of the sizes it had since its last flush
- of the names of a directory that were changed since its last flush a prefix of the changes is
  there
- a file or directory is there if its name is, and so are the names of all directories above
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulsarx._pycore.ground.file_system import open_descriptor

PAGE = 4096
SECTOR = 512
ZEROS = bytes(PAGE)
NOT_RECORDED = ("LOCK", "control.sock")  # which no flush is promised of


class File:
    """The contents it had since its last flush: those of each page, and the sizes."""

    def __init__(self, data: bytes = b"") -> None:
        self.pages: dict[int, list[bytes]] = {
            at // PAGE: [data[at : at + PAGE].ljust(PAGE, b"\0")]
            for at in range(0, len(data), PAGE)
            if data[at : at + PAGE].strip(b"\0")
        }
        self.sizes: list[int] = [len(data)]

    def write(self, offset: int, data: bytes) -> None:
        self.put(offset, data)
        self.grow(offset + len(data))

    def put(self, offset: int, data: bytes) -> None:
        at = 0
        while at < len(data):
            page, inside = divmod(offset + at, PAGE)
            size = min(PAGE - inside, len(data) - at)
            versions = self.pages.setdefault(page, [ZEROS])
            new = versions[-1][:inside] + data[at : at + size] + versions[-1][inside + size :]
            if new != versions[-1]:
                versions.append(new)
            at += size

    def grow(self, size: int) -> None:
        if size > self.sizes[-1]:
            self.sizes.append(size)

    def flush(self) -> None:
        self.flush_pages(0, max(self.pages, default=0) + 1)
        self.sizes = self.sizes[-1:]

    def flush_pages(self, first: int, end: int) -> None:
        for page, versions in self.pages.items():
            if first <= page < end and len(versions) > 1:
                self.pages[page] = versions[-1:]


@dataclass
class Change:
    """A change of the names of a directory: a new one, one that goes, or both at once."""

    added: str = ""
    node: Any = None  # File or Directory
    removed: str = ""
    comes_with: Change | None = None  # in another directory: not without that
    is_flushed: bool = False


class Directory:
    def __init__(self) -> None:
        self.names: dict[str, Any] = {}  # now
        self.flushed: dict[str, Any] = {}
        self.changes: list[Change] = []  # since

    def change(self, change: Change) -> None:
        self.changes.append(change)
        if change.removed:
            self.names.pop(change.removed, None)
        if change.added:
            self.names[change.added] = change.node

    def flush(self) -> None:
        self.flushed = dict(self.names)
        for each in self.changes:
            each.is_flushed = True
        self.changes = []

    def names_after(self, count: int, made: set[int]) -> dict[str, Any]:
        """With the first changes only. made: changes of other directories that are there."""
        names = dict(self.flushed)
        for change in self.changes[:count]:
            with_it = change.comes_with
            if with_it is None or with_it.is_flushed or id(with_it) in made:
                names.pop(change.removed, None)
            if change.added:
                names[change.added] = change.node
        return names


Pages = dict[int, bytes]


@dataclass
class Image:
    """The files of a folder; None: a directory. all_written: nothing was lost, as by a kill."""

    files: dict[str, tuple[int, Pages] | None]
    all_written: bool
    choices: str = ""
    _digest: bytes = field(default=b"", repr=False)

    def __str__(self) -> str:
        return f"[{self.choices}]" + (" with all that was written" if self.all_written else "")

    @property
    def digest(self) -> bytes:
        if not self._digest:
            summed = hashlib.blake2b(digest_size=16)
            for path, content in sorted(self.files.items()):
                summed.update(f"{path}\0{content and content[0]}\0".encode())
                for page, data in sorted(content[1].items()) if content else ():
                    summed.update(b"%d\0" % page)
                    summed.update(data)
            self._digest = summed.digest()
        return self._digest

    def write(self, folder: Path) -> None:
        """Make the folder; it must not be there. Pages of zeros are holes."""
        folder.mkdir()
        for path, content in sorted(self.files.items()):
            if content is None:
                os.mkdir(folder / path)
                continue
            fd = open_descriptor(folder / path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o644)
            try:
                size, pages = content
                os.ftruncate(fd, size)
                for page, data in pages.items():
                    os.pwrite(fd, data[: size - page * PAGE], page * PAGE)
            finally:
                os.close(fd)


class Device:
    """The files of one folder. Calls on others are passed over."""

    def __init__(self, folder: Path, holds: Path | None = None) -> None:
        """holds: a folder; what lies there is on the device. None: nothing is."""
        self._folder = str(folder)
        self._root = Directory()
        self._descriptors: dict[int, File] = {}
        self._mappings: dict[int, tuple[File, int]] = {}
        if holds is not None:
            self._read(holds, self._root)

    def _read(self, path: Path, directory: Directory) -> None:
        for each in path.iterdir():
            if each.is_dir():
                below = Directory()
                self._read(each, below)
                directory.names[each.name] = below
            elif each.name not in NOT_RECORDED:
                directory.names[each.name] = File(each.read_bytes())
        directory.flush()

    def apply(self, call: Any) -> None:
        if call.error and call.op not in ("write", "zeros", "allocate"):
            return
        getattr(self, f"_{call.op}")(call)

    # The calls -----------------------------------------------------------------------------------

    def _open(self, call: Any) -> None:
        found = self._find(call.path)
        if found is None:
            self._descriptors.pop(call.fd, None)
            return
        directory, name = found
        if call.is_new:
            directory.change(Change(added=name, node=File()))
        node = directory.names.get(name)
        if isinstance(node, File):
            self._descriptors[call.fd] = node

    def _close(self, call: Any) -> None:
        self._descriptors.pop(call.fd, None)

    def _write(self, call: Any) -> None:
        if call.fd in self._descriptors:
            self._descriptors[call.fd].write(call.offset, call.data)

    def _zeros(self, call: Any) -> None:
        if call.fd in self._descriptors:
            self._descriptors[call.fd].write(call.offset, bytes(call.size))

    def _allocate(self, call: Any) -> None:
        if call.fd in self._descriptors:
            self._descriptors[call.fd].grow(call.offset + call.size)

    def _punch_hole(self, call: Any) -> None:
        if call.fd in self._descriptors:
            self._descriptors[call.fd].put(call.offset, bytes(call.size))

    def _flush(self, call: Any) -> None:
        if call.fd in self._descriptors:
            self._descriptors[call.fd].flush()

    def _map(self, call: Any) -> None:
        if call.fd in self._descriptors:
            self._mappings[call.map] = (self._descriptors[call.fd], call.offset)

    def _store(self, call: Any) -> None:
        if call.map in self._mappings:
            file, offset = self._mappings[call.map]
            file.put(offset + call.offset, call.data)

    def _flush_map(self, call: Any) -> None:
        if call.map in self._mappings:
            file, offset = self._mappings[call.map]
            first = (offset + call.offset) // PAGE
            file.flush_pages(first, -(-(offset + call.offset + call.size) // PAGE))

    def _flush_directory(self, call: Any) -> None:
        path = os.path.relpath(call.path, self._folder)
        if path == "." or not path.startswith(".."):
            directory = self._root
            for name in path.split("/") if path != "." else ():
                directory = directory.names[name]
            directory.flush()

    def _rename(self, call: Any) -> None:
        source, target = self._find(call.path), self._find(call.other)
        if source is None or target is None:
            return
        node = source[0].names[source[1]]
        if source[0] is target[0]:
            target[0].change(Change(added=target[1], node=node, removed=source[1]))
            return
        change = Change(added=target[1], node=node)
        target[0].change(change)
        source[0].change(Change(removed=source[1], comes_with=change))

    def _rename_new(self, call: Any) -> None:
        self._rename(call)

    def _link(self, call: Any) -> None:
        source, target = self._find(call.path), self._find(call.other)
        if source and target:
            target[0].change(Change(added=target[1], node=source[0].names[source[1]]))

    def _unlink(self, call: Any) -> None:
        found = self._find(call.path)
        if found and found[1] in found[0].names:
            found[0].change(Change(removed=found[1]))

    def _make_directory(self, call: Any) -> None:
        found = self._find(call.path)
        if found:
            found[0].change(Change(added=found[1], node=Directory()))

    def _mark(self, call: Any) -> None:
        pass

    def _find(self, path: str) -> tuple[Directory, str] | None:
        """The directory that has the name, and the name in it."""
        inside = os.path.relpath(path, self._folder)
        if inside == "." or inside.startswith(".."):
            return None
        *above, name = inside.split("/")
        directory = self._root
        for each in above:
            directory = directory.names[each]
        return directory, name

    # Images --------------------------------------------------------------------------------------

    def written(self) -> Image:
        """All that was written is there, as after a kill."""
        return self._image([], [], "all")

    def flushed(self) -> Image:
        """All that was not flushed is lost."""
        slots = self._slots()
        return self._image(slots, [0] * len(slots))

    def images(self, chance: random.Random, most: int) -> Iterator[Image]:
        """The states a power cut may leave: all where there are no more than that, else some at
        random. The same one may come several times."""
        slots = self._slots()
        count = 1
        for _, options in slots:
            count *= len(options)
        if count <= most:
            for chosen in itertools.product(*(range(len(options)) for _, options in slots)):
                yield self._image(slots, list(chosen))
            return
        last = [len(options) - 1 for _, options in slots]
        drawn = 0
        for corner in self._corners(last, chance):
            if drawn == most // 2:
                break
            drawn += 1
            yield self._image(slots, corner)
        for _ in range(most - drawn):
            share = chance.choice((0.1, 0.3, 0.5, 0.7, 0.9))
            yield self._image(
                slots,
                [top if chance.random() < share else chance.randint(0, top) for top in last],
            )

    def _corners(self, last: list[int], chance: random.Random) -> Iterator[list[int]]:
        """Nothing is lost, or all; then only one thing is, or is not."""
        yield list(last)
        yield [0] * len(last)
        order = list(range(len(last)))
        chance.shuffle(order)
        for slot in order:
            yield [0 if at == slot else top for at, top in enumerate(last)]
            yield [top if at == slot else 0 for at, top in enumerate(last)]

    def _slots(self) -> list[tuple[Any, list[Any]]]:
        """List the things that may be so or so: (file, page), (file, "size") or a directory, each
        with its options, of which the last one is what was written."""
        slots: list[tuple[Any, list[Any]]] = []
        for node in self._nodes():
            if isinstance(node, Directory):
                if node.changes:
                    slots.append((node, list(range(len(node.changes) + 1))))
                continue
            for page, versions in node.pages.items():
                if len(versions) > 1:
                    slots.append(((node, page), page_options(versions)))
            if len(node.sizes) > 1:
                slots.append(((node, "size"), sorted(set(node.sizes))))
        return slots

    def _nodes(self) -> list[Any]:
        """All that has a name, now or on the device."""
        found: dict[int, Any] = {}
        left: list[Any] = [self._root]
        while left:
            node = left.pop()
            if id(node) in found:
                continue
            found[id(node)] = node
            if isinstance(node, Directory):
                left += [*node.flushed.values(), *node.names.values()]
                left += [each.node for each in node.changes if each.node is not None]
        return list(found.values())

    def _image(
        self, slots: list[tuple[Any, list[Any]]], chosen: list[int], said: str = ""
    ) -> Image:
        pages: dict[tuple[int, int], bytes] = {}
        sizes: dict[int, int] = {}
        counts: dict[int, int] = {}
        for (what, options), choice in zip(slots, chosen, strict=True):
            if isinstance(what, Directory):
                counts[id(what)] = options[choice]
            elif what[1] == "size":
                sizes[id(what[0])] = options[choice]
            else:
                pages[id(what[0]), what[1]] = options[choice]
        all_written = all(
            choice == len(options) - 1 for (_, options), choice in zip(slots, chosen, strict=True)
        )
        made = {
            id(change)
            for what, _ in slots
            if isinstance(what, Directory)
            for change in what.changes[: counts[id(what)]]
        }
        files: dict[str, tuple[int, Pages] | None] = {}
        left: list[tuple[str, Directory]] = [("", self._root)]
        while left:
            path, directory = left.pop()
            names = directory.names
            if id(directory) in counts:
                names = directory.names_after(counts[id(directory)], made)
            for name, node in names.items():
                if isinstance(node, Directory):
                    files[path + name] = None
                    left.append((f"{path}{name}/", node))
                else:
                    files[path + name] = content_of(node, pages, sizes)
        return Image(files, all_written, said or " ".join(map(str, chosen)))


def content_of(
    file: File, pages: dict[tuple[int, int], bytes], sizes: dict[int, int]
) -> tuple[int, Pages]:
    size = sizes.get(id(file), file.sizes[-1])
    found: Pages = {}
    for page, versions in file.pages.items():
        data = pages.get((id(file), page), versions[-1])
        if page * PAGE < size and data != ZEROS:
            found[page] = data if (page + 1) * PAGE <= size else data[: size - page * PAGE]
    return size, found


def page_options(versions: list[bytes]) -> list[bytes]:
    """The contents a page may have: the versions and, in front of the last one, those torn between
    two that follow one another, and between the first and the last."""
    found = dict.fromkeys(versions)
    pairs = [*itertools.pairwise(versions), (versions[0], versions[-1])]
    for old, new in pairs:
        for at in range(SECTOR, PAGE, SECTOR):
            found.setdefault(new[:at] + old[at:])
            found.setdefault(old[:at] + new[at:])
    last = versions[-1]
    return [*(each for each in found if each != last), last]
