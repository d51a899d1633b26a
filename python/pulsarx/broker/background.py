"""One thread that runs what must not hold up a caller: callbacks, seals. Started with the first
job, ended by close.

Any thread may call. Jobs run one after another in the order they came.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Background:
    """A thread with a queue. An exception of a job is logged; the thread goes on."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._jobs: deque[Callable[[], object]] = deque()
        self._thread: threading.Thread | None = None
        self._running = False
        self._closed = False

    def put(self, job: Callable[[], object]) -> None:
        """Run job soon, in the thread; after close, at once in the caller."""
        with self._changed:
            if not self._closed:
                self._jobs.append(job)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                    self._thread.start()
                self._changed.notify_all()
                return
        self._perform(job)

    def wait(self) -> None:
        """Return when every job put before has run. Called by a job itself: at once."""
        if threading.current_thread() is self._thread:
            return
        with self._changed:
            self._changed.wait_for(lambda: not self._jobs and not self._running)

    def close(self) -> None:
        """Run what is queued and end the thread."""
        self.wait()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._running = False
                self._changed.notify_all()
                while not self._jobs:
                    if self._closed:
                        return
                    self._changed.wait()
                job = self._jobs.popleft()
                self._running = True
            self._perform(job)
            del job  # what it holds must not live on while this thread sleeps

    def _perform(self, job: Callable[[], object]) -> None:
        try:
            job()
        except Exception:
            import logging

            logging.getLogger("pulsarx").exception("%s: a job failed", self._name)
