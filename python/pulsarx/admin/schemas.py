"""`client.admin.schemas`: the schemas of topics, all their versions."""

from __future__ import annotations

from pulsarx.options.argument_check import check_integer
from pulsarx.schema.schema import SchemaInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.admin.channel import Channel


class Schemas:
    """Any thread may call. TopicNotFound: there is no such topic. A partition has the schemas of
    its topic."""

    def __init__(self, channel: Channel) -> None:
        """Use `Admin.schemas`.

        Args:
            channel: By which the calls are done.
        """
        self._channel = channel

    def create_schema(self, topic: str, info: SchemaInfo) -> int:
        """Register a schema, also on a topic that is in use without one.
        `is_allow_auto_update_schema` does not apply here.

        Args:
            topic: A name.
            info: The schema.

        Returns:
            Its version, the existing one if the topic has the schema already.

        Raises:
            IncompatibleSchema: The topic's strategy refuses it.
            ValueError: The definition is malformed or has more than a million characters, or info
                is no SchemaInfo.
            TopicNotFound: There is no such topic.

        Durability:
            It is on the device when this returns.
        """
        found: int = self._ask("create_schema", topic, info)["version"]
        return found

    def get_schema_info(self, topic: str, version: int | None = None) -> SchemaInfo:
        """Return the schema of a version, or the last one.

        Args:
            topic: A name.
            version: From 0; None: the last one.

        Raises:
            TopicNotFound: There is no such topic or version, or it is deleted; messages written
                with it can still be read.
            ValueError: version is negative or no int.
        """
        if version is not None and check_integer(version, "version") < 0:
            raise ValueError(f"version is {version}; versions count from 0")
        arguments = {"topic": topic, "version": -1 if version is None else version}
        return _info(self._channel.perform("schemas.get_schema_info", arguments))

    def get_all_schemas(self, topic: str) -> list[SchemaInfo]:
        """Return the versions since the last deletion, the oldest first; `SchemaInfo.version()`
        tells which.

        Args:
            topic: A name.

        Raises:
            TopicNotFound: There is no such topic.
        """
        found = self._channel.perform("schemas.get_all_schemas", {"topic": topic})
        return [_info(each) for each in found]

    def delete_schema(self, topic: str) -> None:
        """Delete all versions; without any it does nothing. The next schema is not compared with
        them; the deletion itself takes a version number.

        Args:
            topic: A name.

        Raises:
            TopicNotFound: There is no such topic.

        Durability:
            They are gone from the device when this returns.
        """
        self._channel.perform("schemas.delete_schema", {"topic": topic})

    def test_compatibility(self, topic: str, info: SchemaInfo) -> dict[str, Any]:
        """Return {"compatibility": whether it may be the next schema,
        "schema_compatibility_strategy": the one in force, "reason": why not, or ""}.

        Args:
            topic: A name.
            info: The schema.

        Raises:
            TopicNotFound: There is no such topic.
            ValueError: info is no SchemaInfo.
        """
        found: dict[str, Any] = self._ask("test_compatibility", topic, info)
        return found

    def get_version_by_schema(self, topic: str, info: SchemaInfo) -> int:
        """Return the version of a schema; -1: the topic does not have it.

        Args:
            topic: A name.
            info: The schema.

        Raises:
            TopicNotFound: There is no such topic.
            ValueError: info is no SchemaInfo.
        """
        found: int = self._ask("get_version_by_schema", topic, info)["version"]
        return found

    def _ask(self, verb: str, topic: str, info: SchemaInfo) -> Any:
        if not isinstance(info, SchemaInfo):
            raise ValueError(f"info must be a SchemaInfo, not {type(info).__name__}")
        arguments = {"topic": topic, "schema": info.as_document()}
        return self._channel.perform(f"schemas.{verb}", arguments)


def _info(document: dict[str, Any]) -> SchemaInfo:
    return SchemaInfo.of_document(document, document["version"])
