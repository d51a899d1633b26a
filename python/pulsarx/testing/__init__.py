"""Helpers for tests of code that uses PulsarX: empty brokers, assertions that say what is missing,
faults and crashes on demand, other processes that are killed, waiting for consumers, what topics
hold, and a look behind an open client.

The pytest fixtures `pulsar_url`, `pulsar_client`, `pulsar_clock` and others and their markers are
there as soon as PulsarX is installed. `pulsarx.testing.aio` has the calls as coroutines.
"""

from __future__ import annotations

from pulsarx.testing.assertions import acknowledged, eventually, published
from pulsarx.testing.brokers import EmptyBroker, broker, namespace
from pulsarx.testing.cleaning import clean
from pulsarx.testing.contents import dead_letters, messages, unacknowledged
from pulsarx.testing.crashes import Crash, CrashPlan, crash_plan
from pulsarx.testing.drain import drain
from pulsarx.testing.faults import FaultPlan, fault_plan
from pulsarx.testing.inspection import Inspection, inspect
from pulsarx.testing.other_process import OtherProcess, other_process

__all__ = [
    "Crash",
    "CrashPlan",
    "EmptyBroker",
    "FaultPlan",
    "Inspection",
    "OtherProcess",
    "acknowledged",
    "broker",
    "clean",
    "crash_plan",
    "dead_letters",
    "drain",
    "eventually",
    "fault_plan",
    "inspect",
    "messages",
    "namespace",
    "other_process",
    "published",
    "unacknowledged",
]
