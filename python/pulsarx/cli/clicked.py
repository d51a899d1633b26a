"""Commands of click, which reads the command lines that are run, of those that are"""

from __future__ import annotations

import click

from pulsarx import errors
from pulsarx.cli.declared import (
    SHARED,
    Amount,
    Choice,
    Command,
    Exit,
    Failed,
    File,
    Fraction,
    Group,
    Path,
    UsageError,
    Whole,
)
from pulsarx.cli.folder import Folder
from pulsarx.cli.help import help_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.cli.declared import Kind, Parameter

    _AnyType = click.ParamType[Any]
else:
    _AnyType = click.ParamType  # no generic one in older versions of click


class _Command(click.Command):
    """A declared command, run by click."""

    def __init__(self, name: str, found: Command) -> None:
        def run(**given: Any) -> None:
            _perform(found, given)

        parameters = [_parameter(each) for each in found.parameters]
        super().__init__(name, callback=run, params=parameters, help=found.help)
        self._found = found

    def get_help(self, ctx: click.Context) -> str:
        return help_of(self._found, ctx.command_path).rstrip()


class _Group(click.Group):
    """A declared group; its own `--url` and `--format` hold for its commands."""

    def __init__(self, name: str, found: Group) -> None:
        parameters = [_parameter(each) for each in found.parameters]
        super().__init__(name, params=parameters, help=found.help)
        self._found = found

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._found.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = self._found.commands.get(cmd_name)
        return None if found is None else _Command(cmd_name, found)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        refuse_unknown(ctx, args[0], self._found.commands)
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        return help_of(self._found, ctx.command_path).rstrip()


def clicked(name: str, found: Command | Group) -> click.Command:
    """Make a command of click."""
    return _Group(name, found) if isinstance(found, Group) else _Command(name, found)


def refuse_unknown(ctx: click.Context, asked: str, known: Any) -> None:
    """UsageError, with those that are meant perhaps: it is not among the known commands."""
    if asked in known or asked.startswith("-") or ctx.resilient_parsing:
        return
    from pulsarx.cli.advice import meant

    ctx.fail(f"No such command {asked!r}.{meant(asked, known)}")


def folder_of(context: click.Context) -> Folder:
    """One for the whole command line."""
    if context.obj is None:
        context.obj = context.find_root().obj = Folder()
    found: Folder = context.obj
    return found


def shared_parameters() -> list[click.Parameter]:
    """Make the parameters of the command line itself."""
    return [_parameter(each) for each in SHARED]


# Running ------------------------------------------------------------------------------------------


def _perform(found: Command, given: dict[str, Any]) -> None:
    """Run the function of a command. Its errors become those of click; the text of an error of the
    library is put into the words of the command line."""
    context = click.get_current_context()
    folder = folder_of(context)
    watch, pause = given.pop("watch", False), given.pop("watch_interval", None)
    try:
        if watch:
            from pulsarx.cli.watching import watched

            watched(lambda: found.function(folder, **given), pause)
        else:
            found.function(folder, **given)
    except UsageError as error:
        if error.option:
            raise click.BadParameter(str(error), context, param_hint=error.option) from None
        raise click.UsageError(str(error), context) from None
    except Failed as error:
        raise click.ClickException(str(error)) from None
    except Exit as end:
        raise click.exceptions.Exit(end.status) from None
    except (errors.PulsarException, ValueError) as error:
        from pulsarx.cli.advice import advised

        folder.advice = advised(error, found, given, folder)
        raise


# Parameters ---------------------------------------------------------------------------------------


def _parameter(found: Parameter) -> click.Parameter:
    settings: dict[str, Any] = {"required": found.required, "type": _type(found.type)}
    if found.role in _TAKERS:
        settings |= {"expose_value": False, "callback": _TAKERS[found.role]}
    if found.default is not None:
        settings["default"] = found.default  # None would be a value to click
    if not found.is_option:
        return click.Argument(list(found.names), **settings)
    if found.is_flag:
        return click.Option(list(found.names), is_flag=True)
    return click.Option(list(found.names), multiple=found.multiple, **settings)


def _type(kind: Kind) -> Any:
    if isinstance(kind, Whole):
        is_free = kind.min is None and kind.max is None
        return click.INT if is_free else click.IntRange(kind.min, kind.max)
    if isinstance(kind, Fraction):
        return click.FloatRange(min=kind.min)
    if isinstance(kind, Choice):
        return click.Choice(kind.choices, case_sensitive=kind.case_sensitive)
    if isinstance(kind, Amount):
        return _Amount(kind)
    if isinstance(kind, File):
        return click.File("rb")
    return click.Path() if isinstance(kind, Path) else click.STRING


class _Amount(_AnyType):
    """A number with a unit, for click."""

    def __init__(self, kind: Amount) -> None:
        self.name = kind.name
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            return self._kind.of(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _take_url(context: click.Context, _: click.Parameter, value: str | None) -> None:
    folder = folder_of(context)
    if value is not None:
        folder.url = value


def _take_format(context: click.Context, _: click.Parameter, value: str | None) -> None:
    folder = folder_of(context)
    if value is not None:
        folder.output.format = value


_TAKERS = {"folder": _take_url, "format": _take_format}
