from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from pulsarx._pycore.ledger.open_transactions import TransactionCore
from pulsarx._pycore.message.message_id import MessageId

class PartitionRouter:
    is_open: bool
    def __init__(
        self,
        topic: object,
        options: object,
        stays: bool,
        router: Callable[..., int] | None,
        turn: int,
    ) -> None: ...
    def next_turn(self) -> int: ...
    def join(self, found: list[Any], numbers: Iterable[int], made: list[Any]) -> None: ...
    def split(
        self, contents: list[Any], keys: Sequence[str | None], run_size: int
    ) -> list[tuple[int, list[int], list[Any], list[str | None]]]: ...
    @property
    def producers(self) -> list[Any]: ...
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
        *,
        transaction: TransactionCore | None = None,
    ) -> MessageId: ...
    def send_async(
        self,
        content: Any,
        callback: Callable[[Any, Any], object] | None,
        properties: dict[str, str] | None = None,
        partition_key: str | None = None,
        ordering_key: str | None = None,
        sequence_id: int | None = None,
        replication_clusters: list[str] | None = None,
        disable_replication: bool = False,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
        *,
        transaction: TransactionCore | None = None,
    ) -> None: ...
