"""A folder in memory that is served over TCP."""

from __future__ import annotations

from typing import Any

import pulsarx
from pulsarx.clock import ManualClock
from pulsarx.server import BrokerService, serve


class Served:
    """A folder in memory that is served, by the clock of the test where there is one."""

    def __init__(
        self,
        clock: ManualClock | None,
        *,
        service: dict[str, Any] | None = None,
        durability: str = "os",
        **options: Any,
    ) -> None:
        """service: options of serve."""
        self.clock = clock
        self.client = pulsarx.Client("memory:", durability=durability, clock=clock, **options)
        self.service: BrokerService = serve(self.client, **{"port": 0, **(service or {})})
        self.network = self.service._network

    def cut(self) -> None:
        """End all connections, as a broken network would."""
        for each in list(self.network.connections):
            self.network.loop.call_soon_threadsafe(each.abort)

    def close(self) -> None:
        self.service.close()
        self.client.shutdown()
