"""The columns of a topic as Spark sees them: names and types, in their order."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COLUMN_TYPES = {
    "value": "binary",
    "__key": "binary",
    "__topic": "string",
    "__messageId": "binary",
    "__publishTime": "timestamp",
    "__eventTime": "timestamp",
    "__messageProperties": "map<string,string>",
}


def column_names(columns: str | Sequence[str] | None) -> tuple[str, ...]:
    """None: all; "value, __key" as a list. ValueError: an unknown one, says the nearest."""
    if columns is None:
        return tuple(COLUMN_TYPES)
    if isinstance(columns, str):
        columns = [each.strip() for each in columns.split(",")]
    names = tuple(columns)
    for name in names:
        if name not in COLUMN_TYPES:
            raise ValueError(
                f"there is no column {name!r}{nearest(name, COLUMN_TYPES)} "
                f"Columns: {', '.join(COLUMN_TYPES)}"
            )
    if not names or len(set(names)) < len(names):
        raise ValueError(f"columns {', '.join(names)!r}: each must be named once, and one at least")
    return names


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that names what was probably meant."""
    import difflib

    near = difflib.get_close_matches(name, list(known), 1, 0.4)
    return f"; did you mean {near[0]!r}?" if near else "."


def columns_ddl(columns: Sequence[str]) -> str:
    """The schema of these columns as Spark's DDL."""
    return ", ".join(f"`{name}` {COLUMN_TYPES[name]}" for name in columns)
