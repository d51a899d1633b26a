"""Option `where`: comparisons of columns of messages, as SQL writes them, for the tasks that read.

  where       comparison AND comparison ...
  comparison  column =, <, <=, >, >= literal | column IN (literal, ...) | column IS [NOT] NULL
  literal     12 | 'text' | X'6b31'

A column of bytes takes a text as UTF-8, one of times milliseconds since 1970 or an ISO time with
its zone. A comparison with null holds for no message.
"""

from __future__ import annotations

import re

from pulsarx.spark.row_filter import filter_of
from pulsarx.spark.topic_columns import EVERY_TYPE, VALUE, nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.spark.row_filter import RowFilter

_TOKEN = re.compile(
    r"\s*(?:(?P<hex>[xX]'(?:[0-9a-fA-F]{2})*')|(?P<text>'(?:[^']|'')*')|(?P<number>-?\d+)(?!\w)"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<sign><=|>=|=|<|>|\(|\)|,))",
    re.ASCII,
)
_OPERATIONS = {"=": "in", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
_COLUMNS = {name.lower(): name for name in EVERY_TYPE if name != VALUE}
_FORM = "write comparisons with AND between them, as __key = 'ada' AND __partition IN (0, 1)"


def filters_of(text: str) -> list[RowFilter]:
    """ValueError: it is not of this form, or compares what cannot be compared; says where."""
    if not isinstance(text, str):
        raise TypeError(f"where is {text!r:.80}; it must be a text: {_FORM}")
    return _Filters(text).read()


class _Filters:
    """One at a time, and once: reads a text from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._next = ("", "")
        self._step()

    def read(self) -> list[RowFilter]:
        found = [self._comparison()]
        while self._takes("and"):
            found.append(self._comparison())
        if self._next[0]:
            raise self._flaw("AND or the end")
        return found

    def _comparison(self) -> RowFilter:
        kind, name = self._next
        column = _COLUMNS.get(name.lower())
        if kind != "name":
            raise self._flaw("a column")
        if column is None:
            known = tuple(_COLUMNS.values())
            raise ValueError(f"{name!r} is no column of messages to compare{nearest(name, known)}")
        self._step()
        if self._takes("is"):
            wanted = "is_valid" if self._takes("not") else "is_null"
            if not self._takes("null"):
                raise self._flaw("NULL")
            return self._filter(column, wanted, [])
        if self._takes("in"):
            return self._filter(column, "in", self._list(column))
        operation = _OPERATIONS.get(self._next[1])
        if operation is None:
            raise self._flaw("one of =, <, <=, >, >=, IN, IS")
        self._step()
        return self._filter(column, operation, [self._literal(column)])

    def _filter(self, column: str, operation: str, values: list[Any]) -> RowFilter:
        found = filter_of(column, operation, values)
        if found is None:
            raise ValueError(
                f"{column} is {EVERY_TYPE[column]}, which cannot be compared like that: bytes and "
                "texts by =, IN and IS NULL, numbers with numbers of their size, maps by IS NULL"
            )
        return found

    def _list(self, column: str) -> list[Any]:
        if not self._takes("("):
            raise self._flaw("(")
        found = [self._literal(column)]
        while self._takes(","):
            found.append(self._literal(column))
        if not self._takes(")"):
            raise self._flaw(", or )")
        return found

    def _literal(self, column: str) -> Any:
        kind, text = self._next
        column_type = EVERY_TYPE[column]
        if kind not in ("hex", "text", "number"):
            raise self._flaw("a number, 'text' or X'bytes'")
        value: Any
        if kind == "number":
            value = int(text)
        elif kind == "hex":
            value = bytes.fromhex(text[2:-1])
        else:
            value = text[1:-1].replace("''", "'")
            if column_type == "binary":
                value = value.encode()
        self._step()
        return _time_of(value) if column_type == "timestamp" else value

    def _takes(self, text: str) -> bool:
        kind, found = self._next
        if kind not in ("name", "sign") or found.lower() != text:
            return False
        self._step()
        return True

    def _step(self) -> None:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            if self._text[self._at :].strip():
                raise ValueError(f"{self._text[self._at :].strip()!r:.80} cannot be read; {_FORM}")
            self._next = ("", "")
            return
        self._at = found.end()
        self._next = (str(found.lastgroup), found[str(found.lastgroup)])

    def _flaw(self, wanted: str) -> ValueError:
        found = repr(self._next[1]) if self._next[0] else "the end"
        return ValueError(f"{wanted} is expected, and there is {found}; {_FORM}")


def _time_of(value: Any) -> Any:
    from datetime import UTC, datetime, timedelta

    if isinstance(value, int):
        try:
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=value)
        except OverflowError:
            raise ValueError(f"{value} is no time between the years 1 and 9999") from None
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ValueError(
            f"{value!r:.80} is no time: milliseconds since 1970, or with its zone as "
            "'2026-01-31T12:00:00Z'"
        )
    return found
