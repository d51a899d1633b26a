"""A topic of a folder opened read-only: what a reader needs of it."""

from __future__ import annotations

from pulsarx._pycore.dispatch.dispatch_throttle import THROTTLE_EVENTS
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx.broker.ledgers.read_only_ledger import ReadOnlyLedger
from pulsarx.broker.topics.reader_cursor import ReaderCursor
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.catalogue.records import TopicRecord
    from pulsarx.broker.faces import FolderView
    from pulsarx.broker.schemas.registry import SchemaRegistry

# Of a subscription, since its owner opened it: None beside the owner.
_COUNTED_BY_OWNER = (
    "total_expired", "msg_rate_expired", "msg_out_counter", "bytes_out_counter",
    "filter_accepted_msg_count", "filter_rejected_msg_count", *THROTTLE_EVENTS,
)  # fmt: skip


class ReadOnlyTopic:
    """A topic as far as a reader needs it. Any thread may call."""

    is_partitioned = False

    def __init__(self, broker: FolderView, record: TopicRecord) -> None:
        self.broker = broker
        self.name: str = record.name
        self.topic_name: TopicName = TopicName.of(record.name)
        self.decompressed_size_max: int = broker.decompressed_size_max
        self.ledger: ReadOnlyLedger = ReadOnlyLedger(broker, record)
        self.tail: Any = self.ledger.tail
        self._reader_cursors = WeakList()

    @property
    def schemas(self) -> SchemaRegistry:
        """See SchemaRegistry."""
        return self.broker.schemas

    def is_idle(self) -> bool:
        """Whether it never had an entry; only the owner knows producers and consumers."""
        record = self.broker.catalogue.state.topics.get(self.name)
        removed = record is not None and record.removed_ledger_id
        return not removed and not self.ledger.entry_count()

    @property
    def is_gone(self) -> bool:
        """Whether its owner has deleted it, as far as it was read."""
        return self.ledger.record() is None

    def reader_cursor(
        self,
        schema: object,
        read_compacted: bool = False,
        decryption: object = None,
        selector: str = "",
    ) -> ReaderCursor:
        made = ReaderCursor(self, schema, read_compacted, decryption, selector)
        self._reader_cursors.add(made)
        return made

    def abandon(self) -> None:
        """In a forked child: refuse further calls."""
        for cursor in self._reader_cursors.members():
            cursor.abandon()

    def publisher_statistics(self) -> None:
        """None: only the owner knows."""

    def published_since_opened(self) -> tuple[None, None]:
        """Only the owner knows."""
        return None, None

    @property
    def rates(self) -> None:
        """None: only the owner knows."""

    def compaction_status(self) -> dict[str, str]:
        """Only the owner knows of a run: whether there is a result."""
        self.broker.refresh()
        status = "NOT_RUN" if self.ledger.compaction() is None else "SUCCESS"
        return {"status": status, "last_error": ""}

    def offload_status(self) -> dict[str, str]:
        """Only the owner knows of a run: whether a ledger is offloaded."""
        self.broker.refresh()
        offloaded = any(self.ledger.offloaded_ms(each) for each in self.ledger.ledgers())
        return {"status": "SUCCESS" if offloaded else "NOT_RUN", "last_error": ""}

    @property
    def held_by_leases(self) -> None:
        """None: only the owner knows."""

    @property
    def publish_rate_limited_times(self) -> None:
        """None: only the owner knows."""

    @property
    def offload_failed_ms(self) -> int:
        """0: only the owner knows."""
        return 0

    @property
    def compaction_failed_ms(self) -> int:
        """0: only the owner knows."""
        return 0

    @property
    def epoch(self) -> int | None:
        self.broker.refresh()
        record = self.broker.catalogue.state.topics.get(self.name)
        return None if record is None or record.epoch < 0 else record.epoch

    @property
    def deduplication_status(self) -> None:
        """None: only the owner knows its options."""

    def reader_statistics(self) -> dict[str, dict[str, Any]]:
        """Only the owner knows its own."""
        return {}

    def subscription_statistics(self) -> dict[str, dict[str, Any]]:
        """The statistics of the durable subscriptions, from their cursors' files; only the owner
        knows the others, the
        consumers, and what it counted: None."""
        from pulsarx.broker.subscriptions.cursor_view import cursor_statistics

        self.broker.refresh()
        record = self.ledger.record()
        subscriptions = {} if record is None else record.subscriptions
        return {
            name: {"type": each.type, "is_durable": True}
            | {"subscription_properties": dict(each.properties)}
            | cursor_statistics(self.broker, self.ledger, each)
            | dict.fromkeys(_COUNTED_BY_OWNER)
            for name, each in sorted(subscriptions.items())
        }
