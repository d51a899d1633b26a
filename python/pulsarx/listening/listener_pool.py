"""The threads of a client that run what its users gave it: listeners, futures, consumer events.

A thread sleeps until a job is posted; posting takes no lock, so it is allowed with a mutex held.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Job = Callable[[], object]


class ListenerPool:
    """At most so many daemon threads, started one by one as consumers come. Any thread may call."""

    def __init__(self, size: int) -> None:
        self._size = max(size, 1)
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._started = 0
        self._closed = False

    def grow(self) -> None:
        """Another consumer will post jobs: one more thread, up to the size."""
        with self._lock:
            if self._closed or self._started == self._size:
                return
            self._started += 1
            name = f"pulsarx-listener-{self._started}"
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def post(self, job: Job) -> None:
        """Run job in a thread of the pool; whatever mutex the caller holds."""
        self._jobs.put(job)

    def is_wanted(self) -> bool:
        """Whether a job waits for a thread."""
        return not self._jobs.empty()

    def close(self) -> None:
        """End the threads when what is posted has run; does not wait for them."""
        with self._lock:
            self._closed = True
            for _ in range(self._started):
                self._jobs.put(None)

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            try:
                job()
            except BaseException:
                log_exception("a job of the listener threads failed")
            del job  # what it refers to must not live on while this thread sleeps


class SerialWork:
    """A step that runs in the pool whenever it is due: never twice at a time, never forgotten."""

    __slots__ = ("_due", "_pool", "_step", "_token")

    def __init__(self, pool: ListenerPool, step: Callable[[], bool]) -> None:
        """step: does some work and says whether there is more."""
        self._pool = pool
        self._step = step
        self._due = False
        # Who pops the token runs the step, an atomic decision without a lock.
        self._token = [None]

    def due(self) -> None:
        """There may be something to do. In whatever thread, with whatever mutex held."""
        self._due = True
        try:
            self._token.pop()
        except IndexError:
            return  # it runs, and looks again before it ends
        self._pool.post(self._run)

    def _run(self) -> None:
        self._due = False
        more = False
        try:
            more = self._step()
        except BaseException:
            log_exception("a consumer's step in the listener threads failed")
        if more:
            self._pool.post(self._run)  # behind the jobs of others
            return
        self._token.append(None)
        if self._due:
            self.due()


def log_exception(text: str, *arguments: object) -> None:
    """With the traceback of what is being handled."""
    import logging

    logging.getLogger("pulsarx").error(text, *arguments, exc_info=True)
