from typing import Any

NODE_BOOLEAN: int
NODE_INT: int
NODE_LONG: int
NODE_FLOAT: int
NODE_DOUBLE: int
NODE_BYTES: int
NODE_STRING: int
NODE_FIXED: int
NODE_ENUM: int
NODE_ARRAY: int
NODE_MAP: int
NODE_RECORD: int
NODE_OPTIONAL: int
NODE_NULL: int
NODE_DATE: int
NODE_TIME: int
NODE_TIMESTAMP: int
NODE_DECIMAL: int
NODE_CONSTANT: int
BUILD_BOOLEAN: int
BUILD_INT32: int
BUILD_INT64: int
BUILD_FLOAT: int
BUILD_DOUBLE: int
BUILD_DECIMAL: int
BUILD_BYTES: int
BUILD_LIST: int
BUILD_STRUCT: int

# Operation, column or -1, number, flag, children, texts: see the table of avro_reader.pyx.
Node = tuple[int, int, int, bool, tuple[int, ...], tuple[bytes | None, ...]]
# Length, null count, and the buffers: validity, values, data; None for those it has not.
Built = tuple[int, int, Any, Any, Any]

class AvroReader:
    def __init__(
        self, columns: list[tuple[int, tuple[int, ...]]], tops: tuple[int, ...]
    ) -> None: ...
    def add_program(self, nodes: list[Node]) -> int: ...
    def read(
        self,
        offsets: Any,
        data: Any,
        validity: Any,
        first: int,
        count: int,
        programs: bytes | int,
    ) -> tuple[list[Built], list[int]]: ...
