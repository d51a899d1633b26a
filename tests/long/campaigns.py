"""What `make test-long` does, as one table. Another campaign is one more entry.

A round of a campaign is one run of pytest with a seed of its own, which the tests draw from by
tests/seeds.py and Hypothesis by `--hypothesis-seed`. It should take half a minute to a few: a run
that is stopped loses the round it is in. As they stand the budgets add up to about seven hours on
two cores, and an hour for each parser that is fuzzed; `--factor` changes them all.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Campaign:
    """What is tried again and again. Its budget is `rounds` or `minutes`, whichever is given."""

    name: str
    what: str
    tests: tuple[str, ...]  # arguments of pytest; {seed} stands for the seed of the round
    rounds: int = 0
    minutes: float = 0
    scale: float = 1  # PULSARX_TEST_SCALE: `make test` has 0.3
    sanitized: bool = False
    sanitizers: str = "address,undefined"  # of one that is sanitized
    round_minutes_max: float = 30  # a round that takes longer does not end


def campaign(name: str, what: str, *tests: str, **others: float | bool | str) -> Campaign:
    return Campaign(name, what, tests, **others)  # type: ignore[arg-type]


# The targets of tests/reliability/fuzz_targets.py.
FUZZED = (
    "entry-frame", "entry", "entry-codec", "message-metadata", "single-metadata", "compacted-entry",
    "chunks", "cursor-header", "cursor-snapshot", "cursor-tail", "cursor-sections", "cursor-label",
    "ledger-header", "ledger-file", "ledger-name", "name-record", "lz4-block", "snappy-block",
    "compression", "plain-json", "json-line", "json-columns", "avro-columns", "selector",
    "schema-of-command", "topic-name", "topic-pattern", "catalogue-commit", "catalogue-operations",
    "folder-marker", "frames", "hot-commands", "commands", "rest",
)  # fmt: skip


def fuzz(target: str) -> Campaign:
    return campaign(
        f"fuzz-{target}", f"any bytes for a parser, led by its branches: {target}",
        "tests/reliability/test_fuzzing.py", "-m", "long", "-k", f"nothing_is_found[{target}]",
        minutes=60,
    )  # fmt: skip


CAMPAIGNS = (
    # Kills --------------------------------------------------------------------------------------
    campaign(
        "subscription-kills", "consumers of shared subscriptions, killed in the middle",
        "tests/api/subscriptions/test_subscription_kills.py", rounds=25, scale=4,
    ),
    campaign(
        "publish-kills", "publishers and consumers, killed at any moment, by durability",
        "tests/api/producing/test_durability.py", "-k", "kill", rounds=25, scale=6,
    ),
    campaign(
        "ledger-kills", "writers of ledgers and cursors, killed; letters in between",
        "tests/pycore/ledger/test_ledger_processes.py", "tests/pycore/cursor/test_cursor_store.py",
        "tests/api/letters/test_dead_letter.py", "-k", "kill", rounds=25, scale=6,
    ),
    campaign(
        "attach-kills", "owners killed while others attach; a death at every call of an attach",
        "tests/broker/requests/test_attach_crash.py", "tests/broker/requests/test_attach_live.py",
        "tests/broker/requests/test_attach_beside_owner.py", rounds=30, scale=3,
    ),
    campaign(
        "query-kills", "queries and jobs as Spark runs them, without Java: all processes, killed",
        "tests/spark/test_killed_queries.py", "-m", "standard or long", rounds=3, scale=10,
    ),
    campaign(
        "spark-kills", "tasks, workers, executors, commits and drivers of Spark, killed",
        "tests/spark/test_exactly_once.py", "tests/spark/test_killed_batches.py",
        "tests/spark/test_twin_tasks.py", "-m", "standard or long", rounds=3,
    ),
    # 75 kills a round, minutes.
    campaign(
        "real-spark-kills", "a real Spark: its Pythons, executors and drivers, killed at random",
        "tests/spark/test_spark_kills.py", "-m", "long", rounds=3, scale=1,
    ),
    campaign(
        "spark-cluster", "Spark's standalone cluster, and Pythons that start slowly",
        "tests/spark/test_spark_cluster.py", "-m", "long", rounds=1,
    ),
    campaign(
        "function-kills", "functions that are effectively once, killed at any moment",
        "tests/api/functions/test_function_kills.py", "-m", "standard or long", rounds=25, scale=1,
    ),
    campaign(
        "driver-kills", "50 drivers of Spark a round, killed at random beside a living owner",
        "tests/spark/test_other_drivers.py", "-m", "standard or long", rounds=2, scale=10,
    ),
    campaign(
        "forwarding-kills", "forwarders, their folders and the clusters they forward to, killed",
        "tests/forwarding", "-k", "kill or network", "-m", "standard or long", rounds=25, scale=1,
    ),
    # Interrupts and forks -----------------------------------------------------------------------
    campaign(
        "interrupts", "Ctrl-C and signal handlers that raise, in every call that blocks",
        "tests/api/client/test_interrupts.py", "tests/api/client/test_waiting.py",
        "tests/api/client/test_interrupted_folders.py", rounds=60, scale=5,
    ),
    # More than 100,000 interrupts: each round 7,200 at random moments and 4,000 at lines.
    campaign(
        "interrupted-calls", "all public calls, interrupted at random and at lines of Python",
        "tests/api/client/test_interrupted_calls.py", rounds=10, scale=15,
    ),
    campaign(
        "forks", "children forked while all threads work",
        "tests/api/client/test_fork.py", "tests/api/client/test_clock.py",
        "tests/pycore/ledger/test_ledger_processes.py", "-k", "fork or child", rounds=60, scale=15,
    ),
    # Several processes --------------------------------------------------------------------------
    campaign(
        "takeovers", "processes that share a folder, killed at random while all publish",
        "tests/sharing/test_takeover.py", "-m", "standard or long", rounds=40, scale=10,
    ),
    campaign(
        "consumer-kills", "processes that share subscriptions, killed at random",
        "tests/sharing/test_consumer_kills.py", "-m", "standard or long", rounds=40, scale=5,
    ),
    campaign(
        "failing-memory", "an allocation fails, in whichever thread, alone and beside others",
        "tests/sharing/test_failing_memory.py", "-m", "standard or long", rounds=20,
    ),
    # Crash images and damage --------------------------------------------------------------------
    # About 35,000 images a round.
    campaign(
        "crash-images", "power cuts at any call of a client, and at any call of the recovery",
        "tests/reliability/test_crash_images.py", rounds=25, scale=8,
    ),
    campaign(
        "catalogue-crashes", "a power cut at every call, with random parts of what was not flushed",
        "tests/broker/catalogue", rounds=60, scale=5,
    ),
    campaign(
        "forged-ledgers", "sealed files that lie while their checksums hold",
        "tests/broker/staging/test_forged_ledgers.py", "-k", "random", rounds=30, scale=12,
    ),
    campaign(
        "damage", "random bytes, truncations and flipped bits for every decoder",
        "tests/core", "tests/pycore/ranges", "tests/pycore/ledger/test_ledger_recovery.py",
        "tests/pycore/cursor", "tests/api/arrow", rounds=8, scale=8,
    ),
    campaign(
        "salvage", "folders without marker or catalogue, their files damaged, put together again",
        "tests/api/backups/test_salvage_of_ruins.py", rounds=30, scale=6,
    ),
    *map(fuzz, FUZZED),
    campaign(
        "fuzz-planted", "parsers with bugs that fuzzing has to find, from nothing",
        "tests/reliability/test_fuzzing.py", "-m", "long", "-k", "planted", rounds=1,
    ),
    # Each round is one of the 499 slices of all bits; tests/reliability/every_bit.py does them all.
    campaign(
        "every-bit", "one flipped bit of a folder with every kind of file, in slices",
        "tests/reliability/test_every_bit.py", "-m", "standard or long", rounds=40,
    ),
    # As root, or it is skipped: 600 cuts a round.
    campaign(
        "power-cuts", "power cuts of ext4 and XFS on loop devices, by durability",
        "tests/reliability/test_power_cuts.py", "-m", "long", rounds=10,
    ),
    # Failures -----------------------------------------------------------------------------------
    campaign(
        "every-failure", "calls on files fail in turn; a sixteenth of all points a round",
        "tests/reliability/test_every_failure.py", "-k", "files or planted", rounds=32,
    ),
    campaign(
        "every-allocation", "allocations fail in turn; a sixty-fourth of all points a round",
        "tests/reliability/test_every_failure.py", "-k", "allocation or planted", rounds=64,
    ),
    # Models and properties ----------------------------------------------------------------------
    campaign(
        "model", "random histories of subscriptions against the model, with restarts",
        "tests/model", rounds=12, scale=8,
    ),
    campaign(
        "transactions", "random histories of transactions, their owners killed at calls on files",
        "tests/model/test_transactions_model.py", "-k", "whole", rounds=20, scale=12,
    ),
    campaign(
        "served-transactions",
        "random histories of transactions of a network, that go on whatever kills their broker",
        "tests/model/test_served_transactions_model.py", "-k", "whole", rounds=20, scale=12,
    ),
    # 100,000 histories of an owner and four guests, an hour of one core.
    campaign(
        "simulation", "an owner and its guests in one thread of control, killed and stopped",
        "tests/reliability/simulation/test_simulation.py", "-k", "promised", rounds=20, scale=10,
    ),
    campaign(
        "leases", "plans, slow readers, idle jobs and retention on one topic",
        "tests/reliability/test_leases.py", rounds=40, scale=8,
    ),
    campaign(
        "dispatch", "random histories of dispatchers, counted again after every step",
        "tests/api/subscriptions/test_dispatch_property.py", "tests/pycore/dispatch",
        "tests/broker/scan", rounds=12, scale=15,
    ),
    # Threads ------------------------------------------------------------------------------------
    campaign(
        "threads", "many threads on one topic; closing while all calls are running",
        "tests/api/subscriptions/test_subscription_threads.py", "tests/api/client/test_threads.py",
        "tests/api/client/test_closing_under_load.py", "tests/api/consuming/test_waking.py",
        rounds=60,
    ),
    campaign(
        "thread-sanitizer", "threads that overlap in native code: no access races",
        "tests/reliability/test_races.py", "tests/core/test_wait_event.pyx",
        "tests/core/test_ledger_append.pyx", "tests/core/test_owner_link.pyx",
        "tests/pycore/ledger/test_ledger_writer.py", "tests/api/client/test_closing_under_load.py",
        "-m", "quick or standard or long", rounds=4, sanitized=True, sanitizers="thread",
        round_minutes_max=60,
    ),
    # Sanitizers and order -----------------------------------------------------------------------
    campaign(
        "sanitizers-core", "core and pycore under the sanitizers, with other seeds",
        "tests/core", "tests/pycore", rounds=2, scale=2, sanitized=True, round_minutes_max=60,
    ),
    campaign(
        "sanitizers-broker", "the broker under the sanitizers",
        "tests/broker", rounds=1, sanitized=True, round_minutes_max=60,
    ),
    campaign(
        "sanitizers-api", "the API under the sanitizers, threads and kills included",
        "tests/api", rounds=1, sanitized=True, round_minutes_max=120,
    ),
    campaign(
        "sanitizers-model", "random histories under the sanitizers",
        "tests/model", "tests/api/subscriptions/test_dispatch_property.py", rounds=2,
        sanitized=True, round_minutes_max=60,
    ),
    campaign(
        "coverage", "95 % of the core's branches, and what its tests do not take of the others",
        "tests/reliability/test_branch_coverage.py", "-m", "long", rounds=1, round_minutes_max=60,
    ),
    campaign(
        "order", "all tests but Spark's and the benchmarks, in random orders",
        "tests", "--ignore=tests/spark", "--ignore=tests/benchmarks", "--random-order={seed}",
        rounds=4,
    ),
    campaign(
        "long", "tests that are marked long, once",
        "tests", "-m", "long", "--ignore=tests/spark", rounds=1, round_minutes_max=120,
    ),
)  # fmt: skip
