"""Ids of messages as Pulsar's admin API writes them in JSON."""

from __future__ import annotations

from pulsarx.message_id import MessageId
from pulsarx.options.argument_check import INT32_MAX, INT64_MAX
from pulsarx.rest.call import Refusal, integer_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def shown_id(message_id: MessageId) -> dict[str, Any]:
    found = {
        "ledgerId": message_id.ledger_id(),
        "entryId": message_id.entry_id(),
        "partitionIndex": message_id.partition(),
        "batchIndex": message_id.batch_index(),
        "batchSize": 0,
    }
    return found


def read_id(found: object) -> MessageId:
    """The id of a JSON object: ledgerId, entryId, partitionIndex and batchIndex. The least and the
    greatest one are the two ends of a topic. isExcluded: the message behind it."""
    if not isinstance(found, dict):
        raise Refusal(400, "a message id is a JSON object with ledgerId and entryId")
    ledger_id, entry_id = integer_of(found, "ledgerId"), integer_of(found, "entryId")
    partition = integer_of(found, "partitionIndex", -1)
    batch_index = integer_of(found, "batchIndex", -1)
    if ledger_id == INT64_MAX:
        return MessageId.latest
    if ledger_id < 0:
        return MessageId.earliest
    if not (
        ledger_id <= INT64_MAX
        and -1 <= entry_id <= INT64_MAX
        and -1 <= partition <= INT32_MAX
        and -1 <= batch_index <= INT32_MAX
    ):
        raise Refusal(400, f"{found!r:.200} is no message id")
    if found.get("isExcluded") is True:
        if batch_index >= 0:
            batch_index += 1
        else:
            entry_id += 1
    return MessageId(partition, ledger_id, entry_id, batch_index)


def position_of(found: object) -> dict[str, object]:
    """The position that a verb takes."""
    return {"message_id": read_id(found).to_text()}
