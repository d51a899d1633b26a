"""The types of subscriptions."""

from __future__ import annotations

from pulsarx import ConsumerType

ALL_TYPES = [
    ConsumerType.Exclusive,
    ConsumerType.Failover,
    ConsumerType.Shared,
    ConsumerType.KeyShared,
]
