"""`MessageId`, the place of a message. Any layer may use it."""

from __future__ import annotations

from pulsarx._pycore.message.message_id import MessageId

__all__ = ["MessageId"]
