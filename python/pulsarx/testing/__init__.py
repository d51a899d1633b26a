"""For tests of code that uses PulsarX: faults of file operations on demand, and a look behind an
open client.

The pytest fixtures `pulsar_client` and `pulsar_clock` are there as soon as PulsarX is installed.
"""

from __future__ import annotations

from pulsarx.testing.faults import FaultPlan, fault_plan
from pulsarx.testing.inspection import Inspection, inspect

__all__ = ["FaultPlan", "Inspection", "fault_plan", "inspect"]
