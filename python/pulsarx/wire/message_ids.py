"""Message ids as commands carry them: MessageIdData, and the ack sets in it.

An ack set is a list of words of 64 bits (signed), the first message the lowest bit of the first
word. A bit that is set stands for a message that is not acknowledged, or is to be delivered.
"""

from __future__ import annotations

from pulsarx.message_id import MessageId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_WORD = 1 << 64


def id_data(message_id: MessageId, ack_set: list[int] | None = None) -> dict[str, Any]:
    """The fields of a MessageIdData."""
    found: dict[str, Any] = {
        "ledger_id": message_id.ledger_id() % _WORD,
        "entry_id": message_id.entry_id() % _WORD,
    }
    if message_id.partition() >= 0:
        found["partition"] = message_id.partition()
    if message_id.batch_index() >= 0:
        found["batch_index"] = message_id.batch_index()
    if message_id.batch_size() > 0:
        found["batch_size"] = message_id.batch_size()
    if ack_set:
        found["ack_set"] = ack_set
    return found


def message_id_of(data: dict[str, Any], batch_index: int | None = None) -> MessageId:
    """The id that fields stand for; batch_index: instead of theirs."""
    index = data["batch_index"] if batch_index is None else batch_index
    ledger_id, entry_id = (
        value - _WORD if value >> 63 else value for value in (data["ledger_id"], data["entry_id"])
    )
    return MessageId(data["partition"], ledger_id, entry_id, index)


def ack_set_of(places: list[int]) -> list[int]:
    """These messages of a batch."""
    return _words(sum(1 << place for place in places))


def places_in(words: list[int]) -> list[int]:
    """The messages of a batch whose bits are set, in order."""
    bits = ack_set_bits(words)
    return [place for place in range(bits.bit_length()) if bits >> place & 1]


def ack_set_bits(words: list[int]) -> int:
    """Join all words into one number."""
    packed = b"".join((word % _WORD).to_bytes(8, "little") for word in words)
    return int.from_bytes(packed, "little")


def acknowledged_runs(words: list[int], message_count: int) -> Iterator[tuple[int, int]]:
    """(first, messages) of each run of a batch whose bits are not set; the words are untrusted.

    What lies behind the last word is acknowledged, and words behind the batch mean nothing: the
    cost grows with the words, or with the batch where that is smaller.
    """
    begun = 0  # the first message of the run that is being walked
    for at, word in enumerate(words[: -(-message_count // 64)]):
        bits = word % _WORD
        while bits:
            low = (bits & -bits).bit_length() - 1
            first = min(64 * at + low, message_count)
            if begun < first:
                yield begun, first - begun
            ones = ((~bits >> low) & (bits >> low) + 1).bit_length() - 1
            begun = 64 * at + low + ones
            bits &= -1 << (low + ones)
    if begun < message_count:
        yield begun, message_count - begun


def first_in(words: list[int]) -> int:
    """The index of the first message whose bit is set; -1: there is none."""
    bits = ack_set_bits(words)
    return (bits & -bits).bit_length() - 1


def _words(bits: int) -> list[int]:
    found = []
    while bits:
        word = bits % _WORD
        found.append(word - _WORD if word >> 63 else word)
        bits >>= 64
    return found
