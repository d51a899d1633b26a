"""One connection at the broker's side: commands become calls of the broker, and entries commands.

state    understands            left by
NEW      CONNECT                CONNECT, where it proves who the client is
OPEN     every other command    close, what breaks the protocol
CLOSED   nothing                -
"""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.failure_log import log_failure
from pulsarx.ground.attempt import attempt, insist
from pulsarx.sessions.client_proof import SERVER_VERSION, ClientProof
from pulsarx.sessions.consumers import SessionConsumers
from pulsarx.sessions.context import SessionContext
from pulsarx.sessions.producers import SessionProducers
from pulsarx.sessions.schema_answers import SchemaAnswers
from pulsarx.sessions.topic_answers import TopicAnswers
from pulsarx.sessions.topic_list_watch import TopicListWatches
from pulsarx.sessions.transactions import SessionTransactions
from pulsarx.wire import commands
from pulsarx.wire.frames import FrameReader, frame_size_max
from pulsarx.wire.protobuf import WireError
from pulsarx.wire.server_errors import message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.ground.owner_link import OwnerLink
    from pulsarx._pycore.wire.command_output import CommandOutput
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.sessions.context import GuestPart, SessionHost

    Values = dict[str, Any]

GREETING_SIZE_MAX = 16 << 10  # bytes of a frame, until CONNECT has come


class Session:
    """The thread that reads the connection calls received, deliver and close, one at a time;
    other threads may call fall_behind and close_consumers_of."""

    def __init__(
        self,
        server: SessionHost,
        write: Callable[[bytes], object],
        wake: Callable[[], object],
        output: CommandOutput,
        service_url: str | None,
        guests: Callable[..., GuestPart] | None = None,
    ) -> None:
        """write: sends bytes, in any thread and in the order of the calls, without waiting. wake:
        has deliver called soon; in any thread and with mutexes held, so it may only enqueue.
        output: what write does, natively; where it has no room for more that is delivered, wake is
        called when there is. service_url: under which the client reaches this broker. guests:
        makes what only a guest asks for, of context, consumers and producers; None: the client is
        none."""
        self._server = server
        self._broker = server.broker
        context = SessionContext(server, write, wake, output, service_url)
        self.context: SessionContext = context
        context.is_guest = is_guest = guests is not None
        self._tell, self._wake, self._has_room = context.tell, wake, output.has_room
        self._let_go = output.let_go
        proof = ClientProof(context)
        self.proof: ClientProof = proof
        self._permissions_changed = False
        self._message_size_max = self._broker.runtime.options.max_message_size
        self._reader = FrameReader(self._message_size_max)
        self._reader.cutter.frame_size_max = GREETING_SIZE_MAX
        self.is_connected: bool = False
        self.is_open: bool = True
        tell, refuse, require = context.tell, context.refuse, proof.require
        take_sought = partial(server.take_sought, self)
        transactions = SessionTransactions(context, proof)
        producers = SessionProducers(
            context, require, self._reader.cutter.sends, transactions.of, is_guest
        )
        self.producers: SessionProducers = producers
        self._in_flight = producers.in_flight
        consumers = SessionConsumers(
            context,
            require,
            take_sought,
            self._reader.cutter.links,
            self._reader.cutter.acks,
            transactions.of,
            is_guest,
        )
        self.consumers: SessionConsumers = consumers
        topics = TopicAnswers(
            self._broker, tell, refuse, require, self._service_urls, server.listeners, is_guest
        )
        schemas = SchemaAnswers(self._broker, tell, require)
        self._topic_lists = TopicListWatches(self._broker, tell, refuse, require, wake)
        self._guests = None if guests is None else guests(context, consumers, producers)
        self._handlers: dict[str, Callable[[Values], None]] = {
            "PRODUCER": producers.begin,
            "CLOSE_PRODUCER": producers.end,
            "SUBSCRIBE": consumers.begin,
            "FLOW": consumers.flow,
            "ACK": consumers.acknowledge,
            "REDELIVER_UNACKNOWLEDGED": consumers.redeliver,
            "SEEK": consumers.seek,
            "GET_LAST_MESSAGE_ID": consumers.get_last_message_id,
            "UNSUBSCRIBE": consumers.unsubscribe,
            "CLOSE_CONSUMER": consumers.end,
            "CONSUMER_STATS": consumers.tell_statistics,
            "LOOKUP": topics.lookup,
            "PARTITIONED_METADATA": topics.partitioned_metadata,
            "GET_TOPICS_OF_NAMESPACE": topics.topics_of_namespace,
            "WATCH_TOPIC_LIST": self._topic_lists.begin,
            "WATCH_TOPIC_LIST_CLOSE": self._topic_lists.end,
            "GET_SCHEMA": schemas.get,
            "GET_OR_CREATE_SCHEMA": schemas.get_or_create,
            "VERB": self._verb,
            "AUTH_RESPONSE": proof.answered,
            "PING": self._ping,
            "PONG": self._pong,
            **transactions.handlers,
        }
        if self._guests is not None:
            self._handlers["LINK"] = self._guests.link

    def use_link(self, link: OwnerLink) -> None:
        """Have bytes come over this link, and be written by it."""
        self.context.link = self._reader.cutter.link = link

    # Bytes ----------------------------------------------------------------------------------------

    def received(self, data: bytes | memoryview) -> bool:
        """Do what came; the memory may be used again on return. Whether deliver is to be called:
        not where there were only entries, and what is told to consumers. WireError: it breaks the
        protocol; the session is closed, and so should the connection be."""
        is_due = False
        try:
            for name, values, entry in self._reader.feed(data):
                is_due = True
                self._let_go()
                self._do(name, values, entry)
                if self.is_proving:
                    break  # the rest is done after it
            return is_due
        except WireError:
            self.close()
            raise

    def _do(self, name: str, values: Values, entry: bytes) -> None:
        if not self.is_open:
            raise WireError(f"a {name} in a session that is closed")
        if not self.is_connected:
            if name != "CONNECT":
                raise WireError(f"a {name} before CONNECT")
            self._connect(values)
        elif name == "SEND":
            self.producers.send(values, entry)
        elif name in self._handlers:
            self._handlers[name](values)
        else:
            raise WireError(f"a {name}, which no client sends now")

    def deliver(self) -> None:
        """Send what consumers have room for, to producers that it is their turn, and say which
        consumers and producers the broker closed."""
        values = self.proof.take()
        if values is not None:
            self._welcome(values)
            self.received(b"")  # what came behind it
        if self._permissions_changed:
            self._permissions_changed = False
            self.producers.close_forbidden()
            self.consumers.close_forbidden()
            self._topic_lists.close_forbidden()
        self.producers.deliver()
        if self._guests is not None:
            self._guests.deliver()
        self._topic_lists.deliver(self._has_room)
        self.consumers.deliver()

    # The connection -------------------------------------------------------------------------------

    def _connect(self, values: Values) -> None:
        if self.proof.begin(values):
            self._welcome(values)

    def _welcome(self, values: Values) -> None:
        self.is_connected = True
        self.context.client_said(values)
        self._reader.cutter.frame_size_max = frame_size_max(self._message_size_max)
        self._tell(
            "CONNECTED",
            server_version=SERVER_VERSION,
            protocol_version=min(max(values["protocol_version"], 0), commands.PROTOCOL_VERSION),
            max_message_size=self._message_size_max,
            feature_flags={
                "supports_topic_watchers": True,
                "supports_partitions_without_auto_creation": True,
            },
        )

    def check_permissions(self) -> None:
        """Roles may do more or less than before: what the client may not have any more is closed.
        In any thread."""
        self._permissions_changed = True
        self._wake()

    def _ping(self, _: Values) -> None:
        # Before the answer, so that it says: nothing else is there now.
        self.consumers.all_due()
        self.deliver()
        self._tell("PONG")

    def _pong(self, _: Values) -> None:
        pass

    def ping(self) -> None:
        """Ask whether the client is there. In any thread."""
        self._tell("PING")

    def has_consumers_of(self, subscription: Subscription) -> bool:
        """Tell whether this connection has consumers of a subscription that begin anew when it is
        moved."""
        return self.consumers.has_those_of(subscription)

    def fall_behind(self, subscription: Subscription, is_behind: bool) -> None:
        """The subscription is moved, or was not after all: whether its consumers acknowledge
        nothing any more."""
        self.consumers.fall_behind(subscription, is_behind)

    def close_consumers_of(self, subscription: Subscription) -> None:
        """The subscription was moved: its consumers begin anew."""
        self.consumers.close_those_of(subscription)

    @property
    def unfinished_size(self) -> int:
        """Bytes that came of a frame that is not whole yet."""
        return self._reader.cutter.size

    @property
    def is_full(self) -> bool:
        """Whether so much is not answered yet that nothing more is to be read. When it is not any
        more, wake is called."""
        return self._in_flight.is_full

    @property
    def is_proving(self) -> bool:
        """See ClientProof."""
        return self.proof.is_proving

    def lose(self) -> None:
        """The connection has ended, and close is called soon. In any thread."""
        self.context.is_lost = True

    def want_nothing(self) -> None:
        """Take nothing any more that others leave: no messages of their consumers, no turn of their
        producers. What it has stays. Of a guest, whose owner closes: the others still use what they
        have, and go on with it at the next owner."""
        self._take_steps([self.consumers.end_deliveries, *self.producers.give_up_places()])

    def close(self) -> None:
        """The connection has ended: what it had is closed. Idempotent."""
        self.is_open = False
        consumers, producers = insist(self.consumers.leave), insist(self.producers.leave)
        guests = insist(self._guests.leave) if self._guests is not None else []
        # Transactions behind consumers: what they give back is for those of others. And before
        # producers: whoever comes under such a name sends again what was not committed.
        self._take_steps([self._topic_lists.close, *consumers, *guests, *producers])
        self._server.forget_session(self)

    def _take_steps(self, steps: list[Callable[[], object]]) -> None:
        """Each, though one before it fails."""
        for step in steps:
            error = attempt(step)
            if error is not None:
                log_failure("pulsarx", error, "a session was closed: %s", errors.detail_of(error))

    # Requests that no part answers ----------------------------------------------------------------

    def _service_urls(self) -> tuple[str | None, str | None]:
        return self.context.service_url, self.context.service_url_tls

    def _verb(self, values: Values) -> None:
        import json

        from pulsarx.broker.verbs.table import perform

        request_id = values["request_id"]
        try:
            if not self._server.verbs:
                raise errors.OperationNotSupported(detail="verbs over this connection")
            verb, arguments = values["verb"], json.loads(values["arguments"])
            if self._guests is not None and verb in self._guests.verbs:
                result = self._guests.verbs[verb](arguments)
            else:
                result = perform(self._broker, verb, arguments)
            answer: Values = {"result": json.dumps(result, separators=(",", ":"))}
        except (ValueError, TypeError, RecursionError) as error:
            answer = {"error": "ValueError", "message": str(error)}
        except Exception as error:
            answer = {"error": type(error).__name__, "message": message_of(error)}
            answer["attributes"] = json.dumps(errors.attributes_of(error))
        self._tell("VERB_RESPONSE", request_id=request_id, **answer)
