"""A data source whose stream sink dies once, at a point that the option dieAt names. Imported by
Spark's workers.

  task      a task fails behind its last row; Spark tries it again
  worker    its Python worker dies then
  before    the process of the commit dies before it has asked for anything
  linked    ... when the ledgers have their names, and the catalogue does not know them
  between   ... when the catalogue has them, before the clean-up
  after     ... when all of it is done, before it has said so
  raise     it fails then, so that Spark aborts what is committed

With the option wait the process of the commit does not die, but waits there for somebody to kill
the driver.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pulsarx.broker.staging import ledger_attachment
from pulsarx.spark.data_source import PulsarxDataSource
from pulsarx.spark.options import STREAM_SINK, read_options
from pulsarx.spark.stream_writer import StreamWriter

DEATH = 9
IN_TASK, BEFORE, BEHIND = ("task", "worker"), ("before", "linked"), ("between", "after", "raise")


class DyingWriter(StreamWriter):
    """Dies at its point, unless the marker says that it did before."""

    point: str
    marker: str
    waits: bool

    def _dies_at(self, point: str) -> bool:
        return point == self.point and not os.path.exists(self.marker)

    def _die(self, *_: object) -> None:
        # From here on the marker is there: at this point, and not before it.
        os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        if self.point in ("task", "raise"):
            raise RuntimeError(f"dies at {self.point}")
        while self.waits:
            signal.pause()
        os._exit(DEATH)

    def write(self, iterator: Iterator[Any]) -> Any:
        message = super().write(iterator)
        if self._dies_at("task") or self._dies_at("worker"):
            self._die()
        return message

    def commit(self, messages: list[Any], batchId: int) -> None:
        if self._dies_at("before"):
            self._die()
        if self._dies_at("linked"):
            ledger_attachment.flush_directories = self._die
        if self._dies_at("between"):
            ledger_attachment._Attachment._clean_up = self._die  # type: ignore[method-assign]
        super().commit(messages, batchId)
        if self._dies_at("after") or self._dies_at("raise"):
            self._die()

    def abort(self, messages: list[Any], batchId: int) -> None:
        super().abort(messages, batchId)
        Path(f"{self.marker}-aborted").touch()


class DyingSource(PulsarxDataSource):
    @classmethod
    def name(cls) -> str:
        return "pulsarx-dying"

    def streamWriter(self, schema: Any, overwrite: bool) -> DyingWriter:
        own = ("dieat", "marker", "wait")
        given = {name: self.options[name] for name in self.options if name not in own}
        made = DyingWriter(read_options(given, STREAM_SINK), schema, overwrite)
        made.point, made.marker = self.options["dieat"], self.options["marker"]
        made.waits = "wait" in self.options
        return made
