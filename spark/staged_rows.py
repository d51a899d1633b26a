"""What a task of a Spark job writes: sealed ledgers in the staging area, one or more a topic
partition. Runs in workers. Nothing of it is seen before the driver attaches it.

A task that has not the folder of the driver under the same path fails here, at its first row.
"""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx.broker.partition_choice import HASHING_SCHEMES, partition_of_key
from pulsarx.broker.sealed_writer import SealedLedgerWriter
from pulsarx.broker.staged_file import StagedFile
from pulsarx.broker.staging import folder_id_of, make_staging
from pulsarx.enumerations import CompressionType
from pulsarx.spark.row_codec import KEY, VALUE
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.spark.options import Options
    from pulsarx.spark.row_codec import RowColumns

_COMPRESSIONS = {
    "none": CompressionType.NONE,
    "lz4": CompressionType.LZ4,
    "zlib": CompressionType.ZLib,
    "zstd": CompressionType.ZSTD,
    "snappy": CompressionType.SNAPPY,
}
_KEYLESS_RUN = 1000  # rows without a key that go to one partition before the next one's turn


class WritePlan:
    """All that tasks need to know, made in the driver. Pickles."""

    def __init__(
        self,
        options: Options,
        columns: RowColumns,
        folder_id: str,
        topics: dict[str, int],
        topic: str | None,
    ) -> None:
        """topics: number of partitions by full name, 0: none. topic: where all goes, if given."""
        self.options = options
        self.columns = columns
        self.folder_id = folder_id
        self.topics = topics
        self.topic = topic


class StagedRows:
    """Writes the rows of one task attempt. One thread. Ends with `seal` or `abort`."""

    def __init__(self, plan: WritePlan, job: str, name: str, turn: int) -> None:
        """name: of this attempt alone. turn: which partition takes the first keyless rows.

        FolderError: root is not the data directory that the driver has there.
        """
        self._plan = plan
        self._job = job
        self._name = name
        self._turn = turn
        self._left = _KEYLESS_RUN
        self._writers: dict[str, SealedLedgerWriter] = {}
        self._sealed: list[StagedFile] = []
        self._made = 0
        self._area = ""
        self._rows = 0  # of the task, for texts
        self._full: dict[str, str] = {}
        self._hashing = HASHING_SCHEMES[plan.options.hashingScheme]
        check_folder(plan.options.root, plan.folder_id)

    def write(self, batch: Any) -> None:
        """Take a record batch. MessageTooBig, ValueError, TopicNotFound: name the row."""
        if self._plan.topic is not None:
            self._write_topic(self._plan.topic, batch)
        elif batch.num_rows:
            self._write_by_topic(batch)
        self._rows += batch.num_rows

    def _write_by_topic(self, batch: Any) -> None:
        import pyarrow
        import pyarrow.compute

        names = batch.column(self._plan.columns.topic)
        if names.null_count:
            row = names.is_null().to_pylist().index(True)
            raise ValueError(
                f"row {self._rows + row} of this task: __topic is null. Fill it, or give option "
                "topic for all rows"
            )
        for name in pyarrow.compute.unique(names).to_pylist():
            full = self._full.get(name)
            if full is None:
                full = self._full[name] = self._known_topic(name)
            mask = pyarrow.compute.equal(names, name)
            self._write_topic(full, batch.filter(mask))

    def _known_topic(self, name: str) -> str:
        try:
            full = str(TopicName.of(name))
        except errors.InvalidTopicName as error:
            raise ValueError(f"__topic {name!r:.200}: {error}") from error
        if full not in self._plan.topics:
            raise unknown_topic(full, self._plan.topics, self._plan.options.root)
        return full

    def _write_topic(self, topic: str, batch: Any) -> None:
        count = self._plan.topics[topic]
        if not batch.num_rows:
            return
        if count == 0:
            self._append(topic, batch)
            return
        name = TopicName.of(topic)
        if self._plan.columns.key is None:
            self._write_keyless(name, count, batch)
            return
        if count == 1:
            self._append(str(name.partition(0)), batch)
            return
        chosen = self._choose(batch.column(KEY), count)
        import pyarrow

        for index, rows in enumerate(chosen):
            if rows:
                part = batch.take(pyarrow.array(rows, pyarrow.int32()))
                self._append(str(name.partition(index)), part)

    def _write_keyless(self, name: TopicName, count: int, batch: Any) -> None:
        at = 0
        while at < batch.num_rows:
            rows = min(self._left, batch.num_rows - at)
            self._append(str(name.partition(self._turn % count)), batch.slice(at, rows))
            at += rows
            self._take_turn(rows)

    def _take_turn(self, rows: int) -> None:
        self._left -= rows
        if self._left == 0:
            self._turn += 1
            self._left = _KEYLESS_RUN

    def _choose(self, keys: Any, count: int) -> list[list[int]]:
        """Numbers of the rows for each partition, in order."""
        encoded = keys.dictionary_encode()
        partitions = [
            partition_of_key(self._hashing, key, count) if key else None
            for key in encoded.dictionary.to_pylist()
        ]
        chosen: list[list[int]] = [[] for _ in range(count)]
        for row, number in enumerate(encoded.indices.to_pylist()):
            index = None if number is None else partitions[number]
            if index is None:
                index = self._turn % count
                self._take_turn(1)
            chosen[index].append(row)
        return chosen

    def _append(self, topic: str, batch: Any) -> None:
        columns = self._plan.columns
        writer = self._writers.get(topic)
        if writer is None:
            writer = self._writers[topic] = self._new_writer()
        try:
            writer.append_arrow(
                batch,
                VALUE,
                key=columns.key,
                properties=columns.properties,
                event_time=columns.event_time,
            )
        except errors.MessageTooBig as error:
            raise errors.MessageTooBig(
                f"write to {topic} (behind row {self._rows} of this task): {error}. Values may "
                f"have {self._plan.options.maxMessageSize} bytes: option maxMessageSize"
            ) from error
        except ValueError as error:
            raise ValueError(
                f"write to {topic} (behind row {self._rows} of this task): {error}. Messages "
                "without a value need option nullValues=allow"
            ) from error
        if writer.size >= self._plan.options.maxLedgerBytes:
            self._seal_one(topic)

    def _new_writer(self) -> SealedLedgerWriter:
        options = self._plan.options
        if not self._area:
            self._area = make_staging(options.root, self._job)
        path = f"{self._area}/{self._name}-{self._made:05d}.ledger"
        self._made += 1
        return SealedLedgerWriter(
            path,
            self._plan.folder_id,
            max_message_size=options.maxMessageSize,
            compression=int(_COMPRESSIONS[options.compression]),
            null_values=options.nullValues == "allow",
        )

    def _seal_one(self, topic: str) -> None:
        writer = self._writers.pop(topic)
        try:
            sealed = writer.seal(flush=self._plan.options.flush)
        except BaseException:
            writer.abort()
            raise
        if sealed is not None:
            self._sealed.append(
                StagedFile(
                    topic,
                    self._job,
                    os.path.basename(sealed.path),
                    sealed.uuid,
                    sealed.folder_id,
                    sealed.size,
                    sealed.file_size,
                    sealed.digest,
                    sealed.entry_count,
                    sealed.message_count,
                    sealed.first_publish_ms,
                    sealed.last_publish_ms,
                    os.uname().nodename,
                    sealed.path,
                )  # fmt: skip
            )

    def seal(self) -> list[StagedFile]:
        """Finish all files; they are on the device then."""
        for topic in sorted(self._writers):
            self._seal_one(topic)
        return self._sealed

    def abort(self) -> None:
        """Remove what was written. May be called twice."""
        for writer in self._writers.values():
            writer.abort()
        self._writers.clear()
        remove_staged(self._plan.options.root, self._sealed)
        self._sealed = []


def check_folder(root: str, folder_id: str) -> None:
    """FolderError: root is another data directory here, or none."""
    found = folder_id_of(root)
    if found != folder_id:
        raise errors.FolderError(
            f"write into {root} on host {os.uname().nodename}: it is data directory {found} there, "
            f"the driver has {folder_id}. Mount the same path on driver and executors"
        )


def remove_staged(root: str, files: list[StagedFile]) -> None:
    """Take staged names away. What was attached has a name of its own and stays."""
    from pulsarx.broker.staged_file import staged_path

    for file in files:
        try:
            os.unlink(staged_path(root, file.job, file.name))
        except OSError:
            pass  # attached, collected, or this host cannot reach it: it goes by age


def unknown_topic(full: str, known: dict[str, int], root: str) -> errors.TopicNotFound:
    import difflib

    near = difflib.get_close_matches(full, known, 1, 0.8)
    asked = f"; did you mean {near[0]}?" if near else ""
    return errors.TopicNotFound(f"{full} in {root}{asked} Create the topic before writing to it")
