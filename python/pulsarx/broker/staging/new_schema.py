"""The schema that an attach registers in the commit that attaches the ledgers."""

from __future__ import annotations

from pulsarx.schema.schema import SchemaInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class NewSchema:
    """A schema and the version that messages of staged ledgers carry for it. A value."""

    __slots__ = ("info", "topic", "version")

    def __init__(self, topic: str, version: int, info: SchemaInfo) -> None:
        self.topic: str = topic  # its full name; that of a partition stands for its topic
        self.version: int = version
        self.info: SchemaInfo = info

    def document(self) -> dict[str, Any]:
        """Itself as JSON says it."""
        return {"topic": self.topic, "version": self.version, "info": self.info.as_document()}

    @staticmethod
    def of_document(document: dict[str, Any]) -> NewSchema:
        """ValueError: it is no such document."""
        try:
            topic, version, info = document["topic"], document["version"], document["info"]
            found = SchemaInfo.of_document(info)
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"attach: no description of a schema: {document!r:.200}") from error
        if not isinstance(topic, str) or type(version) is not int:
            raise ValueError(f"attach: no description of a schema: {document!r:.200}")
        return NewSchema(topic, version, found)

    def __repr__(self) -> str:
        return f"NewSchema({self.topic!r}, {self.version}, {self.info!r})"
