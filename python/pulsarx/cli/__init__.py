"""The command line: `python -m pulsarx COMMAND ...`."""

from __future__ import annotations

import sys

# Command: the module whose main(arguments) runs it, and what it is for.
COMMANDS = {
    "functions": ("pulsarx.cli.functions", "run a function of Pulsar Functions in this process"),
    "run": ("pulsarx.cli.run", "run a program written for pulsar-client, unchanged"),
    "serve": ("pulsarx.cli.serve", "serve a folder to programs with any client of Pulsar"),
}


def main(arguments: list[str]) -> int:
    """The exit status. arguments: as of sys.argv, without the program's name."""
    command, *rest = arguments or [""]
    if command in COMMANDS:
        from importlib import import_module

        found: int = import_module(COMMANDS[command][0]).main(rest)
        return found
    asked = command in ("-h", "--help")
    lines = ["usage: python -m pulsarx COMMAND ...", ""]
    lines += [f"  {name}  {purpose}" for name, (_, purpose) in COMMANDS.items()]
    if command and not asked:
        lines.insert(0, f"there is no command {command!r}")
    print("\n".join(lines), file=sys.stdout if asked else sys.stderr)
    return 0 if asked else 2
