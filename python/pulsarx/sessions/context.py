"""The state that the parts of a session share: the server, the line to the client, and what the
client said of itself."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker_options import ENTRY_METADATA_INTERCEPTORS
from pulsarx.topic_name import TopicName
from pulsarx.wire.frames import frame_encode
from pulsarx.wire.server_errors import (
    NOT_ALLOWED,
    NOT_READY,
    SUBSCRIPTION_NOT_FOUND,
    code_of,
    message_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.ground.owner_link import OwnerLink
    from pulsarx._pycore.publish.completion_queue import CompletionQueue
    from pulsarx._pycore.wire.command_output import CommandOutput
    from pulsarx.access.access import Access
    from pulsarx.access.advertised_listeners import AdvertisedListener
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.faces import SubscriptionHost
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.topic import Topic
    from pulsarx.broker_options import BrokerOptions

    Values = dict[str, Any]

    class SessionHost(Protocol):
        """The server of a session, as the session sees it."""

        broker: Broker
        verbs: bool
        access: Access | None
        completions: CompletionQueue
        listeners: dict[str, AdvertisedListener]

        def seek(self, subscription: Subscription, find: Callable[[], Position]) -> None:
            """Move a subscription, and close its consumers."""

        def take_sought(self, session: Any, topic: str, subscription: str) -> Position | None:
            """The position to which a non-durable subscription was moved before a consumer of the
            session was closed for it."""

        def forget_session(self, session: Any) -> None: ...

    class GuestPart(Protocol):
        """The part of a session that serves only a process which shares the folder."""

        verbs: dict[str, Callable[[Values], Any]]

        def link(self, values: Values) -> None:
            """Do what a link frame says."""

        def deliver(self) -> None:
            """Send the news of what is watched."""

        def leave(self) -> list[Callable[[], object]]:
            """The steps that end all that it began, each to be taken though one before it
            fails."""


# Clients that do not know REACHED_END_OF_TOPIC: they connect anew, and would be told again.
_WITHOUT_ENDS = ("Pulsar-CPP", "Pulsar-Go", "PulsarX")
# Clients that subscribe again and again, and tell their user nothing, where there is no such
# subscription and none is to be made.
_TRY_AGAIN = ("Pulsar-CPP",)
# Clients that give permits for messages that an ack set leaves out. That of Java did, up to 4.0.
_GIVE_FOR_LEFT_OUT = ("Pulsar-CPP", "Pulsar-Go", "PulsarX")
# What is refused where something is closed, by code and, of verbs, by name.
_CLOSED = frozenset((NOT_READY, "AlreadyClosed", "ServiceUnitNotReady"))


class SessionContext:
    """Calls of one session and its parts; tell in any thread."""

    def __init__(
        self,
        server: SessionHost,
        write: Callable[[bytes], object],
        wake: Callable[[], object],
        output: CommandOutput,
        service_url: str | None,
    ) -> None:
        """See Session."""
        self.server = server
        self.broker: Broker = server.broker
        self.write = write
        self.wake = wake
        self.output = output
        self.has_room: Callable[[], bool] = output.has_room
        self.service_url = service_url
        self.by_name: bool = bool(server.listeners)  # some clients are led elsewhere
        self.is_guest = False  # the client is another process of this folder
        self.link: OwnerLink | None = None  # of a guest, where there is one: `write` is its
        self.service_url_tls: str | None = None  # as service_url, for clients with TLS
        self.is_lost = False  # the connection has ended, and the session is closed soon
        # What the client says of itself in CONNECT.
        self.client_version: Any = ""
        self.protocol_version: Any = 0
        self.closes_at_ends: bool = False  # producers of terminated topics
        self.knows_ends: bool = False  # it takes REACHED_END_OF_TOPIC
        self.knows_kept: Any = False  # that a receipt says which messages of a batch were new
        self.listens_late: Any = False  # it knows a consumer from its first FLOW on
        self.gives_for_left_out: Any = False  # permits, see ConnectionSink
        self.exposes: int = 0  # fields of BrokerEntryMetadata, see ConnectionSink
        self.tries_again: Any = False  # in vain, when it is told SubscriptionNotFound

    def client_said(self, values: Values) -> None:
        """Take what is in its CONNECT."""
        version = values["client_version"]
        self.client_version = version
        self.protocol_version = values["protocol_version"]
        self.knows_ends = not version.startswith(_WITHOUT_ENDS)
        self.knows_kept = version.startswith("PulsarX")
        self.closes_at_ends = not version.startswith("PulsarX")
        self.listens_late = version.startswith("Pulsar-Go")
        self.gives_for_left_out = version.startswith(_GIVE_FOR_LEFT_OUT)
        self.tries_again = version.startswith(_TRY_AGAIN)
        features = values["feature_flags"] or {}
        if features.get("supports_broker_entry_metadata"):
            self.exposes = _exposed(self.broker.runtime.options)

    def tell(self, name: str, entry: bytes | None = None, **values: Any) -> None:
        if self.is_guest and name != "SEND_ERROR" and values.get("error") in _CLOSED:
            if not self.broker.state.is_open:
                return  # it asks the next owner when this one hangs up, however long that takes
        self.write(frame_encode(name, values, entry))

    def answer(self, values: Values, act: Callable[[], object]) -> None:
        """Do what a request asks for; SUCCESS, or the ERROR it failed with."""
        try:
            act()
        except Exception as error:
            self.refuse(values, error)
        else:
            self.tell("SUCCESS", request_id=values["request_id"])

    def refuse(self, values: Values, error: Exception) -> None:
        code = code_of(error)
        if code == SUBSCRIPTION_NOT_FOUND and self.tries_again:
            code = NOT_ALLOWED
        self.tell("ERROR", request_id=values["request_id"], error=code, message=message_of(error))

    def topic(self, name: TopicName, create: bool = True) -> AnyTopic:
        return self.broker.topic(name, create=create)

    def kept_topic(self, name: str) -> Topic:
        """The topic of a guest, which reads the ledgers itself."""
        return self.topic(TopicName.of(name), create=False).require_kept("use from another process")


def _exposed(options: BrokerOptions) -> int:
    """Which fields of BrokerEntryMetadata clients are sent, as ConnectionSink has it."""
    if not options.exposing_broker_entry_metadata_to_client_enabled:
        return 0
    kinds = options.broker_entry_metadata_interceptors
    return sum(1 << at for at, each in enumerate(ENTRY_METADATA_INTERCEPTORS) if each in kinds)


def error_of_gone(topic: SubscriptionHost) -> Exception | None:
    """TopicNotFound, where the topic was deleted."""
    return errors.TopicNotFound(detail=f"{topic.name}: it was deleted") if topic.is_gone else None
