"""The command line: `pulsarx COMMAND ...`, or `python -m pulsarx COMMAND ...`.

Loads the modules of the command that is asked for. Help and completion are made without click,
which takes four times as long to load as Python takes to start. Exit statuses are in `command`.
"""

from __future__ import annotations

import os
import sys

from pulsarx.cli.commands import COMMANDS, COMPLETE, SHELLS, loaded


def main(arguments: list[str] | None = None) -> int:
    """The exit status. arguments: as of sys.argv, without the program's name; None: those."""
    if arguments is None:
        arguments = sys.argv[1:]
    instruction = os.environ.get(COMPLETE, "")
    shell, _, part = instruction.partition("_")
    if part == "complete" and shell in SHELLS:
        from pulsarx.cli.completion import complete

        return complete(shell)
    place = COMMANDS.get(arguments[0], ("", ""))[0] if arguments else ""
    status: int
    if place and ":" not in place and not instruction:
        status = loaded(place).main(arguments[1:])
        return status
    if not instruction:
        from pulsarx.cli.help import asked_for

        text = asked_for(arguments)
        if text is not None:
            return _print(text)
    from pulsarx.cli.root import run

    return run(arguments)


def _print(text: str) -> int:
    """Print help. The reader of the output may have left it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        from pulsarx.cli.output import leave_output

        leave_output()
    return 0
