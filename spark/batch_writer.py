"""The batch writer of format("pulsarx"): tasks stage ledgers, the driver attaches them, once."""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceArrowWriter

from pulsarx.broker.attach import Transaction, attached
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


class BatchWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Made in the driver; travels to the tasks and comes back for the commit. Pickles."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        import uuid

        self._options = options
        self._plan = plan_write(options, schema, overwrite)
        self._job = f"spark-job-{uuid.uuid4().hex}"
        if options.txnAppId is not None:
            self._transaction = Transaction(options.txnAppId, options.txnVersion)
        else:
            self._transaction = Transaction(self._job, 0)
        # Written before: the tasks need not do it again.
        self._done = (
            options.txnAppId is not None and attached(options.root, self._transaction) is not None
        )

    def write(self, iterator: Iterator[Any]) -> StagedMessage:
        if self._done:
            return StagedMessage(0, "", [])
        return write_task(self._plan, self._job, iterator, "")

    def commit(self, messages: list[Any]) -> None:
        attach_messages(self._options, self._transaction, messages)

    def abort(self, messages: list[Any]) -> None:
        abort_messages(self._options, messages)
