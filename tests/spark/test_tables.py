"""Tables of Spark's catalogue cannot be topics, because Spark loses their options. What would make
one, or write one, is refused before it has written; ordinary writes are not taken for that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from spark_steps import catalogue_number, make_topics, read, run_stream, send, staged, values, write

import pulsarx


def rows(spark: Any, count: int = 3) -> Any:
    return spark.range(0, count, numPartitions=2).selectExpr("CAST(id AS string) AS value")


def writer(spark: Any, folder: Path, **options: str) -> Any:
    given = {"root": str(folder), "topic": "t", **options}
    return rows(spark).write.format("pulsarx").options(**given)


def tables(spark: Any) -> list[str]:
    return [each.name for each in spark.catalog.listTables() if not each.isTemporary]


def warehouse(spark: Any) -> Path:
    return Path(spark.conf.get("spark.sql.warehouse.dir").removeprefix("file:"))


def make_by_writer(spark: Any, folder: Path) -> None:
    made = rows(spark).writeTo("made").using("pulsarx")
    made.option("root", str(folder)).option("topic", "t").create()


MAKERS: dict[str, Callable[[Any, Path], None]] = {
    "errorifexists": lambda spark, folder: writer(spark, folder).saveAsTable("made"),
    "append": lambda spark, folder: writer(spark, folder).mode("append").saveAsTable("made"),
    "ignore": lambda spark, folder: writer(spark, folder).mode("ignore").saveAsTable("made"),
    "overwrite": lambda spark, folder: writer(spark, folder).mode("overwrite").saveAsTable("made"),
    "again": lambda spark, folder: writer(spark, folder, txnAppId="a", txnVersion="1").saveAsTable(
        "made"
    ),
    "writeTo": make_by_writer,
    "as select": lambda spark, folder: spark.sql(
        f"CREATE TABLE made USING pulsarx OPTIONS (root '{folder}', topic 't') "
        "AS SELECT 'x' AS value"
    ),
    "create": lambda spark, folder: spark.sql(
        f"CREATE TABLE made USING pulsarx OPTIONS (root '{folder}', topic 't')"
    ),
    "createTable": lambda spark, folder: spark.catalog.createTable(
        "made", source="pulsarx", root=str(folder), topic="t"
    ),
}


@pytest.mark.parametrize(
    ("how", "alive"), [*((how, False) for how in MAKERS), ("append", True), ("create", True)]
)
def test_making_a_table_of_a_write_is_refused_and_leaves_nothing(
    spark: Any, folder: Path, how: str, alive: bool
) -> None:
    """saveAsTable wrote its rows and left a table that nobody could read; the same rows came twice
    when the job was mended and run again."""
    make_topics(folder, "t")
    if how == "again":
        write(rows(spark), folder, "t", txnAppId="a", txnVersion="1")
    before, number = values(folder, "t"), catalogue_number(folder)
    owner = pulsarx.Client(folder, durability="os") if alive else None
    number += alive
    text = "AS SELECT|saveAsTable|overwrite|TEMPORARY VIEW"
    with pytest.raises(Exception, match=text):
        MAKERS[how](spark, folder)
    assert tables(spark) == [] and not (warehouse(spark) / "made").exists()
    assert catalogue_number(folder) == number
    if owner is not None:
        owner.close()
    assert values(folder, "t") == before and not staged(folder)
    write(rows(spark), folder, "t")
    assert len(values(folder, "t")) == len(before) + 3


def test_a_table_that_spark_makes_without_asking_can_neither_be_read_nor_inserted_into(
    spark: Any, folder: Path
) -> None:
    """CREATE TABLE with columns never asks the data source."""
    make_topics(folder, "t")
    options = f"OPTIONS (root '{folder}', topic 't')"
    spark.sql(f"CREATE TABLE made (value STRING) USING pulsarx {options}")
    try:
        for insert in (
            lambda: rows(spark).write.insertInto("made"),
            lambda: spark.sql("INSERT INTO made VALUES ('x')"),
        ):
            with pytest.raises(Exception, match=r"option root is missing.*insertInto"):
                insert()
        with pytest.raises(Exception, match=r"option root is missing.*TEMPORARY VIEW"):
            spark.table("made").collect()
    finally:
        spark.sql("DROP TABLE made")
    assert values(folder, "t") == [] and not staged(folder)


def test_a_stream_to_a_table_is_refused_before_it_has_written(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    """Spark makes the table before it starts the stream, so that stays."""
    make_topics(folder, "t", "in")
    with pulsarx.Client(folder, durability="os") as client:
        send(client, "in", [b"1", b"2"])
    source = read_stream(spark, folder).writeStream.format("pulsarx")
    options = {"root": str(folder), "topic": "t", "checkpointLocation": str(tmp_path / "c")}
    query = source.options(**options).trigger(availableNow=True).toTable("made")
    try:
        with pytest.raises(Exception, match=r"toTable.*DROP"):
            query.awaitTermination(100)
    finally:
        spark.sql("DROP TABLE made")
    assert values(folder, "t") == [] and not staged(folder)


def read_stream(spark: Any, folder: Path) -> Any:
    options = {"root": str(folder), "topic": "in", "startingOffsets": "earliest"}
    return spark.readStream.format("pulsarx").options(**options, columns="value").load()


def test_an_ordinary_write_is_not_taken_for_a_table(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    """Also inside of another execution, or behind one: of a stream, of a thread, of a cache."""
    from pyspark import InheritableThread

    make_topics(folder, "t", "in")
    with pulsarx.Client(folder, durability="os") as client:
        send(client, "in", [b"1", b"2"])

    def save(frame: Any) -> None:
        spark._jvm.org.apache.spark.sql.SparkSession.setActiveSession(spark._jsparkSession)
        write(frame, folder, "t")

    save(rows(spark).cache())
    kinds: list[Any] = [threading.Thread, InheritableThread]
    for kind in kinds:
        thread = kind(target=save, args=(rows(spark),))
        thread.start()
        thread.join()
    assert len(values(folder, "t")) == 9

    def each(frame: Any, batch: int) -> None:
        save(frame.select("value"))
        thread = InheritableThread(target=save, args=(frame.select("value"),))
        thread.start()
        thread.join()

    option = {"checkpointLocation": str(tmp_path / "c")}
    stream = read_stream(spark, folder).writeStream.foreachBatch(each).options(**option)
    stream.trigger(availableNow=True).start().awaitTermination(100)
    assert len(values(folder, "t")) == 13
    run_stream(spark, folder, "in", "t", tmp_path / "d")
    spark.sql(f"CREATE TEMPORARY VIEW of_t USING pulsarx OPTIONS (root '{folder}', topic 't')")
    assert spark.table("of_t").count() == 15 == read(spark, folder, "t").count()
    spark.catalog.dropTempView("of_t")
