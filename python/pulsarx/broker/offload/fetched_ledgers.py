"""The ledgers that this process has fetched from object stores: those it fetched last, the ones
that are being fetched, which whoever asks meanwhile waits for, and the next of a reader, fetched
ahead.

state of a fetch   holds                                      left by
ASKED              a job that will fetch it                   the job; a reader that needs it now
BEGUN              a thread that fetches                      the end of it, which all waiters get

Any thread but the main one, which a signal may interrupt. `forget` may come in each state: what is
fetched then reaches those who wait, and is not kept.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx._pycore.ground.locks import Event, Lock
from pulsarx.broker.offload.stored_object import Stopped
from pulsarx.ground.attempt import attempt
from pulsarx.ground.fork import at_fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.ledger.ledger_file import LedgerFile

    Key = tuple[str, int, str]  # path of the folder, ledger id, uuid
    # Gets a function that raises when nobody needs the ledger any more.
    Fetch = Callable[[Callable[[], None]], LedgerFile]

_KEPT_MAX = 4


class Unneeded(Stopped):
    """The folder was closed while a ledger was fetched ahead. Never leaves this package."""


class _Coming:
    """A fetch."""

    __slots__ = ("begun", "done", "file", "failure")

    def __init__(self) -> None:
        self.begun = False
        self.done = Event()
        self.file: LedgerFile | None = None
        self.failure: Exception | None = None


class FetchedLedgers:
    """The fetched ledgers of this process."""

    def __init__(self) -> None:
        self._kept: dict[Key, LedgerFile] = {}  # the last one last
        self.reset()

    def reset(self) -> None:
        """At the start, and in a forked child, which has no threads."""
        self._lock = Lock()  # of what is here
        self._coming: dict[Key, _Coming] = {}
        self._coming_ahead: _Coming | None = None  # the one that nobody waits for
        self._ahead = JobQueue("pulsarx-offload-ahead")

    def at_hand(self, key: Key) -> LedgerFile | None:
        """A ledger that was fetched not long ago."""
        with self._lock:
            return self._take(key)

    def _take(self, key: Key) -> LedgerFile | None:
        """The lock is held."""
        found = self._kept.pop(key, None)
        if found is not None:
            self._kept[key] = found
        return found

    def get(self, key: Key, fetch: Fetch) -> LedgerFile:
        """The ledger: at hand, being fetched, or fetched now. As fetch."""
        with self._lock:
            found = self._take(key)
            if found is not None:
                return found
            coming = self._coming.get(key)
            is_mine = coming is None or not coming.begun
            if coming is None:
                coming = self._coming[key] = _Coming()
            coming.begun = True
        if is_mine:
            self._fetch(key, coming, lambda: fetch(_needed))
        else:
            coming.done.wait()
        if coming.file is not None:
            return coming.file
        if coming.failure is None or isinstance(coming.failure, Unneeded):
            return self.get(key, fetch)  # it was dropped, but not by this reader's client
        raise coming.failure if is_mine else errors.again(coming.failure)

    def fetch_ahead(self, key: Key, fetch: Fetch) -> None:
        """Have it at hand soon, unless another one is being fetched so. A failure is left to the
        reader that comes to it."""
        with self._lock:
            if key in self._kept or key in self._coming or self._coming_ahead is not None:
                return
            coming = self._coming[key] = self._coming_ahead = _Coming()

        def check() -> None:
            if self._coming.get(key) is not coming:
                raise Unneeded

        def run() -> None:
            with self._lock:
                if coming.begun or self._coming.get(key) is not coming:
                    self._ends_ahead(coming)
                    return
                coming.begun = True
            self._fetch(key, coming, lambda: fetch(check))

        self._ahead.post(run)

    def _fetch(self, key: Key, coming: _Coming, fetch: Callable[[], LedgerFile]) -> None:
        def step() -> None:
            coming.file = fetch()

        try:
            coming.failure = attempt(step)
        finally:
            with self._lock:
                if self._coming.get(key) is coming:
                    del self._coming[key]
                    self._keep(key, coming.file)
                self._ends_ahead(coming)  # before its reader is woken, who asks for the next one
            coming.done.set()

    def _ends_ahead(self, coming: _Coming) -> None:
        """The lock is held."""
        if self._coming_ahead is coming:
            self._coming_ahead = None

    def _keep(self, key: Key, file: LedgerFile | None) -> None:
        """The lock is held."""
        if file is not None:
            self._kept[key] = file
            while len(self._kept) > _KEPT_MAX:
                del self._kept[next(iter(self._kept))]

    def forget(self, folder: object) -> None:
        """A client of the folder is closed: nothing of it is kept any more."""
        with self._lock:
            maps: tuple[dict[Key, Any], ...] = (self._kept, self._coming)
            for each in maps:
                for key in [key for key in each if key[0] == folder]:
                    del each[key]

    def settle(self) -> None:
        """For tests: until nothing is fetched ahead."""
        self._ahead.wait()


def _needed() -> None:
    """A reader waits for it."""


fetched_ledgers: FetchedLedgers = FetchedLedgers()
at_fork(__name__, fetched_ledgers.reset)
