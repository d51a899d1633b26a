"""Records, and dicts, as Avro. Needs the package fastavro: `pip install 'pulsarx[avro]'`."""

from __future__ import annotations

from io import BytesIO

from pulsarx.enumerations import SchemaType
from pulsarx.errors import shown
from pulsarx.schema.avro_names import with_names_of
from pulsarx.schema.schema import Schema, SchemaInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_HINT = "Avro needs the package fastavro, which is not installed: pip install 'pulsarx[avro]'"


class AvroSchema(Schema["Any"]):
    """A record class, or a definition for dicts, whose values travel as Avro without a header.

    What was written with another version of the topic's schema is resolved into this one by
    Avro's rules; see `Message.value()`. Of a class that is no Record its `schema()` is the
    definition, and the attributes of an object are what is written.
    """

    def __init__(self, record_cls: Any, schema_definition: dict[str, Any] | None = None) -> None:
        """Make the schema of a record class, or of dicts.

        Args:
            record_cls: A class of records; None when values are dicts of the definition.
            schema_definition: The definition; a record class replaces it.

        Raises:
            ImportError: fastavro is missing.
            ValueError: The definition is not one of Avro.
            TypeError: record_cls does not describe itself.
            AssertionError: Neither is given.
        """
        fastavro = load_fastavro()
        definition: Any = schema_definition
        self._to_avro: Callable[[Any], Any] | None = None
        self._from_avro: Callable[[Any], Any] | None = None
        if record_cls is not None:
            from pulsarx.schema.definition import Record
            from pulsarx.schema.json_schema import described_class
            from pulsarx.schema.record_plan import plan_of

            record_cls = described_class(record_cls, "AvroSchema")
            definition = record_cls.schema()
            if issubclass(record_cls, Record):
                plan = plan_of(record_cls)
                self._to_avro, self._from_avro = plan.to_avro, plan.from_avro
            else:
                self._to_avro = lambda value: self.encode_dict(vars(value))
                self._from_avro = lambda found: record_cls(**found)
        elif definition is None:
            raise AssertionError(
                "The param record_cls and schema_definition shouldn't be both None."
            )
        super().__init__(record_cls or dict, SchemaType.AVRO, definition, "AVRO")
        self._schema = parsed(definition)
        self._write = fastavro.schemaless_writer
        self._read = _reader_of(self._schema)

    def encode(self, obj: Any) -> bytes:
        """Return the payload of a value.

        Args:
            obj: A record of the class, or a dict of the definition.

        Raises:
            TypeError: It is no record of the class.
            ValueError: It is no dict of the definition, or a value is out of bounds.
        """
        if self._to_avro is not None:
            if obj.__class__ is not self._record_cls:
                self._validate_object_type(obj)
            obj = self._to_avro(obj)
        elif not isinstance(obj, dict):
            raise ValueError("If using the custom schema, the record data should be dict type.")
        buffer = BytesIO()
        try:
            self._write(buffer, self._schema, obj)
        except OverflowError as error:
            raise ValueError(f"encode {shown(obj)} as Avro: {error}") from error
        return buffer.getvalue()

    def encode_dict(self, d: dict[str, Any]) -> dict[str, Any]:
        """Return a dict whose records became dicts and whose enumerations became names, at any
        depth.

        Args:
            d: The dict.
        """
        from pulsarx.schema.definition import plain_values

        found: dict[str, Any] = plain_values(d)
        return found

    def decode(self, data: bytes) -> Any:
        """Return the value of a payload that was written with this very definition.

        Args:
            data: The payload.

        Raises:
            ValueError: It is not of the definition.
        """
        return self._decoded(data, self._read, self._schema, None)

    def decoder(self, writer: SchemaInfo | None) -> Callable[[bytes], Any]:
        if writer is None or writer.schema() == self._schema_info.schema():
            return self.decode
        if writer.schema_type() != SchemaType.AVRO:
            raise ValueError(
                f"a message of a schema of type {writer.schema_type().name} cannot be read as AVRO"
            )
        import json

        written = parsed(json.loads(writer.schema()))
        wanted = parsed(with_names_of(self._schema, written))
        read = _reader_of(written, wanted)
        return lambda data: self._decoded(data, read, written, wanted)

    def _decoded(self, data: bytes, read: Any, written: Any, wanted: Any) -> Any:
        buffer = BytesIO(data)
        try:
            found = read(buffer, written, wanted)
        except (EOFError, LookupError, ValueError, TypeError, OverflowError) as error:
            raise self._not_of_it(data, f"{type(error).__name__} {error}".strip()) from error
        except Exception as error:
            # fastavro says like this that the definitions do not fit, and that it is too deep
            raise self._not_of_it(data, str(error)) from error
        if buffer.tell() != len(data):
            raise self._not_of_it(data, f"{len(data) - buffer.tell()} bytes are left")
        return found if self._from_avro is None else self._from_avro(found)

    def _not_of_it(self, data: bytes, why: str) -> ValueError:
        name = getattr(self._record_cls, "__name__", "dict")
        return ValueError(f"decode {len(data)} bytes of Avro as {name}: {why}")


def load_fastavro() -> Any:
    try:
        import fastavro
    except ImportError as error:
        raise ImportError(_HINT) from error
    return fastavro


def parsed(definition: Any) -> Any:
    """A definition as fastavro keeps it. ValueError: it is none."""
    try:
        # fastavro writes into what it is given, but for the outermost part
        return load_fastavro().parse_schema(definition)
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(f"no definition of Avro: {type(error).__name__} {error}") from error


def _reader_of(definition: Any, wanted: Any = None) -> Any:
    """Make the function that reads data of a definition as fastavro keeps it, and resolves it into
    wanted."""
    shape = _Shape(definition)
    if shape.is_unbounded:
        return _refuse
    passes_over = wanted is not None and not shape.fields <= _Shape(wanted).fields
    if shape.is_recursive or (shape.is_blind and passes_over):
        # Its native reader has no bound on the depth: data of some kilobytes ended the process. And
        # it passes over as many items as ten bytes say, though there are none: for years.
        from fastavro._read_py import schemaless_reader

        return schemaless_reader
    return load_fastavro().schemaless_reader


def _refuse(*_: object) -> None:
    """Ten bytes may stand for as many items as take all memory."""
    raise ValueError("an array whose items take no bytes may be of any length, and is not read")


class _Shape:
    """Finds out how long data of a definition, as fastavro keeps it, can take to read."""

    def __init__(self, definition: Any) -> None:
        self.is_recursive = False  # a record refers to one that it stands in
        self.is_unbounded = False  # an array has items that take no bytes
        self.is_blind = False  # an array has items whose end fastavro does not look for
        self.fields: set[tuple[str, str]] = set()  # names of records, without namespace, and fields
        self._around: set[str] = set()
        self._empty = {"null": True}  # by the names of types: whether a value takes no bytes
        self._blind = dict.fromkeys(("null", "boolean", "float", "double"), True)
        self._look(definition)

    def _look(self, definition: Any) -> bool:
        """Whether a value of it takes no bytes."""
        if isinstance(definition, str):
            self.is_recursive = self.is_recursive or definition in self._around
            return self._empty.get(definition, False)
        if isinstance(definition, list):
            for each in definition:
                self._look(each)
            return False
        kind = definition["type"]
        if kind in ("record", "error"):
            name = definition["name"]
            self._around.add(name)
            self.fields |= {
                (name.rpartition(".")[2], each["name"]) for each in definition["fields"]
            }
            looked = [self._look(each["type"]) for each in definition["fields"]]
            self._empty[name] = all(looked)
            self._blind[name] = all(self._is_blind(each["type"]) for each in definition["fields"])
            self._around.discard(name)
            return self._empty[name]
        if kind == "array":
            self.is_unbounded = self._look(definition["items"]) or self.is_unbounded
            self.is_blind = self._is_blind(definition["items"]) or self.is_blind
            return False
        if kind == "map":
            self._look(definition["values"])
            return False
        if kind == "fixed":
            self._empty[definition["name"]] = definition["size"] == 0
            self._blind[definition["name"]] = True
            return bool(definition["size"] == 0)
        return kind != "enum" and self._look(kind)

    def _is_blind(self, definition: Any) -> bool:
        """Whether fastavro does not look for the end of a value. `_look` has seen the
        definition."""
        if isinstance(definition, str):
            return self._blind.get(definition, False)
        if isinstance(definition, list):
            return False
        kind = definition["type"]
        if kind in ("record", "error", "fixed"):
            return self._blind.get(definition["name"], False)
        return self._is_blind(kind)
