"""The statistics of a running function."""

from __future__ import annotations

import traceback
from collections import deque
from typing import Any

from pulsarx._pycore.ground.locks import Lock

LATEST_EXCEPTIONS = 10


class Figures:
    """Counts for all instances of one function, since the runner started. Any thread may call."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._received = 0
        self._processed = 0
        self._user_exceptions = 0
        self._system_exceptions = 0
        self._milliseconds = 0
        self._last_invocation_ms: int | None = None
        self._metrics: dict[str, list[float]] = {}  # sum, count, least, greatest
        self._latest_user: deque[str] = deque(maxlen=LATEST_EXCEPTIONS)
        self._latest_system: deque[str] = deque(maxlen=LATEST_EXCEPTIONS)

    def received(self) -> None:
        with self._lock:
            self._received += 1

    def invoked(self, now_ms: int) -> None:
        with self._lock:
            self._last_invocation_ms = now_ms

    def processed(self, milliseconds: int) -> None:
        with self._lock:
            self._processed += 1
            self._milliseconds += milliseconds

    def user_exception(self, error: BaseException) -> None:
        with self._lock:
            self._user_exceptions += 1
            self._latest_user.append("".join(traceback.format_exception(error)))

    def system_exception(self, what: str) -> None:
        with self._lock:
            self._system_exceptions += 1
            self._latest_system.append(what)

    def observe(self, name: str, value: float) -> None:
        with self._lock:
            known = self._metrics.get(name)
            if known is None:
                self._metrics[name] = [value, 1, value, value]
            else:
                known[0] += value
                known[1] += 1
                known[2] = min(known[2], value)
                known[3] = max(known[3], value)

    def snapshot(self) -> dict[str, Any]:
        """Return the counts under the names of `pulsar-admin functions stats`."""
        with self._lock:
            average = self._milliseconds / self._processed if self._processed else None
            return {
                "receivedTotal": self._received,
                "processedSuccessfullyTotal": self._processed,
                "userExceptionsTotal": self._user_exceptions,
                "systemExceptionsTotal": self._system_exceptions,
                "avgProcessLatency": average,
                "lastInvocation": self._last_invocation_ms,
                "userMetrics": {
                    name: {"sum": found[0], "count": found[1], "min": found[2], "max": found[3]}
                    for name, found in self._metrics.items()
                },
                "latestUserExceptions": list(self._latest_user),
                "latestSystemExceptions": list(self._latest_system),
            }
