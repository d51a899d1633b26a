"""`client.admin.topics`: what topics there are and what is in them."""

from __future__ import annotations

from pulsarx.broker.statistics import topic_statistics
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.foreign_broker import ForeignBroker


class Topics:
    """Any thread may call. TopicNotFound: there is no such topic."""

    def __init__(self, broker: Broker | ForeignBroker) -> None:
        self._broker = broker

    def get_list(self, namespace: str = "public/default") -> list[str]:
        """Full names of the topics of a namespace."""
        self._broker.check_open()
        self._broker.refresh()
        prefix = f"://{namespace}/"
        return sorted(name for name in self._broker.catalogue.state.topics if prefix in name)

    def stats(self, topic: str) -> dict[str, Any]:
        """Entries, messages and bytes stored, ledgers, producers, and of each subscription its
        type, its backlog in messages and entries, what is unacknowledged, the permits of each
        consumer, and the keys held back."""
        self._broker.check_open()
        self._broker.refresh()
        return topic_statistics(self._broker.topic(TopicName.of(topic), create=False))
