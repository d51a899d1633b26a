"""A data source whose Python beside the driver dies once, at a point that the option dieAt names.
Imported by Spark's workers.

  schema  when a DataFrame is made
  reader  when what it reads is planned
  writer  when a write is planned
"""

from __future__ import annotations

import os
from typing import Any

from dying_source import DEATH

from pulsarx.spark.data_source import PulsarxDataSource

PLAN_POINTS = ("schema", "reader", "writer")
_OWN = ("dieat", "marker")


class DyingPlanSource(PulsarxDataSource):
    """Dies at its point, unless the marker says that it did before."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__({name: each for name, each in options.items() if name not in _OWN})
        self._point, self._marker = (options[name] for name in _OWN)

    @classmethod
    def name(cls) -> str:
        return "pulsarx-dying-plan"

    def _dies_at(self, point: str) -> None:
        if point == self._point and not os.path.exists(self._marker):
            os.close(os.open(self._marker, os.O_CREAT | os.O_EXCL))
            os._exit(DEATH)

    def schema(self) -> Any:
        self._dies_at("schema")
        return super().schema()

    def reader(self, schema: Any) -> Any:
        self._dies_at("reader")
        return super().reader(schema)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        self._dies_at("writer")
        return super().writer(schema, overwrite)
