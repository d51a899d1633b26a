"""Every figure that was promised, as one table. A row that no benchmark fills makes the run fail.

A row is filled by the benchmark that names it: `measurement.pairs("send", ...)`.
"""

from __future__ import annotations

from dataclasses import dataclass

# What `units` means: one turn of `for message in messages: empty(message)`, empty being a method
# of an extension type that takes one argument. About 15 ns, whatever the machine does otherwise.


@dataclass(frozen=True)
class Row:
    """One promise. limit: the worst value that keeps it; stretch: what would be better still."""

    name: str
    file: str
    claim: str
    unit: str
    limit: float
    at_most: bool
    stretch: float | None = None
    prototype: str = ""

    def is_met(self, value: float) -> bool:
        return value <= self.limit if self.at_most else value >= self.limit

    def is_stretched(self, value: float) -> bool:
        if self.stretch is None:
            return False
        return value <= self.stretch if self.at_most else value >= self.stretch


def _at_most(*values: str | float, **others: str | float) -> Row:
    return Row(*values, at_most=True, **others)  # type: ignore[arg-type, misc]


def _at_least(*values: str | float, **others: str | float) -> Row:
    return Row(*values, at_most=False, **others)  # type: ignore[arg-type, misc]


# fmt: off
ROWS = (
    # name, file, claim, unit, limit
    _at_most("send", "bench_send.py",
             "`send_async(payload, None)`, flush included", "units", 5, prototype="3"),
    _at_most("send_key", "bench_send.py",
             "the same with a key", "units", 6, prototype="3.4"),
    _at_most("receive", "bench_receive.py",
             "`receive()` + `data()` + `acknowledge()`", "units", 8, stretch=6,
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
    _at_least("dispatch_delayed", "bench_dispatch.py",
              "a million delayed messages due at once, against undelayed ones without batches",
              "of the rate", 0.5),
    _at_least("kib_send_many", "bench_kib.py",
              "1 KiB, `send_many` into prepared space, against checksum + `pwrite` in C",
              "of the rate", 0.75),
    _at_least("kib_send", "bench_kib.py",
              "1 KiB, `send_async`, against the same", "of the rate", 0.5),
    _at_least("kib_cold", "bench_kib.py",
              "1 KiB, sustained over new ledgers, against `pwrite` of 128 KiB into allocated files",
              "of the rate", 0.6),
    _at_most("durable_send", "bench_durable.py",
             "durable `send`, one thread, against `pwrite` + `fdatasync`", "of the time", 1.15),
    _at_least("durable_threads", "bench_durable.py",
              "durable `send` from 16 threads, against one thread", "times the rate", 8),
    _at_least("durable_many", "bench_durable.py",
              "durable `send_many` of 1000, against LMDB, `sync=True`, 1000 a transaction",
              "times the rate", 2.5),
    _at_most("latency", "bench_latency.py",
             "send to receive to acknowledge, one thread, batching off, median", "µs", 2),
    _at_most("open_large", "bench_open.py",
             "opening a folder with 10 GB in sealed ledgers", "ms", 50),
    _at_most("open_any_size", "bench_open.py",
             "the same against a folder with 1 GB (1: independent of the size)", "of the time",
             1.5),
    _at_most("import_and_open", "bench_open.py",
             "`import pulsarx` and opening an empty folder", "ms", 40),
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
)
# fmt: on

BY_NAME = {row.name: row for row in ROWS}
# The largest writer comes last: what it leaves for the disk to do would disturb the others.
FILES = (
    "bench_send.py",
    "bench_receive.py",
    "bench_acknowledge.py",
    "bench_dispatch.py",
    "bench_arrow.py",
    "bench_kib.py",
    "bench_durable.py",
    "bench_latency.py",
    "bench_memory.py",
    "bench_timers.py",
    "bench_idle.py",
    "bench_open.py",
)
