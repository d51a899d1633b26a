from asyncio import Future
from collections.abc import Callable
from typing import Any

def begin_send(
    send_async: Callable[..., Any],
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
) -> Future[Any]:
    """Send one message; the future, of the loop that runs here, gets its MessageId."""
