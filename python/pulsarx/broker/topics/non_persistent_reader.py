"""The place of a Reader on a non-persistent topic: it is handed what is published from now on."""

from __future__ import annotations

import weakref
from functools import partial

from pulsarx import errors
from pulsarx._pycore.consume.consumer_core import ConsumerCore
from pulsarx._pycore.message.message_filter import SELECTOR_PROPERTY
from pulsarx.broker.subscriptions.subscribe_request import ReceiverSettings, SubscribeRequest
from pulsarx.enumerations import ConsumerType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from pulsarx._pycore.dispatch.entry_sink import EntrySink
    from pulsarx.broker.faces import NonPersistentHost
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger


class NonPersistentReader:
    """Stands where a ReaderCursor stands on a persistent topic. As in Pulsar it is a subscription
    of its own, Exclusive, under a random name. Any thread may call."""

    def __init__(
        self,
        topic: NonPersistentHost,
        schema: object,
        decryption: object = None,
        selector: str = "",
    ) -> None:
        self.topic = topic
        self._properties = {SELECTOR_PROPERTY: selector} if selector else None
        self.positions: ManagedLedger = topic.ledger
        self._schema = schema
        self._decryption = decryption
        self._reader: weakref.ref[ConsumerCore] | None = None

    def attach(self, position: Position, queue_size: int = 1000) -> ConsumerCore:
        """Begin to receive; the position says nothing. TopicGone: the topic was deleted."""
        request = SubscribeRequest(
            f"reader-{self.topic.runtime.randomness.token(5)}",
            ConsumerType.Exclusive,
            self._schema,
            "",
            lambda: (0, 0),
            ReceiverSettings(receiver_queue_size=queue_size),
            durable=False,
            decryption=self._decryption,
            subscription_properties=self._properties,
        )

        def make(receiver: EntrySink, subscription: Any) -> ConsumerCore:
            return _ReaderCore(receiver, subscription)

        core: ConsumerCore = self.topic.attach(request, make)
        self._reader = weakref.ref(core)
        return core

    @property
    def is_attached(self) -> bool:
        reader = self._reader() if self._reader is not None else None
        return reader is not None and reader.is_open

    @property
    def dispatcher(self) -> Any:
        reader = self._reader() if self._reader is not None else None
        return None if reader is None else reader.dispatcher

    def end(self) -> None:
        """Its subscription is closed by the topic."""

    def abandon(self) -> None:
        """Its subscription is abandoned by the topic."""

    def seek(self, position: Position) -> NoReturn:
        ledgers: Any = self.topic.ledger
        ledgers.refuse("seek a subscription")
        raise AssertionError


class _ReaderCore(ConsumerCore):
    """Leaves the topic when it is shut, so that nothing more is handed to it."""

    def __init__(self, receiver: EntrySink, subscription: Any) -> None:
        super().__init__(receiver, subscription.host)
        self._detach = partial(subscription.detach, receiver)

    def shut(self) -> bool:
        if not super().shut():
            return False
        self._detach()
        return True


def refuse_compacted(name: str) -> NoReturn:
    """NotAllowedError: it is to be read as compaction left it."""
    raise errors.NotAllowedError(
        detail=f"{name} with is_read_compacted: a non-persistent topic keeps no messages, and is "
        "never compacted"
    )


def refuse_reading(name: str) -> NoReturn:
    """OperationNotSupported: a client opened read_only is handed nothing that is published."""
    raise errors.OperationNotSupported(
        detail=f"read {name} in a client opened read_only: a non-persistent topic keeps no "
        "messages, and hands them out to clients of its owner alone"
    )
