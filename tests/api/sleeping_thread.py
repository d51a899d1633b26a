"""Waits until a thread sleeps, without guessing how long that takes."""

from __future__ import annotations

import os
import threading

QUIET_LOOKS = 50


def until_asleep(thread: threading.Thread) -> None:
    """Return when the thread sleeps in a call, or has ended.

    Asleep: the system switched away from it, and not again while we looked often. One that waits
    for the interpreter's lock asks for it every few milliseconds; every look gives the lock away.
    """
    path = f"/proc/self/task/{thread.native_id}/status"
    quiet, before = 0, ""
    while quiet < QUIET_LOOKS and thread.is_alive():
        try:
            with open(path) as file:
                text = file.read()
        except OSError:
            return
        os.sched_yield()
        switches = text[text.index("voluntary_ctxt") :]
        quiet = quiet + 1 if "(sleeping)" in text and switches == before else 0
        before = switches
