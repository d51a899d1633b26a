"""Helpers for tests of code that uses PulsarX: faults of file operations on demand, waiting for
consumers, what topics hold, and a look behind an open client.

The pytest fixtures `pulsar_url`, `pulsar_client` and `pulsar_clock` and their markers are there as
soon as PulsarX is installed.
"""

from __future__ import annotations

from pulsarx.testing.contents import dead_letters, messages, unacknowledged
from pulsarx.testing.drain import drain
from pulsarx.testing.faults import FaultPlan, fault_plan
from pulsarx.testing.inspection import Inspection, inspect

__all__ = [
    "FaultPlan",
    "Inspection",
    "dead_letters",
    "drain",
    "fault_plan",
    "inspect",
    "messages",
    "unacknowledged",
]
