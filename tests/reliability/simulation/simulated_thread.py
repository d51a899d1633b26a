"""Runs histories in a thread of their own, in which the system is the simulated one."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable

import simulated_process as process


def in_simulation(work: Callable[[], None]) -> None:
    """Call work(), not in the main thread, where signals arrive. Garbage is collected between
    histories, by `work`: else finalizers would run at any moment of one."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            with process.simulation():
                work()
                gc.collect()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    was_enabled, before = gc.isenabled(), logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # owners and guests that are killed say much
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        thread.start()
        thread.join()
    finally:
        logging.disable(before)
        gc.unfreeze()
        if was_enabled:
            gc.enable()
    if failures:
        raise failures[0]
