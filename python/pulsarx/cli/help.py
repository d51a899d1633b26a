"""The texts of `--help`, as wide as the terminal is, by the declarations of the commands."""

from __future__ import annotations

import os

from pulsarx.cli.commands import SUBJECTS
from pulsarx.cli.declared import Choice, Fraction, Group, Whole, sentence
from pulsarx.cli.words import HELP, Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulsarx.cli.declared import Command, Parameter

    Pairs = Sequence[tuple[str, str]]

_WIDTH = 80  # where there is no terminal
_WIDTH_MIN = 40
_TERM_MAX = 34  # columns; what explains a longer term stands below it
_METAVAR_MAX = 28
_ABOUT = """\
Look into a PulsarX folder and operate it, beside the process that owns it.

Commands and options are named as those of pulsar-admin and pulsar-client. On a terminal there are
tables; into a pipe or file go JSON lines."""
_EXAMPLES = (
    "pulsarx init events",
    "pulsarx --url events produce orders -m one,two",
    "pulsarx stats orders --url events",
    "PULSARX_URL=events pulsarx tail -f orders | jq .data",
)


def asked_for(arguments: list[str]) -> str | None:
    """The help that a command line asks for; None: it asks for none, or cannot be understood."""
    words = Words()
    if not words.take(arguments) or not words.is_help:
        return None
    return help_of(words.at, " ".join(("pulsarx", *words.path)))


def help_of(at: Group | Command | None, path: str) -> str:
    """The help of a command or group; None: of the command line. path: its name, and those that it
    stands below."""
    width = _width()
    parameters = Words().parameters if at is None else [*at.parameters, HELP]
    parts = [_wrapped(_usage(at, path, parameters), width, "       ")]
    parts += [
        _wrapped(" ".join(each.split()), width)
        for each in (_ABOUT if at is None else at.help).split("\n\n")
    ]
    options = [_described(each, width) for each in parameters if each.is_option]
    if at is None or isinstance(at, Group):
        commands = _commands(at)
        names = [name for pairs in commands.values() for name, _ in pairs]
        parts += [f"{each}:\n{_pairs(pairs, width, names)}" for each, pairs in commands.items()]
    parts.append(f"Options:\n{_pairs(options, width, [term for term, _ in options])}")
    if at is None:
        parts.append("\n".join(("Examples:", *(f"  {each}" for each in _EXAMPLES))))
    elif not isinstance(at, Group):
        parts.append(f"Example:\n  {at.example}")
    return "\n\n".join(parts) + "\n"


def _width() -> int:
    text = os.environ.get("COLUMNS", "")
    if text.isdecimal() and int(text):
        return max(int(text), _WIDTH_MIN)
    try:
        return max(os.get_terminal_size(1).columns or _WIDTH, _WIDTH_MIN)
    except OSError:
        return _WIDTH


def _usage(at: Group | Command | None, path: str, parameters: Iterable[Parameter]) -> str:
    rest = "COMMAND [ARGUMENT]..."
    if at is not None and not isinstance(at, Group):
        names = [
            (each.metavar if each.metavar != each.type.metavar else each.name.upper(), each)
            for each in parameters
            if not each.is_option
        ]
        rest = " ".join(name if each.required else f"[{name}]" for name, each in names)
    return f"Usage: {path} [OPTIONS] {rest}".rstrip()


def _commands(at: Group | None) -> dict[str, list[tuple[str, str]]]:
    """The commands by subjects, each with its sentence."""
    if at is None:
        return {
            subject: [(name, purpose) for name, (_, purpose) in commands.items()]
            for subject, commands in SUBJECTS.items()
        }
    return {
        subject: [(name, sentence(at.commands[name].help)) for name in names]
        for subject, names in at.subjects.items()
    }


def _described(parameter: Parameter, width: int) -> tuple[str, str]:
    """An option with what it takes, and what it is for."""
    term, more = ", ".join(parameter.options), []
    if not parameter.is_flag:
        metavar, choices = parameter.metavar, parameter.type
        room = min(_METAVAR_MAX, width - len(term) - 3)
        if isinstance(choices, Choice) and len(metavar) > room:
            metavar = "WORD"
            more.append(f"one of {', '.join(choices.choices)}")
        term += f" {metavar}"
    if isinstance(parameter.type, Whole | Fraction) and parameter.type.min is not None:
        more.append(f"from {parameter.type.min}")
    if isinstance(parameter.type, Whole) and parameter.type.max is not None:
        more.append(f"to {parameter.type.max}")
    if parameter.multiple:
        more.append("may be given more than once")
    if parameter.show_default:
        more.append(f"default: {parameter.default}")
    if parameter.required:
        more.append("required")
    return term, f"{parameter.help}  [{'; '.join(more)}]" if more else parameter.help


# Text ---------------------------------------------------------------------------------------------


def _pairs(pairs: Pairs, width: int, terms: Iterable[str]) -> str:
    """Terms, and what explains each beside it, in the column that suits all the terms. Terms are
    never broken."""
    most = min(_TERM_MAX, width // 2)
    column = 4 + max((len(term) for term in terms if len(term) <= most), default=0)
    lines = []
    for term, text in pairs:
        begin = f"  {term}"
        if len(term) > most:
            lines.append(begin)
            begin = ""
        lines.append(_wrapped(text, width, " " * column, begin.ljust(column)))
    return "\n".join(lines)


def _wrapped(text: str, width: int, indent: str = "", begin: str = "") -> str:
    """Lines of a text, as long as words allow. indent: of all lines but the first, which begins
    with begin."""
    lines, now = [], begin
    empty = True
    for word in text.split():
        if not empty and len(now) + 1 + len(word) > width:
            lines.append(now)
            now, empty = indent, True
        now += word if empty else f" {word}"
        empty = False
    return "\n".join((*lines, now.rstrip()))
