"""The processes that a driver of Spark has begun, whose Pythons are those of prepared_python.

role      what it is
worker    a Python that does tasks
daemon    the Python that forks them
planner   a Python that plans, or commits, for format("pulsarx") beside the driver, or its daemon
source    the Python that the source of a stream lives in
executor  a Java that does tasks, with all its Pythons
"""

from __future__ import annotations

import os
from pathlib import Path

TASKS = "pyspark.worker"
DAEMON = "pyspark.daemon"
CLIENT = "for "  # begins the name of what a client of prepared_python has asked for
INIT = 1


class SparkProcesses:
    """Of one driver: the Python whose child is the Java of its session. It has to look often: what
    is forked by a daemon that is killed lives on, and is known by the daemon that was seen."""

    def __init__(self, driver: int) -> None:
        self._driver = driver
        self._modules: dict[int, list[str]] = {}  # of Pythons, by the client that has asked

    def look(self) -> dict[str, list[int]]:
        """Those that live, by role."""
        found: dict[str, list[int]] = {}
        for java in children(self._driver):
            self._ask(java, found)
        for process, client, is_forked, runs in _asked_for():
            if client in self._modules:
                role = _role(self._modules[client], is_forked)
                found.setdefault(role, []).append(process)
                if role == "planner" and runs:
                    found.setdefault("planning", []).append(process)
        return found

    def _ask(self, java: int, found: dict[str, list[int]]) -> None:
        for child in children(java):
            command = _command(child)
            if "-m" in command:
                self._modules[child] = command[command.index("-m") + 1 :]
            elif Path(command[0]).name == "java":
                found.setdefault("executor", []).append(child)
                self._ask(child, found)


def _asked_for() -> list[tuple[int, int, bool, bool]]:
    """Processes of all clients, whether a daemon has forked them, and whether they run now."""
    names = {}
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            name = path.read_text()
        except OSError:
            continue
        if name.startswith(CLIENT):
            names[int(path.parent.name)] = int(name.removeprefix(CLIENT))
    found = []
    for process, client in names.items():
        try:
            stat = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if stat[0] != "Z":
            is_forked = int(stat[1]) == INIT or int(stat[1]) in names
            found.append((process, client, is_forked, stat[0] == "R"))
    return found


def _role(modules: list[str], is_forked: bool) -> str:
    module = modules[1] if modules[0] == DAEMON else modules[0]
    if module == TASKS:
        return "worker" if is_forked or modules[0] != DAEMON else "daemon"
    return "source" if ".streaming." in module else "planner"


def children(process: int) -> list[int]:
    """Of all its threads; none of one that is gone."""
    found: list[int] = []
    try:
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:
        return found
    for thread in threads:
        try:
            text = Path(f"/proc/{process}/task/{thread}/children").read_text()
        except OSError:
            continue
        found += map(int, text.split())
    return found


def _command(process: int) -> list[str]:
    try:
        return os.fsdecode(Path(f"/proc/{process}/cmdline").read_bytes()).split("\0")
    except OSError:
        return [""]
