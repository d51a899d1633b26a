"""count() of the DataFrames that read_topic returns: the tasks count, and no column goes to Spark.

Spark tells neither a data source of Python nor a function of mapInArrow which columns a query
needs, and for a count it needs none: it would have all of them read and sent, row by row.
"""

from __future__ import annotations

import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame

COUNT_DDL = "messages long"


def count_row(count: int) -> pa.RecordBatch:
    """Return what a task tells."""
    import pyarrow as pa

    return pa.record_batch([pa.array([count], pa.int64())], ["messages"])


def count_in_tasks(frame: DataFrame, counted: Callable[[], DataFrame]) -> None:
    """Let count() of this very frame add what tasks have counted. What is made of the frame, by
    where() or select(), counts as ever, and so does the frame once it is cached: there count() is
    how a program fills the cache.

    counted: a frame with the counts, of the messages that the other one has.
    """
    kind = type(frame)
    known = weakref.ref(frame)  # a cycle would keep the frame, and with it its lease

    def count() -> int:
        whole = known()
        if whole is not None and getattr(whole, "is_cached", False):
            return int(kind.count(whole))
        return sum(int(row[0]) for row in counted().collect())

    count.__doc__ = kind.count.__doc__
    frame.__dict__["count"] = count
