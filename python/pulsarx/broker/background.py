"""A thread that runs what must not hold up a caller: callbacks in one, seals and trims in another.

Any thread may call, a finalizer too. Jobs run one after another in the order they came.
"""

from __future__ import annotations

import threading
from collections import deque
from queue import SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Background:
    """A thread with a queue, started with the first job. An exception of a job is logged; the
    thread goes on. After close, and in a thread of this kind at its end, jobs run in the caller."""

    def __init__(self, name: str) -> None:
        self._name = name
        # Its put may be called again by a finalizer in the middle of a put.
        self._jobs: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._in_caller = threading.local()

    @property
    def closed(self) -> bool:
        return self._closed

    def put(self, job: Callable[[], object]) -> None:
        """Run job soon, in the thread; after close, at once in the caller, or behind the job that
        puts it."""
        if self._closed:
            self._perform_here(job)
            return
        self._jobs.put(job)
        if self._thread is None:
            self._start()

    def _start(self) -> bool:
        """Whether there is a thread now. No more threads, or the interpreter leaves: jobs wait for
        the next call; run in this caller, one might want what that has locked."""
        with self._lock:
            if self._thread is None:
                # Set before it starts: a finalizer that puts meanwhile must not start another.
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:
                    self._thread = None
                    return False
            return True

    def wait(self) -> None:
        """Return when every job put before has run. Called by a job itself: at once."""
        thread = self._thread
        if self._closed or threading.current_thread() is thread:
            return
        if thread is None and self._jobs.empty():
            return
        if not self._start():
            self._run_here()
            return
        done = threading.Event()
        self._jobs.put(done.set)
        done.wait()

    def close(self) -> None:
        """Run what is queued and end the thread."""
        with self._lock:
            thread = self._thread
            if self._closed:
                return
            self._closed = True
        if thread is not None and thread is not threading.current_thread():
            self._jobs.put(None)
            thread.join()
        self._run_here()  # what came while it ended

    def _run_here(self) -> None:
        while not self._jobs.empty():
            job = self._jobs.get()
            if job is not None:
                self._perform_here(job)

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            if job is None:
                return
            self._perform(job)
            del job  # what it refers to must not live on while this thread sleeps
            if self._closed and self._jobs.empty():
                return

    def _perform_here(self, job: Callable[[], object]) -> None:
        """A job that puts the next and so on must not end in a recursion that is too deep."""
        waiting = getattr(self._in_caller, "waiting", None)
        if waiting is not None:
            waiting.append(job)
            return
        waiting = self._in_caller.waiting = deque((job,))
        try:
            while waiting:
                self._perform(waiting.popleft())
        finally:
            self._in_caller.waiting = None

    def _perform(self, job: Callable[[], object]) -> None:
        try:
            job()
        except Exception:
            import logging

            logging.getLogger("pulsarx").exception("%s: a job failed", self._name)
