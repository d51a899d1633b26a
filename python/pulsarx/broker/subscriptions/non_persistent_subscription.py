"""A subscription of a non-persistent topic: it lasts as long as it has consumers, and has what is
in their queues."""

from __future__ import annotations

from pulsarx._pycore.cursor.ack_tracker import AckTracker
from pulsarx._pycore.dispatch.hash_range_selector import HashRangeSelector
from pulsarx._pycore.dispatch.non_persistent_dispatcher import (
    NonPersistentDispatcher,
    SubscriptionTarget,
)
from pulsarx.broker.subscriptions.subscription import Subscription

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from pulsarx._pycore.dispatch.entry_sink import Dispatcher
    from pulsarx.broker.faces import NonPersistentHost
    from pulsarx.broker.ledgers.ledger_list import Position

ALL_LEDGERS = 1 << 63  # greater than every ledger id


class NonPersistentSubscription(Subscription):
    """Any thread may call; topic.lock orders attaching and leaving."""

    __slots__ = ("target",)

    def __init__(self, topic: NonPersistentHost, name: str) -> None:
        tracker = AckTracker(None)
        # Whatever is acknowledged is acknowledged already: messages have the id of no ledger.
        tracker.forget_ledgers(ALL_LEDGERS)
        super().__init__(topic, name, None, tracker)
        self.target: Any = SubscriptionTarget(self.core)

    def _make_dispatcher(self) -> Dispatcher:
        kind = self._kind
        options = self.runtime.options
        return NonPersistentDispatcher(
            self.core,
            self.topic.ledger.tail,
            self.topic.name,
            self.runtime.decompressed_size_max,
            kind[0],
            HashRangeSelector(kind[1]) if kind[0] == "Key_Shared" else None,
            options.key_shared_spread_keyless,
            self._partition_index,
        )

    def ledger_changed(self) -> None:
        """There are no ledgers."""

    def seek(self, find: Callable[[], Position]) -> NoReturn:
        ledgers: Any = self.topic.ledger
        ledgers.refuse("seek a subscription")
        raise AssertionError

    def acknowledge_before(self, position: Position, *, expired: bool = False) -> bool:
        """There is nothing to acknowledge."""
        return False

    def statistics(self) -> dict[str, Any]:
        """Statistics like Pulsar's of non-persistent subscriptions, in snake_case. msg_drop_count:
        messages that no consumer had room for; msg_drop_rate: a second, in the last minute."""
        found: dict[str, Any] = {
            "type": self._kind[0] if self._consumers else "",
            "is_durable": False,
            "msg_backlog": 0,
            "backlog_entries": 0,
            "backlog_size": 0,
            "oldest_backlog_message_age_seconds": -1,
        }
        found |= self.dispatcher.statistics()
        found["msg_out_counter"] = self.core.given_messages
        found["bytes_out_counter"] = self.core.given_size
        found |= self.filter_statistics()
        return found
