"""Several writes of one batch that count together: what foreachBatch does with more than one topic.

each write   its tasks stage rows, as of write_topic, upsert_topic or save_rdd
the end      attaches what all of them staged, in one commit, under one application and version
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.spark.partition_writer import (
    compute_frame,
    plan_frame_write,
    plan_rdd_write,
    stage_frame,
    stage_rdd,
)
from pulsarx.spark.topic_upsert import plan_upsert, stage_upsert
from pulsarx.spark.write_commit import (
    StagedWrite,
    abort_write,
    commit_writes,
    find_commit,
)
from pulsarx.spark.write_job import WriteJob, application_for, plan_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

    from pyspark import RDD
    from pyspark.sql import DataFrame

    from pulsarx.broker.requests.attach import AttachResult

_SEVERAL = "several topics"  # no name of a topic: versions of one do not count for the other
_GIVEN = ("root", "application", "version", "on_conflict")


class WriteTransaction:
    """Writes to several topics that are there together, once, or none of them: a context manager,
    whose end commits them. Readers see all topics change at one moment; a driver that is killed
    before leaves nothing, and the batch again writes nothing twice. On the driver; writes may come
    from several threads, and are in a topic in the order in which they ended.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        application: str,
        version: int,
        on_conflict: str = "error",
    ) -> None:
        """Begin one. Nothing is written before the end of the block.

        Args:
            root: The data directory.
            application: The name of the query.
            version: The number of its batch: the same rows again write nothing.
            on_conflict: `error`: NotAllowedError when the version was written with other rows, or a
                later one was; `ignore`: it counts as written in both cases, and is not compared.

        Raises:
            NotAllowedError: A later version was written.
            FolderError: There is no such folder.
            ValueError: An argument is wrong.
        """
        self._given = {"application": application, "version": version, "on_conflict": on_conflict}
        self._root = root
        plan: Any = plan_write  # of no topic: it checks the arguments, and stages nothing
        job: WriteJob = plan(root, None, staging=False, **self._given)
        name = application_for(application, _SEVERAL)
        self._job = job.of_batch(job.name, name, version, on_conflict)
        self._known = find_commit(self._job)
        self._planned: list[WriteJob] = []
        self._writes: list[StagedWrite] = []
        self._failure: BaseException | None = None
        self._has_ended = False
        self.result: AttachResult | None = None  # what was attached, or had been before

    def write_topic(self, frame: DataFrame, topic: str | None = None, **options: Any) -> None:
        """Append the rows to a topic, with the others of the transaction.

        Args:
            frame: As write_topic.
            topic: As write_topic.
            **options: Those of `plan_write` but what the transaction was given.

        Raises:
            TopicNotFound: As write_topic.
            IncompatibleSchema: As write_topic.
            StorageFullError: As write_topic.
            ValueError: As write_topic.
            TypeError: As write_topic; or an option is the transaction's.
            InvalidTxnStatusError: The transaction has ended.

        Durability:
            Nobody sees them before the end of the block.
        """
        self._write(
            "write_topic",
            options,
            lambda given: plan_frame_write(self._root, topic, frame, given),
            lambda job: StagedWrite(job, stage_frame(frame, job)),
            lambda: compute_frame(frame),
        )

    def upsert_topic(
        self, frame: DataFrame, topic: str, *, complete: bool = False, **options: Any
    ) -> None:
        """Write each row as the newest message of its key, with the others of the transaction.

        Args:
            frame: As upsert_topic.
            topic: A name.
            complete: As upsert_topic. Keys that other writes of the transaction bring are not among
                those of the topic.
            **options: Those of `plan_write` but what the transaction was given.

        Raises:
            TopicNotFound: As write_topic.
            StorageFullError: As write_topic.
            ValueError: There is no column __key, or a row or an argument is wrong.
            TypeError: An option does not exist, or is the transaction's.
            InvalidTxnStatusError: The transaction has ended.

        Durability:
            Nobody sees them before the end of the block.
        """
        self._write(
            "upsert_topic",
            options,
            lambda given: plan_upsert(self._root, topic, frame, complete, given),
            lambda job: StagedWrite(job, *stage_upsert(frame, job, complete)),
            lambda: compute_frame(frame),
        )

    def save_rdd(self, rdd: RDD[Any], topic: str | None = None, **options: Any) -> None:
        """Append the elements of an RDD to a topic, with the others of the transaction.

        Args:
            rdd: As save_rdd.
            topic: As save_rdd.
            **options: Those of `plan_write` but what the transaction was given.

        Raises:
            TopicNotFound: As write_topic.
            StorageFullError: As write_topic.
            ValueError: As write_topic.
            TypeError: rdd is no RDD, or an option does not exist or is the transaction's.
            InvalidTxnStatusError: The transaction has ended.

        Durability:
            Nobody sees them before the end of the block.
        """
        self._write(
            "save_rdd",
            options,
            lambda given: plan_rdd_write(self._root, topic, rdd, given),
            lambda job: StagedWrite(job, stage_rdd(rdd, job)),
            rdd.count,
        )

    def _write(
        self,
        call: str,
        options: dict[str, Any],
        plan: Callable[[dict[str, Any]], WriteJob],
        stage: Callable[[WriteJob], StagedWrite],
        compute: Callable[[], object],
    ) -> None:
        """compute: as of write_once."""
        given = sorted(set(options) & set(_GIVEN))
        if given:
            raise TypeError(f"{call} of a transaction has no argument {given[0]}: that has it")
        if self._has_ended:
            raise errors.InvalidTxnStatusError(detail=f"{call}: the transaction has ended")
        try:
            if self._known is not None:
                compute()
                return
            job = plan({**self._given, **options})
            self._planned.append(job)
            self._writes.append(stage(job))
        except BaseException as error:
            self._failure = self._failure or error
            raise

    def _end(self) -> None:
        if self._failure is not None:
            raise errors.TransactionHasOperationFailed(
                detail=f"version {self._job.version} of {self._job.application!r}: a write of it "
                f"failed, so nothing was written: {errors.detail_of(self._failure)}"
            ) from self._failure
        if self._known is not None:
            self.result = self._known
        elif self._writes:
            self.result = commit_writes(self._job, self._writes)

    def _give_up(self) -> None:
        for each in self._planned:
            abort_write(each)

    def __enter__(self) -> WriteTransaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._has_ended = True
        if kind is not None:
            self._give_up()
            return
        try:
            self._end()
        except errors.Timeout:
            raise  # whether it was attached is unknown: the files must stay
        except BaseException:
            self._give_up()
            raise
