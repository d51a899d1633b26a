"""Where a message is: `MessageId`. Any layer may use it."""

from __future__ import annotations

from pulsarx._pycore.message.message_id import MessageId

__all__ = ["MessageId"]
