"""`pulsarx sql`: topics as tables of DuckDB."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Owner, invoke, on_terminal, rows

import pulsarx

pytestmark = pytest.mark.standard
pytest.importorskip("duckdb", reason="it comes with the extra sql")
pytest.importorskip("pyarrow", reason="it comes with the extra sql")

ORDERS: list[dict[str, Any]] = [
    {"customer": "ada", "amount": 12.5},
    {"customer": "bob", "amount": 3.0},
    {"customer": "ada", "amount": 7.5},
]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    with pulsarx.Client(folder) as client:
        client.send_rows("bought", ORDERS, key="customer")
        client.admin.topics.create_partitioned_topic("paid", 2)
        producer = client.create_producer("paid")
        for each in ORDERS:
            producer.send(json.dumps(each).encode(), partition_key=each["customer"])
        client.admin.namespaces.create_namespace("public/other")
        client.send_rows("public/other/refunds", ORDERS[:1])
    return folder


def asked(folder: Path, query: str, *options: str) -> list[dict[str, Any]]:
    return rows(invoke(folder, "sql", query, *options))


def test_a_topic_is_a_table(shop: Path):
    query = "SELECT customer, sum(amount) AS total FROM bought GROUP BY ALL ORDER BY total DESC"
    assert asked(shop, query) == [
        {"customer": "ada", "total": 20.0},
        {"customer": "bob", "total": 3.0},
    ]


def test_topics_of_other_namespaces_are_quoted_and_can_be_joined(shop: Path):
    query = """
        SELECT count(*) AS n FROM bought
        JOIN "public/other/refunds" USING (customer) JOIN paid USING (customer)
    """
    assert asked(shop, query) == [{"n": 4}]
    query = """
        WITH paid AS (SELECT * FROM bought) SELECT count(*) AS n FROM paid WHERE EXISTS (FROM paid)
    """
    assert asked(shop, query) == [{"n": 3}]
    query = 'SELECT customer FROM "persistent://public/other/refunds"'
    assert asked(shop, query) == [{"customer": "ada"}]


def test_names_that_differ_in_capitals_alone_are_refused(shop: Path):
    with pulsarx.Client(shop) as client:
        client.send_rows("Bought", [{"amount": 1}])
        client.send_rows("odd", [{"A": 1, "a": 2}])
    found = invoke(shop, "sql", 'SELECT * FROM bought, "Bought" AS other')
    assert found.exit_code == 1 and "Bought and bought differ in capitals" in found.output
    found = invoke(shop, "sql", "SELECT a FROM odd")
    assert found.exit_code == 1 and "A and a differ in capitals" in found.output


def test_what_else_a_message_has_is_in_columns(shop: Path):
    query = """
        SELECT __message_id__ AS id, __key__, __properties__, __event_time__,
            __publish_time__ AS published FROM bought LIMIT 1
    """
    [found] = asked(shop, query)
    with pulsarx.Client(shop) as client:
        first = client.create_reader("bought", pulsarx.MessageId.earliest).read_next()
    assert found["id"] == ":".join(
        str(each)
        for each in (
            first.message_id().ledger_id(),
            first.message_id().entry_id(),
            first.message_id().partition(),
            first.message_id().batch_index(),
        )
    )
    assert found["__key__"] == "ada" and found["__properties__"] == {}
    assert found["published"].startswith("20") and found["__event_time__"] is None


def test_the_newest_messages_alone_are_read(shop: Path):
    assert asked(shop, "SELECT customer FROM bought", "--last", "1") == [{"customer": "ada"}]
    assert len(asked(shop, "SELECT customer FROM bought", "--since", "1h")) == 3


def test_a_message_without_a_value_is_what_is_asked_for(shop: Path):
    with pulsarx.Client(shop) as client:
        client.create_producer("bought", schema=pulsarx.schema.BytesSchema()).send(None)
    query = "SELECT count(*) AS n FROM bought"
    assert invoke(shop, "sql", query).exit_code == 2
    assert asked(shop, query, "--tombstones", "null") == [{"n": 4}]
    assert asked(shop, query, "--tombstones", "skip") == [{"n": 3}]


def test_values_that_json_has_not_are_texts(shop: Path):
    query = """
        SELECT 1.5::DECIMAL(4, 2) AS d, DATE '2026-01-02' AS day, 'x'::BLOB AS b,
            [1, 2] AS l, {'a': 1} AS s, 'nan'::DOUBLE AS n, 1 AS x, 2 AS x
    """
    assert asked(shop, query) == [
        {"d": "1.50", "day": "2026-01-02", "b": "x", "l": [1, 2], "s": {"a": 1}, "n": "nan",
         "x": 1, "x_2": 2}
    ]  # fmt: skip


def test_a_terminal_gets_a_table_and_a_spreadsheet_csv(shop: Path):
    query = "SELECT customer, amount FROM bought ORDER BY amount"
    _, shown = on_terminal(shop, "sql", query)
    assert "CUSTOMER" in shown and "bob" in shown
    result = invoke(shop, "sql", query, "--format", "csv")
    assert result.stdout == "customer,amount\nbob,3.0\nada,7.5\nada,12.5\n"


def test_it_reads_beside_the_owner_and_acknowledges_nothing(folder: Path, owner: Owner):
    owner.send('{"n": 1}')
    assert asked(folder, "SELECT n FROM orders", "--last", "1") == [{"n": 1}]
    [found] = rows(invoke(folder, "stats", "orders"))
    assert found["subscriptions"]["billing"]["msg_backlog"] == 6


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELEC 1", "syntax error"),
        ("DROP TABLE bought", "Only SELECT"),
        ("SELECT nothing FROM bought", "nothing"),
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled"),
    ],
)
def test_a_query_that_cannot_be_run_is_a_usage_error(shop: Path, query: str, told: str):
    result = invoke(shop, "sql", query)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_topic_that_is_not_there_is_named_with_the_one_that_is_meant(shop: Path):
    result = invoke(shop, "sql", "SELECT 1 FROM bougt")
    assert result.exit_code == 1
    assert "Did you mean 'bought'?" in result.stderr
