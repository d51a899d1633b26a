"""Says what a long step is at: how much is done of all, and how long it will still take.

On a terminal one line is renewed; elsewhere there is another line every few seconds, so that nobody
wonders whether anything happens.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

SECONDS_BETWEEN_LINES = 4.0  # where lines stay
NO_ESTIMATE_BEFORE = 3.0  # seconds: until then it would be a guess


class Line:
    """What a step is at. One thread at a time."""

    def __init__(self) -> None:
        self._on_terminal = sys.stderr.isatty()
        self._shown: float | None = None

    def show(self, text: Callable[[], str]) -> None:
        """Call it about once a second; text is asked for what it shows by now."""
        now = time.monotonic()
        between = 0.1 if self._on_terminal else SECONDS_BETWEEN_LINES
        if self._shown is not None and now - self._shown < between:
            return
        self._shown = now
        if self._on_terminal:
            width = os.get_terminal_size(sys.stderr.fileno()).columns
            print(f"\r{text()[: width - 1]}\x1b[K", end="", file=sys.stderr, flush=True)
        else:
            print(text(), file=sys.stderr, flush=True)

    def say(self, text: str) -> None:
        """Print a line that stays."""
        if self._on_terminal and self._shown is not None:
            print("\r\x1b[K", end="", file=sys.stderr)
        print(text.rstrip(), file=sys.stderr, flush=True)


def say_seconds(
    what: str, is_over: Callable[[], bool], doing: Callable[[], str] = lambda: ""
) -> None:
    """Say how long something takes until it is over; is_over waits up to a second. doing: what it
    is at; empty: nobody knows."""
    began = time.monotonic()
    line = Line()

    def text() -> str:
        at = doing()
        return f"{what}: {time.monotonic() - began:.0f} s{', ' + at if at else ''}"

    line.show(lambda: what)
    while not is_over():
        line.show(text)
    line.say(f"{what}: {time.monotonic() - began:.0f} s")


class Progress:
    """A step of many parts. One thread at a time; a context manager that ends it."""

    def __init__(self, what: str, count: int, weight: float, noun: str = "files") -> None:
        """what: such as "building". count: of things to be done. weight: of all of them."""
        self.what, self.count, self.weight, self.noun = what, count, weight, noun
        self._done, self._done_weight = 0, 0.0
        self._began = time.monotonic()
        self._line = Line()

    def done(self, weight: float) -> None:
        """One more is done."""
        self._done += 1
        self._done_weight += weight

    def say(self, text: str) -> None:
        """Print something else in between."""
        if text.strip():
            self._line.say(text)

    def show(self) -> None:
        """Call it about once a second."""
        self._line.show(self._text)

    def _text(self) -> str:
        seconds = time.monotonic() - self._began
        line = f"{self.what}: {self._done:,} of {self.count:,} {self.noun}"
        if seconds >= NO_ESTIMATE_BEFORE and self._done_weight:
            left = seconds * (self.weight - self._done_weight) / self._done_weight
            line += f", about {left:.0f} s left"
        return line

    def __enter__(self) -> Progress:
        self.show()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            seconds = time.monotonic() - self._began
            self._line.say(f"{self.what}: {self.count:,} {self.noun} in {seconds:.0f} s")
