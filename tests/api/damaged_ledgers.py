"""Ledger files of a folder that nobody owns now, and damage to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from child_process import ChildProcess

from pulsarx import errors
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.catalogue.records import LEDGER_PREPARED
from pulsarx.broker.folder.data_directory import DataDirectory

HEADER_SIZE = 4096
FRAME_SIZE = 64


def ledger_paths(folder: Path) -> list[Path]:
    """Oldest first; without one that is prepared to be the next, or about to be."""
    directory = DataDirectory.open(str(folder), files=FileSystem(), read_only=True)
    state = Catalogue.open(directory).state
    directory.close()
    records = [each for topic in state.topics.values() for each in topic.ledgers]
    hidden = [each.ledger_id for each in records if each.state == LEDGER_PREPARED]
    found = sorted(folder.rglob("*.ledger"), key=lambda path: int(path.stem))
    return [each for each in found if int(each.stem) < min([state.next_id, *hidden])]


def frame_offsets(path: Path) -> list[int]:
    """Where the entries of a ledger begin, and where the last one ends."""
    data = path.read_bytes()
    found = [HEADER_SIZE]
    while size := int.from_bytes(data[found[-1] : found[-1] + 4], "little"):
        if data[found[-1] + FRAME_SIZE : found[-1] + FRAME_SIZE + 2] != b"\x0e\x01":
            break
        found.append(found[-1] + FRAME_SIZE + -(-size // 8) * 8)
    return found


def flip(path: Path, entry: int, part: str) -> int:
    """Change one bit of an entry's frame or payload; the offset of its frame."""
    offset = frame_offsets(path)[entry]
    at = offset + 20 if part == "frame" else frame_offsets(path)[entry + 1] - 8
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    return offset


def fill(path: Path, start: int, end: int, byte: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[start:end] = bytes([byte]) * (end - start)
    path.write_bytes(data)


def receive_all(consumer: Any) -> tuple[list[Any], list[str]]:
    """What a consumer or reader is given without waiting, and what it is told of damage."""
    receive = getattr(consumer, "read_next", None) or consumer.receive
    found, told = [], []
    while True:
        try:
            found.append(receive(0))
        except errors.CorruptDataError as error:
            told.append(str(error))
        except errors.Timeout:
            return found, told


def data_of(messages: list[Any]) -> list[str]:
    return [message.data().decode().rpartition(":")[2] for message in messages]


OWNER = """
import sys, pulsarx
from pulsarx.testing import inspect
options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=int(sys.argv[2]))
client = pulsarx.Client(sys.argv[1], durability="os", broker_options=options)
producer = client.create_producer("t")
print("owner", flush=True)
for line in sys.stdin:
    for payload in line.split():
        producer.send(payload.encode())
    inspect(client).settle()
    print("published", flush=True)
"""


class Owner:
    """Another process that owns a folder and publishes on topic t; killed when the block ends."""

    def __init__(self, folder: Path, entries_per_ledger: int = 1000) -> None:
        self._child = ChildProcess(OWNER, folder, entries_per_ledger)
        assert self._child.line() == "owner"

    def publish(self, *payloads: str) -> None:
        """Until what was filled by it is sealed."""
        self._child.tell(" ".join(payloads))
        assert self._child.line() == "published"

    def __enter__(self) -> Owner:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        self._child.__exit__(None, None, None)
