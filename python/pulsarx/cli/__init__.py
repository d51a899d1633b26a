"""The command line: `pulsarx COMMAND ...`, or `python -m pulsarx COMMAND ...`.

Loads the modules of the command that is asked for, and click with those alone that are made with
it. Exit statuses are in `command`.
"""

from __future__ import annotations

import sys
from importlib import import_module

# Command: where it is, and what it is for. `module` has main(arguments), which gets all that stands
# behind the command and answers the exit status; `module:name` is a command made with click.
COMMANDS = {
    "ls": ("pulsarx.cli.listing:ls", "list topics"),
    "stats": ("pulsarx.cli.listing:stats", "show figures of topics and subscriptions"),
    "tail": ("pulsarx.cli.reading:tail", "print the last messages of a topic"),
    "read": ("pulsarx.cli.reading:read", "print messages from a position on"),
    "peek": ("pulsarx.cli.subscriptions:peek", "show the next messages of a subscription"),
    "produce": ("pulsarx.cli.producing:produce", "publish messages"),
    "consume": ("pulsarx.cli.consuming:consume", "receive messages and acknowledge them"),
    "seek": ("pulsarx.cli.subscriptions:seek", "move a subscription to a message or a time"),
    "skip": ("pulsarx.cli.subscriptions:skip", "acknowledge the next messages of a subscription"),
    "clear": ("pulsarx.cli.subscriptions:clear", "acknowledge all messages of a subscription"),
    "replay-dlq": ("pulsarx.cli.consuming:replay_dlq", "publish dead letters to their topic again"),
    "topics": ("pulsarx.cli.topics:topics", "administer topics and their policies"),
    "subscriptions": ("pulsarx.cli.subscriptions:subscriptions", "administer subscriptions"),
    "namespaces": ("pulsarx.cli.namespaces:namespaces", "administer namespaces and their policies"),
    "tenants": ("pulsarx.cli.tenants:tenants", "administer tenants"),
    "schemas": ("pulsarx.cli.schemas:schemas", "administer the schemas of topics"),
    "backup": ("pulsarx.cli.backups:backup", "copy the folder while it is used"),
    "restore": ("pulsarx.cli.backups:restore", "make a folder of a backup, and prove it"),
    "console": ("pulsarx.cli.console:console", "show a page to look into a folder and operate it"),
    "top": ("pulsarx.cli.top:top", "watch the topics with the largest backlogs or rates"),
    "check": ("pulsarx.cli.checking:check", "read all of a folder and tell what is damaged"),
    "perf": ("pulsarx.cli.perf:perf", "load a topic and measure it"),
    "functions": ("pulsarx.cli.functions", "run a function of Pulsar Functions in this process"),
    "run": ("pulsarx.cli.run", "run a program written for pulsar-client, unchanged"),
    "serve": ("pulsarx.cli.serve", "serve a folder to programs with any client of Pulsar"),
}


def main(arguments: list[str] | None = None) -> int:
    """The exit status. arguments: as of sys.argv, without the program's name; None: those."""
    if arguments is None:
        arguments = sys.argv[1:]
    place = COMMANDS.get(arguments[0], ("", ""))[0] if arguments else ""
    status: int
    if place and ":" not in place:
        status = import_module(place).main(arguments[1:])
    else:
        status = import_module("pulsarx.cli.root").run(arguments)
    return status
