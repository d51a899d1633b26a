from pulsarx._pycore.message.entry_view import EntryContext
from pulsarx._pycore.message.message import Message
from pulsarx._pycore.message.message_id import MessageId

class ArrivingChunks:
    """The message in chunks that is arriving at one consumer."""

def entry_message_count(entry: bytes) -> int: ...
def entry_messages(
    context: EntryContext,
    ledger_id: int,
    entry_id: int,
    entry: bytes,
    redelivery_count: int,
    ack_set: list[int] | None,
    decompressed_size_max: int,
    chunks: ArrivingChunks,
) -> tuple[list[Message], list[MessageId]]: ...
