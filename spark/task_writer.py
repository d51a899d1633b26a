"""Writes what one task was given into sealed ledgers of the staging area. Runs in workers."""

from __future__ import annotations

import os
import uuid

import numpy as np
import pyarrow as pa

from pulsarx.broker.partition_choice import partitions_of_keys
from pulsarx.broker.sealed_writer import BATCH_MESSAGES_MAX, SealedLedgerWriter
from pulsarx.broker.staged_file import StagedFile
from pulsarx.spark.commit_message import CommitMessage
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pulsarx.spark.write_job import WriteJob

VALUE, KEY, TOPIC = "value", "__key", "__topic"
EVENT_TIME, PROPERTIES = "__eventTime", "__messageProperties"


class TaskWriter:
    """One attempt of one task. As a context manager: aborted unless it was finished."""

    def __init__(self, job: WriteJob, partition_id: int, attempt: str) -> None:
        """partition_id: of Spark. attempt: for the names of files; no two attempts share one."""
        self.job = job
        self.partition_id = partition_id
        self.message_count = 0
        self._prefix = f"{partition_id}-{attempt}-{uuid.uuid4().hex[:12]}"
        self._open: dict[str, SealedLedgerWriter] = {}  # by the full name of the topic
        self._files: list[StagedFile] = []
        self._file_count = 0
        self._keyless_count = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Each row a message, in their order. ValueError, TypeError, MessageTooBig name the row."""
        if VALUE not in batch.schema.names:
            raise ValueError(f"there is no column {VALUE!r}, only {', '.join(batch.schema.names)}")
        for topic, part in self._by_topic(batch):
            name, partition_count = self.job.destination(topic)
            if partition_count == 0:
                self._append(name, part)
            else:
                whole = TopicName.of(name)
                for index, rows in self._by_partition(part, partition_count):
                    self._append(str(whole.partition(index)), rows)
        self.message_count += batch.num_rows

    def finish(self) -> CommitMessage:
        """Seal what is open, and tell what there is."""
        for topic in list(self._open):
            self._seal(topic)
        return CommitMessage(self.partition_id, self.message_count, self._files)

    def abort(self) -> None:
        """Remove what this attempt has written. Its sealed files too: nobody was told of them."""
        for writer in self._open.values():
            writer.abort()
        self._open.clear()
        for file in self._files:
            try:
                os.unlink(file.path)
            except OSError:
                pass
        self._files = []

    # Where a row goes -----------------------------------------------------------------------------

    def _by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        if self.job.topic is not None:
            yield self.job.topic, batch
            return
        if TOPIC not in batch.schema.names:
            raise ValueError(f"no topic was given and there is no column {TOPIC!r} to name one")
        topics = batch.column(TOPIC).dictionary_encode()
        if topics.null_count:
            row = self.message_count + topics.is_null().to_pylist().index(True)
            raise ValueError(f"row {row} of this task: {TOPIC} is null, so nobody knows its topic")
        names = topics.dictionary.to_pylist()
        for place, rows in _split(batch, topics.indices.to_numpy(), len(names)):
            yield names[place], rows

    def _by_partition(
        self, batch: pa.RecordBatch, count: int
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Rows with a key by its hash; the others in turn, many together, as producers do."""
        rows = batch.num_rows
        chosen = np.full(rows, -1, np.int64)
        if KEY in batch.schema.names:
            keys = batch.column(KEY)
            if not isinstance(keys, pa.DictionaryArray):
                keys = keys.dictionary_encode()
            of_key = partitions_of_keys(keys.dictionary.to_pylist(), count, self.job.hashing_scheme)
            # A null has the index -1: the last of the table.
            table = np.array([*of_key, -1], np.int64)
            chosen = table[keys.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
        keyless = np.flatnonzero(chosen < 0)
        if keyless.size:
            turns = (np.arange(keyless.size) + self._keyless_count) // BATCH_MESSAGES_MAX
            chosen[keyless] = (turns + self.partition_id) % count
            self._keyless_count += int(keyless.size)
        yield from _split(batch, chosen, count)

    # Files ----------------------------------------------------------------------------------------

    def _append(self, topic: str, rows: pa.RecordBatch) -> None:
        writer = self._open.get(topic)
        if writer is None:
            writer = self._open[topic] = self._create()
        names = rows.schema.names
        writer.append_arrow(
            rows,
            VALUE,
            key=KEY if KEY in names else None,
            properties=PROPERTIES if PROPERTIES in names else None,
            event_time=EVENT_TIME if EVENT_TIME in names else None,
        )
        if writer.size >= self.job.max_ledger_bytes:
            self._seal(topic)

    def _create(self) -> SealedLedgerWriter:
        """FolderError: this host has not the staging area that the driver made."""
        job = self.job
        name = f"{self._prefix}-{self._file_count}.ledger"
        self._file_count += 1
        return SealedLedgerWriter(
            f"{job.staging}/{name}",
            job.folder_id,
            compression=job.compression,
            null_values=job.null_values,
            max_message_size=job.max_message_size,
        )

    def _seal(self, topic: str) -> None:
        writer = self._open.pop(topic)
        sealed = writer.seal(flush=self.job.flush)
        if sealed is None:
            return
        self._files.append(
            StagedFile(
                topic, self.job.name, os.path.basename(sealed.path), sealed.uuid, sealed.folder_id,
                sealed.size, sealed.file_size, sealed.digest, sealed.entry_count,
                sealed.message_count, sealed.first_publish_ms, sealed.last_publish_ms,
                os.uname().nodename, sealed.path,
            )
        )  # fmt: skip

    def __enter__(self) -> TaskWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.abort()


def _split(
    batch: pa.RecordBatch, places: NDArray[np.int64], count: int
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each place, in their order."""
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(count + 1))
    for place in range(count):
        begin, end = int(bounds[place]), int(bounds[place + 1])
        if end - begin == batch.num_rows:
            yield place, batch
        elif begin < end:
            yield place, batch.take(pa.array(order[begin:end]))
