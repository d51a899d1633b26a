from typing import Any

from pulsarx._pycore.arrow.column_reader import Built, ColumnReader

class JsonReader(ColumnReader):
    def __init__(
        self,
        columns: list[tuple[int, tuple[int, ...]]],
        tops: tuple[int, ...],
        names: list[bytes | None],
    ) -> None: ...
    def read(
        self, offsets: Any, data: Any, validity: Any, first: int, count: int
    ) -> tuple[list[Built], list[int]]: ...
