"""Locks, conditions and events of the library are those of the `locks` of pycore, and its threads
those of `threads`: gevent replaces the ones of the standard library."""

from __future__ import annotations

import re

import pytest
from source_files import LIBRARY, files, module_name, without_strings

REPLACED = re.compile(
    r"\bthreading\.(?:Lock|RLock|Condition|Event|Semaphore|BoundedSemaphore|Timer|Barrier|Thread)\b"
    r"|\b_thread\.(?:allocate_lock|RLock)\b|from threading import|\btime\.sleep\b"
)
PERMITTED = {
    "pulsarx.cli.perf": {"threading.Thread", "threading.Event"},  # a program
    "pulsarx.cluster.cluster_producer": {"threading.BoundedSemaphore"},  # the official client's
    "pulsarx._pycore.ground.threads": {"threading.Thread"},
}


def replaced(text: str) -> set[str]:
    return set(REPLACED.findall(without_strings(text)))


@pytest.mark.parametrize("line", ["self._lock = threading.Lock()", "from threading import RLock"])
def test_locks_that_gevent_replaces_are_found(line: str) -> None:
    assert replaced(line)


def test_nothing_uses_locks_that_gevent_replaces() -> None:
    for path in files(LIBRARY, {".py", ".pyx"}):
        found = replaced(path.read_text()) - PERMITTED.get(module_name(path), set())
        assert not found, f"{path} uses {found}"
