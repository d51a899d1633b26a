"""PulsarX on Spark: `make spark-demo`, or `python examples/spark_demo.py [--flights N] [folder]`.

Publishes real flights to a topic, has Spark compute the delays of each carrier in each hour and
over the 24 hours up to it, writes them to a second topic, reads that one in plain Python and checks
every number against the source. Exit code 1 when anything differs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections import defaultdict
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

from flights import Flight, read_airlines, read_flights

import pulsarx
from pulsarx import spark as pulsarx_spark
from pulsarx.spark.java_runtime import JavaNotFoundError, find_java

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pulsarx.broker.requests.attach import AttachResult

FOLDER = Path(__file__).resolve().parent.parent / "build" / "spark-demo"
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SCHEMA = "carrier string, dep_delay int"


class Delays(NamedTuple):
    """Of one carrier in one hour. Minutes; a flight that never left has no delay."""

    flights: int
    departed: int
    delay_sum: int
    delay_max: int | None
    day_mean: float | None  # over the 24 hours that end with this one


class Clock:
    """Says how long a step took."""

    def __init__(self) -> None:
        self._begun_ns = time.monotonic_ns()

    def say(self, text: str) -> None:
        seconds = (time.monotonic_ns() - self._begun_ns) / 1e9
        print(f"{seconds:7.2f} s  {text}", flush=True)
        self._begun_ns = time.monotonic_ns()


def publish(folder: Path, flights: list[Flight]) -> None:
    with pulsarx.Client(folder) as client:
        # With partitions each carrier's hours are in one of them.
        client.admin.topics.create_partitioned_topic("delays", 2)
        producer = client.create_producer(
            "flights", batching_enabled=True, max_pending_messages=50_000, block_if_queue_full=True
        )
        for carrier, scheduled_ms, value in flights:
            producer.send_async(value, None, partition_key=carrier, event_timestamp=scheduled_ms)
        producer.flush()


def compute(spark: SparkSession, folder: Path) -> DataFrame:
    """The rows to write: a key, an event time, and JSON."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    table = pulsarx_spark.read_topic(spark, "flights", root=folder, columns="value,__eventTime")
    flights = table.select(
        "__eventTime", f.from_json(table["value"].cast("string"), SCHEMA).alias("flight")
    ).select("__eventTime", "flight.*")
    hours = flights.groupBy("carrier", f.window("__eventTime", "1 hour").alias("hour")).agg(
        f.count("*").alias("flights"),
        f.count("dep_delay").alias("departed"),
        f.coalesce(f.sum("dep_delay"), f.lit(0)).alias("delay_sum"),
        f.max("dep_delay").alias("delay_max"),
    )
    hours = hours.withColumn("hour_ms", f.unix_millis("hour.start"))
    day = Window.partitionBy("carrier").orderBy("hour_ms").rangeBetween(HOUR_MS - DAY_MS, 0)
    departed = f.sum("departed").over(day)
    hours = hours.withColumn(
        "day_mean", f.when(departed > 0, f.sum("delay_sum").over(day) / departed)
    )
    names = f.struct("carrier", "hour_ms", *Delays._fields)
    rows = hours.select(
        f.to_json(names).alias("value"),
        f.col("carrier").alias("__key"),
        f.col("hour.start").alias("__eventTime"),
    )
    # Rows of a Spark partition stay in order: so each carrier's hours are messages in order.
    return rows.repartition(2, "__key").sortWithinPartitions("__key", "__eventTime")


def write(rows: DataFrame, folder: Path) -> AttachResult:
    """Once, however often it is called: by the name of the application and the version."""
    return pulsarx_spark.write_topic(
        rows, "delays", root=folder, application="spark-demo", version=1
    )


def expected(flights: list[Flight]) -> dict[tuple[str, int], Delays]:
    """The same in plain Python."""
    hours: dict[tuple[str, int], list[int | None]] = defaultdict(list)
    for flight in flights:
        hour_ms = flight.scheduled_ms // HOUR_MS * HOUR_MS
        hours[flight.carrier, hour_ms].append(json.loads(flight.value)["dep_delay"])
    found = {}
    for (carrier, hour_ms), delays in hours.items():
        known = [delay for delay in delays if delay is not None]
        day: list[int] = []
        for earlier_ms in range(hour_ms + HOUR_MS - DAY_MS, hour_ms + 1, HOUR_MS):
            of_hour = hours.get((carrier, earlier_ms), ())
            day += [delay for delay in of_hour if delay is not None]
        found[carrier, hour_ms] = Delays(
            len(delays),
            len(known),
            sum(known),
            max(known, default=None),
            sum(day) / len(day) if day else None,
        )
    return found


def read_back(folder: Path) -> tuple[dict[tuple[str, int], Delays], int]:
    """What the topic holds, and how many messages were not in the order of their key's hours."""
    found: dict[tuple[str, int], Delays] = {}
    last: dict[str, int] = {}
    disorder = 0
    with pulsarx.Client(folder) as client:
        consumer = client.subscribe(
            "delays", "check", initial_position=pulsarx.InitialPosition.Earliest
        )
        while messages := consumer.receive_many(1000, timeout_millis=200):
            for message in messages:
                document: dict[str, Any] = json.loads(message.data())
                carrier, hour_ms = document.pop("carrier"), document.pop("hour_ms")
                delays = Delays(*[document.get(name) for name in Delays._fields])
                disorder += hour_ms <= last.get(carrier, -1) or (carrier, hour_ms) in found
                disorder += carrier != message.partition_key()
                disorder += hour_ms != message.event_timestamp()
                last[carrier] = hour_ms
                found[carrier, hour_ms] = delays
    return found, disorder


def hours_of_day(delays: dict[tuple[str, int], Delays], departed_min: int = 1) -> dict[int, float]:
    """The mean delay by the hour on New York's clocks, of hours with so many departures."""
    zone = ZoneInfo("America/New_York")
    sums: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for (_, hour_ms), found in delays.items():
        place = sums[datetime.fromtimestamp(hour_ms / 1000, zone).hour]
        place[0] += found.delay_sum
        place[1] += found.departed
    ordered = sorted(sums.items())
    return {hour: total / count for hour, (total, count) in ordered if count >= departed_min}


def print_plot(means: dict[int, float]) -> None:
    print("\nmean delay of departure by scheduled hour, minutes")
    scale = 50 / max(1.0, *means.values())
    for hour, mean in means.items():
        print(f"  {hour:02}:00 {mean:6.1f} {'#' * round(max(mean, 0) * scale)}")
    print()


def save_plot(path: Path, delays: dict[tuple[str, int], Delays]) -> bool:
    """The same for each carrier as a picture; False: there is no matplotlib, or no
    carrier with enough flights."""
    try:
        import matplotlib
    except ImportError:
        return False
    rows = carriers_by_hour(delays)
    if not rows:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    hours = sorted({hour for _, means in rows for hour in means})
    cells = [[means.get(hour, float("nan")) for hour in hours] for _, means in rows]
    figure, axes = pyplot.subplots(figsize=(11, 6), layout="constrained")
    image = axes.imshow(cells, cmap="YlOrRd", vmin=0, vmax=40, aspect="auto")
    for row, means in enumerate(cells):
        for column, mean in enumerate(means):
            if mean == mean:  # no number where hardly anything departs
                color = "white" if mean > 28 else "black"
                axes.text(column, row, str(round(mean)), ha="center", va="center", color=color)
    axes.set_xticks(range(len(hours)), [f"{hour:02}" for hour in hours])
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_xlabel("scheduled hour of departure, New York")
    axes.set_title("How late flights left New York in 2013, mean minutes by carrier and hour")
    figure.colorbar(image, label="minutes", extend="both", shrink=0.8)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True


def carriers_by_hour(
    delays: dict[tuple[str, int], Delays],
) -> list[tuple[str, dict[int, float]]]:
    """Each carrier's name and its means by the hour, the most punctual first."""
    found = []
    for carrier, name in read_airlines().items():
        own = {key: each for key, each in delays.items() if key[0] == carrier}
        means = hours_of_day(own, departed_min=100)  # fewer are anecdotes
        if means:
            departed = sum(each.departed for each in own.values())
            mean = sum(each.delay_sum for each in own.values()) / departed
            found.append((mean, f"{name.removesuffix(' Inc.')} ({carrier})", means))
    return [(name, means) for _, name, means in sorted(found)]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", help="a new folder for the topics")
    parser.add_argument("--flights", type=int, help="only so many of them", default=None)
    options = parser.parse_args(arguments)
    try:
        find_java()
    except JavaNotFoundError as error:
        print(f"{error}.")
        return 1
    folder = options.folder or FOLDER
    if options.folder is None:
        shutil.rmtree(folder, ignore_errors=True)
    elif folder.exists():
        print(f"{folder} exists; name a new folder")
        return 1
    folder.parent.mkdir(parents=True, exist_ok=True)
    clock = Clock()
    flights = list(islice(read_flights(), options.flights))
    clock.say(f"{len(flights):,} flights read from the source")
    publish(folder, flights)
    clock.say("published to the topic flights, all flushed to the device")
    spark = pulsarx_spark.session("spark-demo")
    spark.sparkContext.setLogLevel("ERROR")
    clock.say(f"Spark {spark.version} started")
    rows = compute(spark, folder)
    result = write(rows, folder)
    clock.say(f"Spark wrote {result.message_count:,} hours of carriers to the topic delays")
    again = write(rows, folder)
    clock.say(f"the same write again: {'nothing was written' if again.already else 'WRONG'}")
    found, disorder = read_back(folder)
    clock.say(f"{len(found):,} hours read back in plain Python")
    wanted = expected(flights)
    clock.say("the same computed in plain Python")
    wrong = sum(found.get(key) != delays for key, delays in wanted.items())
    print_plot(hours_of_day(found))
    picture = folder.with_suffix(".png")
    drawn = save_plot(picture, found)
    good = not wrong and not disorder and again.already and found.keys() == wanted.keys()
    counted = sum(delays.flights for delays in found.values())
    print(f"{counted:,} of {len(flights):,} flights counted")
    print(f"{wrong} hours differ, {disorder} out of order")
    print("Everything is as computed from the source." if good else "MISMATCH: see above.")
    if drawn:
        print(f"The plot, by carrier and hour: {picture}")
    else:
        print("No plot was drawn: that needs matplotlib, and carriers with many flights.")
    return 0 if good and counted == len(flights) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
