"""Does a command again and again, for `--watch`: on a terminal it is drawn in place of what it told
before, elsewhere each time follows the one before."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stdout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn


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
    from pulsarx.cli.drawing import Screen

    with Screen(out) as screen:
        while True:
            frame = _Frame()
            with redirect_stdout(frame):
                act()
            screen.show(frame.getvalue().splitlines())
            pause.wait(pause_s)
