"""The batch writer of format("pulsarx"): tasks stage ledgers, the driver attaches them, once."""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceArrowWriter

from pulsarx.spark.stage_job import (
    StagedMessage,
    attach_messages,
    check_no_table,
    plan_job,
    write_task,
)
from pulsarx.spark.write_commit import abort_write, find_commit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pyspark.sql.types import StructType

    from pulsarx.spark.options import Options


class BatchWriter(DataSourceArrowWriter):
    """Made in the driver; travels to the tasks and comes back for the commit. Pickles."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        self._options = options
        self._job = plan_job(options, schema, overwrite, staging=True)
        # Written before, and nothing to compare: the tasks need not stage it again.
        try:
            self._done = options.txnAppId is not None and find_commit(self._job) is not None
        except BaseException:
            abort_write(self._job)
            raise
        if self._done:
            abort_write(self._job)

    def write(self, iterator: Iterator[Any]) -> StagedMessage:
        check_no_table()
        if self._done:
            for _ in iterator:  # a stateful query in foreachBatch puts its state away at the end
                pass
            return StagedMessage(None, self._job)
        return write_task(self._job, iterator)

    def commit(self, messages: list[Any]) -> None:
        if not self._done:
            attach_messages(self._options, self._job, messages)

    def abort(self, messages: list[Any]) -> None:
        abort_write(self._job)
