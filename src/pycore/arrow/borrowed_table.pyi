from typing import Any

Column = tuple[str, str, int, list[Any]]

class BorrowedTable:
    def __init__(self, length: int, columns: list[Column]) -> None: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...
