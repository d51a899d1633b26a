from typing import Any

# Name, format, null count, buffers; of a nested one its length and its columns besides.
Column = tuple[str, str, int, list[Any]] | tuple[str, str, int, list[Any], tuple[int, list[Any]]]

class BorrowedTable:
    def __init__(self, length: int, columns: list[Any]) -> None: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...
