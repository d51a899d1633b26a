"""How much a test has done, told to the campaign it runs in: images, points, histories, besides
that it passed (tests/long)."""

from __future__ import annotations

import os

FILE = "PULSARX_TEST_COUNTS"  # one line for each call; of all processes of a round


def counted(number: int, what: str) -> None:
    """Tell that so many were tried. what: a plural, the same in every round."""
    path = os.environ.get(FILE)
    if path is None:
        return
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, f"{number} {what}\n".encode())
    finally:
        os.close(descriptor)


def counts_in(text: str) -> dict[str, int]:
    """The sums of what was told, by what it was."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        number, _, what = line.partition(" ")
        found[what] = found.get(what, 0) + int(number)
    return found
