"""Records: classes whose fields describe a schema. What `JsonSchema` and `AvroSchema` take.

    class Order(Record):
        customer = String(required=True)
        amount = Double()

Names, arguments, checks and messages are the official client's, and so is the definition that a
class generates: a field that is not required is `["null", type]`, its default stands in the
definition with required_default alone, `_avro_namespace` and `_sorted_fields` of a class count, and
fields of a base class are not inherited. Where the official client contradicts itself this module
does what it says: records do not share the default of a field, enumerations in arrays and maps have
a definition, and a bytes field takes bytes and str alone.
"""

from __future__ import annotations

from copy import deepcopy
from enum import Enum, EnumMeta

from pulsarx.errors import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, ClassVar


_STR = frozenset((str,))


def _said(kind: type | tuple[type, ...]) -> str:
    return kind.__name__ if isinstance(kind, type) else str(kind)


class RecordMeta(type):
    """Collects the fields of a record class, in the order they were written."""

    _fields: dict[str, Any]

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> RecordMeta:
        if bases:  # not Record itself
            fields: dict[str, Any] = {}
            for each, value in namespace.items():
                if isinstance(value, EnumMeta):
                    value = CustomEnum(value)  # type: ignore[arg-type]
                elif isinstance(value, RecordMeta):
                    value = value()
                if isinstance(value, Field | Record):
                    fields[each] = value
            namespace = {**namespace, **fields, "_fields": fields}
        return super().__new__(mcs, name, bases, namespace)


class Record(metaclass=RecordMeta):
    """Base of records. An instance holds values; one that stands in a class is a field, too."""

    _avro_namespace: ClassVar[str | None] = None
    _sorted_fields: ClassVar[bool] = False
    _fields: ClassVar[dict[str, Any]] = {}
    _plan: ClassVar[Any] = None  # see record_plan
    # As a field; an instance that holds values has nothing else in its __dict__.
    _default: ClassVar[Any] = None
    _required_default: ClassVar[bool] = False
    _required: ClassVar[bool] = False

    def __init__(
        self,
        default: Any = None,
        required_default: bool = False,
        required: bool = False,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Take the values of its fields; or, of a field in another class, its options.

        Args:
            default: In a field: what a record has that is not given one.
            required_default: In a field: the default stands in the definition.
            required: In a field: None is no value.
            *args: Ignored, as in the official client.
            **kwargs: Values by the names of the fields; a dict for one that is a record. Names that
                are no fields are passed over.

        Raises:
            TypeError: A value does not fit its field.
            AttributeError: It is Record itself.
        """
        if type(self) is Record:
            raise AttributeError("Record has no fields of its own; derive a class from it")
        if default is not None or required_default or required:
            object.__setattr__(self, "_default", default)
            object.__setattr__(self, "_required_default", required_default)
            object.__setattr__(self, "_required", required)
        values = self.__dict__
        for name, field in self._fields.items():
            if name in kwargs:
                values[name] = field.validate_type(name, field.made_of(kwargs[name]))
            else:
                values[name] = field.default_value()

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """Return the Avro definition."""
        found: dict[str, Any] = cls.schema_info(set())
        return found

    @classmethod
    def schema_info(cls, defined_names: set[str]) -> Any:
        """Return the Avro definition, or the name alone where it is defined already.

        Args:
            defined_names: Names of records and enumerations; its own is added.
        """
        namespace = cls._avro_namespace
        full_name = cls.__name__ if namespace is None else f"{namespace}.{cls.__name__}"
        if full_name in defined_names:
            return full_name
        defined_names.add(full_name)
        found: dict[str, Any] = {"type": "record", "name": cls.__name__}
        if namespace is not None:
            found["namespace"] = namespace
        found["fields"] = fields = []
        for name in sorted(cls._fields) if cls._sorted_fields else cls._fields:
            field = cls._fields[name]
            kind = field.schema_info(defined_names)
            described: dict[str, Any] = {"name": name}
            if field.required_default():
                described["default"] = field.definition_default()
            described["type"] = kind if field._required else ["null", kind]
            fields.append(described)
        return found

    def __setattr__(self, key: str, value: Any) -> None:
        field = self._fields.get(key)
        if field is None:
            raise AttributeError(f"Cannot set undeclared field {key} on record")
        self.__dict__[key] = field.validate_type(key, value)

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        mine, others = self.__dict__, other.__dict__
        return all(mine.get(name) == others.get(name) for name in self._fields)

    __hash__: None = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return str(_values_of(self))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in _values_of(self).items())
        return f"{type(self).__name__}({values})"

    # As a field -----------------------------------------------------------------------------------

    def type(self) -> str:
        """Return the name of the class."""
        return type(self).__name__

    def python_type(self) -> Any:
        """Return the class."""
        return type(self)

    def validate_type(self, name: str, val: Any) -> Any:
        """Return the value for a field of this class.

        Args:
            name: The name of the field, for the text of an error.
            val: A record, or None.

        Raises:
            TypeError: It is neither, or None where a value is required.
        """
        if val is None and not self._required:
            return self.default()
        if not isinstance(val, type(self)):
            raise TypeError(
                f"Invalid type '{type(val)}' for sub-record field '{name}'. "
                f"Expected: {type(self).__name__}"
            )
        return val

    def made_of(self, value: Any) -> Any:
        """Return a record of this class where a dict stands for one.

        Args:
            value: A dict, or anything else, which is returned.

        Raises:
            TypeError: A value of the dict does not fit its field.
        """
        return type(self)(**value) if isinstance(value, dict) else value

    def default(self) -> Any:
        """Return the default of the field."""
        return self._default

    def default_value(self) -> Any:
        """Return a record of its own for a field that is not given."""
        return type(self)() if self._default is None else deepcopy(self._default)

    def definition_default(self) -> Any:
        """Return the default as JSON."""
        return None if self._default is None else _json_value(self._default)

    def required_default(self) -> bool:
        """Tell whether the default stands in the definition."""
        return self._required_default


class Field:
    """Base of fields. Immutable by custom; one object may stand in several classes."""

    _TYPE: ClassVar[str]
    _PYTHON: ClassVar[Any]

    def __init__(
        self, default: Any = None, required: bool = False, required_default: bool = False
    ) -> None:
        """Make a field for a class of records.

        Args:
            default: What a record has that is not given a value.
            required: None is no value.
            required_default: The default stands in the definition.

        Raises:
            TypeError: The default does not fit.
        """
        if default is not None:
            default = self.validate_type("default", default)
        self._default = default
        self._required_default = required_default
        self._required = required

    def type(self) -> str:
        """Return the name of the field's type in Avro."""
        return self._TYPE

    def python_type(self) -> Any:
        """Return the class of its values, or several."""
        return self._PYTHON

    def validate_type(self, name: str, val: Any) -> Any:
        """Return the value as a record keeps it. None stands for the default where the type is a
        number, a string or a record, and for None elsewhere.

        Args:
            name: The name of the field, for the text of an error.
            val: The value.

        Raises:
            TypeError: The field has no such value.
        """
        if val is None and not self.__dict__.get("_required", False):
            return self.default()
        if not isinstance(val, self._PYTHON):
            raise TypeError(
                f"Invalid type '{type(val)}' for field '{name}'. Expected: {_said(self._PYTHON)}"
            )
        return val

    def made_of(self, value: Any) -> Any:
        """Return the value where dicts may stand for records.

        Args:
            value: A value of the field.
        """
        return value

    def default(self) -> Any:
        """Return the default; None: there is none."""
        return self.__dict__.get("_default")

    def default_value(self) -> Any:
        """Return the default for one record."""
        return self.default()

    def definition_default(self) -> Any:
        """Return the default as JSON."""
        return self.default()

    def required_default(self) -> bool:
        """Tell whether the default stands in the definition."""
        return self._required_default

    def schema(self) -> Any:
        """Return the definition of the field's type."""
        return self.schema_info(set())

    def schema_info(self, defined_names: set[str]) -> Any:
        """Return the definition of the field's type.

        Args:
            defined_names: Names of records and enumerations; those of the field are added.
        """
        return self._TYPE


class Null(Field):
    """None."""

    _TYPE = "null"
    _PYTHON = type(None)

    def validate_type(self, name: str, val: Any) -> None:
        if val is not None:
            raise TypeError(f"Field {name} is set to be None")


class Boolean(Field):
    """True or False; False is the default."""

    _TYPE = "boolean"
    _PYTHON = bool

    def default(self) -> bool:
        return bool(super().default())


class Integer(Field):
    """32 bits; Avro refuses more when it encodes."""

    _TYPE = "int"
    _PYTHON = int


class Long(Field):
    """64 bits; Avro refuses more when it encodes."""

    _TYPE = "long"
    _PYTHON = int


class Float(Field):
    """32 bits."""

    _TYPE = "float"
    _PYTHON = (float, int)


class Double(Field):
    """64 bits."""

    _TYPE = "double"
    _PYTHON = (float, int)


class Bytes(Field):
    """bytes; str is encoded as UTF-8."""

    _TYPE = "bytes"
    _PYTHON = (bytes, str)

    def validate_type(self, name: str, val: Any) -> Any:
        if val is None:  # the official client takes it where the field is required, too
            return None
        found = super().validate_type(name, val)
        return found.encode() if isinstance(found, str) else found

    def definition_default(self) -> Any:
        default = self.default()
        return None if default is None else default.decode("latin-1")


class String(Field):
    """str; bytes are decoded as UTF-8."""

    _TYPE = "string"
    _PYTHON = (str, bytes)

    def validate_type(self, name: str, val: Any) -> Any:
        if val is None and not self.__dict__.get("_required", False):
            return self.default()
        if not isinstance(val, str | bytes):
            raise TypeError(f"Invalid type '{type(val)}' for field '{name}'. Expected a string")
        return val.decode() if isinstance(val, bytes) else val


class CustomEnum(Field):
    """A member of an enumeration, or its name, or its value."""

    _TYPE = "enum"

    def __init__(
        self,
        enum_type: type[Enum],
        default: Any = None,
        required: bool = False,
        required_default: bool = False,
    ) -> None:
        """Make a field of an enumeration.

        Args:
            enum_type: The class of the enumeration.
            default: A member, its name or its value.
            required: None is no value.
            required_default: The default stands in the definition.

        Raises:
            TypeError: enum_type is no enumeration, or the default is none of it.
        """
        if not isinstance(enum_type, type) or not issubclass(enum_type, Enum):
            raise TypeError(f"{getattr(enum_type, '__name__', enum_type)} is not a valid Enum type")
        self.enum_type = enum_type
        self.values: dict[Any, Enum] = {each.value: each for each in enum_type}
        super().__init__(default, required, required_default)

    def python_type(self) -> type[Enum]:
        return self.enum_type

    def validate_type(self, name: str, val: Any) -> Any:
        if val is None:
            return None
        if isinstance(val, self.enum_type):
            return val
        members = self.enum_type.__members__
        kind = type(val)
        if kind is str:
            if val in members:
                return members[val]
            if val in self.values:
                return self.values[val]
            raise TypeError(
                f"Invalid enum value '{val}' for field '{name}'. Expected: {members.keys()}"
            )
        if kind is int:
            if val in self.values:
                return self.values[val]
            raise TypeError(
                f"Invalid enum value '{val}' for field '{name}'. Expected: {self.values.keys()}"
            )
        raise TypeError(
            f"Invalid type '{kind}' for field '{name}'. Expected: {self.enum_type.__name__}"
        )

    def definition_default(self) -> Any:
        default = self.default()
        return None if default is None else default.name

    def schema_info(self, defined_names: set[str]) -> Any:
        name = self.enum_type.__name__
        if name in defined_names:
            return name
        defined_names.add(name)
        return {"type": "enum", "name": name, "symbols": list(self.enum_type.__members__)}


class _Collection(Field):
    """Base of fields whose values hold values of one other field."""

    def __init__(
        self, item: Any, default: Any = None, required: bool = False, required_default: bool = False
    ) -> None:
        if isinstance(item, type):
            raise TypeError(f"Argument {item.__name__} is not a Record or a Field")
        if not isinstance(item, Field | Record):
            raise TypeError(f"Argument {shown(item)} is not a Record or a Field")
        self.item: Any = item
        self._makes_items = isinstance(item, Record | _Collection)
        kinds = item.python_type()
        self._exact = frozenset(kinds if isinstance(kinds, tuple) else (kinds,))
        super().__init__(default, required, required_default)

    def default_value(self) -> Any:
        default = self.default()
        return None if default is None else deepcopy(default)

    def definition_default(self) -> Any:
        return _json_value(self.default())

    def _check_items(
        self, name: str, values: Iterable[Any], refused: Callable[[str], TypeError]
    ) -> None:
        # One step for all of them, where none is of a subclass.
        if not self._exact.issuperset(map(type, values)):
            for each in values:
                self._item(name, each, refused)

    def _item(self, name: str, value: Any, refused: Callable[[str], TypeError]) -> Any:
        """A value as a record keeps it."""
        if isinstance(self.item, CustomEnum) and type(value) in (str, int):
            try:
                return self.item.validate_type(name, value)
            except TypeError:
                raise refused(name) from None
        if not isinstance(value, self.item.python_type()):
            raise refused(name)
        return value


class Array(_Collection):
    """A list of values of one field."""

    _TYPE = "array"
    _PYTHON = list

    def __init__(
        self,
        array_type: Any,
        default: Any = None,
        required: bool = False,
        required_default: bool = False,
    ) -> None:
        """Make a field of lists.

        Args:
            array_type: The field, or record, of the items.
            default: A list.
            required: None is no value.
            required_default: The default stands in the definition.

        Raises:
            TypeError: array_type is neither, or the default does not fit.
        """
        super().__init__(array_type, default, required, required_default)

    @property
    def array_type(self) -> Any:
        """The field of the items."""
        return self.item

    def validate_type(self, name: str, val: Any) -> Any:
        if val is None:
            return None
        super().validate_type(name, val)
        if isinstance(self.item, CustomEnum):
            return [self._item(name, each, self._refused) for each in val]
        self._check_items(name, val, self._refused)
        return val

    def _refused(self, name: str) -> TypeError:
        return TypeError(f"Array field {name} items should all be of type {self.item.type()}")

    def made_of(self, value: Any) -> Any:
        if self._makes_items and isinstance(value, list):
            return [self.item.made_of(each) for each in value]
        return value

    def schema_info(self, defined_names: set[str]) -> Any:
        return {"type": "array", "items": self.item.schema_info(defined_names)}


class Map(_Collection):
    """A dict of str to values of one field."""

    _TYPE = "map"
    _PYTHON = dict

    def __init__(
        self,
        value_type: Any,
        default: Any = None,
        required: bool = False,
        required_default: bool = False,
    ) -> None:
        """Make a field of dicts.

        Args:
            value_type: The field, or record, of the values.
            default: A dict.
            required: None is no value.
            required_default: The default stands in the definition.

        Raises:
            TypeError: value_type is neither, or the default does not fit.
        """
        super().__init__(value_type, default, required, required_default)

    @property
    def value_type(self) -> Any:
        """The field of the values."""
        return self.item

    def validate_type(self, name: str, val: Any) -> Any:
        if val is None:
            return None
        super().validate_type(name, val)
        if not _STR.issuperset(map(type, val)):
            for key in val:
                if not isinstance(key, str):
                    raise TypeError(f"Map keys for field {name}  should all be strings")
        if isinstance(self.item, CustomEnum):
            return {key: self._item(name, each, self._refused) for key, each in val.items()}
        self._check_items(name, val.values(), self._refused)
        return val

    def _refused(self, name: str) -> TypeError:
        kind = _said(self.item.python_type())
        return TypeError(f"Map values for field {name} should all be of type {kind}")

    def made_of(self, value: Any) -> Any:
        if self._makes_items and isinstance(value, dict):
            return {key: self.item.made_of(each) for key, each in value.items()}
        return value

    def schema_info(self, defined_names: set[str]) -> Any:
        return {"type": "map", "values": self.item.schema_info(defined_names)}


def _values_of(record: Record) -> dict[str, Any]:
    return {name: record.__dict__[name] for name in record._fields if name in record.__dict__}


def _json_value(value: Any) -> Any:
    """A default as it stands in a definition."""
    return _texts_of_bytes(plain_values(value))


def _texts_of_bytes(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, list):
        return [_texts_of_bytes(each) for each in value]
    if isinstance(value, dict):
        return {key: _texts_of_bytes(each) for key, each in value.items()}
    return value


def plain_values(value: Any) -> Any:
    """A value whose records became dicts and whose enumerations became names, at any depth."""
    if isinstance(value, Record):
        return {name: plain_values(each) for name, each in _values_of(value).items()}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, list):
        return [plain_values(each) for each in value]
    if isinstance(value, dict):
        return {key: plain_values(each) for key, each in value.items()}
    return value
