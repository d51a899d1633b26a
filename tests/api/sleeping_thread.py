"""Waits until a thread sleeps, without guessing how long that takes."""

from __future__ import annotations

import os
import threading
import time

QUIET_LOOKS = 50
BUSY_LOOKS = 1000  # after so many it sleeps, whatever other threads do
# One that looks again every 50 ms by itself is never quiet for so many looks on a busy machine.
LONG_SECONDS = 2.0


def until_asleep(thread: threading.Thread) -> None:
    """Return when the thread sleeps in a call that no other thread is about to end, or has ended.

    Asleep: the system switched away from it, and not again while we looked often. One that waits
    for the interpreter's lock asks for it every few milliseconds; every look gives the lock away.
    One that waits for a mutex is not there yet: who holds it runs, waits for a processor or for
    the disk, so all others must be asleep too. A thread that computes all the time does not matter.
    """
    own, asked = threading.get_native_id(), thread.native_id
    quiet, before = 0, ""
    all_quiet, others_before = 0, None
    began = time.monotonic()
    while thread.is_alive() and quiet < BUSY_LOOKS:
        now = _state(asked)
        if now and time.monotonic() - began > LONG_SECONDS:
            return
        quiet = quiet + 1 if now and now == before else 0
        before = now
        if quiet >= QUIET_LOOKS:
            others = [
                _state(int(each))
                for each in os.listdir("/proc/self/task")
                if int(each) not in (own, asked)
            ]
            all_quiet = all_quiet + 1 if others == others_before and all(others) else 0
            others_before = others
            if all_quiet >= QUIET_LOOKS:
                return
        else:
            all_quiet, others_before = 0, None
        os.sched_yield()


def _state(native_id: int | None) -> str:
    """How often the system switched away from a thread that sleeps; "" of any other."""
    try:
        with open(f"/proc/self/task/{native_id}/status") as file:
            text = file.read()
    except OSError:
        return "gone"
    return text[text.index("voluntary_ctxt") :] if "(sleeping)" in text else ""
