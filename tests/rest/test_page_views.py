"""The views of the page in a real Chromium: charts, newest messages and those that come,
publishing, schemas, policies, the overview, and saving."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from administered import Administered
from chromium import Chromium
from page_steps import (
    confirm,
    has,
    needs_chromium,
    place_of,
    press,
    publish,
    said,
    table_rows,
)

import pulsarx
from pulsarx.clock import ManualClock
from pulsarx.schema import Array, AvroSchema, Integer, JsonSchema, Record, String

Open = Callable[..., Administered]
MESSAGES = "?view=messages"
EVERYTHING = "public/default", "ALWAYS_COMPATIBLE"
FILL = (
    "const field = document.getElementById('dialog-fields').querySelectorAll('input, textarea');"
    "field[{at}].value = {value};"
)


class Order(Record):
    customer = String()
    cents = Integer()
    items = Array(String())


def write(chromium: Chromium, at: int, value: str) -> None:
    """Into a field of the dialog, be it of several lines."""
    chromium.run(FILL.format(at=at, value=json.dumps(value)))


# Charts -------------------------------------------------------------------------------------------


def point(chromium: Chromium, chart: int, part: float) -> str:
    """The text under the pointer, at a part of the width of a chart."""
    found: str = chromium.run(
        f"const chart = document.querySelectorAll('figure svg')[{chart}];"
        "const box = chart.getBoundingClientRect();"
        f"chart.dispatchEvent(new PointerEvent('pointermove', {{ clientY: box.top + 40,"
        f" clientX: box.left + box.width * {part} }}));"
        "return chart.querySelector('.pointer .value').textContent;"
    )
    return found


@needs_chromium
def test_charts_have_axes_a_grid_and_the_value_under_the_pointer(
    open_administered: Open, chromium: Chromium
):
    """A line stood there alone: nobody knew of what size, nor of when."""
    clock = ManualClock()
    administered = open_administered(clock)
    publish(administered, b"1")
    administered.get("//console/topics?now=true")
    clock.advance(20 * 60)
    publish(administered, *[b"more"] * 39)
    administered.get("//console/topics?now=true")
    clock.advance(60)
    administered.get("//console/topics?now=true")
    chromium.open(place_of(administered))
    chromium.until("document.querySelectorAll('figure svg .pointer').length === 4")
    ticks = chromium.run(
        "return [...document.querySelectorAll('figure')].map(each =>"
        " [...each.querySelectorAll('.tick')].map(one => one.textContent))"
    )
    assert ticks[0][:5] == ["0", "10", "20", "30", "40"]
    assert all(":" in each for each in ticks[0][5:]) and len(ticks[0]) >= 8
    assert ticks[3][0] == "0 B" and "KiB" in ticks[3][1]
    lines = "return document.querySelectorAll('figure:first-child svg .grid').length"
    assert chromium.run(lines) == len(ticks[0]) - 1  # but for the axis
    early, late = point(chromium, 0, 0.5), point(chromium, 0, 0.97)
    assert early.endswith(" 1") and late.endswith(" 40")
    assert early.split()[0] < late.split()[0]
    # It stays there when the page is drawn anew.
    chromium.run("document.querySelector('figure svg').dataset.old = 'yes'")
    chromium.until("!document.querySelector('figure svg').dataset.old")
    chromium.until(
        "document.querySelector('figure svg .pointer .value').textContent.endsWith('40')"
    )


@needs_chromium
def test_the_value_goes_when_the_pointer_does(administered: Administered, chromium: Chromium):
    publish(administered, b"1")
    chromium.open(place_of(administered))
    chromium.until("document.querySelectorAll('figure svg .pointer').length === 4")
    point(chromium, 0, 0.9)
    chromium.run(
        "document.querySelector('figure svg').dispatchEvent(new PointerEvent('pointerleave'))"
    )
    assert not chromium.run("return document.querySelectorAll('.pointer .value').length")


# Messages -----------------------------------------------------------------------------------------


@needs_chromium
def test_what_comes_is_shown_in_front_of_the_newest(administered: Administered, chromium: Chromium):
    publish(administered, b"first", b"second")
    chromium.open(place_of(administered, query=MESSAGES))
    chromium.until(has("2 messages"))
    assert [row[-1] for row in table_rows(chromium)] == ["second", "first"]
    press(chromium, "Live")
    chromium.until("document.querySelector('[aria-pressed=true]')")
    publish(administered, b"third", b"fourth")
    chromium.until(has("fourth"))
    assert [row[-1] for row in table_rows(chromium)] == ["fourth", "third", "second", "first"]
    # What is open stays open.
    chromium.run("document.querySelector('summary').click()")
    publish(administered, b"fifth")
    chromium.until(has("fifth"))
    assert chromium.run("return document.querySelectorAll('details[open]').length") == 1
    press(chromium, "Live")
    chromium.until("document.querySelector('[data-id=live][aria-pressed=false]')")


@needs_chromium
def test_what_comes_is_shown_where_there_was_nothing(
    administered: Administered, chromium: Chromium
):
    publish(administered)
    chromium.open(place_of(administered, query=f"{MESSAGES}&live=true"))
    chromium.until("document.querySelector('[aria-pressed=true]')")
    publish(administered, b"first")
    chromium.until(has("first"))


@needs_chromium
def test_a_message_is_published_with_key_and_properties(
    administered: Administered, chromium: Chromium
):
    publish(administered)
    consumer = administered.client.subscribe("orders", "billing")
    chromium.open(place_of(administered))
    press(chromium, "Publish")
    write(chromium, 0, "line one\nline two")
    write(chromium, 1, "ada")
    write(chromium, 2, "a=1\nb = 2=3")
    confirm(chromium)
    chromium.until(said("Published "))
    message = consumer.receive()
    assert message.data() == b"line one\nline two"
    assert message.partition_key() == "ada"
    assert message.properties() == {"a": "1", "b": "2=3"}


@needs_chromium
def test_a_published_value_is_encoded_by_the_schema_or_refused(
    administered: Administered, chromium: Chromium
):
    pytest.importorskip("fastavro", reason="it comes with the extra avro")
    client = administered.client
    schema: Any = AvroSchema(Order)
    client.create_producer("orders", schema=schema).close()
    consumer = client.subscribe("orders", "billing", schema=schema)
    chromium.open(place_of(administered))
    press(chromium, "Publish")
    write(chromium, 0, '{"customer": 5}')
    confirm(chromium)
    flaw = "document.getElementById('dialog-flaw').textContent"
    chromium.until(f"{flaw}.includes('no value of the schema')")
    write(chromium, 0, '{"customer": "ada", "cents": 250, "items": ["a"]}')
    confirm(chromium)
    chromium.until(said("Published "))
    found = consumer.receive().value()
    assert (found.customer, found.cents, found.items) == ("ada", 250, ["a"])


# Schemas ------------------------------------------------------------------------------------------


class Later(Record):
    customer = String()
    cents = Integer()
    items = Array(String())
    note = String()


@needs_chromium
def test_values_are_decoded_by_the_schema_that_they_have(
    administered: Administered, chromium: Chromium
):
    """They were hexadecimal digits."""
    pytest.importorskip("fastavro", reason="it comes with the extra avro")
    client = administered.client
    client.admin.namespaces.set_schema_compatibility_strategy(*EVERYTHING)
    first: Any = AvroSchema(Order)
    second: Any = AvroSchema(Later)
    client.create_producer("orders", schema=first).send(
        Order(customer="ada", cents=-250, items=["a", "b"])
    )
    client.create_producer("orders", schema=second).send(
        Later(customer="bob", cents=1 << 30, items=[], note="\u2603")
    )
    chromium.open(place_of(administered, query=MESSAGES))
    chromium.until("document.querySelectorAll('summary').length === 2")
    newest, oldest = [json.loads(row[-1]) for row in table_rows(chromium)]
    assert newest == {"customer": "bob", "cents": 1 << 30, "items": [], "note": "\u2603"}
    assert oldest == {"customer": "ada", "cents": -250, "items": ["a", "b"]}
    chromium.run("document.querySelector('summary').click()")
    chromium.until(has("AVRO, version 1"))
    shown = chromium.run("return document.querySelector('pre.decoded').textContent")
    assert json.loads(shown) == newest


@needs_chromium
def test_a_schema_is_shown_with_its_versions(administered: Administered, chromium: Chromium):
    client = administered.client
    client.admin.namespaces.set_schema_compatibility_strategy(*EVERYTHING)
    json_schema: Any = JsonSchema(Order)
    later: Any = JsonSchema(Later)
    client.create_producer("orders", schema=json_schema).close()
    client.create_producer("orders", schema=later).close()
    chromium.open(place_of(administered))
    chromium.until(has("JSON, version 1"))
    assert chromium.run(f"return {has('JSON, version 0')}")
    chromium.run("document.querySelector('main > details summary').click()")
    chromium.until(has('"name": "note"'))
    # It stays open when the page is drawn anew.
    chromium.run("document.querySelector('main > details').dataset.old = 'yes'")
    chromium.until("!document.querySelector('main > details').dataset.old")
    assert chromium.run("return document.querySelector('main > details').open")


DECODED = """
const done = arguments[0];
import("/page/avro.js").then(({ avroReader }) => {
  try {
    const bytes = Uint8Array.from(%s);
    done(JSON.stringify(avroReader(%s)(bytes)));
  } catch (error) { done(`flaw: ${error.message}`); }
});
"""


def read_avro(chromium: Chromium, schema: object, payload: bytes) -> Any:
    script = DECODED % (json.dumps(list(payload)), json.dumps(schema))
    found = chromium._do("POST", "/execute/async", {"script": script, "args": []})
    return found if found.startswith("flaw") else json.loads(found)


@needs_chromium
@pytest.mark.parametrize(
    ("schema", "value", "shown"),
    [
        ("null", None, None),
        ("boolean", True, True),
        ("long", -(1 << 62), str(-(1 << 62))),
        ("int", 12345, 12345),
        ("double", 1.5, 1.5),
        ("bytes", b"\x00\xff", "0x00ff"),
        (["null", "string"], "s", "s"),
        ({"type": "map", "values": "int"}, {"a": 1}, {"a": 1}),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B", "B"),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", "0x6162"),
        ({"type": "array", "items": "string"}, ["x"] * 200, ["x"] * 200),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            "-12.05", "-12.05",
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, 0, "1970-01-01T00:00:00.000Z"),
        ({"type": "int", "logicalType": "date"}, 1, "1970-01-02"),
        (
            {"type": "record", "name": "n.Node", "fields": [
                {"name": "next", "type": ["null", "Node"]}, {"name": "at", "type": "int"}]},
            {"next": {"next": None, "at": 2}, "at": 1},
            {"next": {"next": None, "at": 2}, "at": 1},
        ),
    ],
)  # fmt: skip
def test_avro_is_read_as_fastavro_writes_it(
    administered: Administered, chromium: Chromium, schema: Any, value: Any, shown: Any
):
    fastavro = pytest.importorskip("fastavro", reason="it comes with the extra avro")
    from datetime import UTC, date, datetime
    from decimal import Decimal

    kind = schema.get("logicalType") if isinstance(schema, dict) else None
    made = {
        "decimal": lambda: Decimal(value),
        "timestamp-millis": lambda: datetime.fromtimestamp(0, UTC),
        "date": lambda: date(1970, 1, 2),
    }
    output = io.BytesIO()
    written = made[kind]() if kind in made else value
    fastavro.schemaless_writer(output, fastavro.parse_schema(schema), written)
    chromium.open(administered.url)
    assert read_avro(chromium, schema, output.getvalue()) == shown


@needs_chromium
@pytest.mark.parametrize(
    ("schema", "payload", "told"),
    [
        ({"type": "array", "items": "null"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", "values"),
        ({"type": "array", "items": "null"}, b"\xc0\xb8\x02" * 9000, "values"),
        ("string", b"\x80\x80\x80\x80\x10", "out of bounds"),
        ("string", b"\x06abcd"[:3], "ends too early"),
        ("int", b"\x02\x02", "bytes are left"),
        ("int", b"\xff" * 20, "too long"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x08", "out of bounds"),
        ({"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}, b"", "too deep"),
        ("nothing", b"", "does not say"),
    ],
)  # fmt: skip
def test_a_payload_of_a_stranger_is_read_within_bounds(
    administered: Administered, chromium: Chromium, schema: Any, payload: bytes, told: str
):
    chromium.open(administered.url)
    found = read_avro(chromium, schema, payload)
    assert found.startswith("flaw: ") and told in found


# Policies -----------------------------------------------------------------------------------------


@needs_chromium
def test_policies_of_topic_and_namespace_are_shown_set_and_removed(
    administered: Administered, chromium: Chromium
):
    publish(administered)
    admin = administered.client.admin
    admin.namespaces.set_retention("public/default", 100, 1024)
    chromium.open(f"{administered.url}/#?view=policies")
    chromium.until(has("retentionTimeInMinutes"))
    chromium.open(place_of(administered, query="?view=policies"))
    chromium.until(has("Policies"))
    row = (
        "[...document.querySelectorAll('tr')].find(one => one.innerText.startsWith('message ttl'))"
    )
    # That of the topic: the page of the namespace, which is left, has one too.
    chromium.until("document.querySelector('[data-of=\"topic message_ttl\"]')")
    chromium.run(f"{row}.querySelector('button').click()")
    write(chromium, 0, "12x")
    confirm(chromium)
    flaw = "document.getElementById('dialog-flaw').textContent"
    chromium.until(f"{flaw}.includes('write the value in JSON')")
    write(chromium, 0, "-3")
    confirm(chromium)
    chromium.until(f"{flaw}.startsWith('Refused: ')")
    write(chromium, 0, "90")
    confirm(chromium)
    chromium.until(said("Set message ttl."))
    assert admin.topics.get_message_ttl("orders") == 90
    chromium.until(f"{row}.innerText.includes('90')")
    chromium.run(f"{row}.querySelector('button').click()")
    write(chromium, 0, "")
    confirm(chromium)
    chromium.until(said("Removed message ttl."))
    assert admin.topics.get_message_ttl("orders") is None


# The overview -------------------------------------------------------------------------------------


@needs_chromium
def test_the_overview_tells_how_the_folder_is(
    open_administered: Open, chromium: Chromium, tmp_path: Path
):
    administered = open_administered(folder=tmp_path / "events")
    for number in range(12):
        administered.client.create_producer(f"t{number:02}").send(b"x" * 1000 * (number + 1))
    publish(administered, b"waits")
    chromium.open(administered.url)
    press(chromium, "Overview")
    chromium.until(has("Largest topics"))
    assert chromium.run(f"return {has('Healthy')}")
    assert chromium.run(f"return {has(pulsarx.__version__)}")
    assert chromium.run(f"return {has('are free')}")
    assert chromium.run(f"return {has('for subscription billing of public/default/orders')}")
    names = [row[0].rpartition("/")[2] for row in table_rows(chromium)]
    assert names == [f"t{number:02}" for number in range(11, 1, -1)]


# Transactions -------------------------------------------------------------------------------------


@needs_chromium
def test_open_transactions_are_listed_and_aborted(open_administered: Open, chromium: Chromium):
    clock = ManualClock()
    administered = open_administered(clock)
    client = administered.client
    publish(administered, b"taken")
    chromium.open(f"{administered.url}/#?view=transactions")
    chromium.until(has("No transaction is open."))
    first, second = client.new_transaction(), client.new_transaction(timeout_millis=600_000)
    producer = client.create_producer("orders")
    producer.send(b"a", transaction=first)
    for each in (b"b", b"c"):
        producer.send(each, transaction=second)
    client.create_producer("bills").send(b"d", transaction=second)
    consumer = client.subscribe("orders", "billing")
    consumer.acknowledge(consumer.receive(0), transaction=first)
    clock.advance(20)
    chromium.until("document.querySelectorAll('tbody tr').length === 2")
    one, other = table_rows(chromium)
    assert one[:4] == ["(0,0)", "20 s", "40 s", "\u2013"]
    assert one[4].split() == ["public/default/orders", "3"]
    assert one[5].split() == ["public/default/orders", "billing"]
    assert other[:3] == ["(0,1)", "20 s", "9 min"]
    assert other[4].split("\n")[:2] == ["public/default/orders", "behind an older one"]
    assert other[4].split()[-2:] == ["public/default/bills", "1"]
    press(chromium, "Abort")  # the first one's
    confirm(chromium)
    chromium.until(said("Aborted transaction (0,0)."))
    chromium.until("document.querySelectorAll('tbody tr').length === 1")
    assert table_rows(chromium)[0][4].split()[:2] == ["public/default/orders", "2"]
    assert [each.data() for each in consumer.receive_many(10, 0)] == [b"taken"]
    second.commit()
    chromium.until(has("No transaction is open."))


# Saving -------------------------------------------------------------------------------------------


def saved(chromium: Chromium, kind: str) -> str:
    """What a button saves: the file is taken before the browser writes it."""
    chromium.run(
        "window.saved = null; const make = URL.createObjectURL;"
        "URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text; });"
        " return make(blob); };"
        "HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; };"
    )
    chromium.until(f"document.querySelector('[aria-label=\"Save as {kind}\"]')")
    chromium.run(f"document.querySelector('[aria-label=\"Save as {kind}\"]').click()")
    found: str = chromium.until("window.saved")
    return found


@needs_chromium
def test_all_topics_that_are_found_are_saved(administered: Administered, chromium: Chromium):
    """And not the page alone."""
    for number in range(60):
        administered.client.admin.topics.create_non_partitioned_topic(f"t{number:02}")
    chromium.open(f"{administered.url}/#?filter=t&sort=name")
    chromium.until(has("1 to 50 of 60"))
    found = json.loads(saved(chromium, "JSON"))
    assert [each["topic"][-3:] for each in found] == [f"t{number:02}" for number in range(60)]
    assert chromium.run("return window.savedAs") == "topics-public-default.json"
    rows = list(csv.DictReader(io.StringIO(saved(chromium, "CSV"))))
    assert len(rows) == 60 and rows[0]["backlog"] == "0"


@needs_chromium
def test_messages_are_saved_as_they_are_shown(administered: Administered, chromium: Chromium):
    publish(administered, b'{"a": 1}', b'x, "y"\nz', b"\xff", b"=1+1")
    chromium.open(place_of(administered, query=MESSAGES))
    chromium.until(has("4 messages"))
    found = json.loads(saved(chromium, "JSON"))
    assert [each["value"] for each in found] == ["=1+1", "/w==", 'x, "y"\nz', '{"a": 1}']
    assert [each["encoding"] for each in found] == ["text", "base64", "text", "text"]
    rows = list(csv.DictReader(io.StringIO(saved(chromium, "CSV"), newline="")))
    # What a spreadsheet would run is a text to it.
    assert [each["value"] for each in rows] == ["'=1+1", "/w==", 'x, "y"\nz', '{"a": 1}']


@needs_chromium
def test_policies_are_saved(administered: Administered, chromium: Chromium):
    publish(administered)
    administered.client.admin.topics.set_message_ttl("orders", 90)
    chromium.open(place_of(administered, query="?view=policies"))
    found = json.loads(saved(chromium, "JSON"))
    [row] = [each for each in found if each["policy"] == "message_ttl"]
    assert (row["topic"], row["namespace"]) == (90, None)
