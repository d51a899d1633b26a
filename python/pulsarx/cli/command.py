"""The options and arguments that commands share, values that they read alike, and exit statuses."""

from __future__ import annotations

from pulsarx.cli.declared import Amount, Command, Parameter, UsageError, argument, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Decorator = Callable[[Callable[..., None]], Callable[..., None]]

# What the command line exits with; part of its interface, see docs/command-line.md.
DONE = 0  # also where the reader of its output left (a broken pipe)
FAILED = 1  # the error is on standard error
USAGE = 2  # the command line cannot be understood, or one of its values
DAMAGED = 3  # `check` has found damage, or `salvage` has left something out
INTERRUPTED = 130  # by Ctrl-C

topic_argument: Decorator = argument("topic")
# Of commands about a folder as a whole, which need not be named with --url.
folder_argument: Decorator = argument("path", required=False, metavar="FOLDER", role="folder")
subscription_option: Decorator = option(
    "-s", "--subscription", required=True, metavar="NAME", help="Name of the subscription."
)
force_option: Decorator = option(
    "-f", "--force", is_flag=True, help="Close producers, consumers and readers that are there."
)


def command(example: str, watched: bool = False) -> Callable[[Callable[..., None]], Command]:
    """Make a command of a function; its docstring is the help. watched: see Command."""

    def make(function: Callable[..., None]) -> Command:
        parameters: list[Parameter] = function.__dict__.pop("parameters", [])
        lines = (function.__doc__ or "").splitlines()
        help = "\n".join(each.strip() for each in lines).strip()
        return Command(function, parameters, help, example, watched)

    return make


def message_id_of(text: str) -> Any:
    """A MessageId of `earliest`, `latest`, or `ledger:entry[:partition[:batch index]]`."""
    from pulsarx.message_id import MessageId

    if text in ("earliest", "latest"):
        return getattr(MessageId, text)
    try:
        return MessageId.from_text(text if text.count(":") != 1 else f"{text}:-1")
    except ValueError:
        raise UsageError(
            f"{text!r} is no message id; write earliest, latest or ledger:entry"
        ) from None


# As pulsar-admin reads them: 90 is seconds, 3h hours; 4096 is bytes, 10M MiB.
DURATION = Amount(
    "duration", {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
)
SIZE = Amount("size", {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40})
