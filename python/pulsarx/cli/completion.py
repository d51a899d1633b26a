"""Completion for bash, zsh and fish, in the forms that click's scripts for them read."""

from __future__ import annotations

import os
import sys

from pulsarx.cli.commands import COMMANDS
from pulsarx.cli.declared import Choice, File, Group, Path, sentence
from pulsarx.cli.words import Words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsarx.cli.declared import Parameter

    Item = tuple[str, str, str]  # what kind it is (plain, file), the word, and what it is for


def complete(shell: str) -> int:
    """Print what may stand in the place of the word that is being written. Returns the status."""
    words, begun = _given(shell)
    lines = []
    for kind, word, purpose in _items(words, begun):
        if shell == "zsh":
            # A colon ends the word where the script has an explanation to show, and only there.
            shown = word.replace(":", "\\:") if purpose else word
            lines.append(f"{kind}\n{shown}\n{purpose or '_'}")
        elif shell == "fish":
            lines.append(f"{kind},{word}\t{purpose}" if purpose else f"{kind},{word}")
        else:
            lines.append(f"{kind},{word}")
    if lines:
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()
    return 0


def _given(shell: str) -> tuple[list[str], str]:
    """The words behind the program's name that are written, and the begin of the next one."""
    words, place = _split(os.environ.get("COMP_WORDS", "")), os.environ.get("COMP_CWORD", "")
    if shell == "fish":  # which tells the word itself
        begun = (_split(place) or [""])[0]
        if begun and words[1:] and words[-1] == begun:
            words.pop()
        return words[1:], begun
    at = int(place) if place.isdecimal() else len(words)
    return words[1:at], words[at] if at < len(words) else ""


def _split(text: str) -> list[str]:
    if not any(each in text for each in "'\"\\"):
        return text.split()
    import shlex

    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    found = []
    try:
        found += list(lexer)
    except ValueError:  # a quote is open still
        found.append(lexer.token)
    return found


def _items(words: list[str], begun: str) -> Iterator[Item]:
    at = Words()
    if not at.take(words):
        return
    name, equals, value = begun.partition("=")
    if at.pending is not None:
        yield from _values(at.pending, begun)
    elif at.is_plain:
        yield "file", begun, ""
    elif begun.startswith("-") and equals and (found := at.option(name)):
        yield from _values(found[0], value)
    elif begun.startswith("-") and not at.is_literal:
        for each in at.parameters:
            for option in each.options:
                if option.startswith(begun):
                    yield "plain", option, sentence(each.help)
    elif at.names:
        for command in at.names:
            if command.startswith(begun):
                yield "plain", command, _purpose(at, command)
    else:
        arguments = [each for each in at.parameters if not each.is_option]
        for each in arguments[at.given : at.given + 1]:
            yield from _values(each, begun)


def _purpose(at: Words, name: str) -> str:
    if isinstance(at.at, Group):
        return sentence(at.at.commands[name].help)
    return COMMANDS[name][1]


def _values(parameter: Parameter, begun: str) -> Iterator[Item]:
    if isinstance(parameter.type, Choice):
        for each in parameter.type.choices:
            if each.startswith(begun):
                yield "plain", each, ""
    elif isinstance(parameter.type, File | Path) or parameter.role == "folder":
        yield "file", begun, ""
