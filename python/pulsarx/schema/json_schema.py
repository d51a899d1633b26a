"""Records as JSON."""

from __future__ import annotations

import json

from pulsarx.enumerations import SchemaType
from pulsarx.errors import shown
from pulsarx.schema.definition import Record
from pulsarx.schema.record_plan import json_fallback, plan_of
from pulsarx.schema.schema import Schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    R = TypeVar("R", bound=Record)
else:
    R = Record

_encode = json.JSONEncoder(
    default=json_fallback, separators=(",", ":"), check_circular=False
).encode


class JsonSchema(Schema[R]):
    """A record class whose records travel as JSON objects; the definition is the Avro one.

    An enumeration travels as the value of its member, bytes as text in UTF-8. Written without
    spaces; the official client writes indented. Of a class that is no Record its `schema()` is the
    definition, and the attributes of an object are what is written.
    """

    def __init__(self, record_cls: type[R]) -> None:
        """Make the schema of a record class.

        Args:
            record_cls: A class of records, or one whose schema() is the definition.

        Raises:
            TypeError: It is neither.
        """
        found = described_class(record_cls, "JsonSchema")
        super().__init__(record_cls, SchemaType.JSON, found.schema(), "JSON")
        self._to_json: Callable[[Any], Any]
        self._from_json: Callable[[Any], Any]
        if issubclass(found, Record):
            self._to_json, self._from_json = json_fallback, plan_of(found).from_json
        else:
            self._to_json, self._from_json = vars, lambda read: found(**read)

    def encode(self, obj: R) -> bytes:
        """Return the payload of a record.

        Args:
            obj: A record of the class.

        Raises:
            TypeError: It is none.
            ValueError: Bytes in it are not UTF-8.
        """
        if obj.__class__ is not self._record_cls:
            self._validate_object_type(obj)
        return _encode(self._to_json(obj)).encode()

    def decode(self, data: bytes) -> R:
        found: R = self._from_json(json.loads(data))
        return found


def described_class(record_cls: object, what: str) -> Any:
    """A class of records, or another one that describes itself by `schema()`. TypeError: it is
    neither."""
    if isinstance(record_cls, Record):
        return type(record_cls)
    if not isinstance(record_cls, type) or not callable(getattr(record_cls, "schema", None)):
        raise TypeError(
            f"{what} takes a class of records, or one whose schema() gives the definition, not "
            f"{shown(record_cls)}"
        )
    return record_cls
