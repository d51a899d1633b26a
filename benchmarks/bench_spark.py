"""Topics as Spark reads and writes them, against what Spark itself does in the same session.

Both sides handle the same values in as many tasks; what they read is checked before, what they
wrote after. All files are in the page cache. Two sessions, one process each: TCP is what Spark's
Python workers talk by unless told otherwise, Unix domain sockets what `pulsarx.spark.session` sets.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from measurement import Measurement, Sizes
from spark_data import PARTS, VALUE_SIZE, FlightData, SmallData, SparkData
from spark_process import SparkProcess, spark_is_missing

MESSAGES_PER_BATCH = 1000
only_tcp = pytest.mark.parametrize("spark", ["tcp"], indirect=True)
only_uds = pytest.mark.parametrize("spark", ["uds"], indirect=True)


@pytest.fixture(scope="module")
def data(scratch: Path, sizes: Sizes) -> Iterator[SparkData]:
    missing = spark_is_missing()
    if missing:
        pytest.skip(missing)
    made = SparkData(scratch / "spark-data", sizes.spark_messages)
    try:
        made.make(rich=True, trickle=MESSAGES_PER_BATCH * sizes.spark_batches)
        yield made
    finally:
        made.delete()


@pytest.fixture(scope="module", params=["tcp", "uds"])
def spark(data: SparkData, scratch: Path, request: pytest.FixtureRequest) -> Iterator[SparkProcess]:
    with SparkProcess(scratch / f"spark-{request.param}", request.param) as process:
        process.ask("use", folder=str(data.folder), messages=data.messages)
        yield process


Side = tuple[str, dict[str, Any]]  # a frame of spark_sides, and what it is asked for with


def compare(
    measurement: Measurement,
    spark: SparkProcess,
    row: str,
    floor: Side,
    path: Side,
    messages: int,
    rounds: int | None = None,
) -> None:
    """Reading one frame against reading the other."""

    def read(side: Side) -> Callable[[], object]:
        return lambda: spark.ask("read", frame=side[0], **side[1])

    for name, arguments in (floor, path):
        found = spark.ask("amounts", frame=name, **arguments)
        rows = 0 if name.endswith("_map") else messages
        expected = {"messages": rows, "bytes": messages * VALUE_SIZE, "tasks": PARTS}
        assert found == expected, f"{name} {arguments}: {found}, not {expected}"
    names = (spoken(floor[0]), spoken(path[0]))
    names = ("one column", "seven") if names[0] == names[1] else names
    measure(measurement, row, read(floor), read(path), messages, names, rounds=rounds)


def measure(
    measurement: Measurement,
    row: str,
    floor: Callable[[], object],
    path: Callable[[], object],
    messages: int,
    names: tuple[str, str],
    clean: Callable[[], object] | None = None,
    rounds: int | None = None,
) -> None:
    measurement.pairs(
        row,
        floor,
        path,
        before=clean,
        between=clean,
        rounds=rounds or measurement.sizes.spark_rounds,
        warmup_rounds=measurement.sizes.spark_warmups,
        floor_count=messages,
        path_count=messages,
        names=names,
        note=lambda: f"for each of {messages:,} messages",
    )


def spoken(name: str) -> str:
    return name.replace("_", " ")


def bench_source(measurement: Measurement, spark: SparkProcess, data: SparkData) -> None:
    row = {"tcp": "spark_source_tcp", "uds": "spark_source_uds"}[spark.sockets]
    floor, path, rounds = (
        ("source_ceiling", {}),
        ("source", {}),
        measurement.sizes.spark_read_rounds,
    )
    compare(measurement, spark, row, floor, path, data.messages, rounds)


def bench_topic(measurement: Measurement, spark: SparkProcess, data: SparkData) -> None:
    row = {"tcp": "spark_topic_tcp", "uds": "spark_topic_uds"}[spark.sockets]
    floor, path = ("topic_ceiling", {}), ("topic", {})
    sizes = measurement.sizes
    rounds = {"tcp": sizes.spark_read_rounds, "uds": sizes.spark_topic_rounds}[spark.sockets]
    compare(measurement, spark, row, floor, path, data.messages, rounds)


def bench_map(measurement: Measurement, spark: SparkProcess, data: SparkData) -> None:
    row = {"tcp": "spark_map_tcp", "uds": "spark_map_uds"}[spark.sockets]
    compare(measurement, spark, row, ("parquet_map", {}), ("topic_map", {}), data.messages)


# The messages have nothing but a value, as those of all other rows.
ONE, SEVEN = {"columns": "value"}, {"columns": None}


def bench_columns(measurement: Measurement, spark: SparkProcess, data: SparkData) -> None:
    row = {"tcp": "spark_columns_tcp", "uds": "spark_columns_uds"}[spark.sockets]
    compare(measurement, spark, row, ("source", ONE), ("source", SEVEN), data.messages)


def bench_topic_columns(measurement: Measurement, spark: SparkProcess, data: SparkData) -> None:
    row = {"tcp": "spark_topic_columns_tcp", "uds": "spark_topic_columns_uds"}[spark.sockets]
    compare(measurement, spark, row, ("topic", ONE), ("topic", SEVEN), data.messages)


@only_tcp
def bench_columns_rich(measurement: Measurement, spark: SparkProcess, data: SparkData) -> None:
    rich = {"topic": "rich"}
    floor, path = ("source", ONE | rich), ("source", SEVEN | rich)
    compare(measurement, spark, "spark_columns_rich", floor, path, data.messages)


@only_uds
def bench_count(measurement: Measurement, spark: SparkProcess, data: SparkData) -> None:
    def count(side: Side) -> Callable[[], object]:
        return lambda: spark.ask("count", frame=side[0], **side[1])

    sides: tuple[Side, Side] = ("parquet", {}), ("topic", SEVEN)
    assert [count(each)() for each in sides] == [data.messages] * 2
    names = ("Parquet", "topic")
    floor, path = map(count, sides)
    measure(measurement, "spark_count", floor, path, data.messages, names)


@only_uds
def bench_topic_parquet(
    measurement: Measurement, spark: SparkProcess, data: SparkData, scratch: Path
) -> None:
    large = SparkData(scratch / "spark-large", measurement.sizes.spark_messages_large)
    try:
        large.make(rich=False)
        spark.ask("use", folder=str(large.folder), messages=large.messages)
        sides: tuple[Side, Side] = ("parquet", {}), ("topic", {})
        compare(measurement, spark, "spark_topic_parquet", *sides, large.messages)
    finally:
        large.delete()
        spark.ask("use", folder=str(data.folder), messages=data.messages)


# Values as columns --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def flights(scratch: Path, sizes: Sizes) -> Iterator[FlightData]:
    made = FlightData(scratch / "spark-flights", sizes.flights // PARTS * PARTS)
    try:
        made.make()
        yield made
    finally:
        shutil.rmtree(made.folder, ignore_errors=True)


def compare_flights(
    measurement: Measurement,
    spark: SparkProcess,
    flights: FlightData,
    row: str,
    floor: str,
    path: str = "flights_typed",
) -> None:
    """A groupBy over JSON that Spark parses, against one over typed columns."""
    frames = (floor, path)
    folder = str(flights.folder)
    found = [spark.ask("rows", frame=frame, folder=folder) for frame in frames]
    assert found[0] == found[1], found

    def read(frame: str) -> Callable[[], object]:
        return lambda: spark.ask("read", frame=frame, folder=folder)

    names = (spoken(frames[0]), spoken(frames[1]))
    measure(measurement, row, read(frames[0]), read(frames[1]), flights.messages, names)


@only_uds
def bench_typed(measurement: Measurement, spark: SparkProcess, flights: FlightData) -> None:
    compare_flights(measurement, spark, flights, "spark_typed", "flights_parsed")


@only_uds
def bench_typed_parquet(measurement: Measurement, spark: SparkProcess, flights: FlightData) -> None:
    compare_flights(measurement, spark, flights, "spark_typed_parquet", "flights_parquet")


@only_uds
def bench_typed_avro(measurement: Measurement, spark: SparkProcess, flights: FlightData) -> None:
    sides = ("flights_parsed", "flights_avro")
    compare_flights(measurement, spark, flights, "spark_typed_avro", *sides)


@only_uds
def bench_typed_avro_parquet(
    measurement: Measurement, spark: SparkProcess, flights: FlightData
) -> None:
    sides = ("flights_parquet", "flights_avro")
    compare_flights(measurement, spark, flights, "spark_typed_avro_parquet", *sides)


@only_uds
def bench_typed_map(measurement: Measurement, spark: SparkProcess, flights: FlightData) -> None:
    sides = ("flights_parquet_map", "flights_map")
    compare_flights(measurement, spark, flights, "spark_typed_map", *sides)


@only_uds
def bench_typed_avro_map(
    measurement: Measurement, spark: SparkProcess, flights: FlightData
) -> None:
    sides = ("flights_parquet_map", "flights_avro_map")
    compare_flights(measurement, spark, flights, "spark_typed_avro_map", *sides)


# Small topics and ledgers -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small(scratch: Path, sizes: Sizes) -> Iterator[SmallData]:
    made = SmallData(scratch / "spark-small", sizes.small_messages, sizes.small_pieces)
    try:
        made.make()
        yield made
    finally:
        shutil.rmtree(made.root, ignore_errors=True)


def compare_small(
    measurement: Measurement,
    spark: SparkProcess,
    small: SmallData,
    row: str,
    topics: tuple[list[str], list[str]],
    names: tuple[str, str],
) -> None:
    """The same messages in other files, as tasks of the same number."""
    sides: list[dict[str, Any]] = [{"root": str(small.root), "topics": each} for each in topics]
    found = [spark.ask("amounts", frame="small_topics", **side) for side in sides]
    assert found[0] == found[1], found
    assert found[0]["messages"] == small.messages, found

    def read(side: dict[str, Any]) -> Callable[[], object]:
        return lambda: spark.ask("read", frame="small_topics", **side)

    rounds = measurement.sizes.spark_read_rounds
    measure(measurement, row, read(sides[0]), read(sides[1]), small.messages, names, rounds=rounds)


@only_uds
def bench_many_topics(measurement: Measurement, spark: SparkProcess, small: SmallData) -> None:
    names = ("one topic", f"{small.pieces} topics")
    topics = (["one"], small.topics)
    compare_small(measurement, spark, small, "spark_many_topics", topics, names)


@only_uds
def bench_many_ledgers(measurement: Measurement, spark: SparkProcess, small: SmallData) -> None:
    names = (f"{small.few} ledgers", f"{small.pieces} ledgers")
    compare_small(measurement, spark, small, "spark_many_ledgers", (["few"], ["many"]), names)


@only_uds
def bench_merged_ledgers(measurement: Measurement, spark: SparkProcess, small: SmallData) -> None:
    names = ("files of their own", "merged")
    compare_small(measurement, spark, small, "spark_merged_ledgers", (["many"], ["merged"]), names)


# Writing ------------------------------------------------------------------------------------------


def compare_writing(
    measurement: Measurement,
    spark: SparkProcess,
    data: SparkData,
    row: str,
    how: str,
    flush: bool = True,
) -> None:
    """Against Parquet. Both read the Parquet files first, and that is counted."""
    measure(
        measurement,
        row,
        lambda: spark.ask("write_parquet"),
        lambda: spark.ask(how, flush=flush),
        data.messages,
        ("Parquet", spoken(how)),
        # What one side leaves for the disk to do must not be what the other waits for.
        clean=lambda: spark.ask("clean"),
    )
    found = spark.ask("written")
    assert found == {"messages": data.messages, "ledgers": PARTS}, found


def bench_save(measurement: Measurement, spark: SparkProcess, data: SparkData) -> None:
    row = {"tcp": "spark_save_tcp", "uds": "spark_save_uds"}[spark.sockets]
    compare_writing(measurement, spark, data, row, "save")


@only_tcp
def bench_save_unflushed(measurement: Measurement, spark: SparkProcess, data: SparkData) -> None:
    compare_writing(measurement, spark, data, "spark_save_unflushed", "save", flush=False)


def bench_write(measurement: Measurement, spark: SparkProcess, data: SparkData) -> None:
    row = {"tcp": "spark_write_tcp", "uds": "spark_write_uds"}[spark.sockets]
    compare_writing(measurement, spark, data, row, "write_topic")


@only_tcp
def bench_write_unflushed(measurement: Measurement, spark: SparkProcess, data: SparkData) -> None:
    compare_writing(measurement, spark, data, "spark_write_unflushed", "write_topic", flush=False)


# Streaming ----------------------------------------------------------------------------------------


def bench_micro_batch(measurement: Measurement, spark: SparkProcess) -> None:
    row = {"tcp": "spark_batch_tcp", "uds": "spark_batch_uds"}[spark.sockets]
    sizes = measurement.sizes
    medians: dict[str, list[float]] = {"nothing": [], "pulsarx": []}

    def turn() -> float:
        spark.ask("clean")
        for sink, found in medians.items():
            took = spark.ask("stream", sink=sink, messages_per_batch=MESSAGES_PER_BATCH)
            assert len(took) == sizes.spark_batches - 1, f"{sink}: {took}"
            found.append(statistics.median(took))
        messages = MESSAGES_PER_BATCH * sizes.spark_batches
        assert spark.ask("written")["messages"] == messages
        return medians["pulsarx"][-1] - medians["nothing"][-1]

    if sizes.spark_warmups:
        turn()
        for found in medians.values():
            found.clear()
    measurement.values(row, turn, sizes.spark_rounds)
    for sink, found in medians.items():
        measurement.add_note(f"into {sink} {statistics.median(found):.3g} ms")
    measurement.add_note(f"{MESSAGES_PER_BATCH} messages a batch")
