"""The schemas of the topics of a folder that another process owns: read here, registered there."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.schemas.registry import SchemaRegistry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.remote.guest_host import GuestHost
    from pulsarx.schema.schema import SchemaInfo


class GuestSchemas(SchemaRegistry):
    """Any thread may call, but not the main one."""

    def __init__(self, broker: GuestHost) -> None:
        super().__init__(broker.catalogue, broker.policies, broker.clock.now_ms, broker.refresh)
        self._broker = broker

    def check_producer(self, topic: str, info: SchemaInfo | None) -> None:
        self._refresh()
        super().check_producer(topic, info)

    def check_consumer(self, topic: str, info: SchemaInfo, is_idle: Callable[[], bool]) -> bool:
        self._refresh()
        return super().check_consumer(topic, info, is_idle)

    def find(self, topic: str, version: int) -> SchemaInfo | None:
        if topic in self._broker.volatile:  # only the owner knows its schemas
            return self._ask(topic, version)
        return super().find(topic, version)

    def _ask(self, topic: str, version: int) -> SchemaInfo | None:
        from pulsarx.schema.schema import SchemaInfo

        arguments = {"topic": topic, "version": version}
        try:
            answer = self._broker.perform("schemas.get_schema_info", arguments)
        except errors.PulsarException:
            return None  # it has none, or nobody can be asked
        return SchemaInfo.of_document(answer, version)

    def register(self, topic: str, info: SchemaInfo, strategy: str | None = None) -> int:
        answer = self._broker.perform(
            "schemas.create_schema", {"topic": topic, "schema": info.as_document()}
        )
        return int(answer["version"])

    def delete(self, topic: str) -> None:
        self._broker.perform("schemas.delete_schema", {"topic": topic})
