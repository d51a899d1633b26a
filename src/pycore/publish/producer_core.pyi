from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from pulsarx._pycore.ground.clock_core import ClockCore
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx._pycore.ground.rate_limit import PublishMeter, RateLimit
from pulsarx._pycore.message.message_id import MessageId
from pulsarx._pycore.publish.entry_publisher import EntryPublisher
from pulsarx._pycore.publish.producer_sequences import ProducerSequences

class ProducerCore:
    def __init__(
        self,
        publisher: EntryPublisher,
        options: object,
        name: str,
        topic_name: str,
        clock: ClockCore,
        compress: Callable[[int, bytes], bytes],
        message_size_max: int,
        background: JobQueue,
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
        *,
        transaction: Any = None,
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
        transaction: Any = None,
    ) -> None: ...
    def encrypt_by(self, encrypt: Callable[[bytes], tuple[bytes, bytes]]) -> None: ...
    def say_before_chunks(self, call: Callable[[], object]) -> None: ...
    def chunked_message_rate(self) -> float: ...
    def encode_by(self, schema: object, is_bytes: bool, version: bytes | None) -> None: ...
    def send_many(
        self,
        payloads: Iterable[Any],
        *,
        keys: Sequence[str | None] | None = None,
        properties: Sequence[dict[str, str] | None] | None = None,
        event_timestamps: Sequence[int | None] | None = None,
        transaction: Any = None,
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
    def send_open(self) -> None: ...
    def flush(self) -> None: ...
    def batch_due(self) -> None: ...
    def last_sequence_id(self) -> int: ...
    def shut(self) -> None: ...
    def deduplicate(
        self,
        sequences: ProducerSequences | None,
        catch_up: Callable[[], object] | None = None,
        resume: bool = False,
    ) -> None: ...
    def resume_after(self, sequence_id: int) -> None: ...
    def lift_own_ids_above(self, sequence_id: int, begin: bool = False) -> bool: ...
    def fence(self, reason: str, kind: type[Exception] = ...) -> None: ...
    def hold(self, reason: str) -> None: ...
    def release(self) -> None: ...
    def limit_rate(self, rate: RateLimit | None, meter: PublishMeter | None) -> None: ...
    def limit_delay(self, delay_max_ms: int) -> None: ...
    def abandon(self) -> None: ...
    def limit_pending(self, message_count: int) -> None: ...
    @property
    def is_forgotten(self) -> bool: ...
    @property
    def publisher(self) -> EntryPublisher: ...
    @property
    def entry_count(self) -> int: ...
    def require_open(self) -> None: ...
    @property
    def is_forked(self) -> bool: ...
    @property
    def is_open(self) -> bool: ...
    @property
    def topic_name(self) -> str: ...
