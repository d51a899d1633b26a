"""What Spark's own ways through Python take: sources that hand over rows which are there already,
and functions and sinks that drop theirs. No source or sink of Python can be faster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from spark_peers.values import DDL, PARTS, ROWS_AT_ONCE

NAME, RAW_DDL = "bare", "key string, value string"
TYPED, RAW = "typed", "raw"


def dropped(batches: Iterator[Any]) -> Iterator[Any]:
    """Of mapInArrow: nothing is made of the rows."""
    import pyarrow

    count = sum(batch.num_rows for batch in batches)
    yield pyarrow.RecordBatch.from_pydict({"rows": [count]})


class BareSource(DataSource):
    """Rows of Arrow files, one a task; none where option folder is empty. Read as a stream of one
    batch, and written as a stream to nowhere."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return RAW_DDL if self.options.get("kind") == RAW else DDL

    def streamReader(self, schema: Any) -> BareReader:
        return BareReader(self.options.get("folder", ""), self.options.get("kind", TYPED))

    def streamWriter(self, schema: Any, overwrite: bool) -> DroppingWriter:
        return DroppingWriter()


class ArrowPart(InputPartition):
    def __init__(self, path: str) -> None:
        super().__init__(None)
        self.path = path


class BareReader(DataSourceStreamReader):
    def __init__(self, folder: str, kind: str) -> None:
        self.folder = folder
        self.kind = kind

    def initialOffset(self) -> dict[str, int]:
        return {"at": 0}

    def latestOffset(self, *_: Any) -> dict[str, int]:
        return {"at": 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[ArrowPart]:
        if start == end:
            return []
        names = [f"{self.folder}/{self.kind}-{part}.arrow" for part in range(PARTS)]
        return [ArrowPart(name if self.folder else "") for name in names]

    def read(self, partition: Any) -> Iterator[Any]:
        if not partition.path:
            return
        import pyarrow

        with pyarrow.memory_map(partition.path) as file:
            reader = pyarrow.ipc.open_file(file)
            for number in range(reader.num_record_batches):
                yield reader.get_batch(number)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is kept."""


class DroppingWriter(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: list[Any], batchId: int) -> None:
        """Nothing was written."""

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Nothing was written."""


def make_parts(folder: Path, rows: Path) -> str:
    """The Arrow files of a folder of Parquet files, raw and decoded. Returns their folder."""
    import io

    import pyarrow
    import pyarrow.json
    import pyarrow.parquet

    folder.mkdir()
    for part in range(PARTS):
        raw = pyarrow.parquet.read_table(rows / f"{part}.parquet")
        text = "\n".join(raw["value"].to_pylist()).encode()
        options = pyarrow.json.ReadOptions(block_size=1 << 24)
        typed = pyarrow.json.read_json(io.BytesIO(text), options)
        for kind, table in ((RAW, raw), (TYPED, typed)):
            path = folder / f"{kind}-{part}.arrow"
            with pyarrow.ipc.new_file(path, table.schema) as file:
                file.write_table(table, max_chunksize=ROWS_AT_ONCE)
    return str(folder)
