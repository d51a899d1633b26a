"""Prints the results of commands: tables on a terminal, JSON lines elsewhere, CSV where it is asked
for.

One JSON object a line, in ASCII, fields as docs/command-line.md lists them. On a terminal nothing
that comes from a folder moves its cursor: what is not printable is escaped.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import partial

from pulsarx.cli.cells import cell, shown_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

_VALUE_MAX = 1000  # characters of a value on a terminal
_BEGIN_FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # as BEGINS_FORMULA of rest/page/download.js
_BAR_FROM = 1000  # messages or topics: below that it is over at once


class Output:
    """Standard output of one command line. One thread."""

    def __init__(self) -> None:
        self.format: str | None = None
        self._messages_begun = False
        self._csv_heads: list[str] | None = None  # those that were written last

    @property
    def is_table(self) -> bool:
        if self.format is not None:
            return self.format == "table"
        return sys.stdout.isatty()

    def rows(self, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
        """A table of these columns, or a line for each row with all its fields."""
        if self.is_table:
            _draw(list(columns), rows)
            return
        if self.format == "csv":
            self._csv([dict(_flat(each)) for each in rows], columns)
            return
        for each in rows:
            self._line(each)

    @contextmanager
    def live(
        self, columns: Mapping[str, str], once: bool = False
    ) -> Iterator[Callable[[list[Any]], object]]:
        """Yields what is told all rows, again and again: on a terminal those that have room stand
        in place of those before, elsewhere they follow them. columns: heads, by field. once: they
        are told once, and stay on the screen."""
        if once or not (self.is_table and sys.stdout.isatty()):
            yield partial(self._follow, columns)
            return
        from pulsarx.cli.drawing import Screen, terminal_size

        with Screen(sys.stdout) as screen:

            def show(rows: list[Any]) -> None:
                heads, shown = list(columns.values()), _renamed(columns, rows)
                lines = _table(heads, shown)
                size = terminal_size(sys.stdout)
                while size and len(heads) > 1 and _width(lines) > size[0]:
                    heads.pop()
                    lines = _table(heads, shown)
                screen.show(lines)

            yield show

    def _follow(self, columns: Mapping[str, str], rows: list[Any]) -> None:
        self.rows(columns.values(), _renamed(columns, rows) if self.is_table else rows)
        self.flush()

    def record(self, fields: Mapping[str, Any]) -> None:
        """One thing: a table of names and values, or one line."""
        if self.is_table:
            pairs = [{"name": name, "value": value} for name, value in _flat(fields)]
            _draw(["name", "value"], pairs, headed=False)
        else:
            self._line(fields)

    def heading(self, text: str) -> None:
        """The title of the table that follows."""
        _write(f"\n{text}\n")

    def sentence(self, text: str) -> None:
        """A line of a table that is none."""
        _write(f"{text}\n")

    def message(self, message: Any) -> None:
        """A Message or PeekedMessage, without a flush."""
        if self.format == "csv":
            self._csv([message_fields(message)], ())
            return
        if not self.is_table:
            self._line(message_fields(message))
            return
        if not self._messages_begun:
            self._messages_begun = True
            _write(f"{'MESSAGE ID':14}  {'PUBLISHED':23}  {'KEY':10}  VALUE\n")
        key = shown_text(message.partition_key())
        properties = "".join(
            f"  {shown_text(name)}={shown_text(value)}"
            for name, value in message.properties().items()
        )
        place = message.message_id().to_text()
        published = _shown_time(message.publish_timestamp())
        _write(f"{place:14}  {published:23}  {key:10}  {_shown_value(message)}{properties}\n")

    def flush(self) -> None:
        sys.stdout.flush()

    def _line(self, fields: Mapping[str, Any]) -> None:
        if self.format == "csv":
            self._csv([dict(_flat(fields))], ())
            return
        import json

        _write(json.dumps(fields) + "\n")

    def _csv(self, rows: list[dict[str, Any]], columns: Iterable[str]) -> None:
        """Write rows as RFC 4180 has them, with a line of heads where those are not the heads that
        are written last. columns: the first ones."""
        import csv

        heads = list(dict.fromkeys((*columns, *(name for each in rows for name in each))))
        writer = csv.writer(_Rows(), lineterminator="\r\n")
        if heads != self._csv_heads:
            self._csv_heads = heads
            writer.writerow(map(_csv_cell, heads))
        writer.writerows([_csv_cell(each.get(name)) for name in heads] for each in rows)

    def note(self, text: str) -> None:
        """Print a note to people, on standard error."""
        tell(text)

    @contextmanager
    def progress(self, action: str, total: int | None) -> Iterator[Callable[[int], None]]:
        """A bar on standard error while there is long work, where that is a terminal and the output
        is not drawn there too. Yields what is told how much was done."""
        shared = self.is_table and sys.stdout.isatty()
        if not sys.stderr.isatty() or shared or (total is not None and total < _BAR_FROM):
            yield _ignore
            return
        from pulsarx.cli.drawing import Bar

        with Bar(sys.stderr, action, total) as bar:
            yield bar.advance

    @contextmanager
    def bar(self, action: str) -> Iterator[Callable[[int, int | None], object]]:
        """Like progress, for work that prints nothing while it lasts; the function it yields is
        told how much is done, and of how much."""
        if not sys.stderr.isatty():
            yield _ignore
            return
        from pulsarx.cli.drawing import Bar

        with Bar(sys.stderr, action) as bar:
            yield bar.update


def tell(text: str) -> None:
    """Say it on standard error. Where nobody reads that, or there is no room, nothing is said, and
    the command goes on."""
    try:
        sys.stderr.write(f"pulsarx: {text}\n")
        sys.stderr.flush()
    except OSError:
        pass


def leave_output() -> None:
    """Let go of standard output, which nobody reads any more: Python, which flushes it at the end,
    shall not complain."""
    import os

    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _ignore(*_: int | None) -> None:
    pass


def _write(text: str) -> None:
    sys.stdout.write(text)


# Messages -----------------------------------------------------------------------------------------


def message_fields(message: Any) -> dict[str, Any]:
    """Return the fields of the JSON line of a message. data: text, or base64 of bytes that are
    none; null where the message has no value."""
    data, encoding = None, None
    if not message.has_null_value():
        data, encoding = text_of(message.data())
    return {
        "message_id": message.message_id().to_text(),
        "publish_time_ms": message.publish_timestamp(),
        "event_time_ms": message.event_timestamp(),
        "producer_name": message.producer_name(),
        "key": message.partition_key(),
        "ordering_key": message.ordering_key(),
        "properties": message.properties(),
        "encoding": encoding,
        "data": data,
    }


def text_of(data: bytes) -> tuple[str, str]:
    try:
        return data.decode(), "utf-8"
    except UnicodeDecodeError:
        from base64 import b64encode

        return b64encode(data).decode(), "base64"


def _shown_value(message: Any) -> str:
    if message.has_null_value():
        return "(no value)"
    data = message.data()
    text = shown_text(data[: 4 * _VALUE_MAX].decode("utf-8", "backslashreplace"))
    if len(text) > _VALUE_MAX or len(data) > 4 * _VALUE_MAX:
        return f"{text[:_VALUE_MAX]}... ({len(data)} bytes; --format json shows all)"
    return text


def _shown_time(milliseconds: int) -> str:
    from datetime import UTC, datetime, timedelta

    try:
        found = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return str(milliseconds)  # other clients may have written anything
    return f"{found:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03}"


class _Rows:
    """Writes the rows of a csv.writer with plain ends of lines. It quotes no character but those
    that end its own lines, and a reader takes each of both for an end."""

    def write(self, row: str) -> None:
        _write(row.removesuffix("\r\n") + "\n")


def _csv_cell(value: Any) -> Any:
    """None is an empty field, and what is several things is JSON. A text that a spreadsheet would
    take for a formula gets an apostrophe, as in the page's CSV (rest/page/download.js): strangers
    wrote it. On a terminal it is escaped."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, dict | list | tuple):
        import json

        text = json.dumps(value)
    else:
        text = str(value)
    if text.startswith(_BEGIN_FORMULAS):
        text = f"'{text}"
    return shown_text(text) if sys.stdout.isatty() else text


# Tables -------------------------------------------------------------------------------------------


def _flat(fields: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values, those of a dict inside under `outer.inner`."""
    for name, value in fields.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _renamed(columns: Mapping[str, str], rows: list[Any]) -> list[dict[str, Any]]:
    return [{head: row[name] for name, head in columns.items()} for row in rows]


def _draw(columns: list[str], rows: Iterable[Mapping[str, Any]], headed: bool = True) -> None:
    """Draw a table, or, where the terminal has no room for one, the fields of each row below each
    other: no name is broken."""
    from pulsarx.cli.drawing import terminal_size

    rows = list(rows)
    lines = _table(columns, rows, headed)
    size = terminal_size(sys.stdout) if headed and sys.stdout.isatty() else None
    if size and _width(lines) > size[0]:
        for number, each in enumerate(rows):
            if number:
                _write("\n")
            pairs = [{"name": name, "value": each.get(name)} for name in columns]
            _draw(["name", "value"], pairs, headed=False)
        return
    for line in lines:  # the terminal goes on in the next line where one is longer than it is wide
        _write(line + "\n")


def _table(columns: list[str], rows: Iterable[Mapping[str, Any]], headed: bool = True) -> list[str]:
    from pulsarx.cli.drawing import table_lines

    cells = [[each.get(name) for name in columns] for each in rows]
    numeric = [
        headed and all(isinstance(row[index], int | float | None) for row in cells)
        for index in range(len(columns))
    ]
    texts = []
    for row in cells:
        # Of pairs the first one names the second one.
        names = columns if headed else (columns[0], str(row[0]))
        texts.append([cell(name, value) for name, value in zip(names, row)])
    heads = [name.upper().replace("_", " ") for name in columns] if headed else []
    return list(table_lines(heads, texts, right=numeric, bold=sys.stdout.isatty()))


def _width(lines: list[str]) -> int:
    from pulsarx.cli.drawing import text_width

    return max(map(text_width, lines), default=0)
