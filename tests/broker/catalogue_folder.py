"""A catalogue in a folder, for the tests of the catalogue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plain_files import PlainFiles

from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.catalogue.file import catalogue_file_encode
from pulsarx.broker.folder.copies import both_copies
from pulsarx.broker.folder.data_directory import DataDirectory

FILES = PlainFiles(flush=False)
TOPIC = "persistent://public/default/"


def open_folder(path: Path, **options: Any) -> tuple[DataDirectory, Catalogue]:
    directory = DataDirectory.open(str(path), files=options.pop("files", FILES))
    try:
        return directory, Catalogue.open(directory, **options)
    except BaseException:
        directory.close()
        raise


def read_folder(path: Path) -> Catalogue:
    return Catalogue.open(DataDirectory.open(str(path), files=FILES, read_only=True))


def create(catalogue: Catalogue, name: str) -> int:
    topic_id = catalogue.allocate_id()
    return catalogue.commit([{"op": "create_topic", "topic": TOPIC + name, "topic_id": topic_id}])


def commits(path: Path) -> list[Path]:
    return sorted((path / "catalogue").glob("*.commit"))


def checkpoints(path: Path) -> list[Path]:
    return sorted((path / "catalogue").glob("*.checkpoint"))


def append_by_hand(path: Path, operations: list[dict[str, Any]]) -> None:
    reader = read_folder(path)
    state = reader.state
    number = state.number + 1
    document: dict[str, Any] = {"number": number, "previous": state.checksum, "epoch": state.epoch}
    document |= {"writer": "w", "operations": operations}
    folder_id = DataDirectory.open(str(path), files=FILES, read_only=True).folder_id
    data, _ = catalogue_file_encode("commit", folder_id, document)
    (path / "catalogue" / f"{number:020d}.commit").write_bytes(both_copies(data))
