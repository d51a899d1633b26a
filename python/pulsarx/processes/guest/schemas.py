"""The schemas of the topics of a folder that another process owns: read here, registered there."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.catalogue.records import SchemaRecord
from pulsarx.broker.schemas.registry import SchemaRegistry
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.processes.guest.host import GuestHost
    from pulsarx.schema.schema import SchemaInfo


class GuestSchemas(SchemaRegistry):
    """Any thread may call, but not the main one."""

    def __init__(self, broker: GuestHost) -> None:
        super().__init__(broker.catalogue, broker.policies, broker.clock.now_ms, broker.refresh)
        self._broker = broker

    def check_producer(self, topic: TopicName, info: SchemaInfo | None) -> None:
        self._refresh()
        super().check_producer(topic, info)

    def check_consumer(
        self, topic: TopicName, info: SchemaInfo, is_idle: Callable[[], bool]
    ) -> bool:
        self._refresh()
        name = topic.partitioned_name
        if self._is_volatile(name) and name not in self._broker.volatile:
            # Another process may use it, so that it is not idle.
            self._broker.refresh_non_persistent({topic.namespace_name})
        return super().check_consumer(topic, info, is_idle)

    def find(self, topic: TopicName, version: int) -> SchemaInfo | None:
        if self._is_volatile(topic.partitioned_name):
            return self._ask(topic, version)
        return super().find(topic, version)

    def _is_volatile(self, name: str) -> bool:
        """Whether the owner alone knows its schemas: the catalogue does not know the topic."""
        return not (TopicName.of(name).persistent or name in self._broker.catalogue.state.topics)

    def _live(self, name: str) -> list[SchemaRecord]:
        if not self._is_volatile(name):
            return super()._live(name)
        try:
            found = self._broker.perform("schemas.get_all_schemas", {"topic": name})
        except errors.TopicNotFound:
            return []
        return [
            SchemaRecord(
                each["version"],
                each["type"],
                each["name"],
                each["schema"],
                each.get("properties", {}),
                each["created_ms"],
            )
            for each in found
        ]

    def _ask(self, topic: TopicName, version: int) -> SchemaInfo | None:
        from pulsarx.schema.schema import SchemaInfo

        arguments = {"topic": topic.full, "version": version}
        try:
            answer = self._broker.perform("schemas.get_schema_info", arguments)
        except errors.PulsarException:
            return None  # it has none, or nobody can be asked
        return SchemaInfo.of_document(answer, version)

    def register(self, topic: TopicName, info: SchemaInfo, strategy: str | None = None) -> int:
        answer = self._broker.perform(
            "schemas.create_schema", {"topic": topic.full, "schema": info.as_document()}
        )
        return int(answer["version"])

    def delete(self, topic: TopicName) -> None:
        self._broker.perform("schemas.delete_schema", {"topic": topic.full})
