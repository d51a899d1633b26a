from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from pulsarx._pycore.ledger.ledger_tail import LedgerTail
from pulsarx._pycore.message.message_id import MessageId

class ProducerArrow:
    def __init__(
        self,
        topic: object,
        tail: LedgerTail,
        options: object,
        name: str,
        clock: object,
        completions: object,
        compress: Callable[[int, bytes], bytes],
        durability: int,
        message_size_max: int,
    ) -> None: ...
    def send(
        self,
        content: Any,
        properties: dict[str, str] | None = None,
        partition_key: str | None = None,
        ordering_key: str | None = None,
        sequence_id: int | None = None,
        replication_clusters: list[str] | None = None,
        disable_replication: bool = False,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
    ) -> MessageId: ...
    def send_async(
        self,
        content: Any,
        callback: Callable[[Any, MessageId | None], object] | None,
        properties: dict[str, str] | None = None,
        partition_key: str | None = None,
        ordering_key: str | None = None,
        sequence_id: int | None = None,
        replication_clusters: list[str] | None = None,
        disable_replication: bool = False,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
    ) -> None: ...
    def send_many(
        self,
        payloads: Iterable[Any],
        *,
        keys: Sequence[str | None] | None = None,
        properties: Sequence[dict[str, str] | None] | None = None,
        event_timestamps: Sequence[int | None] | None = None,
    ) -> list[MessageId]: ...
    def send_arrow(
        self,
        data: Any,
        value: str = "value",
        *,
        key: str | None = None,
        properties: str | None = None,
        event_time: str | None = None,
    ) -> MessageId | None: ...
    def flush(self) -> None: ...
    def flush_pending(self) -> Exception | None: ...
    def batch_due(self) -> None: ...
    def last_sequence_id(self) -> int: ...
    def shut(self) -> None: ...
    def abandon(self) -> None: ...
    def limit_pending(self, message_count: int) -> None: ...
    @property
    def entry_count(self) -> int: ...
    @property
    def is_open(self) -> bool: ...

def send_arrow_routed(
    producers: Sequence[ProducerArrow],
    choose: Callable[[str | None], int],
    run_rows: int,
    data: Any,
    value: str,
    key: str | None,
    properties: str | None,
    event_time: str | None,
) -> MessageId | None: ...
