"""`python -m pulsarx functions`: has one command, localrun."""

from __future__ import annotations

import sys

USAGE = "usage: python -m pulsarx functions localrun [option...]; --help behind localrun lists them"


def main(arguments: list[str]) -> int:
    """The exit status. arguments: behind `functions`."""
    command, *rest = arguments or [""]
    if command == "localrun":
        from pulsarx.functions import localrun

        return localrun.main(rest)
    asked = command in ("-h", "--help")
    print(USAGE, file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2
