"""What notebooks show of clients, topics and subscriptions."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import MessageId


def test_a_client_shows_its_topics_and_subscriptions(memory_client: pulsarx.Client):
    memory_client.create_producer("orders").send_many([b"x"] * 1234)
    consumer = memory_client.subscribe("orders", "<b>billing</b>")
    memory_client.create_producer("orders").send_many([b"x"] * 2)
    memory_client.admin.namespaces.create_namespace("public/other")
    memory_client.create_producer("persistent://public/other/more")
    html = memory_client._repr_html_()
    assert "2 topics" in html and "persistent://public/other/more" in html
    assert "<td>1,236</td>" in html and "&lt;b&gt;billing&lt;/b&gt;" in html
    assert "<td>Exclusive</td><td>2</td><td>1</td>" in html
    assert "<b>" not in html
    assert memory_client.admin.topics._repr_html_() in html
    shown = consumer._repr_html_()
    assert "&lt;b&gt;billing&lt;/b&gt;" in shown and "<td>Exclusive</td>" in shown
    assert "<b>" not in shown and "<td>True</td>" in shown


@pytest.mark.parametrize("partitions", [0, 3])
def test_a_producer_shows_where_it_publishes(memory_client: pulsarx.Client, partitions: int):
    if partitions:
        memory_client.admin.topics.create_partitioned_topic("orders", partitions)
    producer = memory_client.create_producer("orders", "<b>till</b>")
    assert "<th>last sequence id</th><td>-1</td>" in producer._repr_html_()
    producer.send(b"x", sequence_id=1500)
    html = producer._repr_html_()
    assert "<p>Producer</p>" in html and "<td>persistent://public/default/orders</td>" in html
    assert "<td>&lt;b&gt;till&lt;/b&gt;</td>" in html and "<b>" not in html
    assert "<th>last sequence id</th><td>1,500</td>" in html


def test_a_table_view_shows_how_much_it_holds(memory_client: pulsarx.Client):
    memory_client.create_producer("orders").send_many([b"x"] * 3, keys=["a", "b", "a"])
    view = memory_client.create_table_view("orders")
    html = view._repr_html_()
    assert "<p>TableView</p>" in html and "<td>persistent://public/default/orders</td>" in html
    assert "<th>keys</th><td>2</td>" in html
    view.close()
    assert "<th>keys</th><td>2</td>" in view._repr_html_()  # it stays readable


def test_a_message_shows_what_it_says(clocked_client: pulsarx.Client):
    producer = clocked_client.create_producer("orders", "<b>till</b>")
    reader = clocked_client.create_reader("orders", MessageId.earliest)
    producer.send(
        b"<i>one</i>" + b"x" * 2000,
        partition_key="<b>ada</b>",
        properties={"kind": "<b>new</b>"},
        event_timestamp=1_700_000_000_123,
    )
    producer.send(b"", event_timestamp=(1 << 64) - 1)
    message = reader.read_next()
    html = message._repr_html_()
    assert "<p>Message</p>" in html and "<td>persistent://public/default/orders</td>" in html
    assert f"<th>message id</th><td>{message.message_id()}</td>" in html
    assert "<th>key</th><td>&lt;b&gt;ada&lt;/b&gt;</td>" in html and "&lt;b&gt;new" in html
    assert "<td>2023-11-14 22:13:20.123Z</td>" in html
    assert "<td>2024-01-01 00:00:00.000Z</td>" in html
    assert "&lt;i&gt;one&lt;/i&gt;" in html and "x&#x27;..." in html and len(html) < 2000
    assert "<th>size</th><td>2,010</td>" in html
    assert "<b>" not in html and "<i>" not in html
    odd = reader.read_next()._repr_html_()
    assert "<td>18446744073709551615 ms</td>" in odd and "<th>key</th><td>-</td>" in odd


@pytest.mark.parametrize(
    "time",
    [
        datetime(1970, 1, 1, 0, 0, 0, 1000),
        datetime(1972, 2, 29, 23, 59, 59, 999_000),
        datetime(2000, 2, 29),
        datetime(2000, 3, 1),
        datetime(2100, 2, 28),
        datetime(2100, 3, 1),
        datetime(2026, 12, 31, 1, 2, 3, 4000),
        datetime(2027, 1, 1),
        datetime(9999, 12, 31, 23, 59, 59, 999_000),
    ],
    ids=str,
)
def test_times_of_messages_are_shown_by_the_calendar(memory_client: pulsarx.Client, time: datetime):
    time_ms = round(time.replace(tzinfo=UTC).timestamp() * 1000)
    memory_client.create_producer("orders").send(b"x", event_timestamp=time_ms)
    html = memory_client.create_reader("orders", MessageId.earliest).read_next()._repr_html_()
    shown = time.isoformat(sep=" ", timespec="milliseconds")
    assert f"<th>event time</th><td>{shown}Z</td>" in html


def test_a_message_without_a_value_says_so(memory_client: pulsarx.Client):
    memory_client.create_producer("orders").send(None)
    message = memory_client.create_reader("orders", MessageId.earliest).read_next()
    assert "<th>data</th><td>None</td>" in message._repr_html_()


def test_the_administration_shows_tenants_namespaces_and_topics(memory_client: pulsarx.Client):
    memory_client.admin.tenants.create_tenant("shop")
    memory_client.admin.namespaces.create_namespace("shop/eu")
    memory_client.create_producer("shop/eu/orders").send(b"x")
    html = memory_client.admin._repr_html_()
    assert "<p>Admin</p>" in html and "public, pulsar, shop" in html and "shop/eu" in html
    assert "<td>persistent://shop/eu/orders</td><td>1</td>" in html


def test_a_read_only_client_shows_what_it_knows(open_client: Any, folder: Path):
    open_client().subscribe("orders", "billing")
    html = open_client(read_only=True)._repr_html_()
    assert "1 topics" in html and "billing" in html


def test_what_is_closed_says_so(memory_client: pulsarx.Client):
    consumer = memory_client.subscribe("orders", "billing")
    reader = memory_client.create_reader("orders", MessageId.earliest)
    producer = memory_client.create_producer("orders")
    view = memory_client.create_table_view("orders")
    for opened in (reader, producer, view):
        assert "<th>open</th><td>True</td>" in opened._repr_html_()
    memory_client.close()
    for closed in (memory_client, consumer, reader, producer, view):
        assert "<th>open</th><td>False</td>" in closed._repr_html_()


def test_no_more_than_fifty_topics_are_shown(memory_client: pulsarx.Client):
    memory_client.admin.topics.create_partitioned_topic("orders", 60)
    html = memory_client._repr_html_()
    assert "60 topics, 50 shown" in html and html.count("orders-partition-") == 50
