"""Topics as tables of the messages that a selector matches."""

from __future__ import annotations

import pyarrow as pa
import pytest

import pulsarx


def sent(client: pulsarx.Client, topic: str = "sales") -> None:
    with client.create_producer(topic, batching_enabled=True) as producer:
        for n in range(30):
            producer.send_async(
                b'{"amount": %d}' % n,
                None,
                properties={"region": ["EU", "US", "ASIA"][n % 3]},
                partition_key=f"k{n % 5}",
            )
        producer.flush()


def test_a_table_has_the_messages_that_it_matches(client: pulsarx.Client) -> None:
    sent(client)
    table = client.read_table("sales", selector="region = 'US'")
    assert table["amount"].to_pylist() == list(range(1, 30, 3))
    both = client.read_table("sales", selector="region = 'US' AND __key__ = 'k1'", last=1)
    assert both["amount"].to_pylist() == [16]
    assert client.read_table("sales", schema=table.schema, selector="region = 'X'").num_rows == 0


def test_what_does_not_match_is_not_decoded(client: pulsarx.Client) -> None:
    sent(client)
    client.create_producer("sales").send(b"no JSON", properties={"region": "X"})
    table = client.read_table("sales", selector="region <> 'X'")
    assert table.num_rows == 30


def test_a_scan_has_them_each_time(client: pulsarx.Client) -> None:
    client.admin.topics.create_partitioned_topic("sales", 2)
    sent(client)
    scan = client.scan("sales", selector="region = 'EU'", batch_size=4)
    for _ in range(2):
        found = pa.table(scan.to_reader().read_all())
        assert sorted(found["amount"].to_pylist()) == list(range(0, 30, 3))
    sent(client)
    assert scan.to_arrow().num_rows == 10


def test_a_query_reads_them_alone(client: pulsarx.Client) -> None:
    pytest.importorskip("duckdb")
    sent(client)
    query = "SELECT sum(amount) FROM sales"
    assert client.sql(query, selector="region = 'EU'").fetchall() == [(sum(range(0, 30, 3)),)]


def test_a_wrong_selector_is_refused(client: pulsarx.Client) -> None:
    sent(client)
    for call in (client.read_table, client.scan):
        with pytest.raises(pulsarx.InvalidConfiguration):
            call("sales", selector="region ==")
