"""`pulsarx sql`: queries over the messages of topics, by DuckDB, as docs/sql.md does it."""

from __future__ import annotations

from pulsarx.cli.command import DURATION, command
from pulsarx.cli.declared import Choice, UsageError, Whole, argument, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.cli.folder import Folder
    from pulsarx.client import Client

_ROWS_AT_ONCE = 1000


@command("pulsarx sql 'SELECT customer, sum(amount) FROM orders GROUP BY customer'")
@argument("query")
@option(
    "--last", type=Whole(min=1), help="Only so many messages of each topic, the newest; else all."
)
@option("--since", type=DURATION, help="Only messages of the time since then: 90s, 100m, 3h, 2d.")
@option(
    "--tombstones",
    type=Choice(("raise", "null", "skip")),
    default="raise",
    show_default=True,
    help="A message without a value is an error, a row of nulls, or left out.",
)
def sql(folder: Folder, query: str, last: int | None, since: int | None, tombstones: str) -> None:
    """Query topics with SQL, each a table of its messages.

    A topic is named as a table is; one of another namespace in double quotes:
    "tenant/namespace/topic". Its columns are the fields of the values, and __message_id__, __key__,
    __publish_time__, __event_time__ and __properties__. Messages are read and stay as they are. The
    query is run by DuckDB (extra sql).
    """
    from pulsarx.ground.extras import optional_module

    duckdb = optional_module("duckdb", "sql", "pulsarx sql")
    optional_module("pyarrow", "sql", "pulsarx sql")
    from pulsarx.tables.sql import check_topics

    more: dict[str, Any] = {"last": last, "tombstones": tombstones}
    if since is not None:
        more["start"] = _ago(since)
    # Nothing but the topics: no file and no address is read by a query.
    with duckdb.connect(config={"enable_external_access": "false"}) as database:
        tables = _tables(database, query)
        with folder.reading() as client:
            for number, each in enumerate(tables, 1):
                table = _table(folder, client, each, more)
                check_topics(tables[:number])
                database.register(each, table)
        try:
            result = database.execute(query)
            columns = [each[0] for each in result.description or ()]
            _print(folder, result, columns)
        except duckdb.Error as error:
            raise UsageError(_told(error)) from None


def _tables(database: Any, query: str) -> list[str]:
    """Return the tables that a query names, which are topics. UsageError: it is none."""
    import json

    [(text,)] = database.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
    found = json.loads(text)
    if found["error"]:
        raise UsageError(f"{found['error_type']} error: {found['error_message']}")
    tables: dict[str, None] = {}
    own: set[str] = set()  # of the query itself, by WITH
    left = [found]
    while left:
        node = left.pop()
        if isinstance(node, list):
            left += node
        elif isinstance(node, dict):
            left += node.values()
            if node.get("type") == "BASE_TABLE":
                parts = (node.get("catalog_name"), node.get("schema_name"), node["table_name"])
                tables[".".join(each for each in parts if each)] = None
            own |= {each["key"] for each in node.get("cte_map", {}).get("map", ())}
    return [each for each in tables if each not in own]


def _table(folder: Folder, client: Client, name: str, more: dict[str, Any]) -> Any:
    from pulsarx.tables.dataset import check_names
    from pulsarx.tables.reading import METADATA

    folder.asked_topic = name
    with folder.output.bar(f"Reading {name}") as told:
        table = client.read_table(name, metadata=METADATA, progress=told, **more)
    check_names(table.schema, name)
    return table


def _ago(seconds: int) -> int:
    from pulsarx.clock import SystemClock

    if seconds < 0:
        raise UsageError("a time to go back to is 0 or more", "--since")
    return max(0, SystemClock().now_ms() - seconds * 1000)


def _told(error: Exception) -> str:
    return str(error).strip()


def _print(folder: Folder, result: Any, columns: list[str]) -> None:
    if folder.output.is_table:
        _rows(folder, result.fetchall(), columns)
        return
    while found := result.fetchmany(_ROWS_AT_ONCE):
        _rows(folder, found, columns)
    folder.output.flush()


def _rows(folder: Folder, found: list[tuple[Any, ...]], columns: list[str]) -> None:
    """Columns may have one name; the later ones get a number."""
    names: list[str] = []
    for each in columns:
        number, name = 2, each
        while name in names:
            name, number = f"{each}_{number}", number + 1
        names.append(name)
    rows = [dict(zip(names, (_plain(value) for value in each))) for each in found]
    folder.output.rows(names, rows)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: a message id as its text, times in ISO 8601, a decimal as its
    text, bytes as text or base64."""
    from datetime import date, datetime, time, timedelta
    from decimal import Decimal
    from uuid import UUID

    if isinstance(value, dict):
        if value.keys() == {"ledger_id", "entry_id", "partition", "batch_index"}:
            return ":".join(str(each) for each in value.values())
        return {str(_plain(key)): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, timedelta | Decimal | UUID):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _text(bytes(value))
    if (isinstance(value, float) and value != value) or value in (float("inf"), float("-inf")):
        return str(value)
    return value


def _text(data: bytes) -> str:
    from pulsarx.cli.output import text_of

    return text_of(data)[0]
