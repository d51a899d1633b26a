from typing import Any

from pulsarx._pycore.message.message import Message

def receive_batch(
    consumer: Any, messages_max: int, bytes_max: int, timeout_ms: int | None
) -> list[Message]:
    """Messages until one more would exceed a bound; a message too large for it comes alone."""
