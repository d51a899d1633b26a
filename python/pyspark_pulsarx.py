"""Lets Spark find format("pulsarx") without registration.

Spark imports every module called pyspark_... and finds no Python source at all when one of them
fails. So nothing of ours is imported here before the source is used, and nothing is raised.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:
    from pyspark.sql.datasource import DataSource
except Exception:  # no PySpark, or one that has no Python data sources
    pass
else:

    class DefaultSource(DataSource):
        """Stands for `pulsarx.spark.data_source.PulsarxDataSource`."""

        _made: Any = None

        @classmethod
        def name(cls) -> str:
            return "pulsarx"

        def _source(self) -> Any:
            if self._made is None:
                try:
                    from pulsarx.spark.data_source import PulsarxDataSource
                except ImportError as error:
                    raise ImportError(
                        f'format("pulsarx"): {error}. Install pulsarx[spark] wherever Spark runs '
                        "Python, its compiled parts cannot be loaded from a zip file"
                    ) from error
                self._made = PulsarxDataSource(self.options)
            return self._made

        def __getstate__(self) -> Any:
            """With the one it stands for, which settles what all queries read."""
            try:
                self._source()
            except ImportError:
                pass  # told by whatever is asked for next
            return self.__dict__

        def schema(self) -> Any:
            return self._source().schema()

        def reader(self, schema: Any) -> Any:
            return self._source().reader(schema)

        def streamReader(self, schema: Any) -> Any:
            return self._source().streamReader(schema)

        def writer(self, schema: Any, overwrite: bool) -> Any:
            return self._source().writer(schema, overwrite)

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            return self._source().streamWriter(schema, overwrite)
