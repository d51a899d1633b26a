"""An Arrow producer made by hand: whatever lengths, offsets and errors a test wants, and it counts.

Only what the tests need: struct columns over binary (`z`), their releases counted.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from typing import Any


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


class ArrowArrayStream(ctypes.Structure):
    pass


RELEASE_SCHEMA = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowSchema))
RELEASE_ARRAY = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))
RELEASE_STREAM = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArrayStream))
GET_SCHEMA = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ArrowArrayStream), ctypes.POINTER(ArrowSchema)
)
GET_NEXT = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ArrowArrayStream), ctypes.POINTER(ArrowArray)
)
GET_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ArrowArrayStream))

ArrowSchema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowSchema))),
    ("dictionary", ctypes.POINTER(ArrowSchema)),
    ("release", RELEASE_SCHEMA),
    ("private_data", ctypes.c_void_p),
]
ArrowArray._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(ArrowArray))),
    ("dictionary", ctypes.POINTER(ArrowArray)),
    ("release", RELEASE_ARRAY),
    ("private_data", ctypes.c_void_p),
]
ArrowArrayStream._fields_ = [
    ("get_schema", GET_SCHEMA),
    ("get_next", GET_NEXT),
    ("get_last_error", GET_ERROR),
    ("release", RELEASE_STREAM),
    ("private_data", ctypes.c_void_p),
]

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class HandMade:
    """One column `value` of binary, in as many equal batches as asked for.

    released counts the releases by kind. What consumers point into lives as long as this object.
    """

    def __init__(
        self,
        offsets: list[int],
        data: bytes,
        *,
        rows: int | None = None,
        child_rows: int | None = None,
        n_buffers: int = 3,
        column_offset: int = 0,
        batches: int = 1,
        error: int = 0,
        column_format: bytes = b"z",
    ) -> None:
        self.released: Counter[str] = Counter()
        self.given: Counter[str] = Counter()
        self.rows = len(offsets) - 1 if rows is None else rows
        self.child_rows = self.rows if child_rows is None else child_rows
        self.n_buffers = n_buffers
        self.column_offset = column_offset
        self.left = batches
        self.error = error
        self.column_format = column_format
        self.offsets = (ctypes.c_int32 * len(offsets))(*offsets)
        self.data = ctypes.create_string_buffer(data, len(data) + 1)
        self.kept: list[Any] = []
        self.text = ctypes.create_string_buffer(b"made to fail")

    def _released(self, kind: str, pointer: Any) -> None:
        self.released[kind] += 1
        # As the standard demands: the struct is marked, through the memory it lies in.
        ctypes.cast(
            ctypes.byref(pointer.contents, type(pointer.contents).release.offset),
            ctypes.POINTER(ctypes.c_void_p),
        )[0] = None

    def fill_schema(self, schema: ArrowSchema) -> None:
        self.given["schema"] += 1
        nothing = RELEASE_SCHEMA(lambda pointer: self._released("child", pointer))
        child = ArrowSchema(self.column_format, b"value", None, 2, 0, None, None, nothing, None)
        children = (ctypes.POINTER(ArrowSchema) * 1)(ctypes.pointer(child))
        release = RELEASE_SCHEMA(lambda pointer: self._released("schema", pointer))
        self.kept += [nothing, child, children, release]
        schema.format, schema.name, schema.n_children = b"+s", b"", 1
        schema.children, schema.release = children, release

    def fill_array(self, array: ArrowArray) -> None:
        self.given["array"] += 1
        buffers = (ctypes.c_void_p * 3)(
            None, ctypes.addressof(self.offsets), ctypes.addressof(self.data)
        )
        nothing = RELEASE_ARRAY(lambda pointer: self._released("child", pointer))
        child = ArrowArray(
            self.child_rows,
            0,
            self.column_offset,
            self.n_buffers,
            0,
            buffers,
            None,
            None,
            nothing,
            None,
        )
        children = (ctypes.POINTER(ArrowArray) * 1)(ctypes.pointer(child))
        empty = (ctypes.c_void_p * 1)(None)
        release = RELEASE_ARRAY(lambda pointer: self._released("array", pointer))
        self.kept += [buffers, nothing, child, children, empty, release]
        array.length, array.n_buffers, array.n_children = self.rows, 1, 1
        array.buffers, array.children, array.release = empty, children, release


class HandMadeArray(HandMade):
    """Speaks __arrow_c_array__."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[Any, Any]:
        schema, array = ArrowSchema(), ArrowArray()
        self.kept += [schema, array]
        self.fill_schema(schema)
        self.fill_array(array)
        return (
            new_capsule(ctypes.addressof(schema), b"arrow_schema", None),
            new_capsule(ctypes.addressof(array), b"arrow_array", None),
        )


class HandMadeStream(HandMade):
    """Speaks __arrow_c_stream__; ends with self.error instead of an end when it is not 0."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        stream = ArrowArrayStream()
        self.given["stream"] += 1

        def get_schema(_: Any, schema: Any) -> int:
            self.fill_schema(schema.contents)
            return 0

        def get_next(_: Any, array: Any) -> int:
            if self.left == 0:
                ctypes.memset(array, 0, ctypes.sizeof(ArrowArray))
                return self.error
            self.left -= 1
            self.fill_array(array.contents)
            return 0

        stream.get_schema = GET_SCHEMA(get_schema)
        stream.get_next = GET_NEXT(get_next)
        stream.get_last_error = GET_ERROR(lambda _: ctypes.addressof(self.text))
        stream.release = RELEASE_STREAM(lambda pointer: self._released("stream", pointer))
        self.kept += [stream, stream.get_schema, stream.get_next, stream.get_last_error]
        self.kept.append(stream.release)
        return new_capsule(ctypes.addressof(stream), b"arrow_array_stream", None)
