"""Definitions of Avro, checked and taken apart. Untrusted text, bounded in size and depth.

AVRO, JSON and PROTOBUF schemas are defined by them. fastavro is not asked: a broker has to compare
definitions where nothing but PulsarX is installed.
"""

from __future__ import annotations

import json
from hashlib import sha256
from re import compile as compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

DEFINITION_SIZE_MAX = 1 << 20
_DEPTH_MAX = 100  # of one definition inside another
PRIMITIVES = frozenset(
    ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
)  # fmt: skip
_NAMED = ("record", "error", "enum", "fixed")
_IS_NAME = compiled("[A-Za-z_][A-Za-z0-9_]*").fullmatch
# They say nothing about the data.
_SILENT = frozenset(("doc", "aliases"))


class AvroField:
    """A field of a record. Immutable by custom."""

    __slots__ = ("aliases", "has_default", "name", "type")

    def __init__(self, name: str, type: AvroType, has_default: bool, aliases: list[str]) -> None:
        self.name: str = name
        self.type: AvroType = type
        self.has_default: bool = has_default
        self.aliases: list[str] = aliases


class AvroType:
    """A type, and what it is made of. Immutable once the definition is read."""

    __slots__ = ("_by_name", "aliases", "branches", "fields", "full_name", "item", "kind", "size")

    def __init__(self, kind: str, full_name: str = "") -> None:
        self.kind: str = kind
        self.full_name: str = full_name  # of a record, enum or fixed
        self.aliases: list[str] = []  # full names
        self.fields: list[AvroField] = []
        self.item: AvroType | None = None  # of an array or map
        self.branches: list[AvroType] = []
        self.size: int = 0
        self._by_name: dict[str, AvroType] = {}  # of branches, which are told apart by that

    def add_branch(self, branch: AvroType) -> bool:
        """False: a union has one such branch already."""
        name = branch.full_name or branch.kind
        if name in self._by_name:
            return False
        self._by_name[name] = branch
        self.branches.append(branch)
        return True

    def branch_of(self, written: AvroType) -> AvroType | None:
        """The branch of a union that has the kind and the name of what was written."""
        found = self._by_name.get(written.full_name or written.kind)
        return found if found is not None and found.kind == written.kind else None

    @property
    def short_name(self) -> str:
        return self.full_name.rpartition(".")[2]


_PRIMITIVE_TYPES = {kind: AvroType(kind) for kind in PRIMITIVES}


class AvroDefinition:
    """A definition as text said it. A value.

    identity: what is equal of two definitions that differ in white space, in the order of keys, in
    documentation or aliases alone, as it is for Pulsar's broker.
    """

    __slots__ = ("identity", "type")

    def __init__(self, text: str) -> None:
        """ValueError: it is none, or too large."""
        if len(text) > DEFINITION_SIZE_MAX:
            raise ValueError(
                f"a definition of {len(text)} characters; at most {DEFINITION_SIZE_MAX} are allowed"
            )
        try:
            document = json.loads(text)
            self.type: AvroType = _Reader().type_of(document, "", 0)
            spoken = json.dumps(_spoken(document), sort_keys=True)
        except ValueError as error:
            raise ValueError(f"no definition of Avro: {error}") from error
        except RecursionError as error:
            raise ValueError("no definition of Avro: it is nested too deep") from error
        if self.type.kind == "union":
            raise ValueError("no definition of Avro that a topic may have: a union at its root")
        self.identity: str = sha256(spoken.encode()).hexdigest()


class _Reader:
    """Reads one definition; the names in it are known from where they are defined on."""

    def __init__(self) -> None:
        self.named: dict[str, AvroType] = {}

    def type_of(self, document: Any, namespace: str, depth: int) -> AvroType:
        if depth > _DEPTH_MAX:
            raise ValueError(f"it is nested deeper than {_DEPTH_MAX}")
        if isinstance(document, str):
            return self._referred(document, namespace)
        if isinstance(document, list):
            return self._union(document, namespace, depth)
        if not isinstance(document, dict):
            _refuse(document, "is no type")
        kind = document.get("type")
        if not isinstance(kind, str):
            _refuse(document, "has no type that is a text")
        if kind in _NAMED:
            return self._named_type(kind, document, namespace, depth)
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in document:
                _refuse(document, f"has no {key}")
            made = AvroType(kind)
            made.item = self.type_of(document[key], namespace, depth + 1)
            return made
        return self._referred(kind, namespace)

    def _referred(self, name: str, namespace: str) -> AvroType:
        primitive = _PRIMITIVE_TYPES.get(name)
        if primitive is not None:
            return primitive
        full_name = name if "." in name or not namespace else f"{namespace}.{name}"
        found = self.named.get(full_name)
        if found is None:
            raise ValueError(f"{name!r:.200} is neither a type nor defined before")
        return found

    def _union(self, document: list[Any], namespace: str, depth: int) -> AvroType:
        made = AvroType("union")
        for each in document:
            branch = self.type_of(each, namespace, depth + 1)
            if branch.kind == "union":
                _refuse(document, "has a union in a union")
            if not made.add_branch(branch):
                _refuse(document, f"has {branch.full_name or branch.kind} twice")
        return made

    def _named_type(
        self, kind: str, document: dict[str, Any], namespace: str, depth: int
    ) -> AvroType:
        name = document.get("name")
        own_namespace = document.get("namespace", namespace)
        if not isinstance(name, str) or not isinstance(own_namespace, str):
            _refuse(document, "has no name, or a namespace that is no text")
        if "." in name:
            own_namespace, _, name = name.rpartition(".")
        full_name = f"{own_namespace}.{name}" if own_namespace else name
        for part in full_name.split("."):
            _check_name(part)
        if full_name in self.named:
            raise ValueError(f"{full_name} is defined twice")
        made = AvroType("record" if kind == "error" else kind, full_name)
        made.aliases = [
            each if "." in each or not own_namespace else f"{own_namespace}.{each}"
            for each in _texts(document, "aliases")
        ]
        self.named[full_name] = made
        if made.kind == "record":
            self._read_fields(made, document, own_namespace, depth)
        elif kind == "enum":
            _check_symbols(document)
        else:
            size = document.get("size")
            if size.__class__ is not int or size < 0:
                _refuse(document, "has no size from 0 up")
            made.size = size
        return made

    def _read_fields(
        self, made: AvroType, document: dict[str, Any], namespace: str, depth: int
    ) -> None:
        fields = document.get("fields")
        if not isinstance(fields, list):
            _refuse(document, "has no list of fields")
        names = set()
        for each in fields:
            if not isinstance(each, dict) or "type" not in each:
                _refuse(each, "is no field with a type")
            name = each.get("name")
            if not isinstance(name, str):
                _refuse(each, "is no field with a name")
            _check_name(name)
            if name in names:
                raise ValueError(f"{made.full_name} has the field {name} twice")
            names.add(name)
            kind = self.type_of(each["type"], namespace, depth + 1)
            made.fields.append(
                AvroField(name, kind, "default" in each, _texts(each, "aliases"))
            )  # fmt: skip


def _check_name(name: str) -> None:
    if not _IS_NAME(name):
        raise ValueError(f"{name!r:.200} is no name: letters, digits and _ are allowed")


def _check_symbols(document: dict[str, Any]) -> None:
    symbols = document.get("symbols")
    if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
        _refuse(document, "has no list of symbols")
    for each in symbols:
        _check_name(each)
    if len(set(symbols)) != len(symbols):
        _refuse(document, "has a symbol twice")
    if "default" in document and document["default"] not in symbols:
        _refuse(document, "has a default that is no symbol")


def _texts(document: dict[str, Any], key: str) -> list[str]:
    found = document.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        _refuse(document, f"has {key} that are no list of texts")
    return list(found)


def _refuse(document: Any, why: str) -> NoReturn:
    raise ValueError(f"{document!r:.200} {why}")


def _spoken(document: Any) -> Any:
    """A definition without what says nothing about the data."""
    if isinstance(document, list):
        return [_spoken(each) for each in document]
    if not isinstance(document, dict):
        return document
    found = {}
    for key, value in document.items():
        if key in _SILENT:
            continue
        is_definition = key in ("type", "items", "values", "fields")
        found[key] = _spoken(value) if is_definition else value
    return found
