"""The parts in which tools/run_tests.py runs the tests, each in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """paths: a file or folder that another part names below one of these is of the other.
    needs_disk: what its tests prove is about files.
    seconds: about what it takes on a quiet core, for the order and the time that is left where
    no run has told."""

    name: str
    paths: tuple[str, ...]
    seconds: int
    needs_disk: bool = False


# Those that start drivers of their own, kill them or fail their writes; the others share a session.
DRIVERS = (
    "connect",
    "exactly_once",
    "kept_leases",
    "killed_batches",
    "killed_queries",
    "other_drivers",
    "prepared_python",
    "session",
    "twin_tasks",
)
# Those that wait for owners that end, are stopped or killed.
OWNERS = (
    "consumer_kills",
    "deduplicated_kills",
    "leaving_owner",
    "next_owner",
    "servers",
    "sharing",
    "takeover",
)
PARTS = (
    Part("spark", ("tests/spark",), 200),
    Part("spark-drivers", tuple(f"tests/spark/test_{each}.py" for each in DRIVERS), 150),
    Part("benchmarks", ("tests/benchmarks", "tests/oracle"), 100),
    Part("client", ("tests/api/client",), 100),
    Part("topics", ("tests/api/topics",), 90),
    Part("processes", ("tests/sharing", "tests/api/processes"), 100),
    Part("owners", tuple(f"tests/sharing/test_{each}.py" for each in OWNERS), 120),
    Part("border", ("tests/border",), 100),
    Part("broker", ("tests/broker",), 100, True),
    Part("model", ("tests/model",), 60),
    Part("reliability", ("tests/reliability",), 60, True),
    Part("core", ("tests/core", "tests/pycore"), 60),
    Part("consuming", ("tests/api/consuming", "tests/api/aio", "tests/api/looking"), 60),
    Part(
        "producing",
        ("tests/api/producing", "tests/api/encryption", "tests/api/schemas", "tests/schema"),
        60,
    ),
    Part(
        "subscriptions",
        (
            "tests/api/subscriptions",
            "tests/api/transactions",
            "tests/api/letters",
            "tests/api/arrow",
            "tests/api/statements",
        ),
        50,
    ),
    Part(
        "administration",
        ("tests/api/admin", "tests/api/policies", "tests/api/backups", "tests/api/functions"),
        50,
    ),
    Part("storage", ("tests/api/offload", "tests/api/compaction"), 40, True),
    Part("command-line", ("tests/cli",), 40),
    Part("server", ("tests/server", "tests/rest", "tests/access", "tests/wire"), 60),
    Part(
        "programs",
        (
            "tests/programs",
            "tests/compat",
            "tests/forwarding",
            "tests/functions",
            "tests/cluster",
            "tests/long",
            "tests/harness",
            "tests/tools",
        ),
        40,
    ),
    Part("deploy", ("tests/deploy",), 60),
    Part("site", ("tests/site",), 60),
    Part("tidy", ("tests/tidy",), 20),
)
