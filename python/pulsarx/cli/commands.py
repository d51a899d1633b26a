"""The table of commands, by subject. Help reads it, and loads none of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMPLETE = "_PULSARX_COMPLETE"  # where the scripts for shells say what is to be completed
SHELLS = ("bash", "zsh", "fish")  # those that are completed without click
# Subject: commands; each has its place, and the sentence that its own help begins with. `module`
# has main(arguments), which gets all that stands behind the command and answers the exit status;
# `module:name` is declared with `declared`.
SUBJECTS = {
    "Look": {
        "ls": ("pulsarx.cli.listing:ls", "List the topics of a namespace, or of all namespaces."),
        "stats": (
            "pulsarx.cli.listing:stats",
            "Show the figures of a topic and of its subscriptions; without one, a line for each "
            "topic.",
        ),
        "top": (
            "pulsarx.cli.top:top",
            "Show the topics with the largest backlogs or rates, until Ctrl-C.",
        ),
        "tail": ("pulsarx.cli.reading:tail", "Print the last messages of a topic."),
        "read": (
            "pulsarx.cli.reading:read",
            "Print the messages of a topic from a position on, and wait for them; nothing is "
            "acknowledged.",
        ),
        "peek": (
            "pulsarx.cli.subscriptions:peek",
            "Show the next messages that a subscription has to acknowledge; they stay as they are.",
        ),
        "sql": ("pulsarx.cli.sql:sql", "Query topics with SQL, each a table of its messages."),
        "console": (
            "pulsarx.cli.console:console",
            "Show a page to look into the folder and to operate it, until Ctrl-C.",
        ),
    },
    "Publish and receive": {
        "produce": (
            "pulsarx.cli.producing:produce",
            "Publish messages; a topic that does not exist is created.",
        ),
        "consume": (
            "pulsarx.cli.consuming:consume",
            "Receive messages and acknowledge them when they are printed.",
        ),
        "seek": (
            "pulsarx.cli.subscriptions:seek",
            "Move a subscription: what is before counts as acknowledged, what follows does not.",
        ),
        "skip": (
            "pulsarx.cli.subscriptions:skip",
            "Acknowledge the next messages of a subscription without receiving them.",
        ),
        "clear": (
            "pulsarx.cli.subscriptions:clear",
            "Acknowledge the whole backlog of a subscription.",
        ),
        "replay-dlq": (
            "pulsarx.cli.consuming:replay_dlq",
            "Publish the dead letters of a subscription to the topic they came from again.",
        ),
    },
    "Administer": {
        "topics": (
            "pulsarx.cli.topics:topics",
            "Administer topics, their subscriptions and policies.",
        ),
        "subscriptions": (
            "pulsarx.cli.subscriptions:subscriptions",
            "Administer the subscriptions of topics.",
        ),
        "namespaces": (
            "pulsarx.cli.namespaces:namespaces",
            "Administer namespaces, and the policies that hold for all topics of one.",
        ),
        "tenants": ("pulsarx.cli.tenants:tenants", "Administer tenants."),
        "schemas": (
            "pulsarx.cli.schemas:schemas",
            "Administer the schemas of topics, all their versions.",
        ),
        "transactions": (
            "pulsarx.cli.transactions:transactions",
            "See open transactions, and abort one.",
        ),
    },
    "Folders": {
        "init": ("pulsarx.cli.making:init", "Make a folder for topics and messages."),
        "check": (
            "pulsarx.cli.checking:check",
            "Read every ledger, cursor and commit of the folder, and tell what is damaged.",
        ),
        "backup": (
            "pulsarx.cli.backups:backup",
            "Copy the folder to TARGET, which must not exist, or be empty.",
        ),
        "restore": (
            "pulsarx.cli.backups:restore",
            "Make TARGET of a backup, which --url names, and prove that it is whole.",
        ),
        "salvage": (
            "pulsarx.cli.backups:salvage",
            "Make TARGET of what is whole of FOLDER, whose marker or catalogue is lost or damaged.",
        ),
    },
    "Run": {
        "serve": ("pulsarx.cli.serve", "Serve a folder to programs with any client of Pulsar."),
        "forward": (
            "pulsarx.cli.forwarding:forward",
            "Forward topics of FOLDER to a cluster or another folder, until SIGTERM or SIGINT.",
        ),
        "fetch": (
            "pulsarx.cli.forwarding:fetch",
            "Fetch topics of a cluster into FOLDER, until SIGTERM or SIGINT.",
        ),
        "run": ("pulsarx.cli.run", "Run a program written for pulsar-client, unchanged."),
        "functions": (
            "pulsarx.cli.functions",
            "Run a function of Pulsar Functions in this process.",
        ),
        "perf": ("pulsarx.cli.perf:perf", "Load a topic and measure it."),
    },
}
COMMANDS = {name: found for commands in SUBJECTS.values() for name, found in commands.items()}


def loaded(place: str) -> Any:
    """Return the module, or the command or group of one, that a place of the table names."""
    module, _, name = place.partition(":")
    # Without importlib, which help should not pay for.
    found = __import__(module, None, None, ("__name__",))
    return getattr(found, name) if name else found
