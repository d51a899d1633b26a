"""A folder that is served by the process that owns it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from weakref import ref

from pulsarx import errors
from pulsarx.broker.verbs.table import perform
from pulsarx.rest.metrics import Figures, counters, pause, rendered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.client import Client
    from pulsarx.clock import Clock
    from pulsarx.rest.served_folder import PerSecond
    from pulsarx.rest.server_figures import LogCount


class OwnedFolder:
    """See ServedFolder. It does not keep the client."""

    def __init__(self, broker: Broker, client: Client) -> None:
        self.broker = broker
        self.clock: Clock = broker.runtime.clock
        self._client = ref(client)

    @property
    def is_open(self) -> bool:
        return self.broker.state.is_open

    @property
    def place(self) -> str:
        return self.broker.name

    def owner(self) -> int | None:
        return os.getpid()

    def perform(self, verb: str, arguments: dict[str, Any]) -> Any:
        return perform(self.broker, verb, arguments)

    def post(self, job: Callable[[], object]) -> None:
        self.broker.runtime.background.post(job)

    def counters(self) -> dict[Any, tuple[int, ...]]:
        return counters(self.broker, pause)

    def figures(
        self,
        per_second: PerSecond,
        consumers: bool,
        sees: Callable[[str], bool] | None,
        log: LogCount,
    ) -> Iterator[bytes]:
        found = Figures(
            self.broker, per_second, consumers=consumers, pause=pause, sees=sees, log=log
        )
        found.gather()
        yield from rendered(found, pause)

    @contextmanager
    def client(self) -> Iterator[Client]:
        found = self._client()
        if found is None:
            raise errors.AlreadyClosed(detail="the client that serves this folder is closed")
        yield found
