"""Received messages: one, and as columns. What consumers and readers return."""

from __future__ import annotations

from pulsarx._pycore.arrow.arrow_export import ArrowMessages
from pulsarx._pycore.message.message import Message

__all__ = ["ArrowMessages", "Message"]
