"""Every figure that was promised, as one table. A row that no benchmark fills makes the run fail.

A row is filled by the benchmark that names it: `measurement.pairs("send", ...)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

# What `units` means: one turn of `for message in messages: empty(message)`, empty being a method
# of an extension type that takes one argument. About 15 ns, whatever the machine does otherwise.


@dataclass(frozen=True)
class Row:
    """One promise. limit: the worst value that keeps it; stretch: what would be better still.

    promised: False: nobody was promised this figure, it is there to understand the others.
    """

    name: str
    file: str
    claim: str
    unit: str
    limit: float
    at_most: bool
    stretch: float | None = None
    prototype: str = ""
    promised: bool = True
    needs: str = ""  # a package that is asked for by nobody else; without it the row is skipped

    @property
    def is_skipped(self) -> bool:
        return bool(self.needs) and find_spec(self.needs) is None

    def is_met(self, value: float) -> bool:
        return value <= self.limit if self.at_most else value >= self.limit

    def is_stretched(self, value: float) -> bool:
        if self.stretch is None:
            return False
        return value <= self.stretch if self.at_most else value >= self.stretch


def _at_most(*values: str | float, **others: str | float | bool) -> Row:
    return Row(*values, at_most=True, **others)  # type: ignore[arg-type, misc]


def _at_least(*values: str | float, **others: str | float | bool) -> Row:
    return Row(*values, at_most=False, **others)  # type: ignore[arg-type, misc]


def _official(name: str, file: str, claim: str, limit: float, *, promised: bool = True) -> Row:
    return _at_least(name, file, claim, "times the CPU", limit, promised=promised, needs="pulsar")


# fmt: off
ROWS = (
    # name, file, claim, unit, limit
    _at_most("send", "bench_send.py",
             "`send_async(payload, None)`, flush included", "units", 5, prototype="3"),
    _at_most("send_key", "bench_send.py",
             "the same with a key", "units", 6, prototype="3.4"),
    _at_most("receive", "bench_receive.py",
             "`receive()` + `data()` + `acknowledge()`", "units", 8, stretch=4.5,
             prototype="3.7 to 5"),
    _at_most("send_many", "bench_send.py",
             "`send_many` of 1000, per message", "units", 1.5, prototype="0.6"),
    _at_most("receive_many", "bench_receive.py",
             "`receive_many(1000)` + `acknowledge_many`, per message", "units", 2,
             prototype="1.2"),
    _at_most("send_arrow", "bench_arrow.py",
             "`send_arrow`, per row", "units", 1.2, prototype="0.5"),
    _at_most("receive_arrow", "bench_arrow.py",
             "`receive_arrow` + `acknowledge_many`, per row", "units", 1.2, prototype="0.5"),
    _at_most("acknowledge_random", "bench_acknowledge.py",
             "`acknowledge()` of a million messages in random order, against in order",
             "of the time", 2),
    _at_most("acknowledge_state", "bench_acknowledge.py",
             "memory that acknowledgements in random order hold, per message", "bytes", 0.3),
    _at_most("acknowledge_reopen", "bench_acknowledge.py",
             "opening a folder whose subscription has a million holes, and attaching, after a kill",
             "ms", 50),
    _at_most("dispatch_shared", "bench_dispatch.py",
             "Shared with 4 consumers, `receive()` + `data()` + `acknowledge()`, against Exclusive",
             "of the time", 1.5),
    _at_most("dispatch_key_shared", "bench_dispatch.py",
             "Key_Shared with 16 consumers and 10,000 keys, the same", "of the time", 2),
    _at_most("dispatch_key_shared_many", "bench_dispatch.py",
             "the same with `receive_many(100)` and `acknowledge_many`", "of the time", 1.8),
    _at_least("dispatch_delayed", "bench_dispatch.py",
              "a million delayed messages due at once, against undelayed ones without batches",
              "of the rate", 0.5),
    _at_most("deduplicated_send", "bench_deduplication.py",
             "`send_async` of 100 bytes on a topic with deduplication, against one without",
             "times", 1.2),
    _at_most("partitioned_send", "bench_partitions.py",
             "keyed `send_async` of 100 bytes to 4 partitions by Murmur3, against a topic without "
             "partitions", "times", 1.5),
    _at_most("partitioned_send_many", "bench_partitions.py",
             "the same with `send_many` of 1000", "times", 1.5, promised=False),
    _at_most("lz4_send_many", "bench_codecs.py",
             "1 KiB, `send_many` with LZ4, against LZ4 alone on the same batches",
             "of the time", 1.1),
    _at_most("zstd_send_many", "bench_codecs.py",
             "1 KiB, `send_many` with ZSTD, against ZSTD alone on the same batches",
             "of the time", 1.1),
    _at_least("chunked_send", "bench_chunks.py",
              "a message of 100 MB, durability `os`, `send()` against copying it into fresh memory",
              "of the rate", 0.25),
    _at_least("chunked_receive", "bench_chunks.py",
              "the same, `receive()` + `data()`", "of the rate", 0.3),
    _at_most("chunked_memory", "bench_chunks.py",
             "the most memory that sending or receiving it takes", "messages", 3),
    _at_least("non_persistent", "bench_non_persistent.py",
              "100 bytes from `send_async` to `receive` on a non-persistent topic, batching off, "
              "against a persistent one", "of the rate", 1.3),
    _at_least("non_persistent_batches", "bench_non_persistent.py",
              "the same with batches of 1000", "of the rate", 1.3),
    _at_least("compaction", "bench_compaction.py",
              "compacting 10 million keyed messages of 100 bytes, of which half have a key of "
              "their own, against `read_many`", "of the rate", 0.2),
    _at_least("compaction_distinct", "bench_compaction.py",
              "the same where each has a key of its own: all survive", "of the rate", 0.2),
    _at_least("selector", "bench_selector.py",
              "`receive` of a subscription whose selector matches 1 of 100 messages, against one "
              "without: stored messages gone through", "of the rate", 0.5),
    _at_least("selector_many", "bench_selector.py",
              "the same with `receive_many`", "of the rate", 0.5),
    _at_least("kib_send_many", "bench_kib.py",
              "1 KiB, `send_many` into prepared space, against checksum + `pwrite` in C",
              "of the rate", 0.75),
    _at_least("kib_send", "bench_kib.py",
              "1 KiB, `send_async`, against the same", "of the rate", 0.5),
    _at_least("kib_cold", "bench_kib.py",
              "1 KiB, sustained over new ledgers, against `pwrite` of 128 KiB into allocated files",
              "of the rate", 0.6),
    _at_most("copied_send", "bench_copied.py",
             "100 bytes, `send_async`, against copy + checksum + `pwrite` in C", "of the time",
             2.2),
    _at_most("copied_send_many", "bench_copied.py",
             "100 bytes, `send_many` of 1000, against the same", "of the time", 1.35),
    _at_most("copied_send_arrow", "bench_copied.py",
             "100 bytes, `send_arrow` of 10,000 rows, against the same", "of the time", 1.35),
    _at_most("copied_send_many_kib", "bench_copied.py",
             "1 KiB, `send_many` of 1000, against the same", "of the time", 1.35),
    _at_most("copied_send_arrow_kib", "bench_copied.py",
             "1 KiB, `send_arrow` of 1,024 rows, against the same", "of the time", 1.35),
    _at_most("durable_send", "bench_durable.py",
             "durable `send`, one thread, against `pwrite` + `fdatasync`", "of the time", 1.15),
    _at_least("durable_threads", "bench_durable.py",
              "durable `send` from 16 threads, against one thread", "times the rate", 8),
    _at_least("durable_many", "bench_durable.py",
              "durable `send_many` of 1000, against LMDB, `sync=True`, 1000 a transaction",
              "times the rate", 2.5),
    _at_most("transaction", "bench_transactions.py",
             "taking a message and publishing one in a transaction, durable, one thread, against a "
             "durable `send`", "of the time", 1.3),
    _at_most("transaction_many", "bench_transactions.py",
             "100 messages to 3 topics and 100 acknowledgements in a transaction, durable, against "
             "the same without", "of the time", 1.5),
    _at_most("latency", "bench_latency.py",
             "send to receive to acknowledge, one thread, batching off, median", "µs", 2),
    _at_most("between_processes", "bench_processes.py",
             "send in a process to receive in another, the slower way of the two, median, against "
             "a byte to the other process and back over a Unix socket, both on one core and on a "
             "core each, whichever is slower", "of the time", 3),
    _at_least("forwarded_send", "bench_processes.py",
              "`send_async` of 100 bytes with batches in a process beside the owner, against the "
              "owner", "of the rate", 0.125),
    _at_most("asyncio_send", "bench_asyncio.py",
             "asyncio `send` of 100 bytes, 1000 in flight, above a task that awaits a future, CPU",
             "µs", 2),
    _at_most("asyncio_receive", "bench_asyncio.py",
             "asyncio `receive` + `acknowledge`, the same", "µs", 2),
    _at_most("open_large", "bench_open.py",
             "opening a folder with 10 GB in sealed ledgers", "ms", 50),
    _at_most("open_any_size", "bench_open.py",
             "the same against a folder with 1 GB (1: independent of the size)", "of the time",
             1.5),
    _at_most("import_and_open", "bench_open.py",
             "`import pulsarx`, as pip installs it, and opening an empty folder, against a bare "
             "interpreter, whole processes", "of the time", 2.5),
    _at_most("memory", "bench_memory.py",
             "a received and held 100-byte message of a million, resident", "bytes", 200),
    _at_most("timer_insert", "bench_timers.py",
             "arming a timer while a million others are pending", "units", 5),
    _at_most("timer_cancel", "bench_timers.py",
             "cancelling it, in the order of arming, likewise", "units", 5),
    _at_most("timer_memory", "bench_timers.py",
             "ten million pending timers, resident", "MB", 400),
    _at_most("idle", "bench_idle.py",
             "CPU time of an idle client", "µs a second", 0),
    _at_most("idle_topics", "bench_idle.py",
             "an idle topic of 10,000, resident", "bytes", 4096),
    _at_most("idle_subscriptions", "bench_idle.py",
             "an idle subscription, resident", "bytes", 4096),
    _at_most("create_topics", "bench_topics.py",
             "a producer on each of 10,000 new topics, durability `os`", "s", 3),
    _at_most("pattern_open", "bench_topics.py",
             "a consumer of a pattern over 10,000 topics, with new subscriptions, durability `os`",
             "s", 2),
    _at_least("read_table", "bench_tables.py",
              "`read_table` of a million JSON messages of 113 bytes by the topic's schema, against "
              "pyarrow's reader of JSON on the same bytes", "of the rate", 0.5),
    _at_most("schema_json_encode", "bench_schema.py",
             "encoding a `Record` as JSON, against the official client", "of the time", 1,
             needs="pulsar"),
    _at_most("schema_json_decode", "bench_schema.py",
             "decoding it", "of the time", 1, needs="pulsar"),
    _at_most("schema_avro_encode", "bench_schema.py",
             "encoding it as Avro", "of the time", 1, needs="pulsar"),
    _at_most("schema_avro_decode", "bench_schema.py",
             "decoding that", "of the time", 1, needs="pulsar"),
    # CPU time of a call of the official client, against that of PulsarX: at least what was measured
    # before they were rows. `send` is there for those who ask: one waits for a broker, one for the
    # device.
    _official("official_send_100_os", "bench_official.py",
              "`send`, 100 bytes, durability `os`", 1, promised=False),
    _official("official_send_100", "bench_official.py",
              "`send`, 100 bytes, durability `sync`", 1, promised=False),
    _official("official_send_1024_os", "bench_official.py",
              "`send`, 1 KiB, durability `os`", 1, promised=False),
    _official("official_send_1024", "bench_official.py",
              "`send`, 1 KiB, durability `sync`", 1, promised=False),
    _official("official_send_10240_os", "bench_official.py",
              "`send`, 10 KiB, durability `os`", 1, promised=False),
    _official("official_send_10240", "bench_official.py",
              "`send`, 10 KiB, durability `sync`", 1, promised=False),
    _official("official_send_async_100_os", "bench_official.py",
              "`send_async` with a callback, and `flush`, 100 bytes, durability `os`", 13),
    _official("official_send_async_100", "bench_official.py",
              "`send_async` with a callback, and `flush`, 100 bytes, durability `sync`", 13),
    _official("official_send_async_1024_os", "bench_official.py",
              "`send_async` with a callback, and `flush`, 1 KiB, durability `os`", 13),
    _official("official_send_async_1024", "bench_official.py",
              "`send_async` with a callback, and `flush`, 1 KiB, durability `sync`", 13),
    _official("official_send_async_10240_os", "bench_official.py",
              "`send_async` with a callback, and `flush`, 10 KiB, durability `os`", 13),
    _official("official_send_async_10240", "bench_official.py",
              "`send_async` with a callback, and `flush`, 10 KiB, durability `sync`", 13),
    _official("official_receive_100_os", "bench_official.py",
              "`receive` + `data` + `acknowledge`, 100 bytes, durability `os`", 16),
    _official("official_receive_100", "bench_official.py",
              "`receive` + `data` + `acknowledge`, 100 bytes, durability `sync`", 16),
    _official("official_receive_1024_os", "bench_official.py",
              "`receive` + `data` + `acknowledge`, 1 KiB, durability `os`", 16),
    _official("official_receive_1024", "bench_official.py",
              "`receive` + `data` + `acknowledge`, 1 KiB, durability `sync`", 16),
    _official("official_receive_10240_os", "bench_official.py",
              "`receive` + `data` + `acknowledge`, 10 KiB, durability `os`", 16),
    _official("official_receive_10240", "bench_official.py",
              "`receive` + `data` + `acknowledge`, 10 KiB, durability `sync`", 16),
    # The official client on both sides of loopback, against a native broker that does nothing:
    # what is faster than that may still lie below the client's own ceiling. `send` is there for
    # those who ask: it waits for every message, be it for a thread.
    _at_least("serve_send_async", "bench_serve.py",
              "the official client publishes 100 bytes in batches", "of the rate", 0.8,
              needs="pulsar"),
    _at_least("serve_receive", "bench_serve.py",
              "it receives and acknowledges them", "of the rate", 0.8, needs="pulsar"),
    _at_least("serve_send", "bench_serve.py",
              "it publishes and waits for each", "of the rate", 0.8, promised=False,
              needs="pulsar"),
    _at_least("serve_load_1000", "bench_serve.py",
              "100 bytes in batches of 1,000, in and out at the same time", "messages a second",
              500_000),
    _at_least("serve_load_100", "bench_serve.py", "the same in batches of 100",
              "messages a second", 500_000, promised=False),
    _at_least("serve_load_1", "bench_serve.py", "the same, one by one",
              "messages a second", 150_000),
    # Beside a loop in C that writes each record by itself.
    _at_least("serve_flight", "bench_serve.py",
              "100 bytes one by one, 64 unconfirmed, against `pwrite` of each", "of the rate", 0.4),
    # Half of what is above the device is two ways over loopback, which no server spares.
    _at_most("serve_durable", "bench_serve.py",
             "one durable message after another, against `pwrite` and `fdatasync` of each",
             "of the median time", 1.3, promised=False),
    _official("real_pulsar_send_100", "bench_real_pulsar.py",
              "`send`, 100 bytes", 1, promised=False),
    _official("real_pulsar_send_1024", "bench_real_pulsar.py",
              "`send`, 1 KiB", 1, promised=False),
    _official("real_pulsar_send_10240", "bench_real_pulsar.py",
              "`send`, 10 KiB", 1, promised=False),
    _official("real_pulsar_send_async_100", "bench_real_pulsar.py",
              "`send_async` with a callback, and `flush`, 100 bytes", 13),
    _official("real_pulsar_send_async_1024", "bench_real_pulsar.py",
              "`send_async` with a callback, and `flush`, 1 KiB", 13),
    _official("real_pulsar_send_async_10240", "bench_real_pulsar.py",
              "`send_async` with a callback, and `flush`, 10 KiB", 13),
    _official("real_pulsar_receive_100", "bench_real_pulsar.py",
              "`receive` + `data` + `acknowledge`, 100 bytes", 16),
    _official("real_pulsar_receive_1024", "bench_real_pulsar.py",
              "`receive` + `data` + `acknowledge`, 1 KiB", 16),
    _official("real_pulsar_receive_10240", "bench_real_pulsar.py",
              "`receive` + `data` + `acknowledge`, 10 KiB", 16),
    _at_least("real_pulsar_transaction", "bench_java_transactions.py",
              "taking a message and publishing one, against PulsarX in a process",
              "times the time", 10),
    _at_least("real_pulsar_transaction_many", "bench_java_transactions.py",
              "100 messages to 3 topics and 100 acknowledgements, against the same",
              "times the time", 10),
    _at_least("real_pulsar_transaction_served", "bench_java_transactions.py",
              "taking a message and publishing one, against the same program on a served folder",
              "times the time", 1, promised=False),
    _at_least("real_pulsar_transaction_many_served", "bench_java_transactions.py",
              "100 messages to 3 topics and 100 acknowledgements, against the same",
              "times the time", 1, promised=False),
    # On Spark, one session with TCP and one with Unix domain sockets; 5 million messages.
    _at_least("spark_source_tcp", "bench_spark.py",
              "`format(\"pulsarx\")`, value only, against a source that yields one prebuilt batch",
              "of the rate", 0.9, prototype="0.92"),
    _at_least("spark_source_uds", "bench_spark.py",
              "the same with Unix sockets", "of the rate", 0.9, prototype="0.95"),
    _at_least("spark_topic_tcp", "bench_spark.py",
              "`read_topic`, value only, against `mapInArrow` that yields one prebuilt batch",
              "of the rate", 0.85, prototype="0.87"),
    _at_least("spark_topic_uds", "bench_spark.py",
              "the same with Unix sockets", "of the rate", 0.85, prototype="0.87"),
    _at_most("spark_topic_parquet", "bench_spark.py",
             "`read_topic` of 20 million with Unix sockets, value only, against Parquet",
             "of the time", 1.5, prototype="1.3"),
    _at_most("spark_count", "bench_spark.py",
             "`read_topic(...).count()` of all columns, Unix sockets, against Parquet's",
             "of the time", 1.3),
    _at_least("spark_map_tcp", "bench_spark.py",
              "`map_topic`, against Parquet and `mapInArrow` with the same function",
              "times the rate", 3, prototype="3.1 to 3.4"),
    _at_least("spark_map_uds", "bench_spark.py",
              "the same with Unix sockets", "times the rate", 3, prototype="3.4"),
    _at_most("spark_save_tcp", "bench_spark.py",
             "`format(\"pulsarx\")` writes, flush and attach included, against Parquet unflushed",
             "of the time", 1.5, prototype="1.4"),
    _at_most("spark_save_uds", "bench_spark.py",
             "the same with Unix sockets", "of the time", 1.3, prototype="1.2"),
    _at_most("spark_save_unflushed", "bench_spark.py",
             "the same over TCP, without flush", "of the time", 1.15, prototype="1.1"),
    _at_most("spark_write_tcp", "bench_spark.py",
             "`write_topic`, flush and attach included, against Parquet unflushed",
             "of the time", 1.5, prototype="1.1"),
    _at_most("spark_write_uds", "bench_spark.py",
             "the same with Unix sockets", "of the time", 1.3, prototype="1.0"),
    _at_most("spark_write_unflushed", "bench_spark.py",
             "the same over TCP, without flush", "of the time", 1.15),
    _at_most("spark_columns_tcp", "bench_spark.py",
             "`format(\"pulsarx\")`, 7 columns against one", "of the time", 1.8, prototype="1.7"),
    _at_most("spark_columns_uds", "bench_spark.py",
             "the same with Unix sockets", "of the time", 1.8, prototype="1.6"),
    _at_most("spark_topic_columns_tcp", "bench_spark.py",
             "`read_topic`, 7 columns against one", "of the time", 1.8),
    _at_most("spark_topic_columns_uds", "bench_spark.py",
             "the same with Unix sockets", "of the time", 1.8),
    _at_most("spark_columns_rich", "bench_spark.py",
             "`format(\"pulsarx\")`, TCP, 7 columns against one, messages with key, event time and "
             "a property", "of the time", 1.8, promised=False),
    _at_most("spark_typed", "bench_spark.py",
             "`format(\"pulsarx\")` of a million flights as JSON, typed columns and a groupBy, "
             "Unix sockets, against `from_json`", "of the time", 0.5),
    _at_most("spark_typed_parquet", "bench_spark.py",
             "the same against Parquet with the JSON as strings, and `from_json`",
             "of the time", 0.8),
    _at_most("spark_typed_avro", "bench_spark.py",
             "the same of the flights as Avro, against `from_json` of them as JSON",
             "of the time", 0.5),
    _at_most("spark_typed_avro_parquet", "bench_spark.py",
             "the same of Avro against Parquet with JSON as strings, and `from_json`",
             "of the time", 0.8),
    _at_most("spark_typed_map", "bench_spark.py",
             "`map_topic` with typed columns of JSON and sums by carrier, Unix sockets, against "
             "Parquet with JSON as strings, `from_json` and `mapInArrow`", "of the time", 0.5),
    _at_most("spark_typed_avro_map", "bench_spark.py",
             "the same of Avro, against Parquet with JSON", "of the time", 0.5),
    _at_most("spark_many_topics", "bench_spark.py",
             "`read_topic` of 1,000 topics of 300 messages, Unix sockets, against one of 300,000",
             "of the time", 1.5),
    _at_most("spark_many_ledgers", "bench_spark.py",
             "the same of 1,000 ledgers of one topic, against 10 with the same messages",
             "of the time", 1.3),
    _at_most("spark_merged_ledgers", "bench_spark.py",
             "the same of 1,000 merged ledgers, against 1,000 with files of their own",
             "of the time", 1.1),
    _at_most("spark_batch_tcp", "bench_spark.py",
             "a micro-batch, over one into a Python sink that does nothing", "ms", 30),
    _at_most("spark_batch_uds", "bench_spark.py",
             "the same with Unix sockets", "ms", 30),
    _at_most("spark_attach", "bench_spark_driver.py",
             "attaching 200 files in a folder that nobody owns", "ms", 100),
    _at_most("spark_attach_owner", "bench_spark_driver.py",
             "the same beside a living owner", "ms", 100),
    _at_most("spark_merge", "bench_spark_driver.py",
             "merging 1,000 ledgers of 4 KB with `merge_ledgers`, every entry verified twice, in a "
             "folder that nobody owns", "ms", 1000),
    _at_most("spark_plan", "bench_spark_driver.py",
             "planning a topic of 10,000 ledgers, opening the folder included", "ms", 200),
    _at_most("spark_latest", "bench_spark_driver.py",
             "`latestOffset` while nothing is published, beside a living owner", "ms", 0.2),
    _at_least("spark_decode", "bench_spark_driver.py",
              "`read_range`, value only, in one process without Spark", "million rows a second", 50,
              promised=False, prototype="57 to 98"),
)
# fmt: on

BY_NAME = {row.name: row for row in ROWS}
# The largest writer comes last: what it leaves for the disk to do would disturb the others.
CORE_FILES = (
    "bench_send.py",
    "bench_compaction.py",
    "bench_deduplication.py",
    "bench_partitions.py",
    "bench_codecs.py",
    "bench_non_persistent.py",
    "bench_receive.py",
    "bench_selector.py",
    "bench_asyncio.py",
    "bench_acknowledge.py",
    "bench_dispatch.py",
    "bench_arrow.py",
    "bench_schema.py",
    "bench_tables.py",
    "bench_copied.py",
    "bench_kib.py",
    "bench_chunks.py",
    "bench_durable.py",
    "bench_transactions.py",
    "bench_latency.py",
    "bench_processes.py",
    "bench_memory.py",
    "bench_timers.py",
    "bench_idle.py",
    "bench_topics.py",
    "bench_open.py",
)
SPARK_FILES = ("bench_spark_driver.py", "bench_spark.py")


@dataclass(frozen=True)
class Group:
    """What is measured in one run, and has a part of RESULTS.md."""

    name: str
    title: str
    command: str
    files: tuple[str, ...]
    text: tuple[str, ...]  # lines in front of the table

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for row in ROWS if row.file in self.files)


CORE = Group("core", "The library", "make bench", CORE_FILES, (
    "One unit is a turn of a loop over a method of an extension type that takes one argument and",
    "does nothing.",
))  # fmt: skip
SPARK = Group("spark", "On Spark", "make bench-spark", SPARK_FILES, (
    "Messages of 100 bytes that nothing compresses: 5 million where a row does not say otherwise.",
    "local[2], 8 tasks on both sides, files in the page cache; each side ran twice before it was",
    "measured. What planning, leases, flushes and commits take is counted.",
))  # fmt: skip
_SCRIPT = (
    "CPU time of a call of the official client, against that of the same script with PulsarX on a",
    "folder. The time is that of the whole process, user and system: threads of either library",
    "count, its broker and what the kernel does later (writing pages, loopback) do not.",
)
OFFICIAL = Group("official", "Beside the official client", "make bench-official",
                 ("bench_official.py",), (
    *_SCRIPT,
    "The broker of the official client does nothing: it confirms each message at once, and gives",
    "out a batch in memory again and again.",
))  # fmt: skip
REAL_PULSAR = Group("real_pulsar", "Beside the official client on a real Pulsar", "make oracle",
                    ("bench_real_pulsar.py",), (
    *_SCRIPT,
    "The broker is Apache Pulsar standalone on the same machine, which does not flush its journal",
    "to the device; the folder has the default durability, `sync`, which flushes.",
))  # fmt: skip
TRANSACTIONS = Group("transactions", "Transactions beside a real Pulsar", "make oracle",
                     ("bench_java_transactions.py",), (
    "The time of a transaction of the official Java client, one thread, on Pulsar 4.2.4 standalone",
    "on the same machine, which does not flush its journal to the device. Folders have the default",
    "durability, `sync`, which flushes each commit. Starting Java, and as many transactions in",
    "front of those that are timed, do not count.",
))  # fmt: skip
SERVE = Group("serve", "Served over TCP", "make bench-serve", ("bench_serve.py",), (
    "Both ends on one machine, over loopback; the folder has durability `os`. A rate is that of",
    "the same client on a broker that does nothing, measured in turns. The load is that of a",
    "generator which repeats one batch, with 64 of them unconfirmed.",
))  # fmt: skip
GROUPS = {group.name: group for group in (CORE, OFFICIAL, REAL_PULSAR, TRANSACTIONS, SERVE, SPARK)}
# Nothing is promised of them, so they have no rows: peers/rounds.py and peers/table.py.
PEERS = Group("peers", "Beside its peers", "make bench-peers", (), (
    "Each figure is how many times as fast as the other PulsarX is (2: half of its time; below 1:",
    "the other is faster): the median of the ratios of turns of one round, the least and the most.",
    "The same messages, one machine, one run, turns A B C, C B A. Each peer is written as its own",
    "documentation advises (`peers/`), and a payload is in hand before it is acknowledged. In",
    "process: beside PulsarX on a folder. Over TCP: beside the official client on `pulsarx serve`,",
    "by the Python client of the other on its server, and PulsarX in process and the bound.",
    "Without a client library: encoded bytes are sent and answers counted; nobody is subscribed.",
    "A batch is a thousand messages, or a MiB.",
    "",
    "Page cache: what is confirmed outlives the process, not the machine. Flushed: it is on the",
    "device; persist-queue always flushes. Acknowledgements outlive the process; those of LMDB,",
    "litequeue, persist-queue and Redis are flushed with the rest, the others need not be. LMDB,",
    "RocksDB, SQLite and litequeue wake nobody, so a hand-over by them is as long as one polls;",
    "what is called `polled` keeps a core busy.",
))  # fmt: skip
PARTS = (*GROUPS.values(), PEERS)
