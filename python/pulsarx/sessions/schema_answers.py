"""The answers to what a client asks about schemas without a producer or a consumer."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.access.access import Access
from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
from pulsarx.enumerations import SchemaType
from pulsarx.producing.producer_schema import check_producer, version_bytes
from pulsarx.topic_name import TopicName, check_is_for_users
from pulsarx.wire.schemas import schema_of, schema_values
from pulsarx.wire.server_errors import code_of, message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.schema.schema import SchemaInfo
    from pulsarx.sessions.topic_answers import Require

    Values = dict[str, Any]


class SchemaAnswers:
    """Calls of one session alone."""

    def __init__(self, broker: Broker, tell: Callable[..., None], require: Require) -> None:
        """tell, require: as Session has them."""
        self._broker = broker
        self._tell = tell
        self._require = require

    def get(self, values: Values) -> None:
        request_id, version = values["request_id"], values["schema_version"]
        try:
            self._require(Access.require_lookup, values["topic"])
            topic, schemas = TopicName.of(values["topic"]), self._broker.schemas
            if version:
                found = schemas.find(topic, int.from_bytes(version, "big"))
            else:
                found = next(iter(schemas.versions(topic)[-1:]), None)
            if found is None:
                raise errors.TopicNotFound(detail=f"{values['topic']} has no such schema")
            answer: Values = {
                "schema": schema_values(found),
                "schema_version": version_bytes(found.version()),
            }
        except Exception as error:
            answer = {"error": code_of(error), "message": message_of(error)}
        self._tell("GET_SCHEMA_RESPONSE", request_id=request_id, **answer)

    def get_or_create(self, values: Values) -> None:
        """The schema of a topic, a partition or a partitioned topic as a whole, which have their
        schemas together. TopicNotFound: there is none. Bytes are none here, and have no version: as
        Pulsar, which takes them for a schema of a producer or consumer alone."""
        try:
            name = TopicName.of(values["topic"])
            check_is_for_users(name)
            self._require(Access.require_produce, values["topic"])
            info = declared_schema(values)
            if info is not None and info.schema_type() == SchemaType.NONE:
                info = None
            found = self._broker.lookup(name, create=False)
            check_producer(self._broker, name, info)
            answer: Values = {"schema_version": b""}
            if info is not None:
                if not isinstance(found, PartitionedTopic):
                    found.touch()
                version = self._broker.schemas.register_producer(name, info)
                answer = {"schema_version": version_bytes(version)}
        except Exception as error:
            answer = {"error": code_of(error), "message": message_of(error)}
        self._tell("GET_OR_CREATE_SCHEMA_RESPONSE", request_id=values["request_id"], **answer)


def declared_schema(values: Values) -> SchemaInfo | None:
    """The schema that a producer or consumer declares. IncompatibleSchema: it is malformed."""
    from pulsarx.broker.schemas.compatibility import identity_of

    info = schema_of(values["schema"])
    if info is not None:
        try:
            identity_of(info)
        except ValueError as error:
            raise errors.IncompatibleSchema(detail=str(error)) from error
    return info
