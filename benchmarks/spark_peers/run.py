"""`make bench-spark-peers`: the same works by PulsarX, Parquet, Delta and Kafka, in alternating
rounds of one Spark application.

    PYTHONPATH=benchmarks python -m spark_peers.run [--rows COUNT ...] [--sizes BYTES ...]
        [--works NAME,...] [--only NAME,...] [--rounds COUNT] [--seconds SECONDS] [--write FILE]

Each work takes its turns A B C D, then backwards, behind one round that is not counted. What was
written is counted and compared before its time is taken as one. Seconds of every turn go to
spark_peers.json; what was measured there of other sizes and works stays. page.py shows them.
--seconds: how long a producer runs for the latency.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fresh_process import TREE
from machine import described
from peers.peer import Missing
from spark_peers import get
from spark_peers.values import PARTS, make_values

HERE = Path(__file__).resolve().parent
FIGURES = HERE / "spark_peers.json"
SCRATCH = HERE.parent / "scratch" / "spark_peers"
ROWS, SIZES = (1_000_000,), (100,)
SOURCE, TABLE = "source", "table"
SUMS = ("sum(id)", "sum(amount)", "sum(length(key))", "sum(length(text))")
WARM_SECONDS = 3.0  # behind the first batch, before the latency is taken
START_SECONDS_MAX = 60.0
# Bytes of disk for a byte of values: input, a source, a table and an output of each store.
COPIES, COPIES_WITHOUT_TABLES = 16, 11
WORKS = (
    "write", "read", "count", "groupBy", "stream", "topic to topic", "upsert", "read upserted",
)  # fmt: skip
TABLE_WORKS = ("upsert", "read upserted")
LATENCY, PARTS_OF_WORKS = "latency", "where time goes"
EMPTY, IN_WORKER, WHOLE = "an empty job", "decoded, and left in the worker", "read"
DROPPED = "rows handed to a function of Python, which drops them"
EMPTY_STREAM = "a stream of a source of Python without rows"
BARE_STREAM = "a stream of a source of Python that has the rows in Arrow files"
BARE_COPY = "such a stream of keys and values to a sink of Python that drops them"
GROUPED = "the newest value of each key, out of Parquet, aggregated"


def unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def noop(frame: Any) -> None:
    frame.write.format("noop").mode("overwrite").save()


def drained(query: Any) -> None:
    """Missing nothing of what there was: or the error of the query."""
    if not query.awaitTermination(900):
        query.stop()
        raise RuntimeError("a stream did not end")


class Rounds:
    """The works of one number of rows of one size."""

    def __init__(
        self, spark: Any, stores: list[Any], folder: Path, rows: int, size: int, works: list[str]
    ) -> None:
        self.spark, self.stores, self.folder = spark, stores, folder
        self.rows, self.size, self.works = rows, size, works
        make_values(folder, rows, size)
        largest = max(each.stat().st_size for each in (folder / "rows").glob("*"))
        # A file is a task, and so is a partition of a topic.
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(largest * 3 // 2))
        self.numbers = iter(range(1_000_000))
        self.input = self._input("rows")
        for store, place in self._filled():
            store.create(place)
            store.write(self.input, place)
            self._check(store, place)

    def close(self) -> None:
        """Leave nothing on the disk."""
        for store, place in self._filled():
            store.drop(place)
        shutil.rmtree(self.folder)

    def _input(self, name: str) -> Any:
        return self.spark.read.parquet(str(self.folder / name))

    def _filled(self) -> Iterator[tuple[Any, str]]:
        for store in self.stores:
            yield store, self.place(SOURCE)
            if set(TABLE_WORKS) & set(store.works) & set(self.works):
                yield store, self.place(TABLE)

    def _check(self, store: Any, place: str) -> None:
        found = store.raw(place).count()
        if found != self.rows:
            raise RuntimeError(f"{store.name} has {found} rows, not {self.rows}")

    def place(self, name: str) -> str:
        return f"{name}-{self.rows}-{self.size}"

    # Works: each does it, and returns its seconds ------------------------------------------------

    def turn(self, work: str, store: Any) -> float:
        source = self.place(SOURCE)
        if work == "read":
            return timed(lambda: noop(store.typed(source)))
        if work == "count":
            return timed(lambda: store.raw(source).count())
        if work == "groupBy":
            frame = store.typed(source, ["key", "amount"])
            return timed(lambda: frame.groupBy("key").sum("amount").collect())
        if work == "stream":
            return timed(lambda: self._stream(store, store.typed_stream(source).writeStream))
        if work == "upsert":
            version = next(self.numbers)
            changes = self._input("changes")
            return timed(lambda: store.upsert(changes, self.place(TABLE), version))
        if work == "read upserted":
            # Into an aggregate: a table of Delta with deletion vectors cannot go to the sink noop.
            return timed(lambda: store.newest(self.place(TABLE)).selectExpr(*SUMS).collect())
        return self._written(work, store, source)

    def _stream(self, store: Any, writer: Any, sink: bool = False) -> None:
        writer = writer if sink else writer.format("noop")
        writer = writer.option("checkpointLocation", store.checkpoint())
        drained(writer.trigger(availableNow=True).start())

    def _written(self, work: str, store: Any, source: str) -> float:
        out = f"out-{next(self.numbers)}"
        store.create(out)
        if work == "write":
            took = timed(lambda: store.write(self.input, out))
        else:
            took = timed(lambda: self._stream(store, store.copy(source, out), True))
        self._check(store, out)
        store.drop(out)
        os.sync()  # what one leaves for the disk to do is not what the next one waits for
        return took

    def parts(self) -> dict[str, Callable[[], object]]:
        """What Spark's own way through Python takes, and reading topics part by part."""
        from pyspark.sql.functions import expr
        from spark_peers import bare
        from spark_peers.stores import parsed

        topic = next(store for store in self.stores if store.ours)
        source = self.place(SOURCE)
        self.spark.dataSource.register(bare.BareSource)
        folder = self.folder / "arrow"
        made = str(folder) if folder.exists() else bare.make_parts(folder, self.folder / "rows")

        def stream(kind: str, of: str, to: str = "noop") -> Callable[[], object]:
            reader = self.spark.readStream.format(bare.NAME).options(kind=kind, folder=of)
            return lambda: self._stream(topic, reader.load().writeStream.format(to), True)

        at = "monotonically_increasing_id() AS at"
        newest = "max_by(value, at) AS value"
        return {
            DROPPED: lambda: self.input.mapInArrow(bare.dropped, "rows long").collect(),
            EMPTY_STREAM: stream(bare.TYPED, ""),
            BARE_STREAM: stream(bare.TYPED, made),
            BARE_COPY: stream(bare.RAW, made, bare.NAME),
            GROUPED: lambda: (
                parsed(self.input.selectExpr("*", at).groupBy("key").agg(expr(newest)))
                .selectExpr(*SUMS)
                .collect()
            ),
            EMPTY: lambda: noop(
                self.spark.range(0, PARTS, 1, PARTS).mapInArrow(unchanged, "id long")
            ),
            IN_WORKER: lambda: topic.typed_count(source).collect(),
            WHOLE: lambda: noop(topic.typed(source)),
        }

    def measure(self, rounds: int) -> Iterator[tuple[str, dict[str, list[float]]]]:
        """Each work, and the seconds of each store."""
        for work in self.works:
            turns: dict[str, Callable[[], float]] = {
                store.name: lambda store=store, work=work: self.turn(work, store)
                for store in self.stores
                if work in store.works
            }  # type: ignore[misc]
            if work == PARTS_OF_WORKS:
                turns = {
                    name: lambda part=part: timed(part)  # type: ignore[misc]
                    for name, part in self.parts().items()
                }
            if turns:
                found = alternated(turns, rounds)
                said = ", ".join(f"{name} {min(each):.2f}" for name, each in found.items())
                print(f"{self.rows} x {self.size}, {work}: {said}", flush=True)
                yield work, found


def load() -> str:
    return " ".join(f"{each:.2f}" for each in os.getloadavg())


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def alternated(turns: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in turns}
    names = list(turns)
    for number in range(-1, rounds):
        for name in names if number % 2 == 0 else reversed(names):
            took = turns[name]()
            if number >= 0:
                found[name].append(float(f"{took:.4g}"))
    return found


def latencies(store: Any, seconds: float) -> list[float]:
    """How long ago each message was sent when its micro-batch handed it to a function, in ms."""
    from spark_peers.stores import LIVE

    place = LIVE
    store.create(place)
    found: list[tuple[float, float]] = []
    arrived = threading.Event()

    def take(frame: Any, _: int) -> None:
        sent = [row["amount"] for row in frame.select("amount").collect()]
        now = time.time()
        found.extend((each, now) for each in sent)
        arrived.set()

    live = subprocess.Popen(
        [sys.executable, "-m", "spark_peers.live", store.name, store.live_place(place)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert live.stdin is not None and live.stdout is not None
    try:
        if live.stdout.readline().strip() != "ready":
            raise RuntimeError(f"the producer of {store.name} ended")
        writer = store.typed_stream(place).writeStream.foreachBatch(take)
        query = writer.option("checkpointLocation", store.checkpoint()).start()
        arrived.wait(START_SECONDS_MAX)
        began = time.time()
        query.awaitTermination(WARM_SECONDS + seconds)
        query.stop()
    finally:
        live.stdin.close()
        live.wait()
    store.drop(place)
    counted = [(now - sent) * 1000 for sent, now in found if sent > began + WARM_SECONDS]
    if not counted:
        raise RuntimeError(f"{store.name}: no message arrived in {seconds} s")
    return sorted(float(f"{each:.4g}") for each in counted)


def session(folder: Path) -> Any:
    from spark_peers.stores import DELTA_SETTINGS

    import pulsarx.spark

    settings = {
        "spark.driver.memory": "4g", "spark.local.dir": str(folder / "spark"),
        "spark.sql.warehouse.dir": str(folder / "warehouse"), "spark.sql.shuffle.partitions": "4",
        # No store compresses: topics and Kafka do not unless they are told to.
        "spark.sql.parquet.compression.codec": "uncompressed",
        "spark.sql.ui.retainedExecutions": "1", "spark.log.level": "ERROR",
    }  # fmt: skip
    jars = [name for name in (get.DELTA, get.CONNECTOR) if not get.missing_jars(name)]
    if jars and get.has_packages():
        paths = ":".join(f"{get.BUILD / name}/*" for name in jars)
        settings["spark.driver.extraClassPath"] = paths
        if get.DELTA in jars:
            settings |= DELTA_SETTINGS
    return pulsarx.spark.session("comparison", "local[2]", settings)


def opened(spark: Any, folder: Path, only: list[str], skipped: dict[str, str]) -> list[Any]:
    """Ours first, and always."""
    from spark_peers import stores

    from pulsarx.spark.java_runtime import find_java

    java = os.path.join(find_java(), "bin", "java")
    topics = folder / "topics"
    makers: dict[str, Callable[[], Any]] = {
        stores.PULSARX: lambda: stores.Topic(spark, topics),
        stores.FLUSHED: lambda: stores.FlushedTopic(spark, folder / "flushed"),
        stores.PARQUET: lambda: stores.Parquet(spark, folder / "parquet"),
        stores.DELTA: lambda: stores.Delta(spark, folder / "delta"),
        stores.KAFKA: lambda: stores.Kafka(spark, folder / "kafka", java),
    }
    found = []
    for name, make in makers.items():
        if name.startswith(stores.PULSARX) or not only or name.lower() in only:
            try:
                found.append(make())
            except Missing as error:
                skipped[name] = str(error)
    return found


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    folder = SCRATCH / str(os.getpid())
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--works", default=",".join((*WORKS, PARTS_OF_WORKS, LATENCY)))
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--write", type=Path, default=FIGURES)
    options = parser.parse_args()
    options.works = options.works.split(",")
    unknown = set(options.works) - {*WORKS, PARTS_OF_WORKS, LATENCY}
    if unknown:
        parser.error(f"no such work: {', '.join(sorted(unknown))}")
    options.only = [name.lower() for name in options.only.split(",") if name]
    return options


def described_here() -> dict[str, Any]:
    import pyspark

    versions = {"Spark": pyspark.__version__}
    for name, jar in (("Delta", "delta-spark"), ("Kafka", "kafka_2.13")):
        folder = get.BUILD / (get.DELTA if name == "Delta" else get.BROKER)
        for path in folder.glob(f"{jar}*.jar"):
            versions[name] = path.stem.rpartition("-")[2]
    about = dict(described("spark"))
    return {"date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M"), "versions": versions,
            "machine": about}  # fmt: skip


def measured(options: argparse.Namespace, figures: dict[str, Any], folder: Path) -> None:
    """Into the figures, block by block, each written as soon as it is there."""
    skipped: dict[str, str] = {}
    spark = session(folder)
    stores = opened(spark, folder, options.only, skipped)
    try:
        for size in options.sizes:
            for rows in options.rows:
                name = f"{rows} x {size}"
                copies = COPIES if set(TABLE_WORKS) & set(options.works) else COPIES_WITHOUT_TABLES
                needed, free = rows * size * copies, shutil.disk_usage(folder).free
                if needed > free:
                    skipped[name] = f"needs {needed >> 30} GiB of disk, of which are {free >> 30}"
                    continue
                began = time.monotonic()
                area = folder / f"values-{rows}-{size}"
                works = [work for work in options.works if work != LATENCY]
                block = described_here() | {"seconds": {}, "dates": {}, "minutes": 0}
                before = figures["blocks"].get(name, {})
                if before and _is_alike(before, block):  # other works of it stay
                    block |= {each: before[each] for each in ("seconds", "dates", "minutes")}
                spent = block["minutes"]
                rounds = Rounds(spark, stores, area, rows, size, works)
                for work, seconds in rounds.measure(options.rounds):
                    block["seconds"][work] = seconds
                    block["dates"][work] = block["date"]
                    block["minutes"] = round(spent + (time.monotonic() - began) / 60, 1)
                    block["machine"]["load after"] = load()
                    figures["blocks"][name] = block
                    written(options.write, figures)
                rounds.close()
        if LATENCY in options.works:
            about = described_here() | {"seconds": options.seconds, "ms": {}}
            for store in stores:
                if LATENCY in store.works:
                    try:
                        found = latencies(store, options.seconds)
                    except Exception as error:
                        skipped[f"latency, {store.name}"] = f"{type(error).__name__}: {error}"[:200]
                        continue
                    said = about["ms"][store.name] = shares(found)
                    print(f"latency, {store.name}: {said}", flush=True)
                    figures["latency"] = about
                    written(options.write, figures)
    finally:
        figures["skipped"] = skipped
        written(options.write, figures)
        for store in stores:
            store.close()
        spark.stop()


def _is_alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether what two runs took may stand side by side."""
    processors = {each["machine"]["processor"] for each in (one, other)}
    return one["versions"] == other["versions"] and len(processors) == 1


def shares(values: list[float]) -> dict[str, float]:
    """Of sorted values."""
    return {
        "messages": len(values), "p50": values[len(values) // 2],
        "p99": values[min(len(values) * 99 // 100, len(values) - 1)], "max": values[-1],
    }  # fmt: skip


def written(path: Path, figures: dict[str, Any]) -> None:
    path.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def main() -> int:
    options = arguments()
    if get.has_packages():
        sys.path.insert(0, str(get.PYTHON))
    paths = [*([str(get.PYTHON)] if get.has_packages() else []), str(TREE), str(HERE.parent)]
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, os.environ.get("PYTHONPATH", "")])
    sys.path.append(str(TREE))
    figures: dict[str, Any] = {"blocks": {}, "latency": {}, "skipped": {}}
    if options.write.exists():
        figures |= json.loads(options.write.read_text(encoding="utf-8"))
    with scratch() as folder:
        measured(options, figures, folder)
    for name, why in figures["skipped"].items():
        print(f"skipped: {name}: {why}", file=sys.stderr)
    print(f"written: {options.write}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
