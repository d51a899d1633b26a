"""A data source whose stream sink dies once, at a point that the option dieAt names. Imported by
Spark's workers."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

from pulsarx.broker import ledger_attachment
from pulsarx.spark.data_source import PulsarxDataSource
from pulsarx.spark.options import STREAM_SINK, read_options
from pulsarx.spark.stream_writer import StreamWriter

DEATH = 9
POINTS = ["worker", "before", "linked", "between", "after", "raise"]


class DyingWriter(StreamWriter):
    """Dies at its point, unless the marker says that it did before."""

    point: str
    marker: str

    def _dies_at(self, *points: str) -> bool:
        if self.point not in points:
            return False
        try:
            os.close(os.open(self.marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def write(self, iterator: Iterator[Any]) -> Any:
        if self._dies_at("worker"):
            super().write(iterator)
            os._exit(DEATH)
        return super().write(iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:
        if self._dies_at("before"):
            os._exit(DEATH)
        if self._dies_at("linked"):
            # The ledgers have their names, the catalogue does not know them.
            ledger_attachment.flush_directories = lambda *_: os._exit(DEATH)
        if self._dies_at("between"):
            ledger_attachment._Attachment._clean_up = (  # type: ignore[method-assign]
                lambda _: os._exit(DEATH)
            )
        super().commit(messages, batchId)
        if self._dies_at("after"):
            os._exit(DEATH)
        if self._dies_at("raise"):
            raise RuntimeError("dies behind its commit")
        if self._dies_at("wait"):
            signal.pause()


class DyingSource(PulsarxDataSource):
    @classmethod
    def name(cls) -> str:
        return "pulsarx-dying"

    def streamWriter(self, schema: Any, overwrite: bool) -> DyingWriter:
        own = ("dieat", "marker")
        given = {name: self.options[name] for name in self.options if name not in own}
        made = DyingWriter(read_options(given, STREAM_SINK), schema, overwrite)
        made.point, made.marker = self.options["dieat"], self.options["marker"]
        return made
