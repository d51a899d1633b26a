"""A producer: what `Client.create_producer` returns. The hot calls are inherited from the core."""

from __future__ import annotations

from pulsarx._pycore.publish.producer_arrow import ProducerArrow
from pulsarx.compression import compress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.topics.topic import Topic
    from pulsarx.client import Client
    from pulsarx.options.base import ProducerOptions


class Producer(ProducerArrow):
    """Publishes messages to one topic. Any thread may call.

    `send`, `send_async`, `flush`, `send_many`, `send_arrow` and `last_sequence_id` come from the
    core class.
    A producer that is garbage-collected sends what it holds and unregisters, as `close()` does.
    """

    is_forgotten = False  # nobody refers to it any more; it will be closed in the background
    _client: Client | None = None  # kept alive by what it made

    def __init__(self, broker: Broker, topic: Topic, options: ProducerOptions, name: str) -> None:
        super().__init__(
            topic,
            topic.ledger.tail,
            options,
            name,
            broker.clock,
            broker.completions,
            compress,
            {"sync": 1, "interval": 2, "os": 3}[broker.durability],
            broker.options.max_message_size,
        )
        self._topic = topic
        self._name = name

    def topic(self) -> str:
        """Full name of the topic."""
        return self._topic.name

    def producer_name(self) -> str:
        """The given name, or the generated one."""
        return self._name

    def is_connected(self) -> bool:
        """Whether it can still be used."""
        return bool(self.is_open)

    def close(self) -> None:
        """Send what is open, wait until it is durable and leave. A second call raises
        AlreadyClosed."""
        if not self.is_open:
            self.shut()  # says why not
            return
        try:
            self.shut()
        finally:
            self._topic.remove_producer(self._name, self)
            if self._client is not None:
                self._client._producer_closed(self)

    def __del__(self) -> None:
        # Not here: the collector may run in the middle of a call that holds a mutex this needs.
        if getattr(self, "_name", None) is not None and self.is_open:
            self.is_forgotten = True
            self._topic.broker.background.put(self._close_forgotten)

    def _close_forgotten(self) -> None:
        if self.is_open:
            self.close()

    def __enter__(self) -> Producer:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_open:
            self.close()

    def __repr__(self) -> str:
        return (
            f"Producer(topic={self._topic.name!r}, name={self._name!r}, open={self.is_connected()})"
        )
