"""Reads a Dockerfile: its stages and their steps, as far as deploy/Dockerfile needs it. What is not
understood is refused, so that no step is left out."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STEPS = ("RUN", "COPY", "WORKDIR", "ENV")
OF_CONTAINER = ("USER", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD")


class DockerfileError(Exception):
    """The file says what is not known here."""


@dataclass
class Stage:
    """A stage: what it begins with, its steps in their order, and what a container of it is."""

    base: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)
    container: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)  # at the end


def stages(path: Path) -> list[Stage]:
    found: list[Stage] = []
    for word, rest in instructions(path.read_text(encoding="utf-8")):
        if word == "FROM":
            parts = re.fullmatch(r"(\S+)(?: AS (\S+))?", rest)
            if parts is None:
                raise DockerfileError(f"{path}: FROM {rest} is not understood")
            found.append(Stage(parts[1], parts[2] or ""))
        elif not found:
            raise DockerfileError(f"{path}: {word} stands before the first FROM")
        elif word in STEPS:
            found[-1].steps.append((word, rest))
            if word == "ENV":
                found[-1].environment |= variables(rest)
        elif word in OF_CONTAINER:
            found[-1].container[word] = value_of(word, rest)
        else:
            raise DockerfileError(f"{path}: {word} {rest} is not understood")
    return found


def instructions(text: str) -> list[tuple[str, str]]:
    """Each instruction with what stands behind it, on one line; comments left out."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    found = []
    for line in joined.splitlines():
        if line.strip():
            word, _, rest = line.strip().partition(" ")
            found.append((word.upper(), re.sub(r"\s+", " ", rest).strip()))
    return found


def variables(text: str) -> dict[str, str]:
    """The variables of ENV NAME=VALUE..."""
    found = {}
    for each in shlex.split(text):
        name, equals, value = each.partition("=")
        if not equals:
            raise DockerfileError(f"ENV {text}: give NAME=VALUE")
        found[name] = value
    return found


def value_of(word: str, text: str) -> Any:
    """Lists of words, of CMD and ENTRYPOINT; a dict of HEALTHCHECK; else text."""
    if word == "HEALTHCHECK":
        options, _, command = text.partition("CMD ")
        given = dict(re.findall(r"--([a-z-]+)=(\S+)", options))
        return {**given, "command": words(word, command)}
    return words(word, text) if word in ("CMD", "ENTRYPOINT") else text


def words(word: str, text: str) -> list[str]:
    try:
        found: list[str] = json.loads(text)
    except ValueError:
        raise DockerfileError(
            f"{word} {text}: a JSON list is needed, as the image has no shell"
        ) from None
    return found


def ignored(path: Path) -> tuple[str, ...]:
    """The patterns of names that the context is without: of Dockerfile.dockerignore."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name = line.strip().removeprefix("**/")
            if "/" in name or "!" in name or not line.startswith("**/"):
                raise DockerfileError(f"{path}: {line} is not understood; give **/NAME")
            found.append(name)
    return tuple(found)
