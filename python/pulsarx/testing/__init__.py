"""For tests of code that uses PulsarX: faults of file operations on demand.

The pytest fixtures `pulsar_client` and `pulsar_clock` are there as soon as PulsarX is installed.
"""

from __future__ import annotations

from pulsarx.testing.faults import FaultPlan, fault_plan

__all__ = ["FaultPlan", "fault_plan"]
