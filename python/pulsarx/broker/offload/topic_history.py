"""Makes and reads what lies beside the offloaded ledgers of a topic, so that they can be read
without its folder: its ledgers up to the last one that is in the store, with what was aborted in
them, which object has which, and its schemas. As an object of its own: a line with a checksum, and
JSON.

    <folder id>/history/<digest of the topic's name>/<partition>.<number>-<random>.json

A new one never takes the place of another: it has a higher number and a name of its own, and the
older ones go when it was read back. Of those of a partition the one with the highest number counts,
of equal ones that whose name sorts behind. The number is that of the commit it was made of, or
higher: one that a store makes late is below those of later commits. What is damaged, or was not
written to its end, is no history; then that before is. Earlier versions wrote names without the
random part.
"""

from __future__ import annotations

import hashlib
import json
import os
import re

from pulsarx import errors
from pulsarx.broker.catalogue.records import (
    LEDGER_SEALED,
    OffloadRecord,
    SchemaRecord,
    TopicRecord,
)
from pulsarx.broker.offload.stored_object import joined
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.catalogue.state import CatalogueState

_MARK = "pulsarx-history"
_FORMAT = 1
SUFFIX = ".json"
_NAME = re.compile(r"(-1|[0-9]{1,9})\.([0-9]{1,18})(?:-[0-9a-f]{1,32})?\.json")


class TopicHistory:
    """A topic, or one of its partitions, as far as it is in a store. A value."""

    __slots__ = (
        "folder_id", "record", "partition_count", "offloads", "schemas", "rest_ledgers",
        "rest_messages", "written_ms", "body",
    )  # fmt: skip

    def __init__(self, document: dict[str, Any], url: str) -> None:
        """url: the place in whose history it was found."""
        body: dict[str, Any] = document["body"]
        self.body: dict[str, Any] = body
        self.folder_id: str = body["folder_id"]
        self.record: TopicRecord = TopicRecord.of_row(body["record"])
        self.record.aborted = {int(each): runs for each, runs in self.record.aborted.items()}
        self.partition_count: int = body["partitions"]  # of the whole topic; 0: it has none
        topic = self.record.name
        self.offloads: dict[int, OffloadRecord] = {
            file_id: OffloadRecord(
                file_id, topic, uuid, _location(url, self.folder_id, name), size, offloaded_ms
            )
            for file_id, uuid, name, size, offloaded_ms in body["objects"]
        }
        self.schemas: tuple[SchemaRecord, ...] = tuple(
            SchemaRecord(*row) for row in body["schemas"]
        )
        # Sealed ones behind it when this was written, in the folder alone.
        rest_ledgers, rest_messages = document["rest"]
        self.rest_ledgers: int = rest_ledgers
        self.rest_messages: int = rest_messages
        self.written_ms: int = document["written_ms"]

    def missing(self) -> list[int]:
        """Ledgers in between that are not in the store: damaged ones."""
        there = self.offloads
        return [each.ledger_id for each in self.record.ledgers if each.file_id not in there]


def place_of(folder_id: str, topic: str) -> tuple[str, int]:
    """The folder of a topic's histories, below the URL, and the number of the partition; -1."""
    name = TopicName.of(topic)
    digest = hashlib.sha256(name.partitioned_name.encode()).hexdigest()[:32]
    return f"{folder_id}/history/{digest}", name.partition_index


def new_name(partition: int, number: int) -> str:
    """The name of a new history, in the folder of its topic."""
    return f"{partition}.{number:012d}-{os.urandom(4).hex()}{SUFFIX}"


def parsed_name(name: str) -> tuple[int, int] | None:
    """The partition and the number in the name of a history; None: another object has it."""
    found = _NAME.fullmatch(name)
    return None if found is None else (int(found[1]), int(found[2]))


def whole_of(state: CatalogueState, topic: str) -> tuple[int, int]:
    """The id of the whole topic, and how many partitions it has; 0: none."""
    record, whole = state.topics.get(topic), state.topics.get(TopicName.of(topic).partitioned_name)
    if whole is not None:
        return whole.topic_id, whole.partition_count
    return (0 if record is None else record.topic_id), 0


def document_of(
    state: CatalogueState, topic: str, folder_id: str, url: str, now_ms: int
) -> dict[str, Any] | None:
    """The history of a topic, as one state of the catalogue has it; None: nothing of it is in the
    store, or it is deleted."""
    record = state.topics.get(topic)
    if record is None:
        return None
    # Behind one that is not sealed nothing is settled.
    sealed = []
    for each in record.ledgers:
        if each.state != LEDGER_SEALED:
            break
        sealed.append(each)
    there = {each.file_id: state.offload_of(each) for each in sealed}
    while sealed and there[sealed[-1].file_id] is None:
        sealed.pop()
    if not sealed:
        return None
    name = TopicName.of(topic)
    whole_id, partition_count = whole_of(state, topic)
    made = TopicRecord(record.topic_id, topic, 0, record.properties)
    made.ledgers = sealed
    made.removed_ledger_id = record.removed_ledger_id
    made.removed_messages = record.removed_messages
    made.removed_index = record.removed_index
    made.chunked = record.chunked
    ids = {each.ledger_id for each in sealed}
    made.aborted = {each: runs for each, runs in record.aborted.items() if each in ids}
    ends = {each.file_id for each in sealed}
    objects = [
        [
            each.file_id,
            each.uuid,
            _name(url, folder_id, each.location),
            each.size,
            each.offloaded_ms,
        ]
        for each in there.values()
        if each is not None and each.file_id in ends
    ]
    rest = [each for each in record.ledgers[len(sealed) :] if each.state == LEDGER_SEALED]
    body = {
        "folder_id": folder_id,
        "record": made.row(),
        "whole_id": whole_id,  # tells topics apart that had the same name one after the other
        "partitions": partition_count,
        "objects": objects,
        "schemas": [each.row() for each in state.schemas.get(name.partitioned_name, ())],
    }
    return {
        # As it is read back.
        "body": json.loads(json.dumps(body)),
        "rest": [len(rest), sum(each.message_count for each in rest)],
        "written_ms": now_ms,
    }


def encode(document: dict[str, Any]) -> bytes:
    text = json.dumps(document, separators=(",", ":"))
    return f"{_MARK} {_FORMAT} {hashlib.sha256(text.encode()).hexdigest()}\n{text}".encode()


def decode(data: bytes, url: str, shown: str) -> TopicHistory | None:
    """None: it is damaged, or was not written to its end. NewerFormatError: a later version of
    PulsarX wrote it. shown: for the error."""
    head, _, text = data.partition(b"\n")
    mark = head.decode("ascii", "replace").split(" ")
    if len(mark) != 3 or mark[0] != _MARK or not mark[1].isdigit():
        return None
    if int(mark[1]) > _FORMAT:
        raise errors.NewerFormatError(
            detail=f"read {shown}: a later version of PulsarX wrote it (format {mark[1]}, this one "
            f"reads {_FORMAT}). Upgrade"
        )
    if hashlib.sha256(text).hexdigest() != mark[2]:
        return None
    return TopicHistory(json.loads(text), url)


def _name(url: str, folder_id: str, location: str) -> str:
    """How an object is named: as where it lies beside, so that the place may be reached by another
    URL; in full where it lies elsewhere."""
    beside, mark, _ = joined(url, f"{folder_id}/\n").partition("\n")
    plain = location.partition("?")[0]
    return plain.removeprefix(beside) if mark and plain.startswith(beside) else location


def _location(url: str, folder_id: str, name: str) -> str:
    return name if "://" in name else joined(url, f"{folder_id}/{name}")
