"""The command that all others stand below: loads them by `COMMANDS`, and says how they ended."""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from pulsarx import errors
from pulsarx.cli import COMMANDS
from pulsarx.cli.command import DONE, FAILED, INTERRUPTED, USAGE, Group
from pulsarx.cli.output import shown_text, tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

_COMPLETE = "_PULSARX_COMPLETE"  # where click's scripts for shells say what is to be completed


class Root(Group):
    """Loads a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place, purpose = COMMANDS.get(cmd_name, ("", ""))
        if not place:
            return None
        module, _, name = place.partition(":")
        if not name:
            return _plain(cmd_name, purpose)
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        import difflib

        asked = args[0]
        if asked not in COMMANDS and not asked.startswith("-") and not ctx.resilient_parsing:
            near = difflib.get_close_matches(asked, COMMANDS)
            meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            ctx.fail(f"No such command {asked!r}.{meant}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by the table, so that help loads no command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, purpose) for name, (_, purpose) in COMMANDS.items()])

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
    instruction = os.environ.get(_COMPLETE)
    if instruction:
        from click.shell_completion import shell_complete

        return shell_complete(root, {}, "pulsarx", _COMPLETE, instruction)
    try:
        with root.make_context("pulsarx", arguments) as context:
            root.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return int(end.exit_code)
    except click.ClickException as error:
        return _told(error)
    except BrokenPipeError:
        _leave_output()
        return DONE
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except (ValueError, errors.InvalidTopicName, errors.InvalidUrl) as error:
        # A FolderError is an InvalidUrl to those who know the official client alone.
        status = FAILED if isinstance(error, errors.FolderError) else USAGE
        return _failed(error, status)
    except (errors.PulsarException, OSError) as error:
        return _failed(error, FAILED)
    return DONE


def _told(error: click.ClickException) -> int:
    try:
        error.show()
    except OSError:
        pass  # as tell
    return int(error.exit_code)


def _failed(error: Exception, status: int) -> int:
    kind = "" if isinstance(error, (ValueError, OSError)) else f"{type(error).__name__}: "
    try:
        # What has happened by now is on the screen before the error is.
        sys.stdout.flush()
    except OSError:
        _leave_output()
    tell(f"{kind}{shown_text(errors.detail_of(error))}")
    return status


def _leave_output() -> None:
    """Nobody reads it any more; Python, which flushes it at the end, shall not complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


@click.group(
    cls=Root,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExamples:\n  pulsarx --url events ls\n  pulsarx stats orders --url events\n"
    "  PULSARX_URL=events pulsarx tail -f orders | jq .data",
)
@click.version_option(package_name="pulsarx", prog_name="pulsarx")
def root() -> None:
    """Look into a PulsarX folder and operate it, beside the process that owns it.

    Commands and options are named as those of pulsar-admin and pulsar-client. On a terminal there
    are tables; into a pipe or file go JSON lines.
    """
