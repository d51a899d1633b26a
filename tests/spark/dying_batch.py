"""A data source whose batch writer dies once, or is slow once, at a point that the option dieAt
names. Imported by Spark's workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dying_source import DEATH

from pulsarx.broker.requests import attach
from pulsarx.broker.staging import ledger_attachment
from pulsarx.broker.staging.staging import make_staging
from pulsarx.spark.batch_writer import BatchWriter
from pulsarx.spark.data_source import PulsarxDataSource
from pulsarx.spark.options import SINK, read_options

# Of a task, then of the commit.
BATCH_POINTS = ["midway", "worker", "before", "linked", "between", "after", "raise"]


def wait_for(path: str | Path, alive: Callable[[], bool] = lambda: True) -> None:
    """Until a file is there, for minutes at most, and as long as it may come."""
    import threading

    patience = threading.Event()
    for _ in range(6000):
        if os.path.exists(path):
            return
        if not alive():
            break
        patience.wait(0.05)
    raise TimeoutError(f"nobody made {path}")


def leave(path: str | Path, text: str = "") -> None:
    """Make a file at once as a whole."""
    Path(f"{path}.new").write_text(text)
    os.rename(f"{path}.new", path)


class DyingBatchWriter(BatchWriter):
    """Dies at its point, unless the marker says that it did before."""

    point: str
    marker: str

    def _dies_at(self, point: str) -> bool:
        if point != self.point:
            return False
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def write(self, iterator: Iterator[Any]) -> Any:
        from pyspark import TaskContext

        context = TaskContext.get()
        if self.point == "slow" and context.partitionId() == 1:
            if not context.attemptNumber():
                return self._write_late(iterator)
            wait_for(f"{self.marker}.held")
        if self._dies_at("midway"):
            return super().write(self._rows_until_death(iterator))
        found = super().write(iterator)
        if self._dies_at("worker"):
            os._exit(DEATH)
        if context.partitionId() == 1 and self._dies_at("executor"):
            kill_executor()
        return found

    def _rows_until_death(self, iterator: Iterator[Any]) -> Iterator[Any]:
        yield next(iterator).slice(0, 7)
        os._exit(DEATH)

    def _write_late(self, iterator: Iterator[Any]) -> Any:
        """As a twin that nobody could stop: behind the commit, and the clean-up after it. It is
        stopped when the other one is done, so it has its rows before that."""
        rows = list(iterator)
        leave(f"{self.marker}.held")
        wait_for(f"{self.marker}.committed")
        make_staging(self._job.root, self._job.name)  # as the tasks of a stream do
        found = super().write(iter(rows))
        leave(f"{self.marker}.late", found.message.text())
        return found

    def commit(self, messages: list[Any]) -> None:
        attach._FILES_IN_REQUEST_MAX = 0  # as with very many files
        if self._dies_at("wait"):
            signal.pause()
        if self._dies_at("before"):
            os._exit(DEATH)
        if self._dies_at("linked"):
            # The ledgers have their names, the catalogue does not know them.
            ledger_attachment.flush_directories = lambda *_: os._exit(DEATH)
        if self._dies_at("between"):
            ledger_attachment._Attachment._clean_up = (  # type: ignore[method-assign]
                lambda _: os._exit(DEATH)
            )
        super().commit(messages)
        if self._dies_at("after"):
            os._exit(DEATH)
        if self._dies_at("raise"):
            raise RuntimeError("dies behind its commit")


def kill_executor() -> None:
    """The Java of this worker: the parent of the daemon that made it, or of what it has asked for
    that one (prepared_python)."""
    daemon = os.environ.get("PREPARED_FOR") or os.getppid()
    status = Path(f"/proc/{daemon}/stat").read_text()
    os.kill(int(status.rpartition(")")[2].split()[1]), signal.SIGKILL)
    signal.pause()


class DyingBatchSource(PulsarxDataSource):
    @classmethod
    def name(cls) -> str:
        return "pulsarx-dying-batch"

    def writer(self, schema: Any, overwrite: bool) -> DyingBatchWriter:
        own = ("dieat", "marker")
        given = {name: self.options[name] for name in self.options if name not in own}
        made = DyingBatchWriter(read_options(given, SINK), schema, overwrite)
        made.point, made.marker = self.options["dieat"], self.options["marker"]
        return made
