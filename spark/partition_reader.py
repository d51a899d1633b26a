"""Reading topics by partition-mapped functions: each Spark partition is some ledger ranges, read
by the worker that also runs the user's function. Executors open files, and the catalogue only to
renew a lease where the folder has no owner."""

from __future__ import annotations

import itertools
import json
import os
import weakref
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx.broker.scan.ledger_range import LedgerRange
from pulsarx.spark.cluster_url import is_store, read_root
from pulsarx.spark.frame_count import COUNT_DDL, count_in_tasks, count_row
from pulsarx.spark.given_filter import filters_of
from pulsarx.spark.keywords import check_keywords
from pulsarx.spark.row_filter import filtered
from pulsarx.spark.topic_columns import PARTITION, column_names, read_schema
from pulsarx.spark.topic_plan import given_back_on_error, plan_topic
from pulsarx.spark.value_choice import rules_of
from pulsarx.spark.worker_heap import freeze_heap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    import pyarrow as pa
    from pyspark import RDD, SparkContext
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.types import StructType

    from pulsarx.spark.row_filter import RowFilter
    from pulsarx.spark.value_format import ValueFormat

    Batches = Iterator[pa.RecordBatch]

RANGES_COLUMN = "ranges"
_READ_ARGUMENTS = (
    "root", "value_format", "mode", "time_zone", "timestamp_format", "date_format",
    "json_options",
)  # fmt: skip
# Of a batch that goes to Spark as it was decoded: then it is in the core's cache still. Of those of
# 8 MiB most was not, and a query took a tenth longer. Functions get large ones: each of their calls
# of Arrow costs as much for few rows.
PASSED_BYTES_MAX = 1 << 20
_COUNTED = (PARTITION,)  # the column that costs least: four bytes, the same in all rows
_RANGES_DDL = f"{RANGES_COLUMN} string"
_IDS_MAX = 8
_ids_lock = Lock()
_last_ids: tuple[weakref.ref[SparkSession], dict[int, DataFrame]] | None = None


def read_partitions(
    parts: Iterable[LedgerRange | list[LedgerRange] | pa.RecordBatch],
    columns: str | Sequence[str] | None = None,
    max_rows: int | None = None,
    fail_on_data_loss: bool = True,
    values: ValueFormat | None = None,
    where: str | Sequence[RowFilter] | None = None,
    max_bytes: int | None = None,
    selector: str | None = None,
) -> Batches:
    """Yield the messages of some ledger ranges as Arrow record batches. Runs in a worker: in
    `rdd.mapPartitions`, or first thing in the function of `plan_frame(...).mapInArrow`.

    Args:
        parts: Ledger ranges, lists of them, or record batches of `plan_frame`.
        columns: Those to read; None: those of the plan.
        max_rows: Messages of a batch at most; None: 65536.
        fail_on_data_loss: False: ledgers that retention removed since the plan are skipped.
        values: How the values become columns; None: they are bytes.
        where: Which messages, as option where; its columns need not be among those that are read.
        max_bytes: Bytes of a batch at most; None: 8 MiB. A larger message has a batch of its own.
        selector: Which messages, as option selector; None: all.

    Yields:
        The batches, in the order of the parts.

    Raises:
        FolderError: This host does not have the folder, or not that ledger any more; the text names
            host and path.
        DataLossError: Retention removed a ledger since the plan.
        CorruptDataError: A ledger is damaged.
        TypeError: parts hold something else.
    """
    from pulsarx.broker.scan.read_range import MAX_BYTES, MAX_ROWS
    from pulsarx.spark.joined_batches import join_small

    freeze_heap()
    names = None if columns is None else column_names(columns)
    if isinstance(where, str):
        where = filters_of(where)
    limits = max_rows or MAX_ROWS, max_bytes or MAX_BYTES
    found = _each_batch(
        parts, names, limits, fail_on_data_loss, values, where or (), selector or None
    )
    return join_small(found, *limits)


def _each_batch(
    parts: Iterable[LedgerRange | list[LedgerRange] | pa.RecordBatch],
    names: tuple[str, ...] | None,
    limits: tuple[int, int],
    fail_on_data_loss: bool,
    values: ValueFormat | None,
    where: Sequence[RowFilter],
    selector: str | None,
) -> Batches:
    from pulsarx.broker.scan.read_range import read_ranges
    from pulsarx.ground.extras import optional_module

    optional_module("pyarrow", "spark", "read_partitions")
    import pyarrow as pa

    of_range, of_rows = _of_range_and_rows(where)
    may_miss = partial(_may_miss, fail_on_data_loss)

    def columns_of(planned: LedgerRange) -> tuple[str, ...]:
        return tuple(planned.columns if names is None else names)

    for part in parts:
        ranges = [each for each in _ranges_of(part) if all(one.holds(each) for one in of_range)]
        for wanted, group in itertools.groupby(ranges, columns_of):
            compared = tuple({each.column: None for each in of_rows if each.column not in wanted})
            # Values are decoded by what their range says, so each has batches of its own then.
            alike = list(group)
            for read in [alike] if values is None else ([each] for each in alike):
                found: Batches = map(
                    pa.record_batch,
                    read_ranges(
                        read, wanted + compared, *limits, may_miss=may_miss, selector=selector
                    ),
                )
                if of_rows:
                    found = (filtered(batch, of_rows).select(wanted) for batch in found)
                if values is None:
                    yield from found
                    continue
                from pulsarx.spark.value_decoder import ValueDecoder

                decoder = ValueDecoder(values, read[0], of_rows, selector)
                for batch in found:
                    yield decoder.columns(batch)


def _of_range_and_rows(where: Sequence[RowFilter]) -> tuple[list[RowFilter], list[RowFilter]]:
    """Tell those apart that hold for a whole range, or for none of it, and look at no message."""
    of_range = [each for each in where if each.is_of_range()]
    return of_range, [each for each in where if not each.is_of_range()]


def _may_miss(fail_on_data_loss: bool, planned: LedgerRange, error: errors.FolderError) -> bool:
    if fail_on_data_loss or not _was_removed(planned):
        return False
    _warn(str(error))
    return True


def _was_removed(planned: LedgerRange) -> bool:
    """Whether the folder is here, or the object store, and only the ledger is not there any
    more."""
    if is_store(planned.path):
        return True  # all else that is wrong with it is another error
    from pulsarx.broker.staging.staging import folder_id_of

    try:
        return folder_id_of(planned.folder) == planned.folder_id and not os.path.exists(
            planned.path
        )
    except errors.PulsarException:
        return False


def _warn(text: str) -> None:
    import logging

    logging.getLogger("pulsarx.spark").warning("failOnDataLoss is off: %s", text)


def map_topic(
    spark: SparkSession,
    topics: str | Sequence[str],
    function: Callable[[Batches], Batches],
    schema: StructType | str,
    *,
    root: str | os.PathLike[str],
    columns: str | Sequence[str] | None = None,
    value_format: str | None = None,
    value_schema: StructType | str | None = None,
    mode: str | None = None,
    time_zone: str | None = None,
    timestamp_format: str | None = None,
    date_format: str | None = None,
    json_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> DataFrame:
    """Return a DataFrame of what a function makes of the topic, as `DataFrame.mapInArrow`, but read
    and function are one: the messages never leave the Python worker.

    The DataFrame is of what is published now, however often it is used. Without min_partitions
    there are as many tasks as Spark runs at once, of 1 MiB at least. The driver keeps its lease
    until nothing is left that was made of the DataFrame.

    Args:
        spark: The session.
        topics: A name, names with commas between, or a list of them.
        function: Gets an iterator of record batches with the named columns, once a Spark partition,
            and gives record batches with the columns of schema in their order. What else it gives
            is a TypeError of the task.
        schema: The columns that the function gives.
        root: The data directory; or an object store, as of `plan_topic`.
        columns: Only these are decoded; None: all.
        value_format: As read_topic.
        value_schema: As schema of read_topic.
        mode: As read_topic.
        time_zone: As read_topic.
        timestamp_format: As read_topic.
        date_format: As read_topic.
        json_options: As read_topic.
        **options: start, end, where, selector, max_bytes_per_partition ... of `plan_topic`, which
            runs now.

    Raises:
        TopicNotFound: There is no such topic.
        FolderError: There is no such folder.
        DataLossError: Retention removed messages behind start.
        ValueError: An argument is wrong; the text says what to change.
        TypeError: function cannot be called, or an option does not exist; the text names the
            nearest one.
    """
    from pyspark.sql.types import StructType

    check_keywords("map_topic", options, plan_topic, *_READ_ARGUMENTS, "value_schema")
    wanted = schema if isinstance(schema, StructType) else StructType.fromDDL(schema)
    if not callable(function):
        raise TypeError(f"function is {type(function).__name__}; it must be callable")
    if not isinstance(wanted, StructType):
        raise TypeError(f"schema {schema!r} has no columns; name them, as in 'value binary'")

    def map_checked(batches: Batches) -> Batches:
        from pulsarx.spark.mapped_batches import checked_batches

        return checked_batches(function(batches), wanted)

    chosen = value_format or ("raw" if value_schema is None else "json")
    json = _json_options(json_options, time_zone, timestamp_format, date_format)
    values = _planned_values(root, topics, columns, chosen, value_schema, mode, json)
    return _mapped_frame(spark, topics, map_checked, wanted, root, columns, options, values)


def read_topic(
    spark: SparkSession,
    topics: str | Sequence[str],
    *,
    root: str | os.PathLike[str],
    columns: str | Sequence[str] | None = None,
    schema: StructType | str | None = None,
    value_format: str | None = None,
    mode: str | None = None,
    time_zone: str | None = None,
    timestamp_format: str | None = None,
    date_format: str | None = None,
    json_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> DataFrame:
    """Return the messages of topics as a DataFrame, as they are now. Name the columns you need: one
    costs about half of all seven. `count()` of this DataFrame reads no values and sends no columns;
    that of what is made of it, by `where` or `select`, is Spark's. What is not read is not
    verified: damaged and encrypted messages count.

    Args:
        spark: The session.
        topics: A name, names with commas between, or a list of them.
        root: The data directory; or an object store, as of `plan_topic`.
        columns: Those to read; None: all.
        schema: The fields of the value, which is JSON ("price double, tags array<string>") or, with
            value_format avro, the definition.
        value_format: `raw`, `string`, `json`, `avro`, or `schema`, which is the topic's own;
            columns are then those of its fields, and of messages.
        mode: What becomes of a value that cannot be decoded: FAILFAST, the default, is an error,
            PERMISSIVE a row of what can be, with the value in _corrupt_record, DROPMALFORMED
            nothing.
        time_zone: The zone of times in JSON, as option timeZone of format("pulsarx").
        timestamp_format: The form of times in JSON, as option timestampFormat.
        date_format: The form of dates in JSON, as option dateFormat.
        json_options: More of from_json's options by their names, as {"allowComments": True}, and
            columnNameOfCorruptRecord.
        **options: Those of `map_topic`.

    Raises:
        TopicNotFound: There is no such topic.
        FolderError: There is no such folder.
        DataLossError: Retention removed messages behind start.
        ValueError: An argument is wrong; the text says what to change.
        TypeError: An option does not exist; the text names the nearest one.
    """
    check_keywords("read_topic", options, plan_topic, *_READ_ARGUMENTS, "schema")
    chosen = value_format or ("raw" if schema is None else "json")
    json = _json_options(json_options, time_zone, timestamp_format, date_format)
    values = _planned_values(root, topics, columns, chosen, schema, mode, json)
    frame_schema: StructType | str
    if values is None:
        frame_schema = read_schema(column_names(columns))
    else:
        frame_schema = values.frame_schema
    return _mapped_frame(spark, topics, iter, frame_schema, root, columns, options, values)


def _json_options(
    given: Mapping[str, Any] | None,
    time_zone: str | None,
    timestamp_format: str | None,
    date_format: str | None,
) -> dict[str, Any]:
    """The options of JSON by their names. ValueError: there is no such one, or not like that."""
    from pulsarx.spark.options import json_options

    found = json_options(given or {})
    for name, value in (
        ("timeZone", time_zone),
        ("timestampFormat", timestamp_format),
        ("dateFormat", date_format),
    ):
        if value is not None:
            if name in found:
                raise ValueError(f"{name} is given twice, once in json_options")
            found[name] = value
    return found


def _planned_values(
    root: str | os.PathLike[str],
    topics: str | Sequence[str],
    columns: str | Sequence[str] | None,
    value_format: str,
    value_schema: StructType | str | None,
    mode: str | None,
    json_options: dict[str, Any],
) -> ValueFormat | None:
    """None: the values are bytes."""
    from pyspark.sql.types import StructType

    from pulsarx.spark.root_view import open_root
    from pulsarx.spark.topic_plan import topic_names
    from pulsarx.spark.topic_source import check_topics
    from pulsarx.spark.value_choice import JSON, PERMISSIVE, SCHEMA, check_format
    from pulsarx.spark.value_format import FormatPlan

    if value_format == "json" and isinstance(value_schema, str):
        found = StructType.fromDDL(value_schema)
        if not isinstance(found, StructType):
            raise ValueError(f"schema {value_schema!r:.200} has no columns; name them")
        value_schema = found
    check_format(value_format, mode, value_schema)
    corrupt = json_options.pop("columnNameOfCorruptRecord", None)
    if corrupt is not None and (mode or "").upper() != PERMISSIVE:
        raise ValueError(f"columnNameOfCorruptRecord needs mode {PERMISSIVE}")
    if json_options and value_format not in (JSON, SCHEMA):
        raise ValueError(
            f"{', '.join(json_options)} (time_zone, timestamp_format, date_format, json_options): "
            f"about JSON; value_format is {value_format}"
        )
    rules = rules_of(json_options)
    if value_format == "raw":
        return None
    if isinstance(columns, str):
        columns = [each.strip() for each in columns.split(",")]
    named = topic_names(topics)
    broker = open_root(read_root(root), named)
    try:
        check_topics(broker, named)
        plan = FormatPlan(value_format, mode, value_schema, broker, named, rules, corrupt)
        return plan.of_schema(plan.schema(columns))
    finally:
        broker.close()


def _mapped_frame(
    spark: SparkSession,
    topics: str | Sequence[str],
    function: Callable[[Batches], Batches],
    schema: StructType | str,
    root: str | os.PathLike[str],
    columns: str | Sequence[str] | None,
    options: dict[str, Any],
    values: ValueFormat | None,
) -> DataFrame:
    from pulsarx.spark.lease_keeper import frame_is_left, is_leased, keeper

    if values is not None:
        columns = values.read_columns
    groups = _plan_groups(root, topics, columns, options, lambda: _parallelism(spark))
    with given_back_on_error(groups):
        if values is not None and values.reader is not None:
            # Behind the plan: a producer may have brought another version with what it published.
            values = _with_writers(values, root, {each.topic for group in groups for each in group})
        # As text, so that a task makes objects of its own part only.
        texts = [_text_of(group) for group in groups]
        fail = options.get("fail_on_data_loss", True)
        where = options.get("where") or ()
        bytes_max = PASSED_BYTES_MAX if function is iter and values is None else None
        chosen = where, options.get("selector")
        task = partial(_read_and_map, function, texts, fail, values, chosen, bytes_max)
        frame = _frame_of_ids(spark, len(texts)).mapInArrow(task, schema)
        if is_leased(groups):
            keeper.keep(groups, frame_is_left(frame))
    if function is iter and values is None:
        count_in_tasks(frame, partial(_counted_frame, spark, texts, fail, chosen))
    return frame


def _read_and_map(
    function: Callable[[Batches], Batches],
    texts: list[str],
    fail_on_data_loss: bool,
    values: ValueFormat | None,
    chosen: tuple[str | Sequence[RowFilter], str | None],
    bytes_max: int | None,
    ids: Batches,
) -> Batches:
    """Read the ranges of one task. Of this module, so that tasks are given its name and not its
    code."""
    found = read_partitions(
        _parts_of(ids, texts),
        fail_on_data_loss=fail_on_data_loss,
        values=values,
        where=chosen[0],
        selector=chosen[1],
        max_bytes=bytes_max,
    )
    return function(found)


def _counted_frame(
    spark: SparkSession,
    texts: list[str],
    fail_on_data_loss: bool,
    chosen: tuple[str | Sequence[RowFilter], str | None],
) -> DataFrame:
    """The counts of the messages of these tasks. Where most of a file is not looked at, fewer tasks
    have more of them: no more than run at once."""
    where, selector = chosen
    count = len(texts)
    if not (where or selector):
        count = min(_parallelism(spark) or count, count)
    shares = [
        texts[len(texts) * at // count : len(texts) * (at + 1) // count] for at in range(count)
    ]
    counting = partial(_count, shares, fail_on_data_loss, chosen)
    return _frame_of_ids(spark, count).mapInArrow(counting, COUNT_DDL)


def _count(
    shares: list[list[str]],
    fail_on_data_loss: bool,
    chosen: tuple[str | Sequence[RowFilter], str | None],
    ids: Batches,
) -> Batches:
    """Count the messages of one task."""
    from pulsarx.broker.scan.read_range import count_ranges

    freeze_heap()
    where, selector = chosen
    if isinstance(where, str):
        where = filters_of(where)
    of_range, of_rows = _of_range_and_rows(where)
    numbers = [index for batch in ids for index in batch.column(0).to_pylist()]
    parts = [_ranges_of_text(text) for index in numbers for text in shares[index]]
    if of_rows or selector:
        found = read_partitions(
            parts, _COUNTED, None, fail_on_data_loss, where=where, selector=selector
        )
        yield count_row(sum(each.num_rows for each in found))
        return
    ranges = [each for part in parts for each in part if all(one.holds(each) for one in of_range)]
    yield count_row(count_ranges(ranges, may_miss=partial(_may_miss, fail_on_data_loss)))


def _with_writers(
    values: ValueFormat, root: str | os.PathLike[str], topics: Iterable[str]
) -> ValueFormat:
    """The format with the versions that the topics have by now."""
    from pulsarx.spark.root_view import open_root

    broker = open_root(read_root(root), topics)
    try:
        return values.with_writers(broker, topics)
    finally:
        broker.close()


def _plan_groups(
    root: str | os.PathLike[str],
    topics: str | Sequence[str],
    columns: str | Sequence[str] | None,
    options: dict[str, Any],
    parallelism: Callable[[], int],
) -> list[list[LedgerRange]]:
    if options.get("min_partitions") is not None:
        options = {**options, "parallelism": 0}
    elif "parallelism" not in options:
        options = {**options, "parallelism": parallelism()}
    return plan_topic(root, topics, columns=columns, **options)


def topic_rdd(
    spark: SparkSession,
    topics: str | Sequence[str],
    *,
    root: str | os.PathLike[str],
    columns: str | Sequence[str] | None = None,
    batches: bool = False,
    **options: Any,
) -> RDD[Any]:
    """Return the messages of topics as an RDD of Rows.

    Args:
        spark: The session.
        topics: A name, names with commas between, or a list of them.
        root: The data directory.
        columns: Those to read; None: all.
        batches: Arrow record batches in place of Rows, much faster.
        **options: Those of `map_topic`.

    Raises:
        TopicNotFound: There is no such topic.
        FolderError: There is no such folder.
        DataLossError: Retention removed messages behind start.
        ValueError: An argument is wrong; the text says what to change.
        TypeError: An option does not exist; the text names the nearest one.
    """
    from pulsarx.spark.lease_keeper import is_leased, keeper, rdd_is_left

    check_keywords("topic_rdd", options, plan_topic, "root", "batches")
    context: SparkContext = spark.sparkContext
    groups = _plan_groups(root, topics, columns, options, lambda: context.defaultParallelism)
    fail = options.get("fail_on_data_loss", True)
    where, selector = options.get("where") or (), options.get("selector")
    if not groups:
        return context.emptyRDD()

    def read(parts: Iterable[str]) -> Iterator[Any]:
        ranges = map(_ranges_of_text, parts)
        found = read_partitions(ranges, fail_on_data_loss=fail, where=where, selector=selector)
        return found if batches else _rows_of(found)

    with given_back_on_error(groups):
        named = context.parallelize([_text_of(group) for group in groups], len(groups))
        if is_leased(groups):
            keeper.keep(groups, rdd_is_left(named))
    return named.mapPartitions(read)


def plan_frame(spark: SparkSession, groups: list[list[LedgerRange]]) -> DataFrame:
    """Return a frame with a row for each Spark partition that says as text what it reads, to be
    mapped by functions that call `read_partitions`.

    Args:
        spark: The session.
        groups: What `plan_topic` returned.
    """
    texts = [_text_of(group) for group in groups]

    def name_ranges(ids: Batches) -> Batches:
        import pyarrow as pa

        for batch in ids:
            found = [texts[index] for index in batch.column(0).to_pylist()]
            yield pa.record_batch([pa.array(found, pa.string())], [RANGES_COLUMN])

    return _frame_of_ids(spark, len(texts)).mapInArrow(name_ranges, _RANGES_DDL)


def _frame_of_ids(spark: SparkSession, count: int) -> DataFrame:
    """The numbers up to count, each in a Spark partition of its own; those of a read before, if it
    had as many: to make them and ask for their columns takes twice as long as the plan."""
    global _last_ids
    with _ids_lock:
        if _last_ids is None or _last_ids[0]() is not spark:
            _last_ids = (weakref.ref(spark), {})
        known = _last_ids[1]
        found = known.pop(count, None)
        if found is None:
            found = spark.range(0, count, 1, max(count, 1))
            if len(known) == _IDS_MAX:
                del known[next(iter(known))]  # the one that was used longest ago
        known[count] = found
        return found


def _parallelism(spark: SparkSession) -> int:
    try:
        return spark.sparkContext.defaultParallelism
    except Exception:  # Spark Connect has no context
        return 0


def _parts_of(ids: Batches, texts: list[str]) -> Iterator[list[LedgerRange]]:
    for batch in ids:
        for index in batch.column(0).to_pylist():
            yield _ranges_of_text(texts[index])


def _text_of(group: list[LedgerRange]) -> str:
    """By columns, of which those that are the same in all rows are one value: a third of the text,
    which goes through Java into each task."""
    columns = [list(column) for column in zip(*(planned.row() for planned in group))]
    size = len(group)
    short = [each[:1] if each.count(each[0]) == size else each for each in columns]
    return json.dumps([size, short], separators=(",", ":"))


def _ranges_of_text(text: str) -> list[LedgerRange]:
    size, columns = json.loads(text)
    whole = [each if len(each) == size else each * size for each in columns]
    return [LedgerRange.of_row(row) for row in zip(*whole)]


def _ranges_of(part: Any) -> Iterator[LedgerRange]:
    if isinstance(part, LedgerRange):
        yield part
    elif isinstance(part, list):
        yield from part
    elif hasattr(part, "schema") and RANGES_COLUMN in part.schema.names:
        for text in part.column(RANGES_COLUMN).to_pylist():
            yield from _ranges_of_text(text)
    else:
        raise TypeError(
            f"{type(part).__name__} is neither a ledger range, nor a list of them, nor a record "
            f"batch of plan_frame with the column {RANGES_COLUMN!r}"
        )


def _rows_of(batches: Batches) -> Iterator[Row]:
    from pyspark.sql import Row

    for batch in batches:
        make = Row(*batch.schema.names)
        for values in zip(*map(_values_of, batch.columns)):
            yield make(*values)


def _values_of(column: pa.Array) -> list[Any]:
    """Return the values of a column, properties as dict. PyArrow does that from version 20 on, we
    ask for 18."""
    import pyarrow as pa

    values: list[Any] = column.to_pylist()
    if pa.types.is_map(column.type):
        return [None if each is None else dict(each) for each in values]
    return values
