"""The lines of tables, a screen that is drawn again and again, and bars. `cli/output` calls.

Widths are those on a terminal, where a character may take two columns or none, and what makes a
head bold takes none.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from unicodedata import combining, east_asian_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO

_GAP = 2  # columns of a terminal between those of a table
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_CLEAR_LINE = "\r\x1b[K"  # from its beginning
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_OTHER_SCREEN, _FIRST_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def terminal_size(stream: TextIO) -> tuple[int, int] | None:
    """Return columns and lines; None: it is no terminal, and COLUMNS does not say how wide it is to
    be taken for."""
    try:
        size = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        size = None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns), size.lines if size else sys.maxsize
    return (size.columns or 80, size.lines or 24) if size else None


def table_lines(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[bool],
    bold: bool = False,
) -> Iterator[str]:
    """The lines of a table, without spaces at their ends, as wide as its widest cells are.

    heads: empty for a table without them. right: which columns are figures, aligned on the right.
    bold: of the heads.
    """
    everything = [heads, *rows] if heads else list(rows)
    widths = [max(map(text_width, cells)) for cells in zip(*everything, strict=True)]
    for number, cells in enumerate(everything):
        drawn = (" " * _GAP).join(map(_aligned, cells, widths, right)).rstrip()
        yield f"{_BOLD}{drawn}{_PLAIN}" if bold and heads and number == 0 else drawn


def text_width(text: str) -> int:
    """Columns of a terminal that a text takes."""
    text = text.removeprefix(_BOLD).removesuffix(_PLAIN)
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def _aligned(text: str, width: int, is_right: bool) -> str:
    room = " " * (width - text_width(text))
    return room + text if is_right else text + room


class Screen:
    """A terminal's other screen, which is drawn again and again; as a context manager, which leaves
    the first one as it was, also where a signal ends the process. One thread."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._handled: list[int] = []

    def __enter__(self) -> Screen:
        if threading.current_thread() is threading.main_thread():
            for number in _ENDING:
                if signal.getsignal(number) == signal.SIG_DFL:  # else somebody ends in order
                    signal.signal(number, self._end)
                    self._handled.append(number)
        self._stream.write(_OTHER_SCREEN)
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.write(_FIRST_SCREEN)
        self._stream.flush()
        while self._handled:
            signal.signal(self._handled.pop(), signal.SIG_DFL)

    def _end(self, number: int, _: object) -> None:
        """End by the signal, as without a handler."""
        try:
            # Not by the stream: the signal may have come while that was writing.
            os.write(self._stream.fileno(), _FIRST_SCREEN.encode())
        except OSError:
            pass  # the terminal is gone
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def show(self, lines: Sequence[str]) -> None:
        """Draw as many of the lines as there is room for in the place of those before."""
        size = terminal_size(self._stream)
        shown = lines[: max(size[1] - 1, 1)] if size else lines
        self._stream.write("\x1b[H" + "".join(f"{each}\x1b[K\n" for each in shown) + "\x1b[J")
        self._stream.flush()


class Bar:
    """How much is done, in one line of a terminal, which goes with it; as a context manager. It is
    written again when a hundredth more is done. One thread."""

    def __init__(self, stream: TextIO, action: str, total: int | None = None) -> None:
        """total: None: nobody knows."""
        self._stream = stream
        self._action = action
        self._total = total
        self._done = 0
        self._next = 0  # what is to be done before it is written again

    def __enter__(self) -> Bar:
        self._write()
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.write(_CLEAR_LINE)
        self._stream.flush()

    def advance(self, count: int) -> None:
        self.update(self._done + count, self._total)

    def update(self, done: int, total: int | None) -> None:
        self._done = done
        if done >= self._next or total != self._total:
            self._total = total
            self._write()

    def _write(self) -> None:
        self._next = self._done + max((self._total or self._done) // 100, 1)
        line = f"{self._action} {self._done:,}"
        if self._total:
            part = min(self._done / self._total, 1)
            line += f" of {self._total:,} {'#' * int(20 * part):.<20} {part:4.0%}"
        size = terminal_size(self._stream)
        self._stream.write(_CLEAR_LINE + (line[: size[0] - 1] if size else line))
        self._stream.flush()
