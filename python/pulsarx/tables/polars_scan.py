"""A scan of topics as a source of Polars: a LazyFrame whose columns, conditions and head are
applied while messages are read."""

from __future__ import annotations

import polars
import pyarrow as pa
import pyarrow.compute as pc
from polars.io.plugins import register_io_source

from pulsarx.tables.reading import METADATA, metadata_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pulsarx.tables.reading import TableRead
    from pulsarx.tables.selection import Block

_DESCRIBED = {f"__{name}__": name for name in METADATA}


def lazy_frame(read: TableRead) -> Any:
    """Make a LazyFrame, which reads when it is collected."""
    columns = read.schema
    described = read.names_described()

    def source(
        with_columns: list[str] | None, predicate: Any, n_rows: int | None, batch_size: int | None
    ) -> Iterator[Any]:
        names = with_columns
        if names is not None and predicate is not None:
            names = list(dict.fromkeys([*names, *predicate.meta.root_names()]))
        early = None
        # A head counts the rows before the condition.
        if predicate is not None and n_rows is None:
            early = _early_of(predicate, described)
        for table in read.tables(names, early):
            frame = polars.DataFrame(table)
            if n_rows is not None:
                frame = frame.head(n_rows)
                n_rows -= frame.height
            if predicate is not None:
                frame = frame.filter(predicate)
            yield frame if with_columns is None else frame.select(with_columns)
            if n_rows == 0:
                return

    found = polars.DataFrame(columns.empty_table())
    return register_io_source(source, schema=found.schema)


def _early_of(predicate: Any, names: list[str]) -> Any:
    """Make the filter of the conditions that need no value; None: there is none."""
    conditions = [
        each
        for each in _conditions(predicate)
        if (roots := each.meta.root_names()) and set(roots) <= set(names)
    ]
    if not conditions:
        return None
    roots = {root for each in conditions for root in each.meta.root_names()}

    def early(block: Block) -> Block:
        # Arrays, as a column of a constant is one.
        columns = {name: metadata_of(block, _DESCRIBED[name]) for name in sorted(roots)}
        frame = polars.DataFrame(pa.table(columns)).with_row_index(_ROW)
        kept = frame.filter(*conditions)[_ROW].to_arrow()
        return block if len(kept) == len(block) else block.take(pc.cast(kept, pa.int64()))

    return early


_ROW = "pulsarx row"


def _conditions(predicate: Any) -> Iterator[Any]:
    """The conditions that must all hold."""
    parts = predicate.meta.pop()
    if len(parts) == 2:
        right, left = parts
        if predicate.meta.eq(left & right) or predicate.meta.eq(right & left):
            yield from _conditions(left)
            yield from _conditions(right)
            return
    yield predicate
