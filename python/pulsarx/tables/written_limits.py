"""Checks rows against limits of a definition that the types of its columns do not have: the symbols
of enumerations, and floats of 32 bits. JSON would write any text, and Avro infinity for a number
that is too large."""

from __future__ import annotations

import struct

from pulsarx.schema.definition import Array, CustomEnum, Map, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Check = Callable[[Any], None]


def limit_checker(
    definition: Any, is_json: bool, others: Mapping[str, frozenset[str]] | None = None
) -> Check | None:
    """Make the check that raises ValueError for a row with a value beyond its limit, and names the
    field; None: the types of the columns say all.

    definition: one that has columns (`value_types.record_schema`), whose types the rows have.
    is_json: a float is text, which has as many digits as it needs.
    others: further texts that may be written, by the name of the enumeration.
    """
    return _Limits(is_json, others or {}).check_of(definition, "")


def check_float(value: float, path: str) -> None:
    """ValueError: no float of 32 bits is near it. One that is a float already is rounded to the
    nearest, as FloatSchema does, since hardly a fraction is one of 32 bits; an integer is not."""
    try:
        # Of a given byte order: that of the machine makes infinity, and raises nothing.
        found = struct.unpack("<f", struct.pack("<f", value))[0]
    except (OverflowError, struct.error):  # of an integer
        text = f"{path} is {value!r:.80}, which is too large for a float of 32 bits"
        raise ValueError(text) from None
    if type(value) is int and int(found) != value:
        raise ValueError(f"{path} is {value}, which a float of 32 bits cannot hold exactly")


class _Limits:
    """Turns a definition into a check. Knows the named types it has met, by their full names."""

    def __init__(self, is_json: bool, others: Mapping[str, frozenset[str]]) -> None:
        self._is_json = is_json
        self._others = others
        self._named: dict[str, tuple[Any, str]] = {}

    def check_of(self, definition: Any, path: str, around: str = "") -> Check | None:
        """around: the namespace that the definition stands in."""
        if isinstance(definition, str):
            return self._of_name(definition, path, around)
        if isinstance(definition, list):
            branches = [each for each in definition if each != "null"]
            return self.check_of(branches[0], path, around) if branches else None
        kind = definition["type"]
        if kind == "array":
            item = self.check_of(definition["items"], f"{path}[]", around)
            return None if item is None else lambda value: _check_each(item, value)
        if kind == "map":
            inner = self.check_of(definition["values"], f"{path}{{}}", around)
            return None if inner is None else lambda value: _check_each(inner, value.values())
        if kind not in ("enum", "record", "fixed"):
            return self.check_of(kind, path, around)
        name = _full_name(definition["name"], definition.get("namespace", around))
        self._named[name] = definition, around
        if kind == "record":
            return self._of_record(definition, path, name.rpartition(".")[0])
        return self._of_enum(definition, path) if kind == "enum" else None

    def _of_name(self, name: str, path: str, around: str) -> Check | None:
        if name == "float" and not self._is_json:
            return lambda value: check_float(value, path)
        known = self._named.get(_full_name(name, around))
        return None if known is None else self.check_of(known[0], path, known[1])

    def _of_enum(self, definition: dict[str, Any], path: str) -> Check:
        symbols: list[str] = definition["symbols"]
        allowed = self._others.get(definition["name"], frozenset()).union(symbols)

        def check(value: str) -> None:
            if value not in allowed:
                known = ", ".join(symbols)
                raise ValueError(
                    f"{path} is {value!r:.80}, which is none of the symbols {known:.200}"
                )

        return check

    def _of_record(self, definition: dict[str, Any], path: str, around: str) -> Check | None:
        inside = f"{path}." if path else ""
        checks = [
            (each["name"], check)
            for each in definition["fields"]
            if (check := self.check_of(each["type"], f"{inside}{each['name']}", around)) is not None
        ]

        def check_fields(value: dict[str, Any]) -> None:
            for name, check in checks:
                found = value.get(name)
                if found is not None:
                    check(found)

        return check_fields if checks else None


def _full_name(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name


def _check_each(check: Check, values: Iterable[Any]) -> None:
    for value in values:
        if value is not None:
            check(value)


def member_texts(record_cls: type[Record]) -> dict[str, frozenset[str]]:
    """The values of the members of a record class's enumerations, by the name of the enumeration:
    JsonSchema writes and reads them, where the definition has the names."""
    found: dict[str, frozenset[str]] = {}
    for field in record_cls._fields.values():
        inner = field
        while isinstance(inner, Array | Map):
            inner = inner.item
        if isinstance(inner, CustomEnum):
            texts = frozenset(each for each in inner.values if isinstance(each, str))
            found[inner.enum_type.__name__] = texts
        elif isinstance(inner, Record):
            found |= member_texts(type(inner))
    return found
