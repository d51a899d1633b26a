"""Does a command again and again, for `--watch`: on a terminal it is drawn in place of what it told
before, elsewhere each time follows the one before."""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stdout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

_HOME, _TO_END_OF_LINE, _TO_END = "\x1b[H", "\x1b[K", "\x1b[J"
_OTHER_SCREEN, _SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


class _Frame(io.StringIO):
    """The output of one time, drawn when it is whole. As what it is drawn on, it is a terminal."""

    def isatty(self) -> bool:
        return True


def watched(act: Callable[[], None], pause_s: float) -> NoReturn:
    """Do it again and again, until it raises or Ctrl-C comes."""
    from pulsarx._pycore.ground.locks import Event

    pause, out = Event(), sys.stdout
    if not out.isatty():
        while True:
            act()
            out.flush()
            pause.wait(pause_s)
    out.write(_OTHER_SCREEN)
    try:
        while True:
            frame = _Frame()
            with redirect_stdout(frame):
                act()
            _draw(frame.getvalue())
            pause.wait(pause_s)
    finally:
        out.write(_SCREEN)
        out.flush()


def _draw(text: str) -> None:
    """Draw as many lines as there is room for."""
    lines = text.splitlines()
    room = max(os.get_terminal_size(sys.stdout.fileno()).lines - 1, 1)
    shown = "".join(f"{each}{_TO_END_OF_LINE}\r\n" for each in lines[:room])
    sys.stdout.write(f"{_HOME}{shown}{_TO_END}")
    sys.stdout.flush()
