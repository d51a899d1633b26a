"""Closes at the end of the process whatever is open, behind the hooks of all others.

Hooks of `atexit` run in the reverse of the order they were registered in, and many are registered
before pulsarx is imported: `logging.shutdown` always, which has handlers flush what they keep. So
no hook closes anything. The interpreter lets go of its hooks when all of them have run, while every
thread still lives; what it alone refers to, `_Ending`, ends then, and takes the steps.

A child of multiprocessing that was forked ends by `os._exit`, without hooks. It has finalizers of
its own instead (`multiprocessing.util.Finalize`), of which the steps are the last one.
"""

from __future__ import annotations

import atexit
import os
import sys

from pulsarx._pycore.ground.threads import await_beginnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_PACKAGES = ("multiprocessing", "billiard")  # the second one is celery's
_LAST = -(10**9)  # the priority of a finalizer behind those of others

_steps: list[Callable[[], object]] = []
_ending: list[int] = []  # that the interpreter has an _Ending
_awaited: set[tuple[str, int]] = set()  # packages, and the children of them that end by os._exit


class _Ending:
    """The steps, where all hooks have run. The interpreter alone refers to it."""

    def __init__(self) -> None:
        self._has_begun = False

    def __call__(self) -> None:
        """Run as an exit hook; hooks that follow may use clients."""
        self._has_begun = True
        await_beginnings()  # threads that they start are awaited, too

    def __del__(self) -> None:
        _ending.clear()  # `atexit._clear`, as a child of multiprocessing does, is no end
        if self._has_begun:
            take_steps()


def at_end(step: Callable[[], object]) -> None:
    """Take a step when the process ends, before those that were named earlier."""
    _steps.append(step)


def await_end() -> None:
    """Have the steps taken at the end of this process. Called when something is opened that they
    close: in a forked child, too."""
    if not _ending:
        _ending.append(os.getpid())
        atexit.register(_Ending())
    for package in _PACKAGES:
        if f"{package}.util" in sys.modules:
            _await_end_of_child(package)


def take_steps() -> None:
    """Close what is open. Raises the first failure, when all steps were tried."""
    failure: BaseException | None = None
    for step in reversed(_steps):
        try:
            step()
        except BaseException as error:
            failure = failure or error
    if failure is not None:
        raise failure


def _await_end_of_child(package: str) -> None:
    """Have the steps taken at the end of this process too, if it is a child that ends by
    os._exit."""
    this = (package, os.getpid())
    process: Any = sys.modules[f"{package}.process"].current_process()
    if this in _awaited or getattr(process, "_parent_pid", None) is None:
        return
    method = getattr(process, "_start_method", None) or sys.modules[package].get_start_method()
    if method != "spawn":  # which ends as every program does
        _awaited.add(this)
        finalizer = sys.modules[f"{package}.util"].Finalize
        finalizer(None, _take_steps_in_child, exitpriority=_LAST)


def _take_steps_in_child() -> None:
    # What the child would do next: its threads that are none of the background may be sending.
    import threading

    threading._shutdown()  # type: ignore[attr-defined]
    take_steps()


await_end()
