"""Histories of sessions, each in a process of its own that may be killed: the program of a model.

python HISTORY.py FOLDER SEED SESSIONS STEPS DURABILITY [BUG]
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

WRONG, CLOSED = 3, 0  # how a session ends that was not killed


def run_session(
    kind: Callable[..., Any], folder: Path, seed: int, number: int, steps: int, durability: str
) -> int:
    """How it ended; negative: by a signal."""
    child = os.fork()
    if child == 0:
        status = WRONG
        try:
            kind(folder, seed, number, durability).run(steps)
            status = CLOSED
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_history(kind: Callable[..., Any], bugs: Mapping[str, Callable[[], None]]) -> None:
    """Run what the command line asks for. kind: a session, of folder, seed, number and durability.
    bugs: each by its name, planted for the whole history."""
    folder, seed, sessions, steps, durability, *bug = sys.argv[1:]
    if bug:
        bugs[bug[0]]()
    kills = 0
    for number in range(int(sessions)):
        ended = run_session(kind, Path(folder), int(seed), number, int(steps), durability)
        kills += ended == -signal.SIGKILL
        if ended not in (CLOSED, -signal.SIGKILL):
            with suppress(BrokenPipeError):
                print(f"seed {seed}, session {number}, {durability}: {ended}")
            sys.exit(1)
    with suppress(BrokenPipeError):
        print(f"{sessions} sessions, {kills} killed")
