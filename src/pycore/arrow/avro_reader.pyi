from typing import Any

from pulsarx._pycore.arrow.column_reader import Built, ColumnReader

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

# Operation, column or -1, number, flag, children, texts: see the table of avro_reader.pyx.
Node = tuple[int, int, int, bool, tuple[int, ...], tuple[bytes | None, ...]]

class AvroReader(ColumnReader):
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
