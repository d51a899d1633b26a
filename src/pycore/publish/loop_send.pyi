from asyncio import Future
from collections.abc import Callable
from typing import Any

class LoopSender:
    """The sends of one producer that coroutines wait for, in whatever loops."""

    def __init__(
        self, send_async: Callable[..., Any], send_open: Callable[[], None] | None
    ) -> None: ...
    def send(
        self,
        content: Any,
        properties: Any,
        partition_key: Any,
        ordering_key: Any,
        sequence_id: Any,
        replication_clusters: Any,
        disable_replication: Any,
        event_timestamp: Any,
        deliver_at: Any,
        deliver_after: Any,
        transaction: Any = None,
    ) -> Future[Any]: ...
