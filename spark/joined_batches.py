"""Puts small record batches together. Every batch costs Arrow and Java a fixed time on its way to
Spark, and a small ledger gives one that is far below what a batch may hold."""

from __future__ import annotations

import pyarrow as pa

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_LARGE_BYTES = 1 << 19  # copying more takes longer than a batch of its own


def join_small(
    batches: Iterable[pa.RecordBatch], rows_max: int, bytes_max: int
) -> Iterator[pa.RecordBatch]:
    """The same rows in the same order, in fewer batches. All have the same columns.

    A batch that is large goes through as it is; others are copied together up to the limits.
    """
    small: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        its_rows, its_size = batch.num_rows, batch.nbytes
        if small and (rows + its_rows > rows_max or size + its_size > bytes_max):
            yield _joined(small)
            small, rows, size = [], 0, 0
        if its_size >= _LARGE_BYTES or its_rows * 2 > rows_max:
            if small:
                yield _joined(small)
                small, rows, size = [], 0, 0
            yield batch
        else:
            small.append(batch)
            rows += its_rows
            size += its_size
    if small:
        yield _joined(small)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    # pyarrow.concat_batches is younger than the oldest version we take.
    table = pa.Table.from_batches(batches).combine_chunks()
    (found,) = table.to_batches() or [batches[0]]
    return found
