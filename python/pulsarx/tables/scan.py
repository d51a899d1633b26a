"""Topics that are read lazily, in batches: what `Client.scan` returns."""

from __future__ import annotations

import pyarrow as pa

from pulsarx.ground.extras import optional_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.tables.reading import TableRead


class TopicScan:
    """The messages that topics held when this was made, as a table that is read when it is used,
    as often as it is used, and of which no more than a few batches are in memory at once. Any
    thread may use it, as long as its client is open.

    Each use raises TopicNotFound when a topic was deleted since, and DataLossError when retention
    or `truncate` removed messages that it needs."""

    def __init__(self, read: TableRead) -> None:
        self.read = read

    @property
    def schema(self) -> pa.Schema:
        """The columns, as a `pyarrow.Schema`."""
        return self.read.schema

    def to_reader(self) -> pa.RecordBatchReader:
        """Return a `pyarrow.RecordBatchReader`, which reads batch after batch."""
        batches = (batch for table in self.read.tables(None) for batch in table.to_batches())
        return pa.RecordBatchReader.from_batches(self.schema, batches)

    def to_arrow(self) -> pa.Table:
        """Return all of it as a `pyarrow.Table`."""
        return pa.concat_tables([self.schema.empty_table(), *self.read.tables(None)])

    def to_polars(self) -> Any:
        """Return a `polars.LazyFrame`. Columns, conditions and a `head` of a query are applied
        while messages are read: those on `__key__`, `__publish_time__` and the other metadata
        before values are decoded, of which only the columns of the query are. ImportError: polars
        is missing.
        """
        optional_module("polars", "polars", "to_polars")
        from pulsarx.tables.polars_scan import lazy_frame

        return lazy_frame(self.read)

    def to_duckdb(self, connection: Any = None) -> Any:
        """Return a `duckdb.DuckDBPyRelation` on a connection, None: the default one. Columns and
        conditions are applied as by `to_polars`, as far as DuckDB hands them over. ImportError:
        duckdb is missing."""
        duckdb = optional_module("duckdb", "sql", "to_duckdb")
        from pulsarx.tables.dataset import TopicDataset

        made = duckdb if connection is None else connection
        return made.from_arrow(TopicDataset(self.read))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The batches, for whatever takes Arrow streams."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"TopicScan({self.read.topic}, columns={self.schema.names!r:.200})"
