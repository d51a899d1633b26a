"""What messages and received columns show, and turn into."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pandas
import pyarrow as pa
import pytest

import pulsarx
from pulsarx import InitialPosition, MessageId


@pytest.fixture
def rows(memory_client: pulsarx.Client) -> Any:
    producer = memory_client.create_producer("orders")
    producer.send_many(
        [b"one", b"<b>two</b>", None],
        keys=["ada", "<i>", None],
        properties=[{"a": "<u>"}, None, None],
        event_timestamps=[1_700_000_000_000, None, None],
    )
    return memory_client.create_reader("orders", MessageId.earliest).read_arrow(10)


def test_a_message_shows_the_beginning_of_its_payload(memory_client: pulsarx.Client):
    reader = memory_client.create_reader("orders", MessageId.earliest)
    producer = memory_client.create_producer("orders")
    for content, shown in [
        (b"hello", "size=5, data=b'hello')"),
        (b"x" * 60, "data=b'" + "x" * 60 + "')"),
        (b"x" * 61, "data=b'" + "x" * 60 + "'...)"),
        (b"", "size=0, data=b'')"),
        (None, "size=0, data=None)"),
    ]:
        producer.send(content)
        assert repr(reader.read_next()).endswith(shown)


def test_a_message_in_chunks_shows_the_beginning_of_the_first_one(folder: Any):
    options = pulsarx.BrokerOptions(max_message_size=1000)
    with pulsarx.Client(folder, durability="os", broker_options=options) as client:
        client.create_producer("orders", chunking_enabled=True).send(b"a" * 3000)
        message = client.create_reader("orders", MessageId.earliest).read_next()
        assert repr(message).endswith("size=3000, data=b'" + "a" * 60 + "'...)")


def test_columns_become_tables_and_data_frames(rows: Any):
    table = rows.to_arrow()
    assert isinstance(table, pa.Table) and table.column_names == list(rows.column_names)
    assert table["value"].to_pylist() == [b"one", b"<b>two</b>", None]
    frame = rows.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame["key"].tolist() == ["ada", "<i>", None]
    assert rows.to_polars()["value"].to_list() == [b"one", b"<b>two</b>", None]


WITHOUT_PACKAGES = """
import sys
import pulsarx
for package in ("pyarrow", "pandas", "polars"):
    sys.modules[package] = None  # as if it were not installed
with pulsarx.Client("memory:") as client:
    rows = client.create_reader("orders", pulsarx.MessageId.earliest).read_arrow(1, 0)
    for call in (rows.to_arrow, rows.to_pandas, rows.to_polars):
        try:
            call()
        except ImportError as error:
            print(error)
"""


def test_a_missing_package_is_named_with_its_extra():
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_PACKAGES], capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines() == [
        f"{call} needs the package {package}, which is not installed: "
        f"pip install 'pulsarx[{extra}]'"
        for call, package, extra in (
            ("to_arrow", "pyarrow", "arrow"),
            ("to_pandas", "pandas", "pandas"),
            ("to_polars", "polars", "polars"),
        )
    ]


def test_a_message_id_comes_from_a_row_of_any_library(memory_client: pulsarx.Client, rows: Any):
    reader = memory_client.create_reader("orders", MessageId.earliest)
    expected = [message.message_id() for message in reader]
    table = rows.to_arrow()
    frame = rows.to_pandas()
    columns = rows.to_numpy()
    flat = pandas.DataFrame({name: columns[name] for name in columns if name != "properties"})
    polar = rows.to_polars()
    for row, message_id in enumerate(expected):
        for found in (
            table["message_id"][row],
            table["message_id"][row].as_py(),
            table.slice(row, 1).to_pylist()[0],
            frame.iloc[row],
            frame["message_id"].iloc[row],
            flat.iloc[row],
            polar["message_id"][row],
            polar.row(row, named=True),
            {"__message_id__": table["message_id"][row]},
        ):
            assert MessageId.from_row(found) == message_id


def test_an_id_from_a_row_acknowledges_and_seeks(memory_client: pulsarx.Client):
    earliest = InitialPosition.Earliest
    consumer = memory_client.subscribe("orders", "x", initial_position=earliest)
    memory_client.create_producer("orders").send_many([b"one", b"two", b"three"])
    table = consumer.receive_arrow(3).to_arrow()
    consumer.acknowledge(MessageId.from_row(table["message_id"][1]))
    consumer.redeliver_unacknowledged_messages()
    assert [message.data() for message in consumer.receive_many(3)] == [b"one", b"three"]
    consumer.seek(MessageId.from_row(table["message_id"][0]))
    assert consumer.receive().data() == b"two"


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({}, "has no ledger_id"),
        (None, "has no ledger_id: None"),
        ({"message_id": None}, "has no ledger_id: None"),
        ({"ledger_id": 1, "entry_id": 2, "partition": -1}, "has no batch_index"),
        ({"ledger_id": 1 << 64, "entry_id": 2, "partition": -1, "batch_index": 0}, "too large"),
        ("(1,2,3,4)", "has no ledger_id"),
    ],
)
def test_what_holds_no_message_id_is_refused(row: Any, text: str):
    with pytest.raises(ValueError, match=text):
        MessageId.from_row(row)


@pytest.mark.parametrize("value", [1.0, "1", None])
def test_a_number_that_is_no_integer_is_named(value: Any):
    """It was a TypeError that named neither the column nor the row."""
    row = {"ledger_id": 1, "entry_id": value, "partition": -1, "batch_index": 0}
    with pytest.raises(ValueError, match=f"its entry_id is {value!r}: .*'ledger_id': 1"):
        MessageId.from_row(row)


def test_columns_show_their_first_rows_escaped(rows: Any):
    html = rows._repr_html_()
    assert "3 messages, 3 shown" in html and html.count("<tr>") == 4
    assert "&lt;b&gt;two&lt;/b&gt;" in html and "&lt;i&gt;" in html and "&lt;u&gt;" in html
    assert "<b>" not in html and "<i>" not in html and "<u>" not in html
    assert "2023-11-14 22:13:20.000" in html


def test_columns_show_no_more_than_twenty_rows_and_cut_long_values(memory_client: pulsarx.Client):
    memory_client.create_producer("orders").send_many([b"v" * 1000] * 30)
    html = memory_client.create_reader("orders", MessageId.earliest).read_arrow(30)._repr_html_()
    assert "30 messages, 20 shown" in html and "v" * 81 not in html
