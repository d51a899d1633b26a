"""A consumer of this process that the owner of the folder has attached: what those of persistent
and of non-persistent topics have alike."""

from __future__ import annotations

import weakref
from functools import partial

from pulsarx._pycore.consume.consumer_host import ConsumerHost
from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx._pycore.message.entry_view import EntryContext
from pulsarx.compression import decompress
from pulsarx.ground.fork import at_fork
from pulsarx.processes.guest.connection import AGAIN_MS, Refusals
from pulsarx.schema.writer_schemas import WriterSchemas

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx._pycore.dispatch.entry_sink import EntrySink
    from pulsarx._pycore.dispatch.subscription_core import SubscriptionCore
    from pulsarx._pycore.ground.clock_core import ClockCore
    from pulsarx._pycore.ledger.ledger_tail import LedgerTail
    from pulsarx.broker.schemas.registry import SchemaRegistry
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest
    from pulsarx.processes.guest.connection import Connection
    from pulsarx.topic_name import TopicName

    class GuestTopic(Protocol):
        """A topic of the owner's, as its consumers see it here."""

        name: str
        topic_name: TopicName
        clock: ClockCore

        @property
        def schemas(self) -> SchemaRegistry: ...
        def bring(self, subscription: Any) -> None:
            """Have it resume at the owner there is now."""


class AttachedConsumer:
    """Stands where a Subscription does, for one consumer, which keeps it. Calls of the control
    plane, but for those of the thread that reads the connection."""

    dispatcher: Any
    topic: Any  # GuestTopic

    def __init__(self, request: SubscribeRequest, positions: Any, core: SubscriptionCore) -> None:
        self.name: str = request.subscription_name
        self.positions = positions  # where ids and times are
        self.host: ConsumerHost = ConsumerHost(positions)
        self._core = core
        self._consumer: weakref.ref[ConsumerCore] | None = None
        self._lock = Lock()  # of what an owner has attached
        self._id = 0  # at the connection
        self._has_left = False
        self._refusals = Refusals()

    def _make(
        self,
        topic: GuestTopic,
        tail: LedgerTail,
        request: SubscribeRequest,
        make: Callable[[Any, Any], ConsumerCore],
    ) -> tuple[ConsumerCore, EntrySink]:
        """Make the consumer, which no owner knows yet, and where its messages come."""
        context = EntryContext(
            topic.name, request.schema, tail, decompress, WriterSchemas(topic), request.decryption
        )
        receiver = request.sink(self.dispatcher, context, request.consumer_name, request.settings)
        consumer = make(receiver, self)
        self._consumer = weakref.ref(consumer)
        _attached.add(self)
        self.dispatcher.join(receiver)
        self._core.start()
        return consumer, receiver

    def _open_consumer(self) -> ConsumerCore | None:
        consumer = None if self._consumer is None else self._consumer()
        return consumer if consumer is not None and consumer.is_open else None

    def _end(self, receiver: EntrySink) -> None:
        self.dispatcher.leave(receiver)
        self._core.stop()

    def _refused(self, connection: Connection, error: BaseException) -> None:
        """The owner has not attached it again: it comes once more, or is shut. A job that others
        wait for: a connection that is lost meanwhile is not waited for, since the next one attaches
        it first."""
        if self._refusals.passes(error, connection):
            self.topic.clock.call_after(AGAIN_MS, partial(self.topic.bring, self))
        elif not connection.has_left():
            self._give_up(connection)

    def _give_up(self, _: Connection) -> None:
        """The owner will not attach it any more."""
        self._shut()

    def end(self, _: Exception) -> None:
        """There will be no owner any more that could be asked."""
        self._shut()

    def abandon(self) -> None:
        """In a forked child: the consumer is the parent's."""
        consumer = None if self._consumer is None else self._consumer()
        if consumer is not None:
            consumer.abandon()

    def _shut(self) -> None:
        consumer = None if self._consumer is None else self._consumer()
        if consumer is not None and not consumer.is_forked:
            consumer.shut()


_attached = WeakList()


at_fork(__name__, abandon=_attached)
