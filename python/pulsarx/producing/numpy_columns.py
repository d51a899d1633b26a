"""NumPy arrays as the columns of `send_columns`. Loaded by the first call, and NumPy with it."""

from __future__ import annotations

from pulsarx._pycore.arrow.borrowed_table import BorrowedTable
from pulsarx.errors import shown
from pulsarx.ground.extras import optional_module
from pulsarx.options.argument_check import INT64_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx._pycore.arrow.borrowed_table import Column

np: Any = optional_module("numpy", "numpy", "send_columns")


def table_of(
    value: Any, key: Any, properties: Any, event_timestamp: Any
) -> tuple[BorrowedTable, dict[str, str]]:
    """The columns, and which of them are there beside the value, as send_arrow names them.
    TypeError, ValueError: an unfit array."""
    columns = [_text("value", np.asarray(value), text_only=False)]
    length = len(columns[0][3][1]) - 1
    if key is not None:
        columns.append(_text("key", np.asarray(key), text_only=True))
    if properties is not None:
        columns.append(_maps(np.asarray(properties, object)))
    if event_timestamp is not None:
        columns.append(_times(np.asarray(event_timestamp)))
    for each in columns[1:]:
        rows = len(each[3][1]) - (each[0] != "event_time")
        if rows != length:
            name = "event_timestamp" if each[0] == "event_time" else each[0]
            raise ValueError(f"{name} has {rows} elements and value {length}")
    return BorrowedTable(length, columns), {each[0]: each[0] for each in columns[1:]}


def _text(name: str, array: Any, *, text_only: bool) -> Column:
    kind = array.dtype.kind
    if not text_only and kind == "u" and array.dtype.itemsize == 1 and array.ndim == 2:
        data = np.ascontiguousarray(array)
        return _column(name, None, np.full(len(array), array.shape[1], np.int64), data.reshape(-1))
    if array.ndim != 1:
        raise ValueError(f"{name} has {array.ndim} dimensions; it must be a column")
    if kind == "T":  # NumPy's strings of any length
        array, kind = array.astype(object), "O"
    if kind == "U":
        array, kind = np.char.encode(array, "utf-8"), "S"
    if kind == "S":
        return _padded(name, np.ascontiguousarray(array))
    if kind == "V" and not text_only and array.dtype.names is None:
        data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        return _column(name, None, np.full(len(array), array.dtype.itemsize, np.int64), data)
    if kind == "O":
        return _objects(name, array.tolist())
    wanted = "str" if text_only else "bytes or str, or rows of uint8"
    raise TypeError(f"{name} is an array of {array.dtype}; it must be of {wanted}")


def _padded(name: str, array: Any) -> Column:
    """Bytes of one size, as NumPy keeps them: zeros at the end are none of theirs."""
    size = array.dtype.itemsize
    lengths = np.char.str_len(array).astype(np.int64)
    data = array.view(np.uint8).reshape(len(array), size) if size else np.empty((0, 0), np.uint8)
    return _column(name, None, lengths, data[np.arange(size) < lengths[:, None]])


def _objects(name: str, values: list[Any]) -> Column:
    encoded = [each.encode() if isinstance(each, str) else each for each in values]
    there = np.array([each is not None for each in encoded], bool)
    for each in encoded:
        if each is not None and not isinstance(each, bytes):
            raise TypeError(
                f"{name} holds a {type(each).__name__}; it must hold bytes, str or None"
            )
    lengths = np.array([len(each or b"") for each in encoded], np.int64)
    data = np.frombuffer(b"".join(each or b"" for each in encoded), np.uint8)
    return _column(name, None if there.all() else there, lengths, data)


def _column(name: str, there: Any, lengths: Any, data: Any) -> Column:
    """A column of large binary. there: which rows have a value; None: all."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return (name, "Z", *_nulls(there), [_bits(there), offsets, np.ascontiguousarray(data)])


def _maps(array: Any) -> Column:
    """A dict of strings for each row, or None."""
    if array.ndim != 1:
        raise ValueError(f"properties has {array.ndim} dimensions; it must be a column")
    names: list[Any] = []
    values: list[Any] = []
    offsets = np.zeros(len(array) + 1, np.int32)
    for row, each in enumerate(array.tolist()):
        if each is not None and not isinstance(each, dict):
            raise TypeError(f"properties holds a {type(each).__name__}; it must hold dict or None")
        for name, text in (each or {}).items():
            if not isinstance(name, str) or not isinstance(text, str):
                raise TypeError(f"properties holds {shown(name)}: {shown(text)}; both must be str")
            names.append(name)
            values.append(text)
        offsets[row + 1] = len(names)
    texts = (("key", names), ("value", values))
    entries = [(title, "U", *_objects(title, each)[2:]) for title, each in texts]
    nested = ("entries", "+s", 0, [None], (len(names), entries))
    return ("properties", "+m", 0, [None, offsets], (len(names), [nested]))


def _times(array: Any) -> Column:
    """Milliseconds since 1970, of integers or of times; NaT is none."""
    if array.ndim != 1:
        raise ValueError(f"event_timestamp has {array.ndim} dimensions; it must be a column")
    kind = array.dtype.kind
    there = None
    if kind == "M":
        missing = np.isnat(array)
        there = ~missing if missing.any() else None
        times = array.astype("M8[ms]").view(np.int64)
        times = times if there is None else np.where(there, times, 0)
    elif kind in "iu":
        if kind == "u" and len(array) and int(array.max()) > INT64_MAX:
            raise ValueError(f"event_timestamp is {array.max()}; it must be within 0..2^63-1")
        times = array.astype(np.int64)
    else:
        raise TypeError(
            f"event_timestamp is an array of {array.dtype}; it must be of datetime64, or of "
            "integers: milliseconds since 1970"
        )
    return ("event_time", "l", *_nulls(there), [_bits(there), np.ascontiguousarray(times)])


def _nulls(there: Any) -> tuple[int]:
    return (0 if there is None else int(len(there) - there.sum()),)


def _bits(there: Any) -> Any:
    return None if there is None else np.packbits(there, bitorder="little")
