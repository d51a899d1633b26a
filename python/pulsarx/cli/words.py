"""Follows the words of a command line by the declarations alone: which command they name, and what
may come next. For help and completion; a line that is run is read by click."""

from __future__ import annotations

from pulsarx.cli.commands import COMMANDS, loaded
from pulsarx.cli.declared import SHARED, Group, Parameter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsarx.cli.declared import Command

HELP = Parameter(("-h", "--help"), is_flag=True, help="Show this help.")
VERSION = Parameter(("--version",), is_flag=True, help="Show the version.")


class Words:
    """The command that words name, and what is known behind them. One thread."""

    def __init__(self) -> None:
        self.path: list[str] = []  # the names of commands
        self.at: Group | Command | None = None  # None: at no command yet, or see is_plain
        self.is_plain: bool = False  # the command reads its own arguments
        self.is_help: bool = False
        self.pending: Parameter | None = None  # the option that the next word is the value of
        self.given: int = 0  # arguments
        self.is_literal: bool = False  # behind --

    @property
    def parameters(self) -> list[Parameter]:
        if self.at is None:
            return [] if self.is_plain else [*SHARED, VERSION, HELP]
        return [*self.at.parameters, HELP]

    @property
    def names(self) -> list[str]:
        """The commands that may come next."""
        if self.is_plain:
            return []
        if self.at is None:
            return list(COMMANDS)
        return list(self.at.commands) if isinstance(self.at, Group) else []

    def _enter(self, name: str) -> bool:
        """False: there is no such command."""
        if name not in self.names:
            return False
        self.path.append(name)
        if isinstance(self.at, Group):
            self.at = self.at.commands[name]
        else:
            place = COMMANDS[name][0]
            self.is_plain = ":" not in place
            self.at = None if self.is_plain else loaded(place)
        return True

    def option(self, word: str) -> tuple[Parameter, bool] | None:
        """Find the option of a word, and whether the word has its value; None: there is none."""
        for each in self.parameters:
            if word in each.options:
                return each, each.is_flag
        name, equals, _ = word.partition("=")
        for each in self.parameters:
            for option in each.options:
                if equals and option == name:
                    return each, True
                if len(option) == 2 and word.startswith(option) and not word.startswith("--"):
                    return each, True
        return None

    def take(self, words: Iterable[str]) -> bool:
        """Follow the words up to one that asks for help. False: one cannot be understood."""
        for word in words:
            if self.pending is not None:
                self.pending = None
            elif self.is_plain:
                continue
            elif word == "--":
                self.is_literal = True
            elif len(word) > 1 and word.startswith("-") and not self.is_literal:
                found = self.option(word)
                if found is None:
                    return False
                if found[0].names == HELP.names:
                    self.is_help = True
                    return True
                if not found[1]:
                    self.pending = found[0]
            elif self.names:
                if not self._enter(word):
                    return False
            else:
                self.given += 1
        return True
