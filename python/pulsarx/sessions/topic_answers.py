"""The answers to what a client asks about topics before it uses them: where they are, their
partitions, which a namespace has."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ranges.entry_codec import crc32c
from pulsarx.access.access import Access
from pulsarx.access.advertised_listeners import no_such_listener
from pulsarx.broker.topics.partitioned_topic import PartitionedTopic, partition_count_of
from pulsarx.sessions.transactions import COORDINATOR_TOPIC, COORDINATORS
from pulsarx.topic_name import TopicName
from pulsarx.wire import commands
from pulsarx.wire.server_errors import code_of, message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from pulsarx.access.advertised_listeners import AdvertisedListener
    from pulsarx.broker.broker import Broker

    Values = dict[str, Any]
    Require = Callable[[Callable[[Access, str, str], None], str], None]

_DOMAINS = {
    commands.PERSISTENT: "persistent",
    commands.NON_PERSISTENT: "non-persistent",
    commands.ALL: "any",
}


class TopicAnswers:
    """Calls of one session alone."""

    def __init__(
        self,
        broker: Broker,
        tell: Callable[..., None],
        refuse: Callable[[Values, Exception], None],
        require: Require,
        service_urls: Callable[[], tuple[str | None, str | None]],
        listeners: dict[str, AdvertisedListener],
        are_guests: bool,
    ) -> None:
        """tell, refuse, require: as Session has them. service_urls: under which the client reaches
        the broker, without TLS and with it; listeners: the same of those that ask for one by
        name. are_guests: it is a process that shares the folder."""
        self._broker = broker
        self._tell = tell
        self._refuse = refuse
        self._require = require
        self._service_urls = service_urls
        self._listeners = listeners
        self._are_guests = are_guests

    def lookup(self, values: Values) -> None:
        answer: Values = {"response": commands.CONNECT_HERE, "authoritative": True}
        try:
            service_url, service_url_tls = self._urls(values["listener"])
            if service_url is None and service_url_tls is None:
                raise errors.OperationNotSupported(detail="this connection has no address to tell")
            name = str(TopicName.of(values["topic"]))
            if name != COORDINATOR_TOPIC:  # which is for everybody
                self._require(Access.require_lookup, name)
            answer |= {"service_url": service_url, "service_url_tls": service_url_tls}
        except Exception as error:
            answer = {"response": commands.LOOKUP_FAILED}
            answer |= {"error": code_of(error), "message": message_of(error)}
        self._tell("LOOKUP_RESPONSE", request_id=values["request_id"], **answer)

    def _urls(self, wanted: str) -> tuple[str | None, str | None]:
        if not wanted:
            return self._service_urls()
        listener = self._listeners.get(wanted)
        if listener is None:
            raise errors.ServiceUnitNotReady(detail=no_such_listener(wanted))
        return listener.urls()

    def partitioned_metadata(self, values: Values) -> None:
        request_id = values["request_id"]
        try:
            name = TopicName.of(values["topic"])
            if name.full == COORDINATORS:
                self._tell_coordinators(request_id)
                return
            self._require(Access.require_lookup, name.full)
            is_there = self._broker.topics.is_there(name.full)
            if is_there:
                count = partition_count_of(self._broker.catalogue.state, name)
            elif not values["auto_creation_enabled"]:
                raise errors.missing_topic(name)
            elif self._are_guests:  # which look for it in the catalogue
                found = self._broker.lookup(name)
                count = found.partition_count if isinstance(found, PartitionedTopic) else 0
            else:
                count = self._broker.topics.partitions_if_used(name)
        except Exception as error:
            failure: Values = {"response": 1, "error": code_of(error), "message": message_of(error)}
            self._tell("PARTITIONED_METADATA_RESPONSE", request_id=request_id, **failure)
        else:
            # Clients in C++ take an answer without a response for a failure.
            self._tell(
                "PARTITIONED_METADATA_RESPONSE",
                request_id=request_id,
                partitions=count,
                response=0,
                created=self._are_guests and not is_there,
            )

    def _tell_coordinators(self, request_id: int) -> None:
        """The coordinators of transactions are partitions of a topic that has no messages; 0: there
        are no transactions, and the client does not ask for one."""
        are_on = self._broker.runtime.options.transaction_coordinator_enabled
        self._tell(
            "PARTITIONED_METADATA_RESPONSE",
            request_id=request_id,
            partitions=int(are_on),
            response=0,
        )

    def topics_of_namespace(self, values: Values) -> None:
        """All of them, whatever pattern is asked for: the client applies its own."""
        from pulsarx.broker.verbs.topics import get_list

        request_id = values["request_id"]
        try:
            self._require(Access.require_in_namespace, values["namespace"])
            found = get_list(self._broker, values["namespace"], False, _DOMAINS[values["mode"]])
        except KeyError:
            error = errors.OperationNotSupported(detail=f"topics of mode {values['mode']}")
            self._refuse(values, error)
            return
        except errors.TopicNotFound:  # as Pulsar: a namespace that is not there has no topics
            found = []
        except Exception as error:
            self._refuse(values, error)
            return
        known = topics_hash(found)
        changed = values["topics_hash"] != known
        self._tell(
            "GET_TOPICS_OF_NAMESPACE_RESPONSE",
            request_id=request_id,
            topics=found if changed else [],
            topics_hash=known,
            changed=changed,
        )


def topics_hash(names: Iterable[str]) -> str:
    """CRC32C of the sorted names with commas between, least significant byte first, in hexadecimal.

    Source: TopicList.calculateHash, which prints Guava's HashCode.
    """
    return crc32c(",".join(sorted(names)).encode()).to_bytes(4, "little").hex()
