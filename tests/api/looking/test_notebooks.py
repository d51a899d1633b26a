"""What notebooks show of clients, topics and subscriptions."""

from __future__ import annotations

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
