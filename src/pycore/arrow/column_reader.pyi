from typing import Any

BUILD_BOOLEAN: int
BUILD_INT32: int
BUILD_INT64: int
BUILD_FLOAT: int
BUILD_DOUBLE: int
BUILD_DECIMAL: int
BUILD_BYTES: int
BUILD_LIST: int
BUILD_STRUCT: int

# Length, null count, and the buffers: validity, values, data; None for those it has not.
Built = tuple[int, int, Any, Any, Any]

class ColumnReader:
    def __init__(
        self, columns: list[tuple[int, tuple[int, ...]]], tops: tuple[int, ...]
    ) -> None: ...
