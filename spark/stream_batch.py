"""Finds out which micro-batch a task belongs to, as Spark does not tell it. Runs in workers."""

from __future__ import annotations

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def batch_of_task() -> tuple[str, int, Any]:
    """Query id, batch id and the context of the task. OperationNotSupported: Spark does not tell,
    or the stream goes into a table."""
    from pyspark import TaskContext

    context = TaskContext.get()
    query_id = context.getLocalProperty("sql.streaming.queryId") if context else None
    batch_id = context.getLocalProperty("streaming.sql.batchId") if context else None
    if context is None or not query_id or batch_id is None:
        raise errors.OperationNotSupported(
            detail="write a stream: Spark did not tell the task of which query and batch it is. "
            "This version of Spark is not supported; use foreachBatch with txnAppId and txnVersion"
        )
    if (context.getLocalProperty("callSite.short") or "").startswith("toTable at "):
        raise errors.OperationNotSupported(
            detail='toTable with format("pulsarx"): Spark loses the options of the table, so '
            "nothing could be read from it. Nothing was written, but Spark has made the table: "
            "DROP it, and begin the stream with start()"
        )
    return query_id, int(batch_id), context
