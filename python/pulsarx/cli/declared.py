"""Commands, groups, options and arguments as the modules of the command line declare them.

Help and completion are made of declarations alone (`help`, `completion`), and a command line that
is run is read by click (`clicked`): loading click takes four times as long as starting Python.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    class Kind(Protocol):
        """A kind of values. metavar: what stands for one in help."""

        @property
        def metavar(self) -> str: ...


class UsageError(Exception):
    """The command line cannot be understood, or one of its values. option: which, if it is one."""

    def __init__(self, text: str, option: str = "") -> None:
        super().__init__(text)
        self.option = option


class Failed(Exception):
    """A command failed; the text is told."""


class Exit(Exception):
    """A command has told all, and ends with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


# Kinds of values ----------------------------------------------------------------------------------


class Text:
    """Any text."""

    metavar = "TEXT"


class Whole:
    """A whole number from `min` to `max`. None: without that limit."""

    metavar = "NUMBER"

    def __init__(self, min: int | None = None, max: int | None = None) -> None:
        self.min = min
        self.max = max


class Fraction:
    """A number from `min` on."""

    metavar = "NUMBER"

    def __init__(self, min: float) -> None:
        self.min = min


class Choice:
    """One of several words."""

    def __init__(self, choices: Sequence[str], case_sensitive: bool = True) -> None:
        self.choices: tuple[str, ...] = tuple(choices)
        self.case_sensitive = case_sensitive

    @property
    def metavar(self) -> str:
        return "|".join(self.choices)


class File:
    """A file that is read, as bytes; - is standard input."""

    metavar = "FILE"


class Path:
    """The path of a file or folder."""

    metavar = "PATH"


class Amount:
    """A number with a unit behind it, or without: an int in the smallest unit. -1: no limit."""

    def __init__(self, name: str, units: dict[str, int]) -> None:
        self.metavar: str = name.upper()
        self.name = name
        self._units = units

    def of(self, text: str) -> int:
        """Return the value of a text. ValueError: it has none, and the error says why."""
        number, unit = text, 1
        if text[-1:].lower() in self._units:
            number, unit = text[:-1], self._units[text[-1:].lower()]
        if not (number.isdecimal() and number.isascii()) and text != "-1":
            units = ", ".join(self._units)
            raise ValueError(f"{text!r}: write a number, and behind it one of {units}")
        return int(number) * unit


# Parameters ---------------------------------------------------------------------------------------


class Parameter:
    """An option or an argument of a command. A value.

    names: those of an option begin with a dash; one without is that of the parameter of the
    function. api: names of Python's arguments that the option stands for, in errors of the library.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        *,
        type: Kind | None = None,
        default: Any = None,
        show_default: bool = False,
        required: bool = False,
        is_flag: bool = False,
        multiple: bool = False,
        help: str = "",
        metavar: str = "",
        api: str = "",
        role: str = "",
    ) -> None:
        """role: folder, format or watch, of what is for the command line and not for a function."""
        self.names = names
        self.type: Kind = type or Text()
        self.default = default
        self.show_default = show_default
        self.required = required
        self.is_flag = is_flag
        self.multiple = multiple
        self.help = help
        self.metavar: str = metavar or self.type.metavar
        self.api = api
        self.role = role

    @property
    def is_option(self) -> bool:
        return any(each.startswith("-") for each in self.names)

    @property
    def options(self) -> list[str]:
        """The names that begin with a dash."""
        return [each for each in self.names if each.startswith("-")]

    @property
    def name(self) -> str:
        """The parameter of the function."""
        own = [each for each in self.names if not each.startswith("-")]
        longest = max(self.names, key=lambda each: each.startswith("--"))
        return own[0] if own else longest.lstrip("-").replace("-", "_")


def option(*names: str, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare an option of the function below; settings are those of Parameter."""
    return _declaring(Parameter(names, **settings))


def argument(name: str, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Declare an argument of the function below, which must be given unless it has a default or
    required is False."""
    required = "default" not in settings
    return _declaring(Parameter((name,), **{"required": required, **settings}))


def _declaring(found: Parameter) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def declare(function: Callable[..., None]) -> Callable[..., None]:
        # The decorator next to the function runs first, and its parameter is the last one.
        function.__dict__.setdefault("parameters", []).insert(0, found)
        return function

    return declare


# Of all commands and groups, and of those that may be watched.
FORMATS = ("table", "json", "csv")
SHARED = [
    Parameter(
        ("--url",),
        metavar="FOLDER|URL",
        role="folder",
        help="The folder, or http://host:port; else PULSARX_URL, else the current folder.",
    ),
    Parameter(
        ("--format", "--output"),
        type=Choice(FORMATS),
        role="format",
        help="Else table on a terminal, and json (a line each) elsewhere.",
    ),
]
WATCH = [
    Parameter(
        ("-w", "--watch"), is_flag=True, role="watch", help="Look again and again, until Ctrl-C."
    ),
    Parameter(
        ("--watch-interval",),
        type=Fraction(min=0.1),
        default=2.0,
        show_default=True,
        role="watch",
        help="Seconds between two looks of --watch.",
    ),
]


# Commands -----------------------------------------------------------------------------------------


class Command:
    """A command. The function gets the folder, and its parameters by name. watched: whether it can
    be done again and again (`--watch`)."""

    def __init__(
        self,
        function: Callable[..., None],
        parameters: Sequence[Parameter] | Callable[[], Sequence[Parameter]],
        help: str,
        example: str,
        watched: bool = False,
    ) -> None:
        """parameters: or what makes them when they are asked for: a list of commands is shown
        without them."""
        self.function = function
        self.help = help
        self.example = example
        self._own = parameters
        self._more = [*SHARED, *(WATCH if watched else ())]

    @property
    def parameters(self) -> list[Parameter]:
        own = self._own() if callable(self._own) else self._own
        return [*own, *self._more]


class Group:
    """Commands below a name, by subjects."""

    def __init__(self, help: str) -> None:
        self.help = help
        self.parameters: list[Parameter] = list(SHARED)
        self.commands: dict[str, Command] = {}
        self.subjects: dict[str, list[str]] = {}

    def add_command(self, command: Command, name: str, subject: str = "Commands") -> None:
        self.commands[name] = command
        self.subjects.setdefault(subject, []).append(name)


def sentence(help: str) -> str:
    """Return the first sentence of a help, on one line."""
    text = " ".join(help.split())
    end = text.find(". ")
    return text if end < 0 else text[: end + 1]
