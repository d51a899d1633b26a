"""Owners that die in the middle of an operation on files."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pulsarx
from pulsarx._pycore.ground import file_system
from pulsarx.testing import inspect


def dies_at(
    folder: Path,
    opened: Callable[[Path], pulsarx.Client],
    work: Callable[[pulsarx.Client], object],
    operation: str,
    call: int,
) -> bool:
    """An owner works on topic t, and dies at the call-th operation; False: it had no such call."""
    child = os.fork()
    if child == 0:
        status = 2
        try:
            client = opened(folder)
            client.admin.topics.stats("t")
            inspect(client).settle()
            file_system.faults_install()
            file_system.faults_add(operation, call, kind="stall")
            done: list[object] = []
            thread = threading.Thread(target=lambda: done.append(work(client)), daemon=True)
            thread.start()
            while thread.is_alive() and not file_system.faults_stalled():
                thread.join(0.001)
            status = 1 if file_system.faults_stalled() else 0 if done else 2
        finally:
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, 1), "the work failed"
    return status == 1
