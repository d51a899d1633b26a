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
    from typing import TypeVar

    R = TypeVar("R", bound=Record)
else:
    R = Record

_encode = json.JSONEncoder(
    default=json_fallback, separators=(",", ":"), check_circular=False
).encode


class JsonSchema(Schema[R]):
    """A record class whose records travel as JSON objects; the definition is the Avro one.

    An enumeration travels as the value of its member, bytes as text in UTF-8. Written without
    spaces; the official client writes indented.
    """

    def __init__(self, record_cls: type[R]) -> None:
        """TypeError: no record class."""
        found: type[Record] = record_class_of(record_cls, "JsonSchema")
        super().__init__(record_cls, SchemaType.JSON, found.schema(), "JSON")
        self._from_json = plan_of(found).from_json

    def encode(self, obj: R) -> bytes:
        """TypeError: no record of the class. ValueError: bytes in it are not UTF-8."""
        if obj.__class__ is not self._record_cls:
            self._validate_object_type(obj)
        return _encode(json_fallback(obj)).encode()

    def decode(self, data: bytes) -> R:
        """ValueError: no JSON. TypeError: not of this record."""
        return self._from_json(json.loads(data))  # type: ignore[return-value]


def record_class_of(record_cls: object, what: str) -> type[Record]:
    if isinstance(record_cls, Record):
        return type(record_cls)
    if not isinstance(record_cls, type) or not issubclass(record_cls, Record):
        raise TypeError(f"{what} takes a class of records, not {shown(record_cls)}")
    return record_cls
