"""The command that all others stand below: runs a command line by click, and says how it ended."""

from __future__ import annotations

import os
import sys

import click

import pulsarx
from pulsarx import errors
from pulsarx.cli.cells import shown_text
from pulsarx.cli.clicked import clicked, folder_of, refuse_unknown, shared_parameters
from pulsarx.cli.command import DONE, FAILED, INTERRUPTED, USAGE
from pulsarx.cli.commands import COMMANDS, COMPLETE, loaded
from pulsarx.cli.help import help_of
from pulsarx.cli.output import leave_output, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


class Root(click.Group):
    """Loads a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place, purpose = COMMANDS.get(cmd_name, ("", ""))
        if not place:
            return None
        if ":" not in place:
            return _plain(cmd_name, purpose)
        return clicked(cmd_name, loaded(place))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        refuse_unknown(ctx, args[0], COMMANDS)
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        return help_of(None, ctx.command_path).rstrip()

    def main(self, args: Any = None, *_: Any, **__: Any) -> NoReturn:
        sys.exit(run(sys.argv[1:] if args is None else list(args)))


def _plain(name: str, purpose: str) -> click.Command:
    """Stands for a command that reads its own arguments: it was not the first word."""

    def refuse(arguments: tuple[str, ...]) -> None:
        raise click.UsageError(f"--url and --format are not for {name}; begin with pulsarx {name}")

    rest = click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)
    settings = {"ignore_unknown_options": True, "allow_interspersed_args": False}
    return click.Command(
        name,
        callback=refuse,
        params=[rest],
        help=purpose,
        add_help_option=False,
        context_settings=settings,
    )


def run(arguments: list[str]) -> int:
    """The exit status of a command line. What fails is told on standard error."""
    instruction = os.environ.get(COMPLETE)
    if instruction:  # for the script of a shell; `completion` does the rest
        from click.shell_completion import shell_complete

        return shell_complete(root, {}, "pulsarx", COMPLETE, instruction)
    advice = ""
    try:
        with root.make_context("pulsarx", arguments) as context:
            try:
                root.invoke(context)
            finally:
                advice = folder_of(context).advice
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return int(end.exit_code)
    except click.ClickException as error:
        return _told(error)
    except BrokenPipeError:
        leave_output()
        return DONE
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except (ValueError, errors.InvalidTopicName, errors.InvalidUrl) as error:
        # A FolderError is an InvalidUrl to those who know the official client alone.
        status = FAILED if isinstance(error, errors.FolderError) else USAGE
        return _failed(error, advice, status)
    except (errors.PulsarException, OSError) as error:
        return _failed(error, advice, FAILED)
    return DONE


def _told(error: click.ClickException) -> int:
    try:
        error.show()
    except OSError:
        pass  # as tell
    return int(error.exit_code)


def _failed(error: Exception, advice: str, status: int) -> int:
    """advice: what is told instead of the error's own text."""
    kind = "" if isinstance(error, (ValueError, OSError)) else f"{type(error).__name__}: "
    try:
        # What has happened by now is on the screen before the error is.
        sys.stdout.flush()
    except OSError:
        leave_output()
    tell(f"{kind}{shown_text(advice or errors.detail_of(error))}")
    return status


root: Root = Root(
    "pulsarx",
    params=shared_parameters(),
    context_settings={"help_option_names": ["-h", "--help"]},
)
click.version_option(pulsarx.__version__, prog_name="pulsarx")(root)
