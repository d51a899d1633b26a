"""`Client.sql`: topics are tables by their names."""

from __future__ import annotations

import gc
from datetime import UTC, datetime
from typing import Any

import duckdb
import polars
import pytest

import pulsarx
from pulsarx import errors


@pytest.fixture
def shop(clocked_client: pulsarx.Client) -> pulsarx.Client:
    rows = [{"who": name, "n": number} for number, name in enumerate("abcabc")]
    clocked_client.send_rows("orders", rows, key="who")
    clocked_client.send_rows("customers", [{"who": "a", "name": "ada"}])
    return clocked_client


def test_a_query_names_its_topics(shop: pulsarx.Client):
    found = shop.sql("SELECT name, sum(n) FROM orders JOIN customers USING (who) GROUP BY name")
    gc.collect()  # it keeps what it needs
    assert found.fetchall() == [("ada", 3)] == found.fetchall()
    full = 'SELECT count(*) FROM "persistent://public/default/orders"'
    assert shop.sql(full).fetchall() == [(6,)]
    nested = "WITH big AS (SELECT * FROM orders WHERE n > 3) SELECT * FROM big ORDER BY n"
    assert [row[1] for row in shop.sql(nested).fetchall()] == [4, 5]
    assert shop.sql("SELECT max(n) FROM orders UNION ALL SELECT 1 FROM customers").fetchall() == [
        (5,),
        (1,),
    ]
    assert shop.sql("CREATE TABLE copy AS SELECT * FROM orders").fetchall() == [(6,)]


def test_parameters_are_values_of_the_query(shop: pulsarx.Client):
    text = "SELECT n FROM orders WHERE __key__ = $key AND n > $least"
    assert shop.sql(text, params={"key": "a", "least": 0}).fetchall() == [(3,)]
    assert shop.sql("SELECT n FROM orders WHERE n > ?", params=[4]).fetchall() == [(5,)]
    odd = "' OR true --"
    assert shop.sql(text, params={"key": odd, "least": 0}).fetchall() == []


def test_options_are_those_of_a_scan(shop: pulsarx.Client):
    found = shop.sql("SELECT * FROM orders", last=2, metadata=["publish_time"])
    assert found.columns == ["who", "n", "__publish_time__"]
    assert found.fetchall()[0][2] == datetime(2024, 1, 1, tzinfo=UTC)
    assert shop.sql("SELECT n FROM orders", keys="b").fetchall() == [(1,), (4,)]
    with pytest.raises(TypeError, match="begin"):
        shop.sql("SELECT n FROM orders", begin="2024-01-01T00:00Z")  # type: ignore[call-arg]


def test_frames_of_the_caller_and_topics_go_together(shop: pulsarx.Client):
    prices = polars.DataFrame({"who": ["a"], "price": [2.5]})
    found = shop.sql("SELECT sum(n * price) FROM orders JOIN prices USING (who)")
    assert found.fetchall() == [(7.5,)] and prices.height == 1


def test_a_topic_goes_before_a_variable_of_its_name(shop: pulsarx.Client):
    orders = polars.DataFrame({"n": [99]})
    assert shop.sql("SELECT max(n) FROM orders").fetchall() == [(5,)] and orders.height == 1


def test_what_is_not_there_is_named(shop: pulsarx.Client):
    with pytest.raises(duckdb.CatalogException, match="nothing") as caught:
        shop.sql("SELECT * FROM nothing")
    assert caught.value.__notes__ == ["there is no topic nothing"]
    with pytest.raises(duckdb.ParserException):
        shop.sql("SELEC * FROM orders")
    with pytest.raises(errors.OperationNotSupported, match="PIVOT"):
        shop.sql("PIVOT orders ON who USING sum(n)")
    assert sorted(shop.admin.topics.get_list()) == [
        f"persistent://public/default/{name}" for name in ("customers", "orders")
    ]


def test_topics_that_duckdb_does_not_tell_apart_are_refused(shop: pulsarx.Client):
    """It takes names that differ in capitals for one, also in quotes."""
    shop.send_rows("Orders", [{"n": 100}])
    assert shop.sql('SELECT n FROM "Orders"').fetchall() == [(100,)]
    assert shop.sql("SELECT max(n) FROM orders").fetchall() == [(5,)]
    text = "SELECT max(a.n), max(b.n) FROM orders a, {} b"
    with pytest.raises(errors.OperationNotSupported, match="Orders and orders differ in capitals"):
        shop.sql(text.format('"Orders"'))
    connection = duckdb.connect()
    for name in ("orders", "Orders"):
        shop.scan(name).to_duckdb(connection).create_view(f"{name}_{name[0] == 'O'}")
    found = connection.sql("SELECT max(a.n), max(b.n) FROM orders_False a, Orders_True b")
    assert found.fetchall() == [(5, 100)]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"A": 1, "a": 2}, "A and a differ in capitals"),
        ({"x": {"n": {"A": 1, "a": 2}}}, "x.n.A and x.n.a differ in capitals"),
        ({"x": [{"A": 1, "a": 2}]}, "x.*A and x.*a differ in capitals"),
        ({"__KEY__": 1}, "__KEY__ and __key__ differ in capitals"),
    ],
)
def test_fields_that_duckdb_does_not_tell_apart_are_refused(
    memory_client: pulsarx.Client, row: dict[str, Any], text: str
):
    memory_client.send_rows("orders", [row | {"n": 1}])
    scan = memory_client.scan("orders")
    for read in (lambda: memory_client.sql("SELECT n FROM orders"), scan.to_duckdb):
        with pytest.raises(errors.OperationNotSupported, match=text):
            read()
    relation = memory_client.scan("orders", ["n"]).to_duckdb(duckdb.connect())
    assert relation.project("n").fetchall() == [(1,)]
    assert scan.to_polars().collect().height == 1


def test_a_result_is_a_topic_again(shop: pulsarx.Client):
    """A sum is a HUGEINT of DuckDB, which has no place in JSON."""
    result = shop.sql("SELECT who, sum(n) AS total FROM orders GROUP BY who ORDER BY who")
    shop.send_rows("totals", result.to_arrow_table(), key="who")
    totals: list[Any] = shop.read_table("totals")["total"].to_pylist()
    assert totals == [3, 5, 7]


def test_a_closed_client_has_no_sql(memory_client: pulsarx.Client):
    memory_client.close()
    with pytest.raises(errors.AlreadyClosed):
        memory_client.sql("SELECT 1")
