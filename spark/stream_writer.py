"""The stream sink of format("pulsarx"): each micro-batch is in its topics exactly once.

Spark repeats a batch under the same query id and batch id until it has noted its commit. Query id,
topic and batch id are the transaction, so what was attached is not attached again, and a copy of a
checkpoint that goes on into another topic is another query there. A new checkpoint is a new query.
A batch that comes again with other rows, as from a checkpoint that was put back, is refused.
"""

from __future__ import annotations

import os

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from pulsarx import errors
from pulsarx.broker.staging.staging import collect_abandoned, folder_id_of, make_staging
from pulsarx.spark.stage_job import StagedMessage, attach_messages, plan_job, write_task
from pulsarx.spark.stream_batch import batch_of_task
from pulsarx.spark.write_commit import WrittenBeforeError, abort_write
from pulsarx.spark.write_job import application_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pyspark.sql.types import StructType

    from pulsarx.spark.options import Options
    from pulsarx.spark.write_job import WriteJob


_COLLECTED_EVERY = 1000  # batches


class StreamWriter(DataSourceStreamArrowWriter):
    """Spark makes one for the tasks and one more for each commit. Pickles."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        self._options = options
        self._job = plan_job(options, schema, overwrite, staging=False)

    def write(self, iterator: Iterator[Any]) -> StagedMessage:
        return write_task(_stage_batch(self._job, self._options.txnConflict), iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:
        told = [each for each in messages if each is not None]
        if any(each.message is not None and each.message.files for each in told):
            self._commit(told, batchId)
        else:  # an idle query need not write to the catalogue
            self.abort(told, batchId)
        if batchId % _COLLECTED_EVERY == 0:
            collect_abandoned(self._job.root)

    def _commit(self, told: list[Any], batch_id: int) -> None:
        job = told[0].job
        try:
            attach_messages(self._options, job, told)
        except WrittenBeforeError as error:
            raise WrittenBeforeError(
                detail=f"batch {batch_id} of the query into "
                f"{job.topic or 'the topics of __topic'}: {errors.detail_of(error)}. A stream "
                "meets this when its checkpoint was put back from an older copy, while the topic "
                "has later batches: what was read in between would be lost, or be there twice. Go "
                "on with the newest checkpoint; or begin with a new one, and startingOffsets "
                "behind what the topic has"
            ) from error

    def abort(self, messages: list[Any], batchId: int) -> None:
        for job in {each.job.staging: each.job for each in messages if each is not None}.values():
            abort_write(job)


def _stage_batch(planned: WriteJob, on_conflict: str) -> WriteJob:
    """The job of the batch this task belongs to."""
    query_id, batch_id, context = batch_of_task()
    # A run that was thought dead must not find, or take away, the files of the next one.
    run_id = context.getLocalProperty("spark.jobGroup.id") or "run"
    name = f"spark-{query_id}-{batch_id}-{run_id}"
    _check_mounted(planned)
    application = application_for(f"spark-query-{query_id}", planned.topic)
    job = planned.of_batch(name, application, batch_id, on_conflict)
    try:
        # Not flushed: a power cut that takes it takes only what is not attached.
        os.mkdir(job.staging)
    except FileExistsError:
        pass
    except FileNotFoundError:
        make_staging(planned.root, name)
    return job


def _check_mounted(job: WriteJob) -> None:
    """FolderError: this host has not the data directory of the driver."""
    found, said = "", ""
    try:
        found = folder_id_of(job.root)
        said = f"it is data directory {found} there, the driver has {job.folder_id}"
    except errors.FolderError as error:
        said = str(error)
    if found != job.folder_id:
        raise errors.FolderError(
            detail=f"write into {job.root} on host {os.uname().nodename}: {said}. Mount the same "
            "path on driver and executors"
        )
