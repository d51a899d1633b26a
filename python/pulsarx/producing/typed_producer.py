"""The calls that send, with the type of what they take. For type checkers: the calls themselves are
native and take anything that the schema encodes."""

from __future__ import annotations

from pulsarx.schema.schema import T, Typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import timedelta
    from typing import Any

    from pulsarx.message_id import MessageId

    class TypedProducer(Typed[T]):
        """A producer of values of one type; None is a message without a value."""

        def send(
            self,
            content: T | None,
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
            content: T | None,
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
            payloads: Iterable[T | None],
            *,
            keys: Sequence[str | None] | None = None,
            properties: Sequence[dict[str, str] | None] | None = None,
            event_timestamps: Sequence[int | None] | None = None,
        ) -> list[MessageId]: ...
else:
    TypedProducer = Typed
