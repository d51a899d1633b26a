"""The golden folders: where they lie, how one is kept and taken out, and the numbers of formats.

golden/<version>/folder.tar.xz   the folder `data` as a killed owner left it, and `store`, the
                                 objects of what was offloaded. One archive, as git keeps neither
                                 empty folders nor zeros well: 1 MB of files is 30 KB of it.
golden/<version>/expected.json   what is in it (`golden_contents`), and the numbers of its formats
"""

from __future__ import annotations

import io
import json
import lzma
import tarfile
from pathlib import Path
from typing import Any

import pulsarx

GOLDEN = Path(__file__).resolve().parent / "golden"
LINE_MAX = 160  # of what is kept
STORE = "memory://pulsarx-golden"  # a name without a place: it is read wherever the copy lies


class GoldenFolder:
    """One of them. A value."""

    def __init__(self, place: Path) -> None:
        self.name = place.name
        self.archive = place / "folder.tar.xz"
        self._expected = place / "expected.json"

    def expected(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._expected.read_text())
        return found

    def expect(self, document: dict[str, Any]) -> None:
        self._expected.write_text(shown(document) + "\n")

    def unpack(self, target: Path) -> Path:
        """A copy of the folder, below target; its object store is filled."""
        with tarfile.open(self.archive) as archive:
            archive.extractall(target, filter="fully_trusted")
        fill_store(target / "store")
        return target / "data"


def shown(value: Any, indent: str = "") -> str:
    """As JSON, with a line for each message and setting."""
    line = json.dumps(value)
    if len(line) + len(indent) <= LINE_MAX or not isinstance(value, (dict, list)) or not value:
        return line
    deeper = indent + " "
    if isinstance(value, dict):
        if "data" in value and "id" in value:  # a message
            return line
        parts = [f"{json.dumps(key)}: {shown(each, deeper)}" for key, each in value.items()]
        begin, end = "{", "}"
    else:
        parts = [shown(each, deeper) for each in value]
        begin, end = "[", "]"
    return f"{begin}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{end}"


def golden_folders() -> list[GoldenFolder]:
    return [GoldenFolder(each) for each in sorted(GOLDEN.iterdir()) if each.is_dir()]


def pack(place: Path, archive: Path) -> None:
    """Same bytes for the same files: names in order, no times, no users."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(place.rglob("*")):
            entry = tarfile.TarInfo(path.relative_to(place).as_posix())
            entry.mode = 0o755 if path.is_dir() else 0o644
            if path.is_dir():
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)
                continue
            data = path.read_bytes()
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    archive.write_bytes(lzma.compress(made.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def store_files() -> Any:
    """The object store of all golden folders, which lives in this process."""
    import fsspec  # type: ignore[import-untyped]

    return fsspec.filesystem("memory")


def fill_store(place: Path) -> None:
    store = store_files()
    for path in sorted(place.rglob("*.ledger")):
        target = f"{STORE}/{path.relative_to(place).as_posix()}"
        store.makedirs(target.rpartition("/")[0], exist_ok=True)
        store.pipe_file(target, path.read_bytes())


def formats_of(folder: Path) -> dict[str, int]:
    """The number of each format of a folder, as its files say it."""
    marker = (folder / "PULSARX").read_bytes().split(b"\0")[0].decode().splitlines()
    found = {"folder": int(marker[1].removeprefix("format "))}
    for kind in ("commit", "checkpoint", "sequences"):
        found[kind] = max(map(_version, folder.rglob(f"*.{kind}")))
    for path in folder.rglob("*.ends"):  # which a killed owner leaves
        found["end"] = _version(path)
    (ledger, *_) = sorted(folder.rglob("*.ledger"))
    (cursor, *_) = sorted(each for each in (folder / "cursors").iterdir() if each.is_file())
    for kind, path, at in (("ledger", ledger, 8), ("cursor", cursor, 8)):
        found[kind] = int.from_bytes(path.read_bytes()[at : at + 4], "little")
    found["ends"] = int.from_bytes((folder / "ends").read_bytes()[16:20], "little")
    return found


def _version(path: Path) -> int:
    return int(path.read_bytes().split(b" ", 3)[2])


def newest_formats(folder: Path) -> dict[str, int]:
    """The numbers of what this version writes, by a folder that it makes."""
    options = pulsarx.BrokerOptions(
        broker_deduplication_enabled=True, broker_deduplication_entries_interval=1
    )
    for number in range(2):  # the second end leaves a checkpoint
        with pulsarx.Client(folder, durability="os", broker_options=options) as client:
            for each in range(12):
                client.admin.topics.create_non_partitioned_topic(f"t{number}-{each}")
            with client.create_producer("t", "p") as producer:
                producer.send(b"one")
                producer.send(b"two")
            client.subscribe("t", "s")
            with client.new_transaction() as transaction, client.create_producer("u") as producer:
                producer.send(b"three", transaction=transaction)
            (ends,) = folder.rglob("*.ends")
            end = _version(ends)
    return {**formats_of(folder), "end": end}
