"""A queue of passwords to be checked, with threads of its own.

Checking one takes a quarter of a second of a processor, on purpose. Where the threads did it that
do what all clients ask for, a few clients with wrong passwords would stop everybody.
"""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import Future
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx.access.work_threads import WorkThreads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.access.basic_users import BasicUsers
    from pulsarx.access.identity import Identity

WAITING_MAX = 256  # passwords
WAITING_OF_HOST_MAX = 32  # so that clients of one host cannot keep out those of others


class PasswordQueue:
    """Any thread may call."""

    def __init__(self, users: BasicUsers) -> None:
        self._users = users
        # Half of the processors: the others go on with the work of those who are known.
        threads = max(1, (os.cpu_count() or 1) // 2)
        self._executor = WorkThreads(threads, "pulsarx-passwords")
        self._lock = Lock()  # of what follows
        self._waiting: dict[bytes, Future[Identity]] = {}  # by what is checked
        self._hosts: Counter[str] = Counter()

    def identify(self, data: bytes, host: str) -> Identity | Future[Identity]:
        """data: `name:password`. host: the address of the client. The identity at once where the
        same name and password were right before; else a future, with what BasicUsers.verify says.
        ServiceUnitNotReady: too many wait."""
        known = self._users.remembered(data)
        if known is not None:
            return known
        key = self._users.digest(data)
        with self._lock:
            waiting = self._waiting.get(key)
            if waiting is not None:
                return waiting
            if len(self._waiting) >= WAITING_MAX or self._hosts[host] >= WAITING_OF_HOST_MAX:
                raise errors.ServiceUnitNotReady(detail="too many passwords wait to be checked")
            self._hosts[host] += 1
            try:
                made = self._executor.submit(self._users.verify, data)
            except BaseException:
                self._release(host)
                raise
            self._waiting[key] = made
        made.add_done_callback(partial(self._is_done, key, host))
        return made

    def _is_done(self, key: bytes, host: str, _: Future[Identity]) -> None:
        with self._lock:
            self._waiting.pop(key, None)
            self._release(host)

    def _release(self, host: str) -> None:
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]

    def close(self) -> None:
        """Check nothing more. Idempotent."""
        self._executor.shutdown(wait=False, cancel_futures=True)
