"""The stream sink of format("pulsarx"): each micro-batch is in its topics exactly once.

Spark repeats a batch under the same query id and batch id until it has noted its commit; the pair
is the transaction, so what was attached is not attached again. A new checkpoint is a new query.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from pulsarx.broker.attach import Transaction
from pulsarx.spark.commit import (
    StagedMessage,
    abort_messages,
    attach_messages,
    plan_write,
    write_task,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pyspark.sql.types import StructType

    from pulsarx.spark.options import Options


class StreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Spark makes one for the tasks and one more for each commit. Pickles."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        self._options = options
        self._plan = plan_write(options, schema, overwrite)

    def write(self, iterator: Iterator[Any]) -> StagedMessage:
        from pyspark import TaskContext

        context = TaskContext.get()
        query_id = context.getLocalProperty("sql.streaming.queryId") if context else None
        batch_id = context.getLocalProperty("streaming.sql.batchId") if context else None
        if not query_id or batch_id is None:
            raise RuntimeError(
                "Spark did not tell the task of which streaming query it is; this version of "
                "Spark is not supported as a stream sink"
            )
        return write_task(self._plan, f"spark-{query_id}-{batch_id}", iterator, str(query_id))

    def commit(self, messages: list[Any], batchId: int) -> None:
        query_id = next((each.query_id for each in messages if each is not None), None)
        if query_id is None:
            return  # no task ran, so there is nothing to attach
        transaction = Transaction(f"spark-query-{query_id}", batchId)
        attach_messages(self._options, transaction, messages)

    def abort(self, messages: list[Any], batchId: int) -> None:
        abort_messages(self._options, messages)
