"""Plans: how records of one class are encoded and decoded, as functions made once a class.

Walking the fields of a class for each message costs more than encoding it. So the functions are
written as source, as `dataclasses` does, with a check of the class of each value in line; only what
does not pass it goes through the field.
"""

from __future__ import annotations

from enum import Enum

from pulsarx.schema.definition import (
    Array,
    Boolean,
    Bytes,
    CustomEnum,
    Double,
    Float,
    Integer,
    Long,
    Map,
    Record,
    String,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MISSING: Any = object()
# The one class whose instances are values of the field as they are.
_PLAIN: dict[type, str] = {
    Boolean: "bool",
    Integer: "int",
    Long: "int",
    Float: "float",
    Double: "float",
    String: "str",
}


def plan_of(record_cls: type[Record]) -> RecordPlan:
    """Any thread may call; two that come first at once make it twice."""
    found: RecordPlan | None = record_cls.__dict__.get("_plan")  # not that of a base class
    if found is None:
        found = record_cls._plan = RecordPlan(record_cls)
    return found


class RecordPlan:
    """The functions of one record class. A value; made by `plan_of`."""

    __slots__ = ("from_avro", "from_json", "to_avro")

    def __init__(self, record_cls: type[Record]) -> None:
        """from_json: a record of what JSON gave. to_avro: what fastavro writes, which may be the
        record's own dict. from_avro: a record of what fastavro read."""
        self.from_json: Callable[[Any], Record] = _from_json(record_cls)
        self.to_avro: Callable[[Record], dict[str, Any]] = _to_avro(record_cls, None)
        self.from_avro: Callable[[dict[str, Any]], Record] = _from_avro(record_cls)


def json_fallback(value: object) -> Any:
    """Return what JSON writes for a value it does not know: `default` of an encoder."""
    if isinstance(value, Record):
        return {name: value.__dict__[name] for name in value._fields if name in value.__dict__}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, bytes):
        return value.decode()
    raise TypeError(f"{value!r:.80} of type {type(value).__name__} cannot be written as JSON")


def _compiled(source: list[str], names: dict[str, Any]) -> Any:
    exec("\n".join(source), names)  # made of the names of fields alone, by repr
    return names["function"]


def _of_items(
    field: Any, converter_of: Callable[[Any], Callable[[Any], Any] | None]
) -> Callable[[Any], Any] | None:
    """Make the function that converts the items of an array or the values of a map; None: nothing
    to do. Anything but a list or a dict is left as it is, for the field to refuse."""
    if not isinstance(field, Array | Map):
        return None
    convert = converter_of(field.item)
    if convert is None:
        return None
    if isinstance(field, Array):
        return lambda value: [convert(each) for each in value] if _is_list(value) else value
    return lambda value: {k: convert(v) for k, v in value.items()} if _is_dict(value) else value


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_dict(value: object) -> bool:
    return isinstance(value, dict)


# JSON ---------------------------------------------------------------------------------------------


def _from_json(record_cls: type[Record]) -> Callable[[Any], Record]:
    names: dict[str, Any] = {"cls": record_cls, "new": object.__new__, "MISSING": _MISSING}
    source = [
        "def function(found):",
        " if found.__class__ is not dict: raise TypeError("
        "f'Invalid JSON for {cls.__name__}: an object is expected, not {found!r:.80}')",
        " record = new(cls)",
        " values = record.__dict__",
        " get = found.get",
    ]
    for number, (name, field) in enumerate(record_cls._fields.items()):
        names[f"take_{number}"] = _json_taker(name, field)
        source.append(f" value = get({name!r}, MISSING)")
        plain = _PLAIN.get(type(field))
        if plain is None:
            source.append(f" values[{name!r}] = take_{number}(value)")
        else:
            source.append(
                f" values[{name!r}] = value if value.__class__ is {plain} else take_{number}(value)"
            )
    source.append(" return record")
    found: Callable[[Any], Record] = _compiled(source, names)
    return found


def _json_taker(name: str, field: Any) -> Callable[[Any], Any]:
    """The value of a field from what JSON has under its name, or has not."""
    convert = _json_converter(field)

    def take(value: Any) -> Any:
        if value is _MISSING:
            return field.default_value()
        if convert is not None and value is not None:
            value = convert(value)
        return field.validate_type(name, value)

    return take


def _json_converter(field: Any) -> Callable[[Any], Any] | None:
    """Make the function that turns a value of JSON into one that the field takes; None: nothing to
    do. A value of another kind is left to the field to refuse."""
    if isinstance(field, Record):
        from_json = plan_of(type(field)).from_json
        return lambda value: from_json(value) if _is_dict(value) else value
    if isinstance(field, Bytes):
        return lambda value: value.encode() if isinstance(value, str) else value
    return _of_items(field, _json_converter)


# Avro ---------------------------------------------------------------------------------------------


def _to_avro(record_cls: type[Record], enclosing: str | None) -> Callable[[Record], dict[str, Any]]:
    """enclosing: the namespace around it, which is its own where it has none."""
    namespace = record_cls._avro_namespace or enclosing
    names: dict[str, Any] = {}
    changed = []
    for number, (name, field) in enumerate(record_cls._fields.items()):
        convert = _avro_writer(field, namespace)
        if convert is None:
            continue
        names[f"write_{number}"] = convert
        value = f"write_{number}(value)"
        if not field._required:
            # Naming the branch of the union spares fastavro to try them.
            if isinstance(field, Record):
                value = f"({_full_name(type(field), namespace)!r}, {value})"
        changed.append(f"{name!r}: None if (value := get({name!r})) is None else {value}")
    if not changed:
        return lambda record: record.__dict__
    source = [
        "def function(record):",
        " values = record.__dict__",
        " get = values.get",
        f" return {{**values, {', '.join(changed)}}}",
    ]
    found: Callable[[Record], dict[str, Any]] = _compiled(source, names)
    return found


def _full_name(record_cls: type[Record], enclosing: str | None) -> str:
    namespace = record_cls._avro_namespace or enclosing
    return record_cls.__name__ if namespace is None else f"{namespace}.{record_cls.__name__}"


def _avro_writer(field: Any, namespace: str | None) -> Callable[[Any], Any] | None:
    """Make the function that turns a value of the field into what fastavro writes; None: nothing to
    do."""
    if isinstance(field, Record):
        return _to_avro(type(field), namespace)
    if isinstance(field, CustomEnum):
        return _name_of
    return _of_items(field, lambda item: _avro_writer(item, namespace))


def _name_of(value: Any) -> Any:
    return value.name if isinstance(value, Enum) else value


def _from_avro(record_cls: type[Record]) -> Callable[[dict[str, Any]], Record]:
    names: dict[str, Any] = {"cls": record_cls, "new": object.__new__}
    source = [
        "def function(found):",
        " record = new(cls)",
        " values = record.__dict__",
        " values.update(found)",
    ]
    for number, (name, field) in enumerate(record_cls._fields.items()):
        convert = _avro_reader(field)
        if convert is not None:
            names[f"read_{number}"] = convert
            source.append(f" value = found[{name!r}]")
            source.append(f" if value is not None: values[{name!r}] = read_{number}(value)")
        if isinstance(field, Boolean) and not field._required:
            names[f"default_{number}"] = field.default()
            source.append(f" if found[{name!r}] is None: values[{name!r}] = default_{number}")
    source.append(" return record")
    found: Callable[[dict[str, Any]], Record] = _compiled(source, names)
    return found


def _avro_reader(field: Any) -> Callable[[Any], Any] | None:
    """Make the function that turns what fastavro read into a value of the field; None: nothing to
    do."""
    if isinstance(field, Record):
        return plan_of(type(field)).from_avro
    if isinstance(field, CustomEnum):
        members = field.enum_type.__members__
        return members.__getitem__
    return _of_items(field, _avro_reader)
