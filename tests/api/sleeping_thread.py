"""Waits until a thread sleeps, without guessing how long that takes."""

from __future__ import annotations

import ctypes
import os
import platform
import threading
import time

# The system call of who waits for a lock; unknown elsewhere, where more looks are taken.
FUTEX = {"x86_64": b"202", "aarch64": b"98"}.get(platform.machine())
# Of the interpreter, whose own lock lies there, and no other one.
RUNTIME = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
RUNTIME_SIZE = 1 << 20
LOOKS, BLIND_LOOKS = 1, 50
# One that computes all the time keeps no other from being taken for asleep.
BUSY_LOOKS = 1000
LONG_SECONDS = 2.0  # of the processors, of which a busy machine gives few


def until_asleep(thread: threading.Thread) -> None:
    """Return when the thread sleeps in a call that no other thread is about to end, or has ended.

    So it is when all threads but the caller's sleep at one moment, and none for the interpreter's
    lock: they do when none switched between the end of one look at all and the begin of the next.
    """
    asked = thread.native_id
    quiet, before = 0, b""
    all_quiet, all_before = 0, [b""]
    began = time.process_time()
    wanted = BLIND_LOOKS if FUTEX is None or not _wait(threading.get_native_id()) else LOOKS
    while thread.is_alive() and quiet < BUSY_LOOKS:
        now = _state(asked)
        if now and time.process_time() - began > LONG_SECONDS:
            return
        quiet = quiet + 1 if now and now == before else 0
        before = now
        all_now = _all_states() if now else [b""]
        all_quiet = all_quiet + 1 if all_now == all_before and all(all_now) else 0
        if all_quiet >= wanted:
            return
        all_before = all_now
        os.sched_yield()


def _all_states() -> list[bytes]:
    own = threading.get_native_id()
    return [_state(each) for each in sorted(map(int, os.listdir("/proc/self/task"))) if each != own]


def _state(native_id: int | None) -> bytes:
    """How often the system switched away from a thread that sleeps, and in what; b"" of any other,
    and of one that waits for the interpreter's lock."""
    text = _read(f"/proc/self/task/{native_id}/status")
    if text is None:
        return b"gone"
    wait = _wait(native_id)
    if b"(sleeping)" not in text or wait == b"running":
        return b""
    words = wait.split()
    if words[:1] == [FUTEX] and 0 <= int(words[1], 16) - RUNTIME < RUNTIME_SIZE:
        return b""
    return text[text.index(b"voluntary_ctxt") :] + wait


def _wait(native_id: int | None) -> bytes:
    """The system call that a thread is in, with its arguments; b"": that is not told here."""
    try:
        return (_read(f"/proc/self/task/{native_id}/syscall") or b"").rstrip()
    except PermissionError:
        return b""


def _read(path: str) -> bytes | None:
    """None: there is no such thread any more."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        return os.read(file, 8192)
    except ProcessLookupError:
        return None
    finally:
        os.close(file)
