"""Gives the records of one Avro definition the names that they have in another. Called by
`avro_schema`: fastavro matches records by their names, while Pulsar's check of compatibility and
Avro in Java match them by their fields.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def with_names_of(wanted: Any, written: Any) -> Any:
    """The wanted definition, in which each record has as aliases the names under which the written
    one has the records that are read as it. Both as fastavro keeps them; to be parsed again.

    In a union of several records only that of the same name is matched.
    """
    aliases = _Matches(wanted, written).aliases
    return _with_aliases(wanted, aliases) if aliases else wanted


class _Matches:
    """Walks over two definitions at once."""

    def __init__(self, wanted: Any, written: Any) -> None:
        self.aliases: dict[str, list[str]] = {}  # of records of wanted
        self._seen: set[tuple[str, str]] = set()
        self._wanted = {each["name"]: each for each in _records(wanted)}
        self._written = {each["name"]: each for each in _records(written)}
        self._match(wanted, written)

    def _match(self, wanted: Any, written: Any) -> None:
        wanted, written = _of_name(wanted, self._wanted), _of_name(written, self._written)
        if isinstance(written, list):
            for branch in written:
                self._match(wanted, branch)
            return
        if isinstance(wanted, list):
            wanted = self._branch_of(wanted, written)
        if _kind(wanted) != _kind(written):
            return
        if _kind(wanted) == "record":
            self._match_records(wanted, written)
        elif _kind(wanted) == "array":
            self._match(wanted["items"], written["items"])
        elif _kind(wanted) == "map":
            self._match(wanted["values"], written["values"])

    def _branch_of(self, union: list[Any], written: Any) -> Any:
        alike = [_of_name(each, self._wanted) for each in union]
        alike = [each for each in alike if _kind(each) == _kind(written)]
        if _kind(written) == "record":
            name = _short(written["name"])
            same = [each for each in alike if _short(each["name"]) == name]
            alike = same or alike
        return alike[0] if len(alike) == 1 else None

    def _match_records(self, wanted: Any, written: Any) -> None:
        names = wanted["name"], written["name"]
        if names in self._seen:
            return
        self._seen.add(names)
        if _short(names[0]) != _short(names[1]):
            self.aliases.setdefault(names[0], []).append(names[1])
        there = {each["name"]: each["type"] for each in written["fields"]}
        for each in wanted["fields"]:
            if each["name"] in there:
                self._match(each["type"], there[each["name"]])


def _kind(definition: Any) -> Any:
    return definition["type"] if isinstance(definition, dict) else definition


def _of_name(definition: Any, records: dict[str, Any]) -> Any:
    while isinstance(definition, dict) and not isinstance(definition["type"], str):
        definition = definition["type"]
    return records.get(definition, definition) if isinstance(definition, str) else definition


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _records(definition: Any) -> Iterator[Any]:
    """Yield the records that are defined in it."""
    if isinstance(definition, list):
        for each in definition:
            yield from _records(each)
    elif isinstance(definition, dict):
        if definition["type"] == "record":
            yield definition
            for each in definition["fields"]:
                yield from _records(each["type"])
        for part in ("type", "items", "values"):
            yield from _records(definition.get(part))


def _with_aliases(definition: Any, aliases: dict[str, list[str]]) -> Any:
    """A copy without what fastavro has noted in it."""
    if isinstance(definition, list):
        return [_with_aliases(each, aliases) for each in definition]
    if not isinstance(definition, dict):
        return definition
    found = {key: value for key, value in definition.items() if not key.startswith("__")}
    for part in ("type", "items", "values"):
        if part in found:
            found[part] = _with_aliases(found[part], aliases)
    if found["type"] == "record":
        found["fields"] = [
            each | {"type": _with_aliases(each["type"], aliases)} for each in found["fields"]
        ]
        if found["name"] in aliases:
            found["aliases"] = [*found.get("aliases", []), *aliases[found["name"]]]
    return found
