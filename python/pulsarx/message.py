"""A received message, as `Consumer.receive` and `Reader.read_next` return it."""

from __future__ import annotations

from pulsarx._pycore.message import Message

__all__ = ["Message"]
