"""read_range with a selector: the messages that a reader with it would see, however they lie."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from seeds import seeds
from support.clients import OpenClient

import pulsarx
from pulsarx import CompressionType, MessageId
from pulsarx.broker.scan.plan import plan
from pulsarx.broker.scan.read_range import read_range, read_ranges
from pulsarx.testing import inspect

CHOSEN = "n BETWEEN 10 AND 40 AND NOT parity = 'odd'"


def published(client: pulsarx.Client, count: int, **options: Any) -> None:
    with client.create_producer("t", **options) as producer:
        for n in range(count):
            described = {"n": str(n), "parity": "odd" if n % 2 else "even"}
            producer.send_async(b"%d" % n, None, properties=described, partition_key=f"k{n % 3}")
        producer.flush()


def read(client: pulsarx.Client, selector: str, max_rows: int = 1000) -> list[bytes]:
    found = []
    for planned in plan(inspect(client).broker, "t"):
        for batch in read_range(planned, ["value"], max_rows, selector=selector):
            found += pa.record_batch(batch).column(0).to_pylist()
    return found


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.LZ4])
@pytest.mark.parametrize("batch", [1, 7, 100])
@pytest.mark.parametrize("max_rows", [1, 5, 1000])
def test_a_range_has_what_the_selector_matches(
    open_client: OpenClient, compression: CompressionType, batch: int, max_rows: int
) -> None:
    client = open_client()
    options = {"batching_enabled": True, "batching_max_messages": batch} if batch > 1 else {}
    published(client, 60, compression_type=compression, **options)
    wanted = [b"%d" % n for n in range(10, 41, 2)]
    assert read(client, CHOSEN, max_rows) == wanted
    assert read(client, "n = 'none'", max_rows) == []
    assert len(read(client, "__key IS NOT NULL", max_rows)) == 60


@pytest.mark.parametrize("seed", seeds(5))
def test_a_range_and_a_reader_agree(open_client: OpenClient, seed: int) -> None:
    client = open_client()
    for batch in (1, 3, 50):
        options = {"batching_enabled": True, "batching_max_messages": batch} if batch > 1 else {}
        published(client, 40 + seed, **options)
    for selector in (CHOSEN, "n / 7 = 2 OR __key = 'k1'", "n > 20 AND parity LIKE '%d'"):
        reader = client.create_reader("t", MessageId.earliest, selector=selector)
        expected = []
        while reader.has_message_available():
            expected.append(reader.read_next().data())
        assert read(client, selector) == expected


def test_several_ranges_fill_one_batch(open_client: OpenClient) -> None:
    client = open_client()
    for _ in range(3):
        published(client, 50, batching_enabled=True)
        inspect(client).topic("t").rest()
    ranges = plan(inspect(client).broker, "t")
    assert len(ranges) == 3
    (batch,) = read_ranges(ranges, ["value"], selector="n = 5")
    assert pa.record_batch(batch).column(0).to_pylist() == [b"5"] * 3


def test_a_range_that_ends_inside_a_batch_has_no_more(open_client: OpenClient) -> None:
    client = open_client()
    published(client, 20, batching_enabled=True)
    (planned,) = plan(inspect(client).broker, "t")
    planned.first_message, planned.end_message = 5, 12
    (batch,) = read_range(planned, ["value"], selector="parity = 'even'")
    assert pa.record_batch(batch).column(0).to_pylist() == [b"6", b"8", b"10"]


def test_a_wrong_selector_is_refused(open_client: OpenClient) -> None:
    client = open_client()
    published(client, 1)
    (planned,) = plan(inspect(client).broker, "t")
    with pytest.raises(pulsarx.InvalidConfiguration):
        read_range(planned, ["value"], selector="n =")
