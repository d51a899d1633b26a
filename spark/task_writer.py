"""Writes what one task was given into sealed ledgers of the staging area. Runs in workers."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import uuid
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pulsarx import errors
from pulsarx.broker.staging.content_digest import ContentDigest
from pulsarx.broker.staging.partition_choice import partitions_of_keys
from pulsarx.broker.staging.sealed_writer import BATCH_MESSAGES_MAX, SealedLedgerWriter
from pulsarx.broker.staging.staged_file import StagedFile
from pulsarx.spark.commit_message import CommitMessage
from pulsarx.spark.topic_columns import DELIVER_AT, KEY_BYTES, ORDERING_KEY, PARTITION
from pulsarx.spark.written_columns import plain_columns
from pulsarx.spark.written_values import ValueEncoder
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from numpy.typing import NDArray

    from pulsarx.spark.write_job import WriteJob

VALUE, KEY, TOPIC = "value", "__key", "__topic"
EVENT_TIME, PROPERTIES = "__eventTime", "__messageProperties"
# Each takes two file descriptors and 256 MiB of address space; 1024 descriptors are usual.
OPEN_MAX = 200
_GIVEN = "given"  # what the value was made of, beside it
_DESCRIBING = (PARTITION, ORDERING_KEY, DELIVER_AT, KEY_BYTES)


class TaskWriter:
    """Writes for one attempt of one task. As a context manager: aborted unless it was finished."""

    def __init__(self, job: WriteJob, partition_id: int, attempt: str) -> None:
        """partition_id: of Spark. attempt: for the names of files; no two attempts share one."""
        self.job = job
        self.partition_id = partition_id
        self.message_count: int = 0
        self._prefix = f"{partition_id}-{attempt}-{uuid.uuid4().hex[:12]}"
        # By the full name of the topic; the one written to longest ago comes first.
        self._open: dict[str, SealedLedgerWriter] = {}
        self._files: list[StagedFile] = []
        self._file_count = 0
        self._keyless_count = 0
        self._content = ContentDigest()
        self._values: ValueEncoder | None = None
        if job.values is not None:
            self._values = ValueEncoder(job.values, is_compared=bool(job.on_conflict))

    def add(self, batch: pa.RecordBatch) -> None:
        """Each row a message, in their order.

        TypeError, ValueError: columns that no message has. ValueError, MessageTooBig, TopicNotFound
        name the row, as it is counted in the Spark partition.
        """
        given = None
        if self._values is not None:
            try:
                batch = self._values.batch(batch)
            except ValueError as error:
                raise self._of_row(error, _row_in(error)) from None
            given = self._values.take_given()
        batch = plain_columns(batch)
        if batch.num_rows == 0:
            return
        if self.job.needs_key:
            self._check_keys(batch)
        if KEY_BYTES in batch.schema.names:
            batch = self._with_keys_of_bytes(batch)
        for topic, part, at in self._by_topic(batch):
            partition_count = self.job.partition_counts[topic]
            if partition_count == 0:
                self._check_unparted(topic, part, at)
                self._append(topic, part, at)
            else:
                whole = TopicName.of(topic)
                for index, rows, of_part in self._by_partition(part, at, partition_count):
                    self._append(str(whole.partition(index)), rows, at[of_part])
            if self.job.on_conflict:
                if given is not None:
                    part = part.append_column(_GIVEN, given.take(pa.array(at)))
                self._digest(topic, part)
        self.message_count += batch.num_rows

    def finish(self) -> CommitMessage:
        """Seal what is open, and tell what there is."""
        for topic in list(self._open):
            self._seal(topic)
        return CommitMessage(
            self.partition_id,
            self.message_count,
            self._files,
            self._content.value,
            self._content.given,
        )

    def abort(self) -> None:
        """Remove what this attempt has written, sealed files too: the driver does not know them."""
        for writer in self._open.values():
            # A disk that refuses must not hide why it was aborted; the rest is collected by age.
            with contextlib.suppress(OSError):
                writer.abort()
        self._open.clear()
        for file in self._files:
            with contextlib.suppress(OSError):
                os.unlink(file.path)
        self._files = []

    def _check_keys(self, batch: pa.RecordBatch) -> None:
        """A message without a key, as one with an empty key is, is no part of a table: nobody who
        reads that would see the row."""
        keys = batch.column(KEY).cast(pa.large_binary())
        sizes = pc.fill_null(pc.binary_length(keys), 0).to_numpy(zero_copy_only=False)
        flaws = np.flatnonzero(sizes == 0)
        if flaws.size:
            found = "null" if not keys[int(flaws[0])].is_valid else "empty"
            reason = f"{KEY} is {found}; each row is the newest state of its key, so it needs one"
            raise self._of_row(ValueError(reason), int(flaws[0]))

    def _with_keys_of_bytes(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with the base64 of each key that is bytes as its key, and those alone in
        KEY_BYTES."""
        found = batch.column(KEY_BYTES).to_pylist()
        names = batch.schema.names
        keys = batch.column(KEY).to_pylist() if KEY in names else [None] * batch.num_rows
        for row, key_bytes in enumerate(found):
            if not key_bytes:
                found[row] = None  # an empty one is none, as an empty text
                continue
            key = keys[row]
            key = key.encode() if isinstance(key, str) else key
            text = base64.b64encode(key_bytes)
            if key == key_bytes:
                found[row] = None  # a text that was read, and its bytes
            elif key is None or key == text:
                keys[row] = text
            else:
                reason = (
                    f"{KEY} is {key!r:.80} and {KEY_BYTES} {key_bytes!r:.80}: give one of them, or "
                    f"as {KEY} the text or the base64 of these bytes"
                )
                raise self._of_row(ValueError(reason), row)
        columns = dict(zip(names, batch.columns))
        columns[KEY_BYTES] = pa.array(found, pa.binary())
        encoded = [each.encode() if isinstance(each, str) else each for each in keys]
        columns[KEY] = pa.array(encoded, pa.binary())
        return pa.RecordBatch.from_pydict(columns)

    # Where a row goes -----------------------------------------------------------------------------

    def _by_topic(
        self, batch: pa.RecordBatch
    ) -> Iterator[tuple[str, pa.RecordBatch, NDArray[np.int64]]]:
        """Full names of topics, their rows in order, and where these are in the batch."""
        everything = np.arange(batch.num_rows)
        if self.job.topic is not None:
            yield self.job.topic, batch, everything
            return
        if TOPIC not in batch.schema.names:
            raise ValueError(f"no topic was given and there is no column {TOPIC!r} to name one")
        names, of_row = _encoded(batch.column(TOPIC))
        topics: dict[str, int] = {}  # fewer than names, which may be short and long
        table = np.full(len(names) + 1, -1, np.int64)
        for code in np.unique(of_row):
            try:
                if code < 0:
                    raise ValueError(f"{TOPIC} is null; it must name a topic")
                table[code] = topics.setdefault(self.job.full_name(names[code]), len(topics))
            except (ValueError, errors.PulsarException) as error:
                raise self._of_row(error, int(np.argmax(of_row == code))) from None
        found = list(topics)
        for place, at in _split(table[of_row], len(found)):
            yield found[place], _taken(batch, at), at

    def _by_partition(
        self, batch: pa.RecordBatch, at: NDArray[np.int64], count: int
    ) -> Iterator[tuple[int, pa.RecordBatch, NDArray[np.int64]]]:
        """Rows with a key by its hash; the others in turn, many together, as producers do."""
        chosen = np.full(batch.num_rows, -1, np.int64)
        if KEY in batch.schema.names:
            keys, of_row = _encoded(batch.column(KEY))
            of_key = partitions_of_keys(keys, count, self.job.hashing_scheme)
            # A null has the index -1: the last of the table.
            chosen = np.array([*of_key, -1], np.int64)[of_row]
        if PARTITION in batch.schema.names:
            wanted = _partitions_wanted(batch)
            flaws = np.flatnonzero((wanted < -1) | (wanted >= count))
            if flaws.size:
                reason = f"{PARTITION} is {wanted[flaws[0]]}; the topic has {count} partitions"
                raise self._of_row(ValueError(reason), int(at[flaws[0]]))
            chosen = np.where(wanted < 0, chosen, wanted)
        keyless = np.flatnonzero(chosen < 0)
        if keyless.size:
            turns = (np.arange(keyless.size) + self._keyless_count) // BATCH_MESSAGES_MAX
            chosen[keyless] = (turns + self.partition_id) % count
            self._keyless_count += int(keyless.size)
        for index, of_part in _split(chosen, count):
            yield index, _taken(batch, of_part), of_part

    def _check_unparted(self, topic: str, rows: pa.RecordBatch, at: NDArray[np.int64]) -> None:
        if PARTITION not in rows.schema.names:
            return
        wanted = _partitions_wanted(rows)
        flaws = np.flatnonzero(wanted != -1)
        if flaws.size:
            reason = f"{PARTITION} is {wanted[flaws[0]]}; {topic} has no partitions"
            raise self._of_row(ValueError(reason), int(at[flaws[0]]))

    def _digest(self, topic: str, rows: pa.RecordBatch) -> None:
        """Add rows to the digest; what is not in the columns that a digest knows is part of the
        topic to it."""
        columns = _present(rows)
        if _GIVEN in rows.schema.names:
            columns["given"] = _GIVEN
        names = [name for name in _DESCRIBING if name in rows.schema.names]
        if not names:
            self._content.add(rows, topic, VALUE, **columns)
            return
        described = list(zip(*(_described(rows.column(name)) for name in names)))
        for row, found in enumerate(described):
            extra = "" if not any(each is not None for each in found) else f"\0{found!r}"
            self._content.add(rows.slice(row, 1), topic + extra, VALUE, **columns)

    def _of_row(self, error: Exception, row: int) -> Exception:
        """The error, telling the row by its number in what this task was given."""
        named = f"row {self.message_count + row} of Spark partition {self.partition_id}"
        detail = errors.detail_of(error)
        text, told = re.subn(r"\brow \d+", named, detail, count=1)
        text = text if told else f"{named}: {detail}"
        if isinstance(error, errors.MessageTooBig):
            text += (
                f", {self.job.max_message_size} bytes. Option maxMessageSize (argument "
                "max_message_size) sets it; brokers that take more are given as much"
            )
        if isinstance(error, errors.PulsarException):
            return errors.remade(type(error), text, errors.attributes_of(error))
        error.args = (text,)
        return error

    # Files ----------------------------------------------------------------------------------------

    def _append(self, topic: str, rows: pa.RecordBatch, at: NDArray[np.int64]) -> None:
        writer = self._open.pop(topic, None) or self._create(topic)
        self._open[topic] = writer
        before = writer.message_count
        try:
            for part, is_by_row in _runs(rows):
                if is_by_row:
                    _append_by_row(writer, part)
                else:
                    writer.append_arrow(part, VALUE, **_present(part))
        except (ValueError, errors.MessageTooBig) as error:
            raise self._of_row(error, int(at[writer.message_count - before])) from None
        if writer.size >= self.job.max_ledger_bytes:
            self._seal(topic)
        elif len(self._open) > OPEN_MAX:
            self._seal(next(iter(self._open)))

    def _create(self, topic: str) -> SealedLedgerWriter:
        """FolderError: this host has not the staging area that the driver made."""
        job = self.job
        job.check_host()
        name = f"{self._prefix}-{self._file_count}.ledger"
        self._file_count += 1
        return SealedLedgerWriter(
            f"{job.staging}/{name}",
            job.folder_id,
            topic=topic,
            compression=job.compression,
            null_values=job.null_values,
            schema_version=None if job.values is None else job.values.version,
            max_message_size=job.max_message_size,
        )

    def _seal(self, topic: str) -> None:
        sealed = self._open[topic].seal(flush=self.job.flush)
        del self._open[topic]
        if sealed is not None:
            self._files.append(StagedFile.of_sealed(topic, sealed))

    def __enter__(self) -> TaskWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.abort()


def _present(rows: pa.RecordBatch) -> dict[str, str]:
    """The columns that messages are made of besides the value, as append_arrow names them."""
    columns = {"key": KEY, "properties": PROPERTIES, "event_time": EVENT_TIME}
    return {role: name for role, name in columns.items() if name in rows.schema.names}


def _described(column: pa.Array) -> list[Any]:
    """The values; of times that Python does not have, all as numbers."""
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (ValueError, OverflowError):
        return column.cast(pa.int64()).to_pylist()  # type: ignore[no-any-return]


def _row_in(error: ValueError) -> int:
    """The row that an error names."""
    found = re.match(r"row (\d+)", str(error))
    return int(found[1]) if found else 0


def _partitions_wanted(rows: pa.RecordBatch) -> NDArray[np.int64]:
    """-1: none."""
    column = rows.column(PARTITION).cast(pa.int64()).fill_null(-1)
    return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _runs(rows: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Neighbours that are taken as columns, and those that have something no column of
    append_arrow is for, in order."""
    is_by_row = np.zeros(rows.num_rows, bool)
    for name in (ORDERING_KEY, DELIVER_AT, KEY_BYTES):
        if name in rows.schema.names:
            is_by_row |= rows.column(name).is_valid().to_numpy(zero_copy_only=False)
    bounds = np.flatnonzero(np.diff(is_by_row)) + 1
    edges = [0, *bounds.tolist(), rows.num_rows]
    for start, end in pairwise(edges):
        yield rows.slice(start, end - start), bool(is_by_row[start])


def _append_by_row(writer: SealedLedgerWriter, rows: pa.RecordBatch) -> None:
    columns = {name: rows.column(name) for name in rows.schema.names}
    for name in (EVENT_TIME, DELIVER_AT):
        if name in columns and pa.types.is_timestamp(columns[name].type):
            columns[name] = columns[name].cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
    nothing = [None] * rows.num_rows
    found = {name: column.to_pylist() for name, column in columns.items()}
    roles = (VALUE, KEY, PROPERTIES, EVENT_TIME, ORDERING_KEY, DELIVER_AT, KEY_BYTES)
    for value, key, pairs, event_time, ordering_key, deliver_at, key_bytes in zip(
        *(found.get(name, nothing) for name in roles)
    ):
        for name, time_ms in ((DELIVER_AT, deliver_at), (EVENT_TIME, event_time)):
            if time_ms is not None and time_ms < 0:
                raise ValueError(f"row {writer.message_count}: {name} is before 1970")
        payload = value.encode() if isinstance(value, str) else value
        properties = dict(pairs) if pairs else None
        if ordering_key is None and deliver_at is None:
            writer.append(payload, key, properties, event_time, key_base64=True)
            continue
        writer.append_single(
            payload,
            key,
            properties,
            event_time,
            ordering_key=ordering_key,
            deliver_at=deliver_at,
            key_base64=key_bytes is not None,
        )


def _encoded(column: pa.Array) -> tuple[list[Any], NDArray[np.int64]]:
    """The distinct values, and of each row which of them; -1: null."""
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()  # it may hold a value twice, or null
    found = column.dictionary_encode()
    codes = found.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return found.dictionary.to_pylist(), codes.astype(np.int64)


def _split(places: NDArray[np.int64], count: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The rows of each place that has some, in their order."""
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(count + 1))
    for place in range(count):
        if bounds[place] < bounds[place + 1]:
            yield place, order[bounds[place] : bounds[place + 1]]


def _taken(batch: pa.RecordBatch, rows: NDArray[np.int64]) -> pa.RecordBatch:
    return batch if rows.size == batch.num_rows else batch.take(pa.array(rows))
