"""The threads in which a service performs the requests of its clients."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Any


class WorkThreads(Executor):
    """A ThreadPoolExecutor that goes when it is shut down, whoever has this one.

    Starlette's application is a cycle, and has one. Threads in a cycle run callbacks in Python
    where they are collected, in whatever call of the main thread, and what a signal handler raises
    there is lost.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._executor: ThreadPoolExecutor | None = ThreadPoolExecutor(threads, name)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """RuntimeError: it is shut down."""
        executor = self._executor
        if executor is None:
            raise RuntimeError("the service is closed")
        return executor.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Idempotent."""
        executor = self._executor
        if executor is not None:
            executor.shutdown(wait, cancel_futures=cancel_futures)
            self._executor = None
