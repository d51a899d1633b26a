"""Finds the schemas that messages of a topic were written with, for `Message.value()`."""

from __future__ import annotations

from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.ground.call_timeout import call_timeout, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from pulsarx.schema.schema import SchemaInfo
    from pulsarx.topic_name import TopicName

    class Registry(Protocol):
        def find(self, topic: TopicName, version: int) -> SchemaInfo | None: ...

    class Holder(Protocol):
        """A topic, or what else has a registry, made when it is asked for."""

        @property
        def topic_name(self) -> TopicName: ...
        @property
        def schemas(self) -> Registry: ...


class WriterSchemas:
    """Called with a version. Any thread may call; the main thread hands the search over."""

    __slots__ = ("_timeout_seconds", "_topic")

    def __init__(self, topic: Holder) -> None:
        self._topic = topic
        self._timeout_seconds = call_timeout()  # of the client it is made for

    def __call__(self, version: int) -> SchemaInfo | None:
        """None: the topic does not have it, be it that the message comes from elsewhere."""
        found: SchemaInfo | None = control_plane.perform(
            within, (self._timeout_seconds, self._find, version)
        )
        return found

    def _find(self, version: int) -> SchemaInfo | None:
        return self._topic.schemas.find(self._topic.topic_name, version)
