"""`Client.sql`: a query in which topics are tables."""

from __future__ import annotations

import json

import duckdb

from pulsarx import errors
from pulsarx.tables.dataset import TopicDataset, folded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pulsarx.tables.read_options import ScanOptions


def query(client: Any, text: str, params: Any, options: ScanOptions) -> Any:
    """The relation of a query, on a connection of its own, which it keeps. OperationNotSupported:
    see TopicDataset, and check_topics."""
    connection = duckdb.connect(":memory:")
    missing = []
    topics: list[str] = []
    for name in sorted(_tables_of(connection, text)):
        try:
            scan = client.scan(name, **options)
        except (errors.TopicNotFound, errors.InvalidTopicName):
            missing.append(name)  # a file, a variable of the caller, or a mistake
            continue
        check_topics([*topics, name])
        topics.append(name)
        connection.register(name, TopicDataset(scan.read))
    # Else the variables of this frame alone are looked at.
    connection.execute("SET python_scan_all_frames = true").fetchall()
    try:
        return connection.sql(text, params=params)
    except duckdb.CatalogException as error:
        if missing:
            error.add_note(f"there is no topic {' or '.join(missing)}")
        raise


def check_topics(names: list[str]) -> None:
    """OperationNotSupported: two topics of a query are one table by name for DuckDB."""
    found: dict[bytes, str] = {}
    for name in names:
        other = found.setdefault(folded(name), name)
        if other != name:
            raise errors.OperationNotSupported(
                detail=f"sql: the topics {other} and {name} differ in capitals alone, which DuckDB "
                "does not tell apart: give one of them another name, with "
                f"scan({name!r}).to_duckdb(connection).create_view(...)"
            )


def _tables_of(connection: Any, text: str) -> set[str]:
    """The names of the tables in a query. OperationNotSupported: DuckDB does not tell them."""
    asked = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [text])
    [[found]] = asked.fetchall()  # to the end, or the connection is not free
    tree = json.loads(found)
    if not tree["error"]:
        return set(_names_in(tree))
    try:  # no SELECT; here there may be no parameters
        return set(connection.get_table_names(text))
    except (duckdb.InvalidInputException, duckdb.BinderException) as error:
        raise errors.OperationNotSupported(
            detail=f"sql: the topics in {text!r:.200} are not found, as DuckDB does not tell the "
            f"tables of such a statement ({error}): query scan(topic).to_duckdb()"
        ) from error


def _names_in(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        if tree.get("type") == "BASE_TABLE" and not tree["schema_name"]:
            yield tree["table_name"]
        tree = list(tree.values())
    for each in tree if isinstance(tree, list) else ():
        yield from _names_in(each)
