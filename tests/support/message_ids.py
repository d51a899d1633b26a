"""What an id of a message consists of."""

from __future__ import annotations

from pulsarx import MessageId


def parts(message_id: MessageId) -> tuple[int, int, int, int]:
    return (
        message_id.ledger_id(),
        message_id.entry_id(),
        message_id.partition(),
        message_id.batch_index(),
    )
