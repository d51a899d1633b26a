"""A folder owned by another process, or by none, as `pulsarx console` serves it."""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.broker.requests.owner_request import ask_owner
from pulsarx.broker.verbs.table import VERBS, perform
from pulsarx.clock import system_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.client import Client
    from pulsarx.clock import Clock
    from pulsarx.rest.served_folder import PerSecond
    from pulsarx.rest.server_figures import LogCount


class FolderBeside:
    """See ServedFolder. Its owner is asked; while it has none, files are read, or it is owned for
    the moment of a request."""

    def __init__(self, path: str, visit: Callable[[], AbstractContextManager[Client]]) -> None:
        """visit: makes a client that is closed again after each use. FolderError: there is no
        folder."""
        self.place: str = os.path.realpath(path)
        self.client = visit
        self.clock: Clock = system_clock()
        self.is_open: bool = True
        self._lock = Lock()  # one read at a time, where there is no owner
        self._files: ReadOnlyBroker = ReadOnlyBroker(self.place)

    @property
    def broker(self) -> Broker:
        raise errors.OperationNotSupported(
            detail="this is answered in the process that owns the folder alone; ask `pulsarx serve`"
        )

    def owner(self) -> int | None:
        found = self._files.directory.owner()
        return None if found is None else found.pid

    def perform(self, verb: str, arguments: dict[str, Any]) -> Any:
        if verb not in VERBS or not VERBS[verb].reads:
            return ask_owner(self.place, verb, arguments)

        def read() -> Any:
            with self._lock:
                return perform(self._files, verb, arguments)

        return ask_owner(self.place, verb, arguments, known=read)

    def post(self, job: Callable[[], object]) -> None:
        job()

    def counters(self) -> dict[Any, tuple[int, ...]]:
        return {}  # what asks for rates is served by owners alone

    def figures(
        self,
        per_second: PerSecond,
        consumers: bool,
        sees: Callable[[str], bool] | None,
        log: LogCount,
    ) -> Iterator[bytes]:
        raise errors.OperationNotSupported(detail="/metrics is answered by `pulsarx serve`")

    def close(self) -> None:
        """Idempotent."""
        self.is_open = False
        self._files.close()
