"""Avro's rules of resolution: whether data of one definition can be read with another.

As Pulsar's broker applies them, which asks Avro's `SchemaValidator`. Two things follow from that
which the text of the specification would not say: a record is matched by its fields and not by its
name, and an enumeration that lost symbols passes, because only data can tell whether they are in
use.
Source: Avro's Resolver; the cases in tests/schema/compatibility.json were tried on a broker.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.schemas.avro_definition import AvroDefinition, AvroField, AvroType

# Written: what it may be read as, besides itself.
_PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double"),
    "float": ("double",),
    "string": ("bytes",),
    "bytes": ("string",),
}


# Records within records: far beyond what people write, and far below what a stack holds.
_DEPTH_MAX = 100
# Types compared with types: a definition of 1 MB has some 20,000. Two unions of thousands of
# records would be compared each with each, for minutes in which nobody else commits.
_COUNT_MAX = 200_000


def why_unreadable(written: AvroDefinition, reader: AvroDefinition) -> str | None:
    """Why data of one definition cannot be read with another; None: it can.

    ValueError: they refer to each other too deep, or are too large, to be compared.
    """
    return _Resolution().why(written.type, reader.type)


class _Resolution:
    """One comparison. A pair that is being compared counts as readable, so recursive types end."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], str | None] = {}  # by the ids of two records
        self._depth = 0
        self._count = 0

    def _counted(self, pairs: int) -> None:
        """ValueError: with so many more they are too many."""
        self._count += pairs
        if self._count > _COUNT_MAX:
            raise ValueError(
                f"definitions too large to compare: more than {_COUNT_MAX} pairs of their types"
            )

    def why(self, written: AvroType, reader: AvroType) -> str | None:
        self._counted(1)
        if written.kind == "union":
            for branch in written.branches:
                found = self.why(branch, reader)
                if found is not None:
                    return found
            return None
        if written.kind == reader.kind:
            return self._why_of_kind(written, reader)
        if reader.kind == "union":
            return self._why_of_union(written, reader)
        if reader.kind in _PROMOTIONS.get(written.kind, ()):
            return None
        return f"{_said(written)} cannot be read as {_said(reader)}"

    def _why_of_kind(self, written: AvroType, reader: AvroType) -> str | None:
        if written.kind == "record":
            pair = (id(written), id(reader))
            if pair not in self._found:
                if self._depth == _DEPTH_MAX:
                    raise ValueError("definitions that refer to each other too deep to compare")
                self._found[pair] = None
                self._depth += 1
                self._found[pair] = self._why_of_fields(written, reader)
                self._depth -= 1
            return self._found[pair]
        if written.kind in ("array", "map"):
            assert written.item is not None and reader.item is not None
            return self.why(written.item, reader.item)
        if written.kind in ("enum", "fixed") and not _same_name(written, reader):
            return f"{_said(written)} cannot be read as {_said(reader)}: the names differ"
        if written.size != reader.size:
            return f"{_said(written)} has {written.size} bytes, and its reader wants {reader.size}"
        return None

    def _why_of_fields(self, written: AvroType, reader: AvroType) -> str | None:
        there = {field.name: field for field in written.fields}
        for field in reader.fields:
            match = _match(there, field)
            if match is None:
                if not field.has_default:
                    return (
                        f"field {field.name} of {reader.full_name} has no default, and is not in "
                        "what was written"
                    )
                continue
            found = self.why(match.type, field.type)
            if found is not None:
                return f"field {field.name} of {reader.full_name}: {found}"
        return None

    def _why_of_union(self, written: AvroType, reader: AvroType) -> str | None:
        exact = reader.branch_of(written)
        if exact is not None:
            return self.why(written, exact)
        self._counted(len(reader.branches))
        for branch in (each for each in reader.branches if each.kind == written.kind):
            if self.why(written, branch) is None:
                return None
        for branch in reader.branches:
            if branch.kind in _PROMOTIONS.get(written.kind, ()):
                return None
        return f"{_said(written)} is in no branch of {_said(reader)}"


def _match(there: dict[str, AvroField], field: AvroField) -> AvroField | None:
    for name in (field.name, *field.aliases):
        if name in there:
            return there[name]
    return None


def _same_name(written: AvroType, reader: AvroType) -> bool:
    return written.short_name == reader.short_name or written.full_name in reader.aliases


def _said(one: AvroType) -> str:
    if one.kind == "union":
        return f"[{', '.join(map(_said, one.branches))}]"
    return f"{one.kind} {one.full_name}" if one.full_name else one.kind
