"""A progress bar for a terminal; a single line at the end where there is none."""

from __future__ import annotations

import sys

WIDTH = 30


class ProgressBar:
    """One bar from 0 to total: show as often as you like, then stop."""

    def __init__(self, label: str, total: int) -> None:
        self._label = label
        self._total = total
        self._step = -1
        self._live = sys.stdout.isatty()

    def show(self, done: int, note: str = "") -> None:
        """Redraw when the bar has grown. note: said behind it."""
        step = done * WIDTH // self._total
        if not self._live or (step == self._step and not note):
            return
        self._step = step
        bar = "#" * step + "." * (WIDTH - step)
        print(f"\r{self._line(bar, done)} {note}\x1b[K", end="", flush=True)

    def stop(self, done: int, note: str = "") -> None:
        """Leave the bar where it stands and go to the next line."""
        if self._live:
            self.show(done, note or " ")
            print()
        else:
            print(f"{self._line('', done)} {note}".rstrip(), flush=True)

    def _line(self, bar: str, done: int) -> str:
        return f"{self._label:<9} {bar} {done:>9,} of {self._total:,}".replace("  ", " ", not bar)
