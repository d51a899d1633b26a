"""The options that commands share, about the folder and the output, and the exit statuses."""

from __future__ import annotations

import click

from pulsarx.cli.folder import Folder
from pulsarx.cli.output import FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    _IntType = click.ParamType[int]
else:
    _IntType = click.ParamType  # no generic one in older versions of click

# What the command line exits with; part of its interface, see README.md.
DONE = 0  # also where the reader of its output left (a broken pipe)
FAILED = 1  # the error is on standard error
USAGE = 2  # the command line cannot be understood, or one of its values
DAMAGED = 3  # `check` has found damage
INTERRUPTED = 130  # by Ctrl-C


class Command(click.Command):
    """A command with `--url` and `--format`, and an example below its help."""

    def __init__(self, *args: Any, example: str = "", **kwargs: Any) -> None:
        if example:
            kwargs["epilog"] = f"\b\nExample:\n  {example}"
        super().__init__(*args, **kwargs)
        self.params += _shared()


class Group(click.Group):
    """Commands and groups below a name; its own `--url` and `--format` hold for them."""

    command_class = Command

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += _shared()


Group.group_class = Group


def _shared() -> list[click.Parameter]:
    return [
        click.Option(
            ["--url"],
            expose_value=False,
            callback=_take_url,
            metavar="FOLDER|URL",
            help="The folder, or http://host:port; else PULSARX_URL, else the current folder.",
        ),
        click.Option(
            ["--format"],
            type=click.Choice(FORMATS),
            expose_value=False,
            callback=_take_format,
            help="Else table on a terminal, and json (a line each) elsewhere.",
        ),
    ]


def _take_url(context: click.Context, _: click.Parameter, value: str | None) -> None:
    folder = _folder(context)
    if value is not None:
        folder.url = value


def _take_format(context: click.Context, _: click.Parameter, value: str | None) -> None:
    folder = _folder(context)
    if value is not None:
        folder.output.format = value


def _folder(context: click.Context) -> Folder:
    """One for the whole command line; click hands it to functions as their first argument."""
    if context.obj is None:
        context.obj = context.find_root().obj = Folder()
    found: Folder = context.obj
    return found


pass_folder = click.make_pass_decorator(Folder)


def _take_folder(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        _folder(context).url = value


topic_argument = click.argument("topic")
# Of commands about a folder as a whole, which need not be named with --url.
folder_argument = click.argument(
    "path", required=False, metavar="[FOLDER]", expose_value=False, callback=_take_folder
)
subscription_option = click.option(
    "-s", "--subscription", required=True, metavar="NAME", help="Name of the subscription."
)
force_option = click.option(
    "-f", "--force", is_flag=True, help="Close producers, consumers and readers that are there."
)


def command(example: str, name: str | None = None) -> Callable[[Callable[..., None]], Command]:
    """Make a command of a function; its docstring is the help."""

    def make(function: Callable[..., None]) -> Command:
        return click.command(name, cls=Command, example=example)(pass_folder(function))

    return make


def message_id_of(text: str) -> Any:
    """A MessageId of `earliest`, `latest`, or `ledger:entry[:partition[:batch index]]`."""
    from pulsarx.message_id import MessageId

    if text in ("earliest", "latest"):
        return getattr(MessageId, text)
    try:
        return MessageId.from_text(text if text.count(":") != 1 else f"{text}:-1")
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is no message id; write earliest, latest or ledger:entry"
        ) from None


class Amount(_IntType):
    """A number with a unit behind it, or without: an int in the smallest unit. -1: no limit."""

    def __init__(self, name: str, units: dict[str, int]) -> None:
        self.name = name
        self._units = units

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value)
        number, unit = text, 1
        if text[-1:].lower() in self._units:
            number, unit = text[:-1], self._units[text[-1:].lower()]
        if not (number.isdecimal() and number.isascii()) and text != "-1":
            units = ", ".join(self._units)
            self.fail(f"{text!r}: write a number, and behind it one of {units}", param, ctx)
        return int(number) * unit


# As pulsar-admin reads them: 90 is seconds, 3h hours; 4096 is bytes, 10M MiB.
DURATION = Amount(
    "duration", {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400, "y": 365 * 86400}
)
SIZE = Amount("size", {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40})
