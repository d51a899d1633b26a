from typing import Any

from pulsarx._pycore.message.message import Message

def receive_batch(
    consumer: Any, messages_max: int, bytes_max: int, timeout_ms: int | None
) -> list[Message]:
    """What comes until one bound would be exceeded; whoever is alone too large comes alone."""
